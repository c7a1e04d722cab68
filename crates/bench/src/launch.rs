//! One JVM from its start to its end, under one of the configurations of `config`, and what it
//! gave.
//!
//! How launches become figures is told in `figures`.

use crate::config::{Config, Every, Mode, record_options};
use crate::peers::Peers;
use crate::program::{Amount, Program, Times};
use crate::ready::temporary_option;
use crate::recorder::Recorder;
use crate::workloads::Workload;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// A fixed heap, so that peak memory tells of the profiler and not of the collector's moods.
pub const JVM_OPTIONS: [&str; 2] = ["-Xms1g", "-Xmx1g"];

/// What one JVM gave. Times are in milliseconds.
#[derive(Clone, Default)]
pub struct Launch {
    pub startup: Option<f64>,
    pub first: Option<f64>,
    /// How many iterations it took until they got no faster, where that was waited for.
    pub warm_up: Option<usize>,
    pub iterations: Times,
    /// In the same JVM before it was attached to, and after it was left.
    pub before: Times,
    pub after: Times,
    /// From the start of `tare record` until all is woven.
    pub attach: Option<f64>,
    /// From Ctrl-C until `tare record` has restored all and ended.
    pub detach: Option<f64>,
    pub pauses: Option<Pauses>,
    /// In KiB.
    pub peak_memory: u64,
    pub result: String,
    /// What the recording holds, in the profiler's words.
    pub recorded: Option<String>,
    /// Whether the memory for the trees was used up, so that some calls were only summed up.
    pub full: bool,
}

/// What weaving held up, as `tare record` tells it, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pauses {
    pub count: f64,
    pub total: f64,
    pub longest: f64,
}

pub struct Bench {
    pub tare: PathBuf,
    pub async_profiler: Option<PathBuf>,
    pub peers: Peers,
    pub work: PathBuf,
}

impl Bench {
    pub fn launch(&self, workload: &Workload, jdk: &Jdk, config: Config) -> Result<Launch> {
        let mut java = self.java(workload, jdk, config)?;
        if let Config::Launched(mode) = config {
            java = self.recorded(&java, mode, workload);
        }
        if let Config::Sampled(every) = config {
            java = self.sampled_from_the_start(&java, every);
        }
        if let Config::VisualVm(extent) = config {
            java = self.peers.visual_vm(&java, jdk, workload, extent)?;
        }
        let said = self.work.join("stderr.log");
        let log = File::create(&said).context("creating a log")?;
        let mut program = Program::start(java.stderr(log))?;
        let mut launch = Launch::default();
        if let Config::Attached(mode) = config {
            self.attached(&mut program, &mut launch, mode, workload)?;
        } else {
            let warm_up = program.run(workload.warm_up)?.wall.len();
            if workload.settles_within > 0.0 {
                launch.warm_up = Some(warm_up + program.settle(workload.settles_within)?);
            }
            launch.iterations = program.run(workload.measured)?;
            launch.startup = Some(program.startup);
            launch.first = program.first;
        }
        let ended = program.quit()?;
        launch.peak_memory = ended.peak_memory;
        launch.result = ended.result;
        if let Config::Launched(_) = config {
            launch.heed(&ended.others)?;
        }
        if config.is_other() {
            let lines = fs::read_to_string(&said)? + &ended.others.join("\n");
            let recorded = lines.lines().find_map(|line| line.strip_prefix("recorded: "));
            let recorded = recorded.context("the peer says of no recording")?;
            if recorded == "nothing" {
                bail!("the peer recorded nothing");
            }
            launch.recorded = Some(recorded.to_owned());
        }
        Ok(launch)
    }

    /// A launch that async-profiler samples, with or without a mode of ours.
    pub fn launch_sampled(
        &self,
        workload: &Workload,
        jdk: &Jdk,
        mode: Option<Mode>,
        every: Every,
    ) -> Result<Launch> {
        let mut java = self.java(workload, jdk, Config::AsyncSampled(every))?;
        if let Some(mode) = mode {
            java = self.recorded(&java, mode, workload);
        }
        let log = File::create(self.work.join("stderr.log")).context("creating a log")?;
        let mut program = Program::start(java.stderr(log))?;
        program.run(workload.warm_up)?;
        let iterations = program.run(workload.measured)?;
        program.quit()?;
        Ok(Launch { iterations, ..Launch::default() })
    }

