//! `cargo xtask bench`: what profiling costs, measured beside the plain program in the same run.
//!
//! This file reads the first word of the command line; each question has a module of its own, and
//! `modes` is the one without a name. `workloads` and `config` say what is run and how, `ready`
//! prepares it, `program` talks with a JVM, `stats` and `figures` make numbers of it, `table`,
//! `plot` and `docs` show them. No time is ever asserted: a benchmark reports.
#![forbid(unsafe_code)]

mod accuracy;
mod alloc;
mod climb;
mod comparison;
mod config;
mod demotion;
mod docs;
mod figures;
mod heap;
mod launch;
mod locks;
mod machine;
mod modes;
mod options;
mod overlap;
mod own;
mod peers;
mod plot;
mod program;
mod reach;
mod ready;
mod recorder;
mod regions;
mod sampling;
mod scale;
mod server;
mod stats;
mod subgraph;
mod table;
mod target;
mod threads;
mod together;
mod trace;
mod versions;
mod view;
mod warm;
mod whole;
mod workloads;
mod wrap;

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use tare_toolbox::jdks::{self, Jdk};
use tare_toolbox::runtimes::cache_dir;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures what profiling costs: plain and profiled JVMs in turns, and their ratios.

Usage: cargo xtask bench [OPTION…] [NAME…]
       cargo xtask bench whole [OPTION…] [PART…]       everything below, one after the other; see its --help
       cargo xtask bench suite [OPTION…] [NAME…]       all workloads, and means over them
       cargo xtask bench subgraph [OPTION…] [NAME…]    is what roots reach found; see its --help
       cargo xtask bench server [OPTION…]              a server under load; see its --help
       cargo xtask bench sampling [OPTION…] [NAME…]    sampling beside async-profiler's; see its --help
       cargo xtask bench alloc [OPTION…] [NAME…]       sampling allocation beside others; see its --help
       cargo xtask bench locks [OPTION…] [NAME…]       recording locks beside others; see its --help
                                                       (the workload of that name is not to be the first)
       cargo xtask bench together [OPTION…] [NAME…]    all engines at once, beside each alone; see its --help
       cargo xtask bench climb [OPTION…] [NAME…]       a climb beside the exact recording; see its --help
       cargo xtask bench heap [OPTION…]                heap snapshots beside HotSpot's dump; see its --help
       cargo xtask bench threads [OPTION…]             how long a dump of threads stops a JVM; see its --help
       cargo xtask bench reach [OPTION…]               a JVM elsewhere, the live view, the static build; see its --help
       cargo xtask bench self [OPTION…] [NAME…]        where the time of our own modes goes; see its --help
       cargo xtask bench target [OPTION…] [NAME…]      estimates for another JVM; see its --help
       cargo xtask bench trace [OPTION…]               how many events a trace takes; see its --help
       cargo xtask bench regions [OPTION…]             what a code region costs; see its --help
       cargo xtask bench versions [OPTION…] [NAME…]    two builds in turns; see its --help
       cargo xtask bench view                          the page of five million contexts

Workloads are real programs (javac, h2, scala, lucene, jetty, web, saxon, pdfbox, json, clojure, spark) and small ones that
are one hard case each (fib, trees, throws, locks, garbage, virtual); without NAMEs it is fib, javac and
h2, and `all` means all of them. Configurations are the plain program, our
exact modes (count, time, and woven but outside the subgraph; each launched and attached), JFR and
async-profiler. With the name
`peers` they are the plain program, our times of all methods and of what one root reaches, VisualVM's
the same, and the JVM's own method events, on small inputs; without NAMEs, trees is among the workloads. With the
name `bytecodes` they are the plain program and the ways to count and to sample executed bytecodes; how far samples
agree with the exact profile is told as well. With the name `suite` they are the modes that people use most, of all workloads
on JDK 25, with geometric means over them. With the name `demotion` they are the plain program, counts, and times
with and without a budget for the probes, of javac. Two benchmarks never run at the same time on a machine: the
second one waits.

