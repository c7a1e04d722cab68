//! Probes at single places: allocations, calls, and regions of source lines.

use crate::support::assemble;
use crate::{check, common, woven};
use tare_weaver::{MethodOutcome, MethodPlan, MethodReport, Options, RegionPlan, Weaver};

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

/// A site has an id for each class: levels of arrays, and copies of another class than declared.
#[test]
fn sites_by_class_have_ids_for_all_that_they_may_make() {
    check(
        "sites",
        "f",
        "method f (I)Ljava/lang/Object; static 3 1
            iload_0
            iload_0
            multianewarray [[I 2
            pop
            iload_0
            anewarray [I
            invokevirtual [[I.clone:()Ljava/lang/Object;
            pop
            iload_0
            anewarray A
            invokevirtual [LA;.clone:()Ljava/lang/Object;
            pop
            iload_0
            invokestatic java/lang/Integer.valueOf:(I)Ljava/lang/Integer;
            areturn",
        "
stack 6 locals 1
0: iload_0
1: iload_0
2: multianewarray \"[[I\" 2
6: dup
7: iconst_0
8: invokestatic R.made:(Ljava/lang/Object;I)V
11: pop
12: iload_0
13: anewarray \"[I\"
16: dup
17: iconst_2
18: invokestatic R.made:(Ljava/lang/Object;I)V
21: invokevirtual \"[[I\".clone:()Ljava/lang/Object;
24: dup
25: ldc_w \"[[I\"
28: iconst_3
29: invokestatic R.copied:(Ljava/lang/Object;Ljava/lang/Class;I)V
32: pop
33: iload_0
34: anewarray A
37: dup
38: iconst_4
39: invokestatic R.made:(Ljava/lang/Object;I)V
42: invokevirtual \"[LA;\".clone:()Ljava/lang/Object;
45: dup
46: ldc_w \"[LA;\"
49: iconst_5
50: invokestatic R.copied:(Ljava/lang/Object;Ljava/lang/Class;I)V
53: pop
54: iload_0
55: invokestatic java/lang/Integer.valueOf:(I)Ljava/lang/Integer;
58: dup
59: bipush 7
61: invokestatic R.made:(Ljava/lang/Object;I)V
64: areturn
",
    );
}

/// A watched object is handed over when its constructor has returned, from the copy that the code
/// has; one without a copy is not.
#[test]
fn objects_are_handed_over_when_they_are_whole() {
    check(
        "watch",
        "f",
        "method f (Z)Ljava/lang/Object; static 5 1
         n:
            new A
            dup
         m:
            new B
            dup
            iload_0
            ifeq a
            nop
         a:
            invokespecial B.<init>:()V
            invokespecial A.<init>:(LB;)V
            new B
            invokespecial B.<init>:()V
            areturn
            frame a [int] [new n, new n, new m, new m]",
        "
stack 7 locals 1
0: new A
3: ldc_w A
6: iconst_0
7: invokestatic R.of:(Ljava/lang/Class;I)V
10: dup
11: new B
14: ldc_w B
17: iconst_1
18: invokestatic R.of:(Ljava/lang/Class;I)V
21: dup
22: iload_0
23: ifeq 27
26: nop
27: invokespecial B.\"<init>\":()V
30: dup
31: iconst_1
32: invokestatic R.whole:(Ljava/lang/Object;I)V
35: invokespecial A.\"<init>\":(LB;)V
38: dup
39: iconst_0
40: invokestatic R.whole:(Ljava/lang/Object;I)V
43: new B
46: ldc_w B
49: iconst_2
50: invokestatic R.of:(Ljava/lang/Class;I)V
53: invokespecial B.\"<init>\":()V
56: areturn
frame 27 [int] [new 0, new 0, new 11, new 11]
",
    );
}

/// How often that cannot be is told, also of code without frames, of which nothing is.
#[test]
fn objects_that_cannot_be_handed_over_are_counted() {
    let unwatched = |class: &str| {
        let code = "method f ()V static 2 0
            new A
            invokespecial A.<init>:()V
            new A
            dup
            invokespecial A.<init>:()V
            pop
            return";
        let probes = common::probes("watch").expect("a known mode");
        let mut weaver = Weaver::new(Options::default());
        let outcome = weaver
            .weave(&assemble(&format!("{class}{code}")), |_| Some(MethodPlan::new(7, &probes)));
        match &outcome.expect("a well-formed class").report().methods[..] {
            [MethodReport { outcome: MethodOutcome::Woven { unwatched, .. }, .. }] => *unwatched,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(unwatched(""), 1);
    assert_eq!(unwatched("class C 49\n"), 2);
}

/// What is made by one instruction is handed over after it: all levels of an array that fit.
#[test]
fn arrays_and_boxes_are_handed_over_at_once() {
    check(
        "watch",
        "f",
        "method f (I)Ljava/lang/Object; static 3 1
            iload_0
            iload_0
            multianewarray [[I 2
            pop
            iload_0
            invokestatic java/lang/Integer.valueOf:(I)Ljava/lang/Integer;
            areturn",
        "
stack 6 locals 1
0: iload_0
1: iload_0
2: multianewarray \"[[I\" 2
6: dup
7: iconst_0
8: invokestatic R.made:(Ljava/lang/Object;I)V
11: dup
12: iconst_0
13: iconst_2
14: invokestatic R.arrays:(Ljava/lang/Object;II)V
17: pop
18: iload_0
19: invokestatic java/lang/Integer.valueOf:(I)Ljava/lang/Integer;
22: dup
23: iconst_2
24: invokestatic R.made:(Ljava/lang/Object;I)V
27: dup
28: iconst_2
29: invokestatic R.made:(Ljava/lang/Object;I)V
32: areturn
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
