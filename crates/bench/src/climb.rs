//! `cargo xtask bench climb`: what a climb costs a warm program while its hooks are in, beside the
//! full exact recording; and whether the edges that it finds are those of the exact recording.

use super::launch::Bench;
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::program::Amount;
use super::ready::Ready;
use super::recorder::Recorder;
use super::stats::{beside, median, shown};
use super::warm::{Cost, Warm};
use super::workloads::{self, Workload};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures what `tare climb` costs a warm program, beside `tare record --exact`, and compares the edges of both.

Usage: cargo xtask bench climb [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without NAMEs it is h2, json and saxon. In each round there is a
plain window and one with a climb, in the same JVM; at the end there are two with an exact recording of the program's
own classes.

Options:
  --quick         a smoke test: small inputs and one round
  --rounds N      windows of each kind (default: 5; 1 with --quick)
  --minutes N     begin no further round when a program has had its part of this time (default: 11)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/climb.md
";

/// Until samples are taken and the first hooks are in, and what was woven is compiled again.
const LEAD_IN: Amount = Amount { iterations: 1, seconds: 4.0 };
const WINDOW: Amount = Amount { iterations: 1, seconds: 8.0 };

/// The first climb in a JVM makes HotSpot throw its compiled code away, once: no steady cost.
const FIRST: Amount = Amount { iterations: 1, seconds: 8.0 };
const AFTERWARDS: Amount = Amount { iterations: 2, seconds: 8.0 };

/// Windows with an exact recording, which is so dear that they need not be many.
const EXACT: usize = 2;

/// Edges that are compared.
const EDGES: usize = 10;

/// What is over when the time was, and something hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Calls by caller and callee.
type Edges = BTreeMap<(String, String), f64>;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Climb,
    Exact,
}

const PAIR: [Kind; 2] = [Kind::Plain, Kind::Climb];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Climb => "climb",
            Kind::Exact => "exact",
        }
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let (mut rounds, mut minutes, mut names) = (None, 11.0, Vec::new());
    let mut rest = options.rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--rounds" => {
                let number = rest.next().and_then(|n| n.parse().ok()).filter(|n: &usize| *n > 0);
                rounds = Some(number.context("--rounds needs a number above 0")?);
            }
            "--minutes" => {
                let number = rest.next().and_then(|n| n.parse().ok()).filter(|n: &f64| *n > 0.0);
                minutes = number.context("--minutes needs a number above 0")?;
            }
            name if workloads::names().any(|known| known == name) => names.push(name),
            other => bail!("{other} is neither an option nor a workload; see --help"),
        }
    }
    if names.is_empty() {
        names = vec!["h2", "json", "saxon"];
    }
    let rounds = rounds.unwrap_or(if options.quick { 1 } else { 5 });
    let ready = Ready::alone(options.tare.clone())?;
    let mut stages = Stages::new();
    let kitchen = ready.kitchen(options.quick);
    let jdks = super::jdks(&[options.jdk], &mut stages)?;
    let jdk = jdks.first().context("no JDK")?;
    let bench = Bench {
        tare: ready.tare.clone(),
        async_profiler: None,
        peers: Peers::default(),
        work: ready.work.clone(),
    };
    let jcmd = ready.javac.home.join("bin/jcmd");
    let mut table = "| program | rounds | climb, processor time | exact, processor time | \
                     hooks at once | hooks ever | hooks were in | by its own account | \
                     heaviest edges that agree |\n\
                     |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    // What is built and fetched is not part of the time.
    let mut workloads = Vec::new();
    for name in names {
        match workloads::prepare(name, &kitchen, &mut stages)? {
            Some(workload) => workloads.push(workload),
            None => stages.note(format!("NOT COVERED: {name}")),
        }
    }
    let whole = Duration::from_secs_f64(minutes * 60.0);
    let deadline = Instant::now() + whole;
    end_at(deadline + PATIENCE);
    for (at, workload) in workloads.iter().enumerate() {
        // What one does not need the next ones have.
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Instant::now() + left / u32::try_from(workloads.len() - at)?;
        let measured = measure(&bench, &jcmd, workload, jdk, rounds, limit, options.quick)?;
        let line = measured.line(workload.name);
        println!("{line}");
        let _ = writeln!(table, "{line}");
    }
    print!("{table}");
    if options.write_docs {
        let revision = super::revision(&ready.workspace).unwrap_or_default();
        let page = format!(
            "# What a climb costs\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             Commit {revision}; {}; Java {}.\n\n{PAGE}\n{table}",
            super::command(&[&["climb"], words].concat()),
            machine::describe(),
            jdk.version,
        );
        super::write(&ready.workspace.root.join("docs/measured/climb.md"), &page)?;
    }
    stages.finish()
}

