//! `cargo xtask bench subgraph`: is what a root reaches found, on real programs, and what does the
//! finding cost?
//!
//! The independent account is a recording for which everything was woven (`--scheme all`): its
//! tree, cut at the root, has every method that ran below it. Each recording attaches to a JVM that
//! has done its work once, then the root is called four times. The first call is where things are
//! found; counts are compared from the second on. What two independent accounts do not agree on is
//! the program's own doing (its clock, the order of its hash tables), and is told apart. Identity
//! hash codes are taken out of the game: they come in another order whenever a thread is held up at
//! another place.

use super::config::Config;
use super::launch::Bench;
use super::peers::Peers;
use super::program::{Amount, Program};
use super::ready::Ready;
use super::recorder::{Counts, Recorder, live};
use super::workloads::{self, Workload};
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Compares what `tare record --exact --root` finds with recordings for which everything was woven.

Usage: cargo xtask bench subgraph [OPTION…] [NAME…]

Programs are h2 (reached only through interfaces of java.sql), javac and web (a server that answers
requests); with NAMEs, only these.

Options:
  --jdk N          the JDK to run on (default: 25)
  --quick          small inputs
  --tare FILE      use this `tare` instead of building one
  --write-docs     write docs/measured/roots.md from this run
";

const NAMES: [&str; 3] = ["h2", "javac", "web"];
/// All identity hash codes are the same: who is in a hash table first does not hang on them.
const JVM_OPTIONS: [&str; 3] =
    ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2", "-XX:+EnableDynamicAgentLoading"];

const ONCE: Amount = Amount { iterations: 1, seconds: 0.0 };
const THREE_TIMES: Amount = Amount { iterations: 3, seconds: 0.0 };

struct Args {
    names: Vec<String>,
    jdk: u32,
    quick: bool,
    tare: Option<PathBuf>,
    write_docs: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let mut args =
            Args { names: Vec::new(), jdk: 25, quick: false, tare: None, write_docs: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => args.quick = true,
                "--write-docs" => args.write_docs = true,
                "--tare" => args.tare = Some(PathBuf::from(value()?)),
                "--jdk" => args.jdk = value()?.parse().context("--jdk needs a number")?,
                name if NAMES.contains(&name) => args.names.push(name.to_owned()),
                word => bail!("unknown: {word}\n\n{HELP}"),
            }
        }
        if args.names.is_empty() {
            args.names = NAMES.map(str::to_owned).into();
        }
        Ok(args)
    }
}

/// One recording of one JVM.
struct Run {
    /// From the second call of the root on.
    counts: Counts,
    /// Methods woven, and those of them that never ran below the root.
    woven: u64,
    idle: u64,
    /// The first call of the root beside the last of the same JVM before we came.
    first: f64,
    /// What the end of the recording says of waits.
    waits: String,
}

/// All recordings of one program, with or without trivial methods.
struct Comparison {
    name: &'static str,
    trivial: bool,
    all: Run,
    again: Run,
    lazy: Run,
    eager: Run,
}

impl Comparison {
    /// Methods whose counts the two independent accounts agree on.
    fn expected(&self) -> impl Iterator<Item = (&String, i64)> {
        let same = |(name, n): &(&String, &i64)| self.again.counts.get(*name) == Some(*n);
        self.all.counts.iter().filter(same).map(|(name, n)| (name, *n))
    }

    fn noise(&self) -> Vec<String> {
        differences(&self.all.counts, &self.again.counts)
    }

    /// Where a recording is not what both independent accounts say.
    fn faults(&self, run: &Run) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, n) in self.expected() {
            let found = run.counts.get(name).copied().unwrap_or(0);
            if found != n {
                faults.push(format!("{name}: {n}, found {found}"));
            }
        }
        let known = |name: &&String| {
            self.all.counts.contains_key(*name) || self.again.counts.contains_key(*name)
        };
        let more = run.counts.keys().filter(|name| !known(name));
        faults.extend(more.map(|name| format!("{name}: none, found {}", run.counts[name])));
        faults
    }
}

fn differences(one: &Counts, other: &Counts) -> Vec<String> {
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |counts: &Counts, name: &String| counts.get(name).copied().unwrap_or(0);
    names.retain(|name| of(one, name) != of(other, name));
    names.into_iter().map(|n| format!("{n}: {} and {}", of(one, n), of(other, n))).collect()
}

