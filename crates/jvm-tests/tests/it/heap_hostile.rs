//! Snapshots that are disturbed, refused, or taken of a program that changes all the time: the JVM
//! is never hurt, and no copy of it is left.

use crate::common::agentpath;
use crate::heap::{COLLECTORS, shapes, take};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use tare_jvm_tests::{
    Control, HeapFile, Scratch, Tare, Target, can, descendants, on_each_jdk, wait_until,
};
use tare_protocol::{EngineName, EnginePlan, HeapPlan, Request, Response};

/// Copies of a JVM, also those that ended and were not waited for.
pub fn copies(pid: u32) -> Vec<u32> {
    let is_copy = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "tare-heap"
    };
    descendants(pid).into_iter().filter(is_copy).collect()
}

#[track_caller]
pub fn assert_no_copy(pid: u32) {
    wait_until("no copy is left", || copies(pid).is_empty());
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}

/// What one thread does in this order is seen in this order.
fn check_pair(heap: &HeapFile) -> i64 {
    let pair = heap.static_reference("HeapShapes", "PAIR").expect("the pair");
    let side = |name: &str| pair.reference(name).expect("a counter").long("value");
    let (left, right) = (side("left"), side("right"));
    assert!(left == right || left == right + 1, "{left} and {right}");
    let chain = pair.reference("chain").expect("a chain");
    let items = chain.reference("items").expect("a list");
    assert_eq!(items.int("size"), chain.int("length"), "a list that was never so");
    let elements = items.reference("elementData").expect("its elements").items();
    for (number, item) in (1000..).zip(&elements[..items.int("size") as usize]) {
        assert_eq!(heap.object(*item).expect("a number").int("value"), number);
    }
    left
}

on_each_jdk! {
    /// Each snapshot is of one moment, while the program writes and the collector works.
    fn a_program_that_changes_gives_no_mixed_state(jdk) {
        for collector in COLLECTORS {
            let mut target = shapes(jdk, collector).start();
            target.ask("mutate");
            let mut last = 0;
            for _ in 0..5 {
                let (heap, ..) = take(&target, &[]);
                let now = check_pair(&heap);
                assert!(now >= last, "{collector}: it went back");
                last = now;
                heap.check_references();
                assert_eq!(heap.of_class("HeapShapes$Leaf").len(), 3000);
            }
            assert!(last > 0);
            assert_no_copy(target.pid());
            let before = target.ask("count");
            wait_until("it still counts", || target.ask("count") != before);
            target.check_works();
            target.finish();
        }
    }

    /// Whoever kills the copy gets no snapshot, or the next one; the JVM does not notice.
    fn copies_that_are_killed(jdk) {
        let mut target = shapes(jdk, "G1").start();
        let scratch = Scratch::new();
        let path = scratch.join("x.tareheap");
        let name = target.name();
        let words = ["heap", &name, "-o", path.to_str().expect("a path")];
        let mut killed = 0;
        wait_until("a command fails because its copies are killed", || {
            let _ = fs::remove_file(&path);
            let mut running = Tare::this().start(&words);
            while !running.has_ended() {
                for copy in copies(target.pid()) {
                    kill(copy);
                    killed += 1;
                }
            }
            let outcome = running.wait();
            if outcome.code == 0 {
                // It was quicker than we.
                HeapFile::open(&path);
                return false;
            }
            outcome.fails(1, &["copy of the JVM", "signal 9"]);
            assert!(!path.exists(), "half a snapshot is left");
            true
        });
        assert!(killed >= 3, "it is tried three times");
        assert_no_copy(target.pid());
        target.check_works();
        let (heap, ..) = take(&target, &[]);
        assert_eq!(heap.of_class("HeapShapes$Leaf").len(), 3000);
        target.finish();
    }

    /// A tool that is killed takes its copy along; so does a connection that ends, and a copy does
    /// not outlive its time or its JVM.
    fn nobody_is_left_alone(jdk) {
        let mut target = Target::idle(jdk).vm(agentpath("")).start();
        let pid = target.pid();
        let begin = |limit_s: u32| {
            let mut control = Control::connect(pid);
            control.greet();
            let plan = EnginePlan::Heap(HeapPlan { redact: false, limit_s });
            assert_eq!(control.ask(&Request::Start(plan)), Response::Ok);
            assert_eq!(control.files.len(), 1, "a socket came with it");
            control
        };
        // The socket stays open in both hands; the connection alone ends.
        let mut control = begin(300);
        let copy = || {
            // It names itself, a moment after it was made.
            wait_until("there is a copy", || copies(pid).len() == 1);
            copies(pid)[0]
        };
        copy();
        let socket = control.files.pop();
        drop(control);
        assert_no_copy(pid);
        drop(socket);
        // The socket ends, and the connection stays.
        let mut control = begin(300);
        control.files.clear();
        wait_until("the copy has ended", || {
            control.status().heap().is_some_and(|copy| copy.ended.is_some())
        });
        assert_no_copy(pid);
        assert_eq!(control.ask(&Request::Stop(EngineName::Heap)), Response::Ok);
        drop(control);
        // Its time is over.
        let mut control = begin(1);
        let mut how = None;
        wait_until("the copy has ended", || {
            how = control.status().heap().and_then(|copy| copy.ended.clone());
            how.is_some()
        });
        assert_eq!(how.as_deref(), Some("ended because its time was over"));
        // One at a time: a second front end is told so.
        let mut second = Control::connect(pid);
        second.greet();
        let plan = EnginePlan::Heap(HeapPlan::default());
        let Response::Error { message, .. } = second.ask(&Request::Start(plan)) else {
            panic!("two at once");
        };
        assert!(message.contains("another front end"), "{message}");
        drop((control, second));
        target.check_works();
        // The JVM ends first.
        let control = begin(300);
        let copy = copy();
        target.signal(Signal::KILL);
        let (code, _) = target.wait();
        assert_eq!(code, 137);
        wait_until("the copy has ended with its JVM", || {
            !tare_jvm_tests::exists(copy)
                || fs::read_to_string(format!("/proc/{}/comm", copy))
                    .map_or(true, |name| name.trim() != "tare-heap")
        });
        drop(control);
    }

    /// A heap that a copy would share is refused, with the way that is left.
    fn a_shared_heap_is_refused(jdk) {
        let mut target = Target::java(jdk).vm("-Xmx256m").vm("-XX:+UseZGC").main("HeapShapes").start();
        let scratch = Scratch::new();
        let path = scratch.join("x.tareheap");
        let name = target.name();
        let words = ["heap", &name, "-o", path.to_str().expect("a path")];
        Tare::this().run(&words).fails(1, &["ZGC", "--fallback", "stops the program"]);
        assert!(!path.exists());
        assert_no_copy(target.pid());
        target.check_works();
        target.finish();
    }

    /// The first process of a container has to wait for its children itself.
    fn a_jvm_that_is_the_first_process(jdk) {
        let words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        if !can("a heap snapshot of pid 1", &[&words[..], &["true"]].concat()) {
            return;
        }
        // With the agent from the start: several such JVMs have one attach socket among them here.
        let target = shapes(jdk, "G1").vm(agentpath(""));
        let mut target = target.through(&words).start();
        for _ in 0..3 {
            let (heap, ..) = take(&target, &[]);
            assert_eq!(heap.of_class("HeapShapes$Leaf").len(), 3000);
        }
        assert_no_copy(target.pid());
        target.check_works();
        target.finish();
    }
}
