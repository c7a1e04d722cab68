//! One warm JVM, and windows in it: plain, ours, async-profiler's, at each interval.

use crate::config::Every;
use crate::launch::Bench;
use crate::overlap::{self, Leaves};
use crate::program::Amount;
use crate::recorder::Recorder;
use crate::warm::{Cost, Warm};
use crate::workloads::Workload;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// Who samples in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Ours(Every),
    Async(Every),
}

/// One of each in a round.
const KINDS: [Kind; 7] = [
    Kind::Plain,
    Kind::Ours(Every::Ms10),
    Kind::Async(Every::Ms10),
    Kind::Ours(Every::Ms1),
    Kind::Async(Every::Ms1),
    Kind::Ours(Every::Us100),
    Kind::Async(Every::Us100),
];

/// The interval whose profiles are compared: others have too few samples for the many methods of a
/// real program.
pub const COMPARED: Every = Every::Us100;

/// Windows whose profiles are compared are longer by this factor.
const LONGER: f64 = 2.5;

/// What is told of the resources of a process while a profiler is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    pub descriptors: u64,
    pub timers: u64,
}

/// All windows of one kind, a round each.
pub struct Windows {
    pub kind: Kind,
    pub costs: Vec<Cost>,
    /// For each window, the part of the processor time that samples stand for.
    pub told: Vec<f64>,
    pub held: Held,
    /// Collapsed stacks of each window, of those that are compared.
    profiles: Vec<String>,
}

pub struct Measured {
    pub rounds: usize,
    pub windows: Vec<Windows>,
    pub agreement: Agreement,
    /// What the last of our recordings says of itself.
    pub said: String,
}

/// How far profiles agree, and with how many samples.
pub struct Agreement {
    /// Halves of the windows with the other's halves, and with each other.
    pub both: f64,
    pub ours: f64,
    pub theirs: f64,
    /// All windows of the one with all of the other.
    pub whole: f64,
    /// Samples of each half, ours and theirs.
    pub samples: [[u64; 2]; 2],
    /// Which methods are most apart: name, ours, theirs.
    pub apart: Vec<(String, f64, f64)>,
    /// With the exact profile of the same JVM, by the innermost woven method.
    pub exact: Option<Exact>,
}

/// How far samples agree with exact times of the same run, by the innermost woven method.
pub struct Exact {
    /// What was woven.
    pub what: String,
    pub overlap: f64,
    pub apart: Vec<(String, f64, f64)>,
}

/// What is woven to compare samples with: methods that take longer than a probe. Those that do not
/// take another share of the woven program than of the plain one, whoever measures it.
const WOVEN: [(&str, &[&str]); 4] = [
    ("javac", &["com.sun.tools.javac.main.**"]),
    ("h2", &["org.h2.jdbc.**"]),
    ("lucene", &["org.apache.lucene.index.IndexWriter", "org.apache.lucene.search.IndexSearcher"]),
    ("saxon", &["net.sf.saxon.expr.instruct.**"]),
];

/// How names of methods begin that such a pattern means: of a package, or of one class.
fn prefix(pattern: &str) -> String {
    pattern.strip_suffix("**").map_or_else(|| format!("{pattern}."), str::to_owned)
}

/// Of the comparison with exact times.
const EXACT: Amount = Amount { iterations: 3, seconds: 4.0 };

/// Before it. An older JVM throws all compiled code away when the first class is woven, and is
/// slower by an order of magnitude until it has compiled again: then short methods, interpreted,
/// with probes around them, take shares that they have at no other time.
const WOVEN_WARM_UP: Amount = Amount { iterations: 5, seconds: 12.0 };

