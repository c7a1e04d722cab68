//! Classes, jars and directories: finding the classes in them, and writing them back woven.
//!
//! What is not a class goes through as it is. A jar inside a jar is woven too and stays stored,
//! because programs that carry jars read them in place. Signatures of a jar are left out: they
//! cover the bytes that were changed. Results are never read as input, wherever they lie.

use crate::batch::Batch;
use crate::staging::{Staging, is_own_part, is_part, parent};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Jars inside jars are followed this deep.
const DEEPEST: u32 = 3;

/// An entry larger than this is no class, and no jar that we could hold in memory.
const LARGEST: u64 = 1 << 30;

#[derive(Debug)]
pub enum FileError {
    Io(PathBuf, std::io::Error),
    Zip(PathBuf, zip::result::ZipError),
    /// Neither a class nor a jar nor a directory.
    NotKnown(PathBuf),
    /// A device or a pipe, which may have no end.
    NotAFile(PathBuf),
    /// The output would overwrite the input.
    SameFile(PathBuf),
    /// Somebody wanted it to end ([`Batch::stop_at`]).
    Stopped,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Io(path, e) => write!(f, "{}: {e}", path.display()),
            FileError::Zip(path, e) => write!(f, "{} is not a readable jar: {e}", path.display()),
            FileError::NotKnown(path) => {
                write!(f, "{} is neither a class file nor a jar nor a directory", path.display())
            }
            FileError::NotAFile(path) => write!(
                f,
                "{} is no file but a device or a pipe, which may have no end",
                path.display()
            ),
            FileError::Stopped => {
                write!(f, "it was stopped; nothing was written, and what was there stays")
            }
            FileError::SameFile(path) => {
                write!(f, "{} is input and output; name another output", path.display())
            }
        }
    }
}

impl std::error::Error for FileError {}

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> FileError + '_ {
    move |e| FileError::Io(path.to_owned(), e)
}

fn zip(path: &Path) -> impl FnOnce(zip::result::ZipError) -> FileError + '_ {
    move |e| FileError::Zip(path.to_owned(), e)
}

enum Kind {
    Class,
    Jar,
    Other,
}

/// What a file is, by its first bytes; its name may be anything.
fn kind_of(start: &[u8]) -> Kind {
    match start {
        [0xca, 0xfe, 0xba, 0xbe, ..] => Kind::Class,
        // The second one has no entries.
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Kind::Jar,
        _ => Kind::Other,
    }
}

