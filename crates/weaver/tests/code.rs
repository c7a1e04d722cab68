//! What woven code looks like, for each shape of method that needs care.

#[path = "../examples/common/mod.rs"]
mod common;
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

/// javac lets the handler of a `finally` cover its own first store. No exception comes from there, so
/// that it is no loop and needs no look at the count; one that covers a call is.
#[test]
fn a_handler_that_covers_its_own_store_is_no_loop() {
    let handler_to = |end: &str| {
        let text = "method f ()V static 1 1
             a:
                invokestatic A.b:()V
                return
             h:
                astore_0
             i:
                invokestatic A.c:()V
             j:
                aload_0
                athrow
                try a h h any
                try h END h any
                frame h [] [java/lang/Throwable]";
        woven("count", "f", &text.replace("END", end), &[])
    };
    let branches = |text: &str| text.lines().filter(|line| line.contains(" if")).count();
    let (store, call) = (handler_to("i"), handler_to("j"));
    assert_eq!(branches(&store), 0, "{store}");
    assert_eq!(branches(&call), 1, "{call}");
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

#[test]
fn handlers_reset_before_their_label_and_do_not_protect_the_reset() {
    check(
        "entry",
        "f",
        "method f ()V static 1 1
         a:
            invokestatic A.b:()V
            return
         h:
            astore_0
            invokestatic A.c:()V
         e:
            return
            try a e h java/lang/Error
            frame h [] [java/lang/Error]
            line a 1
            line h 2
            var h end x Ljava/lang/Error; 0",
        "
stack 3 locals 3
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_1
6: invokestatic A.b:()V
9: lload_1
10: invokestatic R.exit:(J)V
13: return
14: lload_1
15: invokestatic R.caught:(J)V
18: astore_0
19: invokestatic A.c:()V
22: lload_1
23: invokestatic R.exit:(J)V
26: return
27: lload_1
28: invokestatic R.exitThrow:(J)V
31: athrow
try 6-14 14 java/lang/Error
try 18-22 14 java/lang/Error
try 6-9 27 any
try 14-22 27 any
frame 14 [top, long] [java/lang/Error]
frame 18 [top, long] [java/lang/Error]
frame 27 [top, long] [java/lang/Throwable]
line 0 1
line 14 2
var 18-27 0
",
    );
}

/// The handler of a `synchronized` block releases the lock, protects itself and must stay free of
/// calls; what is inserted inside the block stays inside of its range.
#[test]
fn monitors_stay_paired() {
    check(
        "stack",
        "f",
        "method f (Ljava/lang/Object;)V static 1 2
            aload_0
            monitorenter
         s:
            invokestatic A.b:()V
            aload_0
            monitorexit
         e:
            return
         h:
            astore_1
            aload_0
            monitorexit
         g:
            aload_1
            athrow
            try s e h any
            try h g h any
            frame h [java/lang/Object] [java/lang/Throwable]",
        "
stack 2 locals 3
0: bipush 7
2: invokestatic R.push:(I)I
5: istore_2
6: bipush 6
8: invokestatic R.tick:(I)V
11: aload_0
12: monitorenter
13: invokestatic A.b:()V
16: aload_0
17: monitorexit
18: iload_2
19: invokestatic R.pop:(I)V
22: return
23: astore_1
24: aload_0
25: monitorexit
26: aload_1
27: iconst_5
28: invokestatic R.tick:(I)V
31: athrow
32: iload_2
33: invokestatic R.pop:(I)V
36: athrow
try 13-18 23 any
try 23-26 23 any
try 6-18 32 any
try 23-32 32 any
frame 23 [java/lang/Object, top, int] [java/lang/Throwable]
frame 32 [top, top, int] [java/lang/Throwable]
",
    );
}

/// A handler inside of a locked block: its first code must be covered by the handler that unlocks,
/// or HotSpot sees an exception leave with the lock held and never compiles the method.
#[test]
fn the_reset_of_a_handler_is_covered_by_what_covers_the_handler() {
    check(
        "entry",
        "f",
        "method f (Ljava/lang/Object;)V static 1 3
            aload_0
            monitorenter
         s:
            invokestatic A.b:()V
         t:
            aload_0
            monitorexit
         e:
            return
         i:
            astore_2
            invokestatic A.c:()V
            aload_2
            athrow
         h:
            astore_1
            aload_0
            monitorexit
         g:
            aload_1
            athrow
            try s t i any
            try s e h any
            try i g h any
            frame i [java/lang/Object] [java/lang/Throwable]
            frame h [java/lang/Object] [java/lang/Throwable]",
        "
stack 3 locals 5
0: bipush 7
2: invokestatic R.enter:(I)J
5: lstore_3
6: aload_0
7: monitorenter
8: invokestatic A.b:()V
11: aload_0
12: monitorexit
13: lload_3
14: invokestatic R.exit:(J)V
17: return
18: lload_3
19: invokestatic R.caught:(J)V
22: astore_2
23: invokestatic A.c:()V
26: aload_2
27: athrow
28: astore_1
29: aload_0
30: monitorexit
31: aload_1
32: athrow
33: lload_3
34: invokestatic R.exitThrow:(J)V
37: athrow
try 8-11 18 any
try 8-13 28 any
try 18-31 28 any
try 6-13 33 any
try 18-33 33 any
frame 18 [java/lang/Object, top, top, long] [java/lang/Throwable]
frame 22 [java/lang/Object, top, top, long] [java/lang/Throwable]
frame 28 [java/lang/Object, top, top, long] [java/lang/Throwable]
frame 33 [top, top, top, long] [java/lang/Throwable]
",
    );
}

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
