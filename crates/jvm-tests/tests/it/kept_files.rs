//! Files that nobody has named are never replaced: of recordings, of dumps, and of programs that
//! record themselves.

use crate::recording::Recorded;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use tare_jvm_tests::{Scratch, Tare, Target, classes_in, control_socket, jdk, wait_until};

const JOB: &str = "public class Job {
        static long sink;
        static long work(int n) { long s = 0; for (int i = 0; i < n; i++) { s += i % 7; } return s; }
        public static void main(String[] words) throws Exception {
            System.out.println(\"ready\");
            for (int i = 0; i < 500; i++) { sink += work(1000); }
            while (words.length > 0 && System.in.read() >= 0) { sink += work(1000); }
        }
    }";

const KEPT: &str = "kept";

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("our own directory");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a plain name")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.retain(|name| name.ends_with(".tare"));
    names.sort();
    names
}

#[track_caller]
fn assert_kept(directory: &Path, name: &str) {
    let text = fs::read(directory.join(name)).expect("a file that was there");
    assert_eq!(String::from_utf8_lossy(&text).trim(), KEPT, "{name}");
}

#[test]
fn names_of_a_second_jvm_and_of_what_is_unfinished() {
    let scratch = Scratch::new();
    let classes = scratch.join("classes");
    fs::create_dir(&classes).expect("our own directory");
    classes_in(&classes, "Job", JOB);
    let directory = scratch.join("here");
    fs::create_dir(&directory).expect("our own directory");
    let tare = Tare::this().directory(&directory);
    let java = format!("'{}' -cp '{}' Job", jdk().java().display(), classes.display());
    // The shell's pid becomes that of the second JVM.
    let script = format!("{java}; echo {KEPT} > x-$$.tare; exec {java}");
    tare.run(&["record", "--exact", "-q", "-o", "x.tare", "--", "sh", "-c", &script]).ok();
    let made = names(&directory);
    let [first, second, third] = made.as_slice() else { panic!("{made:?}") };
    let stem = second.strip_suffix(".tare").filter(|stem| !stem.ends_with("-2"));
    let (kept, recorded) = match stem {
        Some(stem) if *first == format!("{stem}-2.tare") => (second, first),
        _ => (first, second),
    };
    assert_kept(&directory, kept);
    for name in [recorded, third] {
        let counts = Recorded::open(&directory.join(name)).counts();
        assert_eq!(counts["Job.work"], 500, "{name} of {made:?}");
    }

    let unfinished = "y.html.unfinished.tare";
    fs::write(directory.join(unfinished), KEPT).expect("our own directory");
    let words = ["record", "--exact", "-q", "-o", "y.html", "--", "sh", "-c"];
    tare.run(&[&words[..], &[&format!("exec {java}")]].concat()).ok();
    assert_kept(&directory, unfinished);
    assert!(fs::metadata(directory.join("y.html")).is_ok_and(|file| file.len() > 1000));
    assert_eq!(names(&directory).len(), made.len() + 1, "nothing is left beside it");
}

#[test]
fn names_of_dumps() {
    let scratch = Scratch::new();
    classes_in(scratch.path(), "Job", JOB);
    let mut target = Target::java(jdk()).class_path(scratch.path()).main("Job").arg("on").start();
    let tare = Tare::this().directory(scratch.path());
    let pid = target.pid();
    let recording = tare.start(&["record", "--wall", "-o", "x.tare", &pid.to_string()]);
    control_socket(pid);
    // A name for each second of the next minutes.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    for second in now..now + 1200 {
        fs::write(scratch.join(&format!("dump-{pid}-{second}.tare")), KEPT).expect("a file");
    }
    let planted = names(scratch.path());
    let mut said = String::new();
    wait_until("a dump is made", || {
        target.tell("more");
        let outcome = tare.run(&["dump", &pid.to_string()]);
        said = outcome.out.clone();
        outcome.code == 0
    });
    let made = said.split(": ").next().unwrap_or_default();
    assert!(made.ends_with("-2.tare"), "{said}");
    assert!(Recorded::open(Path::new(made)).profile.all_series().next().is_some());
    planted
        .iter()
        .filter(|name| *name != "x.tare")
        .for_each(|name| assert_kept(scratch.path(), name));
    recording.signal(rustix::process::Signal::INT);
    recording.wait();
    drop(target);
}

/// In a container every run has the same pid.
#[test]
fn names_of_programs_that_record_themselves() {
    let scratch = Scratch::new();
    let classes = scratch.join("classes");
    fs::create_dir(&classes).expect("our own directory");
    classes_in(&classes, "Job", JOB);
    let (from, to) = (classes.display().to_string(), scratch.join("woven"));
    Tare::this().run(&["instrument", &from, "-o", &to.display().to_string()]).ok();
    let directory = scratch.join("here");
    fs::create_dir(&directory).expect("our own directory");
    let runtime = scratch.join("tare-runtime.jar");
    let java = format!(
        "exec '{}' -cp '{}:{}' Job",
        jdk().java().display(),
        to.display(),
        runtime.display()
    );
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", script]).current_dir(&directory).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("tare:"), "{said}");
    };
    run(&format!("echo {KEPT} > Job-$$.tare; {java}"));
    let made = names(&directory);
    let [recorded, kept] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!(*recorded, kept.replace(".tare", "-2.tare"));
    assert_kept(&directory, kept);
    assert_eq!(Recorded::open(&directory.join(recorded)).counts()["Job.work"], 500);
    // What was named is replaced.
    let named = java.replace(" -cp ", " -Dtare.output=x.tare -cp ");
    run(&format!("echo {KEPT} > x.tare; {named}"));
    assert_eq!(Recorded::open(&directory.join("x.tare")).counts()["Job.work"], 500);
}
