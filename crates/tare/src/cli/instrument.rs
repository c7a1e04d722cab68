//! The flags of `tare instrument`, and those of them that say what is counted, which `tare check` has as well.

use clap::Args;
use std::path::PathBuf;
use tare_protocol::{BlockAnalysis, Pattern};

pub const HELP: &str = concat!(
    "\
The woven program needs nothing but tare-runtime.jar, which is written beside OUT (or into it, with several): no agent, no native \
code, any JVM from Java 8 on. When it ends it leaves a recording as `tare record --bytecodes` would, \
for every command of Tare that reads one.

Jars name the runtime in their manifest, so that `java -jar OUT` finds it; for a directory put it on the \
class path. Module descriptors get a `requires tare.runtime`; put it on the module path then. All versions of \
a class in a multi-release jar are woven. Signatures are left out of jars, because they cover what was \
changed. Methods that cannot be woven rightly stay as they are, and are listed.

System properties of the woven program: -Dtare.output=FILE where the recording goes (%p is the pid), \
-Dtare.flush=SECONDS how often it is written meanwhile (30; 0 for never), -Dtare.contexts=N how many \
contexts there may be.

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
    /// Where the result goes: a file for a file, a directory for a directory or for several
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub counted: CountedArgs,
    /// Weave methods, too, that pass 8,000 bytes by it; HotSpot does not compile those
    #[arg(long)]
    pub allow_huge: bool,
    /// List every refused method, not only some
    #[arg(long, short)]
    pub verbose: bool,
}

/// What is counted.
#[derive(Args)]
pub struct CountedArgs {
    /// Classes to count; without it every class that is not the JDK's
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// Classes to leave as they are; what they do counts nowhere
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// Whether an exception may end a block of code that was counted as a whole (default), or
    /// nothing is counted that did not run (precise)
    #[arg(long, value_name = "ANALYSIS", default_value_t)]
    pub blocks: BlockAnalysis,
}
