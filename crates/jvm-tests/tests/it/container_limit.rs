//! A container that is nearly full is not pushed over its limit by a recording: less is recorded,
//! with true totals, and nobody is killed.

use crate::common::agentpath;
use crate::recording::{Counts, Recorded, begin, end};
use std::fs;
use std::path::{Path, PathBuf};
use tare_jvm_tests::{Control, Scratch, Target, classes, on_each_jdk, skip, wait_until};
use tare_protocol::{EnginePlan, ExactPlan, HeapPlan, Measure, Request, Response, TracePlan};

const OPTIONS: [&str; 3] = ["--count", "--include", "Branches$Paths"];

/// The calls that the program counted are all in the recording, wherever.
#[track_caller]
fn assert_whole(text: &str, counts: &Counts) {
    let calls = text.lines().rev().find_map(|line| line.strip_prefix("calls "));
    let calls: i64 = calls.and_then(|n| n.parse().ok()).expect("a number of calls");
    assert!(calls > 200_000, "{text}");
    assert_eq!(counts.values().sum::<i64>(), calls, "{counts:?}");
}

on_each_jdk! {
    /// 50 MB are left in the container, 256 are asked for, and more than 70 would be needed: less
    /// is recorded, with true totals, and nobody is killed.
    fn a_container_that_is_nearly_full(jdk) {
        let Some(group) = Group::new() else {
            skip("a container's limit of memory", "no control group for memory can be made here");
            return;
        };
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.path.display());
        let mut target = Target::java(jdk)
            .through(&["sh", "-c", &join, "sh"])
            .vm("-Xms64m").vm("-Xmx64m").vm("-XX:+AlwaysPreTouch").vm("-XX:+UseSerialGC")
            .class_path(classes()).main("Branches").arg("6").start();
        // The program has done all of its work once, so that what it needs is there.
        target.tell("go");
        target.wait_for("done");
        group.leave_room(50 << 20);
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let recording = begin(&target.name(), &[&OPTIONS[..], &["--memory", "256M"]].concat(), &file);
        target.tell("go");
        target.wait_for("done");
        end(recording);
        let recorded = Recorded::open(&file);
        let counts = recorded.counts();
        assert_whole(&target.text(), &counts);
        let rest = counts.iter().find(|(name, n)| name.starts_with(".[") && **n > 1000);
        assert!(rest.is_some(), "{counts:?}");
        assert_eq!(group.killed(), 0, "{}", target.text());
        target.tell("go");
        target.wait_for("done");
        target.finish();
        assert_eq!(group.killed(), 0);
    }

    /// A copy of the JVM would have every page twice that the program writes meanwhile: without
    /// room for a quarter of them there is none, and nothing happens.
    fn a_container_without_room_for_a_copy(jdk) {
        let Some(group) = Group::new() else {
            skip("a container's limit of memory", "no control group for memory can be made here");
            return;
        };
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.path.display());
        let mut target = Target::idle(jdk)
            .through(&["sh", "-c", &join, "sh"]).vm("-Xms64m").vm("-XX:+AlwaysPreTouch")
            .vm(agentpath("")).start();
        let mut control = Control::connect(target.pid());
        control.greet();
        group.leave_room(16 << 20);
        let plan = EnginePlan::Heap(HeapPlan::default());
        let Response::Error { message, .. } = control.ask(&Request::Start(plan.clone())) else {
            panic!("it began");
        };
        assert!(message.contains("container") && message.contains("--fallback"), "{message}");
        target.check_works();
        group.leave_room(200 << 20);
        assert_eq!(control.ask(&Request::Start(plan)), Response::Ok);
        drop(control);
        target.check_works();
        assert_eq!(group.killed(), 0);
        target.finish();
    }

    /// The program writes while there is a copy of it, and the container has no room for what is
    /// there twice then: the kernel ends the copy, and nobody else.
    fn a_container_that_runs_full_beside_a_copy(jdk) {
        let Some(group) = Group::new() else {
            skip("a container's limit of memory", "no control group for memory can be made here");
            return;
        };
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.path.display());
        let mut target = Target::idle(jdk)
            .through(&["sh", "-c", &join, "sh"]).vm("-Xms96m").vm("-Xmx96m")
            .vm("-XX:+AlwaysPreTouch").vm("-XX:+UseSerialGC").vm(agentpath("")).start();
        target.tell("write");
        target.wait_for("write: done");
        let mut control = Control::connect(target.pid());
        control.greet();
        group.leave_room(200 << 20);
        let plan = EnginePlan::Heap(HeapPlan::default());
        assert_eq!(control.ask(&Request::Start(plan)), Response::Ok);
        group.leave_room(8 << 20);
        target.tell("write");
        let mut how = None;
        wait_until("the copy has ended", || {
            how = control.status().heap().and_then(|copy| copy.ended.clone());
            how.is_some()
        });
        let how = how.expect("it has");
        assert!(how.contains("signal 9"), "{how}");
        assert_eq!(group.killed(), 1, "{how}");
        drop(control);
        target.check_works();
        target.finish();
        assert_eq!(group.killed(), 1);
    }

    /// There is not even room for the beginning: that is said, and the program goes on.
    fn a_container_that_is_full(jdk) {
        let Some(group) = Group::new() else {
            skip("a container's limit of memory", "no control group for memory can be made here");
            return;
        };
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.path.display());
        let mut target = Target::idle(jdk)
            .through(&["sh", "-c", &join, "sh"]).vm("-Xms64m").vm("-XX:+AlwaysPreTouch")
            .vm(agentpath("")).start();
        let mut control = Control::connect(target.pid());
        control.greet();
        // Less than what is always left to the program.
        group.leave_room(16 << 20);
        let trace = Measure::Trace(TracePlan { ring: 1 << 16, ..TracePlan::default() });
        for measure in [Measure::default(), trace] {
            let plan = ExactPlan { memory: 64 << 20, measure, ..ExactPlan::default() };
            let Response::Error { message, .. } = control.ask(&Request::Start(EnginePlan::Exact(Box::new(plan))))
            else {
                panic!("it began");
            };
            assert!(message.contains("memory"), "{message}");
            target.check_works();
        }
        assert_eq!(group.killed(), 0);
        target.finish();
    }
}