    /// Where async-profiler's stacks of the last launch are.
    pub fn collapsed(&self) -> PathBuf {
        self.work.join("sampled.collapsed")
    }

    /// Only the first iteration of a new JVM.
    pub fn start(&self, workload: &Workload, jdk: &Jdk, config: Config) -> Result<Launch> {
        let mut java = self.java(workload, jdk, config)?;
        if let Config::Sampled(every) = config {
            java = self.sampled_from_the_start(&java, every);
        }
        let log = File::create(self.work.join("stderr.log")).context("creating a log")?;
        let mut program = Program::start(java.stderr(log))?;
        program.run(Amount { iterations: 1, seconds: 0.0 })?;
        let (startup, first) = (Some(program.startup), program.first);
        let ended = program.quit()?;
        Ok(Launch {
            startup,
            first,
            peak_memory: ended.peak_memory,
            result: ended.result,
            ..Launch::default()
        })
    }

    fn sampled_from_the_start(&self, java: &Command, every: Every) -> Command {
        let mut tare = Command::new(&self.tare);
        tare.args(["record", "--interval", every.option(), "-o"]);
        tare.arg(self.work.join("sampled.tare"));
        after(tare, java)
    }

    pub fn java(&self, workload: &Workload, jdk: &Jdk, config: Config) -> Result<Command> {
        let mut java = Command::new(jdk.home.join("bin/java"));
        java.args(JVM_OPTIONS).arg(temporary_option(&self.work)).args(&workload.options);
        if let Config::Jfr(jfr) = config {
            let file = self.work.join("recording.jfr");
            java.arg(format!(
                "-XX:StartFlightRecording:{},filename={}",
                jfr.options(workload.include),
                file.display()
            ));
        }
        if config == Config::MethodEvents {
            let library = self.peers.method_events.as_ref().context("the agent was not built")?;
            java.arg(format!("-agentpath:{}", library.display()));
        }
        if config == Config::AsyncProfiler {
            let library = self.async_profiler.as_ref().context("async-profiler is not here")?;
            let file = self.work.join("async.jfr");
            java.arg(format!(
                "-agentpath:{}=start,event=ctimer,interval=10ms,file={}",
                library.display(),
                file.display()
            ));
        }
        if let Config::AsyncSampled(every) = config {
            let library = self.async_profiler.as_ref().context("async-profiler is not here")?;
            java.arg(format!(
                "-agentpath:{}=start,event=cpu-clock,interval={},collapsed,file={}",
                library.display(),
                every.option(),
                self.collapsed().display()
            ));
        }
        let path: Vec<String> =
            workload.class_path.iter().map(|entry| entry.display().to_string()).collect();
        java.arg("-cp").arg(path.join(":")).arg("bench.Main");
        java.arg(workload.name).args(&workload.arguments);
        Ok(java)
    }

    pub fn record(&self, mode: Mode, workload: &Workload) -> Command {
        let mut tare = Command::new(&self.tare);
        tare.arg("record").args(record_options(mode, workload.include, &workload.root));
        tare.arg("-o").arg(self.recording(mode));
        tare
    }

    /// Where the recording of the last launch is.
    pub fn recording(&self, mode: Mode) -> PathBuf {
        self.work.join(format!("{mode:?}-recording.tare"))
    }

    /// How far samples of bytecodes agree with the exact profile, in the words of `tare diff`.
    pub fn overlap(&self, sampled: Mode) -> Result<String> {
        let mut diff = Command::new(&self.tare);
        diff.args(["diff", "--metric", "bytecodes"]);
        diff.args([self.recording(Mode::Bytecodes), self.recording(sampled)]);
        let said = shell::output(diff.stderr(Stdio::null()))?;
        let line = said.lines().find_map(|line| line.strip_prefix("overlap "));
        Ok(line.context("tare diff tells of no overlap")?.to_owned())
    }

    fn recorded(&self, java: &Command, mode: Mode, workload: &Workload) -> Command {
        after(self.record(mode, workload), java)
    }

