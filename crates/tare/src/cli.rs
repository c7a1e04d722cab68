//! Every flag and every line of help, in one place.

/// What every command says about patterns.
macro_rules! patterns {
    () => {
        "PATTERNS: ** is anything, * anything without a dot, ? one character: com.acme.**, \
         com.acme.*.Order*. A method follows its class, com.acme.Orders.place, and its types tell \
         overloads apart, com.acme.Orders.place(int,String). In place of dots there may be /, # or ::. \
         What to record must fit as a whole; reports find parts of names, too, if there is neither * \
         nor ?: Orders, Orders.place."
    };
}

mod calibrate;
mod check;
mod export;
mod instrument;
mod profiles;
mod values;

pub use calibrate::CalibrateArgs;
pub use check::CheckArgs;
pub use export::{ExportArgs, help as help_of_export};
pub use instrument::InstrumentArgs;
pub use profiles::{By, DiffArgs, DiffFormat, ReportArgs, ReportFormat, ViewArgs};

use clap::{ArgGroup, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tare_offline::Modes;
use tare_protocol::{BlockAnalysis, MethodPattern, Pattern, Region, SampleEngine, Scheme};
pub use values::duration;
use values::{engine, interval, number, ring, size};

#[derive(Parser)]
#[command(
    name = "tare",
    version,
    about = "A profiler for running Java programs",
    long_about = "Tare measures running Java programs, and subtracts its own weight.\n\n\
                  Run `tare` alone to see the JVMs on this machine. Where a command takes a JVM, \
                  give its pid or any part of its main class or jar that only one JVM has.",
    after_help = "EXAMPLES:\n  \
                  tare                       which JVMs run here\n  \
                  tare status 4711           attach, and say how that JVM is\n  \
                  tare status OrderService   the same, by a part of the main class\n  \
                  tare record --exact 4711   every call in its context, until Ctrl-C\n  \
                  tare doctor 4711           what Tare can do with that JVM, and why not more\n  \
                  tare run -- java -jar app.jar   start a program with the agent inside\n  \
                  tare detach 4711           leave that JVM as if we had never been there\n  \
                  tare report run.tare       what a recording says, findings first\n  \
                  tare diff old.tare new.tare     what grew and what shrank\n  \
                  tare check --baseline perf.tare -- java -jar app.jar   a performance test that does not flake\n  \
                  tare export run.tare -o run.html        flame graph; pprof, JFR and more by ending\n  \
                  tare instrument app.jar -o woven.jar    counts by itself, wherever it runs\n  \
                  tare class print a.jar!X   look into a class file\n\n\
                  Exit status: 0 done, 1 could not be done, or nothing was recorded (the reason is on standard \
                  error), 2 wrong usage, 3 `tare diff --threshold` or `tare check` found growth, 130 stopped by Ctrl-C \
                  before anything was recorded; `tare run` ends as the program did, and so does `tare record` of a \
                  program that fails."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the JVMs on this machine
    Ps {
        /// One JSON array on standard output, for scripts
        #[arg(long)]
        json: bool,
    },
    /// Attach if need be, and show the state of a JVM and of the agent in it
    #[command(
        after_help = "The agent stays in the JVM, idle, for a minute after the last command (TARE_GRACE=10m: \
                            longer). Idle means: one thread asleep on a socket, nothing measured, nothing slower."
    )]
    Status(StatusArgs),
    /// Remove the agent from a JVM
    #[command(
        after_help = "Works for agents of any version of Tare. Nothing stays but the mapped \
                            library itself, which a JVM cannot unload."
    )]
    Detach {
        #[command(flatten)]
        target: Target,
    },
    /// Say what works on this machine, or with one JVM, and what would help where it does not
    Doctor {
        /// The JVM to look at: a pid or a part of its main class; without it only the machine
        jvm: Option<String>,
        /// Look from outside only; do not attach to ask the JVM itself
        #[arg(long, requires = "jvm")]
        no_attach: bool,
        /// One JSON object on standard output, for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        patience: Patience,
    },
    /// Complete a recording if the tool dies; `record --exact` starts it
    #[command(hide = true)]
    Guard { pid: u32, recording: PathBuf },
    /// Record what a running JVM does, or a program started for it: samples, or every call
    #[command(
        after_help = concat!(
            "Without a mode it samples what threads do on the processors, until Ctrl-C, after -d, \
                      or when the program ends, and changes nothing in the program. What was recorded is \
                      then in a .tare file, and its report on the terminal. --wall samples all threads by \
                      the clock on the wall, those that wait too, and tells how they wait. --exact weaves \
                      the chosen methods, counts every call of them in its context, and puts the original \
                      code back at the end; `tare report JVM` shows it at any moment in between. --bytecodes \
                      does the same with executed bytecodes in place of times.\n\n\
                      From a second terminal: `tare dump JVM` writes what there is so far, `tare interval \
                      JVM 1ms` changes the interval, `tare pause`, `tare resume`, `tare stop` do what they \
                      say.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  \
                      tare record 4711                     until Ctrl-C\n  \
                      tare record 4711 -d 30s -o cpu.html  a flame graph of 30 seconds\n  \
                      tare record Orders --wall --interval 20ms\n  \
                      tare record 4711 --keep 5m           the last five minutes, for `tare dump 4711`\n  \
                      tare record -- java -jar app.jar     from before main to the end\n  \
                      tare record --exact --include 'com.acme.**' Orders\n  \
                      tare record --exact --root com.acme.Orders.place -- java -jar app.jar\n  \
                      tare record --bytecodes -- java -jar app.jar    the same figures in every run\n  \
                      tare record --trace -d 2s -o t.trace.json Orders   a timeline for ui.perfetto.dev"
        )
    )]
    Record(Box<RecordArgs>),
    /// Write what a sampling recording has so far, or what it keeps, to a file; it goes on
    Dump {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
        /// Where it goes, in the format of its ending; without it a .tare file in this directory
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// End a sampling recording that another terminal began, as Ctrl-C there would
    Stop {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Take no samples for a while
    Pause {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Go on after `tare pause`
    Resume {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Change how often a recording takes samples
    Interval {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
        /// Time between two samples of a thread: 10ms, 1ms, 100us
        #[arg(value_parser = interval, value_name = "TIME")]
        interval: Duration,
    },
    /// Say why a method is woven or not, while `tare record --exact --root` is at work
    #[command(
        after_help = concat!(
            "Shows whether a method is woven, and through which callers it was found; or \
                            what keeps it from being woven.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  tare explain 4711 com.acme.Orders.place\n  \
                            tare explain Orders 'com.acme.**.save*'"
        )
    )]
    Explain(ExplainArgs),
    /// Start a Java program, or a script that starts some, with the agent inside
    #[command(
        after_help = "`java` itself gets -agentpath; anything else (mvn, ./gradlew, a start script) \
                      gets it through JAVA_TOOL_OPTIONS, added to what is there, so that every JVM \
                      that it starts is told apart. An agent that came in this way needs no attach \
                      later, and JDK 21 and newer print no warning about it.\n\n\
                      EXAMPLES:\n  tare run -- java -jar app.jar --port 8080\n  tare run -- ./gradlew test"
    )]
    Run {
        /// Do not report on standard error which JVMs started and ended
        #[arg(long, short)]
        quiet: bool,
        /// The command to run, after `--`
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Show what a recording says: findings, hot methods, the call tree
    #[command(
        after_help = concat!(
            "The page begins with what dominates, what was lost and how far to trust the \
                      rest. `itself` is what a method's own code took, `total` includes all that it \
                      called; a recursion counts once. Hiding, folding and grouping move values to \
                      where the label says and lose none.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  \
                      tare report run.tare                          the page\n  \
                      tare report run.tare --hide-jdk --package com.acme   your own code only\n  \
                      tare report run.tare --method Orders.place    its callers and callees\n  \
                      tare report run.tare --by package             per package; or jar, loader, line\n  \
                      tare report run.tare --threads --time 10s..20s\n  \
                      tare report run.tare --bottom-up --metric allocated-bytes\n  \
                      tare report run.tare --format json | jq '.methods[0]'"
        )
    )]
    Report(ReportArgs),
    /// Compare two recordings: regressions and improvements first
    #[command(
        after_help = concat!(
            "Methods meet by name; numbers that the JVM makes up anew in every run (lambdas, \
                      proxies) are ignored. The overlap sums up the smaller share of each context. Of \
                      samples, what chance explains is marked ≈ and exceeds no threshold (docs/guide/compare.md).\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  \
                      tare diff before.tare after.tare\n  \
                      tare diff before.tare after.tare --normalise      runs of different length\n  \
                      tare diff main.tare branch.tare --threshold 5%    exit status 3 if it grew more\n\n\
                      Exit status: 0 compared, 1 could not be compared, 2 wrong usage, 3 the whole or one \
                      method itself surely grew by more than the threshold (a share of the old whole)."
        )
    )]
    Diff(DiffArgs),
    /// Write a recording in another tool's format: flame graph, pprof, JFR, speedscope, …
    #[command(after_help = help_of_export())]
    Export(ExportArgs),
    /// Fail if a program, or one of its tests, executes or allocates more than its baseline says
    #[command(
        after_help = concat!(
            "Counts executed bytecodes, and objects and bytes that the program's own code allocates, \
                      per case: these do not depend on the machine or its load, so that the check holds on a \
                      shared runner. The baseline is a text file with a line per case.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  \
                      tare check --baseline perf.tare --update -- java -cp app.jar com.acme.Main\n  \
                      tare check --baseline perf.tare -- java -cp app.jar com.acme.Main\n  \
                      tare check --baseline perf.tare --root com.acme.Orders.place -- java -jar app.jar\n  \
                      tare check --baseline perf.tare --junit --include 'com.acme.**' -- mvn -q test\n\n\
                      Exit status: 0 within the tolerance, 1 could not be checked, 2 wrong usage, 3 something \
                      grew or did not run; that of the program, if it failed."
        )
    )]
    Check(CheckArgs),
    /// Make a jar, directory or class file count its own calls and bytecodes, without any agent
    #[command(after_help = instrument::HELP)]
    Instrument(InstrumentArgs),
    /// Measure what bytecodes cost on a JVM, for `tare record --bytecodes --target`
    #[command(after_help = calibrate::HELP)]
    CalibrateTarget(CalibrateArgs),
    /// Look into class files and jars, or weave probes into them, without any JVM
    #[command(subcommand)]
    Class(ClassCommand),
}

