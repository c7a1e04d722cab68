//! `cargo xtask test`: everything that must hold before a change is taken.
//!
//! What is tested, the tests themselves know; this file brings together what they need and tells
//! them by environment variables where it is (crates/jvm-tests/src/env.rs reads them).

use crate::agent_symbols;
use crate::alone;
use crate::bench;
use crate::fuzz;
use crate::ledger::Row;
use crate::page;
use crate::repeat::{Busy, Options, Tally};
use crate::soak;
use crate::tidy;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};
use tare_toolbox::jars::fetched_async_profiler;
use tare_toolbox::setup::{self, Ready};
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

/// The build id of "the next version", a second build that the tests bring into JVMs which this
/// version has left.
const NEXT_BUILD_ID: &str = "0123456789abcdef";

pub fn run(options: &Options<'_>) -> Result<()> {
    let filters = options.filters.as_slice();
    let workspace = Workspace::open()?;
    let mut stages = Stages::new();
    let ready = stages.run("set-up", setup::prepare);

    // With a filter somebody is at work on one thing and wants its answer soon.
    if filters.is_empty() {
        let cargo = |arguments: &[&str]| shell::run(&mut workspace.cargo(arguments));
        stages.run("formatting", || cargo(&["fmt", "--all", "--check"]));
        stages.run("tidy", || tidy::check(&workspace));
        stages.run("clippy", || {
            cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        });
        if let Some(Some(missing)) = stages.run("types of the page", || page::check(&workspace)) {
            stages.note(format!("NOT COVERED: {missing}"));
        }
    }
    // Tallied, they run with the others, after the builds.
    if options.times.is_none() {
        stages.run("unit tests", || shell::run(&mut unit_tests(&workspace, filters)));
    }
    if let (Some(ready), true, true) = (&ready, filters.is_empty(), options.times.is_none()) {
        let said = stages.run("fuzzing, for a minute", || fuzz::bounded(&workspace, &ready.javac));
        said.into_iter().for_each(|said| stages.note(said));
    }
    if let Some(ready) = ready {
        let built = stages.run("build", || build(&workspace));
        if let Some(built) = built {
            jvm_tests(&mut stages, &workspace, &ready, &built, options)?;
            if filters.is_empty() {
                stages.run("benchmarks, as a smoke test", || smoke(&workspace, &ready, &built));
            }
        }
        for (_, jdk) in &ready.runtimes {
            if let Ok(jdk) = jdk {
                stages.note(format!("used: {}", jdk.describe()));
            }
        }
        for missing in ready.missing() {
            stages.note(format!("NOT COVERED: {missing}"));
        }
    } else {
        stages.note("NOT COVERED: all tests against real JVMs".to_owned());
    }
    stages.finish()
}

/// Where the two builds under test are.
struct Built {
    bin: PathBuf,
    next_bin: PathBuf,
}

/// Builds this version as users get it, and a next version in the other profile: with overflow
/// checks and debug assertions on, so that both kinds of code meet real JVMs.
fn build(workspace: &Workspace) -> Result<Built> {
    let bin = workspace.release()?;
    agent_symbols::check(&bin.join("libtare_agent.so"))?;
    let next = workspace.target.join("next");
    shell::run(
        workspace
            .cargo(&["build"])
            .args(["-p", "tare-cli", "-p", "tare-agent"])
            .arg("--target-dir")
            .arg(&next)
            .env("TARE_BUILD_ID", NEXT_BUILD_ID),
    )?;
    Ok(Built { bin, next_bin: next.join("debug") })
}

fn unit_tests(workspace: &Workspace, filters: &[&str]) -> Command {
    let words = ["test", "--workspace", "--exclude", "tare-jvm-tests", "--no-fail-fast", "--"];
    let mut command = workspace.cargo(&words);
    command.args(filters);
    command
}

fn jvm_tests(
    stages: &mut Stages,
    workspace: &Workspace,
    ready: &Ready,
    built: &Built,
    options: &Options<'_>,
) -> Result<()> {
    let work = workspace.target.join("jvm-tests");
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    // Tests cannot report "skipped" to cargo; they write it here and we say it at the end.
    let skipped = work.join("skipped.txt");
    fs::write(&skipped, "")?;
    let times_file = work.join("times.txt");
    fs::write(&times_file, "")?;
    let of_jvms = || {
        let filters = &options.filters;
        let mut command = jvm_test_command(workspace, ready, built, filters, &work, &skipped);
        command.env("TARE_TEST_TIMES", &times_file);
        command.arg(format!("--test-threads={}", test_threads()));
        command
    };
    let of_these = |names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut command = jvm_test_command(workspace, ready, built, &names, &work, &skipped);
        command.args(["--exact", "--test-threads=1"]);
        command
    };

    let Some(times) = options.times else {
        let unsteady = stages.run("tests against real JVMs", || match options.filters.is_empty() {
            true => alone::run(of_jvms(), of_these),
            // Whoever asks for some tests wants to see them fail.
            false => shell::run(&mut of_jvms()).map(|()| Vec::new()),
        });
        if options.filters.is_empty() {
            stages.note(slowest(&fs::read_to_string(&times_file)?));
        }
        for name in unsteady.into_iter().flatten() {
            stages.note(format!("UNSTEADY: {name} failed among the others and passed alone"));
        }
        return note_skipped(stages, &skipped);
    };
    // What is compiled beside the busy loops would only take longer.
    stages.run("build of the tests", || {
        shell::run(workspace.cargo(&["test", "--workspace"]).arg("--no-run"))
    });
    let mut tally = Tally::new(&workspace.target)?;
    let busy = Busy::start(options.beside);
    for run in 1..=times {
        let begun = Instant::now();
        let well = stages.run(&format!("run {run} of {times}, all tests"), || {
            tally.run(&mut [unit_tests(workspace, &options.filters), of_jvms()])
        });
        if options.write_docs {
            account(workspace, ready, options.beside, begun, well.is_some())?;
        }
    }
    drop(busy);
    tally.lines().into_iter().for_each(|line| stages.note(line));
    note_skipped(stages, &skipped)
}

