//! Flags of `tare top`.

use super::Patience;
use super::values::{duration, interval};
use clap::Args;
use std::time::Duration;

pub const HELP: &str = "\
KEYS: ↑ ↓ select a row (the order is frozen then, Esc gives it up), 1-5 or Tab turn pages, / filters, < > \
change the order, [ ] how far to look back, e weighs the selected method exactly for ten seconds, w samples \
by the wall clock, r records to a file, v opens the same in the browser, ? lists all keys, q ends.\n\n\
It gives way to every other recording of the JVM, and shows that one's figures meanwhile if it can read \
its file. At its end the JVM is as it was.\n\n\
EXAMPLES:\n  \
tare top 4711                 look into a running JVM, in the terminal\n  \
tare top Orders --wall        all threads, also those that wait\n  \
tare top 4711 --once          print what a screen would show, and end\n  \
tare top 4711 --json -n 5 --every 10s | jq '.methods[0]'   one line of JSON every ten seconds";

#[derive(Args)]
pub struct TopArgs {
    /// A pid, or a part of the main class or jar that only one JVM has
    #[arg(value_name = "JVM")]
    pub jvm: String,
    /// Sample all threads by the wall clock, with what they wait for
    #[arg(long)]
    pub wall: bool,
    /// Time between two samples of a thread: 20ms, 1ms [default: 10ms]
    #[arg(long, value_parser = interval, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Only sample: no allocation, no locks, no classes
    #[arg(long)]
    pub light: bool,
    /// How far to look back: 1s to 60s [default: 10s; printed, from one time to the next]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub last: Option<Duration>,
    /// Print once, after --every, and end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many times, and end [default: on a terminal the live view; else until Ctrl-C]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Print one JSON object each time, on one line
    #[arg(long)]
    pub json: bool,
    /// Time from one printing to the next [default: 5s]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub every: Option<Duration>,
    /// Rows of each table that are printed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rows: usize,
    #[command(flatten)]
    pub patience: Patience,
}

impl TopArgs {
    /// Whether it is to be printed, whatever standard output is.
    pub fn prints(&self) -> bool {
        self.once || self.json || self.count.is_some() || self.every.is_some()
    }
}
