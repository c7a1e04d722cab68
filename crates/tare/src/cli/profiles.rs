//! The flags of the verbs that read profiles, and the small grammars of their values.

use clap::{Args, Parser, ValueEnum};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_analysis::{Compensation, EventRef, Filter, Grouping, SiteBy};
use tare_java_names::Pattern;

#[derive(Args)]
pub struct ReportArgs {
    /// The recording to read, or a JVM (a pid, a part of its main class) that is being recorded
    #[arg(value_name = "FILE|JVM")]
    pub file: PathBuf,
    /// Show the callers and callees of a method: `Orders.place`, `place`, `com.acme.*.place`
    #[arg(long, value_name = "PATTERN", conflicts_with = "threads")]
    pub method: Option<String>,
    /// Show each thread, and what it mostly did
    #[arg(long)]
    pub threads: bool,
    /// Show locks: which are waited for and who has them, who waits for whom, queues, and what else
    /// threads wait for
    #[arg(long, conflicts_with_all = ["method", "threads"])]
    pub locks: bool,
    /// Show classes: why they were loaded and what they cost, by loader and by jar; which were
    /// unloaded, and which several loaders have; of a program that was started, its first seconds
    #[arg(long, conflicts_with_all = ["method", "threads", "locks"])]
    pub classes: bool,
    /// Show references of native code: who makes them, and which are not deleted
    #[arg(long, conflicts_with_all = ["method", "threads", "locks", "classes"])]
    pub jni_refs: bool,
    /// Show collections and pauses: by kind, the longest with cause, heap before and after and time
    /// to safepoint, and safepoints of every reason
    #[arg(long, conflicts_with_all = ["method", "threads", "locks", "classes", "jni_refs"])]
    pub gc: bool,
    /// Of a recording with --follow: show the slowest calls of each root beside typical ones, and
    /// which contexts make the difference, the largest first
    #[arg(long, conflicts_with_all = ["method", "threads", "locks", "classes", "jni_refs", "gc"])]
    pub slowest: bool,
    /// Show what ran, was allocated and was waited for before an event and in it: gc:17,
    /// safepoint:3, lock:5. The lists of --gc have the numbers
    #[arg(long, value_name = "KIND:N", conflicts_with_all = ["method", "threads", "locks", "classes", "jni_refs", "gc", "slowest", "bottom_up", "time"])]
    pub around: Option<EventRef>,
    /// With --around: how long before the event to look [default: since the one before it of the
    /// same kind, but from 100ms to 10s]
    #[arg(long, value_name = "TIME", requires = "around", value_parser = super::values::duration)]
    pub before: Option<Duration>,
    /// Invert the tree: hot methods first, below each its callers
    #[arg(long, conflicts_with_all = ["method", "threads", "locks", "classes", "jni_refs", "gc", "slowest"])]
    pub bottom_up: bool,
    /// Show native, JVM and kernel frames, and the JVM's threads. By default such frames count as
    /// part of the Java method that called them, and the JVM's threads are one line
    #[arg(long, conflicts_with = "java_only")]
    pub native: bool,
    /// With `record --wall`: show idle threads, too, which wait for work in pools, selectors and
    /// queues
    #[arg(long)]
    pub idle: bool,
    /// Show every frame of the tree, also chains of single calls
    #[arg(long)]
    pub full: bool,
    /// Lines per list [default: 15; of allocation, what fits a screen]
    #[arg(long = "top", value_name = "N")]
    pub lines: Option<usize>,
    /// Frames per stack of hprof-text, and levels of the inverted tree
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub depth: usize,
    /// The output format; JSON and hprof-text fold nothing unless an option asks for it
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Do not use a pager. By default $TARE_PAGER, $PAGER or less shows what is longer than the
    /// terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Leave the tree to another report if the page is longer than the terminal.
    #[arg(skip)]
    pub brief: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

impl ReportArgs {
    /// Lines per list.
    pub fn top(&self) -> usize {
        self.lines.unwrap_or(15)
    }

