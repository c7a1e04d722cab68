//! Snapshots that somebody or something ends in their midst: Ctrl-C, the end of the JVM, a stopped
//! copy, limits of the machine. Nothing is left, and the program goes on.

use crate::common::agentpath;
use crate::heap::{shapes, take};
use crate::heap_hostile::{assert_no_copy, copies};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use tare_jvm_tests::{Control, Outcome, Scratch, Tare, Target, can, on_each_jdk, wait_until};
use tare_protocol::heap::wire::Hello;
use tare_protocol::{EnginePlan, HeapPlan, Request, Response};

const FILTERED: &str = env!("CARGO_BIN_EXE_filtered");

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

/// Takes a snapshot, and does something while there is a copy; that is stopped then, so that there
/// is always a midst. What came of it, and the copy; `None` if the snapshot was quicker.
fn in_the_midst(target: &Target, scratch: &Scratch, act: impl Fn(u32)) -> Option<(Outcome, u32)> {
    let path = scratch.join("x.tareheap").display().to_string();
    let tare = Tare::this().var("TMPDIR", scratch.path());
    let mut running = tare.start(&["heap", &target.name(), "--no-index", "-o", &path]);
    let copy = loop {
        match copies(target.pid()).first() {
            Some(copy) => break *copy,
            None if running.has_ended() => {
                running.wait().ok();
                fs::remove_file(&path).expect("a snapshot");
                return None;
            }
            None => {}
        }
    };
    signal(copy, Signal::STOP);
    act(running.pid());
    let outcome = running.wait();
    if outcome.code == 0 {
        fs::remove_file(&path).expect("a snapshot");
        return None;
    }
    Some((outcome, copy))
}

fn is_copy(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "tare-heap"
}

fn heap_plan(limit_s: u32) -> Request {
    Request::Start(EnginePlan::Heap(HeapPlan { redact: false, limit_s }))
}

on_each_jdk! {
    /// Ctrl-C is heard although the copy says nothing.
    fn ctrl_c_in_the_midst_of_a_snapshot(jdk) {
        let mut target = shapes(jdk, "G1").start();
        let scratch = Scratch::new();
        let mut ended = None;
        wait_until("a snapshot is ended in its midst", || {
            ended = in_the_midst(&target, &scratch, |tool| signal(tool, Signal::INT));
            ended.is_some()
        });
        let (outcome, _) = ended.expect("it was");
        outcome.fails(130, &["stopped", "no snapshot"]);
        assert_no_copy(target.pid());
        let left = fs::read_dir(scratch.path()).expect("a directory").count();
        assert_eq!(left, 0, "half a snapshot is left");
        target.check_works();
        let (heap, ..) = take(&target, &[]);
        assert_eq!(heap.of_class("HeapShapes$Leaf").len(), 3000);
        target.finish();
    }

    /// The JVM dies while its heap is read.
    fn a_jvm_that_dies_in_the_midst_of_a_snapshot(jdk) {
        let scratch = Scratch::new();
        let mut ended = None;
        wait_until("a JVM dies in the midst of its snapshot", || {
            let target = shapes(jdk, "G1").start();
            ended = in_the_midst(&target, &scratch, |_| target.signal(Signal::KILL));
            let (code, _) = target.wait();
            assert_eq!(code, 137);
            ended.is_some()
        });
        let (outcome, copy) = ended.expect("it did");
        outcome.fails(1, &["ended while a snapshot of it was taken"]);
        wait_until("the copy has ended with its JVM", || !is_copy(copy));
        assert_eq!(fs::read_dir(scratch.path()).expect("a directory").count(), 0);
    }

    /// A copy that somebody stops hears no alarm, and is ended all the same when its time is over.
    /// It holds none of the program's files, also where the kernel cannot close them at once, and
    /// is the first to go if memory runs out.
    fn a_copy_that_is_stopped(jdk) {
        let mut target = Target::idle(jdk).through(&[FILTERED, "ranges"]).vm(agentpath("")).start();
        let pid = target.pid();
        let mut control = Control::connect(pid);
        control.greet();
        assert_eq!(control.ask(&heap_plan(1)), Response::Ok);
        wait_until("there is a copy", || copies(pid).len() == 1);
        let copy = copies(pid)[0];
        // Then it runs no code of the JVM's, in which it would not be waited for so long.
        control.files[0].read_exact(&mut [0; Hello::BYTES]).expect("a greeting");
        signal(copy, Signal::STOP);
        // Only root sees the files of a process that leaves no core.
        let files = fs::read_dir(format!("/proc/{copy}/fd")).into_iter().flatten().flatten();
        let files: Vec<_> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
        assert!(!files.iter().any(|file| file.is_absolute()), "files of the JVM: {files:?}");
        let sockets = files.iter().filter(|file| file.to_string_lossy().starts_with("socket:"));
        assert!(sockets.count() <= 1 && files.len() <= 3, "a socket, a pipe of its own: {files:?}");
        let score = fs::read_to_string(format!("/proc/{copy}/oom_score_adj")).expect("a score");
        assert_eq!(score.trim(), "1000");
        let mut how = None;
        wait_until("the copy has ended", || {
            how = control.status().heap().and_then(|copy| copy.ended.clone());
            how.is_some()
        });
        let how = how.expect("it has");
        assert!(how.contains("was stopped") && how.contains("time was over"), "{how}");
        wait_until("it is gone", || !is_copy(copy));
        drop(control);
        assert_no_copy(pid);
        target.check_works();
        target.finish();
    }

    /// A filter that forbids copies: that is said, and HotSpot's dump works.
    fn a_filter_that_forbids_copies(jdk) {
        let mut target = shapes(jdk, "G1").through(&[FILTERED, "copies"]).start();
        let scratch = Scratch::new();
        let path = scratch.join("x.hprof").display().to_string();
        let name = target.name();
        let words = ["heap", &name, "-o", &path];
        Tare::this().run(&words).fails(1, &["refuses a copy", "seccomp", "--fallback"]);
        assert!(!scratch.join("x.hprof").exists());
        target.check_works();
        Tare::this().run(&[&words[..], &["--fallback"]].concat()).ok();
        assert!(scratch.join("x.hprof").exists());
        target.check_works();
        target.finish();
    }

    /// A limit of memory that the copy meets and the JVM does not.
    fn a_copy_that_gets_no_memory(jdk) {
        if !can("a limit of memory for a copy", &["prlimit", "--version"]) {
            return;
        }
        let mut target = shapes(jdk, "Serial").vm(agentpath("")).start();
        // The agent keeps room for roots; what the copy needs for its marks is beyond the limit.
        let status = fs::read_to_string(format!("/proc/{}/status", target.pid())).expect("it runs");
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
        let size: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
        let limit = |bytes: &str| {
            let pid = target.name();
            assert!(can("a limit", &["prlimit", "--pid", &pid, &format!("--as={bytes}:")]));
        };
        limit(&((size << 10) + (260 << 20)).to_string());
        let scratch = Scratch::new();
        let path = scratch.join("x.tareheap").display().to_string();
        let outcome = Tare::this().run(&["heap", &target.name(), "-o", &path]);
        outcome.fails(1, &["no memory", "limit"]);
        assert!(!scratch.join("x.tareheap").exists());
        assert_no_copy(target.pid());
        limit("unlimited");
        let (heap, ..) = take(&target, &[]);
        assert_eq!(heap.of_class("HeapShapes$Leaf").len(), 3000);
        target.check_works();
        target.finish();
    }
}
