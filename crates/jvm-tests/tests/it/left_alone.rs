//! The agent is left alone in a JVM: it came by attach, its front end has gone, by itself or by
//! `kill -9`, and nobody sends it away. After a time it leaves as a detach has it leave.

use crate::common::{agentpath, assert_no_trace};
use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use tare_jvm_tests::{
    Control, Seeded, Tare, Target, control_dirs, control_socket, on_each_jdk, thread_names,
    wait_until,
};

/// A front end whose agent does not stay long.
fn brief() -> Tare {
    Tare::this().var("TARE_GRACE", "2s")
}

fn is_in(pid: u32) -> bool {
    thread_names(pid).iter().any(|name| name == "tare-control")
}

on_each_jdk! {
    fn the_front_end_is_killed(jdk) {
        let mut target = Target::idle(jdk).vm("-Xcheck:jni").start();
        let (pid, name) = (target.pid(), target.name());
        let mut watching = brief().start(&["status", &name, "--watch", "--interval", "10ms"]);
        control_socket(pid);
        // As long as somebody is connected it stays, whether he says something or not.
        let mut silent = Control::connect(pid);
        watching.kill();
        sleep(Duration::from_secs(4));
        assert!(is_in(pid), "it has left a front end behind");
        silent.greet();
        assert_eq!(silent.status().engine_names(), [""; 0]);
        drop(silent);
        assert_no_trace(pid);
        target.check_works();
        // It comes again, and goes again.
        assert_eq!(brief().status(&name)["loaded_by"], "attach");
        assert!(is_in(pid), "a command takes no longer than it stays");
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }

    /// Commands that come at the very moment when it leaves find it or bring it anew.
    fn commands_while_it_leaves(jdk) {
        let mut target = Target::idle(jdk).start();
        let name = target.name();
        let mut seeded = Seeded::new(u64::from(jdk.major));
        let hasty = Tare::this().var("TARE_GRACE", "1s");
        for _ in 0..12 {
            let status = hasty.status(&name);
            assert_eq!((&status["loaded_by"], &status["panics"]), (&"attach".into(), &0.into()));
            sleep(Duration::from_millis(980 + seeded.below(40)));
        }
        assert_no_trace(target.pid());
        target.check_works();
        target.finish();
    }

    /// Whoever starts a program with the agent inside wants it there.
    fn launched_agents_stay(jdk) {
        let mut target = Target::idle(jdk).vm(agentpath("grace=1")).start();
        control_socket(target.pid());
        sleep(Duration::from_secs(3));
        assert_eq!(Tare::this().status(&target.name())["loaded_by"], "launch");
        target.check_works();
        target.finish();
    }

    /// A JVM that was killed leaves a directory, which the next command clears away, whichever JVM
    /// that is about.
    fn a_jvm_is_killed(jdk) {
        let tmp = Path::new("/tmp");
        let killed = Target::idle(jdk).start();
        let dead = killed.pid();
        Tare::this().status(&killed.name());
        killed.signal(rustix::process::Signal::KILL);
        wait_until("it has ended", || !killed.is_alive() || !is_in(dead));
        let left = control_dirs(tmp, dead);
        assert_eq!(left.len(), 1, "{left:?}");
        let alive = Target::idle(jdk).start();
        let others = Target::idle(jdk).vm(agentpath("")).start();
        control_socket(others.pid());
        // Young ones may belong to an agent that is about to listen.
        Tare::this().status(&alive.name());
        assert!(left[0].exists(), "too young to be judged");
        let old = SystemTime::now() - Duration::from_secs(600);
        for dir in left.iter().chain(&control_dirs(tmp, others.pid())) {
            File::open(dir).and_then(|dir| dir.set_modified(old)).expect("our own directory");
        }
        Tare::this().run(&["detach", &alive.name()]).ok();
        Tare::this().status(&alive.name());
        assert!(!left[0].exists(), "a dead JVM's directory is still there");
        assert_eq!(control_dirs(tmp, others.pid()).len(), 1, "that of a living one is gone");
        assert_eq!(Tare::this().status(&others.name())["loaded_by"], "launch");
        others.finish();
        alive.finish();
    }
}

#[test]
fn a_time_that_is_none_is_named() {
    let target = Target::idle(tare_jvm_tests::jdk()).start();
    let outcome = Tare::this().var("TARE_GRACE", "soon").run(&["status", &target.name()]);
    outcome.fails(1, &["TARE_GRACE=soon"]);
    target.finish();
}