#[derive(Subcommand)]
pub enum ClassCommand {
    /// Print what a class file holds, much as javap does
    #[command(after_help = "EXAMPLES:\n  \
                      tare class print build/Order.class\n  \
                      tare class print app.jar!shop/Order     one class of a jar\n  \
                      tare class print app.jar                all of them")]
    Print {
        /// A class file, a jar, or JAR!CLASS with the class as shop/Order or shop.Order
        #[arg(value_name = "FILE|JAR[!CLASS]")]
        input: String,
    },
    /// Weave probes into a class file, a jar, or all of them below a directory
    #[command(
        after_help = "Methods that cannot be woven rightly stay as they are, and are listed \
                      by reason on standard error. Whatever is no class goes through unchanged; \
                      signatures of a jar are left out, because they cover what was changed.\n\n\
                      The woven code calls static methods of the runtime class (docs/internals/weaving.md \
                      lists them); it must be there when the program runs.\n\n\
                      EXAMPLES:\n  \
                      tare class weave --mode entry,count app.jar -o woven.jar\n  \
                      tare class weave --mode all --map ids.tsv classes/ -o woven/"
    )]
    Weave(WeaveArgs),
}

#[derive(Args)]
pub struct WeaveArgs {
    /// What to weave: one or more of entry, entry-object, count, count-precise, activation,
    /// activation-blocks, stack, regions, allocation, calls, separated by commas; or all
    #[arg(long, short, value_name = "MODE,…")]
    pub mode: Modes,
    /// A class file, a jar or a directory
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Where the result goes: a file for a file, a directory for a directory
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// The class whose static methods the woven code calls
    #[arg(long, value_name = "CLASS", default_value = "java.lang.TareProbe")]
    pub runtime: String,
    /// Weave methods, too, that pass 8,000 bytes by it; HotSpot does not compile those
    #[arg(long)]
    pub allow_huge: bool,
    /// With regions: the source lines to time; without it, the middle of each method
    #[arg(long, value_name = "FIRST-LAST", value_parser = lines)]
    pub lines: Option<(u16, u16)>,
    /// Bytecodes after which a loop takes its count to the runtime
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub flush_every: u32,
    /// Write a table of all methods to this file: id, class, method, descriptor, outcome
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// The totals as one JSON object on standard output, for scripts
    #[arg(long)]
    pub json: bool,
    /// List every refused method, not only some
    #[arg(long, short)]
    pub verbose: bool,
}