pub fn measure(
    bench: &Bench,
    jcmd: &Path,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
) -> Result<Measured> {
    let mut stage = Stage(Warm::start(bench, jcmd, workload, jdk)?);
    // The first attaching of each tool is no part of anything.
    for kind in [Kind::Ours(Every::Ms10), Kind::Async(Every::Ms10)] {
        stage.window(kind, Amount { iterations: 1, seconds: 0.0 })?;
    }
    let mut windows = KINDS.map(|kind| Windows {
        kind,
        costs: Vec::new(),
        told: Vec::new(),
        held: Held::default(),
        profiles: Vec::new(),
    });
    for round in 0..rounds {
        for step in 0..KINDS.len() {
            // Whoever comes before another in one round comes after it in the next.
            let step = if round % 2 == 0 { step } else { KINDS.len() - 1 - step };
            let one = &mut windows[(step + round) % KINDS.len()];
            let compared = [Kind::Ours(COMPARED), Kind::Async(COMPARED)].contains(&one.kind);
            let seconds = workload.measured.seconds * if compared { LONGER } else { 1.0 };
            let amount = Amount { seconds, ..workload.measured };
            let (cost, held, told) = stage.window(one.kind, amount)?;
            one.costs.push(cost);
            one.told.push(told);
            one.held.descriptors = one.held.descriptors.max(held.descriptors);
            one.held.timers = one.held.timers.max(held.timers);
            if compared {
                one.profiles.push(stage.profile()?);
            }
            eprintln!(
                "{} on {}, round {}: {:?} {:.1} ms, {:.1} ms on processors",
                workload.name,
                jdk.major,
                round + 1,
                one.kind,
                cost.wall,
                cost.cpu
            );
        }
    }
    let said = stage.said()?;
    let exact = stage.exact(workload)?;
    stage.0.program.quit()?;
    let of = |kind| windows.iter().find(|w| w.kind == kind).map_or(&[][..], |w| &w.profiles[..]);
    let agreement = compare(of(Kind::Ours(COMPARED)), of(Kind::Async(COMPARED)), exact);
    Ok(Measured { rounds, windows: windows.into(), agreement, said })
}

fn compare(ours: &[String], theirs: &[String], exact: Option<Exact>) -> Agreement {
    let part = |all: &[String], which: usize| {
        let chosen: String = all.iter().skip(which).step_by(2).map(String::as_str).collect();
        Leaves::of_collapsed(&chosen)
    };
    let (o, t) = ([part(ours, 0), part(ours, 1)], [part(theirs, 0), part(theirs, 1)]);
    let pairs = o.iter().flat_map(|o| t.iter().map(move |t| o.overlap(t)));
    let (all_ours, all_theirs) = (ours.concat(), theirs.concat());
    let (whole_o, whole_t) = (Leaves::of_collapsed(&all_ours), Leaves::of_collapsed(&all_theirs));
    Agreement {
        both: pairs.sum::<f64>() / 4.0,
        ours: o[0].overlap(&o[1]),
        theirs: t[0].overlap(&t[1]),
        whole: whole_o.overlap(&whole_t),
        // Ours are nanoseconds, theirs samples.
        samples: [
            o.each_ref().map(|half| (half.total() / 1e5) as u64),
            t.each_ref().map(|half| half.total() as u64),
        ],
        apart: whole_o.differences(&whole_t, 3),
        exact,
    }
}

struct Stage<'a>(Warm<'a>);

