//! HotSpot's own dump, for JVMs of which no copy can be made. It stops the program while the file
//! is written, which the JVM does by itself, with its own rights, in its own file system.

use super::Taken;
use crate::error::{Context, Error, Result, refuse};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_attach::Jvm;

/// Has the JVM write a `.hprof` file, which must not be there yet. Where the JVM does not tell how
/// long it stood, the whole time counts as pause. What a JVM in a container has written is fetched
/// from there.
pub fn dump_by_hotspot(jvm: &Jvm, output: &Path, patience: Duration) -> Result<Taken> {
    let output = std::path::absolute(output)?;
    let inside = match jvm.same_mount_ns {
        true => output.clone(),
        false => PathBuf::from(format!("/tmp/tare-heap-{}.hprof", std::process::id())),
    };
    let Some(path) = inside.to_str() else {
        refuse!("the JVM cannot be told a path that is no text: {}", inside.display());
    };
    let (began, before) = (Instant::now(), tare_attach::safepoint_time(jvm));
    let said = tare_attach::dump_heap(jvm, path, patience).map_err(Error::from)?;
    let whole = began.elapsed();
    let stood = before.zip(tare_attach::safepoint_time(jvm));
    let pause = stood.and_then(|(before, after)| after.checked_sub(before)).unwrap_or(whole);
    if !said.contains("created") {
        return Err(Error::Agent(format!(
            "the JVM wrote no dump: {}",
            crate::words::plain(said.trim())
        )));
    }
    if !jvm.same_mount_ns {
        let root = PathBuf::from(format!("/proc/{}/root", jvm.pid));
        let written = root.join(inside.strip_prefix("/").unwrap_or(&inside));
        let fetched = fetch(&written, &output);
        let _ = fs::remove_file(&written);
        fetched.with_context(|| format!("cannot fetch the JVM's dump to {}", output.display()))?;
    }
    let bytes = fs::metadata(&output).map_or(0, |file| file.len());
    Ok(Taken {
        path: output,
        is_hprof: true,
        pause,
        fork: Duration::ZERO,
        life: whole,
        attempts: 1,
        objects: 0,
        bytes,
        samples: 0,
        notes: Vec::new(),
    })
}

/// Copies a file to a new one that nobody else may read.
fn fetch(from: &Path, to: &Path) -> io::Result<()> {
    // The JVM's owner could have put a link in its place, to a file of ours.
    let mut from = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(from)?;
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let copied = io::copy(&mut from, &mut new);
    if copied.is_err() {
        let _ = fs::remove_file(to);
    }
    copied.map(|_| ())
}
