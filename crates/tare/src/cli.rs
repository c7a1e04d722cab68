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
mod climb;
mod export;
mod heap;
mod host;
mod instrument;
mod profiles;
mod record;
mod threads;
mod top;
mod values;
mod view;

pub use calibrate::CalibrateArgs;
pub use check::CheckArgs;
pub use climb::ClimbArgs;
pub use export::{ExportArgs, help as help_of_export};
pub use heap::{HeapArgs, HeapWhat, HistoBy, Keep};
pub use host::{HostArgs, RelayArgs};
pub use instrument::InstrumentArgs;
pub use profiles::{By, DiffArgs, DiffFormat, ReportArgs, ReportFormat, ViewArgs};
pub use record::{LockDepth, RecordArgs};
pub use threads::ThreadsArgs;
pub use top::TopArgs;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tare_offline::Modes;
use tare_protocol::MethodPattern;
use tare_session::command_socket::Interval;
pub use values::duration;
use values::{any_interval, threshold};
pub use view::ViewerArgs;

#[derive(Parser)]
#[command(
    name = "tare",
    version = concat!(env!("CARGO_PKG_VERSION"), " (build ", env!("TARE_BUILD"), ")"),
    about = "A profiler for running Java programs",
    long_about = "Tare profiles running Java programs: by samples, or every call, with its own cost \
                  subtracted.\n\n\
                  Run `tare` alone to list the JVMs on this machine. A JVM is named by its pid, or by a \
                  part of its main class or jar that only one JVM has.",
    after_help = "EXAMPLES:\n  \
                  tare                       list the JVMs on this machine\n  \
                  tare record 4711           sample it until Ctrl-C, then show where time goes\n  \
                  tare record Orders -d 30s -o cpu.html   the same JVM by its class; a flame graph\n  \
                  tare top 4711              watch it live, in the terminal
  \
                  tare threads 4711          deadlocks, and what every thread waits for\n  \
                  tare record --exact 4711   count and time every call, until Ctrl-C\n  \
                  tare doctor 4711           what works with that JVM, and what to change\n  \
                  tare climb 4711            who calls what is hot, how often, and who pays
  \
                  tare run -- java -jar app.jar   start a program with the agent inside\n  \
                  tare detach 4711           remove the agent again\n  \
                  tare report run.tare       findings, hot methods, the call tree\n  \
                  tare view run.tare         the same as a page in the browser; also of a JVM, live\n  \
                  tare diff old.tare new.tare     what grew and what shrank\n  \
                  tare check --baseline perf.tare -- java -jar app.jar   fail if it does more work than before\n  \
                  tare export run.tare -o run.html        flame graph; pprof, JFR and more by ending\n  \
                  tare heap 4711             what holds the memory; also of a heap dump\n  \
                  tare instrument app.jar -o woven.jar    a jar that profiles itself, without an agent\n  \
                  tare class print a.jar!X   show what a class file holds\n  \
                  tare --host ann@box threads 4711   any of this, of a JVM elsewhere\n\n\
                  Exit status: 0 success; 1 failure, or nothing was recorded (the reason is on standard error); \
                  2 wrong usage; 3 `tare diff --threshold` or `tare check` found growth, `tare threads` a deadlock; 130 stopped by Ctrl-C \
                  before anything was recorded. `tare run` returns the program's status, and so does `tare record` \
                  if the program fails."
)]
pub struct Cli {
    #[command(flatten)]
    pub at: HostArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the JVMs on this machine
    Ps {
        /// Print one JSON array, for scripts
        #[arg(long)]
        json: bool,
    },
    /// Attach if necessary, and show the state of a JVM and its agent
    #[command(
        after_help = "The agent stays in the JVM for a minute after the last command (TARE_GRACE=10m: ten \
                            minutes). It is then idle: one thread asleep on a socket, nothing measured."
    )]
    Status(StatusArgs),
    /// Remove the agent from a JVM
    #[command(
        after_help = "Works for agents of any version of Tare. Only the mapped library stays, which a JVM \
                            cannot unload."
    )]
    Detach {
        #[command(flatten)]
        target: OneJvm,
    },
    /// Show what all threads of a JVM do and wait for, deadlocks first
    #[command(after_help = threads::HELP)]
    Threads(ThreadsArgs),
    /// Watch a JVM live in the terminal: methods, threads, collections, locks, classes
    #[command(after_help = top::HELP)]
    Top(TopArgs),
    /// Check what works on this machine or with one JVM, and what to change
    Doctor {
        /// The JVM to check: a pid or a part of its main class [default: only the machine]
        jvm: Option<String>,
        /// Check from outside only; do not attach
        #[arg(long, requires = "jvm")]
        no_attach: bool,
        /// Print one JSON object, for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        patience: Patience,
    },
    /// Record a running JVM, or a program to start: samples, or every call
    #[command(
        after_help = concat!(
            "MODES:\n  \
                      (none)       samples of processor time; changes nothing in the program\n  \
                      --wall       samples of all threads by the wall clock, with what they wait for\n  \
                      --alloc      samples of allocated objects by class and stack, which of them live and\n               \
                      for how long; with --cpu or --wall, in one recording with those samples\n  \
                      --lock       waits for locks: how long, where, who had the lock and what it did; with\n               \
                      --cpu, --wall or --alloc, in one recording with those\n  \
                      --classes    classes that are loaded and unloaded: why, by which loader, at what cost;\n               \
                      with --cpu, --wall, --alloc or --lock, in one recording with those\n  \
                      --jni-refs   global references of native code: who makes them, which are never deleted\n  \
                      --exact      every call in its context, by weaving the chosen methods; the original\n               \
                      code is restored at the end\n  \
                      --bytecodes  the same, with executed bytecodes in place of times\n  \
                      --trace      every entry and exit, for a timeline\n\n\
                      A recording ends at Ctrl-C, after -d, or with the program. It is then in a .tare file, \
                      and its report on the terminal.\n\n\
                      From a second terminal: `tare report JVM` shows the recording so far, `tare dump JVM` \
                      writes it to a file, `tare interval JVM 1ms` (or 64K, of \
                      allocation) changes the interval, `tare threshold JVM 1ms` that of waits for locks; `tare pause`, `tare resume` and `tare stop` work as well.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  \
                      tare record 4711                     until Ctrl-C\n  \
                      tare record 4711 -d 30s -o cpu.html  a flame graph of 30 seconds\n  \
                      tare record Orders --wall --interval 20ms\n  \
                      tare record --alloc 4711             who allocates, and what stays\n  \
                      tare record --alloc --cpu 4711       and where time goes, on one clock\n  \
                      tare record --lock 4711              who waits for whom, and why\n  \
                      tare record --classes -- java -jar app.jar  what start-up spends on classes\n  \
                      tare record 4711 --keep 5m           the last five minutes, for `tare dump 4711`\n  \
                      tare record -- java -jar app.jar     from before main to the end\n  \
                      tare record --exact --include 'com.acme.**' Orders\n  \
                      tare record --exact --root com.acme.Orders.place -- java -jar app.jar\n  \
                      tare record --bytecodes -- java -jar app.jar    the same figures in every run\n  \
                      tare record --trace -d 2s -o t.trace.json Orders   a timeline for ui.perfetto.dev"
        )
    )]
    Record(Box<RecordArgs>),
    /// Follow hot spots upwards to who calls them, with hooks in a few methods at a time
    #[command(after_help = climb::HELP)]
    Climb(ClimbArgs),
    /// Write a recording in progress to a file; it goes on
    Dump {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
        /// The file to write; its ending chooses the format [default: a .tare file in this
        /// directory]
        #[arg(long, short, value_name = "FILE", allow_hyphen_values = true, value_parser = values::output)]
        output: Option<PathBuf>,
    },
    /// End a recording that another terminal began, as Ctrl-C there would
    Stop {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Pause a sampling recording
    Pause {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Resume a recording after `tare pause`
    Resume {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
    },
    /// Change the sampling interval of a recording in progress
    Interval {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
        /// Time between two samples of a thread: 10ms, 1ms, 100us; or bytes between two samples of
        /// allocation: 512K, 64K
        #[arg(value_parser = any_interval, value_name = "TIME|SIZE")]
        interval: Interval,
    },
    /// Change the shortest wait that a recording of locks tells by itself
    Threshold {
        /// The JVM that is being recorded: a pid, or a part of its main class or jar
        jvm: String,
        /// 10us, 1ms; 0 is every wait
        #[arg(value_parser = threshold, value_name = "TIME")]
        threshold: Duration,
    },
    /// Explain why a method is woven or not, during `tare record --exact --root`
    #[command(
        after_help = concat!(
            "Shows whether a method is woven and through which callers it was found, or what \
                            prevents it.\n\n",
            patterns!(),
            "\n\nEXAMPLES:\n  tare explain 4711 com.acme.Orders.place\n  \
                            tare explain Orders 'com.acme.**.save*'"
        )
    )]
    Explain(ExplainArgs),
    /// Start a Java program, or a script that starts JVMs, with the agent inside
    #[command(
        after_help = "`java` gets the option -agentpath. Anything else (mvn, ./gradlew, a start script) gets \
                      the agent through JAVA_TOOL_OPTIONS, added to what is there; each JVM that it starts \
                      is reported. Later commands then need no attach, and JDK 21 and newer print no \
                      warning.\n\n\
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
    /// Show a recording: findings, hot methods, the call tree
    #[command(
        after_help = concat!(
            "The page begins with what dominates, what was lost, and how far to trust the rest. \
                      `itself` is what a method's own code took; `total` includes what it called. A \
                      recursion counts once. Hiding, folding and grouping lose no values: they move to \
                      the caller or the group.\n\n",
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
    /// Show a recording or a JVM as a page in the browser: flame graph, methods, time line, threads
    #[command(after_help = view::HELP)]
    View(ViewerArgs),
    /// Compare two recordings: regressions and improvements first
    #[command(
        after_help = concat!(
            "Methods are matched by name; numbers that the JVM generates in every run (lambdas, \
                      proxies) are ignored. The overlap is the sum of the smaller share of each context. \
                      In samples, differences that chance explains are marked ≈ and exceed no threshold \
                      (docs/guide/compare.md).\n\n",
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
    /// Fail if a program or a test executes or allocates more than its baseline
    #[command(
        after_help = concat!(
            "Counts executed bytecodes, and the objects and bytes that the program's own code \
                      allocates, per case. They do not depend on the machine or its load, so the check works \
                      on a shared runner. The baseline is a text file with a line per case.\n\n",
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
    /// Show what holds the memory of a running JVM, or in a heap dump, and by whom
    #[command(after_help = heap::HELP)]
    Heap(HeapArgs),
    /// Weave a jar, directory or class file that then profiles itself, without an agent
    #[command(after_help = instrument::HELP)]
    Instrument(InstrumentArgs),
    /// Measure what bytecodes cost on a JVM, for `tare record --bytecodes --target`
    #[command(after_help = calibrate::HELP)]
    CalibrateTarget(CalibrateArgs),
    /// Print or weave class files and jars, without a JVM
    #[command(subcommand)]
    Class(ClassCommand),
    /// The far end of `tare --host`, on standard input and output
    #[command(hide = true)]
    Relay(RelayArgs),
}

#[derive(Subcommand)]
pub enum ClassCommand {
    /// Print what a class file holds, like javap
    #[command(after_help = "EXAMPLES:\n  \
                      tare class print build/Order.class\n  \
                      tare class print app.jar!shop/Order     one class of a jar\n  \
                      tare class print app.jar                all of them")]
    Print {
        /// A class file, a jar, or JAR!CLASS with the class as shop/Order or shop.Order
        #[arg(value_name = "FILE|JAR[!CLASS]")]
        input: String,
    },
    /// Weave probes into a class file, a jar or a directory of them
    #[command(
        after_help = "Methods that cannot be woven stay as they are, and are listed by reason on standard \
                      error. Files that are no classes stay as they are. Signatures of a jar are removed, \
                      because they cover what was changed.\n\n\
                      The woven code calls static methods of the runtime class (docs/internals/weaving.md \
                      lists them), which must be there when the program runs.\n\n\
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
    #[arg(long, short, value_name = "OUT", allow_hyphen_values = true, value_parser = values::output)]
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
    /// Print the totals as one JSON object, for scripts
    #[arg(long)]
    pub json: bool,
    /// List all refused methods, not only the first
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

#[derive(Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub target: OneJvm,
    /// The method: com.acme.Orders.place, or a pattern
    #[arg(value_name = "METHOD")]
    pub method: MethodPattern,
}

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub target: OneJvm,
    /// Print one JSON object, for scripts
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
pub struct OneJvm {
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

impl Patience {
    /// For commands that have no flag for it.
    pub fn usual() -> Result<Duration, String> {
        match std::env::var("TARE_TIMEOUT") {
            Ok(text) => duration(&text).map_err(|e| format!("TARE_TIMEOUT={text}: {e}")),
            Err(_) => Ok(Duration::from_secs(10)),
        }
    }
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
            let words = ["tare", "record"].iter().chain(words);
            assert!(Cli::try_parse_from(words.clone()).is_ok(), "{words:?}");
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
