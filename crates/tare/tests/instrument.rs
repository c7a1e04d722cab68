//! `tare instrument` of a directory that the result lies in: what it made itself is no input.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// All paths below a directory, relative to it.
fn below(directory: &Path) -> Vec<String> {
    fn collect(top: &Path, at: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() && !path.is_symlink() {
                collect(top, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    collect(directory, directory, &mut found);
    found.sort();
    found
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("sub")).unwrap();
        fs::write(path.join("note.txt"), "a note").unwrap();
        fs::write(path.join("sub/inner.txt"), "inside").unwrap();
        Scratch(path)
    }

    fn instrument(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        let output = command.arg("instrument").args(words).current_dir(&self.0).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_result_inside_the_input_is_not_read() {
    let scratch = Scratch::new("instrument-inside");
    let expected = ["note.txt", "sub", "sub/inner.txt"];
    scratch.instrument(&[".", "-o", "out"]);
    assert_eq!(below(&scratch.0.join("out")), expected);
    let said = scratch.instrument(&[".", "-o", "out"]);
    assert_eq!(below(&scratch.0.join("out")), expected);
    assert!(said.contains("Not read: ./out, where results go"), "{said}");
    assert!(said.contains("Not read: ./tare-runtime.jar, where results go"), "{said}");
    // By another name, and through a link.
    symlink("out", scratch.0.join("link")).unwrap();
    scratch.instrument(&["sub/..", "-o", "./sub/../link"]);
    assert_eq!(below(&scratch.0.join("out")), expected);
    fs::remove_file(scratch.0.join("link")).unwrap();
}

#[test]
fn several_results_inside_an_input_are_not_read() {
    let scratch = Scratch::new("instrument-several");
    fs::create_dir(scratch.0.join("other")).unwrap();
    for _ in 0..2 {
        scratch.instrument(&["sub", "other", "-o", "sub/all"]);
        let expected = ["other", "sub", "sub/inner.txt", "tare-runtime.jar"];
        assert_eq!(below(&scratch.0.join("sub/all")), expected);
    }
}

#[test]
fn links_in_a_circle_and_sockets_are_passed_by() {
    let scratch = Scratch::new("instrument-circle");
    symlink("..", scratch.0.join("sub/up")).unwrap();
    symlink("nowhere", scratch.0.join("sub/dangling")).unwrap();
    let _socket = UnixListener::bind(scratch.0.join("sub/socket")).unwrap();
    let said = scratch.instrument(&["sub", "-o", "out"]);
    assert_eq!(below(&scratch.0.join("out")), ["inner.txt", "up", "up/note.txt"]);
    for part in ["dangling, a link that leads nowhere", "socket, neither a file nor a directory"] {
        assert!(said.contains(part), "{said}");
    }
}

/// What is on its way below a directory.
fn parts(directory: &Path) -> Vec<String> {
    below(directory).into_iter().filter(|path| path.contains(".tare-part-")).collect()
}

/// What could not be moved is found before anything is.
#[test]
fn a_result_that_does_not_fit_leaves_what_was_there() {
    let scratch = Scratch::new("instrument-conflict");
    fs::create_dir_all(scratch.0.join("out/sub/inner.txt")).unwrap();
    fs::write(scratch.0.join("out/note.txt"), "old").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    let words = ["instrument", ".", "-o", "out"];
    let output = command.args(words).current_dir(&scratch.0).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("inner.txt"), "{said}");
    assert_eq!(fs::read_to_string(scratch.0.join("out/note.txt")).unwrap(), "old");
    assert_eq!(parts(&scratch.0), [""; 0]);
}

/// The runtime is larger than all else, so it is what does not fit.
#[test]
fn without_its_runtime_no_result_arrives() {
    for inputs in [&["note.txt.d"][..], &["note.txt.d", "sub"]] {
        let scratch = Scratch::new("instrument-full");
        fs::create_dir(scratch.0.join("note.txt.d")).unwrap();
        fs::write(scratch.0.join("note.txt.d/note.txt"), "a note").unwrap();
        let mut command = Command::new("sh");
        let limited = "ulimit -f 8; exec \"$@\"";
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_tare"), "instrument"]);
        command.args(inputs).args(["-o", "out"]);
        let output = command.current_dir(&scratch.0).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("tare-runtime.jar"), "{said}");
        assert!(!scratch.0.join("out").exists(), "{said}");
        assert_eq!(parts(&scratch.0), [""; 0]);
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let scratch = Scratch::new("instrument-interrupted");
    for number in 0..5_000 {
        fs::write(scratch.0.join(format!("sub/{number}.txt")), "a note").unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    let words = ["instrument", "sub", "-o", "out"];
    command.args(words).current_dir(&scratch.0).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let begun = || {
        fs::read_dir(&scratch.0)
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(".tare-part-"))
    };
    while !begun() && running.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let pid = running.id().to_string();
    Command::new("kill").args(["-INT", &pid]).output().unwrap();
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(parts(&scratch.0), [""; 0], "{said}");
    // It may have been as quick as that.
    let done = output.status.success();
    assert_eq!(scratch.0.join("out").exists(), done, "{said}");
    assert!(done || said.contains("it was stopped"), "{said}");
}

#[test]
fn classes_are_not_looked_for_in_circles_and_pipes() {
    let scratch = Scratch::new("class-print");
    symlink(&scratch.0, scratch.0.join("sub/up")).unwrap();
    symlink("nowhere", scratch.0.join("sub/dangling")).unwrap();
    let pipe = scratch.0.join("sub/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let print = |path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        let output = command.args(["class", "print"]).arg(path).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = print(&scratch.0);
    assert!(said.contains("holds no class"), "{said}");
    let said = print(&pipe);
    assert!(said.contains("a device or a pipe"), "{said}");
}
