//! Facts about this machine and small things that many tests need.

use crate::env::{Jdk, env, skip};
use crate::java::classes;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

/// How long anything may take before a test calls it hung. One figure for all: whatever waits for a
/// JVM, for Tare or for a program waits that long, so that a machine with ten times as much to do
/// as it has processors fails no test.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A directory that vanishes with the value. Everybody may read it, because some targets run as
/// another user.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        Scratch::below(&std::env::temp_dir())
    }

    pub fn below(parent: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("jvm-test-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap_or_else(|e| panic!("creating {}: {e}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own directory");
        Scratch { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Waits for something that happens soon; panics if it never does. To look may take long, too: when
/// time is up it is looked at once more.
#[track_caller]
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let began = Instant::now();
    loop {
        let is_last = began.elapsed() >= PATIENCE;
        if happened() {
            return;
        }
        assert!(!is_last, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this machine lets us do what `words` do; says so if not.
pub fn can(test: &str, words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        let tool: Vec<_> = words.iter().take_while(|word| **word != "sh").copied().collect();
        skip(test, &format!("this user cannot do `{} …` here", tool.join(" ")));
    }
    can
}

/// A Java runtime that any user can start. A cache in the home of root, for example, is out of
/// their reach.
pub fn shared_jdk(test: &str, as_user: &[&str]) -> Option<&'static Jdk> {
    let starts = |jdk: &&Jdk| {
        let mut command = Command::new(as_user[0]);
        command.args(&as_user[1..]).arg(jdk.java()).arg("-version").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = env().jdks.iter().find(starts);
    if found.is_none() {
        skip(test, "no Java runtime here can be started by another user");
    }
    found
}

/// A copy of the target classes that any user can read, in a directory of the test's own.
pub fn shared_classes(scratch: &Scratch) -> PathBuf {
    let place = scratch.join("classes");
    fs::create_dir_all(&place).expect("our own directory");
    for entry in fs::read_dir(classes()).expect("the classes were compiled") {
        let file = entry.expect("a directory entry").path();
        let copy = place.join(file.file_name().expect("a name"));
        fs::copy(&file, &copy).expect("our own directory");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).expect("our own file");
    }
    place
}

/// Asserts that no JVM left a crash report in a directory.
pub fn no_crash_files(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let crashes: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("hs_err") || name.starts_with("core"))
        .collect();
    assert!(crashes.is_empty(), "{crashes:?} in {}", directory.display());
}

/// Numbers that look random and are the same in every run.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Seeded(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_vanishes() {
        let path = {
            let scratch = Scratch::new();
            fs::write(scratch.join("file"), "x").unwrap();
            scratch.path().to_owned()
        };
        assert!(!path.exists());
    }

    #[test]
    #[should_panic(expected = "hs_err")]
    fn a_crash_report_is_noticed() {
        let scratch = Scratch::new();
        fs::write(scratch.join("hs_err_pid1.log"), "x").unwrap();
        no_crash_files(scratch.path());
    }

    #[test]
    fn seeded_numbers_repeat_and_stay_below() {
        let take = || {
            let mut seeded = Seeded::new(7);
            (0..100).map(|_| seeded.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(take(), take());
        assert!(take().iter().all(|n| *n < 10));
        assert!(take().iter().any(|n| *n != take()[0]));
    }
}
