//! The flags of `tare calibrate-target`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

pub const HELP: &str = "\
Runs a short program on the JVM and writes a small text file: nanoseconds by kind of bytecode. With it, a \
recording on this machine estimates the processor time that the same bytecodes would take there. For an \
interpreter that is off by a quarter or so; for a JVM with compilers it is several times too low \
(docs/guide/other-jvm.md). Run it on a machine that has nothing else to do.

To measure a JVM on another machine, take along the runtime's jar, which `tare instrument` or --jar writes: \
java -cp tare-runtime.jar tare.runtime.Target > measured.txt

EXAMPLES:
  tare calibrate-target -o target.txt -- java -Xint
  tare calibrate-target measured.txt -o target.txt     of another machine
  tare record --bytecodes --target target.txt --include '**' -- java -jar app.jar";

#[derive(Args)]
pub struct CalibrateArgs {
    /// What `tare.runtime.Target` printed on another machine
    #[arg(value_name = "MEASURED", conflicts_with = "command")]
    pub measured: Option<PathBuf>,
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only write the jar that measures, to be run elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measured", "command", "output"])]
    pub jar: Option<PathBuf>,
    /// Measure even if other programs use the machine; the file says so
    #[arg(long, conflicts_with_all = ["measured", "jar"])]
    pub force: bool,
    /// The JVM and its options, after `--` [default: java]
    #[arg(last = true, value_name = "JAVA")]
    pub command: Vec<OsString>,
}
