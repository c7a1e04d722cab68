//! `cargo xtask bench self`: a profile of the profiler, where the time of each exact mode goes.
//!
//! async-profiler samples the thread that does the work while Tare profiles it. Samples inside our
//! probes are told by method; what the program's own code takes longer than it does alone is what
//! the probes keep the compilers from doing, and what they push out of the processor's caches.

use super::config::{Config, Every, Mode};
use super::launch::{Bench, Launch};
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::ready::Ready;
use super::stats::median;
use super::workloads::{self, Workload};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use tare_toolbox::jars::async_profiler;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Tells where the time of each mode with probes goes: a profile of the profiler.

Usage: cargo xtask bench self [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without them it is javac and h2.

Options:
  --quick         small inputs
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     use this `tare` instead of building one
  --write-docs    write docs/measured/self.md from this run
";

const MODES: [Mode; 5] = [Mode::Outside, Mode::Count, Mode::Time, Mode::Bytecodes, Mode::Trace];

/// Methods that are told of each mode.
const SHOWN: usize = 5;

/// Where the samples of the working thread were.
#[derive(Default)]
struct Samples {
    all: f64,
    /// In our own methods.
    probes: BTreeMap<String, f64>,
    /// In the JVM and the kernel.
    native: f64,
}

impl Samples {
    /// Of collapsed stacks, those of the thread that runs iterations.
    fn of(collapsed: &str) -> Self {
        let mut samples = Samples::default();
        for line in collapsed.lines() {
            let Some((stack, count)) = line.rsplit_once(' ') else { continue };
            let Ok(count) = count.parse::<f64>() else { continue };
            if !stack.contains("bench/Main.run") {
                continue;
            }
            samples.all += count;
            let leaf = stack.rsplit(';').next().unwrap_or(stack);
            // What a probe calls in the JDK is the probe's.
            let mut inner = stack.rsplit(';').take_while(|frame| !is_the_programs(frame));
            if let Some(probe) = inner.find(|frame| is_ours(frame)) {
                *samples.probes.entry(plain_name(probe)).or_default() += count;
            } else if !leaf.contains('/') {
                samples.native += count;
            }
        }
        samples
    }

    fn in_probes(&self) -> f64 {
        self.probes.values().sum()
    }
}

fn is_ours(frame: &str) -> bool {
    frame.starts_with("java/lang/Tare")
}

/// A Java method that is neither ours nor what ours may call.
fn is_the_programs(frame: &str) -> bool {
    frame.contains('/') && !is_ours(frame) && !frame.starts_with("jdk/internal/misc/Unsafe")
}

/// Without the build id that our classes carry, and what async-profiler adds to tell how a frame
/// was compiled.
fn plain_name(frame: &str) -> String {
    let name = frame.strip_prefix("java/lang/").unwrap_or(frame);
    let name = name.split_once("_[").map_or(name, |(name, _)| name);
    let (class, method) = name.split_once('.').unwrap_or((name, ""));
    format!("{}.{method}", class.split('_').next().unwrap_or(class))
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let Options { jdk: major, tare, quick, write_docs, rest: mut names } = options;
    if let Some(word) = names.iter().find(|name| workloads::names().all(|known| known != **name)) {
        bail!("{word} is neither an option nor a workload\n\n{HELP}");
    }
    if names.is_empty() {
        names = vec!["javac", "h2"];
    }
    let ready = Ready::alone(tare)?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(quick);
    let async_profiler = async_profiler(kitchen.javac, kitchen.work, &mut stages);
    if async_profiler.is_none() {
        bail!("async-profiler, which samples the program meanwhile, cannot be had");
    }
    let (tare, work) = (ready.tare.clone(), ready.work.clone());
    let bench = Bench { tare, async_profiler, peers: Peers::default(), work };
    let jdk = super::jdks(&[major], &mut stages)?.swap_remove(0);
    let mut page = heading(&jdk, &super::command(&[&["self"], words].concat()));
    for name in names {
        let Some(mut workload) = workloads::prepare(name, &kitchen, &mut stages)? else { continue };
        let more = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];
        workload.options.extend(more.map(str::to_owned));
        let table = measure(&bench, &workload, &jdk)?;
        print!("\n{table}");
        page += &table;
    }
    let file = match write_docs {
        true => ready.workspace.root.join("docs/measured/self.md"),
        false => ready.work.join("self.md"),
    };
    super::write(&file, &page)?;
    stages.finish()
}

