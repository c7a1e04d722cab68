//! Constructors whose code before `super()` does not stand before it, or forks, or loses `this`.
//!
//! The output of R8 is full of them; javac makes some since constructors may begin with statements.

use crate::{Temp, check_odd, common, compiled, java, run, weave_into};
use std::fs;

#[test]
fn constructors_that_choose_how_to_initialise() {
    let body = "method <init> ()V - 1 1
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return
         method <init> (I)V - 2 3
            iload_1
            iconst_2
            if_icmplt a
            aload_0
            invokespecial T.<init>:()V
            goto b
         a:
            iconst_1
            istore_2
            aload_0
            invokespecial java/lang/Object.<init>:()V
         b:
            iload_1
            invokestatic T.p:(I)V
            iconst_4
            iload_1
            idiv
            invokestatic T.p:(I)V
            return
            FRAMES
         method main ([Ljava/lang/String;)V static 4 2
         s:
            new T
            iconst_2
            invokespecial T.<init>:(I)V
            new T
            dup
            iconst_1
            invokespecial T.<init>:(I)V
            pop
         n:
            new T
            dup
            iconst_0
            invokespecial T.<init>:(I)V
            pop
            return
         h:
            pop
            bipush 99
            invokestatic T.p:(I)V
            return
            try s h h java/lang/ArithmeticException
            MAIN";
    let frames = "frame a [this, int] []\n frame b [T, int] []";
    let main = "frame h [{Ljava/lang/String;] [java/lang/ArithmeticException]";
    let expected = "2\n2\n1\n4\n0\n99\n";
    check_odd(52, &body.replace("FRAMES", frames).replace("MAIN", main), expected);
    check_odd(49, &body.replace("FRAMES", "").replace("MAIN", ""), expected);
}

/// Descriptor and code of a constructor.
type Shape = (&'static str, &'static str);

/// What a constructor is called with, and what that prints; 99 stands for an exception.
type Calls = &'static [(&'static str, &'static str)];

const SHAPES: &[(Shape, Calls)] = &[
    // Every branch calls another constructor, and one throws, behind code that has called one.
    (
        (
            "(I)V",
            "method <init> (I)V - 3 2
            iload_1
            tableswitch 0 a b c
         a:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            iconst_4
            iload_1
            idiv
            invokestatic T.p:(I)V
            return
         b:
            aload_0
            invokespecial T.<init>:()V
            bipush 20
            iload_1
            idiv
            invokestatic T.p:(I)V
            return
         c:
            new java/lang/RuntimeException
            dup
            invokespecial java/lang/RuntimeException.<init>:()V
            athrow
            frame a [this, int] []
            frame b [this, int] []
            frame c [this, int] []",
        ),
        &[("iconst_0", "99"), ("iconst_1", "20"), ("iconst_2", "99")],
    ),
    // What runs last stands first.
    (
        (
            "(J)V",
            "method <init> (J)V - 4 3
            goto a
         b:
            iconst_5
            lload_1
            l2i
            idiv
            invokestatic T.p:(I)V
            return
         a:
            lload_1
            lconst_1
            lcmp
            ifeq c
            aload_0
            invokespecial T.<init>:()V
            goto b
         c:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            goto b
            frame b [T, long] []
            frame a [this, long] []
            frame c [this, long] []",
        ),
        &[("lconst_0", "99"), ("lconst_1", "5"), ("ldc2_w 5l", "1")],
    ),
    // A loop, with something that throws in it.
    (
        (
            "(F)V",
            "method <init> (F)V - 3 3
            iconst_3
            istore_2
         l:
            iinc 2 -1
            bipush 8
            fload_1
            f2i
            idiv
            pop
            iload_2
            ifgt l
            aload_0
            invokespecial java/lang/Object.<init>:()V
            iload_2
            invokestatic T.p:(I)V
            return
            frame l [this, float, int] []",
        ),
        &[("fconst_0", "99"), ("fconst_1", "0")],
    ),
    // A handler for code before the call stands behind code after it, with what it caught still to
    // be told to the probes.
    (
        (
            "(D)V",
            "method <init> (D)V - 3 4
         s:
            bipush 12
            dload_1
            d2i
            idiv
            istore_3
         g:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            iload_3
            invokestatic T.p:(I)V
            return
         h:
            pop
            iconst_m1
            istore_3
            goto g
            try s g h java/lang/ArithmeticException
            frame g [this, double, int] []
            frame h [this, double] [java/lang/ArithmeticException]",
        ),
        &[("dconst_0", "-1"), ("dconst_1", "12")],
    ),
    // Only the stack holds `this` while something throws.
    (
        (
            "(Ljava/lang/String;)V",
            "method <init> (Ljava/lang/String;)V - 3 2
            aload_0
            aload_1
            astore_0
            aload_0
            invokevirtual java/lang/String.length:()I
            invokespecial T.<init>:(I)V
            aload_0
            invokevirtual java/lang/String.length:()I
            invokestatic T.p:(I)V
            return",
        ),
        &[("aconst_null", "99"), ("ldc \"x\"", "20 1"), ("ldc \"xyz\"", "99")],
    ),
    // Another local holds it, past a branch, and local 0 what was made meanwhile.
    (
        (
            "(Ljava/lang/String;I)V",
            "method <init> (Ljava/lang/String;I)V - 3 4
            aload_0
            astore_3
            aload_1
            astore_0
            iload_2
            ifeq a
            aload_0
            invokevirtual java/lang/String.length:()I
            istore_2
         a:
            aload_3
            iload_2
            invokespecial T.<init>:(I)V
            aload_0
            invokevirtual java/lang/String.length:()I
            invokestatic T.p:(I)V
            return
            frame a [java/lang/String, java/lang/String, int, this] []",
        ),
        &[("aconst_null iconst_1", "99"), ("ldc \"x\" iconst_1", "20 1")],
    ),
];

fn shapes(frames: bool) -> (String, String) {
    let mut text = "method <init> ()V - 1 1
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return\n"
        .to_owned();
    let (mut main, mut expected) = (String::new(), String::new());
    let mut tests = 0;
    for ((descriptor, constructor), calls) in SHAPES {
        text += &format!("{constructor}\n");
        for (pushes, prints) in *calls {
            let pushes = pushes.replace(" iconst", "\n iconst");
            text += &format!(
                "method t{tests} ()V static 4 0
                 s:
                    new T
                    dup
                    {pushes}
                    invokespecial T.<init>:{descriptor}
                    pop
                    return
                 h:
                    pop
                    bipush 99
                    invokestatic T.p:(I)V
                    return
                    try s h h java/lang/RuntimeException
                    frame h [] [java/lang/RuntimeException]\n"
            );
            main += &format!("invokestatic T.t{tests}:()V\n");
            expected += &format!("{}\n", prints.replace(' ', "\n"));
            tests += 1;
        }
    }
    text += &format!("method main ([Ljava/lang/String;)V static 0 1\n{main} return\n");
    if !frames {
        text = text
            .lines()
            .filter(|l| !l.trim().starts_with("frame "))
            .fold(String::new(), |text, line| text + line + "\n");
    }
    (text, expected)
}

#[test]
fn code_before_the_call_of_a_constructor_may_stand_anywhere() {
    let (text, expected) = shapes(true);
    for version in [52, 50] {
        check_odd(version, &text, &expected);
    }
    let (text, expected) = shapes(false);
    for version in [50, 49] {
        check_odd(version, &text, &expected);
    }
}

/// Since Java 25 statements may stand before `super()`.
#[test]
fn statements_before_super() {
    let Some(classes) = compiled::statements_before_super() else { return };
    let Some(java) = java(25) else { return };
    let expected = run(&java, &classes, "Before");
    assert!(expected.ends_with("end\n"), "{expected}");
    for mode in common::MODES {
        let temp = Temp::new(&format!("before-{mode}"));
        for file in common::class_files(&classes) {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            weave_into(&temp.0, &name, &fs::read(&file).expect("readable"), mode);
        }
        assert_eq!(run(&java, &temp.0, "Before"), expected, "{mode}");
    }
}
