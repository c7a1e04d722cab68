//! What is to be recorded, said once and completely before anything begins.

pub use crate::engines::What;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A recording to be made. Front ends turn what their users say into one of these, and nothing
/// behind it asks for more.
#[derive(Clone, Debug)]
pub struct Plan {
    pub what: What,
    /// How long, once it has begun; without it until somebody ends it or the JVM does.
    pub duration: Option<Duration>,
    /// The program that is started to be recorded; none for a JVM that runs already.
    pub command: Vec<OsString>,
}

impl Plan {
    /// Whether the recording begins with a look at the program at work: one that is started is to be
    /// let go before.
    pub fn looks_first(&self) -> bool {
        matches!(&self.what, What::Exact(plan) if plan.find_roots.is_some())
    }
}

/// Where a recording goes.
pub enum Output {
    /// A file that grows while the recording goes on and can be read at any moment. It survives
    /// whatever is killed. It gets its name when it is readable, and replaces an older one then.
    File(PathBuf),
    /// Anything that bytes can be written to, in order; nothing is read back, and nothing sought.
    /// Such a recording cannot be dumped while it goes on, unless it keeps its last minutes, and
    /// nobody completes it if this process is killed.
    Writer(Box<dyn Write + Send>),
    /// The same, for what takes bytes at once and passes them on by a link that may be slow. While
    /// it is behind, what is measured waits and gets coarser; it never holds the recording up.
    Link(Box<dyn Link>),
}

/// Something that takes bytes without waiting, and passes them on when it can.
pub trait Link: Write + Send {
    /// Whether so much waits to be passed on that more should wait here, where it can be summed up.
    fn is_behind(&self) -> bool;
}

/// Where a recording goes, and where its result will be.
pub struct Place {
    pub output: Output,
    /// What whoever stops the recording by the command socket is told; it may be another tool's
    /// file, which the front end makes of the recording.
    pub result: Option<PathBuf>,
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Place { output: Output::File(path.clone()), result: Some(path) }
    }
}
