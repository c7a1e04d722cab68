//! Source texts in archives: beside a jar of the class path, or wherever somebody says.

use super::class_path::ClassPath;
use super::jar::{list_of, member, names};
use std::io;
use std::path::{Path, PathBuf};
use tare_symbols::open_regular;

/// A file of a jar or zip by its name, or below one folder more: the JDK's sources have their
/// modules there. Whether it is an archive at all is told by the error.
pub fn in_archive(archive: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = open_regular(archive)?;
    let list = list_of(&file)?;
    if list.records.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no archive"));
    }
    let fits = |known: &&[u8]| {
        let folder = known.strip_suffix(name.as_bytes());
        folder.is_some_and(|folder| {
            let slashes = folder.iter().filter(|byte| **byte == b'/').count();
            folder.is_empty() || slashes == 1 && folder.ends_with(b"/")
        })
    };
    let found = names(&list.records).find(fits);
    let found = found.and_then(|name| std::str::from_utf8(name).ok());
    Ok(found.and_then(|name| member(&file, name)))
}

impl ClassPath {
    /// A file of the archive of sources beside the jar that a class is from, as build tools keep it.
    pub(super) fn text_beside(&self, class: &str, name: &str) -> Option<(PathBuf, Vec<u8>)> {
        let jar = self.entry(class)?;
        let stem = jar.file_name()?.to_str()?.strip_suffix(".jar")?;
        let archive = jar.with_file_name(format!("{stem}-sources.jar"));
        let bytes = in_archive(&archive, name).ok()??;
        Some((archive, bytes))
    }
}
