//! Windows in two warm JVMs of one program: ours in the one, the peers in the other, because
//! something of the peers stays behind in theirs.

use super::{Comparison, Kind, Told, Who};
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

/// All windows of one kind, a round each. Plain ones have no kind.
pub struct Windows {
    pub kind: Option<&'static Kind>,
    pub costs: Vec<Cost>,
    /// What was counted in each window.
    pub counted: Vec<f64>,
    /// What else they told.
    pub other: Vec<f64>,
}

impl Windows {
    fn new(kind: Option<&'static Kind>) -> Windows {
        Windows { kind, costs: Vec::new(), counted: Vec::new(), other: Vec::new() }
    }
}

/// Both JVMs, side by side: the one that is not measured waits for its input.
pub struct Measured {
    pub ours: Vec<Windows>,
    pub peers: Vec<Windows>,
}

pub fn measure(
    comparison: &Comparison,
    bench: &Bench,
    jcmd: &Path,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
) -> Result<Measured> {
    let start = |kinds: &'static [Kind]| {
        let warm = Warm::start(bench, jcmd, workload, jdk)?;
        Stage::start(comparison, warm, kinds)
    };
    let mut ours = start(comparison.ours)?;
    let mut peers = start(comparison.peers)?;
    for round in 0..rounds {
        for stage in [&mut ours, &mut peers] {
            stage.round(round, workload.measured)?;
        }
    }
    Ok(Measured { ours: ours.end()?, peers: peers.end()? })
}

struct Stage<'a> {
    comparison: &'a Comparison,
    warm: Warm<'a>,
    windows: Vec<Windows>,
}

impl<'a> Stage<'a> {
    fn start(comparison: &'a Comparison, warm: Warm<'a>, kinds: &'static [Kind]) -> Result<Self> {
        let kinds = || kinds.iter().map(Some);
        let windows = [None].into_iter().chain(kinds()).map(Windows::new).collect();
        let mut stage = Stage { comparison, warm, windows };
        // The first attaching of a tool is no part of anything.
        for kind in kinds() {
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
            let (cost, told) = self.window(kind, amount)?;
            eprintln!(
                "round {}: {}: {:.1} ms, {:.1} ms on processors, {:.0} {}",
                round + 1,
                kind.map_or("plain", |kind| kind.name),
                cost.wall,
                cost.cpu,
                told.counted,
                self.comparison.columns[0]
            );
            let one = &mut self.windows[which];
            one.costs.push(cost);
            one.counted.push(told.counted);
            one.other.extend(told.other);
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Windows>> {
        self.warm.program.quit()?;
        Ok(self.windows)
    }

    fn window(&mut self, kind: Option<&Kind>, amount: Amount) -> Result<(Cost, Told)> {
        match kind.map(|kind| &kind.who) {
            None => Ok((self.warm.run(amount)?, Told { counted: 0.0, other: None })),
            Some(Who::Tare(options)) => self.tare(options, amount),
            Some(Who::Async(options)) => {
                self.warm.load_async(options)?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.collapsed");
                let _ = fs::remove_file(&file);
                self.warm.load_async(&format!("stop,collapsed,file={}", file.display()))?;
                let counted = overlap::sum(&fs::read_to_string(&file)?);
                Ok((cost, Told { counted, other: None }))
            }
            Some(Who::Jfr(options)) => {
                let start = ["JFR.start", "name=bench", "settings=profile"];
                self.warm.jcmd(&[&start, *options].concat())?;
                let cost = self.warm.run(amount)?;
                let file = self.warm.file("window.jfr");
                let name = format!("filename={}", file.display());
                self.warm.jcmd(&["JFR.stop", "name=bench", &name])?;
                Ok((cost, Told { counted: self.events(&file)?, other: None }))
            }
        }
    }

    fn tare(&mut self, options: &[&str], amount: Amount) -> Result<(Cost, Told)> {
        let recording = self.warm.file("window.tare");
        let _ = fs::remove_file(&recording);
        let mut command = Command::new(&self.warm.bench.tare);
        command.arg("record").args(options).arg("-o").arg(&recording);
        command.arg(self.warm.program.pid().to_string());
        let mut recorder = Recorder::start(&mut command, &self.warm.file("record.log"))?;
        recorder.wait_for(&recording)?;
        let cost = self.warm.run(amount)?;
        recorder.stop()?;
        let mut report = Command::new(&self.warm.bench.tare);
        report.arg("report").arg(&recording).args(["--format", "json", "--min-share", "1.0"]);
        let page: Value = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
        Ok((cost, (self.comparison.told)(&page["run"]["facts"])?))
    }

    /// How many events of interest there are: `jdk.ThreadPark   1234   56789` is a line of the
    /// JDK's own summary.
    fn events(&self, file: &Path) -> Result<f64> {
        let mut tool = Command::new(self.warm.jcmd.with_file_name("jfr"));
        let text = shell::output(tool.arg("summary").arg(file))?;
        let count = |name: &&str| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let sum = self.comparison.events.iter().map(count).sum::<Option<f64>>();
        sum.context("the summary of a JFR recording does not count the events")
    }
}
