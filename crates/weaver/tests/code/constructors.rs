//! Constructors: no handler can cover the call of another one.

use crate::check;

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

#[test]
fn a_constructor_that_loses_this_is_refused() {
    check(
        "entry",
        "<init>",
        "method <init> ()V - 2 1
            aload_0
            aconst_null
            astore_0
            invokespecial java/lang/Object.<init>:()V
            return",
        "
refused: local 0 is overwritten before this is initialised
",
    );
}