With the name `accuracy` as the first word it measures how right times are, not what they cost:
programs whose true costs are known, beside what Tare says of them, by every way of compensation.
It takes --quick, --jdk, --tare, --json, --mode (compiled or interpreted; default: both), --write-docs, and
--seed N[,N…] for further programs that are drawn from these numbers.

With the name `scale` as the first word it measures how cost grows with threads (10 to 10,000), classes
(1,000 to 50,000) and contexts (1,000 to 10 million); see its --help.

Options:
  --quick          a smoke test in a few minutes: small inputs, one launch, one JDK
  --brief          measure one iteration and a second of each launch, after fewer; with suite, without the attached mode
  --launches N     JVM launches of each configuration (default: 5; 1 with --quick)
  --minutes N      begin no further launches after that time, but one of each in any case; with suite, no
                   further workload
  --jdk N[,N…]     the JDKs to run on (default: 17,25; 25 with --quick)
  --json FILE      where all that was measured goes (default: bench/results.json in the target
                   directory)
  --tare FILE      measure this `tare` instead of building one
  --write-docs     write cost.md in docs/measured/, bench/results.svg and README's table from this
                   run; with peers peers.md, with bytecodes bytecodes.md, with suite programs.md,
                   with demotion overhead-budget.md
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    match words {
        ["--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["alloc", options @ ..] => alloc::run(options),
        ["locks", options @ ..] => locks::run(options),
        ["climb", options @ ..] => climb::run(options),
        ["accuracy", options @ ..] => accuracy::run(options),
        ["sampling", options @ ..] => sampling::run(options),
        ["heap", options @ ..] => heap::run(options),
        ["reach", options @ ..] => reach::run(options),
        ["regions", options @ ..] => regions::run(options),
        ["scale", options @ ..] => scale::run(options),
        ["trace", options @ ..] => trace::run(options),
        ["whole", options @ ..] => whole::run(options),
        ["self", options @ ..] => own::run(options),
        ["subgraph", options @ ..] => subgraph::run(options),
        ["target", options @ ..] => target::run(options),
        ["threads", options @ ..] => threads::run(options),
        ["together", options @ ..] => together::run(options),
        ["server", options @ ..] => server::run(options),
        ["view", options @ ..] => view::run(options),
        ["versions", options @ ..] => versions::run(options),
        options => modes::run(options),
    }
}

/// The command of this run, without what only this machine knows.
fn command(words: &[&str]) -> String {
    let mut shown = vec!["cargo", "xtask", "bench"];
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--json" | "--tare" | "--static" => _ = rest.next(),
            word => shown.push(word),
        }
    }
    shown.join(" ")
}

fn jdks(wanted: &[u32], stages: &mut Stages) -> Result<Vec<Jdk>> {
    let found = jdks::find(&cache_dir()?);
    let mut jdks = Vec::new();
    for &major in wanted {
        match jdks::runtime(&found, major) {
            Some(jdk) => {
                println!("Java {major}: {}", jdk.describe());
                jdks.push(jdk.clone());
            }
            None => stages.note(format!("NOT COVERED: there is no JDK {major} on this machine")),
        }
    }
    if jdks.is_empty() {
        bail!("none of these JDKs is here: {wanted:?}; `cargo xtask setup` fetches some");
    }
    Ok(jdks)
}

/// Writes a file; pages are wrapped as those are that people write.
fn write(path: &Path, text: &str) -> Result<()> {
    let is_page = path.extension().is_some_and(|ending| ending == "md");
    let text = if is_page { wrap::wrapped(text) } else { text.to_owned() };
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_do_not_reach_the_documentation() {
        let words = ["fib", "--json", "out/x.json", "--launches", "3", "--tare", "y/tare"];
        assert_eq!(command(&words), "cargo xtask bench fib --launches 3");
    }
}