impl Stage<'_> {
    /// Also what part of the window's processor time the samples stand for.
    fn window(&mut self, kind: Kind, amount: Amount) -> Result<(Cost, Held, f64)> {
        let began = self.0.processor_time()?;
        let (cost, held) = self.sampled(kind, amount)?;
        let used = self.0.processor_time()? - began;
        let milliseconds = match kind {
            Kind::Plain => 0.0,
            // Ours are nanoseconds, theirs samples.
            Kind::Ours(_) => 1e-6,
            Kind::Async(every) => every.milliseconds(),
        };
        let told = match kind {
            Kind::Plain => 0.0,
            _ => overlap::sum(&self.profile()?) * milliseconds / used.max(1.0),
        };
        Ok((cost, held, told))
    }

    fn sampled(&mut self, kind: Kind, amount: Amount) -> Result<(Cost, Held)> {
        match kind {
            Kind::Plain => self.run(amount),
            Kind::Ours(every) => {
                let mut command = Command::new(&self.0.bench.tare);
                command.args(["record", "--interval", every.option(), "-o"]);
                let recording = self.0.file("window.tare");
                let _ = fs::remove_file(&recording);
                command.arg(&recording).arg(self.0.program.pid().to_string());
                let mut recorder = Recorder::start(&mut command, &self.0.file("record.log"))?;
                recorder.wait_for(&recording)?;
                let cost = self.run(amount);
                recorder.stop()?;
                self.export(&recording, &self.0.file("window.collapsed"))?;
                cost
            }
            Kind::Async(every) => {
                let options = format!("start,event=cpu-clock,interval={}", every.option());
                self.0.load_async(&options)?;
                let cost = self.run(amount);
                let file = self.0.file("window.collapsed");
                let _ = fs::remove_file(&file);
                self.0.load_async(&format!("stop,collapsed,file={}", file.display()))?;
                cost
            }
        }
    }

    fn run(&mut self, amount: Amount) -> Result<(Cost, Held)> {
        let cost = self.0.run(amount)?;
        Ok((cost, self.held()))
    }

    fn held(&self) -> Held {
        let place = format!("/proc/{}", self.0.program.pid());
        let descriptors = fs::read_dir(format!("{place}/fd")).map_or(0, Iterator::count);
        let timers = fs::read_to_string(format!("{place}/timers")).unwrap_or_default();
        let timers = timers.lines().filter(|line| line.starts_with("ID:")).count();
        Held { descriptors: descriptors as u64, timers: timers as u64 }
    }

    /// The stacks of the window that has just ended.
    fn profile(&self) -> Result<String> {
        let file = self.0.file("window.collapsed");
        let text = fs::read_to_string(&file);
        text.with_context(|| format!("reading {}", file.display()))
    }

    fn export(&self, recording: &Path, to: &Path) -> Result<()> {
        let mut export = Command::new(&self.0.bench.tare);
        export.arg("export").arg(recording).arg("-o").arg(to);
        shell::output(export.stderr(Stdio::null())).map(drop)
    }

    fn said(&self) -> Result<String> {
        let log = fs::read_to_string(self.0.file("record.log"))?;
        Ok(log.lines().find(|line| line.contains(" samples")).unwrap_or_default().to_owned())
    }

    /// Exact times of some methods, and samples of the same run.
    fn exact(&mut self, workload: &Workload) -> Result<Option<Exact>> {
        let Some((_, patterns)) = WOVEN.iter().find(|(name, _)| *name == workload.name) else {
            return Ok(None);
        };
        let recording = self.0.file("exact.tare");
        let _ = fs::remove_file(&recording);
        let mut command = Command::new(&self.0.bench.tare);
        command.args(["record", "--exact"]);
        for pattern in *patterns {
            command.args(["--include", pattern]);
        }
        let mut recorder = Recorder::start(
            command.arg("-o").arg(&recording).arg(self.0.program.pid().to_string()),
            &self.0.file("exact.log"),
        )?;
        recorder.wait_until_woven(&self.0.bench.tare, self.0.program.pid())?;
        self.0.program.run(WOVEN_WARM_UP)?;
        let before = self.times(&self.0.program.pid().to_string())?;
        self.window(Kind::Ours(COMPARED), EXACT)?;
        let after = self.times(&self.0.program.pid().to_string())?;
        recorder.stop()?;
        let places: Vec<String> = patterns.iter().map(|pattern| prefix(pattern)).collect();
        let sampled = Leaves::within(&self.profile()?, &places);
        let measured = Leaves::of_values(after.into_iter().map(|(name, value)| {
            let earlier = before.get(&name).copied().unwrap_or(0.0);
            (name, (value - earlier).max(0.0))
        }));
        if measured.total() <= 0.0 {
            bail!("nothing was woven by {}", patterns.join(" "));
        }
        Ok(Some(Exact {
            what: patterns.join(" "),
            overlap: sampled.overlap(&measured),
            apart: sampled.differences(&measured, 3),
        }))
    }

    /// The time of each method itself, of a recording or of one that is under way.
    fn times(&self, of: &str) -> Result<HashMap<String, f64>> {
        let mut report = Command::new(&self.0.bench.tare);
        // Only the list of methods is of interest, not the tree. As measured: samples of woven code
        // see the probes, too.
        report.args(["report", of, "--format", "json", "--min-share", "1.0"]);
        report.args(["--compensate", "none"]);
        let page: Value = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
        let mut times = HashMap::new();
        for method in page["methods"].as_array().context("a list of methods")? {
            let name = method["name"].as_str().unwrap_or_default();
            let name = name.split('(').next().unwrap_or_default().to_owned();
            *times.entry(name).or_default() += method["self"].as_f64().unwrap_or(0.0);
        }
        Ok(times)
    }
}
