//! Counts of bytecodes: blocks, loops, and the ways between two checks.

use crate::check;

#[test]
fn counts_per_block_and_flushes_at_loop_heads() {
    check(
        "count",
        "f",
        "method f (I)I static 2 2
            iconst_0
            istore_1
         a:
            iload_0
            ifle b
            iload_1
            iload_0
            invokestatic A.b:(I)I
            iadd
            istore_1
            iinc 0 -1
            goto a
         b:
            iload_1
            ireturn
            frame a [int, int] []
            frame b [int, int] []",
        "
stack 5 locals 5
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_2
6: iconst_0
7: istore 4
9: iinc 4 2
12: iconst_0
13: istore_1
14: iinc 4 2
17: iload 4
19: sipush 16384
22: if_icmplt 34
25: lload_2
26: iload 4
28: invokestatic R.flush:(JI)V
31: iconst_0
32: istore 4
34: iload_0
35: ifle 54
38: iinc 4 7
41: iload_1
42: iload_0
43: invokestatic A.b:(I)I
46: iadd
47: istore_1
48: iinc 0 -1
51: goto 14
54: iinc 4 2
57: iload_1
58: lload_2
59: iload 4
61: invokestatic R.exitCount:(JI)V
64: ireturn
65: lload_2
66: iload 4
68: invokestatic R.throwCount:(JI)V
71: athrow
try 9-58 65 any
frame 14 [int, int, long, int] []
frame 34 [int, int, long, int] []
frame 54 [int, int, long, int] []
frame 65 [top, top, long, int] [java/lang/Throwable]
",
    );
}

#[test]
fn the_precise_analysis_ends_a_block_at_what_throws() {
    check(
        "precise",
        "f",
        "method f ([I)I static 2 1
            aload_0
            iconst_0
            iaload
            ldc 5
            iadd
            ireturn",
        "
stack 5 locals 4
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: iconst_0
7: istore_3
8: iinc 3 3
11: aload_0
12: iconst_0
13: iaload
14: iinc 3 3
17: ldc 5
19: iadd
20: lload_1
21: iload_3
22: invokestatic R.flush:(JI)V
25: lload_1
26: invokestatic R.exit:(J)V
29: ireturn
30: lload_1
31: iload_3
32: invokestatic R.flush:(JI)V
35: lload_1
36: invokestatic R.exitThrow:(J)V
39: athrow
try 8-20 30 any
frame 30 [top, long, int] [java/lang/Throwable]
",
    );
}

#[test]
fn activation_takes_the_longest_way_to_the_next_check() {
    check(
        "longest",
        "f",
        "method f (I)V static 1 1
            nop
            nop
         a:
            iload_0
            ifle b
            nop
            iinc 0 -1
            goto a
         b:
            return
            frame a [int] []
            frame b [int] []",
        "
stack 2 locals 1
0: iconst_2
1: invokestatic R.tick:(I)V
4: nop
5: nop
6: iconst_5
7: invokestatic R.tick:(I)V
10: iload_0
11: ifle 21
14: nop
15: iinc 0 -1
18: goto 6
21: return
frame 6 [int] []
frame 21 [int] []
",
    );
}
