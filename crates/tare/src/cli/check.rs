//! The flags of `tare check`.

use super::instrument::CountedArgs;
use super::profiles::share;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use tare_protocol::MethodPattern;

#[derive(Args)]
pub struct CheckArgs {
    /// The baseline, a text file to keep in version control
    #[arg(long, value_name = "FILE")]
    pub baseline: PathBuf,
    /// Write the baseline instead of comparing with it
    #[arg(long, conflicts_with = "partial")]
    pub update: bool,
    /// How much a case, or a method's own part in it, may grow: 1%, 0.5%
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub tolerance: f64,
    /// Allow cases of the baseline to be missing, because only some were run
    #[arg(long)]
    pub partial: bool,
    /// Make every test a case: frames of JUnit, TestNG, Maven, Gradle and the like are left out
    #[arg(long)]
    pub junit: bool,
    /// Append the verdict to a file as Markdown, as GitHub shows it: --summary "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Write the cases as JUnit XML, which most CI servers show as tests; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub junit_xml: Option<PathBuf>,
    /// Print what grew as annotations of GitHub Actions, too
    #[arg(long)]
    pub annotations: bool,
    /// Make this method a case, com.acme.Orders.place; may be repeated [default: what is outermost:
    /// main, the run of a thread, what a framework calls]
    #[arg(long, value_name = "METHOD")]
    pub root: Vec<MethodPattern>,
    #[command(flatten)]
    pub counted: CountedArgs,
    /// The program or the run of tests, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
