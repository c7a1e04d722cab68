//! The programs that are measured: their input, and which of their methods are woven.
//!
//! Their Java side is below `bench/src`. Jars come through Maven into the cache that the weaving
//! corpus uses as well; what was fetched once is never fetched again.

use super::program::Amount;
use super::subjects::{Subject, fetch};
use crate::jdks::Jdk;
use crate::shell::{self, Workspace};
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workload, ready to run.
pub struct Workload {
    pub name: &'static str,
    /// What the profiler weaves.
    pub include: &'static str,
    /// For the reader of the results.
    pub what: String,
    pub class_path: Vec<PathBuf>,
    /// Of `bench.Main`, after the name.
    pub arguments: Vec<String>,
    /// Whether it needs a JDK and not only a runtime.
    pub needs_compiler: bool,
    pub warm_up: Amount,
    pub measured: Amount,
}

pub const NAMES: [&str; 3] = ["fib", "javac", "h2"];

const H2: &str = "com.h2database:h2:2.3.232";
const SOURCES: &str = "org.apache.commons:commons-lang3:3.17.0:jar:sources";
const ASYNC_PROFILER: &str = "tools.profiler:async-profiler:4.0";

/// The package that javac compiles, of about eight thousand lines.
const PACKAGE: &str = "org/apache/commons/lang3/time";

const QUICK: Amounts =
    (Amount { iterations: 1, seconds: 0.0 }, Amount { iterations: 2, seconds: 1.0 });
/// One method is compiled soon; a whole compiler or database takes its time.
const SMALL: Amounts =
    (Amount { iterations: 2, seconds: 1.0 }, Amount { iterations: 3, seconds: 1.0 });
const LARGE: Amounts =
    (Amount { iterations: 4, seconds: 3.0 }, Amount { iterations: 3, seconds: 1.5 });

/// Of warm-up and of measurement.
type Amounts = (Amount, Amount);

/// The Java side, compiled.
pub fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let classes = work.join("classes");
    let mut sources: Vec<PathBuf> = fs::read_dir(workspace.root.join("bench/src/bench"))
        .context("the Java side of the benchmarks")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "java"))
        .collect();
    sources.sort();
    let mut command = Command::new(javac.home.join("bin/javac"));
    command.args(["--release", "17", "-g", "-d"]).arg(&classes).args(sources);
    shell::run(&mut command).context("compiling the Java side of the benchmarks")?;
    Ok(classes)
}

/// What `prepare` needs to know.
pub struct Kitchen<'a> {
    pub workspace: &'a Workspace,
    pub javac: &'a Jdk,
    pub classes: &'a Path,
    pub work: &'a Path,
    pub quick: bool,
}

/// Prepares a workload; `None` if what it needs cannot be had, which the stages then tell.
pub fn prepare(name: &str, kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Option<Workload>> {
    let own = vec![kitchen.classes.to_owned()];
    let amounts = match name {
        _ if kitchen.quick => QUICK,
        "fib" => SMALL,
        _ => LARGE,
    };
    let (warm_up, measured) = amounts;
    Ok(Some(match name {
        "fib" => {
            let n = if kitchen.quick { 32 } else { 36 };
            Workload {
                name: "fib",
                include: "bench.Fib",
                what: format!("recursive fib({n}), the class woven whole"),
                class_path: own,
                arguments: vec![n.to_string()],
                needs_compiler: false,
                warm_up,
                measured,
            }
        }
        "h2" => {
            let Some(jars) = fetch(stages, "h2", &[H2]) else { return Ok(None) };
            let orders = if kitchen.quick { 500 } else { 3000 };
            Workload {
                name: "h2",
                include: "org.h2.**",
                what: format!("{H2} in memory, {orders} orders, all of `org.h2.**` woven"),
                class_path: own.into_iter().chain(Subject::jars(&jars)?).collect(),
                arguments: vec![orders.to_string()],
                needs_compiler: false,
                warm_up,
                measured,
            }
        }
        "javac" => {
            // The demo is small enough for a quick run, and needs no network.
            let (root, directory, what) = if kitchen.quick {
                let demo = kitchen.workspace.root.join("demo/src");
                (demo.clone(), demo, "demo/src".to_owned())
            } else {
                let group = "commons-lang3-sources";
                let Some(place) = fetch(stages, group, &[SOURCES]) else { return Ok(None) };
                let root = unpack(kitchen, &place, group)?;
                (root.clone(), root.join(PACKAGE), format!("`{PACKAGE}` of {SOURCES}"))
            };
            Workload {
                name: "javac",
                include: "com.sun.tools.javac.**",
                what: format!(
                    "the JDK's compiler on {what}, all of `com.sun.tools.javac.**` woven"
                ),
                class_path: own,
                arguments: [root, directory].map(|path| path.display().to_string()).into(),
                needs_compiler: true,
                warm_up,
                measured,
            }
        }
        other => bail!("no workload is called {other}; there are {}", NAMES.join(", ")),
    }))
}

/// async-profiler's library; `None` if it cannot be had.
pub fn async_profiler(kitchen: &Kitchen<'_>, stages: &mut Stages) -> Option<PathBuf> {
    let place = fetch(stages, "async-profiler", &[ASYNC_PROFILER])?;
    let unpacked = unpack(kitchen, &place, "async-profiler").ok()?;
    let machine = if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" };
    let library = unpacked.join(machine).join("libasyncProfiler.so");
    if !library.is_file() {
        stages.note(format!("NOT COVERED: {ASYNC_PROFILER} has no library for {machine}"));
        return None;
    }
    Some(library)
}

/// Unpacks the jars of a directory, with the JDK's own tool.
fn unpack(kitchen: &Kitchen<'_>, jars: &Path, name: &str) -> Result<PathBuf> {
    let place = kitchen.work.join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place)?;
    for jar in Subject::jars(jars)? {
        let mut command = Command::new(kitchen.javac.home.join("bin/jar"));
        shell::run(command.current_dir(&place).arg("-xf").arg(jar))?;
    }
    Ok(place)
}
