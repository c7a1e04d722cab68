//! Files that are replaced as a whole, so that a full disk leaves what was there.

use crate::error::{Context, Error, Result};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file beside its place and moves it there, so that a failure leaves what was there. Into
/// a device or a pipe it is written as it comes.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_by(path, |mut file| Ok(file.write_all(bytes)?))
}

/// The same, of what is written bit by bit.
pub fn replace_by<T>(path: &Path, write: impl FnOnce(File) -> Result<T>) -> Result<T> {
    let cannot = || format!("cannot write {}", path.display());
    let there = fs::metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let file = File::options().write(true).open(path).with_context(cannot)?;
        return write(file).with_context(cannot);
    }
    // A link stays one.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = part_of(&place);
    let done = File::create(&part).map_err(Error::from).and_then(|file| {
        if let Ok(there) = there {
            // Who may read it stays as it is.
            let _ = fs::set_permissions(&part, there.permissions());
        }
        let outcome = write(file)?;
        fs::rename(&part, &place)?;
        Ok(outcome)
    });
    if done.is_err() {
        // The error that is reported is the first one.
        let _: io::Result<()> = fs::remove_file(&part);
    }
    done.with_context(cannot)
}

fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::refuse;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tare-files-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let path = scratch("kept");
        fs::write(&path, "old").unwrap();
        let failed = replace_by(&path, |mut file| -> Result<()> {
            file.write_all(b"half of the n")?;
            refuse!("no space left")
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("no space left"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(!part_of(&path).exists());
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!part_of(&path).exists());
        fs::remove_file(&path).unwrap();
        replace("/dev/null".as_ref(), b"new").unwrap();
    }

    #[test]
    fn links_stay_links() {
        let (path, link) = (scratch("linked"), scratch("link"));
        fs::write(&path, "old").unwrap();
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        let (text, is_link) = (fs::read_to_string(&path).unwrap(), link.is_symlink());
        fs::remove_file(&link).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((text.as_str(), is_link), ("new", true));
    }
}