pub fn run(words: &[&str]) -> Result<()> {
    if matches!(words, ["--help" | "-h"]) {
        print!("{HELP}");
        return Ok(());
    }
    let args = Args::parse(words)?;
    let ready = Ready::beside_others(args.tare.clone())?;
    let Ready { workspace, tare, work, .. } = &ready;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(args.quick);
    let found = jdks(&[args.jdk], &mut stages)?;
    let jdk = &found[0];
    let peers = Peers::default();
    let bench = Bench { tare: tare.clone(), async_profiler: None, peers, work: work.clone() };
    let mut workloads: Vec<Workload> = Vec::new();
    for name in &args.names {
        workloads.extend(workloads::prepare(name, &kitchen, &mut stages)?);
    }
    workloads.iter_mut().for_each(|w| w.options.extend(JVM_OPTIONS.map(str::to_owned)));
    let mut comparisons = Vec::new();
    for workload in &workloads {
        for trivial in [false, true] {
            let what = format!("{}{}", workload.name, with_trivial(trivial));
            let done = stages.run(&what, || compare(&bench, workload, jdk, trivial));
            if let Some(comparison) = done {
                print!("{}", details(&comparison));
                comparisons.push(comparison);
            }
        }
    }
    println!("\n{}", table(&comparisons));
    if args.write_docs {
        let text = page(&args, words, jdk, &workloads, &comparisons);
        write(&workspace.root.join("docs/measured/roots.md"), &text)?;
    }
    stages.finish()
}

fn with_trivial(trivial: bool) -> &'static str {
    if trivial { ", trivial methods too" } else { "" }
}

fn compare(bench: &Bench, workload: &Workload, jdk: &Jdk, trivial: bool) -> Result<Comparison> {
    let record = |scheme: &str| {
        record(bench, workload, jdk, scheme, trivial).with_context(|| format!("--scheme {scheme}"))
    };
    Ok(Comparison {
        name: workload.name,
        trivial,
        all: record("all")?,
        again: record("all")?,
        lazy: record("lazy")?,
        eager: record("eager")?,
    })
}

fn record(
    bench: &Bench,
    workload: &Workload,
    jdk: &Jdk,
    scheme: &str,
    trivial: bool,
) -> Result<Run> {
    let mut java = bench.java(workload, jdk, Config::Plain)?;
    let mut program = Program::start(&mut java)?;
    program.run(ONCE)?;
    let before = *program.run(ONCE)?.wall.last().context("an iteration")?;
    let mut tare = std::process::Command::new(&bench.tare);
    tare.args(["record", "--exact", "--count", "--fold-recursion", "--memory", "1G"]);
    tare.args(["--scheme", scheme, "--root", &workload.root]);
    tare.arg(if trivial { "--no-skip-trivial" } else { "--skip-trivial" });
    if workload.include != "**" {
        tare.args(["--include", workload.include]);
    }
    tare.arg("-o").arg(bench.work.join("subgraph.tare")).arg(program.pid().to_string());
    let said = bench.work.join("subgraph.log");
    let mut recorder = Recorder::start(&mut tare, &said)?;
    recorder.wait_until_woven(&bench.tare, program.pid())?;
    let first = *program.run(ONCE)?.wall.last().context("an iteration")?;
    let found = live(&bench.tare, program.pid())?;
    program.run(THREE_TIMES)?;
    let after = live(&bench.tare, program.pid())?;
    recorder.stop()?;
    program.quit()?;
    let said = fs::read_to_string(&said)?;
    let since = |(name, n): (String, i64)| {
        let n = n - found.get(&name).copied().unwrap_or(0);
        (n != 0).then_some((name, n))
    };
    let (woven, idle) = match said.lines().find_map(woven_and_idle) {
        Some(told) => told,
        None => (said.lines().find_map(methods_woven).context("what was woven")?, 0),
    };
    let waits = said.lines().find(|line| line.contains(" waits for what a method calls"));
    let missing = said.lines().find(|line| line.starts_with("first calls may be missing"));
    let waits = waits.map(|line| line.split(';').next().unwrap_or(line).to_owned());
    Ok(Run {
        counts: after.into_iter().filter_map(since).collect(),
        woven,
        idle,
        first: first / before,
        waits: [waits.unwrap_or_default(), missing.unwrap_or_default().to_owned()].join("; "),
    })
}

/// `6280 methods can be reached as far as is known, 3900 were woven, 2100 of them never ran …`
fn woven_and_idle(line: &str) -> Option<(u64, u64)> {
    let rest = line.split_once(" methods can be reached as far as is known, ")?.1;
    let (woven, rest) = rest.split_once(" were woven, ")?;
    Some((woven.parse().ok()?, rest.split_once(" of them never ran")?.0.parse().ok()?))
}

/// `x.tare: 12 k calls in 3 contexts of 1 threads, 10668 methods woven; 4 KiB`
fn methods_woven(line: &str) -> Option<u64> {
    line.split_once(" methods woven")?.0.rsplit(' ').next()?.parse().ok()
}