/// `10-20`, or one line.
fn lines(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok((first, last)),
        _ => Err("write two line numbers, as 10-20".to_owned()),
    }
}

const SAMPLING: &str = "Sampling";
const EXACT: &str = "Exact recordings";
const TRACE: &str = "Traces";

#[derive(Args)]
#[command(
    group(ArgGroup::new("woven").multiple(true).args(["exact", "bytecodes", "trace"])),
    group(ArgGroup::new("changed").multiple(true).args(["exact", "bytecodes", "trace", "region"])),
    group(ArgGroup::new("untimed").args(["count", "bytecodes"])),
)]
pub struct RecordArgs {
    /// A pid, or a part of the main class or jar that only one JVM has
    #[arg(value_name = "JVM", required_unless_present = "command", conflicts_with = "command")]
    pub jvm: Option<String>,
    /// Sample all threads by the clock on the wall, with what they wait for
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub wall: bool,
    /// Time between two samples of a thread: 10ms, 1ms, 100us; without it 10ms
    #[arg(long, value_parser = interval, value_name = "TIME", conflicts_with = "woven", help_heading = SAMPLING)]
    pub interval: Option<Duration>,
    /// What makes threads tell where they are: perf-cycles, perf-clock, timer or safepoint; without
    /// it the best that works here
    #[arg(long, value_parser = engine, value_name = "ENGINE", conflicts_with = "woven", help_heading = SAMPLING)]
    pub engine: Option<SampleEngine>,
    /// Java frames only, without those of the JVM, of native libraries and of the kernel
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub java_only: bool,
    /// Show the report by thread
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub threads: bool,
    /// Keep the last minutes only, in memory; `tare dump` and the end write them
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with = "woven", help_heading = SAMPLING)]
    pub keep: Option<Duration>,
    /// Exact calling-context trees, by weaving
    #[arg(long, help_heading = EXACT)]
    pub exact: bool,
    /// Count the bytecodes that each context executes, beside its calls: figures that are the same
    /// in every run of a program that does the same
    #[arg(long, help_heading = EXACT)]
    pub bytecodes: bool,
    /// Every entry and exit with its time, for a timeline, and the calling-context tree made of them; as
    /// much as --duration, --root, --rate, --events and --ring leave of it
    #[arg(long, help_heading = TRACE, conflicts_with_all = [
        "exact", "bytecodes", "count", "region", "cpu", "cpu_time", "count_only", "follow_threads", "depth"])]
    pub trace: bool,
    /// With --trace: events per second of all threads together; what comes quicker is dropped and counted
    #[arg(long, value_name = "N", value_parser = number, requires = "trace", help_heading = TRACE)]
    pub rate: Option<u64>,
    /// With --trace: events after which it ends
    #[arg(long, value_name = "N", value_parser = number, default_value = "100M", requires = "trace", help_heading = TRACE)]
    pub events: u64,
    /// With --trace: memory for the events of a thread until they are taken from there. A ring that is full never holds the program up: what finds no room is dropped and counted
    #[arg(long, value_name = "SIZE", value_parser = ring, default_value = "4M", requires = "trace", help_heading = TRACE)]
    pub ring: u64,
    /// With --trace: let a thread whose ring is full wait for so long, a second at most; kept out of the times
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "trace", conflicts_with = "rate", help_heading = TRACE)]
    pub wait: Option<Duration>,
    /// With --bytecodes: whether an exception may end a block of code that was counted as a whole (default), or nothing is counted that did not run (precise)
    #[arg(long, value_name = "ANALYSIS", default_value_t, requires = "bytecodes", help_heading = EXACT)]
    pub blocks: BlockAnalysis,
    /// With --bytecodes: count what the bytecodes would cost on another JVM, in nanoseconds, by what `tare calibrate-target` found of it
    #[arg(long, value_name = "FILE", requires = "bytecodes", help_heading = EXACT, conflicts_with_all = ["every", "agent_jar", "allocations"])]
    pub target: Option<PathBuf>,
    /// With --bytecodes: do not count each call, but take a sample of its stack whenever a thread has executed
    /// so many bytecodes; much cheaper, still the same in every run. 10000 is a good distance
    #[arg(long, value_name = "N", requires = "bytecodes", help_heading = EXACT, conflicts_with_all = ["root", "allocations"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub every: Option<u32>,
    /// With --every: make the distance random around N, from half to half more, so that a program's own rhythm
    /// cannot hide in it; the same seed gives the same samples
    #[arg(long, value_name = "SEED", requires = "every", help_heading = EXACT)]
    pub random: Option<u64>,
    /// With --bytecodes: the jar of an agent written in Java (docs/guide/java-agents.md), which is told of the contexts that
    /// threads are in; it must be readable for the JVM
    #[arg(long, value_name = "FILE", requires = "bytecodes", help_heading = EXACT)]
    pub agent_jar: Option<PathBuf>,
    /// With --bytecodes: count objects and bytes that the woven code allocates, too
    #[arg(long, requires = "bytecodes", help_heading = EXACT)]
    pub allocations: bool,
    /// With --bytecodes: leave identity hash codes, the order of Set.of and Map.of, and the seeds of
    /// random numbers of a program that is started as they come; without it they are the same in every run
    #[arg(long, requires = "bytecodes", help_heading = EXACT)]
    pub as_it_comes: bool,
    /// Count calls only; times are left out, and the program stays much quicker
    #[arg(long, conflicts_with = "bytecodes", requires = "woven", help_heading = EXACT)]
    pub count: bool,
    /// Only methods of these classes; what others do stays with the caller that fits. Without it
    /// samples show all, and exact recordings every class that is not the JDK's
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// No methods of these classes; what they do stays with their callers
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// Methods where the profile begins, as com.acme.Orders.place or, to tell overloads apart,
    /// com.acme.Orders.place(int,String): what they call, directly or not, is found and woven
    #[arg(long, value_name = "METHOD", requires = "woven", help_heading = EXACT)]
    pub root: Vec<MethodPattern>,
    /// How what the roots reach is found: when a method first runs (lazy), from the code of all
    /// loaded classes (eager), or not at all, by weaving everything (all)
    #[arg(long, value_name = "SCHEME", default_value_t, requires = "root", help_heading = EXACT)]
    pub scheme: Scheme,
    /// Threads that are started below a root are below it, too, and so are the tasks that are handed to
    /// executors there; the tree says which thread they come from
    #[arg(long, requires = "root", help_heading = EXACT)]
    pub follow_threads: bool,
    /// Time every passage of some source lines, com.acme.Orders:120-148, or of a method,
    /// com.acme.Orders.place: count, least, mean, most and quantiles, per thread. Without --exact
    /// nothing else is woven
    #[arg(long, value_name = "LINES|METHOD", help_heading = EXACT,
          conflicts_with_all = ["wall", "interval", "engine", "java_only", "threads", "keep", "bytecodes"])]
    pub region: Vec<Region>,
    /// Leave methods as they are that are empty, or only hand out or store a field; what they
    /// do is then counted with their callers (with --root that is so by default)
    #[arg(long, requires = "woven", help_heading = EXACT)]
    pub skip_trivial: bool,
    /// Weave such methods too
    #[arg(long, conflicts_with = "skip_trivial", requires = "woven", help_heading = EXACT)]
    pub no_skip_trivial: bool,
    /// Methods to count but not to time, for short ones that are called often
    #[arg(long, value_name = "METHOD", conflicts_with = "untimed", requires = "woven", help_heading = EXACT)]
    pub count_only: Vec<MethodPattern>,
    /// Time every method, also those that call nothing and have no loop: as a rule they are only
    /// counted, because they are over sooner than the clock is read, and their time is their callers'
    #[arg(long, conflicts_with = "untimed", requires = "exact", help_heading = EXACT)]
    pub time_all: bool,
    /// Hold the probes to this share of the program's own time: methods that are short and called
    /// often are counted and not timed, for as long as they are: 20%
    #[arg(long, value_name = "SHARE", value_parser = profiles::share, conflicts_with = "count", requires = "exact", help_heading = EXACT)]
    pub overhead: Option<f64>,
    /// Sample the program first, with next to nothing woven, and join calls with samples: processor
    /// time and time per call of every context, also of short methods
    #[arg(long, requires_all = ["exact", "jvm"], help_heading = EXACT)]
    pub cpu: bool,
    /// With --cpu: how long to sample
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5s", requires = "cpu", help_heading = EXACT)]
    pub window: Duration,
    /// Measure time that threads spent on a processor, not time that passed; dearer, and not for
    /// virtual threads
    #[arg(long, conflicts_with = "untimed", requires = "woven", help_heading = EXACT)]
    pub cpu_time: bool,
    /// Beside it, of each thread: instructions and cache misses where the machine counts them, page
    /// faults, context switches
    #[arg(long, requires = "exact", help_heading = EXACT)]
    pub counters: bool,
    /// Sum up contexts that are deeper than this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Count a method that is called while it is already under way in its outer context: trees of
    /// recursive programs stay small (only with --count or --bytecodes; reports can fold times afterwards)
    #[arg(long, requires = "untimed", help_heading = EXACT)]
    pub fold_recursion: bool,
    /// Samples of the same program, recorded before: says at the start what weaving will cost at most
    #[arg(long, value_name = "FILE", requires = "woven", help_heading = EXACT)]
    pub sample: Option<PathBuf>,
    /// Weave methods that get so large that HotSpot no longer compiles them
    #[arg(long, requires = "changed", help_heading = EXACT)]
    pub allow_huge: bool,
    /// How long to record, once all is woven; without it until Ctrl-C or the end of the program
    #[arg(long, short, value_parser = duration, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Memory for the trees, in the profiled JVM; beyond it the least important contexts are
    /// summed up. 256M, with --overhead 1G
    #[arg(long, default_value = "256M", default_value_if("overhead", clap::builder::ArgPredicate::IsPresent, "1G"), hide_default_value = true, value_parser = size, value_name = "SIZE", help_heading = EXACT)]
    pub memory: u64,
    /// Where the recording goes: x.tare, or x.html for a flame graph, x.pb.gz for pprof, …; without
    /// it a new .tare file named after program, pid and what is recorded
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Say nothing of the recording and show no report
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub patience: Patience,
    /// For `tare check`, which needs to tell pieces of parallel work apart
    #[arg(skip)]
    pub for_check: bool,
    /// The program to start and record, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl RecordArgs {
    /// What the words of a command line mean.
    pub fn of(words: Vec<OsString>) -> Result<Self, clap::Error> {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            args: RecordArgs,
        }
        let words = std::iter::once("record".into()).chain(words);
        Alone::try_parse_from(words).map(|alone| alone.args)
    }
}

