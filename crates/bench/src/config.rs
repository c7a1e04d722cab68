//! The ways in which a workload is run: plain, under each mode of ours, and under the peers.
//!
//! This file names them and knows their options; `launch` runs them.

use crate::launch::{Bench, JVM_OPTIONS};
use crate::peers;
use crate::workloads::Workload;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Count,
    /// Times of a context's first calls and of one in so many.
    Time,
    /// Times of all calls.
    EveryTime,
    /// Times, with the probes held to a budget.
    Budget,
    /// Times of some calls of roots that are found, so many as 5 % allow for.
    Followed,
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
    /// Times of all methods of the classes that are woven for us, from JDK 25 on. It takes no
    /// patterns.
    MethodTiming,
}

impl Jfr {
    pub fn options(self, include: &str) -> String {
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
    Config::Launched(Mode::EveryTime),
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

/// The same with `--brief`: attaching takes as long as three launches, and the modes' own page
/// tells of it.
pub const BRIEF: [Config; 7] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Sampled(Every::Ms10),
    Config::AsyncSampled(Every::Ms10),
    Config::Jfr(Jfr::Profile),
    Config::Launched(Mode::Bytecodes),
    Config::Launched(Mode::Time),
];

pub const ALL: [Config; 13] = [
    Config::Plain,
    Config::Launched(Mode::Count),
    Config::Launched(Mode::Time),
    Config::Launched(Mode::EveryTime),
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
            Config::Launched(Mode::EveryTime) => "time of every call, launched",
            Config::Attached(Mode::EveryTime) => "time of every call, attached",
            Config::Launched(Mode::Budget) => "time within 20 %, launched",
            Config::Attached(Mode::Budget) => "time within 20 %, attached",
            Config::Launched(Mode::Followed) => "some calls within 5 %, launched",
            Config::Attached(Mode::Followed) => "some calls within 5 %, attached",
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
            (Config::Launched(Mode::Time), "h2") => 3.8,
            (Config::Launched(Mode::EveryTime), "fib") => 24.0,
            (Config::Launched(Mode::Count), "javac") if jdk < 25 => 2.7,
            (Config::Launched(Mode::Count), "javac") => 3.0,
            (Config::Launched(Mode::EveryTime), "javac") if jdk < 25 => 7.5,
            (Config::Launched(Mode::EveryTime), "javac") => 8.8,
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

    pub fn is_other(self) -> bool {
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

pub fn record_options<'a>(mode: Mode, include: &'a str, root: &'a str) -> Vec<&'a str> {
    let mut words = vec![if mode == Mode::Trace { "--trace" } else { "--exact" }];
    if mode != Mode::Followed {
        words.extend(["--include", include]);
    }
    match mode {
        Mode::Followed => words.extend(["--overhead", "5%", "--exclude", "bench.**"]),
        // So many that it lasts to the end of the run.
        Mode::Trace => words.extend(["--events", "2G"]),
        Mode::Count => words.push("--count"),
        Mode::Time => {}
        Mode::EveryTime => words.push("--time-all"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_differ_by_workload_and_jdk() {
        let count = Config::Launched(Mode::Count);
        assert_eq!(count.target("javac", 17), Some(2.7));
        assert_eq!(count.target("javac", 25), Some(3.0));
        assert_eq!(count.target("h2", 25), None);
        assert_eq!(Config::Plain.target("fib", 17), None);
    }
}
