//! Probes at single places: allocations, calls, and regions of source lines.

use crate::{check, woven};
use tare_weaver::RegionPlan;

#[test]
fn objects_are_reported_at_new_and_arrays_are_passed() {
    check(
        "alloc",
        "f",
        "method f (Z)Ljava/lang/Object; static 3 1
         n:
            new A
            dup
            iload_0
            ifeq a
            nop
         a:
            invokespecial A.<init>:()V
            pop
            iconst_1
            newarray 10
            invokevirtual [I.clone:()Ljava/lang/Object;
            areturn
            frame a [int] [new n, new n]",
        "
stack 5 locals 1
0: new A
3: iconst_0
4: invokestatic R.allocated:(I)V
7: dup
8: iload_0
9: ifeq 13
12: nop
13: invokespecial A.\"<init>\":()V
16: pop
17: iconst_1
18: newarray 10
20: dup
21: iconst_1
22: invokestatic R.array:(Ljava/lang/Object;I)V
25: invokevirtual \"[I\".clone:()Ljava/lang/Object;
28: dup
29: iconst_2
30: invokestatic R.cloned:(Ljava/lang/Object;I)V
33: areturn
frame 13 [int] [new 0, new 0]
",
    );
}

/// Code before a `new` moves it; frames must follow the instruction, not its label.
#[test]
fn uninitialised_types_follow_their_new() {
    check(
        "count",
        "f",
        "method f (Z)V static 3 1
            goto n
         n:
            new A
            dup
            iload_0
            ifeq a
            nop
         a:
            invokespecial A.<init>:()V
            pop
            return
            frame n [int] []
            frame a [int] [new n, new n]",
        "
stack 6 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iconst_0
7: istore_3
8: iinc 3 1
11: goto 14
14: iinc 3 4
17: new A
20: dup
21: iload_0
22: ifeq 29
25: iinc 3 1
28: nop
29: iinc 3 3
32: invokespecial A.\"<init>\":()V
35: pop
36: lload_1
37: iload_3
38: invokestatic R.exitCount:(JI)V
41: return
42: lload_1
43: iload_3
44: invokestatic R.throwCount:(JI)V
47: athrow
try 8-36 42 any
frame 14 [int, long, int] []
frame 29 [int, long, int] [new 17, new 17]
frame 42 [top, long, int] [java/lang/Throwable]
",
    );
}

#[test]
fn a_call_gets_a_handler_of_its_own_inside_of_the_others() {
    check(
        "calls",
        "f",
        "method f (Ljava/lang/Object;)I static 1 2
            iconst_1
            istore_1
         a:
            aload_0
            invokevirtual java/lang/Object.hashCode:()I
         b:
            ireturn
         h:
            pop
            iload_1
            ireturn
            try a b h java/lang/Error
            frame h [java/lang/Object, int] [java/lang/Error]",
        "
stack 3 locals 4
0: iconst_1
1: istore_1
2: aload_0
3: iconst_2
4: invokestatic R.before:(I)J
7: lstore_2
8: invokevirtual java/lang/Object.hashCode:()I
11: lload_2
12: invokestatic R.after:(J)V
15: ireturn
16: pop
17: iload_1
18: ireturn
19: lload_2
20: invokestatic R.afterThrow:(J)V
23: athrow
try 8-11 19 any
try 2-15 16 java/lang/Error
try 19-24 16 java/lang/Error
frame 16 [java/lang/Object, int] [java/lang/Error]
frame 19 [java/lang/Object, int, long] [java/lang/Throwable]
",
    );
}

#[test]
fn regions_start_and_stop_at_the_edges_of_their_lines() {
    let text = woven(
        "region",
        "f",
        "method f (I)V static 1 1
            nop
         a:
            iload_0
            ifle c
         b:
            invokestatic A.b:()V
         c:
            return
            frame c [int] []
            line a 11
            line b 12
            line c 13",
        &[RegionPlan { id: 9, first: 12, last: 12 }],
    );
    let expected = "
stack 4 locals 3
0: lconst_0
1: lstore_1
2: nop
3: iload_0
4: ifle 17
7: lload_1
8: bipush 9
10: invokestatic R.regionStart:(JI)J
13: lstore_1
14: invokestatic A.b:()V
17: lload_1
18: invokestatic R.regionStop:(J)V
21: lconst_0
22: lstore_1
23: lload_1
24: invokestatic R.regionStop:(J)V
27: return
28: lload_1
29: invokestatic R.regionStop:(J)V
32: athrow
try 2-23 28 any
frame 17 [int, long] []
frame 28 [top, long] [java/lang/Throwable]
line 3 11
line 7 12
line 17 13
";
    assert_eq!(text, expected.trim_start());
}
