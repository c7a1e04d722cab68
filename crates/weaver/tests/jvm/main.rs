//! Woven classes in a real JVM: verified, and behaving as before.
//!
//! Needs a `java` (from `JAVA_HOME` or the path); without one it says so and passes nothing off as
//! tested. All of a JDK goes through `examples/weave_dir.rs` and `tests/java/LinkAll.java`.

#[path = "../../examples/common/mod.rs"]
mod common;
#[path = "../support/compiled.rs"]
mod compiled;
mod constructors;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_weaver::{MethodOutcome, Options, Outcome, Refusal, Weaver};

/// A JVM of at least this release: of `JAVA_HOME`, of the search path, or of the usual place.
fn java(release: u32) -> Option<PathBuf> {
    let javas = compiled::programs("java");
    let found = javas.into_iter().find(|java| release_of(java).is_some_and(|r| r >= release));
    if found.is_none() {
        eprintln!("SKIPPED: no java of release {release} or later here");
    }
    found
}

fn release_of(java: &Path) -> Option<u32> {
    let output =
        Command::new(java).args(["-XshowSettings:properties", "-version"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let value = text.lines().find_map(|l| l.trim().strip_prefix("java.specification.version = "));
    value?.parse().ok()
}

/// A directory of its own, removed at the end.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tare-weaver-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a temporary directory");
        Self(dir)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a class from a directory, verified in full, and returns what it printed.
fn run(java: &Path, dir: &Path, class: &str) -> String {
    let probe = compiled::probe().expect("a JDK that runs the tests can compile their probes");
    let output = Command::new(java)
        .args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+BytecodeVerificationRemote", "-Xss1m"])
        .arg(format!("--patch-module=java.base={}", probe.display()))
        .arg("-cp")
        .arg(dir)
        .arg(class)
        .output()
        .expect("java starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{class} in {}: {stderr}", dir.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn weave_into(dir: &Path, name: &str, bytes: &[u8], mode: &str) {
    let probes = common::probes(mode).expect("a known mode");
    let lines = common::method_lines(bytes);
    let mut weaver = Weaver::new(Options::default());
    let outcome = weaver
        .weave(bytes, |m| common::plan(m, 40_000, &probes, lines.get(m.index).copied().flatten()));
    let outcome = outcome.expect("a well-formed class");
    for m in &outcome.report().methods {
        if let MethodOutcome::Refused(r) = &m.outcome {
            assert_eq!(*r, Refusal::EmptyFinalizer, "{name} in mode {mode}");
        }
    }
    let woven = match outcome {
        Outcome::Woven { bytes, .. } => bytes,
        Outcome::Unchanged(_) => bytes.to_vec(),
    };
    fs::write(dir.join(name), woven).expect("writable");
}

#[test]
fn compiled_classes_behave_the_same_in_every_mode() {
    let Some(java) = java(17) else { return };
    let all: &[&str] = &common::MODES;
    for (release, modes) in [("8", all), ("17", &["count", "all", "sites", "watch"])] {
        let Some(classes) = compiled::shapes(release) else { continue };
        let expected = run(&java, &classes, "Shapes");
        for mode in modes {
            let temp = Temp::new(&format!("shapes-{release}-{mode}"));
            for file in common::class_files(&classes) {
                let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                weave_into(&temp.0, &name, &fs::read(&file).expect("readable"), mode);
            }
            assert_eq!(run(&java, &temp.0, "Shapes"), expected, "{mode} {release}");
        }
    }
}

/// Shapes that javac does not produce.
fn odd_class(version: u16, body: &str) -> String {
    format!(
        "class T {version}
         method p (I)V static 2 1
            getstatic java/lang/System.out:Ljava/io/PrintStream;
            iload_0
            invokevirtual java/io/PrintStream.println:(I)V
            return
         {body}"
    )
}

fn check_odd(version: u16, body: &str, expected: &str) {
    let Some(java) = java(17) else { return };
    let bytes = support::assemble(&odd_class(version, body));
    for mode in ["none", "entry", "count", "calls", "all"] {
        let temp = Temp::new(&format!("odd-{version}-{mode}-{}", body.len()));
        weave_into(&temp.0, "T.class", &bytes, mode);
        assert_eq!(run(&java, &temp.0, "T"), expected, "{mode} {version}");
    }
}

#[test]
fn subroutines_of_old_class_files() {
    check_odd(
        48,
        "method main ([Ljava/lang/String;)V static 3 4
            iconst_0
            istore_1
         a:
            jsr s
            iload_1
            iconst_3
            if_icmplt a
         t:
            iconst_5
            iconst_0
            idiv
            pop
         u:
            return
         h:
            astore_3
            jsr s
            iload_1
            bipush 100
            iadd
            invokestatic T.p:(I)V
            return
         s:
            astore_2
            iinc 1 1
            iload_1
            invokestatic T.p:(I)V
            ret 2
            try t u h java/lang/ArithmeticException",
        "1\n2\n3\n4\n104\n",
    );
}

#[test]
fn loops_to_the_start_handlers_in_their_own_range_and_long_jumps() {
    let body = "method count (IJ)I static 4 4
         a:
            iinc 0 1
            lload_1
            lconst_1
            lsub
            dup2
            lstore_1
            lconst_0
            lcmp
            ifgt a
            iload_0
            ireturn
            frame a [int, long] []
         method self (I)I static 3 2
            iconst_0
            istore_1
         s:
            iinc 1 1
            bipush 12
            iload_0
            iload_1
            iadd
            idiv
            ireturn
         h:
            pop
            iload_1
            invokestatic T.p:(I)V
            goto s
         e:
            iconst_0
            ireturn
            try s e h java/lang/ArithmeticException
            frame s [int, int] []
            frame h [int, int] [java/lang/ArithmeticException]
            frame e [int, int] []
         method far (I)I static 2 2
            iconst_0
            istore_1
            iload_0
            ifle f
            repeat 5460 wide iinc 1 2
         f:
            iload_1
            ireturn
            frame f [int, int] []
         method main ([Ljava/lang/String;)V static 3 1
            bipush 10
            ldc2_w 5l
            invokestatic T.count:(IJ)I
            invokestatic T.p:(I)V
            iconst_m1
            invokestatic T.self:(I)I
            invokestatic T.p:(I)V
            iconst_0
            invokestatic T.far:(I)I
            invokestatic T.p:(I)V
            iconst_1
            invokestatic T.far:(I)I
            invokestatic T.p:(I)V
            return";
    // The jump in `far` spans 32,763 bytes: the count of its block makes it too long for 16 bits.
    check_odd(52, body, "15\n1\n12\n0\n10920\n");
}
