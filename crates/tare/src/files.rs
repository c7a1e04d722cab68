//! Small files of a user's, read within bounds.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
pub use tare_session::files::{replace, replace_by};

/// The text of a file of at most so many bytes. Opening a pipe waits for whoever writes into it,
/// and a device may have no end, so they are refused.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    let cannot = || format!("{} cannot be read", path.display());
    let kind = fs::metadata(path).with_context(cannot)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(tare_formats::ReadError::NotAFile).with_context(cannot);
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_string(&mut text))
        .with_context(cannot)?;
    if text.len() as u64 > most {
        bail!(
            "{} cannot be read: it has more than {} kB, and is no such file",
            path.display(),
            most >> 10
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tare-files-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let error = read_text("/dev/zero".as_ref(), 10).unwrap_err();
        assert!(format!("{error:#}").contains("a device or a pipe"), "{error:#}");
        let path = scratch("large");
        fs::write(&path, "x".repeat(11)).unwrap();
        let (large, whole) = (read_text(&path, 10), read_text(&path, 11));
        fs::remove_file(&path).unwrap();
        assert!(format!("{:#}", large.unwrap_err()).contains("more than"));
        assert_eq!(whole.unwrap().len(), 11);
    }
}
