//! A result is made in a place of its own and moved to where it was asked for once it is whole: a
//! run that fails leaves nothing, and what was there before stays as it was.

use crate::files::{FileError, io};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the names of such places begin with. Who reads a directory passes them by: they may lie in
/// it, also those of a run that was killed.
const PREFIX: &str = ".tare-part-";

/// The place of a result that is not whole yet. It is removed with the value.
pub struct Staging {
    part: PathBuf,
    output: PathBuf,
}

impl Staging {
    /// For a result that goes to `output`. It lies in it if that is a directory by now, else beside
    /// it: on the same file system in either case.
    pub fn new(output: &Path) -> Self {
        let above = if output.is_dir() { output } else { parent(output) };
        let name = output.file_name().unwrap_or(OsStr::new("output")).to_string_lossy();
        let part = above.join(format!("{PREFIX}{}-{name}", std::process::id()));
        Staging { part, output: output.to_owned() }
    }

    /// Where to write meanwhile; nothing is there yet.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Moves the whole result to its place. A directory that is there keeps what else is in it, and
    /// is not replaced at once but file by file: if that fails on the way, each file is the old or
    /// the new one.
    pub fn place(self) -> Result<(), FileError> {
        check(&self.part, &self.output)?;
        place(&self.part, &self.output)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.part.is_dir() {
            let _ = fs::remove_dir_all(&self.part);
        } else {
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Whether a file of this name is a result on its way.
pub(crate) fn is_part(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Whether it is one of this run.
pub(crate) fn is_own_part(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(format!("{PREFIX}{}-", std::process::id()).as_bytes())
}

/// The directory that a path lies in, also of a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether the whole of it can be moved: what is a directory here and a file there, or the other
/// way round, is found before anything was moved.
fn check(from: &Path, to: &Path) -> Result<(), FileError> {
    match (from.is_dir(), to.is_dir()) {
        (true, false) if to.symlink_metadata().is_ok() => Err(ErrorKind::NotADirectory),
        (false, true) => Err(ErrorKind::IsADirectory),
        _ => Ok(()),
    }
    .map_err(|kind| io(to)(kind.into()))?;
    if from.is_dir() && to.is_dir() {
        for entry in entries(from)? {
            check(&entry, &to.join(entry.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// Each file is replaced at once, so that it is the old or the new one whatever happens meanwhile.
fn place(from: &Path, to: &Path) -> Result<(), FileError> {
    if !(from.is_dir() && to.is_dir()) {
        return fs::rename(from, to).map_err(io(to));
    }
    for entry in entries(from)? {
        place(&entry, &to.join(entry.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// In the order of their names.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let list = fs::read_dir(directory)
        .and_then(|list| list.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let mut list = list.map_err(io(directory))?;
    list.sort();
    Ok(list)
}
