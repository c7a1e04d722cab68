//! What woven code looks like, for each shape of method that needs care.

#[path = "../../examples/common/mod.rs"]
mod common;
mod constructors;
mod counts;
mod handlers;
mod sites;
#[path = "../support/mod.rs"]
mod support;

use support::{assemble, disassemble};
use tare_weaver::{MethodOutcome, MethodPlan, Options, Outcome, RegionPlan, Weaver};

/// Weaves all methods of an assembled class with id 7 and shows one of them.
fn check(mode: &str, method: &str, input: &str, expected: &str) {
    assert_eq!(woven(mode, method, input, &[]), expected.trim_start(), "{mode}");
}

fn woven(mode: &str, method: &str, input: &str, regions: &[RegionPlan]) -> String {
    let bytes = assemble(input);
    let probes = common::probes(mode).expect("a known mode");
    let plan = |m: &tare_weaver::MethodInfo<'_>| {
        (m.name == method.as_bytes())
            .then(|| MethodPlan { regions: regions.to_vec(), ..MethodPlan::new(7, &probes) })
    };
    let mut weaver = Weaver::new(Options::default());
    let outcome = weaver.weave(&bytes, plan).expect("a well-formed class");
    let again = weaver.weave(&bytes, plan).expect("a well-formed class");
    assert_eq!(outcome, again, "the same input gives the same output");
    match outcome {
        Outcome::Woven { bytes, .. } => {
            disassemble(&bytes, method).replace("java/lang/TareProbe", "R")
        }
        Outcome::Unchanged(report) => match &report.methods[..] {
            [m] => match &m.outcome {
                MethodOutcome::Refused(r) => format!("refused: {r}\n"),
                other => format!("{other:?}\n"),
            },
            _ => "nothing chosen\n".to_owned(),
        },
    }
}

#[test]
fn entry_and_exit_of_a_method_that_cannot_throw() {
    check(
        "entry",
        "f",
        "method f (I)I static 1 1
            iload_0
            ireturn",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iload_0
7: lload_1
8: invokestatic R.exit:(J)V
11: ireturn
",
    );
}

#[test]
fn the_catch_all_covers_the_body_and_not_the_exit() {
    check(
        "entry",
        "f",
        "method f (I)I static 1 1
            iload_0
            invokestatic A.b:(I)I
            ireturn",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iload_0
7: invokestatic A.b:(I)I
10: lload_1
11: invokestatic R.exit:(J)V
14: ireturn
15: lload_1
16: invokestatic R.exitThrow:(J)V
19: athrow
try 6-10 15 any
frame 15 [top, long] [java/lang/Throwable]
",
    );
}

#[test]
fn a_loop_to_the_start_enters_once() {
    check(
        "entry",
        "f",
        "method f (I)V static 1 1
         a:
            iinc 0 -1
            iload_0
            ifgt a
            return
            frame a [int] []
            line a 5",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iinc 0 -1
9: iload_0
10: ifgt 6
13: lload_1
14: invokestatic R.exit:(J)V
17: return
18: lload_1
19: invokestatic R.exitThrow:(J)V
22: athrow
try 6-13 18 any
frame 6 [int, long] []
frame 18 [top, long] [java/lang/Throwable]
line 6 5
",
    );
}

#[test]
fn frames_keep_wide_locals_and_are_padded() {
    check(
        "entry",
        "f",
        "method f (JD)V static 2 6
            lload_0
            lconst_0
            lcmp
            ifeq a
            nop
         a:
            return
            frame a [long, double] []",
        "
stack 4 locals 8
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore 6
7: lload_0
8: lconst_0
9: lcmp
10: ifeq 14
13: nop
14: lload 6
16: invokestatic R.exit:(J)V
19: return
frame 14 [long, double, top, top, long] []
",
    );
}

#[test]
fn locals_beyond_255_take_the_wide_form() {
    check(
        "count",
        "f",
        "method f ()V static 0 255
            return",
        "
stack 3 locals 258
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore 255
7: iconst_0
8: wide istore 257
12: wide iinc 257 1
18: lload 255
20: wide iload 257
24: invokestatic R.exitCount:(JI)V
27: return
",
    );
}

#[test]
fn switches_are_padded_again() {
    check(
        "entry",
        "f",
        "method f (I)V static 1 1
            iload_0
            tableswitch 1 a b b
         a:
            return
         b:
            return
            frame a [int] []
            frame b [int] []",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iload_0
7: tableswitch 1:28 2:33 else:33
28: lload_1
29: invokestatic R.exit:(J)V
32: return
33: lload_1
34: invokestatic R.exit:(J)V
37: return
frame 28 [int, long] []
frame 33 [int, long] []
",
    );
}

#[test]
fn subroutines_work_in_old_classes() {
    check(
        "count",
        "f",
        "class T 48
         method f ()V static 1 1
            jsr s
            return
         s:
            astore_0
            ret 0",
        "
stack 4 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iconst_0
7: istore_3
8: iinc 3 1
11: jsr 23
14: iinc 3 1
17: lload_1
18: iload_3
19: invokestatic R.exitCount:(JI)V
22: return
23: iinc 3 2
26: astore_0
27: ret 0
",
    );
}

#[test]
fn refusals_and_nothing_to_do() {
    check(
        "entry",
        "finalize",
        "method finalize ()V - 0 1\n return",
        "
refused: an empty finalize() must stay empty
",
    );
    check(
        "entry",
        "f",
        "method f ()V abstract 0 0",
        "
NoCode
",
    );
    check(
        "alloc",
        "f",
        "method f ()V static 0 0\n return",
        "
NothingToDo
",
    );
    let subroutine = "method f ()V static 1 1\n jsr s\n return\n s:\n astore_0\n ret 0";
    check(
        "entry",
        "f",
        subroutine,
        "
refused: jsr or ret in a class file of version 51 or later
",
    );
    check(
        "entry",
        "f",
        "method f ()V static 0 65535\n return",
        "
refused: no room for another local variable
",
    );
    check(
        "entry",
        "f",
        "method f ()V static 0 0\n repeat 7999 nop\n return",
        "
refused: the woven code would pass 8,000 bytes; HotSpot would no longer compile it
",
    );
    check(
        "entry",
        "f",
        "method f ()V static 0 0\n repeat 65530 nop\n return",
        "
refused: the woven code would pass 65,535 bytes
",
    );
}
