//! The flags of `tare record`.

use super::Patience;
use super::values::{
    Budget, budget, duration, engine, interval, interval_bytes, number, one_in, ring, size,
    threshold,
};
use clap::builder::ArgPredicate;
use clap::{ArgGroup, Args, Parser, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tare_protocol::{
    BlockAnalysis, MethodPattern, Pattern, Region, SampleTrigger, Scheme, TypePattern,
};

const SAMPLING: &str = "Sampling";
const ALLOCATION: &str = "Allocation";
const LOCKS: &str = "Locks";
const CLASSES: &str = "Classes";
const NATIVE: &str = "Native code";
const EXACT: &str = "Exact recordings";
const TRACE: &str = "Traces";

/// What a recording of locks may do to see waits.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LockDepth {
    /// Weaves nothing into a running JVM
    Default,
    /// Weaves classes of the JDK
    Full,
}

#[derive(Args)]
#[command(
    group(ArgGroup::new("woven").multiple(true).args(["exact", "bytecodes", "alloc_exact", "trace"])),
    group(ArgGroup::new("changed").multiple(true).args(["exact", "bytecodes", "alloc_exact", "trace", "region"])),
    group(ArgGroup::new("drawn").multiple(true).args(["follow", "overhead"])),
    group(ArgGroup::new("untimed").args(["count", "bytecodes", "alloc_exact"])),
)]
pub struct RecordArgs {
    /// A pid, or a part of the main class or jar that only one JVM has
    #[arg(value_name = "JVM", required_unless_present = "command", conflicts_with = "command")]
    pub jvm: Option<String>,
    /// Sample all threads by the wall clock, with what they wait for
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub wall: bool,
    /// Time between two samples of a thread: 1ms, 100us [default: 10ms]
    #[arg(long, value_parser = interval, value_name = "TIME", conflicts_with = "woven", help_heading = SAMPLING)]
    pub interval: Option<Duration>,
    /// What interrupts threads for a sample: perf-cycles, perf-clock, timer or safepoint [default:
    /// the best that works]
    #[arg(long, value_parser = engine, value_name = "ENGINE", conflicts_with = "woven", help_heading = SAMPLING)]
    pub engine: Option<SampleTrigger>,
    /// Record Java frames only: none of the JVM, native libraries or the kernel
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub java_only: bool,
    /// Show the report thread by thread
    #[arg(long, conflicts_with = "woven", help_heading = SAMPLING)]
    pub threads: bool,
    /// Keep only the last minutes, in memory; `tare dump` and the end of the recording write them
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with = "woven", help_heading = SAMPLING)]
    pub keep: Option<Duration>,
    /// Sample allocated objects by class and stack, and tell which of them live and for how many
    /// collections. With --cpu or --wall, samples of threads go into the same recording
    #[arg(long, conflicts_with_all = ["woven", "region"], help_heading = ALLOCATION)]
    pub alloc: bool,
    /// With --alloc: bytes that are allocated between two samples, on average: 64K, 4M [default:
    /// 512K]
    #[arg(long, value_parser = interval_bytes, value_name = "SIZE", requires = "alloc", help_heading = ALLOCATION)]
    pub interval_bytes: Option<u64>,
    /// With --alloc: do not watch which of the objects live
    #[arg(long, requires = "alloc", help_heading = ALLOCATION)]
    pub no_live: bool,
    /// Record every wait for a monitor or a lock of java.util.concurrent that another thread had: how
    /// long, where, for which lock, and who had it and what that thread did; and waits for other
    /// threads, for queues and in sleep. With --cpu, --wall or --alloc, in one recording with those.
    /// In a running JVM `--lock=full` weaves a few classes of the JDK, as is done in a program that is
    /// started here: then tasks in the queues of executors are told, too
    #[arg(
        long,
        value_name = "full",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "default",
        conflicts_with_all = ["woven", "region"],
        help_heading = LOCKS
    )]
    pub lock: Option<LockDepth>,
    /// With --lock: waits from this length on are recorded one by one, with their stacks; shorter
    /// ones are counted and summed up: 1ms, 50us [default: 10us]
    #[arg(long, value_parser = threshold, value_name = "TIME", requires = "lock", help_heading = LOCKS)]
    pub lock_threshold: Option<Duration>,
    /// Record every class that is loaded: why (the stack), by which loader, from where, and what it
    /// cost, without the other classes that had to be loaded for it; which classes are linked, and
    /// which are unloaded. With --cpu, --wall, --alloc or --lock, in one recording with those
    #[arg(long, conflicts_with_all = ["woven", "region"], help_heading = CLASSES)]
    pub classes: bool,
    /// Record global and weak global references that native code makes through JNI: who makes them,
    /// by native and Java stack, and which are not deleted by the end. With others, in one recording
    #[arg(long, conflicts_with_all = ["woven", "region"], help_heading = NATIVE)]
    pub jni_refs: bool,
    /// Count and time every call in its calling context, by weaving probes
    #[arg(long, help_heading = EXACT)]
    pub exact: bool,
    /// Count calls and executed bytecodes: figures that do not change from run to run
    #[arg(long, help_heading = EXACT)]
    pub bytecodes: bool,
    /// Count every object that woven code allocates, and its bytes, by calling context, class and
    /// line
    #[arg(long, help_heading = EXACT, conflicts_with_all = ["exact", "trace", "region"])]
    pub alloc_exact: bool,
    /// With --alloc-exact: watch every object of these classes, and tell which of them live and for
    /// how many collections: com.acme.**, byte[]; may be repeated. At most 1 M objects at once
    #[arg(long, value_name = "CLASS", requires = "alloc_exact", help_heading = EXACT)]
    pub live: Vec<TypePattern>,
    /// Record every entry and exit with its time, for a timeline. Bound it by --duration, --root,
    /// --rate, --events and --ring
    #[arg(long, help_heading = TRACE, conflicts_with_all = [
        "exact", "bytecodes", "count", "region", "cpu", "cpu_time", "count_only", "follow_threads", "depth"])]
    pub trace: bool,
    /// With --trace: at most so many events per second, of all threads; the rest is dropped and
    /// counted
    #[arg(long, value_name = "N", value_parser = number, requires = "trace", help_heading = TRACE)]
    pub rate: Option<u64>,
    /// With --trace: end after so many events
    #[arg(long, value_name = "N", value_parser = number, default_value = "100M", requires = "trace", help_heading = TRACE)]
    pub events: u64,
    /// With --trace: memory for the unread events of a thread. When it is full, events are dropped
    /// and counted; the program does not wait
    #[arg(long, value_name = "SIZE", value_parser = ring, default_value = "4M", requires = "trace", help_heading = TRACE)]
    pub ring: u64,
    /// With --trace: let a thread whose ring is full wait so long, one second at most; times
    /// exclude the wait
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "trace", conflicts_with = "rate", help_heading = TRACE)]
    pub wait: Option<Duration>,
    /// With --bytecodes: `default` counts a whole block even if an exception leaves it half way;
    /// `precise` counts exactly what ran
    #[arg(long, value_name = "ANALYSIS", default_value_t, requires = "bytecodes", help_heading = EXACT)]
    pub blocks: BlockAnalysis,
    /// With --bytecodes: estimate nanoseconds on another JVM, from the file that `tare
    /// calibrate-target` wrote for it
    #[arg(long, value_name = "FILE", requires = "bytecodes", help_heading = EXACT, conflicts_with_all = ["every", "agent_jar", "allocations"])]
    pub target: Option<PathBuf>,
    /// With --bytecodes: sample the stack each N bytecodes of a thread instead of counting every
    /// call; cheaper, and still the same in every run. 10000 is a good start
    #[arg(long, value_name = "N", requires = "bytecodes", help_heading = EXACT, conflicts_with_all = ["root", "allocations"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub every: Option<u32>,
    /// With --every: vary the distance at random from N/2 to 3N/2, so that it cannot coincide with
    /// the program's own rhythm; the same seed gives the same samples
    #[arg(long, value_name = "SEED", requires = "every", help_heading = EXACT)]
    pub random: Option<u64>,
    /// With --bytecodes: run an agent written in Java from this jar, which the JVM must be able to
    /// read (docs/guide/java-agents.md)
    #[arg(long, value_name = "FILE", requires = "bytecodes", help_heading = EXACT)]
    pub agent_jar: Option<PathBuf>,
    /// With --bytecodes: count the objects and bytes that woven code allocates, too
    #[arg(long, requires = "bytecodes", help_heading = EXACT)]
    pub allocations: bool,
    /// With --bytecodes: do not fix identity hash codes, the order of Set.of and Map.of and the
    /// seeds of random numbers; by default a program that is started has the same ones in every run
    #[arg(long, requires = "bytecodes", help_heading = EXACT)]
    pub as_it_comes: bool,
    /// Count calls and do not time them; much cheaper
    #[arg(long, conflicts_with = "bytecodes", requires = "woven", help_heading = EXACT)]
    pub count: bool,
    /// Record only methods of these classes; other methods count as part of their caller [default:
    /// samples: all; exact: every class outside the JDK]
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// Record no methods of these classes; they count as part of their callers
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// Profile only what this method calls, directly or not: com.acme.Orders.place, or one
    /// overload, com.acme.Orders.place(int,String); may be repeated
    #[arg(long, value_name = "METHOD", requires = "woven", help_heading = EXACT)]
    pub root: Vec<MethodPattern>,
    /// How callees of a root are found: when a method first runs (lazy), from the code of all
    /// loaded classes (eager), or not at all, by weaving everything (all)
    #[arg(long, value_name = "SCHEME", default_value_t, requires = "root", help_heading = EXACT)]
    pub scheme: Scheme,
    /// Follow one call of the roots in N, drawn at random (`--seed` draws others). All their calls are
    /// counted and timed; what is below the others costs nothing. Reports show estimates for all
    /// calls with ±
    #[arg(long, value_name = "1/N", value_parser = one_in, requires_all = ["root", "exact"], help_heading = EXACT,
          conflicts_with_all = ["untimed", "time_some", "overhead", "cpu", "region", "follow_threads", "trace"])]
    pub follow: Option<u32>,
    /// With --follow, or --overhead with roots: of each root keep so many of the slowest followed calls
    /// whole, and as many drawn ones, for `tare report --slowest`; up to 100
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100),
          requires = "drawn", help_heading = EXACT)]
    pub slowest: u32,
    /// Follow threads that are started below a root, and tasks that are handed to executors there
    #[arg(long, requires = "root", help_heading = EXACT)]
    pub follow_threads: bool,
    /// Time every pass through some source lines, com.acme.Orders:120-148, or through a method,
    /// com.acme.Orders.place: count, least, mean, most and percentiles, per thread. Without --exact
    /// nothing else is woven
    #[arg(long, value_name = "LINES|METHOD", help_heading = EXACT,
          conflicts_with_all = ["wall", "interval", "engine", "java_only", "threads", "keep", "bytecodes"])]
    pub region: Vec<Region>,
    /// Do not weave empty methods, getters and setters; they count as part of their callers (the
    /// default with --root)
    #[arg(long, requires = "woven", help_heading = EXACT)]
    pub skip_trivial: bool,
    /// Weave empty methods, getters and setters, too
    #[arg(long, conflicts_with = "skip_trivial", requires = "woven", help_heading = EXACT)]
    pub no_skip_trivial: bool,
    /// Count this method and do not time it; for short ones that are called often; may be repeated
    #[arg(long, value_name = "METHOD", conflicts_with = "untimed", requires = "woven", help_heading = EXACT)]
    pub count_only: Vec<MethodPattern>,
    /// Time a context's first 64 calls, and then one in N of them, at random, or all where they take
    /// 50 µs or more. All calls are counted, and the report says how far each time may be off. 1
    /// times every call [default: 32, without --time-all and --overhead]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "32",
          value_parser = clap::value_parser!(u32).range(1..=65_536), conflicts_with_all = ["untimed", "overhead"],
          requires = "exact", help_heading = EXACT)]
    pub time_some: Option<u32>,
    /// Which calls are drawn to be timed or followed; the same number draws the same ones again
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "untimed", requires = "exact", help_heading = EXACT)]
    pub seed: u64,
    /// Time every call, of short methods too. By default methods that call nothing and have no loop
    /// are only counted, because reading the clock takes longer than they do; their time is their
    /// callers'
    #[arg(long, conflicts_with = "untimed", requires = "exact", help_heading = EXACT)]
    pub time_all: bool,
    /// Hold the cost of probes to this share of the program's own time, such as 5%, or `none`. Roots are
    /// looked for first: methods that handle requests, run tasks or are called as often. Of their calls
    /// one in N is followed, as with --follow, and N is chosen again and again. --root names them
    /// yourself. With --include, --region, --cpu, --depth, --time-all, --count-only or
    /// --follow-threads, methods that are short and called often are counted and no longer timed
    #[arg(long, value_name = "SHARE", value_parser = budget, conflicts_with = "count", requires = "exact", help_heading = EXACT)]
    pub overhead: Option<Budget>,
    /// Sample processor time, as without any mode; with --alloc or --lock, beside it. With --exact: sample
    /// the program first, nearly unwoven, and join calls with samples, for processor time per call
    /// that probes do not distort
    #[arg(long, conflicts_with_all = ["wall", "bytecodes", "trace"], help_heading = SAMPLING)]
    pub cpu: bool,
    /// With --exact --cpu: how long to sample
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5s", requires_all = ["cpu", "exact"], help_heading = EXACT)]
    pub window: Duration,
    /// Measure each thread's processor time in place of elapsed time; costs more, and not for
    /// virtual threads
    #[arg(long, conflicts_with = "untimed", requires = "woven", help_heading = EXACT)]
    pub cpu_time: bool,
    /// Record counters of each thread, too: instructions and cache misses if the machine has them,
    /// page faults, context switches
    #[arg(long, requires = "exact", help_heading = EXACT)]
    pub counters: bool,
    /// Sum up contexts deeper than N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Count a recursive call in its outer context, so that trees stay small (with --count,
    /// --bytecodes or --alloc-exact; reports can fold times afterwards)
    #[arg(long, requires = "untimed", help_heading = EXACT)]
    pub fold_recursion: bool,
    /// Predict what weaving will cost at most, from samples of the same program
    #[arg(long, value_name = "FILE", requires = "woven", help_heading = EXACT)]
    pub sample: Option<PathBuf>,
    /// Weave methods even if they become too large for HotSpot to compile
    #[arg(long, requires = "changed", help_heading = EXACT)]
    pub allow_huge: bool,
    /// How long the program may stand still at once while code is woven and put back, as far as
    /// fewer classes at a time make it shorter
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "50ms", requires = "changed", help_heading = EXACT)]
    pub max_pause: Duration,
    /// How long to record, once all is woven [default: until Ctrl-C or the end of the program]
    #[arg(long, short, value_parser = duration, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Memory for the trees, in the profiled JVM; when it is full, the least important contexts are
    /// summed up [default: 256M, with --overhead 1G]
    #[arg(long, default_value = "256M", default_value_ifs([("overhead", ArgPredicate::Equals("none".into()), "256M"), ("overhead", ArgPredicate::IsPresent, "1G")]), hide_default_value = true, value_parser = size, value_name = "SIZE", help_heading = EXACT)]
    pub memory: u64,
    /// Where the recording goes: x.tare, x.html for a flame graph, x.pb.gz for pprof, …; - and -.html
    /// are standard output, and what is said goes to standard error [default: a new .tare file named
    /// after program, pid and mode]
    #[arg(long, short, value_name = "FILE", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: Option<PathBuf>,
    /// Print nothing about the recording, and no report
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub patience: Patience,
    /// The program to start and record, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl RecordArgs {
    /// The share of the program's own time that probes may take.
    pub fn share(&self) -> Option<f64> {
        self.overhead.and_then(|Budget(share)| share)
    }

    /// As if a JVM were recorded with these flags, for who records by themselves.
    pub fn quiet(words: impl IntoIterator<Item = String>) -> Result<RecordArgs, clap::Error> {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            args: RecordArgs,
        }
        let begin = ["record", "jvm", "--quiet"].map(str::to_owned);
        Ok(Alone::try_parse_from(begin.into_iter().chain(words))?.args)
    }
}
