//! Flags of `tare heap`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
Of a running JVM a snapshot is taken: the program stands for about 30 ms per gigabyte, and its heap \
is then read from a copy. A file is a snapshot that was kept, or a .hprof dump, also one that is \
packed by gzip, cut off, or of an old JVM.\n\n\
`retained` is what would be free without an object: its own bytes, and those of all that only it \
holds. An object is named @ and its address, as this command shows it.\n\n\
Soft, weak and phantom references hold nothing here. --keep soft counts what soft references hold, \
as the JVM does until memory is short.\n\n\
EXAMPLES:\n  \
tare heap 4711                             what holds the memory of a running JVM\n  \
tare heap 4711 -o now.tareheap             the same, and keep the snapshot\n  \
tare heap app.hprof                        what holds the memory, and by whom\n  \
tare heap app.hprof histo                  objects and bytes by class\n  \
tare heap app.hprof histo --by package\n  \
tare heap 4711 histo                       the JVM counts its objects; no snapshot\n  \
tare heap app.hprof dominators             the objects that retain most\n  \
tare heap app.hprof path com.acme.Session  why its instances are still there\n  \
tare heap app.hprof object @7f0012a8       its fields, and who refers to it\n  \
tare heap app.hprof threads                what threads hold by their variables\n  \
tare heap app.hprof query 'class~com.acme.** retained>1M field.state=OPEN'\n  \
tare heap old.hprof diff new.hprof         what grew\n  \
tare heap 4711 watch --every 5m            what grows, while it runs\n  \
tare heap app.hprof html app.html          a page with a map of who holds what\n  \
tare heap 4711 export now.hprof            for other tools";

#[derive(Args)]
pub struct HeapArgs {
    /// A heap dump (.hprof, also packed by gzip, or .tareheap), or a running JVM: its pid, or a
    /// part of its main class
    #[arg(value_name = "FILE|JVM")]
    pub target: String,
    #[command(subcommand)]
    pub what: Option<HeapWhat>,
    /// Print JSON, for scripts
    #[arg(long, global = true)]
    pub json: bool,
    /// References that count as holding what they refer to, besides strong ones
    #[arg(long, global = true, value_name = "KIND", default_value = "none")]
    pub keep: Keep,
    /// The most rows of a table
    #[arg(long, short = 'n', global = true, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Keep the snapshot of a JVM in this file, to be read again [default: it is not kept]
    #[arg(long, short, value_name = "FILE.tareheap", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: Option<PathBuf>,
    /// A recording with --alloc that ran while the snapshot was taken: holders are shown with where
    /// their objects were allocated, and how old they are [default: the one that is under way]
    #[arg(long, global = true, value_name = "FILE.tare")]
    pub recording: Option<PathBuf>,
    /// Neither use nor write the index beside a dump, FILE.tare-index, which spares computing
    /// everything again
    #[arg(long, global = true)]
    pub no_index: bool,
    /// The most memory that reading a dump may take: 800M, 4G. One that needs more is refused before
    /// anything is taken [default: what the machine and its container have free]
    #[arg(long, global = true, value_name = "SIZE", value_parser = super::values::memory)]
    pub memory: Option<u64>,
    /// Leave texts and numbers of a JVM's objects in the JVM; take sizes and references only
    #[arg(long)]
    pub redact: bool,
    /// Where no snapshot can be taken, have the JVM dump its heap, which stops the program for
    /// seconds
    #[arg(long)]
    pub fallback: bool,
    #[command(flatten)]
    pub patience: super::Patience,
    /// No progress on standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Kinds of reference, each with the stronger ones.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    None,
    Soft,
    Weak,
    /// Also finalizers and phantom references: every reference
    All,
}

#[derive(Subcommand)]
pub enum HeapWhat {
    /// What holds the memory, and what takes it (this is shown if nothing is named)
    Overview,
    /// Objects, bytes and retained bytes by class, loader or package. Of a running JVM, HotSpot's
    /// own count, if it is enough
    Histo {
        /// What makes a row
        #[arg(long, default_value = "class")]
        by: HistoBy,
        /// Of a JVM: collect garbage first, and count what is left
        #[arg(long)]
        live: bool,
        /// Of a JVM: take a snapshot instead of having the JVM count, which stops it for less, and
        /// tells what is retained
        #[arg(long)]
        snapshot: bool,
    },
    /// The objects that retain most, or those that one of them dominates
    Dominators {
        /// Show what this object dominates
        #[arg(value_name = "@ADDRESS")]
        object: Option<String>,
    },
    /// The shortest chain of strong references that holds an object, or the instances of a class
    Path {
        /// An object, or a class: com.acme.Session, Session, com.acme.**
        #[arg(value_name = "@ADDRESS|CLASS")]
        what: String,
    },
    /// Who holds much: static fields, thread locals, variables, loaders, native code
    Suspects {
        /// The least share of the heap in percent
        #[arg(long, default_value_t = 1.0, value_name = "PERCENT")]
        least: f64,
    },
    /// What threads retain, and what of it the variables of their frames hold
    Threads,
    /// Class loaders, what they retain, and which look left over
    Loaders,
    /// Texts that are there more than once, and what that wastes
    Strings,
    /// Empty and sparse collections, boxed numbers and arrays of zeros, and what they waste
    Collections,
    /// One object: its fields, who refers to it, and why it is still there
    Object {
        /// As other tables show it
        #[arg(value_name = "@ADDRESS")]
        object: String,
    },
    /// Objects that fulfil conditions
    #[command(after_help = QUERY)]
    Query {
        /// Conditions, which all must hold
        #[arg(value_name = "CONDITIONS")]
        text: String,
    },
    /// Write it as a .hprof file, which other tools read
    Export {
        /// The file to write
        #[arg(value_name = "FILE.hprof")]
        file: PathBuf,
    },
    /// Write a page with a map of who holds what, the holders and the classes
    Html {
        /// The file to write
        #[arg(value_name = "FILE.html")]
        file: PathBuf,
    },
    /// Take snapshots of a JVM now and then, and name what grows
    Watch {
        /// Time between two snapshots
        #[arg(long, default_value = "5m", value_parser = super::duration, value_name = "TIME")]
        every: Duration,
        /// Snapshots to take [default: until Ctrl-C]
        #[arg(long, value_name = "N")]
        times: Option<u32>,
    },
    /// What grew from this dump to another, by class and by the way from a root
    Diff {
        /// The newer one
        #[arg(value_name = "FILE|JVM")]
        new: String,
    },
}

pub const QUERY: &str = "\
CONDITIONS:\n  \
class=NAME            the class; class~PATTERN: ** is anything, * anything without a dot\n  \
extends=NAME          it, or a class that extends it\n  \
size>N, retained>N    bytes: 512, 64K, 10M, 2G\n  \
reachable=HOW         strong, soft, weak, final, phantom, unreachable\n  \
field.NAME=VALUE      a number, true, null, a text, the name of an enum constant\n\n\
Comparisons are = != ~ !~ > >= < <=. A value with blanks stands in double quotes.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HistoBy {
    Class,
    Loader,
    Package,
}