const PAGE: &str = "\
A program is warm; in each round there is a plain window of eight seconds and one with `tare climb`,
four seconds after it began, so that its hooks are in. Weaving, samples and hooks are all part of it.
A first climb is not measured: it makes HotSpot throw its compiled code away, once in a JVM that was
started without the agent. At the end there are two windows with `tare record --exact` of the
program's own classes.

- **Processor time** is that of the whole process for an iteration beside the plain window of the
  same round: the median over rounds, and in brackets the bounds of 95 % of 4,000 bootstrap draws of
  rounds. The goal of a climb is 1.02; 1.05 where hot methods are called more than 5 M times a
  second. For the exact recording it is beside the median of all plain windows.
- **Hooks were in** says for how much of the windows, by the median.
- **By its own account** is the part of the program's processor time that the climbs say their hooks
  took, by the median.
- **Edges** are calls from one method to another that had a hook in any of the climbs; the ten with
  the most calls by the climbs are looked for among the ten of the exact recording.
";

/// Something that hangs does not hang for ever. The program ends when nobody talks to it any more.
fn end_at(limit: Instant) {
    thread::spawn(move || {
        thread::sleep(limit.saturating_duration_since(Instant::now()));
        eprintln!("bench: the climbs took far longer than they may; something hangs");
        std::process::exit(1);
    });
}

#[derive(Default)]
struct Measured {
    costs: [Vec<Cost>; 3],
    /// The climbs, as their reports tell them.
    climbs: Vec<Value>,
    /// For what part of its window each had hooks in.
    hooked: Vec<f64>,
    agree: Option<(usize, usize)>,
}

impl Measured {
    fn line(&self, name: &str) -> String {
        let cpu =
            |kind: Kind| self.costs[kind as usize].iter().map(|cost| cost.cpu).collect::<Vec<_>>();
        let (plain, exact) = (cpu(Kind::Plain), cpu(Kind::Exact));
        let usual = vec![median(&plain).unwrap_or(0.0); exact.len()];
        let most = |key: &str| self.climbs.iter().filter_map(|climb| climb[key].as_u64()).max();
        let account: Vec<f64> =
            self.climbs.iter().filter_map(|climb| climb["overhead"].as_f64()).collect();
        let share = |values: &[f64]| {
            median(values).map_or("–".to_owned(), |v| format!("{:.1} %", v * 1e2))
        };
        let agree =
            self.agree.map_or_else(|| "–".to_owned(), |(same, of)| format!("{same} of {of}"));
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {agree} |",
            self.climbs.len(),
            shown(beside(&cpu(Kind::Climb), &plain)),
            shown(beside(&exact, &usual)),
            most("hooks_most").unwrap_or(0),
            most("hooks_ever").unwrap_or(0),
            share(&self.hooked),
            share(&account),
        )
    }
}

fn measure(
    bench: &Bench,
    jcmd: &Path,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
    limit: Instant,
    quick: bool,
) -> Result<Measured> {
    let began = Instant::now();
    let mut warm = Warm::start(bench, jcmd, workload, jdk)?;
    let once = Amount { iterations: 1, seconds: 5.0 };
    let (lead_in, window) = if quick { (once, once) } else { (LEAD_IN, WINDOW) };
    let mut measured = Measured::default();
    one_window(&mut warm, workload, Kind::Climb, LEAD_IN, FIRST)?;
    warm.run(AFTERWARDS)?;
    // What exact recordings take at the end is about what all of this took.
    let exact_takes = began.elapsed();
    let mut round_takes = Duration::ZERO;
    for round in 0..rounds {
        let start = Instant::now();
        if round > 0 && start + round_takes + exact_takes > limit {
            eprintln!("{}: {round} rounds of {rounds} fit into its time", workload.name);
            break;
        }
        for step in 0..PAIR.len() {
            // Whoever comes before another in one round comes after it in the next.
            let kind = PAIR[if round.is_multiple_of(2) { step } else { PAIR.len() - 1 - step }];
            let one = one_window(&mut warm, workload, kind, lead_in, window)?;
            measured.take(workload, round, kind, one);
        }
        round_takes = start.elapsed();
    }
    let mut exact = Edges::new();
    for round in 0..if quick { 1 } else { EXACT } {
        let one = one_window(&mut warm, workload, Kind::Exact, lead_in, window)?;
        exact = edges_of_tree(&one.report)?;
        measured.take(workload, round, Kind::Exact, one);
    }
    warm.program.quit()?;
    measured.agree = Some(agreement(&edges_of_climbs(&measured.climbs), &exact));
    Ok(measured)
}