fn kind_of_file(path: &Path) -> Result<Kind, FileError> {
    // Opening a pipe would wait for somebody who writes to it.
    if !fs::metadata(path).map_err(io(path))?.is_file() {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(io(path))?;
    file.take(4).read_to_end(&mut start).map_err(io(path))?;
    Ok(kind_of(&start))
}

/// Weaves a class file, a jar, or all of them below a directory, into `output`, which changes only
/// if all of it succeeds. Neither it nor `results`, where others go, are read if they lie in
/// `input`.
pub fn weave_path(
    batch: &mut Batch,
    input: &Path,
    output: &Path,
    results: &[&Path],
) -> Result<(), FileError> {
    weave_aside(batch, input, output, results)?.place()
}

/// The same, but for the last step: [`Staging::place`] takes the result to `output`.
pub fn weave_aside(
    batch: &mut Batch,
    input: &Path,
    output: &Path,
    results: &[&Path],
) -> Result<Staging, FileError> {
    if real(input).is_some() && real(input) == real(output) {
        return Err(FileError::SameFile(input.to_owned()));
    }
    let staging = Staging::new(output);
    if input.is_dir() {
        let results = results.iter().copied().chain([output]).filter_map(real_place).collect();
        let mut walk = Walk { batch, results, above: Vec::new() };
        walk.directory(input, staging.path())?;
    } else {
        match kind_of_file(input)? {
            Kind::Class => weave_class(batch, input, staging.path())?,
            Kind::Jar => weave_jar(batch, input, staging.path(), 0)?,
            Kind::Other => return Err(FileError::NotKnown(input.to_owned())),
        }
    }
    if batch.is_stopped() { Err(FileError::Stopped) } else { Ok(staging) }
}

fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Where a path leads, also one that does not exist yet in a directory that does.
fn real_place(path: &Path) -> Option<PathBuf> {
    real(path).or_else(|| Some(real(parent(path))?.join(path.file_name()?)))
}

/// The way through a directory.
struct Walk<'b> {
    batch: &'b mut Batch,
    /// What is no input, by its canonical path.
    results: Vec<PathBuf>,
    /// The directories on the way to the one that is read, outermost first, by their canonical
    /// paths.
    above: Vec<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, input: &Path, output: &Path) -> Result<(), FileError> {
        self.above.push(fs::canonicalize(input).map_err(io(input))?);
        fs::create_dir_all(output).map_err(io(output))?;
        let mut entries: Vec<PathBuf> = fs::read_dir(input)
            .and_then(|list| list.map(|entry| Ok(entry?.path())).collect())
            .map_err(io(input))?;
        // The order decides ids, and a directory has none of its own.
        entries.sort();
        for entry in entries {
            if self.batch.is_stopped() {
                return Err(FileError::Stopped);
            }
            let Some(name) = entry.file_name().filter(|name| !is_own_part(name)) else { continue };
            let reason = self.why_not(&entry);
            match reason {
                None => self.entry(&entry, &output.join(name))?,
                Some(reason) => self.batch.totals.passed_by.push((entry, reason)),
            }
        }
        self.above.pop();
        Ok(())
    }

    fn entry(&mut self, entry: &Path, to: &Path) -> Result<(), FileError> {
        if entry.is_dir() {
            return self.directory(entry, to);
        }
        match kind_of_file(entry)? {
            Kind::Class => weave_class(self.batch, entry, to),
            // So many directories above is where the output was asked for.
            Kind::Jar => weave_jar(self.batch, entry, to, self.above.len()),
            Kind::Other => fs::copy(entry, to).map(drop).map_err(io(entry)),
        }
    }

    /// Why an entry is no part of the input.
    fn why_not(&self, entry: &Path) -> Option<&'static str> {
        if entry.file_name().is_some_and(is_part) {
            return Some("a result that is not whole");
        }
        let Some(real) = real(entry) else {
            return Some("a link that leads nowhere");
        };
        if self.results.contains(&real) {
            return Some("where results go");
        }
        if self.above.contains(&real) {
            return Some("a link to a directory that it lies in");
        }
        // Opening a pipe would wait for somebody who writes to it.
        (!real.is_dir() && !real.is_file()).then_some("neither a file nor a directory")
    }
}

fn weave_class(batch: &mut Batch, input: &Path, output: &Path) -> Result<(), FileError> {
    let bytes = fs::read(input).map_err(io(input))?;
    let woven = batch.weave(&bytes).unwrap_or(bytes);
    fs::write(output, woven).map_err(io(output))
}

/// `level` directories above the jar is where the output was asked for.
fn weave_jar(
    batch: &mut Batch,
    input: &Path,
    output: &Path,
    level: usize,
) -> Result<(), FileError> {
    let reader = BufReader::new(File::open(input).map_err(io(input))?);
    let mut archive = ZipArchive::new(reader).map_err(zip(input))?;
    let file = BufWriter::new(File::create(output).map_err(io(output))?);
    let copied = copy_woven(batch, &mut archive, file, Nesting { depth: 0, level });
    if batch.is_stopped() {
        return Err(FileError::Stopped);
    }
    copied.map_err(zip(input)).and_then(|mut file| file.flush().map_err(io(output)))
}

const MANIFEST: &str = "META-INF/MANIFEST.MF";

/// Where a jar is: in so many others, and so many directories below the place of the output.
#[derive(Clone, Copy)]
struct Nesting {
    depth: u32,
    level: usize,
}

