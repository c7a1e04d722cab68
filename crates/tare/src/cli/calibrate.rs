//! The flags of `tare calibrate-target`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args)]
pub struct CalibrateArgs {
    /// What `tare.runtime.Target` printed on another machine
    #[arg(value_name = "MEASURED", conflicts_with = "command")]
    pub measured: Option<PathBuf>,
    /// Where the costs go; without it to standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only write the jar that measures, to be run elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measured", "command", "output"])]
    pub jar: Option<PathBuf>,
    /// The JVM and its options, after `--`; without it `java`
    #[arg(last = true, value_name = "JAVA")]
    pub command: Vec<OsString>,
}
