//! Classes that come and go with their loaders while an exact recording is on: what the agent knows
//! of them goes with them, and names of methods stay within what the recording may use.

use crate::common::agentpath;
use crate::recording::{Recorded, begin, end};
use std::fs;
use tare_jvm_tests::{Control, Jdk, Scratch, Target, on_each_jdk, wait_until};
use tare_protocol::{EngineName, EnginePlan, ExactPlan, Request, Response};

/// Methods of the class that comes and goes.
const METHODS: u64 = 12;

/// What stays loaded: some methods of the program, and a plugin or two that nobody has collected
/// yet.
const FEW: u64 = 10 * METHODS;

const LOADS: u64 = 500;

fn start(jdk: &Jdk) -> Target {
    Target::idle(jdk).vm(agentpath("")).main("Loaders").start()
}

fn plan() -> ExactPlan {
    let include = ["Loaders$Plugin", "Loaders$Steady"];
    ExactPlan {
        include: include.iter().map(|name| name.parse().unwrap()).collect(),
        memory: 64 << 20,
        ..ExactPlan::default()
    }
}

/// The resident memory of a process, in kilobytes; for the eye only.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// The program loads and collects; the agent is asked until it has noticed.
fn forgotten(target: &mut Target, control: &mut Control, when: &str) -> (u64, u64) {
    let mut kept = (0, 0);
    wait_until(&format!("methods of loaders that are gone are forgotten {when}"), || {
        target.ask("gc");
        let status = control.status();
        kept = (status.methods_kept, status.methods_kept_bytes);
        kept.0 <= FEW
    });
    kept
}

on_each_jdk! {
    fn what_is_known_of_classes_goes_with_their_loaders(jdk) {
        let mut target = start(jdk);
        let mut control = Control::connect(target.pid());
        control.greet();
        let before = resident(target.pid());
        let mut after_sessions = Vec::new();
        for session in 1..=3 {
            assert_eq!(control.ask(&Request::Start(EnginePlan::Exact(Box::new(plan())))), Response::Ok);
            control.files.clear();
            target.ask(&format!("load {LOADS}"));
            target.ask("work");
            let status = control.status().exact().cloned().expect("it is on");
            assert!(status.methods >= LOADS * (METHODS - 1), "{status:?}");
            assert!(status.names > LOADS * METHODS * 30, "{status:?}");
            assert!(status.names + status.used <= status.budget, "{status:?}");
            // What is collected only after the second session is forgotten then.
            if session != 2 {
                let (kept, bytes) = forgotten(&mut target, &mut control, "during a session");
                assert!(bytes < 64 * 1024, "{bytes} bytes for {kept} methods");
            }
            assert_eq!(control.ask(&Request::Stop(EngineName::Exact)), Response::Ok);
            assert!(control.status().exact().is_none());
            after_sessions.push(forgotten(&mut target, &mut control, "after a session").0);
            println!("session {session}: {before} kB before, {} kB now", resident(target.pid()));
        }
        // The program's own class keeps its ids: there is nothing new in the third session. A
        // plugin may or may not be collected by then.
        let (first, last) = (after_sessions[0], after_sessions[2]);
        assert!(last <= first + 2 * METHODS, "{after_sessions:?}");
        assert_eq!(control.status().panics, 0);
        target.check_works();
        target.finish();
    }

    /// So many loaders that their names do not fit: what is woven has names, what has no room for
    /// its name is not woven, with the reason; the program goes on, and what was woven is counted.
    fn names_are_part_of_the_memory(jdk) {
        let mut target = start(jdk);
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let options = ["--count", "--include", "Loaders$Plugin", "--memory", "8M"];
        let recording = begin(&target.name(), &options, &file);
        target.ask("load 6000");
        let mut control = Control::connect(target.pid());
        control.greet();
        let status = control.status().exact().cloned().expect("it is on");
        assert_eq!(status.budget, 8 << 20);
        assert!(status.names <= status.budget / 2, "{status:?}");
        assert!(status.names + status.used <= status.budget, "{status:?}");
        end(recording);
        let recorded = Recorded::open(&file);
        let losses = recorded.losses();
        let named = losses.iter().find(|loss| loss.contains("names of methods have used up"));
        let refused = named.and_then(|loss| loss.strip_prefix("refused ")?.split_once(' '));
        let refused: i64 = refused.and_then(|(n, _)| n.parse().ok()).expect("a number");
        // Every method of a plugin is called once, and is woven with a name or refused.
        let counts = recorded.counts();
        assert!(counts.keys().all(|name| name.starts_with("Loaders$Plugin.")), "{counts:?}");
        let called: i64 = counts.values().sum();
        assert!(called > 1000 && refused > 1000, "{called} called, {refused} refused");
        assert_eq!(called + refused, 6000 * METHODS as i64);
        target.check_works();
        target.finish();
    }
}
