//! Woven programs: weaving by the `tare` command, the probe runtime that woven code calls, and the
//! independent count of executed bytecodes that every other count is held against.

use crate::env::{Jdk, env};
use crate::machine::Scratch;
use crate::tare::Tare;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Bytecodes by `class.method descriptor`.
pub type Counts = BTreeMap<String, u64>;

/// The programs that dump, link, break and count classes: package `weave`, for Java 17 and later.
pub fn weave_classes() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let source = workspace().join("crates/jvm-tests/java/weave");
        let place = env().dir.join(format!("weave-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a directory for the classes");
        let mut files = Vec::new();
        for directory in [source.clone(), source.join("counted")] {
            let entries = fs::read_dir(directory).expect("the sources");
            files.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        files.retain(|file| file.extension().is_some_and(|e| e == "java"));
        let mut javac = Command::new(env().javac.home.join("bin/javac"));
        run(javac.args(["--release", "17", "-g", "-nowarn", "-d"]).arg(&place).args(files));
        place
    })
}

/// Weaves by `tare class weave`, and returns its report.
#[track_caller]
pub fn weave(mode: &str, options: &[&str], input: &Path, output: &Path) -> Value {
    let mut words: Vec<OsString> =
        ["class", "weave", "--json", "--mode", mode].iter().map(OsString::from).collect();
    words.extend(options.iter().map(OsString::from));
    words.extend([input.as_os_str().to_owned(), "-o".into(), output.as_os_str().to_owned()]);
    Tare::this().run(&words).json()
}

/// A directory to put before java.base: `java.lang.TareProbe`, and classes that are broken on
/// purpose, to see that a JVM verifies.
pub fn probe_runtime() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let source = workspace().join("crates/jvm-tests/runtime");
        let place = env().dir.join(format!("probe-runtime-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a directory for the probe runtime");
        let mut javac = Command::new(env().javac.home.join("bin/javac"));
        // A class of java.lang is compiled as a part of its module, which --release forbids.
        javac.args(["-source", "17", "-target", "17", "-nowarn", "-Xlint:none", "-d"]).arg(&place);
        javac.arg(format!("--patch-module=java.base={}", source.display()));
        run(javac.arg(source.join("java/lang/TareProbe.java")));
        run(Command::new(env().javac.home.join("bin/java"))
            .arg("-cp")
            .arg(weave_classes())
            .arg("weave.Broken")
            .arg(&place)
            .arg("java/lang"));
        place
    })
}

/// The broken classes that are in [`probe_runtime`], as `weave.Link` names them.
pub const BROKEN: [&str; 3] = ["TareBroken49", "TareBroken50", "TareBroken52"];

/// The single-stepping agent, built when first asked for.
pub fn step_counter() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| build_library("step-counter"))
}

/// The library that stops threads and calls Java from native frames, to be loaded as an agent.
pub fn test_natives() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| build_library("test-natives"))
}

fn build_library(folder: &str) -> PathBuf {
    // A target directory of its own: the outer cargo may hold the lock of the usual one.
    let target = env().dir.join("libraries");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["build", "--quiet", "--offline", "-p", &format!("tare-{folder}")])
        .arg("--manifest-path")
        .arg(workspace().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target));
    let library = target.join(format!("debug/libtare_{}.so", folder.replace('-', "_")));
    assert!(library.is_file(), "cargo built no {}", library.display());
    library
}

/// Runs a program with every bytecode of the classes below `prefix` stepped through; returns what
/// it said and what was counted. Classes that the JVM makes at run time are left out.
pub fn single_step(
    jdk: &Jdk,
    class_path: &OsStr,
    words: &[&str],
    prefix: &str,
) -> (String, Counts) {
    let scratch = Scratch::new();
    let file = scratch.join("steps");
    let mut agent = OsString::from("-agentpath:");
    agent.push(step_counter());
    agent.push(format!("={},{prefix}", file.display()));
    let mut java = java(jdk);
    java.arg("-Xint").arg(agent).arg("-cp").arg(class_path).args(words);
    let said = run(&mut java);
    let text = fs::read_to_string(&file).expect("the step counter wrote its counts");
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| !line.contains("$$Lambda")) {
        let parts: Vec<&str> = line.split('\t').collect();
        let [class, method, descriptor, count] = parts[..] else { panic!("odd line {line:?}") };
        let name = format!("{class}.{method}{descriptor}");
        *counts.entry(name).or_default() += count.parse::<u64>().expect("a count");
    }
    (said, counts)
}

/// What the probe runtime counted for one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    pub entered: u64,
    pub returned: u64,
    pub thrown: u64,
    pub bytecodes: u64,
}

/// Runs `weave.Count` on woven classes, with full verification; returns what the program said, the
/// counts by method, and the runtime's totals.
pub fn run_counted(
    jdk: &Jdk,
    vm: &[&str],
    woven: &Path,
    map: &Path,
) -> (String, BTreeMap<String, Probed>, BTreeMap<String, i64>) {
    let mut java = java(jdk);
    java.args(["-Xverify:all", "-XX:-PrintWarnings"]).args(vm).arg(patch_option());
    java.arg("-cp").arg(path(&[woven, weave_classes()])).arg("weave.Count").arg(map);
    let text = run(&mut java);
    let (mut said, mut counts, mut totals) = (String::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        match parts[..] {
            ["count", class, method, descriptor, outcome, entered, returned, thrown, bytecodes] => {
                assert_eq!(outcome, "woven", "{class}.{method}{descriptor}");
                let number = |text: &str| text.parse().expect("a count");
                let probed = Probed {
                    entered: number(entered),
                    returned: number(returned),
                    thrown: number(thrown),
                    bytecodes: number(bytecodes),
                };
                counts.insert(format!("{class}.{method}{descriptor}"), probed);
            }
            ["total", name, value] => {
                totals.insert(name.to_owned(), value.parse().expect("a total"));
            }
            _ => {
                said.push_str(line);
                said.push('\n');
            }
        }
    }
    (said, counts, totals)
}

/// The option that puts the probe runtime into java.base.
pub fn patch_option() -> OsString {
    let mut option = OsString::from("--patch-module=java.base=");
    option.push(probe_runtime());
    option
}

/// A class path.
pub fn path(parts: &[&Path]) -> OsString {
    std::env::join_paths(parts).expect("no colon in these paths")
}

/// A JVM that takes as little of the machine as it can.
pub fn java(jdk: &Jdk) -> Command {
    let mut command = Command::new(jdk.java());
    command.args(["-XX:+UseSerialGC", "-Xmx1g", "-XX:TieredStopAtLevel=1"]);
    command
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let line = format!("{command:?}");
    let output = command.output().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\nended with {}\n{text}{errors}", output.status);
    text
}
