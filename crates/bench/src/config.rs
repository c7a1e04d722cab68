//! The ways in which a workload is run: plain, under each mode of ours, and under the peers.
//!
//! One call of [`Bench::launch`] is one JVM from its start to its end. How launches become figures
//! is told in `figures`.

use super::peers::{self, Peers};
use super::program::{Amount, Program, Times};
use super::ready::temporary_option;
use super::recorder::Recorder;
use super::workloads::Workload;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Count,
    Time,
    /// Times, with the probes held to a budget.
    Budget,
    /// Everything woven to count, but below a root that is never called.
    Outside,
    /// What one root reaches, found while the program runs, with times.
    Rooted,
    /// Executed bytecodes, by the default analysis of blocks and by the precise one.
    Bytecodes,
    Precise,
    /// Samples, one whenever so many bytecodes were executed, exactly or around that number.
    Every1k,
    Every10k,
    Random10k,
    Every100k,
    /// Every entry and exit, with its time.
    Trace,
}

/// How much of a program a peer looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Root,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    Plain,
    Launched(Mode),
    Attached(Mode),
    Jfr(Jfr),
    AsyncProfiler,
    /// Samples of ours, and of async-profiler by the same kind of clock.
    Sampled(Every),
    AsyncSampled(Every),
    /// VisualVM's instrumenting profiler.
    VisualVm(Extent),
    /// The JVM's own events of entry and exit, as hprof used them.
    MethodEvents,
}

/// What the JVM's own recorder is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jfr {
    Default,
    Profile,
    /// Samples by the processor's time, from JDK 25 on.
    CpuTime,
    /// Times of all methods of the classes that are woven for us, from JDK 25 on. It takes no patterns.
    MethodTiming,
}

impl Jfr {
    fn options(self, include: &str) -> String {
        match self {
            Jfr::Default => "settings=default".to_owned(),
            Jfr::Profile => "settings=profile".to_owned(),
            Jfr::CpuTime => {
                "jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=10ms".to_owned()
            }
            Jfr::MethodTiming => format!("method-timing={include}"),
        }
    }
}

/// The time between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    Ms10,
    Ms1,
    Us100,
}

impl Every {
    pub const ALL: [Every; 3] = [Every::Ms10, Every::Ms1, Every::Us100];

    /// As both tools take it.
    pub fn option(self) -> &'static str {
        match self {
            Every::Ms10 => "10ms",
            Every::Ms1 => "1ms",
            Every::Us100 => "100us",
        }
    }

    pub fn milliseconds(self) -> f64 {
        match self {
            Every::Ms10 => 10.0,
            Every::Ms1 => 1.0,
            Every::Us100 => 0.1,
        }
    }
}

/// What `cargo xtask bench peers` runs: profilers that see every call.
pub const PEERS: [Config; 6] = [
    Config::Plain,
    Config::Launched(Mode::Time),
    Config::VisualVm(Extent::Whole),
    Config::Launched(Mode::Rooted),
    Config::VisualVm(Extent::Root),
    Config::MethodEvents,
];

/// What `cargo xtask bench demotion` runs.
pub const DEMOTION: [Config; 4] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Launched(Mode::Budget),
    Config::Launched(Mode::Time),
];

/// What `cargo xtask bench bytecodes` runs.
pub const BYTECODES: [Config; 9] = [
    Config::Plain,
    Config::Launched(Mode::Bytecodes),
    Config::Launched(Mode::Precise),
    Config::Launched(Mode::Every1k),
    Config::Launched(Mode::Every10k),
    Config::Launched(Mode::Random10k),
    Config::Launched(Mode::Every100k),
    Config::Attached(Mode::Bytecodes),
    Config::Attached(Mode::Every10k),
];

/// Those of them that are samples, to be compared with the exact profile.
pub const BYTECODE_SAMPLES: [Mode; 4] =
    [Mode::Every1k, Mode::Every10k, Mode::Random10k, Mode::Every100k];

/// What `cargo xtask bench suite` runs, of every workload.
pub const SUITE: [Config; 8] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Launched(Mode::Time),
    Config::Launched(Mode::Bytecodes),
    Config::Attached(Mode::Count),
    Config::Sampled(Every::Ms10),
    Config::AsyncSampled(Every::Ms10),
    Config::Jfr(Jfr::Profile),
];

/// The same with `--brief`: attaching takes as long as three launches, and the modes' own page tells of it.
pub const BRIEF: [Config; 7] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Sampled(Every::Ms10),
    Config::AsyncSampled(Every::Ms10),
    Config::Jfr(Jfr::Profile),
    Config::Launched(Mode::Bytecodes),
    Config::Launched(Mode::Time),
];

