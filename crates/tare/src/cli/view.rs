//! Flags of `tare view`.

use super::values::interval;
use super::{Patience, RecordArgs};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
The page is served on this machine's loopback address and shows only what the link opens: the code \
in it is good for one page and for a minute. Enter in the terminal prints a new link; Ctrl-C ends \
the server, and the recording of a JVM with it.\n\n\
A file that is still being written grows on the page, too.\n\n\
EXAMPLES:\n  \
tare view run.tare              a recording; also JFR, pprof and collapsed stacks\n  \
tare view 4711                  sample a JVM, and watch\n  \
tare view old.tare new.tare     the newer one, and what has changed\n  \
tare view Orders --alloc --lock -o run.tare   more than time, and keep the recording\n  \
tare view run.tare --port 8123 --no-open      an address to bookmark, or to forward by ssh -L";

#[derive(Args)]
pub struct ViewerArgs {
    /// The recording to show, or a JVM (a pid, a part of its main class) to sample and show
    #[arg(value_name = "FILE|JVM")]
    pub what: PathBuf,
    /// A newer recording or heap dump, to be compared with the first, and shown instead of it
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    /// The port to listen on, on loopback [default: any that is free]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Only print the link; open no browser
    #[arg(long)]
    pub no_open: bool,
    /// Leave the program's command line, with its properties, and the JVM's flags out of the page and
    /// of every file that is exported from it
    #[arg(long)]
    pub redact: bool,
    /// Where source texts are: a directory, a jar or a zip, with packages as folders; may be repeated.
    /// Besides, they are looked for in x-sources.jar beside x.jar of the class path, and in the
    /// JDK's src.zip
    #[arg(long, value_name = "DIR|JAR")]
    pub source: Vec<PathBuf>,
    /// Of a JVM: keep the recording in this file [default: in memory, as long as the page is served]
    #[arg(long, short, value_name = "FILE", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: Option<PathBuf>,
    /// Of a JVM: sample all threads by the wall clock, with what they wait for
    #[arg(long)]
    pub wall: bool,
    /// Of a JVM: time between two samples of a thread: 1ms, 100us [default: 10ms]
    #[arg(long, value_parser = interval, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Of a JVM: sample allocated objects as well
    #[arg(long)]
    pub alloc: bool,
    /// Of a JVM: record waits for locks as well
    #[arg(long)]
    pub lock: bool,
    /// Of a JVM: record classes that are loaded as well
    #[arg(long)]
    pub classes: bool,
    #[command(flatten)]
    pub patience: Patience,
}

impl ViewerArgs {
    /// Whether something was asked for that only a JVM can give.
    pub fn for_jvm(&self) -> Option<&'static str> {
        let asked = [
            (self.output.is_some(), "--output"),
            (self.wall, "--wall"),
            (self.interval.is_some(), "--interval"),
            (self.alloc, "--alloc"),
            (self.lock, "--lock"),
            (self.classes, "--classes"),
        ];
        asked.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
    }

    /// As `tare record` would be asked for the same.
    pub fn recording(&self) -> Result<RecordArgs, clap::Error> {
        let mut words = Vec::new();
        let flag = |is: bool, text: &str| is.then(|| text.to_owned());
        words.extend(flag(self.alloc, "--alloc"));
        words.extend(flag(self.lock, "--lock"));
        words.extend(flag(self.classes, "--classes"));
        // What else is asked for does not take the place of time.
        words.push(if self.wall { "--wall" } else { "--cpu" }.to_owned());
        let mut args = RecordArgs::quiet(words)?;
        args.interval = self.interval;
        Ok(args)
    }
}
