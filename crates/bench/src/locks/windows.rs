//! Windows in two warm JVMs of one program: ours in the one, the peers in the other, because
//! async-profiler leaves something behind that every park passes.

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

/// Who records locks in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Ours,
    Async,
    Jfr,
}

/// One window of each in a round, in the JVM that is ours and in the one of the peers.
pub const OURS: [Kind; 2] = [Kind::Plain, Kind::Ours];
pub const PEERS: [Kind; 3] = [Kind::Plain, Kind::Async, Kind::Jfr];

const ASYNC: &str = "start,event=lock,lock=10us";

/// The events of the JVM's recorder that tell of waits, with our threshold. Without any other
/// settings they stay off.
const JFR: [&str; 3] = [
    "jdk.JavaMonitorEnter#threshold=10us",
    "jdk.JavaMonitorWait#threshold=10us",
    "jdk.ThreadPark#threshold=10us",
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Ours => "tare",
            Kind::Async => "async-profiler",
            Kind::Jfr => "JFR",
        }
    }

    /// What a user would type.
    pub fn command(self) -> String {
        match self {
            Kind::Plain => "java …".to_owned(),
            Kind::Ours => "tare record --lock PID".to_owned(),
            Kind::Async => format!("asprof {ASYNC}"),
            Kind::Jfr => format!("jcmd PID JFR.start settings=profile {}", JFR.join(" ")),
        }
    }

    pub fn target(self) -> Option<f64> {
        (self == Kind::Ours).then_some(1.02)
    }
}

/// All windows of one kind, a round each.
pub struct Windows {
    pub kind: Kind,
    pub costs: Vec<Cost>,
    /// Waits in each window, and the share of those whose owner has told its stack.
    pub waits: Vec<f64>,
    pub answered: Vec<f64>,
}

impl Windows {
    fn new(kind: Kind) -> Windows {
        Windows { kind, costs: Vec::new(), waits: Vec::new(), answered: Vec::new() }
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
            let (cost, waits, answered) = self.window(kind, amount)?;
            eprintln!(
                "round {}: {}: {:.1} ms, {:.1} ms on processors, {waits:.0} waits",
                round + 1,
                kind.name(),
                cost.wall,
                cost.cpu
            );
            let one = &mut self.windows[which];
            one.costs.push(cost);
            one.waits.push(waits);
            one.answered.extend(answered);
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Windows>> {
        self.warm.program.quit()?;
        Ok(self.windows)
    }

    /// What it cost, how many waits there were, and the share of those with an owner's stack.
    fn window(&mut self, kind: Kind, amount: Amount) -> Result<(Cost, f64, Option<f64>)> {
        match kind {
            Kind::Plain => Ok((self.warm.run(amount)?, 0.0, None)),
            Kind::Ours => self.ours(amount),
            Kind::Async => {
                self.warm.load_async(ASYNC)?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.collapsed");
                let _ = fs::remove_file(&file);
                self.warm.load_async(&format!("stop,collapsed,file={}", file.display()))?;
                let text = fs::read_to_string(&file)?;
                Ok((cost, overlap::sum(&text), None))
            }
            Kind::Jfr => {
                self.warm
                    .jcmd(&[&["JFR.start", "name=bench", "settings=profile"], &JFR[..]].concat())?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.jfr");
                let name = format!("filename={}", file.display());
                self.warm.jcmd(&["JFR.stop", "name=bench", &name])?;
                Ok((cost, self.jfr_waits(&file)?, None))
            }
        }
    }

    fn ours(&mut self, amount: Amount) -> Result<(Cost, f64, Option<f64>)> {
        let recording = self.warm.file("window.tare");
        let _ = fs::remove_file(&recording);
        let mut command = Command::new(&self.warm.bench.tare);
        command.args(["record", "--lock", "-o"]).arg(&recording);
        command.arg(self.warm.program.pid().to_string());
        let mut recorder = Recorder::start(&mut command, &self.warm.file("record.log"))?;
        recorder.wait_for(&recording)?;
        let cost = self.warm.run(amount)?;
        recorder.stop()?;
        let mut report = Command::new(&self.warm.bench.tare);
        report.arg("report").arg(&recording).args(["--format", "json", "--min-share", "1.0"]);
        let page: Value = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
        let fact = |key: &str| page["run"]["facts"][key].as_f64();
        let waits = fact("lock-waits").context("a number of waits")?;
        let with_stack = fact("lock-owner-stacks").unwrap_or(0.0);
        Ok((cost, waits, (waits > 0.0).then_some(with_stack / waits)))
    }

    /// `jdk.JavaMonitorEnter   1234   56789` of the JDK's own summary, and its like.
    fn jfr_waits(&self, file: &Path) -> Result<f64> {
        let mut tool = Command::new(self.warm.jcmd.with_file_name("jfr"));
        let text = shell::output(tool.arg("summary").arg(file))?;
        let count = |name: &str| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let counts = JFR.iter().map(|event| count(event.split('#').next()?));
        let sum = counts.sum::<Option<f64>>();
        sum.context("the summary of a JFR recording does not count waits")
    }
}