/// Adds a run of all tests to the account of what was done again and again.
fn account(
    workspace: &Workspace,
    ready: &Ready,
    beside: usize,
    begun: Instant,
    well: bool,
) -> Result<()> {
    let what = match beside {
        0 => "all tests".to_owned(),
        loops => format!("all tests beside {loops} busy loops"),
    };
    let found =
        ready.runtimes.iter().filter_map(|(_, jdk)| Some(jdk.as_ref().ok()?.version.clone()));
    let jdks = found.collect::<Vec<_>>().join(", ");
    let row = Row {
        kind: vec![what, jdks, "–".to_owned()],
        commit: workspace.revision().context("no commit is known")?,
        counts: vec![1],
        seconds: begun.elapsed().as_secs(),
        failed: u64::from(!well),
    };
    soak::ACCOUNT.add(&workspace.root, row)
}

/// The run is to stay short: which tests take the most of it, on all JDKs together.
fn slowest(times: &str) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (seconds, name) in times.lines().filter_map(|line| line.split_once(' ')) {
        let test = name.rsplit_once("::jdk").map_or(name, |(test, _)| test);
        *sums.entry(test).or_default() += seconds.parse().unwrap_or(0.0);
    }
    let all = sums.values().fold(0.0, |all, seconds| all + seconds);
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let first = sums.iter().take(12).map(|(name, seconds)| format!("{name} {seconds:.0} s"));
    format!("slowest of {all:.0} s: {}", first.collect::<Vec<_>>().join(", "))
}

fn jvm_test_command(
    workspace: &Workspace,
    ready: &Ready,
    built: &Built,
    filters: &[&str],
    work: &Path,
    skipped: &Path,
) -> Command {
    let mut command = workspace.cargo(&["test", "-p", "tare-jvm-tests", "--no-fail-fast", "--"]);
    command
        .args(filters)
        .env("TARE_TEST_JDKS", jdk_list(ready))
        .env("TARE_TEST_JAVAC", &ready.javac.home)
        .env("TARE_TEST_JAVAC_VERSION", ready.javac.major.to_string())
        .env("TARE_TEST_DIR", work)
        .env("TARE_TEST_SKIPPED", skipped)
        .env("TARE_BIN", built.bin.join("tare"))
        .env("TARE_AGENT", built.bin.join("libtare_agent.so"))
        .env("TARE_NEXT_BIN", built.next_bin.join("tare"))
        .env("TARE_NEXT_AGENT", built.next_bin.join("libtare_agent.so"));
    if let Some(library) = fetched_async_profiler(&ready.javac, work) {
        command.env("TARE_TEST_ASYNC_PROFILER", library);
    }
    // A person's own options must not reach the programs under test.
    for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"] {
        command.env_remove(name);
    }
    command
}

fn note_skipped(stages: &mut Stages, skipped: &Path) -> Result<()> {
    let mut lines: Vec<String> =
        fs::read_to_string(skipped)?.lines().map(|line| format!("NOT COVERED: {line}")).collect();
    lines.sort();
    lines.dedup();
    for line in lines {
        stages.note(line);
    }
    Ok(())
}

/// Whether every configuration of the benchmarks still runs; how long it takes is not looked at.
fn smoke(workspace: &Workspace, ready: &Ready, built: &Built) -> Result<()> {
    let newest = ready.runtimes.iter().filter(|(_, jdk)| jdk.is_ok()).map(|(major, _)| major).max();
    let major = newest.context("there is no JDK to measure")?.to_string();
    let tare = built.bin.join("tare");
    let tare = tare.to_str().context("a path that is no text")?;
    let words = ["--quick", "--jdk", &major, "--tare", tare, "fib", "trees"];
    shell::run(&mut bench::command(workspace, &words))
}

/// `17=/path:21=/path`, without the versions that are missing.
fn jdk_list(ready: &Ready) -> String {
    let entries = ready.runtimes.iter().filter_map(|(major, jdk)| {
        let jdk = jdk.as_ref().ok()?;
        Some(format!("{major}={}", jdk.home.display()))
    });
    entries.collect::<Vec<_>>().join(":")
}

/// These tests wait more than they compute, so there may be more of them than processors.
fn test_threads() -> usize {
    let asked = env::var("RUST_TEST_THREADS").ok().and_then(|text| text.parse().ok());
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    asked.unwrap_or(processors + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_tests_are_named_over_all_jdks() {
        let times = "2.5 a::b::jdk17\n1.0 c::jdk21\n4.0 a::b::jdk25\n";
        assert_eq!(slowest(times), "slowest of 8 s: a::b 6 s, c 1 s");
        assert_eq!(slowest(""), "slowest of 0 s: ");
    }
}
