//! What to load of a recording, and what comes of it.

use crate::error::Warning;
use std::ops::Range;
use tare_profile::Profile;

/// What to load. The default is everything.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Only these series, by their number in [`crate::Summary::series`].
    pub series: Option<Vec<u16>>,
    /// Only values and events of this time, in nanoseconds since the start of the run. Blocks of
    /// other times are not read. Values without times count as time zero.
    pub time: Option<Range<u64>>,
    /// Add up the values of equal contexts and threads while reading. Times are lost, and fifty
    /// million samples take no more memory than the contexts that they are of.
    pub merge: bool,
    pub events: bool,
    /// Kinds of events that are left out, by name: a trace has more calls than fit into memory.
    pub without: Vec<String>,
    /// Events that began before the time asked for, and lasted into it, are of that time, too.
    pub lasting: bool,
    /// Bytes that may be held; without it a limit that no honest file reaches.
    pub memory_limit: Option<u64>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            series: None,
            time: None,
            merge: false,
            events: true,
            without: Vec::new(),
            lasting: false,
            memory_limit: None,
        }
    }
}

impl LoadOptions {
    /// An honest file unfolds to a few times its size; a hostile one would to thousands. Only
    /// threads that wait for hours, again and again in the same places, are packed as well as that,
    /// hence the base.
    pub(crate) fn limit(&self, file_size: u64) -> u64 {
        const BASE: u64 = 256 << 20;
        const RATIO: u64 = 64;
        self.memory_limit.unwrap_or(file_size.saturating_mul(RATIO).saturating_add(BASE))
    }
}

/// What was loaded.
#[derive(Debug)]
pub struct Loaded {
    pub profile: Profile,
    /// What a user should know; what was lost is among the profile's losses too.
    pub warnings: Vec<Warning>,
}
