//! `tare instrument` of a directory that the result lies in: what it made itself is no input.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

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
