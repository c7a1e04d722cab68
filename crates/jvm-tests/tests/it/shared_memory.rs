//! A front end that goes wrong with the memory that the agent hands out: it cannot write what the
//! probes run on, nor take pages away, by no descriptor that it can get at; and what it may write,
//! how far it has read, does no harm whatever it is. The program never notices.

use crate::common::agentpath;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use tare_jvm_tests::{Control, Jdk, Seeded, Target, on_each_jdk};
use tare_protocol::{
    EngineName, EnginePlan, ExactPlan, Measure, Request, Response, SamplePlan, TracePlan,
};

/// Memory that front ends write: how far they have read.
const THEIRS: [&str; 2] = ["tare-tails", "tare-position"];

fn start(jdk: &Jdk) -> (Target, Control) {
    let target = Target::idle(jdk).vm(agentpath("")).main("Loaders").start();
    let mut control = Control::connect(target.pid());
    control.greet();
    (target, control)
}

fn plan(measure: Measure) -> ExactPlan {
    let include = ["Loaders$Steady".parse().unwrap()].into();
    ExactPlan { include, memory: 16 << 20, measure, ..ExactPlan::default() }
}

/// The agent's memory as whoever may look into the process can open it, by name.
fn opened(pid: u32) -> Vec<(String, File)> {
    let list = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").filter_map(Result::ok);
    let mut found = Vec::new();
    for entry in list {
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        if let Some(name) = link.to_string_lossy().strip_prefix("/memfd:") {
            let name = name.trim_end_matches(" (deleted)").to_owned();
            let file = File::options().read(true).write(true).open(entry.path());
            found.push((name, file.expect("our own user's file")));
        }
    }
    found.retain(|(name, _)| name.starts_with("tare-"));
    assert!(!found.is_empty(), "there is no memory of ours");
    found
}

/// Neither shorter nor, but for names, longer; and, but for what is theirs, not to be written.
#[track_caller]
fn assert_fixed(name: &str, file: &File) {
    let length = file.metadata().unwrap().len();
    assert!(length > 0, "{name}");
    assert!(file.set_len(0).is_err(), "{name} can be emptied");
    assert!(file.set_len(length - 1).is_err(), "{name} can be cut");
    if name != "tare-names" {
        assert!(file.set_len(2 * length).is_err(), "{name} can grow");
        let written = file.write_at(&[0xff; 64], 64);
        assert_eq!(written.is_ok(), THEIRS.contains(&name), "{name} can be written: {written:?}");
    }
    assert_eq!(file.metadata().unwrap().len(), length);
}

/// What a front end was given: descriptors that read, and where it is to drain, one that writes.
#[track_caller]
fn assert_given(control: &mut Control, readable: usize, writable: usize) -> Option<File> {
    let mut files = std::mem::take(&mut control.files);
    assert_eq!(files.len(), readable + writable);
    let theirs = files.split_off(readable);
    for file in &files {
        assert!(file.read_at(&mut [0; 8], 0).is_ok());
        assert!(file.write_at(&[0xff; 8], 64).is_err(), "a front end can write");
        assert!(file.set_len(0).is_err(), "a front end can truncate");
    }
    theirs.into_iter().next()
}

/// Says anything about how far it has read, again and again, while the program runs.
fn scribble(position: &File, rounds: u64) {
    let length = position.metadata().unwrap().len();
    assert!(position.set_len(0).is_err() && position.set_len(2 * length).is_err());
    let mut seeded = Seeded::new(7);
    for round in 0..rounds {
        let mut page = [0; 4096];
        for word in page.as_chunks_mut::<8>().0 {
            let (high, low) = (seeded.below(1 << 32), seeded.below(1 << 32));
            // Anything, and what is nearly right.
            let said = if round % 2 == 0 { high << 32 | low } else { low & 0xf_ffff };
            *word = said.to_le_bytes();
        }
        for at in (0..length).step_by(page.len()) {
            position.write_all_at(&page, at).expect("it is for us to write");
        }
    }
}

on_each_jdk! {
    fn nobody_else_changes_it(jdk) {
        let (mut target, mut control) = start(jdk);
        target.ask("busy 2");
        let trace = Measure::Trace(TracePlan { ring: 1 << 16, ..TracePlan::default() });
        for (measure, tails) in [(Measure::default(), 0), (trace, 1)] {
            let plan = plan(measure);
            assert_eq!(control.ask(&Request::Start(EnginePlan::Exact(Box::new(plan)))), Response::Ok);
            let tails = assert_given(&mut control, 2, tails);
            for (name, file) in opened(target.pid()) {
                assert_fixed(&name, &file);
            }
            // Somebody else who looks on drains nothing, and gets nothing to write.
            let mut other = Control::connect(target.pid());
            other.greet();
            assert_eq!(other.ask(&Request::Open(EngineName::Exact)), Response::Ok);
            assert_given(&mut other, 2, 0);
            if let Some(tails) = tails {
                scribble(&tails, 300);
            }
            target.check_works();
            assert_eq!(control.ask(&Request::Stop(EngineName::Exact)), Response::Ok);
            target.check_works();
        }
        let plan = SamplePlan { interval_ns: 1_000_000, ..SamplePlan::default() };
        assert_eq!(control.ask(&Request::Start(EnginePlan::Sampling(Box::new(plan)))), Response::Ok);
        let position = assert_given(&mut control, 1, 1).expect("a position to write");
        for (name, file) in opened(target.pid()) {
            assert_fixed(&name, &file);
        }
        scribble(&position, 300);
        assert!(control.status().sampling().is_some());
        assert_eq!(control.ask(&Request::Stop(EngineName::Sampling)), Response::Ok);
        assert_eq!(control.status().panics, 0);
        target.check_works();
        target.finish();
    }
}