/// A control group of our own, inside the one that we are in.
struct Group {
    path: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Group {
    fn new() -> Option<Group> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |wanted: &dyn Fn(&str) -> bool| {
            text.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                wanted(parts.next()?).then(|| parts.next())?
            })
        };
        let first = path_of(&|controllers| controllers.split(',').any(|name| name == "memory"))
            .and_then(|own| {
                let names = ("memory.limit_in_bytes", "memory.usage_in_bytes");
                Group::below(Path::new("/sys/fs/cgroup/memory"), own, names)
            });
        first.or_else(|| {
            let names = ("memory.max", "memory.current");
            Group::below(Path::new("/sys/fs/cgroup"), path_of(&str::is_empty)?, names)
        })
    }

    /// The new version lets only groups without processes of their own divide their memory, so
    /// those further out are tried as well.
    fn below(
        root: &Path,
        own: &str,
        (limit, usage): (&'static str, &'static str),
    ) -> Option<Group> {
        let own = root.join(own.trim_start_matches('/'));
        let name = Scratch::new().path().file_name()?.to_owned();
        own.ancestors().take_while(|group| group.starts_with(root)).find_map(|parent| {
            let group = Group { path: parent.join(&name), limit, usage };
            fs::create_dir(&group.path).ok()?;
            // Dropped, and so removed, if it cannot be limited.
            group.path.join(limit).exists().then_some(group)
        })
    }

    /// Sets the limit so many bytes above what is used now.
    fn leave_room(&self, bytes: u64) {
        let text = fs::read_to_string(self.path.join(self.usage)).expect("a group's usage");
        let usage: u64 = text.trim().parse().expect("a number");
        fs::write(self.path.join(self.limit), (usage + bytes).to_string()).expect("a limit");
    }

    /// How many processes the kernel has killed in it.
    fn killed(&self) -> u64 {
        let file = if self.limit == "memory.max" { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.path.join(file)).expect("a group's events");
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|n| n.trim().parse().ok()).expect("a number of kills")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            wait_until("the group is empty", || fs::remove_dir(&self.path).is_ok());
        } else {
            let _ = fs::remove_dir(&self.path);
        }
    }
}
