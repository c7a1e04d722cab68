//! Other tools' file formats, in and out: one file or folder per format.
//!
//! [`open`] reads what others wrote (JFR, pprof, collapsed stacks), told apart by content. A caller
//! that also knows Tare's own `.tare` files opens those by `tare-recording` and everything else
//! here:
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

mod bounded;
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
mod prepared;
mod proto;
mod sampled;
mod select;
mod settled;
mod speedscope;

pub use error::{ReadError, WriteError};
pub use format::Format;
pub use select::{default_series, series_name};

use crate::gzip::Unpacked;
use crate::prepared::{Prepared, prepared};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use tare_profile::{LossKind, Profile, SeriesId};

/// Files up to this size are read whole before anything is known of them.
const SMALL: u64 = 64 << 20;
/// The beginning of a larger file, which must look like something that can be read.
const BEGINNING: usize = 1 << 20;
/// No larger file is read: it would not fit into memory beside the profile made of it.
const LARGEST: u64 = 4 << 30;

/// Reads a foreign file of any format that can be read, packed by gzip or not. Devices and pipes
/// may have no end, so they are refused.
pub fn open(path: &Path) -> Result<Profile, ReadError> {
    open_up_to(path, SMALL, LARGEST)
}

fn open_up_to(path: &Path, small: u64, largest: u64) -> Result<Profile, ReadError> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    if !kind.is_file() {
        return Err(ReadError::NotAFile);
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    if size > small {
        (&file).take(BEGINNING as u64).read_to_end(&mut bytes)?;
        if !gzip::is_gzip(&bytes) && !is_known(&bytes) {
            return Err(ReadError::Unknown);
        }
        if size > largest {
            return Err(ReadError::TooLarge { size, limit: largest });
        }
    }
    // It may be growing.
    file.take(largest).read_to_end(&mut bytes)?;
    open_bytes(&bytes)
}

/// Reads a foreign file that is in memory.
pub fn open_bytes(bytes: &[u8]) -> Result<Profile, ReadError> {
    if !gzip::is_gzip(bytes) {
        return read(bytes);
    }
    let (unpacked, problem) = gzip::unpack(bytes)?;
    let mut profile = match unpacked {
        Unpacked::Bytes(bytes) => read(&bytes)?,
        Unpacked::Profile(profile) => *profile,
    };
    if let Some(problem) = problem {
        let reason = format!("the packed file is damaged ({problem}); its beginning was read");
        profile.run.lose(LossKind::Damaged, "files", 1, &reason);
    }
    Ok(profile)
}

/// Whether a file that begins like this is of a format that can be read.
fn is_known(beginning: &[u8]) -> bool {
    jfr::looks_like(beginning) || collapsed::looks_like(beginning) || pprof::looks_like(beginning)
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
    /// How the HTML flame graph is when it is opened.
    pub opens: Opening<'a>,
    /// Pack the result by gzip.
    pub gzip: bool,
    /// The size of the file that the profile was read from: how much is written of stacks hangs on
    /// it, so that a small file which was made to hurt does not become a huge one. Without it, no
    /// more than of a small one.
    pub source: Option<u64>,
}

/// What a flame graph shows at first.
#[derive(Clone, Copy, Default, Debug)]
pub struct Opening<'a> {
    /// Names of frames, from below the root to the one that fills the width.
    pub zoom: &'a [String],
    /// What stands behind `#` in an address of the page, such as `search=price&root=bottom`.
    pub state: &'a str,
}

/// What chance does to sums of a profile and of the baseline.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// The variance of one value, in the baseline and in the profile.
    pub variances: [f64; 2],
    /// So many standard deviations are more than chance.
    pub deviations: f64,
}

/// Writes a profile. What comes back are sentences about what could not be written as it is: stacks
/// of thousands of frames and names without an end, which are shortened.
pub fn write(
    profile: &Profile,
    format: Format,
    options: Options<'_>,
    out: impl Write,
) -> Result<Vec<String>, WriteError> {
    let series = match options.series {
        Some(series) => series,
        None => default_series(profile)?,
    };
    let Prepared { profile, notes } = prepared(profile, format, series, options.source);
    let baseline = match options.baseline {
        Some(baseline) => {
            let series = default_series(baseline).unwrap_or(SeriesId::new(0));
            Some(prepared(baseline, format, series, options.source).profile)
        }
        None => None,
    };
    let options = Options { series: Some(series), baseline: baseline.as_deref(), ..options };
    let mut out = BufWriter::with_capacity(1 << 16, out);
    if options.gzip {
        // Writers write in small pieces, each of which would cost the packer a visit.
        let packed = GzEncoder::new(out, Compression::default());
        let mut pieces = BufWriter::with_capacity(1 << 16, packed);
        write_plain(&profile, format, series, options, &mut pieces)?;
        pieces.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?.flush()?;
    } else {
        write_plain(&profile, format, series, options, &mut out)?;
        out.flush()?;
    }
    Ok(notes)
}

fn write_plain(
    profile: &Profile,
    format: Format,
    series: SeriesId,
    options: Options<'_>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_or_is_too_large_is_refused_at_once() {
        assert!(matches!(open("/dev/zero".as_ref()), Err(ReadError::NotAFile)));
        let path = std::env::temp_dir().join(format!("tare-formats-{}", std::process::id()));
        // A terabyte of nothing, which takes no room.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let empty = open(&path);
        std::fs::write(&path, "a;b 1\n".repeat(100)).unwrap();
        let (large, whole) = (open_up_to(&path, 50, 500), open_up_to(&path, 50, 600));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(empty, Err(ReadError::Unknown)));
        assert!(matches!(large, Err(ReadError::TooLarge { size: 600, limit: 500 })));
        assert_eq!(whole.unwrap().series(SeriesId::new(0)).total(), 100);
    }
}