fn copy_woven<R: Read + Seek, W: Write + Seek>(
    batch: &mut Batch,
    from: &mut ZipArchive<R>,
    to: W,
    at: Nesting,
) -> zip::result::ZipResult<W> {
    let Nesting { depth, level } = at;
    let mut writer = ZipWriter::new(to);
    let mut seen = BTreeSet::new();
    // Of a jar inside another nobody reads the class path.
    let outermost = depth == 0;
    if outermost
        && from.index_for_name(MANIFEST).is_none()
        && let Some(bytes) = batch.manifest(&[], level)
    {
        let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
        writer.start_file(MANIFEST, options)?;
        writer.write_all(&bytes)?;
    }
    for index in 0..from.len() {
        if batch.is_stopped() {
            return Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
        }
        let replaced = {
            let mut entry = from.by_index(index)?;
            let name = entry.name()?.into_owned();
            // A second entry of the same name is never read by a JVM.
            if is_signature(&name) {
                batch.totals.signatures += 1;
                continue;
            }
            if !seen.insert(name.clone()) {
                continue;
            }
            let is_manifest = outermost && name == MANIFEST;
            let wanted = name.ends_with(".class")
                || (name.ends_with(".jar") && depth < DEEPEST)
                || is_manifest;
            if entry.is_dir() || !wanted || entry.size() > LARGEST {
                None
            } else {
                let mut options = SimpleFileOptions::default()
                    .compression_method(entry.compression())
                    .unix_permissions(entry.unix_mode().unwrap_or(0o644));
                if let Some(time) = entry.last_modified() {
                    options = options.last_modified_time(time);
                }
                let mut bytes = Vec::new();
                (&mut entry).take(LARGEST).read_to_end(&mut bytes)?;
                let woven = match kind_of(&bytes) {
                    _ if is_manifest => batch.manifest(&bytes, level),
                    Kind::Class => batch.weave(&bytes),
                    Kind::Jar => {
                        options = options.compression_method(CompressionMethod::Stored);
                        let mut inner = ZipArchive::new(Cursor::new(bytes))?;
                        let out = Cursor::new(Vec::new());
                        Some(
                            copy_woven(
                                batch,
                                &mut inner,
                                out,
                                Nesting { depth: depth + 1, level },
                            )?
                            .into_inner(),
                        )
                    }
                    Kind::Other => None,
                };
                woven.map(|bytes| (name, options, bytes))
            }
        };
        match replaced {
            Some((name, options, bytes)) => {
                writer.start_file(name, options)?;
                writer.write_all(&bytes)?;
            }
            None => writer.raw_copy_file(from.by_index_raw(index)?)?,
        }
    }
    writer.finish()
}

/// Whether an entry signs the jar.
fn is_signature(name: &str) -> bool {
    let Some(file) = name.strip_prefix("META-INF/") else { return false };
    let upper = file.to_ascii_uppercase();
    !file.contains('/')
        && ([".SF", ".RSA", ".DSA", ".EC"].iter().any(|end| upper.ends_with(end))
            || upper.starts_with("SIG-"))
}

/// The classes of a class file, a jar or a directory, in order, by the name of their entry.
/// `wanted` chooses by that name, without `.class`. In a directory, links that lead back to where
/// they lie, and what is neither a file nor a directory, are passed by.
pub fn classes_of(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(&str, &[u8]),
) -> Result<(), FileError> {
    classes_below(path, &mut Vec::new(), wanted, found)
}

/// `above` are the directories on the way to this path, by their canonical paths.
fn classes_below(
    path: &Path,
    above: &mut Vec<PathBuf>,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(&str, &[u8]),
) -> Result<(), FileError> {
    if path.is_dir() {
        above.push(fs::canonicalize(path).map_err(io(path))?);
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .and_then(|list| list.map(|entry| Ok(entry?.path())).collect())
            .map_err(io(path))?;
        entries.sort();
        for entry in entries {
            let Some(real) = real(&entry).filter(|real| !above.contains(real)) else { continue };
            let known =
                real.is_dir() || real.is_file() && !matches!(kind_of_file(&entry)?, Kind::Other);
            if known {
                classes_below(&entry, above, wanted, found)?;
            }
        }
        above.pop();
        return Ok(());
    }
    match kind_of_file(path)? {
        Kind::Class => {
            let name = path.with_extension("");
            let name = name.to_string_lossy();
            if wanted(&name) {
                let mut bytes = Vec::new();
                let file = File::open(path).map_err(io(path))?;
                file.take(LARGEST).read_to_end(&mut bytes).map_err(io(path))?;
                found(&name, &bytes);
            }
            Ok(())
        }
        Kind::Jar => {
            let reader = BufReader::new(File::open(path).map_err(io(path))?);
            let mut archive = ZipArchive::new(reader).map_err(zip(path))?;
            for index in 0..archive.len() {
                let entry = archive.by_index(index).map_err(zip(path))?;
                let name = entry.name().map_err(zip(path))?.into_owned();
                let Some(name) = name.strip_suffix(".class") else { continue };
                if wanted(name) && entry.size() <= LARGEST {
                    let mut bytes = Vec::new();
                    entry.take(LARGEST).read_to_end(&mut bytes).map_err(io(path))?;
                    found(name, &bytes);
                }
            }
            Ok(())
        }
        Kind::Other => Err(FileError::NotKnown(path.to_owned())),
    }
}