/// Every difference, for whoever has to explain it.
fn details(c: &Comparison) -> String {
    let mut text = format!("{}{}\n", c.name, with_trivial(c.trivial));
    let mut list = |what: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(text, "  {what}: {}", lines.len());
            lines.iter().take(60).for_each(|line| _ = writeln!(text, "    {line}"));
        }
    };
    list("the independent accounts differ", c.noise());
    list("lazy differs", c.faults(&c.lazy));
    list("eager differs", c.faults(&c.eager));
    let _ = writeln!(text, "  lazy: {}\n  eager: {}", c.lazy.waits, c.eager.waits);
    text
}

const HEADINGS: &str = "| program | methods below the root | not agreed | lazy differs | eager differs | \
                        woven: lazy | eager | all | never ran: lazy | eager | first call: lazy | eager |\n\
                        |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

fn table(comparisons: &[Comparison]) -> String {
    let mut text = HEADINGS.to_owned();
    for c in comparisons {
        let _ = writeln!(
            text,
            "| {}{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} |",
            c.name,
            with_trivial(c.trivial),
            c.all.counts.len(),
            c.noise().len(),
            c.faults(&c.lazy).len(),
            c.faults(&c.eager).len(),
            c.lazy.woven,
            c.eager.woven,
            c.all.woven,
            c.lazy.idle,
            c.eager.idle,
            c.lazy.first,
            c.eager.first,
        );
    }
    text
}

fn page(
    args: &Args,
    words: &[&str],
    jdk: &Jdk,
    workloads: &[Workload],
    comparisons: &[Comparison],
) -> String {
    let words: Vec<&str> = match args.tare {
        Some(_) => words.iter().copied().take_while(|word| *word != "--tare").collect(),
        None => words.to_vec(),
    };
    let mut text = format!(
        "# What roots reach, on real programs\n\n\
         This page is generated; `{}` writes it anew. Do not edit it.\n\n\
         - Machine: {}\n- JDK: {}\n",
        ["cargo xtask bench subgraph", &words.join(" ")].join(" ").trim_end(),
        machine::describe(),
        jdk.version,
    );
    for workload in workloads {
        let _ = writeln!(
            text,
            "- {}: {}; the root is `{}`",
            workload.name, workload.what, workload.root
        );
    }
    let _ = write!(
        text,
        "\nEach recording attaches to a JVM that has done its work twice. *Methods below the root*: those that \
         an independent account counted, everything woven and the tree cut at the root, from the second \
         call of the root on. *Not agreed*: those whose counts two such accounts do not agree on: the program itself \
         does not do the same twice. *Differs*: of all others, those whose count is another one, or that \
         are on one side only. *Never ran*: methods that were woven and did not run below the root. *First call*: \
         how long the first call of the root took, in which what it reaches is found, beside the last one before we came.\n\n{}",
        table(comparisons)
    );
    let listed = |what: &str, c: &Comparison, lines: Vec<String>, text: &mut String| {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{}{}, {what}:\n", c.name, with_trivial(c.trivial));
            lines.iter().for_each(|line| _ = writeln!(text, "- `{line}`"));
        }
    };
    for c in comparisons {
        listed("not agreed", c, c.noise(), &mut text);
        listed("lazy differs", c, c.faults(&c.lazy), &mut text);
        listed("eager differs", c, c.faults(&c.eager), &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(counts: &[(&str, i64)]) -> Run {
        let counts = counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        Run { counts, woven: 0, idle: 0, first: 1.0, waits: String::new() }
    }

    #[test]
    fn only_what_is_agreed_on_can_differ() {
        let comparison = Comparison {
            name: "h2",
            trivial: false,
            all: run(&[("a", 1), ("b", 2), ("c", 3)]),
            again: run(&[("a", 1), ("b", 5), ("c", 3)]),
            lazy: run(&[("a", 1), ("b", 9), ("c", 4)]),
            eager: run(&[("b", 2), ("c", 3), ("d", 1)]),
        };
        assert_eq!(comparison.noise(), ["b: 2 and 5"]);
        assert_eq!(comparison.faults(&comparison.lazy), ["c: 3, found 4"]);
        assert_eq!(comparison.faults(&comparison.eager), ["a: 1, found 0", "d: none, found 1"]);
    }

    #[test]
    fn what_tare_says_is_read() {
        let line = "6280 methods can be reached as far as is known, 3900 were woven, 21 of them never \
                    ran below a root";
        assert_eq!(woven_and_idle(line), Some((3900, 21)));
        let line = "x.tare: 12 k calls in 3 contexts of 1 threads, 10668 methods woven; 4 KiB";
        assert_eq!(methods_woven(line), Some(10668));
    }
}
