//! Other tools' file formats, in and out: one file or folder per format.
//!
//! [`open`] reads what others wrote (JFR, pprof, collapsed stacks), told apart by content. A caller
//! that also knows Tare's own `.tare` files opens those by `tare-recording` and everything else here:
//!
//! ```no_run
//! let profile = tare_formats::open("production.jfr".as_ref())?;
//! for loss in &profile.run.losses {
//!     eprintln!("{} {} {}: {}", loss.count, loss.name, loss.kind.name(), loss.reason);
//! }
//! # Ok::<(), tare_formats::ReadError>(())
//! ```
//!
//! What could be read only in part is an answer, not an error: the losses of the run say what is
//! missing. [`write`] writes a profile in the format that a file's name asks for
//! ([`Format::of_path`]).
//!
//! This crate knows nothing of JVMs and of recordings, and chooses nothing: filters are `analysis`.

#![forbid(unsafe_code)]

mod by_thread;
mod callgrind;
mod chrome;
mod collapsed;
mod error;
mod event_names;
mod firefox;
mod format;
mod gzip;
mod html;
mod jfr;
mod json;
mod merged;
mod names;
mod otlp;
mod pprof;
mod proto;
mod select;
mod speedscope;

pub use error::{ReadError, WriteError};
pub use format::Format;
pub use select::{default_series, series_name};

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tare_profile::{LossKind, Profile, SeriesId};

/// Reads a foreign file of any format that can be read, packed by gzip or not.
pub fn open(path: &Path) -> Result<Profile, ReadError> {
    open_bytes(&std::fs::read(path)?)
}

/// Reads a foreign file that is in memory.
pub fn open_bytes(bytes: &[u8]) -> Result<Profile, ReadError> {
    if !gzip::is_gzip(bytes) {
        return read(bytes);
    }
    let (unpacked, problem) = gzip::unpack(bytes)?;
    let mut profile = read(&unpacked)?;
    if let Some(problem) = problem {
        let reason = format!("the packed file is damaged ({problem}); its beginning was read");
        profile.run.lose(LossKind::Damaged, "files", 1, &reason);
    }
    Ok(profile)
}

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    if jfr::looks_like(bytes) {
        jfr::read(bytes)
    } else if collapsed::looks_like(bytes) {
        collapsed::read(bytes)
    } else if pprof::looks_like(bytes) {
        pprof::read(bytes)
    } else {
        Err(ReadError::Unknown)
    }
}

/// How a profile is written.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// The series for formats that hold one, and the first to be shown by others; without it
    /// [`default_series`].
    pub series: Option<SeriesId>,
    /// Collapsed stacks begin with their thread.
    pub threads: bool,
    /// The heading of formats that have one.
    pub title: &'a str,
    /// What the HTML flame graph compares with.
    pub baseline: Option<&'a Profile>,
    /// How much the values of `series` scatter by chance; without it every difference is shown as
    /// one.
    pub scatter: Option<Scatter>,
    /// Pack the result by gzip.
    pub gzip: bool,
}

/// What chance does to sums of a profile and of the baseline.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// The variance of one value, in the baseline and in the profile.
    pub variances: [f64; 2],
    /// So many standard deviations are more than chance.
    pub deviations: f64,
}

/// Writes a profile.
pub fn write(
    profile: &Profile,
    format: Format,
    options: Options<'_>,
    out: impl Write,
) -> Result<(), WriteError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    if options.gzip {
        // Writers write in small pieces, each of which would cost the packer a visit.
        let packed = GzEncoder::new(out, Compression::default());
        let mut pieces = BufWriter::with_capacity(1 << 16, packed);
        write_plain(profile, format, options, &mut pieces)?;
        pieces.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?.flush()?;
    } else {
        write_plain(profile, format, options, &mut out)?;
        out.flush()?;
    }
    Ok(())
}

fn write_plain(
    profile: &Profile,
    format: Format,
    options: Options<'_>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let series = match options.series {
        Some(series) => series,
        None => default_series(profile)?,
    };
    match format {
        Format::Collapsed => collapsed::write(profile, series, options.threads, out),
        Format::Html => html::write(profile, series, options, out),
        Format::Pprof => pprof::write(profile, series, out),
        Format::Jfr => jfr::write(profile, series, out),
        Format::Speedscope => speedscope::write(profile, series, options.title, out),
        Format::Firefox => firefox::write(profile, series, options.title, out),
        Format::Chrome => chrome::write(profile, series, out),
        Format::Otlp => otlp::write(profile, out),
        Format::Callgrind => callgrind::write(profile, series, out),
    }
}
