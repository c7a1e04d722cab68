//! Recordings that were made to hurt: a few kilobytes whose stacks and names would be gigabytes if
//! they were written as they are. What is exported of them, and what that takes, is bounded and
//! said.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_profile::{
    ContextId, Frame, Method, MethodKind, Profile, Row, SeriesInfo, StringId, ThreadId, TimeAxis,
    ValueKind,
};
use tare_recording::Writer;

/// KiB of memory that a command may ask for, with what a process takes before it does anything.
const MEMORY: u64 = 1 << 20;
/// Bytes that it may write: those of stacks and of names, and of numbers beside them.
const WRITTEN: u64 = 256 << 20;

const ENDINGS: [&str; 9] = [
    "collapsed",
    "html",
    "pb.gz",
    "jfr",
    "speedscope.json",
    "firefox.json",
    "trace.json",
    "otlp",
    "callgrind",
];

fn write(name: &str, profile: &Profile) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("crafted.tare");
    let writer = Writer::new(File::create(&path).unwrap()).unwrap();
    writer.finish(profile).unwrap();
    path
}

fn samples(profile: &mut Profile) -> tare_profile::SeriesId {
    profile.run.started = Some(1);
    let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
    profile.add_series(info.with_period(1_000, ValueKind::CpuTime))
}

/// Exports to every format with little memory; what each says.
fn export(recording: &Path) -> Vec<String> {
    let mut said = Vec::new();
    for ending in ENDINGS {
        let output = recording.with_extension(ending);
        // Units of 512 bytes; whoever writes more is stopped by a signal.
        let limits = format!("ulimit -v {MEMORY}; ulimit -f {}; exec \"$@\"", WRITTEN / 512);
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_tare"), "export"]);
        let done = command.arg(recording).arg("-o").arg(&output).output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{ending}: {}\n{text}", done.status);
        let size = fs::metadata(&output).unwrap().len();
        assert!(size <= WRITTEN, "{ending}: {size} bytes");
        fs::remove_file(&output).unwrap();
        said.push(format!("{ending}: {text}"));
    }
    said
}

/// Two stacks that have no frame in common where it matters, in turn, so that each row is written
/// whole; and more rows than a file of that size has bytes.
#[test]
fn many_rows_of_deep_stacks() {
    let mut profile = Profile::new();
    let series = samples(&mut profile);
    // Circles of calls are folded, but for those that are longer than these.
    let frames: Vec<_> = (0..13).map(|n| profile.special(&format!("a.B.m{n}"))).collect();
    let mut ends = Vec::new();
    for first in ["a.B.left", "a.B.right"] {
        let frame = profile.special(first);
        let mut at = profile.contexts.child(ContextId::ROOT, frame);
        for depth in 0..2_000 {
            at = profile.contexts.child(at, frames[depth % frames.len()]);
        }
        ends.push(at);
    }
    for time in 0..300_000 {
        let row = Row::new(ends[time % 2], ThreadId::UNKNOWN, 1_000).at(time as u64 * 1_000);
        profile.series_mut(series).push(row);
    }
    let recording = write("crafted-rows", &profile);
    let size = fs::metadata(&recording).unwrap().len();
    assert!(size < 20_000, "it has {size} bytes");
    for said in export(&recording) {
        // The others write a stack once, however many rows it has.
        let of_rows = said.starts_with("speedscope") || said.starts_with("trace");
        assert_eq!(said.contains("frames of each are written"), of_rows, "{said}");
        assert!(said.contains("300 ms of"), "the total stays: {said}");
    }
}

/// A class whose name has a megabyte, and many methods of it.
#[test]
fn long_names() {
    let mut profile = Profile::new();
    let series = samples(&mut profile);
    let class = profile.strings.intern(&"x".repeat(1 << 20));
    for number in 0..400 {
        let name = profile.strings.intern(&number.to_string());
        let method = Method { kind: MethodKind::Java, class, name, ..Method::default() };
        let method = profile.methods.intern(Method { file: StringId::EMPTY, ..method });
        let frame = profile.frames.intern(Frame::of(method));
        let at = profile.contexts.child(ContextId::ROOT, frame);
        let row = Row::new(at, ThreadId::UNKNOWN, 1_000).at(number * 1_000);
        profile.series_mut(series).push(row);
    }
    let recording = write("crafted-names", &profile);
    let size = fs::metadata(&recording).unwrap().len();
    assert!(size < 40_000, "it has {size} bytes");
    for said in export(&recording) {
        assert!(said.contains("1 long names: no more than"), "{said}");
        assert!(said.contains("400 µs of"), "the total stays: {said}");
    }
}

/// Files that have no end are refused by every command that reads one.
#[test]
fn devices_and_pipes_are_not_read() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crafted-pipes");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let pipe = directory.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for file in ["/dev/zero", pipe] {
        for words in [
            &["calibrate-target", file][..],
            &["record", "--bytecodes", "--target", file, "--", "true"],
            &["check", "--baseline", file, "--", "true"],
            &["report", file],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
            let output = command.args(words).current_dir(&directory).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
            assert!(said.contains("a device or a pipe"), "{words:?}: {said}");
        }
    }
}
