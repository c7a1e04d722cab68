//! Windows in two warm JVMs of one program: ours in the one, the peers in the other. The JVM's
//! sampler of allocation has one owner in a process, and async-profiler keeps it to the end.

use crate::launch::Bench;
use crate::overlap;
use crate::program::Amount;
use crate::recorder::Recorder;
use crate::warm::{Cost, Warm};
use crate::workloads::Workload;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// Who samples allocation in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// The interval, and whether it is watched what lives.
    Ours(&'static str, bool),
    Async(&'static str, bool),
    Jfr,
}

/// One window of each in a round, in the JVM that is ours and in the one of the peers.
pub const OURS: [Kind; 4] =
    [Kind::Plain, Kind::Ours("512K", true), Kind::Ours("512K", false), Kind::Ours("64K", true)];
pub const PEERS: [Kind; 5] = [
    Kind::Plain,
    Kind::Async("512k", true),
    Kind::Async("512k", false),
    Kind::Async("64k", true),
    Kind::Jfr,
];

impl Kind {
    pub fn name(self) -> String {
        let with = |live| if live { ", with what lives" } else { "" };
        match self {
            Kind::Plain => "plain".to_owned(),
            Kind::Ours(every, live) => format!("tare, {every}{}", with(live)),
            Kind::Async(every, live) => format!("async-profiler, {every}{}", with(live)),
            Kind::Jfr => "JFR, profile".to_owned(),
        }
    }

    /// What a user would type.
    pub fn command(self) -> String {
        match self {
            Kind::Plain => "java …".to_owned(),
            Kind::Ours(..) => format!("tare record {} PID", self.record_options().join(" ")),
            Kind::Async(every, live) => format!("asprof {}", async_options(every, live)),
            Kind::Jfr => "jcmd PID JFR.start settings=profile".to_owned(),
        }
    }

    fn record_options(self) -> Vec<&'static str> {
        let Kind::Ours(every, live) = self else { return Vec::new() };
        let mut words = vec!["--alloc", "--interval-bytes", every];
        words.extend((!live).then_some("--no-live"));
        words
    }

    pub fn target(self) -> Option<f64> {
        match self {
            Kind::Ours("512K", true) => Some(1.01),
            Kind::Ours("64K", true) => Some(1.03),
            _ => None,
        }
    }
}

fn async_options(every: &str, live: bool) -> String {
    format!("start,event=alloc,alloc={every}{}", if live { ",live" } else { "" })
}

/// All windows of one kind, a round each.
pub struct Windows {
    pub kind: Kind,
    pub costs: Vec<Cost>,
    /// Samples in each window. With what lives, async-profiler tells only of those that live.
    pub samples: Vec<f64>,
    /// The memory of our table of what lives at the end of the last window, in bytes.
    pub table: Option<u64>,
}

impl Windows {
    fn new(kind: Kind) -> Windows {
        Windows { kind, costs: Vec::new(), samples: Vec::new(), table: None }
    }
}

/// Both JVMs, side by side: the one that is not measured waits for its input.
pub struct Measured {
    pub ours: Vec<Windows>,
    pub peers: Vec<Windows>,
}

pub fn measure(
    bench: &Bench,
    jcmd: &Path,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
) -> Result<Measured> {
    let mut ours = Stage::start(bench, jcmd, workload, jdk, &OURS)?;
    let mut peers = Stage::start(bench, jcmd, workload, jdk, &PEERS)?;
    for round in 0..rounds {
        for stage in [&mut ours, &mut peers] {
            stage.round(round, workload.measured)?;
        }
    }
    Ok(Measured { ours: ours.end()?, peers: peers.end()? })
}

struct Stage<'a> {
    warm: Warm<'a>,
    windows: Vec<Windows>,
}

impl<'a> Stage<'a> {
    fn start(
        bench: &'a Bench,
        jcmd: &'a Path,
        workload: &Workload,
        jdk: &Jdk,
        kinds: &[Kind],
    ) -> Result<Self> {
        let warm = Warm::start(bench, jcmd, workload, jdk)?;
        let windows = kinds.iter().copied().map(Windows::new).collect();
        let mut stage = Stage { warm, windows };
        // The first attaching of a tool is no part of anything.
        for &kind in &kinds[1..] {
            stage.window(kind, Amount { iterations: 1, seconds: 0.0 })?;
        }
        Ok(stage)
    }

    fn round(&mut self, round: usize, amount: Amount) -> Result<()> {
        let count = self.windows.len();
        for step in 0..count {
            // Whoever comes before another in one round comes after it in the next.
            let step = if round.is_multiple_of(2) { step } else { count - 1 - step };
            let which = (step + round) % count;
            let kind = self.windows[which].kind;
            let (cost, samples, table) = self.window(kind, amount)?;
            eprintln!(
                "round {}: {}: {:.1} ms, {:.1} ms on processors, {samples:.0} samples",
                round + 1,
                kind.name(),
                cost.wall,
                cost.cpu
            );
            let one = &mut self.windows[which];
            one.costs.push(cost);
            one.samples.push(samples);
            one.table = table.or(one.table);
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Windows>> {
        self.warm.program.quit()?;
        Ok(self.windows)
    }

    /// What it cost, how many samples there were, and the bytes of our table.
    fn window(&mut self, kind: Kind, amount: Amount) -> Result<(Cost, f64, Option<u64>)> {
        match kind {
            Kind::Plain => Ok((self.warm.run(amount)?, 0.0, None)),
            Kind::Ours(..) => self.ours(kind, amount),
            Kind::Async(every, live) => {
                self.warm.load_async(&async_options(every, live))?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.collapsed");
                let _ = fs::remove_file(&file);
                self.warm.load_async(&format!("stop,collapsed,file={}", file.display()))?;
                let text = fs::read_to_string(&file)?;
                Ok((cost, overlap::sum(&text), None))
            }
            Kind::Jfr => {
                self.warm.jcmd(&["JFR.start", "name=bench", "settings=profile"])?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.jfr");
                let name = format!("filename={}", file.display());
                self.warm.jcmd(&["JFR.stop", "name=bench", &name])?;
                Ok((cost, self.jfr_samples(&file)?, None))
            }
        }
    }

    fn ours(&mut self, kind: Kind, amount: Amount) -> Result<(Cost, f64, Option<u64>)> {
        let recording = self.warm.file("window.tare");
        let _ = fs::remove_file(&recording);
        let mut command = Command::new(&self.warm.bench.tare);
        command.arg("record").args(kind.record_options()).arg("-o").arg(&recording);
        command.arg(self.warm.program.pid().to_string());
        let mut recorder = Recorder::start(&mut command, &self.warm.file("record.log"))?;
        recorder.wait_for(&recording)?;
        let cost = self.warm.run(amount)?;
        recorder.stop()?;
        let mut report = Command::new(&self.warm.bench.tare);
        report.arg("report").arg(&recording).args(["--format", "json", "--min-share", "1.0"]);
        let page: Value = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
        let facts = &page["run"]["facts"];
        let samples = facts["allocation-samples"].as_f64().context("a number of samples")?;
        Ok((cost, samples, facts["live-table-bytes"].as_u64()))
    }

    /// `jdk.ObjectAllocationSample   1234   56789` of the JDK's own summary.
    fn jfr_samples(&self, file: &Path) -> Result<f64> {
        let mut tool = Command::new(self.warm.jcmd.with_file_name("jfr"));
        let text = shell::output(tool.arg("summary").arg(file))?;
        let line = text.lines().find(|line| line.contains("jdk.ObjectAllocationSample"));
        let count = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        count.context("the summary of a JFR recording has no allocation samples")
    }
}
