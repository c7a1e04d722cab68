//! The flags of `tare check`.

use super::instrument::CountedArgs;
use super::profiles::share;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use tare_protocol::MethodPattern;

#[derive(Args)]
pub struct CheckArgs {
    /// The text file to compare with, which belongs into version control
    #[arg(long, value_name = "FILE")]
    pub baseline: PathBuf,
    /// Write the baseline instead of comparing with it
    #[arg(long, conflicts_with = "partial")]
    pub update: bool,
    /// How much a case, or a method's own part in it, may grow: 1%, 0.5%
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub tolerance: f64,
    /// Cases of the baseline may be missing, because only some were run
    #[arg(long)]
    pub partial: bool,
    /// Every test is a case: frames of JUnit, TestNG, Maven, Gradle and their like are left out
    #[arg(long)]
    pub junit: bool,
    /// Methods that are cases, com.acme.Orders.place; without it whatever is outermost: main, the run of
    /// a thread, what a framework calls
    #[arg(long, value_name = "METHOD")]
    pub root: Vec<MethodPattern>,
    #[command(flatten)]
    pub counted: CountedArgs,
    /// The program or the run of tests, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
