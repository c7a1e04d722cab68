//! The flags of `tare climb`.

use super::values::duration;
use super::{Patience, profiles};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tare_analysis::climb::ClimbMetric;

pub const HELP: &str = "\
HOW IT GOES:
  Samples find the methods that take most. Each gets a hook, which counts its calls, times some of them
  and looks who called. When the figures are stable, the hooks move up to the callers, and on to where
  threads begin. At most 16 methods have hooks at a time. Everything else runs as it was.

  Hooks keep to --overhead: where calls are many, one in k is timed, and where they are too many to be
  counted all the time, they are counted again and again for a fiftieth of a second. A method with more
  than 5 M calls a second may cost up to 5 %; one that costs more is left to the samples. What was found is in a .tare file, which `tare report` shows
  again. Ctrl-C ends a climb at any time; what was found stays, and the code is as it was.

  The first hook in a JVM that was started without the agent makes HotSpot throw its compiled code away,
  once. `tare climb -- java …` or `tare run` avoid that.

EXAMPLES:
  tare climb 4711                     to the roots, or for a minute
  tare climb Orders --metric wall --for 2m
  tare climb 4711 --top 1 --overhead 1% -o hot.tare
  tare climb 4711 --json | jq '.methods[0].callers'
  tare climb --background 4711        go on as the load changes; `tare report 4711` reads it,
                                      `tare stop 4711` ends it
  tare climb -- java -jar app.jar";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricArg {
    /// Processor time: samples by the processor's clock, callers by the processor time of their calls
    Cpu,
    /// Elapsed time, also of threads that wait, but for work
    Wall,
    /// How often a method is called; the hot ones are those by processor time
    Calls,
}

impl MetricArg {
    pub fn metric(self) -> ClimbMetric {
        match self {
            MetricArg::Cpu => ClimbMetric::Cpu,
            MetricArg::Wall => ClimbMetric::Wall,
            MetricArg::Calls => ClimbMetric::Calls,
        }
    }
}

#[derive(Args)]
pub struct ClimbArgs {
    /// A pid, or a part of the main class or jar that only one JVM has
    #[arg(value_name = "JVM", required_unless_present = "command", conflicts_with = "command")]
    pub jvm: Option<String>,
    /// What callers are compared by
    #[arg(long, value_enum, default_value = "cpu")]
    pub metric: MetricArg,
    /// Hot methods to begin with, at most
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub top: u8,
    /// The share of all samples that makes a method hot; if none has it, the first --top are taken
    #[arg(long, default_value = "5%", value_parser = profiles::share, value_name = "SHARE")]
    pub min_share: f64,
    /// What hooks may take of the program's processor time
    #[arg(long, default_value = "2%", value_parser = overhead, value_name = "SHARE")]
    pub overhead: f64,
    /// End after this time, at the roots or not [default: 60s; in the background, never]
    #[arg(long = "for", value_parser = duration, value_name = "TIME")]
    pub length: Option<Duration>,
    /// Go on in the background, as the load changes, until `tare stop JVM` or the end of the JVM
    #[arg(long, conflicts_with_all = ["command", "json"])]
    pub background: bool,
    /// Where the recording goes [default: a new .tare file named after program and pid]
    #[arg(long, short, value_name = "FILE.tare", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: Option<PathBuf>,
    /// Print the caller list as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub patience: Patience,
    /// What `--background` starts.
    #[arg(long, hide = true)]
    pub again: bool,
    /// The program to start, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn overhead(text: &str) -> Result<f64, String> {
    match profiles::share(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err("hooks can be kept to between 0.1% and 50%".to_owned()),
    }
}
