//! What `cargo xtask test` found and built for us, read from the environment.
//!
//! A test that cannot run here is not silently green: [`skip`] says so, and the test command
//! repeats it in its summary.

use std::env::{var, var_os};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::{set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

/// A Java runtime on which targets run.
#[derive(Clone, Debug)]
pub struct Jdk {
    pub major: u32,
    pub home: PathBuf,
}

impl Jdk {
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }
}

pub struct Env {
    pub jdks: Vec<Jdk>,
    /// The JDK that compiles, and its version.
    pub javac: Jdk,
    /// Where compiled targets are kept.
    pub dir: PathBuf,
    skipped: Option<PathBuf>,
    times: Option<PathBuf>,
    pub bin: PathBuf,
    pub agent: PathBuf,
    pub next_bin: PathBuf,
    pub next_agent: PathBuf,
    /// async-profiler's library, if it was ever fetched.
    pub async_profiler: Option<PathBuf>,
}

/// The environment of this run. Without it there is nothing to test.
pub fn env() -> &'static Env {
    static ENV: OnceLock<Env> = OnceLock::new();
    ENV.get_or_init(|| {
        fail_at_once();
        let env = read();
        for jdk in &env.jdks {
            eprintln!("using Java {} in {}", jdk.major, jdk.home.display());
        }
        env
    })
}

/// Has a failing test say why at that moment, past the capture of its output. What it said in full
/// comes at the end of a run, which a log that is cut off does not have.
fn fail_at_once() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let test = thread::current().name().unwrap_or("a thread").to_owned();
        let payload = panic.payload();
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no text");
        let said: Vec<&str> = said.lines().take(12).collect();
        let place = panic.location().map_or(String::new(), |place| format!(" at {place}"));
        let text = format!("\n{test} failed{place}: {}\n", said.join("\n  "));
        let _ = std::io::stderr().write_all(text.as_bytes());
        before(panic);
    }));
}

fn read() -> Env {
    let path = |name: &str| {
        let Some(value) = var_os(name) else {
            panic!(
                "{name} is not set. These tests need two builds of Tare and several JDKs: run \
                 `cargo xtask test`, or `cargo xtask test FILTER` for some of them"
            );
        };
        PathBuf::from(value)
    };
    let number = |name: &str| var(name).ok().and_then(|text| text.parse().ok());
    Env {
        jdks: parse_jdks(&path("TARE_TEST_JDKS").to_string_lossy()),
        javac: Jdk {
            home: path("TARE_TEST_JAVAC"),
            major: number("TARE_TEST_JAVAC_VERSION").unwrap_or(17),
        },
        dir: path("TARE_TEST_DIR"),
        skipped: var_os("TARE_TEST_SKIPPED").map(PathBuf::from),
        times: var_os("TARE_TEST_TIMES").map(PathBuf::from),
        bin: path("TARE_BIN"),
        agent: path("TARE_AGENT"),
        next_bin: path("TARE_NEXT_BIN"),
        next_agent: path("TARE_NEXT_AGENT"),
        async_profiler: var_os("TARE_TEST_ASYNC_PROFILER").map(PathBuf::from),
    }
}

/// `17=/path:21=/path`
fn parse_jdks(list: &str) -> Vec<Jdk> {
    list.split(':')
        .filter_map(|entry| {
            let (major, home) = entry.split_once('=')?;
            Some(Jdk { major: major.parse().ok()?, home: home.into() })
        })
        .collect()
}

/// Says loudly that something was not tested.
pub fn skip(what: &str, why: &str) {
    let line = format!("{what}: {why}");
    eprintln!("NOT COVERED: {line}");
    if let Some(file) = &env().skipped {
        note(file, &line).unwrap_or_else(|e| panic!("cannot note in {}: {e}", file.display()));
    }
}

/// One write per line: tests run side by side.
fn note(file: &Path, line: &str) -> io::Result<()> {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
}

/// Runs a test body on one Java version; the test command names versions that are missing.
pub fn on_jdk(major: u32, body: impl FnOnce(&Jdk)) {
    match env().jdks.iter().find(|jdk| jdk.major == major) {
        Some(jdk) => {
            let _timed = Timed(Instant::now());
            body(jdk);
        }
        None => eprintln!("NOT COVERED: there is no Java {major}"),
    }
}

/// How long a test took, also one that failed, for whoever wants the whole run to be shorter.
struct Timed(Instant);

impl Drop for Timed {
    fn drop(&mut self) {
        let thread = thread::current();
        // Alone, a test runs on the main thread; then nobody asks for its time.
        if let (Some(file), Some(name)) = (&env().times, thread.name()) {
            // A figure that is missing is no reason to fail.
            let _ = note(file, &format!("{:.1} {name}", self.0.elapsed().as_secs_f64()));
        }
    }
}

/// Some Java version, for what does not depend on it.
pub fn jdk() -> &'static Jdk {
    env().jdks.first().expect("no Java runtime at all: run `cargo xtask test`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_jdks_is_read() {
        let jdks = parse_jdks("17=/a/b:25=/c");
        let read: Vec<_> = jdks.iter().map(|j| (j.major, j.home.to_str().unwrap())).collect();
        assert_eq!(read, [(17, "/a/b"), (25, "/c")]);
        assert!(parse_jdks("").is_empty());
    }
}
