//! Compiles the Java sources of the tests when they are needed: class files do not belong in git.
//!
//! Included by the unit tests and the integration tests alike, so it stands alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// The classes of `tests/classes/Shapes.java`, compiled for a Java release; `None`, said aloud,
/// where no compiler can do that.
pub fn shapes(release: &str) -> Option<PathBuf> {
    let source = tests().join("classes/Shapes.java");
    compiled(&format!("shapes-{release}"), &source, &["--release", release])
}

/// `tests/classes/Before.java`, whose constructors begin with statements: a matter of Java 25.
#[allow(dead_code, reason = "not every test needs it")]
pub fn statements_before_super() -> Option<PathBuf> {
    compiled("before", &tests().join("classes/Before.java"), &["--release", "25"])
}

/// The probe runtime of the tests, to be patched into `java.base`.
#[allow(dead_code, reason = "not every test runs a JVM")]
pub fn probe() -> Option<PathBuf> {
    let root = tests().join("java");
    let patch = format!("java.base={}", root.display());
    let options = ["-source", "17", "-target", "17", "--patch-module", &patch];
    compiled("probe", &root.join("java/lang/TareProbe.java"), &options)
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Compiles once per version of the source; tests of several processes may come at the same time,
/// and threads of one take turns.
fn compiled(name: &str, source: &Path, options: &[&str]) -> Option<PathBuf> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let exe = env::current_exe().expect("a test has a program");
    let base = exe.parent().expect("a directory").join("weaver-test-classes");
    let done = base.join(format!("{name}-{hash:016x}"));
    if done.is_dir() {
        return Some(done);
    }
    for javac in programs("javac") {
        let new = base.join(format!("{name}-{}.new", std::process::id()));
        let _ = fs::remove_dir_all(&new);
        fs::create_dir_all(&new).unwrap_or_else(|e| panic!("{}: {e}", new.display()));
        let mut command = Command::new(&javac);
        command.args(options).args(["-g", "-nowarn", "-Xlint:none", "-d"]).arg(&new).arg(source);
        if command.output().is_ok_and(|output| output.status.success()) {
            // Whoever comes second finds the place taken, by the same bytes.
            if fs::rename(&new, &done).is_err() {
                let _ = fs::remove_dir_all(&new);
            }
            return Some(done);
        }
        let _ = fs::remove_dir_all(&new);
    }
    eprintln!("SKIPPED: no javac here compiles {} with {}", source.display(), options.join(" "));
    None
}

/// The programs of this name in `JAVA_HOME`, on the search path, and in the usual place, in this
/// order.
pub fn programs(name: &str) -> Vec<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin").join(name));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = home.into_iter().collect();
    all.extend(env::split_paths(&path).map(|dir| dir.join(name)));
    if let Ok(jvms) = fs::read_dir("/usr/lib/jvm") {
        all.extend(jvms.flatten().map(|jvm| jvm.path().join("bin").join(name)));
    }
    all.retain(|program| program.is_file());
    all
}
