//! The flags of `tare instrument`, and those of them that say what is counted, which `tare check`
//! has as well.

use clap::Args;
use std::path::PathBuf;
use tare_protocol::{BlockAnalysis, Pattern};

pub const HELP: &str = concat!(
    "\
The woven program needs only tare-runtime.jar, which is written beside OUT (or into it, with several inputs): \
no agent, no native code, any JVM from Java 8 on. When it ends, it writes a recording like that of `tare \
record --bytecodes`.

`java -jar OUT` finds the runtime through the manifest. For a directory, put it on the class path. For \
modules, put it on the module path: descriptors get a `requires tare.runtime`. All versions of a class in a \
multi-release jar are woven. Signatures of jars are removed, because they cover what was changed. Methods \
that cannot be woven stay as they are, and are listed.

System properties of the woven program: -Dtare.output=FILE is where the recording goes (%p is the pid), \
-Dtare.flush=SECONDS how often it is written while the program runs (30; 0 for only at the end), \
-Dtare.contexts=N the most contexts.

",
    patterns!(),
    "

EXAMPLES:
  tare instrument app.jar -o woven.jar && java -Dtare.output=run.tare -jar woven.jar
  tare instrument classes -o woven && java -cp woven:tare-runtime.jar com.acme.Main
  tare instrument app.jar lib -o woven/        several, into a directory
  tare report run.tare"
);

#[derive(Args)]
pub struct InstrumentArgs {
    /// Jars, directories or class files
    #[arg(value_name = "IN", required = true)]
    pub inputs: Vec<PathBuf>,
    /// The file or directory to write; a directory for several inputs
    #[arg(long, short, value_name = "OUT", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: PathBuf,
    #[command(flatten)]
    pub counted: CountedArgs,
    /// Weave methods even if they grow past 8,000 bytes, which HotSpot does not compile
    #[arg(long)]
    pub allow_huge: bool,
    /// List all refused methods, not only the first
    #[arg(long, short)]
    pub verbose: bool,
}

/// What is counted.
#[derive(Args)]
pub struct CountedArgs {
    /// Count only these classes [default: every class outside the JDK]
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// Do not weave these classes; what they do is not counted
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// `default` counts a whole block even if an exception leaves it half way; `precise` counts
    /// exactly what ran
    #[arg(long, value_name = "ANALYSIS", default_value_t)]
    pub blocks: BlockAnalysis,
}
