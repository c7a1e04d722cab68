//! Exception handlers and monitors.

use crate::{check, woven};

/// javac lets the handler of a `finally` cover its own first store. No exception comes from there,
/// so that it is no loop and needs no look at the count; one that covers a call is.
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
try 14-18 18 java/lang/Error
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

/// A reset that overflows the stack goes on with a handler that catches such errors, whatever its
/// tables call them; one of other exceptions is left.
#[test]
fn a_reset_that_overflows_the_stack_leads_to_who_catches_that() {
    let rows = |kind: &str| {
        let text = "method f ()V static 1 1
             a:
                invokestatic A.b:()V
                return
             h:
                astore_0
                invokestatic A.c:()V
                return
                try a h h KIND
                frame h [] [TYPE]";
        let name = if kind == "any" { "java/lang/Throwable" } else { kind };
        let text = woven("entry", "f", &text.replace("KIND", kind).replace("TYPE", name), &[]);
        text.lines().filter(|line| line.starts_with("try 14-18 18 ")).count()
    };
    for kind in ["any", "java/lang/Throwable", "java/lang/Error"] {
        assert_eq!(rows(kind), 1, "{kind}");
    }
    for kind in ["java/lang/VirtualMachineError", "java/lang/StackOverflowError"] {
        assert_eq!(rows(kind), 1, "{kind}");
    }
    for kind in ["java/lang/Exception", "java/lang/OutOfMemoryError"] {
        assert_eq!(rows(kind), 0, "{kind}");
    }
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
try 18-22 22 any
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
