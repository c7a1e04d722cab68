//! Constructors: no handler can cover the call of another one.

use crate::{check, woven};

#[test]
fn constructors_have_two_handlers_and_leave_the_call_out() {
    check(
        "entry",
        "<init>",
        "method <init> ()V - 1 1
            aload_0
            invokespecial java/lang/Object.<init>:()V
            invokestatic A.b:()V
            return",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: aload_0
7: invokespecial java/lang/Object.\"<init>\":()V
10: invokestatic A.b:()V
13: lload_1
14: invokestatic R.exit:(J)V
17: return
18: lload_1
19: invokestatic R.exitThrow:(J)V
22: athrow
23: lload_1
24: invokestatic R.exitThrow:(J)V
27: athrow
try 10-13 18 any
try 6-7 23 any
frame 18 [top, long] [java/lang/Throwable]
frame 23 [this, long] [java/lang/Throwable]
",
    );
}

#[test]
fn constructors_may_call_this_on_two_branches() {
    check(
        "entry",
        "<init>",
        "method <init> (I)V - 2 2
            iload_1
            ifeq a
            aload_0
            invokespecial T.<init>:()V
            goto b
         a:
            aload_0
            invokespecial java/lang/Object.<init>:()V
         b:
            return
            frame a [this, int] []
            frame b [T, int] []",
        "
stack 4 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_2
6: iload_1
7: ifeq 17
10: aload_0
11: invokespecial T.\"<init>\":()V
14: goto 21
17: aload_0
18: invokespecial java/lang/Object.\"<init>\":()V
21: lload_2
22: invokestatic R.exit:(J)V
25: return
26: lload_2
27: invokestatic R.exitThrow:(J)V
30: athrow
31: lload_2
32: invokestatic R.exitThrow:(J)V
35: athrow
try 14-17 26 any
try 6-11 31 any
try 17-18 31 any
frame 17 [this, int, long] []
frame 21 [T, int, long] []
frame 26 [top, top, long] [java/lang/Throwable]
frame 31 [this, top, long] [java/lang/Throwable]
",
    );
}

/// Frames are differences: these two say nothing of `this`, which is as at the entry.
#[test]
fn code_before_the_call_may_follow_code_behind_it() {
    check(
        "entry",
        "<init>",
        "method <init> (I)V - 2 2
            iload_1
            ifeq a
            aload_0
            invokespecial T.<init>:()V
            invokestatic A.b:()V
            return
         a:
            aload_0
            iload_1
            ifeq b
            invokespecial java/lang/Object.<init>:()V
            return
         b:
            aconst_null
            athrow
            frame a [this, int] []
            frame b [this, int] [this]",
        "
stack 4 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_2
6: iload_1
7: ifeq 22
10: aload_0
11: invokespecial T.\"<init>\":()V
14: invokestatic A.b:()V
17: lload_2
18: invokestatic R.exit:(J)V
21: return
22: aload_0
23: iload_1
24: ifeq 35
27: invokespecial java/lang/Object.\"<init>\":()V
30: lload_2
31: invokestatic R.exit:(J)V
34: return
35: aconst_null
36: athrow
37: lload_2
38: invokestatic R.exitThrow:(J)V
41: athrow
42: lload_2
43: invokestatic R.exitThrow:(J)V
46: athrow
try 14-17 37 any
try 6-11 42 any
try 22-27 42 any
try 35-37 42 any
frame 22 [this, int, long] []
frame 35 [this, int, long] [this]
frame 37 [top, top, long] [java/lang/Throwable]
frame 42 [this, top, long] [java/lang/Throwable]
",
    );
}

#[test]
fn the_reset_of_a_handler_has_the_types_of_the_handler() {
    check(
        "entry",
        "<init>",
        "method <init> ()V - 1 1
         s:
            invokestatic A.b:()V
         e:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return
         h:
            invokestatic A.c:()V
            athrow
            try s e h any
            frame h [this] [java/lang/Throwable]",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: invokestatic A.b:()V
9: aload_0
10: invokespecial java/lang/Object.\"<init>\":()V
13: lload_1
14: invokestatic R.exit:(J)V
17: return
18: lload_1
19: invokestatic R.caught:(J)V
22: invokestatic A.c:()V
25: athrow
26: lload_1
27: invokestatic R.exitThrow:(J)V
30: athrow
try 18-22 22 any
try 6-9 18 any
try 6-10 26 any
try 18-26 26 any
frame 18 [this, long] [java/lang/Throwable]
frame 22 [this, long] [java/lang/Throwable]
frame 26 [this, long] [java/lang/Throwable]
",
    );
}

