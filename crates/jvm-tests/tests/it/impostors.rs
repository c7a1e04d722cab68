//! Who is not the recording of a JVM, or may not give it orders: other containers, other users, and
//! whoever was there first.

use crate::recording::Recorded;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tare_jvm_tests::{
    Demo, Running, Scratch, Tare, Target, can, control_socket, is_root, jdk, shared_classes, skip,
    wait_until,
};

/// The directories of command sockets for a JVM.
fn command_dirs(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir("/tmp").into_iter().flatten().filter_map(Result::ok);
    let ours = format!(".tare-command-{pid}-");
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours))
        .map(|entry| entry.path())
        .collect()
}

fn begin(tare: &Tare, name: &str, file: &Path) -> Running {
    let recording = tare.start(&["record", "-o", &file.display().to_string(), name]);
    let pid = name.parse().expect("a pid");
    control_socket(pid);
    wait_until("it takes commands", || {
        command_dirs(pid).iter().any(|dir| dir.join("command").exists())
    });
    recording
}

/// What a recording answers to a line.
fn say(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("somebody listens");
    stream.write_all(line.as_bytes()).expect("he reads");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Orders of the recording's own user work; a path is not believed by anybody.
#[test]
fn a_recording_opens_no_path() {
    let demo = Demo::start(jdk());
    let name = demo.target.name();
    let scratch = Scratch::new();
    let (file, victim) = (scratch.join("x.tare"), scratch.join("victim"));
    fs::write(&victim, "precious").unwrap();
    let recording = begin(&Tare::this(), &name, &file);
    let dir = command_dirs(demo.target.pid()).remove(0);
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o7777, 0o700);
    let hex: String = victim.display().to_string().bytes().map(|b| format!("{b:02x}")).collect();
    for order in [format!("dump {hex}\n"), format!("dump {}\n", victim.display()), "dump\n".into()]
    {
        let answer = say(&dir.join("command"), &order);
        assert!(answer.starts_with("error "), "{answer}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    // Nor is the recording itself overwritten by a dump of it.
    let own = file.display().to_string();
    Tare::this().run(&["dump", &name, "-o", &own]).fails(1, &["itself is being written to"]);
    Tare::this().run(&["stop", &name]).ok();
    recording.wait().ok();
    Recorded::open(&file);
    assert!(command_dirs(demo.target.pid()).is_empty(), "the socket is gone");
    demo.finish();
}

/// Root in another container, which shares our /tmp, is not root here; nor are we there.
#[test]
fn another_container_gives_no_orders() {
    const TEST: &str = "orders from another container";
    if !can(TEST, &["unshare", "--mount", "true"]) {
        return;
    }
    let demo = Demo::start(jdk());
    let name = demo.target.name();
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let there = Tare::this().through(&["unshare", "--mount"]);
    let recording = begin(&there, &name, &file);
    let socket = command_dirs(demo.target.pid()).remove(0).join("command");
    let answer = say(&socket, "stop\n");
    assert!(answer.contains("another container"), "{answer}");
    Tare::this().run(&["stop", &name]).fails(1, &["is not being recorded"]);
    // It has heard nothing of it.
    recording.signal(rustix::process::Signal::INT);
    // It may have been too short for a sample, which is an error of its own.
    let outcome = recording.wait();
    assert!(matches!(outcome.code, 0 | 1), "{}", outcome.describe());
    Recorded::open(&file);
    demo.finish();
}

/// Whoever waits where the recording would be gets no order, and no "ok" of his is believed.
#[test]
fn who_was_there_first_is_not_believed() {
    let target = Target::idle(jdk()).start();
    let (pid, name) = (target.pid(), target.name());
    let refused = |how: &str| {
        let outcome = Tare::this().run(&["stop", &name]);
        assert_eq!(outcome.code, 1, "{how}: {}", outcome.describe());
        assert!(outcome.err.contains("is not being recorded"), "{how}: {}", outcome.describe());
    };
    // The name that older versions used, which every process of a network namespace can take.
    let address = SocketAddr::from_abstract_name(format!("tare-recording-of-{pid}")).unwrap();
    let abstract_one = UnixListener::bind_addr(&address).unwrap();
    refused("an abstract name");
    drop(abstract_one);

    let dir = PathBuf::from(format!("/tmp/.tare-command-{pid}-0000beef"));
    let _sweep = Sweep(dir.clone());
    fs::create_dir(&dir).unwrap();
    let listener = UnixListener::bind(dir.join("command")).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    refused("a directory that others may enter");
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    if is_root() {
        chown(&dir, Some(65534), Some(65534)).unwrap();
        refused("a directory of another user");
        chown(&dir, Some(0), Some(0)).unwrap();
    } else {
        skip("a command socket of another user", "we are not root");
    }
    drop(listener);
    refused("a command socket that is dead");
    assert!(!dir.exists(), "a dead one is cleared away");
    target.finish();
}

struct Sweep(PathBuf);

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The same by root of another container, in a directory that looks as it should.
#[test]
fn an_impostor_in_another_container() {
    const TEST: &str = "an impostor in another container";
    let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if !can(TEST, &[&words[..], &["true"]].concat()) {
        return;
    }
    let target = Target::idle(jdk()).start();
    let dir = PathBuf::from(format!("/tmp/.tare-command-{}-0000beef", target.pid()));
    let _sweep = Sweep(dir.clone());
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    let scratch = Scratch::new();
    let classes = shared_classes(&scratch);
    let java = Target::idle(jdk()).class_path(&classes).main("Listen").arg(dir.join("command"));
    let mut impostor = java.directory(scratch.path()).through(&words).start();
    let outcome = Tare::this().run(&["stop", &target.name()]);
    outcome.fails(1, &["is not being recorded"]);
    assert!(!outcome.out.contains("believe me"), "{}", outcome.describe());
    impostor.wait_for("connected");
    assert!(!impostor.text().contains("stop"), "it got the order: {}", impostor.text());
    target.finish();
}
