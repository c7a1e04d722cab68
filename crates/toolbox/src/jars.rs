//! Jars that Maven fetches by name into the cache, and what is made of them.
//!
//! A group of jars is there whole or not at all, and is never fetched twice. Which jars somebody
//! wants, and what for, the callers know.

use crate::jdks::Jdk;
use crate::runtimes::cache_dir;
use crate::shell::{self, which};
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ASYNC_PROFILER: &str = "tools.profiler:async-profiler:4.0";

/// Where the library for this machine is in its jar.
const ASYNC_LIBRARY: &str = if cfg!(target_arch = "aarch64") {
    "linux-arm64/libasyncProfiler.so"
} else {
    "linux-x64/libasyncProfiler.so"
};

/// The jars of a directory, sorted.
pub fn jars_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut jars: Vec<PathBuf> = fs::read_dir(directory)
        .with_context(|| format!("reading {}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "jar"))
        .collect();
    jars.sort();
    Ok(jars)
}

/// One group of jars by name; a group that cannot be had is said loudly, and the rest goes on.
pub fn fetch(stages: &mut Stages, name: &str, artifacts: &[&str]) -> Option<PathBuf> {
    match try_fetch(name, artifacts) {
        Ok(directory) => Some(directory),
        Err(error) => {
            println!("NOT COVERED: {name}: {error:#}");
            stages.note(format!("NOT COVERED: {name}: {error:#}"));
            None
        }
    }
}

/// Where these jars are, if they were fetched before.
fn fetched(name: &str, artifacts: &[&str]) -> Option<PathBuf> {
    let place = cache_dir().ok()?.join("weave-corpus").join(name);
    // The list is part of the place: another version is another list.
    let known = fs::read_to_string(place.join("list")).ok()?;
    (known == artifacts.join("\n")).then_some(place)
}

/// Where jars come from, only Maven's own settings know.
fn try_fetch(name: &str, artifacts: &[&str]) -> Result<PathBuf> {
    if let Some(place) = fetched(name, artifacts) {
        return Ok(place);
    }
    let cache = cache_dir()?.join("weave-corpus");
    let place = cache.join(name);
    let list = artifacts.join("\n");
    if which("mvn").is_none() {
        bail!("there is no mvn to fetch {}; install Maven", artifacts.join(", "));
    }
    let work = cache.join(format!(".fetching-{name}-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let outcome = fetch_into(&work, artifacts).and_then(|()| {
        fs::write(work.join("list"), &list)?;
        let _ = fs::remove_dir_all(&place);
        fs::rename(&work, &place).context("moving the jars to their place")
    });
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

fn fetch_into(work: &Path, artifacts: &[&str]) -> Result<()> {
    println!("fetching {} with Maven …", artifacts.join(", "));
    // One project per artifact: old jars depend on versions that exclude each other.
    for artifact in artifacts {
        let parts: Vec<&str> = artifact.split(':').collect();
        let more = match parts[..] {
            [_, _, _] => String::new(),
            // Sources have no dependencies of their own.
            [_, _, _, kind, classifier] => format!(
                "<type>{kind}</type><classifier>{classifier}</classifier><exclusions><exclusion>\
                 <groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
            ),
            _ => bail!("{artifact} is not group:artifact:version[:type:classifier]"),
        };
        let (group, id, version) = (parts[0], parts[1], parts[2]);
        let project = work.join("pom.xml");
        fs::write(
            &project,
            format!(
                "<project><modelVersion>4.0.0</modelVersion><groupId>tare</groupId>\
                 <artifactId>corpus</artifactId><version>1</version><dependencies><dependency>\
                 <groupId>{group}</groupId><artifactId>{id}</artifactId>\
                 <version>{version}</version>{more}</dependency></dependencies></project>"
            ),
        )?;
        let mut mvn = Command::new("mvn");
        mvn.args(["--batch-mode", "--quiet", "--file"]).arg(&project);
        mvn.arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies");
        mvn.arg(format!("-DoutputDirectory={}", work.display()));
        shell::output(&mut mvn).with_context(|| format!("Maven cannot bring {artifact}"))?;
    }
    fs::remove_file(work.join("pom.xml"))?;
    Ok(())
}

/// Unpacks the jars of a directory below `work`, with the JDK's own tool.
pub fn unpack(javac: &Jdk, work: &Path, jars: &Path, name: &str) -> Result<PathBuf> {
    let place = work.join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place)?;
    for jar in jars_in(jars)? {
        let mut command = Command::new(javac.home.join("bin/jar"));
        shell::run(command.current_dir(&place).arg("-xf").arg(jar))?;
    }
    Ok(place)
}

/// async-profiler's library; `None` if it cannot be had.
pub fn async_profiler(javac: &Jdk, work: &Path, stages: &mut Stages) -> Option<PathBuf> {
    let place = fetch(stages, "async-profiler", &[ASYNC_PROFILER])?;
    let library = unpack(javac, work, &place, "async-profiler").ok()?.join(ASYNC_LIBRARY);
    if !library.is_file() {
        stages.note(format!("NOT COVERED: {ASYNC_PROFILER} has no {ASYNC_LIBRARY}"));
        return None;
    }
    Some(library)
}

/// The same for those who can do without: only if it was fetched at some time.
pub fn fetched_async_profiler(javac: &Jdk, work: &Path) -> Option<PathBuf> {
    let place = fetched("async-profiler", &[ASYNC_PROFILER])?;
    let library = unpack(javac, work, &place, "async-profiler").ok()?.join(ASYNC_LIBRARY);
    library.is_file().then_some(library)
}
