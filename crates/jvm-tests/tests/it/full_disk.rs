//! The disk is full, from the beginning or in the middle of a recording: one error that says so,
//! nothing half left on the disk, and nothing of ours left in the JVM.

use crate::common::assert_no_trace;
use crate::heap_hostile::assert_no_copy;
use std::fs;
use std::path::{Path, PathBuf};
use tare_jvm_tests::{Running, Scratch, Tare, Target, can, jdk, wait_until};

const MODES: [&[&str]; 3] = [&[], &["--exact"], &["--trace"]];

/// A tool that sees a disk of its own at a directory, as large as is told; filled, if it is to be.
fn with_disk(at: &Path, size: &str, full: bool) -> Vec<String> {
    let at = at.display();
    let fill = if full { format!("dd if=/dev/zero of={at}/fill bs=64k; ") } else { String::new() };
    let mount =
        format!("mount -t tmpfs -o size={size} tmpfs {at} && {{ {fill}exec \"$@\"; }} 2>&1");
    ["unshare", "--mount", "sh", "-c", &mount, "sh"].map(str::to_owned).into()
}

fn through(words: &[String]) -> Tare {
    Tare::this().through(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The directory as the tool sees it.
fn seen_by(tool: &Running, path: &Path) -> PathBuf {
    Path::new(&format!("/proc/{}/root", tool.pid())).join(path.strip_prefix("/").expect("absolute"))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn from_the_beginning() {
    const TEST: &str = "a disk that is full";
    let scratch = Scratch::new();
    let disk = with_disk(scratch.path(), "1m", true);
    if !can(TEST, &[&disk.iter().map(String::as_str).collect::<Vec<_>>()[..], &["true"]].concat()) {
        return;
    }
    let mut target = Target::idle(jdk()).start();
    for mode in MODES {
        let file = scratch.join("x.tare").display().to_string();
        let list = format!("\"$@\"; code=$?; ls -a {}; exit $code", scratch.path().display());
        let mut words = disk.clone();
        words.extend(["sh", "-c", &list, "sh"].map(str::to_owned));
        let name = target.name();
        let all = [&["record", "-o", &file, "-d", "1s"], mode, &[&name]].concat();
        let outcome = through(&words).run(&all);
        assert_eq!(outcome.code, 1, "{mode:?}: {}", outcome.describe());
        assert!(outcome.out.contains("nearly full"), "{mode:?}: {}", outcome.describe());
        assert!(!outcome.out.contains("x.tare.part"), "{mode:?}: {}", outcome.describe());
        assert_no_trace(target.pid());
        target.check_works();
    }
    target.finish();
}

#[test]
fn in_the_middle() {
    const TEST: &str = "a disk that becomes full";
    let scratch = Scratch::new();
    let disk = with_disk(scratch.path(), "16m", false);
    if !can(TEST, &[&disk.iter().map(String::as_str).collect::<Vec<_>>()[..], &["true"]].concat()) {
        return;
    }
    let mut target = Target::idle(jdk()).start();
    for mode in MODES {
        let file = scratch.join("x.tare").display().to_string();
        let name = target.name();
        let all = [&["record", "-o", &file], mode, &[&name]].concat();
        let recording = through(&disk).start(&all);
        let dir = seen_by(&recording, scratch.path());
        wait_until("the recording has begun", || dir.join("x.tare").exists());
        // As another program would do it; the last piece finds no room.
        let filled = fs::write(dir.join("fill"), vec![0; 64 << 20]);
        assert!(filled.is_err(), "a disk of 16 MiB has room for 64");
        target.check_works();
        let outcome = recording.wait();
        assert_eq!(outcome.code, 1, "{mode:?}: {}", outcome.describe());
        assert!(outcome.out.contains("nearly full"), "{mode:?}: {}", outcome.describe());
        assert_no_trace(target.pid());
        target.check_works();
    }
    target.finish();
}

/// A snapshot that finds no room: none is left, and no copy of the JVM.
#[test]
fn a_snapshot() {
    const TEST: &str = "a snapshot on a full disk";
    let scratch = Scratch::new();
    let disk = with_disk(scratch.path(), "1m", true);
    if !can(TEST, &[&disk.iter().map(String::as_str).collect::<Vec<_>>()[..], &["true"]].concat()) {
        return;
    }
    let mut target = Target::idle(jdk()).start();
    let file = scratch.join("x.tareheap").display().to_string();
    let list = format!("\"$@\"; code=$?; ls -a {}; exit $code", scratch.path().display());
    let mut words = disk;
    words.extend(["sh", "-c", &list, "sh"].map(str::to_owned));
    let outcome = through(&words).run(&["heap", &target.name(), "-o", &file]);
    assert_eq!(outcome.code, 1, "{}", outcome.describe());
    assert!(outcome.out.contains("No space left"), "{}", outcome.describe());
    assert!(!outcome.out.lines().any(|line| line == "x.tareheap"), "{}", outcome.describe());
    assert_no_copy(target.pid());
    target.check_works();
    target.finish();
}

/// A recording that cannot begin for another reason: the file is one that nobody may write.
#[test]
fn a_file_that_cannot_be_written() {
    let scratch = Scratch::new();
    let mut target = Target::idle(jdk()).start();
    let place = scratch.join("x.tare");
    fs::create_dir(scratch.join("x.tare.part")).unwrap();
    for mode in MODES {
        let (file, name) = (place.display().to_string(), target.name());
        let all = [&["record", "-o", &file, "-d", "1s"], mode, &[&name]].concat();
        Tare::this().run(&all).fails(1, &["cannot write", "x.tare"]);
        assert_eq!(names(scratch.path()), ["x.tare.part"]);
        assert_no_trace(target.pid());
        target.check_works();
    }
    target.finish();
}
