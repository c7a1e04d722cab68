//! A JVM that is warm, to which profilers come and go: what an iteration costs meanwhile.

use crate::config::Config;
use crate::launch::Bench;
use crate::program::{Amount, Program};
use crate::stats::median;
use crate::workloads::Workload;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// Until the JVM has compiled most of what there is to compile; profiles would differ by it.
const WARM_UP: Amount = Amount { iterations: 5, seconds: 15.0 };

/// What samplers give a JVM that they launch.
const DEBUG: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];

/// Names of Tare's threads, and of the JVM's compilers.
const OURS_AND_COMPILERS: [&[&str]; 2] = [&["tare-"], &["C1 ", "C2 "]];

/// Of an iteration, in milliseconds: the time, and the processor time of the whole process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub wall: f64,
    pub cpu: f64,
    /// Of that processor time what threads of Tare's took, which are in the process, too.
    pub own: f64,
    /// And what the JVM's compilers took.
    pub compiling: f64,
    /// How many there were.
    pub iterations: usize,
}

impl Cost {
    /// What these iterations took more than plain ones, as the time in which the plain program
    /// takes as much, in seconds.
    pub fn beyond(self, plain: Cost) -> f64 {
        let more = (self.cpu - plain.cpu) * self.iterations as f64;
        more / plain.cpu * plain.wall / 1e3
    }
}

pub struct Warm<'a> {
    pub bench: &'a Bench,
    pub jcmd: &'a Path,
    pub program: Program,
}

impl<'a> Warm<'a> {
    /// Starts a program and waits until it is warm.
    pub fn start(
        bench: &'a Bench,
        jcmd: &'a Path,
        workload: &Workload,
        jdk: &Jdk,
    ) -> Result<Warm<'a>> {
        let plain = bench.java(workload, jdk, Config::Plain)?;
        let mut java = Command::new(plain.get_program());
        java.args(DEBUG).args(plain.get_args());
        let log = File::create(bench.work.join("stderr.log")).context("creating a log")?;
        let mut program = Program::start(java.stderr(log))?;
        program.run(WARM_UP)?;
        Ok(Warm { bench, jcmd, program })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.bench.work.join(name)
    }

    pub fn run(&mut self, amount: Amount) -> Result<Cost> {
        let of_threads = |warm: &Self| OURS_AND_COMPILERS.map(|names| warm.time_of(names));
        let (before, threads_before) = (self.processor_time()?, of_threads(self));
        let times = self.program.run(amount)?;
        let used = self.processor_time()? - before;
        let threads = of_threads(self);
        // A compiler's thread that has nothing to do may end.
        let took = |at: usize| (threads[at] - threads_before[at]).max(0.0);
        let (own, compiling) = (took(0), took(1));
        let wall = median(&times.wall).context("no iteration")?;
        let iterations = times.wall.len();
        let per = 1.0 / iterations as f64;
        let (own, compiling) = (own * per, compiling * per);
        Ok(Cost { wall, cpu: used * per, own, compiling, iterations })
    }

    /// Of the whole process, in milliseconds.
    pub fn processor_time(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.pid()))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = fields.split_whitespace().skip(11).take(2);
        // The kernel counts in hundredths of a second for those who read files.
        Ok(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0)
    }

    /// Of threads in the process whose names begin so, in milliseconds, by the scheduler's own clock.
    fn time_of(&self, names: &[&str]) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.program.pid()));
        let took = |task: PathBuf| {
            let name = fs::read_to_string(task.join("comm")).ok()?;
            if !names.iter().any(|begin| name.starts_with(begin)) {
                return None;
            }
            let times = fs::read_to_string(task.join("schedstat")).ok()?;
            times.split_whitespace().next()?.parse::<f64>().ok()
        };
        let took = tasks.into_iter().flatten().flatten().filter_map(|task| took(task.path()));
        took.sum::<f64>() / 1e6
    }

    /// Has the JVM do something, through the JDK's own tool.
    pub fn jcmd(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(self.jcmd);
        shell::output(command.arg(self.program.pid().to_string()).args(words))
    }

    /// Has async-profiler do something.
    pub fn load_async(&self, options: &str) -> Result<()> {
        let library = self.bench.async_profiler.as_ref().context("async-profiler is not here")?;
        // In quotes, since the tool would take what is behind an equals sign for its own.
        let quoted = format!("\"{options}\"");
        let said = self.jcmd(&["JVMTI.agent_load", &library.display().to_string(), &quoted])?;
        if !said.contains("return code: 0") {
            bail!("async-profiler: {options}: {said}");
        }
        Ok(())
    }
}