pub const ALL: [Config; 12] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Launched(Mode::Time),
    Config::Launched(Mode::Outside),
    Config::Attached(Mode::Count),
    Config::Attached(Mode::Time),
    Config::Attached(Mode::Outside),
    Config::Jfr(Jfr::Default),
    Config::Jfr(Jfr::Profile),
    Config::Jfr(Jfr::CpuTime),
    Config::Jfr(Jfr::MethodTiming),
    Config::AsyncProfiler,
];

/// A fixed heap, so that peak memory tells of the profiler and not of the collector's moods.
const JVM_OPTIONS: [&str; 2] = ["-Xms1g", "-Xmx1g"];

/// The first JDK whose own recorder samples processor time and times methods.
const JFR_MEASURES: u32 = 25;

/// Runs once between two iterations and calls nothing: everything else is outside.
const BETWEEN: [&str; 2] = ["bench.Between", "bench.Between.iterations"];

impl Config {
    pub fn name(self) -> &'static str {
        match self {
            Config::Plain => "plain",
            Config::Launched(Mode::Count) => "count, launched",
            Config::Launched(Mode::Time) => "time, launched",
            Config::Launched(Mode::Budget) => "time within 20 %, launched",
            Config::Attached(Mode::Budget) => "time within 20 %, attached",
            Config::Launched(Mode::Outside) => "outside, launched",
            Config::Launched(Mode::Rooted) => "time below one root, launched",
            Config::Attached(Mode::Rooted) => "time below one root, attached",
            Config::VisualVm(Extent::Whole) => "VisualVM, all methods",
            Config::VisualVm(Extent::Root) => "VisualVM, one root",
            Config::MethodEvents => "JVMTI method events",
            Config::Launched(Mode::Bytecodes) => "bytecodes, launched",
            Config::Launched(Mode::Precise) => "bytecodes precise, launched",
            Config::Attached(Mode::Bytecodes) => "bytecodes, attached",
            Config::Attached(Mode::Precise) => "bytecodes precise, attached",
            Config::Launched(Mode::Every1k) => "every 1,000 bytecodes, launched",
            Config::Launched(Mode::Every10k) => "every 10,000 bytecodes, launched",
            Config::Launched(Mode::Random10k) => "every 10,000 ± half, launched",
            Config::Launched(Mode::Every100k) => "every 100,000 bytecodes, launched",
            Config::Attached(Mode::Every1k) => "every 1,000 bytecodes, attached",
            Config::Attached(Mode::Every10k) => "every 10,000 bytecodes, attached",
            Config::Attached(Mode::Random10k) => "every 10,000 ± half, attached",
            Config::Attached(Mode::Every100k) => "every 100,000 bytecodes, attached",
            Config::Launched(Mode::Trace) => "trace, launched",
            Config::Attached(Mode::Trace) => "trace, attached",
            Config::Attached(Mode::Count) => "count, attached",
            Config::Attached(Mode::Time) => "time, attached",
            Config::Attached(Mode::Outside) => "outside, attached",
            Config::Jfr(Jfr::Default) => "JFR, default",
            Config::Jfr(Jfr::Profile) => "JFR, profile",
            Config::Jfr(Jfr::CpuTime) => "JFR, processor time, 10 ms",
            Config::Jfr(Jfr::MethodTiming) => "JFR, method timing",
            Config::AsyncProfiler => "async-profiler, 10 ms",
            Config::Sampled(Every::Ms10) => "tare, 10 ms",
            Config::Sampled(Every::Ms1) => "tare, 1 ms",
            Config::Sampled(Every::Us100) => "tare, 100 µs",
            Config::AsyncSampled(Every::Ms10) => "async-profiler clock, 10 ms",
            Config::AsyncSampled(Every::Ms1) => "async-profiler clock, 1 ms",
            Config::AsyncSampled(Every::Us100) => "async-profiler clock, 100 µs",
        }
    }

    /// What a user would type, for the documentation.
    pub fn command(self, include: &str) -> String {
        let java = format!("java {} …", JVM_OPTIONS.join(" "));
        let tare =
            |mode: Mode| format!("tare record {}", record_options(mode, include, "ROOT").join(" "));
        match self {
            Config::Plain => java,
            Config::Launched(mode) => format!("{} -- {java}", tare(mode)),
            Config::Attached(mode) => format!("{} PID", tare(mode)),
            Config::Jfr(jfr) => {
                let options = jfr.options(include);
                java.replace(" …", &format!(" -XX:StartFlightRecording:{options} …"))
            }
            Config::AsyncProfiler => java.replace(
                " …",
                " -agentpath:libasyncProfiler.so=start,event=ctimer,interval=10ms …",
            ),
            Config::VisualVm(Extent::Whole) => "JFluid … whole (bench/peers)".to_owned(),
            Config::VisualVm(Extent::Root) => "JFluid … root (bench/peers)".to_owned(),
            Config::MethodEvents => java.replace(" …", " -agentpath:method_events.so …"),
            Config::Sampled(every) => {
                format!("tare record --interval {} -- {java}", every.option())
            }
            Config::AsyncSampled(every) => {
                let options = format!("start,event=cpu-clock,interval={}", every.option());
                java.replace(" …", &format!(" -agentpath:libasyncProfiler.so={options} …"))
            }
        }
    }

    /// What this mode should cost at most, as we want it.
    pub fn target(self, workload: &str, jdk: u32) -> Option<f64> {
        Some(match (self, workload) {
            (Config::Launched(Mode::Count), "fib") => 2.2,
            (Config::Launched(Mode::Time), "fib") => 24.0,
            (Config::Launched(Mode::Count), "javac") if jdk < 25 => 2.7,
            (Config::Launched(Mode::Count), "javac") => 3.0,
            (Config::Launched(Mode::Time), "javac") if jdk < 25 => 7.5,
            (Config::Launched(Mode::Time), "javac") => 8.8,
            (Config::Launched(Mode::Bytecodes), "fib") => 3.7,
            (Config::Launched(Mode::Bytecodes), "javac") if jdk < 25 => 3.2,
            (Config::Launched(Mode::Bytecodes), "javac") => 3.7,
            (Config::Launched(Mode::Every10k | Mode::Random10k), _) => 1.4,
            (Config::Launched(Mode::Outside), _) => 1.1,
            (Config::Attached(Mode::Count), _) => 4.5,
            (Config::Attached(Mode::Outside), _) => 1.5,
            _ => return None,
        })
    }

    pub fn is_ours(self) -> bool {
        matches!(self, Config::Launched(_) | Config::Attached(_) | Config::Sampled(_))
    }

    fn is_other(self) -> bool {
        matches!(self, Config::VisualVm(_) | Config::MethodEvents)
    }

    /// Whether what it needs is here, and knows the JDK.
    pub fn can_run(self, bench: &Bench, workload: &Workload, jdk: u32) -> bool {
        match self {
            Config::Jfr(Jfr::CpuTime) => jdk >= JFR_MEASURES,
            Config::Jfr(Jfr::MethodTiming) => {
                jdk >= JFR_MEASURES && !workload.include.contains('*')
            }
            Config::AsyncProfiler | Config::AsyncSampled(_) => bench.async_profiler.is_some(),
            Config::VisualVm(_) => bench.peers.visual_vm.is_some() && jdk <= peers::VISUAL_VM_KNOWS,
            Config::MethodEvents => bench.peers.method_events.is_some(),
            _ => true,
        }
    }
}

