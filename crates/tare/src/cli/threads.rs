//! Flags of `tare threads`.

use super::{OneJvm, duration};
use clap::Args;
use std::time::Duration;

pub const HELP: &str = "\
Platform threads are dumped by the JVM in one safepoint, with the owner of what each waits for. \
Virtual threads follow, one after the other. Threads that wait for each other are reported as a \
deadlock only if they do so unchanged when looked at again: monitors, ReentrantLock and its kin, \
both mixed, and virtual threads.\n\n\
With --full every thread follows in the form of jstack, for tools that read it.\n\n\
EXAMPLES:\n  \
tare threads 4711                    deadlocks, who holds up whom, equal stacks together\n  \
tare threads 4711 --full > dump.txt  all threads, as jstack shows them\n  \
tare threads Orders --watch          look every five seconds, and tell when a deadlock forms\n  \
tare threads 4711 --json | jq '.deadlocks'\n\n\
Exit status: 0 no deadlock, 1 the threads could not be dumped, 2 wrong usage, 3 there is a deadlock.";

#[derive(Args)]
pub struct ThreadsArgs {
    #[command(flatten)]
    pub target: OneJvm,
    /// Show every thread with its whole stack, in the form of jstack
    #[arg(long)]
    pub full: bool,
    /// Print one JSON object, for scripts
    #[arg(long, conflicts_with = "watch")]
    pub json: bool,
    /// Leave virtual threads out
    #[arg(long)]
    pub no_virtual: bool,
    /// Look again and again until Ctrl-C, and tell when a deadlock forms
    #[arg(long, short, conflicts_with = "full")]
    pub watch: bool,
    /// With --watch: time between two looks
    #[arg(long, default_value = "5s", value_parser = duration, requires = "watch", value_name = "TIME")]
    pub interval: Duration,
}
