//! The check finds what a JVM would reject, and nothing else.

#[path = "../../tests/support/mod.rs"]
mod support;

use super::{Check, Woven};
use crate::compiled;
use crate::plan::Refusal;
use crate::simulate::initial_locals;
use crate::types::Names;
use tare_classfile::writer::PoolBuilder;
use tare_classfile::{ClassFile, Code};

/// What the check says of each constructor of a class as it stands.
fn verdicts(bytes: &[u8]) -> Vec<Result<(), Refusal>> {
    let class = ClassFile::parse(bytes).unwrap();
    let mut out = Vec::new();
    let mut pool = PoolBuilder::new(&class);
    for m in &class.methods {
        let [name, descriptor] =
            [m.name_index, m.descriptor_index].map(|i| class.pool.utf8(i).unwrap());
        if name != b"<init>" {
            continue;
        }
        let code = Code::parse(&m.attributes.find(&class.pool, "Code").unwrap()).unwrap();
        let frames = code.attributes.find(&class.pool, "StackMapTable");
        let mut names = Names::default();
        let mut initial = Vec::new();
        let flags = m.access_flags;
        initial_locals(&class, &mut names, &mut pool, name, descriptor, flags, &mut initial)
            .unwrap();
        let rows: Vec<[u16; 4]> =
            code.exceptions().map(|e| [e.start, e.end, e.handler, e.catch_type]).collect();
        out.push(Check::default().run(&Woven {
            code: code.code,
            max_stack: code.max_stack,
            max_locals: code.max_locals,
            exceptions: &rows,
            frames: frames.as_ref().map_or(&[0, 0], |a| a.data),
            initial: &initial,
            pool: &pool,
        }));
    }
    out
}

fn check(constructor: &str, expected: &str) {
    let said = match &verdicts(&support::assemble(constructor))[..] {
        [Ok(())] => "ok".to_owned(),
        [Err(Refusal::DoesNotVerify(at, what))] => format!("{at}: {what}"),
        other => format!("{other:?}"),
    };
    assert_eq!(said, expected, "{constructor}");
}

#[test]
fn what_compilers_make_passes() {
    let mut seen = 0;
    let before = compiled::statements_before_super();
    let dirs = ["8", "17", "25"].into_iter().filter_map(compiled::shapes).chain(before);
    for dir in dirs {
        for entry in std::fs::read_dir(dir).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            for verdict in verdicts(&bytes) {
                assert_eq!(verdict, Ok(()));
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// A handler of which each case says where it begins and ends, and what its frame is.
fn handler(from: &str, to: &str, frame: &str) -> String {
    format!(
        "method <init> ()V - 1 1
         a:
            nop
         b:
            aload_0
         c:
            invokespecial java/lang/Object.<init>:()V
         d:
            nop
         e:
            return
         h:
            athrow
            try {from} {to} h any
            frame h {frame}"
    )
}

#[test]
fn a_handler_knows_whether_this_is_initialised() {
    let unsaid = "the frame does not say that this is not initialised";
    let local = "a local is not what the frame says";
    let caught = "the frame of a handler does not say that it has an exception";
    let cases = [
        ("a", "c", "[this] [java/lang/Throwable]", "ok".to_owned()),
        ("d", "e", "[T] [java/lang/Throwable]", "ok".to_owned()),
        ("d", "e", "[top] [java/lang/Throwable]", "ok".to_owned()),
        ("b", "c", "[top] [java/lang/Throwable]", format!("1: {unsaid}")),
        ("d", "e", "[this] [java/lang/Throwable]", format!("5: {local}")),
        // No handler can cover the call itself.
        ("a", "d", "[this] [java/lang/Throwable]", format!("2: {local}")),
        ("c", "e", "[top] [java/lang/Throwable]", format!("2: {unsaid}")),
        ("a", "c", "[this] []", format!("0: {caught}")),
    ];
    for (from, to, frame, expected) in cases {
        check(&handler(from, to, frame), &expected);
    }
}

/// Two ways to one place, which begin as given; local 1 is an `int`, local 2 unknown.
fn two_ways(one: &str, other: &str, frame: &str) -> String {
    format!(
        "method <init> (I)V - 3 3
            iload_1
            ifeq a
            {one}
            goto b
         a:
            {other}
         b:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return
            frame a [this, int] []
            {frame}"
    )
}

#[test]
fn ways_that_meet_agree_with_the_frame() {
    let local = "a local is not what the frame says";
    let stack = "the stack is not what the frame says";
    let none = "no frame where a jump leads";
    let sup = "aload_0\n invokespecial java/lang/Object.<init>:()V";
    let b = "frame b [this, int] []";
    let cases = [
        (two_ways("nop", "nop", b), "ok".to_owned()),
        (two_ways("iconst_0\n istore_2", "nop", b), "ok".to_owned()),
        (two_ways("nop", "nop", "frame b [this, int, int] []"), format!("5: {local}")),
        (two_ways("iconst_0\n istore_2", "nop", "frame b [this, int, int] []"), {
            format!("10: {local}")
        }),
        (two_ways("nop", "iconst_0", b), format!("9: {stack}")),
        (two_ways(sup, "nop", b), format!("8: {local}")),
        (two_ways("nop", "nop", ""), format!("5: {none}")),
    ];
    for (text, expected) in cases {
        check(&text, &expected);
    }
}

#[test]
fn values_are_what_instructions_need() {
    let method = |stack: u16, body: &str| format!("method <init> ()V - {stack} 2\n{body}");
    let sup = "aload_0\n invokespecial java/lang/Object.<init>:()V";
    let value = "a value of another type than it needs";
    let cases = [
        (method(1, &format!("{sup}\n return")), "ok".to_owned()),
        (method(1, "return"), "0: it returns before this is initialised".to_owned()),
        // What is not initialised can be stored and loaded, but not passed.
        (method(1, "aload_0\n astore_1\n aload_1\n pop\n aconst_null\n athrow"), "ok".to_owned()),
        (method(1, "aload_0\n invokestatic A.b:(Ljava/lang/Object;)V\n return"), {
            format!("1: {value}")
        }),
        (method(2, "new A\n invokestatic A.b:(Ljava/lang/Object;)V\n return"), {
            format!("3: {value}")
        }),
        (method(1, "iload_1\n aconst_null\n athrow"), format!("0: {value}")),
        (method(1, &format!("{sup}\n {sup}\n return")), format!("5: {value}")),
        (method(1, "lconst_0\n return"), "0: the stack is deeper than it says".to_owned()),
        (method(1, "nop"), "1: control or a frame leaves the code".to_owned()),
        (method(1, "aconst_null\n athrow\n nop"), "2: no frame describes this code".to_owned()),
    ];
    for (text, expected) in cases {
        check(&text, &expected);
    }
}