    fn attached(
        &self,
        program: &mut Program,
        launch: &mut Launch,
        mode: Mode,
        workload: &Workload,
    ) -> Result<()> {
        // Speed before and after need only be told once, by the cheaper mode that sees all calls.
        let beside = mode == Mode::Count;
        program.run(workload.warm_up)?;
        if beside {
            launch.before = program.run(workload.measured)?;
        }
        let said = self.work.join("record.log");
        let mut recorder =
            Recorder::start(self.record(mode, workload).arg(program.pid().to_string()), &said)?;
        launch.attach = Some(recorder.wait_until_woven(&self.tare, program.pid())?);
        program.run(workload.warm_up)?;
        launch.iterations = program.run(workload.measured)?;
        launch.detach = Some(recorder.stop()?);
        let said = fs::read_to_string(&said)?;
        launch.heed(&said.lines().map(str::to_owned).collect::<Vec<_>>())?;
        if beside {
            program.run(workload.warm_up)?;
            launch.after = program.run(workload.measured)?;
        }
        Ok(())
    }
}

/// A command of ours that starts another.
pub fn after(mut tare: Command, java: &Command) -> Command {
    tare.arg("--").arg(java.get_program()).args(java.get_args());
    tare
}

impl Launch {
    /// Reads what `tare record` says at its end. Without that nothing was recorded, and the
    /// iterations would be those of a plain run.
    pub fn heed(&mut self, lines: &[String]) -> Result<()> {
        let recorded = lines.iter().find_map(|line| {
            let (_, rest) = line.split_once("recording.tare")?;
            rest.contains("methods woven").then(|| rest.trim_start_matches([':', ' ']).to_owned())
        });
        let Some(recorded) = recorded else {
            bail!("tare says of no recording: {}", lines.join("\n"));
        };
        // The number of methods is what tare saw last, and of a short run it saw nothing.
        if recorded.starts_with("0 calls") && recorded.contains(" 0 methods woven") {
            bail!("tare wove nothing: {recorded}");
        }
        self.recorded = Some(recorded);
        self.pauses = lines.iter().find_map(|line| pauses(line));
        self.full = lines.iter().any(|line| line.contains("no room]"));
        Ok(())
    }
}

/// `weaving took 221 ms; 17 pauses, 2148 ms in all, 233 ms the longest`
fn pauses(line: &str) -> Option<Pauses> {
    let mut parts = line.split_once("; ")?.1.split(", ");
    let mut number = |end: &str| parts.next()?.trim().strip_suffix(end)?.parse::<f64>().ok();
    Some(Pauses {
        count: number(" pauses")?,
        total: number(" ms in all")?,
        longest: number(" ms the longest")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tare_says_is_read() {
        let lines = [
            "x/recording.tare: 12 k calls in 3 contexts of 1 threads, 10668 methods woven; 4 KiB",
            "weaving took 221 ms; 17 pauses, 2148 ms in all, 233 ms the longest",
        ]
        .map(str::to_owned);
        let mut launch = Launch::default();
        launch.heed(&lines).unwrap();
        assert_eq!(launch.pauses, Some(Pauses { count: 17.0, total: 2148.0, longest: 233.0 }));
        assert!(launch.recorded.as_ref().unwrap().starts_with("12 k calls in 3 contexts"));
        assert!(!launch.full);
        // Other things may lack room as well; only the trees' own mark counts.
        for (more, full) in [
            ("− 29.8 % of the whole is accounted as [no room]", true),
            ("− refused 3 × code that was not woven: no room on the operand stack", false),
        ] {
            launch.heed(&[lines[0].clone(), more.to_owned()]).unwrap();
            assert_eq!(launch.full, full, "{more}");
        }
    }

    #[test]
    fn a_run_without_woven_methods_is_no_profiled_run() {
        let nothing =
            "x/recording.tare: 0 calls in 0 contexts of 0 threads, 0 methods woven; 0 KiB";
        for lines in [vec![], vec![nothing.to_owned()]] {
            assert!(Launch::default().heed(&lines).is_err(), "{lines:?}");
        }
    }
}