fn heading(jdk: &Jdk, command: &str) -> String {
    format!(
        "# A profile of the profiler\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
         - Machine: {}\n- JDK {}: {}\n\n\
         async-profiler samples the working thread each millisecond while Tare profiles it. All figures\n\
         are in plain iterations, which are 1. probes: what was sampled in our methods; the JVM: in native\n\
         code, less what it is in the plain run; slower: what the program's own code takes beyond the\n\
         plain run, because methods with probes in them are inlined less and share the caches with our\n\
         trees. The columns to the right are the largest among the probes. What the compiler has\n\
         inlined is told by its debug information, which is off by some instructions at times.\n\n\
         What each mode's largest costs are, and what was tried against them: [counts and times](../internals/exact.md#what-was-tried),\n\
         [bytecodes](../internals/bytecodes.md#where-the-time-goes), [traces](../internals/trace.md#where-the-time-goes) and\n\
         [sampling](../internals/sampling.md#where-the-time-goes), which has no probes and is not in these tables.\n",
        machine::describe(),
        jdk.major,
        jdk.version,
    )
}

fn measure(bench: &Bench, workload: &Workload, jdk: &Jdk) -> Result<String> {
    let (plain, alone) = sampled(bench, workload, jdk, None)?;
    let plain_native = alone.native / alone.all.max(1.0);
    let mut text = format!("\n## {}\n\nThis is {}.\n\n", workload.name, workload.what);
    text += "| mode | in all | probes | the JVM | slower | the largest probes |\n";
    text += "|---|--:|--:|--:|--:|---|\n";
    for mode in MODES {
        let (time, samples) = sampled(bench, workload, jdk, Some(mode))?;
        let ratio = time / plain;
        let share = |count: f64| ratio * count / samples.all.max(1.0);
        let probes = share(samples.in_probes());
        let native = share(samples.native) - plain_native;
        let mut largest: Vec<_> = samples.probes.iter().collect();
        largest.sort_by(|a, b| b.1.total_cmp(a.1));
        let largest: Vec<String> = largest
            .iter()
            .take(SHOWN)
            .map(|(name, count)| format!("`{name}` {:.2}", share(**count)))
            .collect();
        let name = Config::Launched(mode).name();
        let slower = ratio - 1.0 - probes - native;
        writeln!(
            text,
            "| {name} | {ratio:.2} | {probes:.2} | {native:.2} | {slower:.2} | {} |",
            largest.join(", ")
        )?;
    }
    Ok(text)
}

/// The time of an iteration, and where the samples were.
fn sampled(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    mode: Option<Mode>,
) -> Result<(f64, Samples)> {
    let launch: Launch = bench.launch_sampled(workload, jdk, mode, Every::Ms1)?;
    let collapsed = fs::read_to_string(bench.collapsed()).context("what async-profiler wrote")?;
    let time = median(&launch.iterations.wall).context("no iteration was measured")?;
    if mode == Some(Mode::Trace) {
        // Every event of the run is in it.
        let _ = fs::remove_file(bench.recording(Mode::Trace));
    }
    Ok((time, Samples::of(&collapsed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_told_apart() {
        let stacks = "\
            bench/Main.run;app/A.b;java/lang/TareProbe_5f.enter_[i];java/lang/TareTree_5f.find_[j] 3\n\
            bench/Main.run;app/A.b;java/lang/TareProbe_5f.enter_[i];jdk/internal/misc/Unsafe.getInt 1\n\
            bench/Main.run;app/A.b 4\n\
            bench/Main.run;java/lang/TareProbe.slow;app/A.b 5\n\
            bench/Main.run;app/A.b;JVM_Clone 2\n\
            other/Thread.run;app/A.b 90\n";
        let samples = Samples::of(stacks);
        assert_eq!((samples.all, samples.in_probes(), samples.native), (15.0, 4.0, 2.0));
        assert_eq!(samples.probes["TareTree.find"], 3.0);
        assert_eq!(samples.probes["TareProbe.enter"], 1.0);
    }
}