fn record_options<'a>(mode: Mode, include: &'a str, root: &'a str) -> Vec<&'a str> {
    let mut words = vec![if mode == Mode::Trace { "--trace" } else { "--exact" }];
    words.extend(["--include", include]);
    match mode {
        // So many that it lasts to the end of the run.
        Mode::Trace => words.extend(["--events", "2G"]),
        Mode::Count => words.push("--count"),
        Mode::Time => {}
        Mode::Budget => words.extend(["--overhead", "20%"]),
        Mode::Rooted => words.extend(["--root", root]),
        Mode::Bytecodes => words.push("--bytecodes"),
        Mode::Precise => words.extend(["--bytecodes", "--blocks", "precise"]),
        Mode::Every1k => words.extend(["--bytecodes", "--every", "1000"]),
        Mode::Every10k => words.extend(["--bytecodes", "--every", "10000"]),
        Mode::Random10k => words.extend(["--bytecodes", "--every", "10000", "--random", "1"]),
        Mode::Every100k => words.extend(["--bytecodes", "--every", "100000"]),
        // What a root reaches would be found, and nothing else woven: all is asked for.
        Mode::Outside => {
            let [class, root] = BETWEEN;
            words.extend(["--count", "--scheme", "all", "--include", class, "--root", root]);
        }
    }
    words
}

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

    #[test]
    fn targets_differ_by_workload_and_jdk() {
        let count = Config::Launched(Mode::Count);
        assert_eq!(count.target("javac", 17), Some(2.7));
        assert_eq!(count.target("javac", 25), Some(3.0));
        assert_eq!(count.target("h2", 25), None);
        assert_eq!(Config::Plain.target("fib", 17), None);
    }
}