    /// What is shown of a recording that was just made.
    pub fn plain(file: &Path) -> Self {
        let mut args = Self::of(file, &[]).unwrap_or_else(|error| error.exit());
        // Who has just recorded something gets the prompt back, and sees the beginning.
        (args.no_pager, args.brief) = (true, true);
        args
    }

    /// A report of a file with these options.
    pub fn of(file: &Path, options: &[String]) -> Result<Self, clap::Error> {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            args: ReportArgs,
        }
        let options = options.iter().map(String::as_str);
        let mut args =
            Alone::try_parse_from(["report"].into_iter().chain(options).chain(["recording"]))?.args;
        file.clone_into(&mut args.file);
        Ok(args)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A page for people
    Text,
    /// One JSON object, for scripts
    Json,
    /// A listing like that of the JDK's old hprof: SITES, TRACES, CPU SAMPLES, MONITORS
    HprofText,
}

#[derive(Args)]
pub struct DiffArgs {
    /// The recording to compare with: before
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The recording to judge: after
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Compare shares of the whole instead of values, for runs of different length
    #[arg(long, visible_alias = "normalize")]
    pub normalise: bool,
    /// Exit with status 3 if the whole, or one method itself, grew by more than this share of the
    /// old whole, such as 5%; for samples, only if chance does not explain it
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub threshold: Option<f64>,
    /// Compare native, JVM and kernel frames, and the JVM's threads. By default such frames count
    /// as part of the Java method that called them, and the JVM's threads are one line, which
    /// exceeds no threshold
    #[arg(long, conflicts_with = "java_only")]
    pub native: bool,
    /// With `record --wall`: compare idle threads, too, which wait for work in pools, selectors and
    /// queues
    #[arg(long)]
    pub idle: bool,
    /// Lines per list
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub top: usize,
    /// The output format; JSON has the same figures as the text
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
    /// Do not use a pager
    #[arg(long)]
    pub no_pager: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A page for people
    Text,
    /// One JSON object, for scripts
    Json,
}

/// What every view of a profile understands.
#[derive(Args)]
#[command(next_help_heading = "What to show")]
pub struct ViewArgs {
    /// Which values to show, if there are several: an engine (cpu), a kind (allocated-bytes) or
    /// both (exact:invocations)
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// How to subtract the probes' own cost from the times of exact recordings
    #[arg(long, value_enum, default_value_t = Compensate::Calibrated)]
    pub compensate: Compensate,
    /// Join an exact recording with samples of the same program (`tare record`), for processor time
    /// per call
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// What to group by [default: method; of allocation, site]
    #[arg(long = "by", value_enum)]
    pub grouped: Option<By>,
    /// Show only this part of the run: 10s..20s, 90s.., ..500ms
    #[arg(long, value_name = "FROM..TO", value_parser = time_range)]
    pub time: Option<Range<u64>>,
    /// Show only threads whose name contains this, or matches it if it has a *; may be repeated
    #[arg(long, value_name = "NAME")]
    pub thread: Vec<String>,
    /// Show only stacks that pass through this package, class or method; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub package: Vec<String>,
    /// Show only what was called from this method, class or package; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub root: Vec<String>,
    /// Leave out what differs between runs of a program that does the same: static initialisers,
    /// the JDK's reflection, method handles, class loading, references and locks, and the JVM's
    /// threads
    #[arg(long)]
    pub stable: bool,
    /// Fold what is below this share of the whole [default: 1% or more, so that the tree fits a
    /// page]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_share: Option<f64>,
    /// Fold recursive calls into the outermost one
    #[arg(long)]
    pub fold_recursion: bool,
    /// Fold frames of the JDK into their callers
    #[arg(long)]
    pub hide_jdk: bool,
    /// Fold frames of this method, class or package into their callers; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub hide: Vec<String>,
    /// Show Java frames only; native, JVM and kernel frames are folded into their callers
    #[arg(long)]
    pub java_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compensate {
    /// Subtract nothing: as measured
    None,
    /// What probes cost around work of the same length, measured in the same JVM
    Calibrated,
    /// The least that each pair of transitions costs
    Sequences,
}

impl Compensate {
    pub fn how(self) -> Compensation {
        match self {
            Compensate::None => Compensation::None,
            Compensate::Calibrated => Compensation::Calibrated,
            Compensate::Sequences => Compensation::Sequences,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Method,
    Line,
    /// Of allocation: the class of the objects
    Class,
    /// Of allocation: class, and the first line outside of the JDK; else as line
    Site,
    Package,
    /// The module, jar or library that the code came from
    Jar,
    /// The class loader
    Loader,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Method => "method",
            By::Line => "line",
            By::Class => "class",
            By::Site => "site",
            By::Package => "package",
            By::Jar => "jar",
            By::Loader => "loader",
        }
    }