#[derive(Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub target: Target,
    /// The method: com.acme.Orders.place, or a pattern
    #[arg(value_name = "METHOD")]
    pub method: MethodPattern,
}

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub target: Target,
    /// One JSON object on standard output, for scripts
    #[arg(long)]
    pub json: bool,
    /// Count events (threads, classes, collections, compilations) and print them until Ctrl-C
    #[arg(long, short, conflicts_with = "json")]
    pub watch: bool,
    /// With --watch: time between two lines
    #[arg(long, default_value = "1s", value_parser = duration, requires = "watch", value_name = "TIME")]
    pub interval: Duration,
}

#[derive(Args)]
pub struct Target {
    /// A pid, or a part of the main class or jar that only one JVM has
    #[arg(value_name = "JVM")]
    pub jvm: String,
    #[command(flatten)]
    pub patience: Patience,
}

#[derive(Args)]
pub struct Patience {
    /// How long to wait for the JVM before giving up
    #[arg(
        long,
        env = "TARE_TIMEOUT",
        default_value = "10s",
        value_parser = duration,
        value_name = "TIME",
        hide_env_values = true
    )]
    pub timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_can_be_recorded_quietly() {
        for words in [&["-q", "1"][..], &["-q", "--wall", "1"], &["-q", "--region", "a.B.c", "1"]] {
            assert!(RecordArgs::of(words.iter().map(Into::into).collect()).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn lines_are_a_range() {
        assert_eq!(lines("10-20"), Ok((10, 20)));
        assert_eq!(lines("7"), Ok((7, 7)));
        for bad in ["", "0", "20-10", "a-b", "1-70000", "-3"] {
            assert!(lines(bad).is_err(), "{bad}");
        }
    }
}