impl Measured {
    fn take(&mut self, workload: &Workload, round: usize, kind: Kind, one: Window) {
        let Cost { wall, cpu } = one.cost;
        let (name, kind_name) = (workload.name, kind.name());
        eprintln!(
            "{name}: round {}: {kind_name}: {wall:.1} ms, {cpu:.1} ms on processors",
            round + 1
        );
        self.costs[kind as usize].push(one.cost);
        if kind == Kind::Climb {
            self.hooked.push(hooked_share(&one.report["climb"], one.from, one.to));
            self.climbs.push(one.report["climb"].clone());
        }
    }
}

/// What a window brought, and when it was, in seconds since the recording began.
struct Window {
    cost: Cost,
    report: Value,
    from: f64,
    to: f64,
}

fn one_window(
    warm: &mut Warm<'_>,
    workload: &Workload,
    kind: Kind,
    lead_in: Amount,
    window: Amount,
) -> Result<Window> {
    let recording = warm.file("climb.tare");
    let _ = fs::remove_file(&recording);
    let mut command = Command::new(&warm.bench.tare);
    match kind {
        Kind::Plain => {
            warm.run(lead_in)?;
            let cost = warm.run(window)?;
            return Ok(Window { cost, report: Value::Null, from: 0.0, to: 0.0 });
        }
        Kind::Climb => command.args(["climb", "--again", "-q"]),
        Kind::Exact => command.args(["record", "--exact", "-q", "--include", workload.include]),
    };
    command.arg("-o").arg(&recording).arg(warm.program.pid().to_string());
    let mut recorder = Recorder::start(&mut command, &warm.file("record.log"))?;
    recorder.wait_for(&recording)?;
    let began = Instant::now();
    warm.run(lead_in)?;
    let from = began.elapsed().as_secs_f64();
    let cost = warm.run(window)?;
    let to = began.elapsed().as_secs_f64();
    recorder.stop()?;
    let mut report = Command::new(&warm.bench.tare);
    report.arg("report").arg(&recording).args(["--format", "json"]);
    let report = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
    Ok(Window { cost, report, from, to })
}

/// For what part of the time between two moments, in seconds, any method had a hook.
fn hooked_share(climb: &Value, from: f64, to: f64) -> f64 {
    let methods = climb["methods"].as_array().into_iter().flatten();
    let mut spans: Vec<(f64, f64)> = methods
        .filter_map(|method| {
            let at = |key: &str| method["hook"][key].as_f64().map(|nanos| nanos / 1e9);
            Some((at("from_ns")?.max(from), at("to_ns")?.min(to)))
        })
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut end) = (0.0, from);
    for (start, stop) in spans {
        sum += (stop - start.max(end)).max(0.0);
        end = end.max(stop);
    }
    if to > from { sum / (to - from) } else { 0.0 }
}

/// Without what tells overloads apart.
fn bare(name: &str) -> String {
    name.split_once('(').map_or(name, |(name, _)| name).to_owned()
}

