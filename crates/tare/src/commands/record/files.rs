//! Where a recording goes: names that nobody has taken, formats of other tools, and room on the
//! disk.

use super::Job;
use crate::commands::export;
use crate::relayed;
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tare_attach::Jvm;
use tare_formats::Format;
use tare_session::{Output, Place, has_no_room};

/// A name that cannot be written is said before anything is recorded.
pub fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(path) = output else { return Ok(()) };
    let ours = path.extension().is_none_or(|ending| ending == "tare");
    if !ours && Format::of_path(path).is_none() {
        bail!(
            "the ending of {} names no format: .tare for a recording, .html for a flame graph, or \
             what `tare export --help` lists",
            path.display()
        );
    }
    if path.is_dir() {
        bail!("-o {} is a directory; name a file in it", path.display());
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        bail!("there is no directory {} for the recording", directory.display());
    }
    Ok(())
}

/// A disk that is full is told of before the JVM is touched, and before an older file is replaced.
pub fn check_room(output: Option<&Path>) -> Result<()> {
    if relayed::is() {
        return Ok(());
    }
    let is_file = |path: &Path| std::fs::metadata(path).map_or(true, |there| there.is_file());
    let path = output.unwrap_or(Path::new("."));
    let above = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if output.is_some_and(|path| !is_file(path)) || !has_no_room(above) {
        return Ok(());
    }
    bail!(
        "the disk of {} is nearly full; make room, or name a file elsewhere with -o",
        std::path::absolute(above)?.display()
    );
}

/// The names of files that recordings of this command have taken: a command may start many JVMs,
/// and none may overwrite what another one wrote.
#[derive(Default)]
pub struct Names(Mutex<HashSet<PathBuf>>);

impl Names {
    /// The name that was asked for, or one that no file has: by the program, its pid and what is
    /// recorded. Where one command records several JVMs, the second gets its pid before the ending.
    fn take(&self, job: &Job, jvm: &Jvm) -> PathBuf {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(wanted) = job.output.clone() else {
            let stem = format!("{}-{}-{}", short_name(jvm.name()), jvm.pid, job.plan.what.name());
            let free = unused(&stem, "tare", |path| taken.contains(path) || path.exists());
            taken.insert(free.clone());
            return free;
        };
        if taken.insert(wanted.clone()) {
            return wanted;
        }
        let name = wanted.file_name().unwrap_or_default().to_string_lossy();
        let (stem, ending) = name.split_once('.').unwrap_or((&name, "tare"));
        let stem = wanted.with_file_name(format!("{stem}-{}", jvm.pid));
        // Nobody has named that one.
        let is_used = |path: &Path| taken.contains(path) || path.exists();
        let free = unused(&stem.to_string_lossy(), ending, is_used);
        taken.insert(free.clone());
        free
    }
}

/// `Shop-4711-cpu.tare`, or with a number if there is such a file.
pub fn unused(stem: &str, ending: &str, is_used: impl Fn(&Path) -> bool) -> PathBuf {
    let numbered = |number: u32| PathBuf::from(format!("{stem}-{number}.{ending}"));
    std::iter::once(PathBuf::from(format!("{stem}.{ending}")))
        .chain((2..).map(numbered))
        .find(|path| !is_used(path))
        .unwrap_or_default()
}

/// Where a recording goes.
pub struct Files {
    /// The recording itself.
    pub recording: PathBuf,
    /// Where the result goes and its format, if that is not the recording itself.
    pub export: Option<(PathBuf, Format, bool)>,
    /// The JVM, if all of it goes to the other end of a relay. The name of the recording is then a
    /// proposal.
    relayed: Option<(String, u32)>,
}

impl Files {
    pub fn take(job: &Job, jvm: &Jvm, names: &Names) -> Self {
        let files = Files::of_output(names.take(job, jvm));
        Files { relayed: relayed::is().then(|| (jvm.name().to_owned(), jvm.pid)), ..files }
    }

    /// A recording, or a file of another tool that is made of one.
    pub fn of_output(output: PathBuf) -> Self {
        let export = Format::of_path(&output).map(|(format, gzip)| (output.clone(), format, gzip));
        let recording = if export.is_some() { beside(&output) } else { output };
        Files { recording, export, relayed: None }
    }

    /// Where the recording goes, and where the result will be.
    pub fn place(&self) -> Place {
        let jvm = self.relayed.as_ref().map(|(name, pid)| (name.as_str(), *pid));
        let name = self.recording.display().to_string();
        if let Some(file) = jvm.and_then(|jvm| relayed::file(&name, Some(jvm))) {
            return Place { output: Output::Link(Box::new(file)), result: None };
        }
        let result = self.export.as_ref().map_or(&self.recording, |(path, ..)| path);
        Place { output: Output::File(self.recording.clone()), result: Some(result.clone()) }
    }

    /// Makes the file that was asked for of a recording of this size; its path and size.
    pub fn complete(self, size: u64) -> Result<(PathBuf, u64)> {
        let Some((path, format, gzip)) = self.export else { return Ok((self.recording, size)) };
        let size = export::save(&self.recording, format, gzip, &path)
            .with_context(|| format!("{} has the recording", self.recording.display()))?;
        std::fs::remove_file(&self.recording)?;
        Ok((path, size))
    }
}

/// Where a recording grows that becomes another tool's file at its end. One that is there is all
/// that is left of a recording whose end went wrong.
fn beside(output: &Path) -> PathBuf {
    let stem = format!("{}.unfinished", output.display());
    unused(&stem, "tare", Path::exists)
}

/// The last part of a class's name, or a jar's without its ending, as it can stand in a file's
/// name.
fn short_name(name: &str) -> String {
    const LONGEST: usize = 60;
    let last = match name.strip_suffix(".jar") {
        Some(jar) => jar.rsplit('/').next().unwrap_or(jar),
        None => name.rsplit(['.', '/']).next().unwrap_or(name),
    };
    let plain = |c: char| c.is_alphanumeric() || "_$-+.".contains(c);
    let short: String =
        last.chars().take(LONGEST).map(|c| if plain(c) { c } else { '_' }).collect();
    if short.is_empty() { "jvm".to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_does_not_choose_where_its_recording_goes() {
        for (name, file) in [
            ("com.acme.Orders$Main", "Orders$Main"),
            ("lib/orders-1.2.jar", "orders-1.2"),
            ("shop.jar", "shop"),
            ("a.Größe", "Größe"),
            ("a.b/../../etc/x y\u{1b}[2J\n", "x_y__2J_"),
            ("a.", "jvm"),
        ] {
            assert_eq!(short_name(name), file, "{name:?}");
        }
        assert!(short_name(&"x".repeat(5000)).len() < 100);
    }

    #[test]
    fn a_name_of_our_own_is_never_that_of_a_file() {
        let used = ["Shop-1-cpu.tare", "Shop-1-cpu-2.tare"];
        let name =
            |stem| unused(stem, "tare", |path| used.iter().any(|used| path == Path::new(used)));
        assert_eq!(name("Shop-1-cpu"), Path::new("Shop-1-cpu-3.tare"));
        assert_eq!(name("Shop-1-exact"), Path::new("Shop-1-exact.tare"));
    }
}
