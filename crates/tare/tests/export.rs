//! `tare export` as a user runs it: files in, files out, and what it says when it cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn scratch(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join("in.collapsed"),
        "a.B.c;a.B.d 3\na.B.c;java.lang.Object.wait 2\n",
    )
    .unwrap();
    directory
}

fn tare(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.current_dir(directory).args(arguments).output().unwrap()
}

fn says(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_ending_writes_a_file_that_can_be_trusted() {
    let directory = scratch("export-endings");
    for name in [
        "x.collapsed",
        "x.html",
        "x.pb.gz",
        "x.jfr",
        "x.speedscope.json",
        "x.firefox.json",
        "x.otlp",
        "x.callgrind",
    ] {
        let output = tare(&directory, &["export", "in.collapsed", "-o", name]);
        assert!(output.status.success(), "{}", says(&output));
        assert!(says(&output).contains("5 samples (collapsed)"), "{}", says(&output));
        assert!(directory.join(name).metadata().unwrap().len() > 0);
    }
    // Each of those that can be read back gives the first file again.
    for name in ["x.pb.gz", "x.jfr", "x.collapsed"] {
        let output = tare(&directory, &["export", name, "-o", "again.collapsed"]);
        assert!(output.status.success(), "{}", says(&output));
        let text = std::fs::read_to_string(directory.join("again.collapsed")).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a.B.c;a.B.d 3", "a.B.c;java.lang.Object.wait 2"], "{name}");
    }
}

/// A value has its unit, and what it is of its name.
#[test]
fn what_was_written_is_said_in_words() {
    let directory = scratch("export-words");
    let mut profile = tare_profile::Profile::new();
    let kind = tare_profile::ValueKind::CpuTime;
    let info = tare_profile::SeriesInfo::new("cpu", kind.clone()).with_period(10_000_000, kind);
    let cpu = profile.add_series(info);
    let frame = profile.special("[x]");
    let context = profile.contexts.stack([frame]);
    let thread = tare_profile::ThreadId::UNKNOWN;
    profile.series_mut(cpu).push(tare_profile::Row::new(context, thread, 2_960_000_000));
    let writer = tare_recording::Writer::create(&directory.join("x.tare")).unwrap();
    writer.finish(&profile).unwrap();
    let output = tare(&directory, &["export", "x.tare", "-o", "x.html"]);
    assert!(says(&output).contains(" bytes, 2.96 s of CPU time ("), "{}", says(&output));
}

#[test]
fn filters_move_values_and_lose_none() {
    let directory = scratch("export-filters");
    let output = tare(&directory, &["export", "in.collapsed", "-o", "x.folded", "--hide-jdk"]);
    assert!(output.status.success(), "{}", says(&output));
    let text = std::fs::read_to_string(directory.join("x.folded")).unwrap();
    assert_eq!(text, "a.B.c 2\na.B.c;a.B.d 3\n");
    // Threads stay what they are.
    let with_threads = "[main tid=1];a.B.c;a.B.c 3\n[other tid=2];a.B.c;java.lang.Object.wait 2\n";
    std::fs::write(directory.join("threads.collapsed"), with_threads).unwrap();
    let narrow = |flags: &[&str]| {
        let words = ["export", "threads.collapsed", "-o", "y.collapsed", "--threads"];
        let output = tare(&directory, &[&words, flags].concat());
        assert!(output.status.success(), "{}", says(&output));
        std::fs::read_to_string(directory.join("y.collapsed")).unwrap()
    };
    let folded = "[main tid=1];a.B.c 3\n[other tid=2];a.B.c 2\n";
    assert_eq!(narrow(&["--hide-jdk", "--fold-recursion"]), folded);
    assert_eq!(narrow(&["--thread", "main", "--by", "package"]), "[main tid=1];a 3\n");
    assert_eq!(narrow(&["--root", "java.lang"]), "[other tid=2];java.lang.Object.wait 2\n");
}

#[test]
fn what_cannot_be_done_is_said_with_the_remedy() {
    let directory = scratch("export-errors");
    let fails = |arguments: &[&str], expected: &str| {
        let output = tare(&directory, arguments);
        assert_eq!(output.status.code(), Some(1), "{}", says(&output));
        assert!(says(&output).contains(expected), "{}", says(&output));
    };
    fails(&["export", "in.collapsed", "-o", "x.png"], ".speedscope.json");
    fails(&["export", "no.jfr", "-o", "x.html"], "there is no file no.jfr");
    fails(&["export", "in.collapsed", "-o", "in.collapsed"], "would overwrite");
    fails(&["export", "in.collapsed", "-o", "x.trace.json"], "holds no times");
    fails(&["export", "in.collapsed", "-o", "x.pb.gz", "--baseline", "in.collapsed"], "tare diff");
    fails(&["export", "in.collapsed", "-o", "x.html", "--metric", "bytes"], "collapsed:samples");
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