    fn grouping(self) -> Grouping {
        match self {
            By::Method => Grouping::Method,
            By::Line | By::Site => Grouping::Line,
            By::Class => Grouping::Class,
            By::Package => Grouping::Package,
            By::Jar => Grouping::Module,
            By::Loader => Grouping::Loader,
        }
    }
}

impl ViewArgs {
    /// What one line of most lists stands for.
    pub fn by(&self) -> By {
        self.grouped.unwrap_or(By::Method)
    }

    /// What one line stands for in lists of what is allocated and what stays.
    pub fn sites(&self) -> SiteBy {
        match self.grouped {
            Some(By::Method) => SiteBy::Method,
            Some(By::Line) => SiteBy::Line,
            Some(By::Class) => SiteBy::Class,
            None | Some(By::Site | By::Package | By::Jar | By::Loader) => SiteBy::Site,
        }
    }

    /// The filter, but for `min_share`: lists are of the whole, only trees are folded.
    pub fn filter(&self) -> Filter {
        let patterns =
            |texts: &[String]| texts.iter().map(|text| Pattern::to_search(text)).collect();
        Filter {
            time: self.time.clone(),
            threads: self.thread.clone(),
            packages: patterns(&self.package),
            roots: patterns(&self.root),
            stable: self.stable,
            min_share: 0.0,
            fold_recursion: self.fold_recursion,
            hide_jdk: self.hide_jdk,
            hide: patterns(&self.hide),
            java_only: self.java_only,
            group: self.by().grouping(),
        }
    }
}

/// `5%`, `0.5 %`, `0.05`: a share between 0 and 1.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    let share = number.parse::<f64>().map_err(|_| "write 5% or 0.05".to_owned())? / scale;
    if (0.0..=100.0).contains(&share) {
        Ok(share)
    } else {
        Err("a share is between 0% and 10000%".to_owned())
    }
}

/// `10s..20s`, `90s..`, `..500ms`, in nanoseconds.
fn time_range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || "write 10s..20s, 90s.. or ..500ms".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let nanos = |text: &str, otherwise: u64| match text.trim() {
        "" => Ok(otherwise),
        "0" | "0s" => Ok(0),
        text => super::values::duration(text)
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    };
    let range = nanos(from, 0)?..nanos(to, u64::MAX)?;
    if range.is_empty() { Err("the time ends before it begins".to_owned()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        for (text, expected) in [("5%", 0.05), ("0.5 %", 0.005), ("0.05", 0.05), ("0", 0.0)] {
            assert!((share(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
        for bad in ["", "%", "-1%", "x", "nan", "inf"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_of_time() {
        let second = 1_000_000_000;
        assert_eq!(time_range("10s..20s"), Ok(10 * second..20 * second));
        assert_eq!(time_range("..500ms"), Ok(0..second / 2));
        assert_eq!(time_range("0..1m"), Ok(0..60 * second));
        assert_eq!(time_range("90s.."), Ok(90 * second..u64::MAX));
        for bad in ["", "10s", "20s..10s", "5s..5s", "a..b"] {
            assert!(time_range(bad).is_err(), "{bad}");
        }
    }
}
