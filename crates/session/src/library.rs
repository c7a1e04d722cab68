//! Where the agent's library is, in this program or in a file, and that it is of this build.

use crate::error::{Context, Result, refuse};
use std::borrow::Cow;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
pub use tare_attach::Library;
use tare_protocol::{BUILD_ID, BUILD_MARKER, library_name};

/// Overrides the search, for packagers and for odd installations.
const OVERRIDE: &str = "TARE_AGENT_LIBRARY";

/// The agent that the program carries, if it was built so.
static CARRIED: OnceLock<&'static [u8]> = OnceLock::new();

/// Tells which agent this program carries, once, at its start.
pub fn carry(agent: &'static [u8]) {
    let _ = CARRIED.set(agent);
}

/// The library that belongs to this program: the one that it carries, or else a file beside it, as
/// cargo builds it for development, or in `../lib/tare`, where a package may install it.
pub fn locate() -> Result<Library> {
    if env::var_os(OVERRIDE).is_none()
        && let Some(agent) = CARRIED.get()
    {
        return Ok(Library::Carried(agent));
    }
    file().map(Library::File)
}

fn file() -> Result<PathBuf> {
    let candidates = match env::var_os(OVERRIDE) {
        Some(path) => vec![PathBuf::from(path)],
        None => {
            let exe = env::current_exe().context("cannot tell where this program lies")?;
            let bin = exe.parent().unwrap_or(Path::new("/"));
            let lib = bin.join("../lib/tare");
            [bin, &lib]
                .iter()
                .flat_map(|dir| [dir.join(library_name(BUILD_ID)), dir.join("libtare_agent.so")])
                .collect()
        }
    };
    let mut stale = None;
    for path in &candidates {
        let Ok(bytes) = fs::read(path) else { continue };
        if contains(&bytes, BUILD_MARKER.as_bytes()) {
            return fs::canonicalize(path)
                .with_context(|| format!("cannot resolve {}", path.display()));
        }
        stale = Some(path);
    }
    match stale {
        Some(path) => refuse!(
            "{} is the agent of another build; build both again (cargo build -p tare-cli -p tare-agent)",
            path.display()
        ),
        None => refuse!(
            "the agent library is missing: looked for {}. Build it with `cargo build -p tare-agent`, \
             or name it in {OVERRIDE}",
            candidates.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A copy under its build's name that stays, for programs launched with the agent: they, and the
/// JVMs that they start, may read it long after this process has ended.
pub fn install() -> Result<PathBuf> {
    let name = library_name(BUILD_ID);
    let bytes = match locate()? {
        Library::Carried(bytes) => Cow::from(bytes),
        Library::File(path) if path.file_name().is_some_and(|file| file == name.as_str()) => {
            return Ok(path);
        }
        Library::File(path) => {
            Cow::from(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?)
        }
    };
    let dir = cache_dir()?.join("agent");
    let path = dir.join(&name);
    if fs::read(&path).is_ok_and(|there| *there == *bytes) {
        return Ok(path);
    }
    // Written beside and renamed: a JVM that has the old file mapped keeps it whole.
    let temporary = dir.join(format!("{name}.{}", std::process::id()));
    let written = fs::create_dir_all(&dir)
        .and_then(|()| File::create(&temporary))
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&temporary, &path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temporary);
        return Err(e).with_context(|| {
            format!("cannot write to {}; set TARE_CACHE to a directory of yours", dir.display())
        });
    }
    Ok(path)
}

fn cache_dir() -> Result<PathBuf> {
    let dir = |key| env::var_os(key).filter(|v| !v.is_empty()).map(PathBuf::from);
    dir("TARE_CACHE")
        .or_else(|| dir("XDG_CACHE_HOME").map(|d| d.join("tare")))
        .or_else(|| dir("HOME").map(|d| d.join(".cache/tare")))
        .filter(|d| d.is_absolute())
        .context("no directory for the agent library: set TARE_CACHE or HOME to an absolute path")
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    let Some(&first) = needle.first() else { return true };
    haystack
        .iter()
        .enumerate()
        .any(|(at, &byte)| byte == first && haystack[at..].starts_with(needle))
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn the_marker_is_found_wherever_it_stands() {
        assert!(contains(b"xxmarker", b"marker"));
        assert!(contains(b"mmarkerx", b"marker"));
        assert!(!contains(b"xxmarke", b"marker"));
        assert!(!contains(b"", b"marker"));
    }
}