#[test]
fn a_copy_stands_for_this_where_local_0_does_not_hold_it() {
    check(
        "entry",
        "<init>",
        "method <init> ()V - 2 1
            aload_0
            invokestatic A.b:()Ljava/lang/Object;
            astore_0
            invokespecial java/lang/Object.<init>:()V
            return",
        "
stack 4 locals 4
0: aload_0
1: astore_3
2: bipush 7
4: invokestatic R.enter:(I)J
7: lstore_1
8: aload_0
9: invokestatic A.b:()Ljava/lang/Object;
12: astore_0
13: invokespecial java/lang/Object.\"<init>\":()V
16: lload_1
17: invokestatic R.exit:(J)V
20: return
21: lload_1
22: invokestatic R.exitThrow:(J)V
25: athrow
try 8-13 21 any
frame 21 [top, long, this] [java/lang/Throwable]
",
    );
}

/// Nothing there can throw between the store and the call, and nobody asks for a handler.
#[test]
fn no_copy_is_made_that_no_handler_needs() {
    check(
        "activation",
        "<init>",
        "method <init> ()V - 2 1
            aload_0
            aconst_null
            astore_0
            invokespecial java/lang/Object.<init>:()V
            return",
        "
stack 3 locals 1
0: iconst_5
1: invokestatic R.tick:(I)V
4: aload_0
5: aconst_null
6: astore_0
7: invokespecial java/lang/Object.\"<init>\":()V
10: return
",
    );
}

/// Old verifiers infer the types of a handler, and ask for no frame.
#[test]
fn old_classes_need_no_copy() {
    check(
        "entry",
        "<init>",
        "class T 49
         method <init> ()V - 2 1
            aload_0
            aconst_null
            astore_0
            invokespecial java/lang/Object.<init>:()V
            return",
        "
stack 4 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: aload_0
7: aconst_null
8: astore_0
9: invokespecial java/lang/Object.\"<init>\":()V
12: lload_1
13: invokestatic R.exit:(J)V
16: return
17: lload_1
18: invokestatic R.exitThrow:(J)V
21: athrow
try 6-9 17 any
",
    );
}

/// Hostile sizes end in a refusal, and neither in hours nor in gigabytes.
#[test]
fn constructors_that_are_too_large_to_look_at_stay() {
    let cases = "a ".repeat(300);
    let wide = format!(
        "method <init> (I)V - 2 65000
            iload_1
            tableswitch 0 {cases} a
         a:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return
            frame a [this, int] []"
    );
    let expected = "refused: the woven code does not pass the check at offset 10: \
                    it is too large to be looked at\n";
    assert_eq!(woven("entry", "<init>", &wide, &[]), expected);
    let old = "class T 49
         method <init> ()V - 1 65000
            repeat 1000 nop
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return";
    assert_eq!(
        woven("entry", "<init>", old, &[]),
        "refused: the types at offset 65 do not work out\n"
    );
}

/// JDK 17 drops the stack maps of classes that it does not verify: types are inferred, and no
/// frames are written.
#[test]
fn constructors_without_the_frames_that_they_would_need() {
    check(
        "entry",
        "<init>",
        "method <init> (I)V - 2 2
            iload_1
            ifeq a
            aload_0
            invokespecial T.<init>:()V
            return
         a:
            aload_0
            invokespecial java/lang/Object.<init>:()V
            return",
        "
stack 4 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_2
6: iload_1
7: ifeq 19
10: aload_0
11: invokespecial T.\"<init>\":()V
14: lload_2
15: invokestatic R.exit:(J)V
18: return
19: aload_0
20: invokespecial java/lang/Object.\"<init>\":()V
23: lload_2
24: invokestatic R.exit:(J)V
27: return
28: lload_2
29: invokestatic R.exitThrow:(J)V
32: athrow
try 6-11 28 any
try 19-20 28 any
",
    );
}