/// Calls a second into each method that had a hook, on average over the climbs in which it had one.
fn edges_of_climbs(climbs: &[Value]) -> Edges {
    let mut all: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for (edge, rate) in climbs.iter().flat_map(edges_of_climb) {
        all.entry(edge).or_default().push(rate);
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    all.into_iter().map(|(edge, rates)| (edge, mean(&rates))).collect()
}

/// The same of one.
fn edges_of_climb(climb: &Value) -> Edges {
    let mut edges = Edges::new();
    for method in climb["methods"].as_array().into_iter().flatten() {
        let hook = &method["hook"];
        let calls = hook["calls"].as_f64().unwrap_or(0.0);
        let rate = hook["calls_per_second"].as_f64().unwrap_or(0.0);
        if calls == 0.0 {
            continue;
        }
        for caller in method["callers"].as_array().into_iter().flatten() {
            let names = caller["method"].as_str().zip(method["method"].as_str());
            let Some((from, to)) = names else { continue };
            let by_caller = caller["calls"].as_f64().unwrap_or(0.0);
            *edges.entry((bare(from), bare(to))).or_default() += rate * by_caller / calls;
        }
    }
    edges
}

/// Calls from each method to each other, in the tree of an exact recording.
fn edges_of_tree(report: &Value) -> Result<Edges> {
    let nodes = report["tree"].as_array().context("a tree")?;
    let mut edges = Edges::new();
    for node in nodes {
        let parent = node["parent"].as_u64().and_then(|at| nodes.get(usize::try_from(at).ok()?));
        let names = parent.and_then(|parent| parent["name"].as_str()).zip(node["name"].as_str());
        let Some((from, to)) = names else { continue };
        let calls = node["invocations"].as_f64().unwrap_or(0.0);
        *edges.entry((bare(from), bare(to))).or_default() += calls;
    }
    Ok(edges)
}

/// How many of the climb's heaviest edges are among those of the exact recording, and of how many.
/// Of both only what both can know: methods that had a hook, and callers that were woven.
fn agreement(climb: &Edges, exact: &Edges) -> (usize, usize) {
    let woven = |name: &String| exact.keys().any(|(from, to)| from == name || to == name);
    let hooked = |name: &String| climb.keys().any(|(_, to)| to == name);
    let heaviest = |edges: &Edges| {
        let known = edges.iter().filter(|((from, to), _)| woven(from) && woven(to) && hooked(to));
        let mut known: Vec<_> = known.filter(|((from, to), _)| from != to).collect();
        known.sort_by(|a, b| b.1.total_cmp(a.1));
        known.into_iter().take(EDGES).map(|(edge, _)| edge.clone()).collect::<Vec<_>>()
    };
    let (ours, theirs) = (heaviest(climb), heaviest(exact));
    (ours.iter().filter(|edge| theirs.contains(edge)).count(), ours.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edge(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn edges_agree_where_both_know_the_methods() {
        let climb = json!({ "methods": [
            { "method": "a.B.leaf(I)V", "hook": { "calls": 100, "calls_per_second": 50.0 }, "callers": [
                { "method": "a.B.one()V", "calls": 70 },
                { "method": "a.B.two()V", "calls": 30 },
                { "method": "java.util.List.forEach()V", "calls": 5 },
            ] },
            { "method": "a.B.cold()V", "callers": [{ "method": "a.B.one()V", "calls": 1 }] },
        ] });
        let climb = edges_of_climbs(&[climb.clone(), climb]);
        assert_eq!(climb[&edge("a.B.one", "a.B.leaf")], 35.0);
        let tree = json!({ "tree": [
            { "parent": null, "name": "all" },
            { "parent": 0, "name": "a.B.one", "invocations": 1 },
            { "parent": 1, "name": "a.B.leaf", "invocations": 700 },
            { "parent": 0, "name": "a.B.three", "invocations": 1 },
            { "parent": 3, "name": "a.B.leaf", "invocations": 300 },
        ] });
        let exact = edges_of_tree(&tree).unwrap();
        assert_eq!(exact[&edge("a.B.one", "a.B.leaf")], 700.0);
        // Of two callers one is known to both; the JDK was not woven.
        assert_eq!(agreement(&climb, &exact), (1, 1));
    }

    #[test]
    fn a_line_has_ratios_of_the_same_round() {
        let cost = |cpu| Cost { wall: cpu, cpu };
        let measured = Measured {
            costs: [
                vec![cost(10.0), cost(20.0)],
                vec![cost(10.1), cost(20.2)],
                vec![cost(40.0), cost(80.0)],
            ],
            climbs: vec![
                json!({ "hooks_most": 3, "hooks_ever": 9, "overhead": 0.012 }),
                json!({ "hooks_most": 4, "hooks_ever": 7, "overhead": 0.016 }),
            ],
            hooked: vec![0.9, 0.95],
            agree: Some((9, 10)),
        };
        let line = measured.line("h2");
        assert!(
            line.starts_with(
                "| h2 | 2 | 1.010 (1.010–1.010) | 4.000 (2.667–5.333) | 4 | 9 | 92.5 % | 1.4 % | 9 of 10 |"
            ),
            "{line}"
        );
    }

    #[test]
    fn times_with_several_hooks_count_once() {
        let hook = |from: u64, to: u64| json!({ "hook": { "from_ns": from * 1_000_000_000, "to_ns": to * 1_000_000_000 } });
        let climb = json!({ "methods": [hook(2, 6), hook(3, 5), {}, hook(8, 20), hook(0, 1)] });
        assert_eq!(hooked_share(&climb, 4.0, 12.0), 0.75);
        assert_eq!(hooked_share(&Value::Null, 4.0, 12.0), 0.0);
    }
}
