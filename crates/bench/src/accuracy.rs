//! `cargo xtask bench accuracy`: how right the times of exact recordings are.
//!
//! The program below `bench/src/bench/cost` first measures, with nothing woven, what each of its
//! methods costs; then it does the same work while `tare record --exact --cpu` samples it, and woven and timed.
//! What `tare report` says of it by each way of compensation stands beside the truth. Nothing is asserted: a benchmark reports.

use super::peers::VisualVm;
use super::program::Program;
use super::ready::Ready;
use super::recorder::Recorder;
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

const INCLUDE: &str = "bench.cost.Cases*";

/// The ways to a time, by their columns.
const WAYS: [&str; 5] = ["raw", "calibrated", "sequences", "joined", "VisualVM"];
const CALIBRATED: usize = 1;
const JOINED: usize = 3;
const EACH: [usize; WAYS.len()] = [0, 1, 2, 3, 4];

/// Goals, as the issue of this benchmark has them.
const TOTAL_GOAL: f64 = 0.03;
const METHOD_GOAL: f64 = 0.1;
const LONG_NS: f64 = 100.0;
const SHARE_GOAL: f64 = 0.05;
const COVERED_GOAL: f64 = 0.95;
/// Methods below this share of their case are not judged one by one: a driver, mostly.
const JUDGED: f64 = 0.01;

/// Between the warm-up and what counts: recordings know times by the second, and a look may be one
/// second late.
const GAP: Duration = Duration::from_millis(4_500);

/// Of true time that a case is run for in its turn, in seconds.
const TURN: f64 = 0.005;

/// Of true time per case; VisualVM takes forty times as long.
const VISUAL_VM_SECONDS: f64 = 0.1;

/// How the program is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compiled,
    Interpreted,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Compiled => "compiled",
            Mode::Interpreted => "interpreted",
        }
    }

    /// Seconds of each way to call a method in each round of the truth, if it takes what it takes compiled.
    fn round_seconds(self) -> f64 {
        match self {
            Mode::Compiled => 0.008,
            Mode::Interpreted => 0.002,
        }
    }

    /// Seconds of true time per case. Interpreted and woven it takes thirty times as long.
    fn seconds(self, quick: bool) -> f64 {
        match (self, quick) {
            (Mode::Compiled, false) => 0.5,
            (Mode::Compiled, true) => 0.2,
            (Mode::Interpreted, _) => 0.03,
        }
    }
}

struct Args {
    quick: bool,
    modes: Vec<Mode>,
    /// Of programs that are drawn.
    seeds: Vec<u64>,
    jdks: Vec<u32>,
    json: Option<PathBuf>,
    tare: Option<PathBuf>,
    write_docs: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let modes = vec![Mode::Compiled, Mode::Interpreted];
        let mut args = Args {
            quick: false,
            modes,
            seeds: Vec::new(),
            jdks: vec![17, 25],
            json: None,
            tare: None,
            write_docs: false,
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => (args.quick, args.jdks) = (true, vec![25]),
                "--write-docs" => args.write_docs = true,
                "--mode" => {
                    let name = *value()?;
                    args.modes.retain(|mode| mode.name() == name);
                    if args.modes.is_empty() {
                        bail!("--mode is compiled or interpreted");
                    }
                }
                "--jdk" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    args.jdks = numbers.context("--jdk needs numbers, such as 17,25")?;
                }
                "--seed" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    args.seeds = numbers.context("--seed needs numbers, such as 1,2,3")?;
                }
                "--json" => args.json = Some(PathBuf::from(value()?)),
                "--tare" => args.tare = Some(PathBuf::from(value()?)),
                word => bail!("unknown: {word}\n\n{}", super::HELP),
            }
        }
        Ok(args)
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let args = Args::parse(words)?;
    let ready = Ready::alone(args.tare.clone())?;
    let work = ready.work.join("accuracy");
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let mut stages = Stages::new();
    let classes = compile(&ready.workspace, &ready.javac, &work)?;
    let tare = ready.tare.clone();
    let mut lab = Lab { tare, classes, work: work.clone(), quick: args.quick, visual_vm: None };
    let mut cells = Vec::new();
    for jdk in jdks(&args.jdks, &mut stages)? {
        lab.visual_vm = VisualVm::prepare(&ready.kitchen(true), &jdk)
            .map_err(|error| {
                stages.note(format!("NOT COVERED: VisualVM on {}: {error:#}", jdk.major))
            })
            .ok();
        for &mode in &args.modes {
            let name = format!("{} on {}", mode.name(), jdk.major);
            stages.run(&name, || {
                let found = lab.measure(&jdk, mode, None)?;
                print!("{}", table(&found));
                cells.extend(found);
                Ok(())
            });
        }
        for &seed in &args.seeds {
            stages.run(&format!("drawn from {seed} on {}", jdk.major), || {
                let found = lab.measure(&jdk, Mode::Compiled, Some(seed))?;
                print!("{}", table(&found));
                cells.extend(found);
                Ok(())
            });
        }
    }
    let summary = Summary::of(&cells);
    print!("{}", summary.text());
    let json = args.json.unwrap_or_else(|| work.join("accuracy.json"));
    if args.write_docs {
        let page = format!(
            "# How right times are\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n\n\
             Programs whose true costs are known, beside what Tare says of them by every way of compensation: how many \
             whole programs, methods of 100 ns and more, and shorter ones are as near to the truth as they should be. \
             [How times are compensated](../internals/times.md) says what the ways are. *drawn*: programs that nobody had looked at, three trees of five \
             methods each, whose lengths (5 ns to 20 µs), kinds of work and numbers of calls are drawn from a seed. VisualVM \
             knows no JDK after 19; its self times are of a run of its own, with its calibration.\n\n```{}```\n",
            super::command(&[&["accuracy"], words].concat()),
            machine::describe(),
            summary.text(),
        );
        write(&ready.workspace.root.join("docs/measured/accuracy.md"), &page)?;
    }
    let cells: Vec<Value> = cells.iter().map(Cell::json).collect();
    write(&json, &format!("{:#}\n", json!({ "summary": summary.json(), "cells": cells })))?;
    stages.finish()
}

fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let classes = work.join("classes");
    let sources = workspace.root.join("bench/src/bench/cost");
    let mut command = Command::new(javac.home.join("bin/javac"));
    command.args(["--release", "17", "-g", "-d"]).arg(&classes);
    for name in ["Cases", "CasesDrawn", "CasesTurn", "Main", "Work"] {
        command.arg(sources.join(format!("{name}.java")));
    }
    shell::run(&mut command).context("compiling the programs of known cost")?;
    Ok(classes)
}

struct Lab {
    tare: PathBuf,
    classes: PathBuf,
    work: PathBuf,
    quick: bool,
    /// The peer, where it knows the JDK.
    visual_vm: Option<VisualVm>,
}

/// One method in one case, or a whole case: nanoseconds per call, or per round of a case.
#[derive(Clone, Debug)]
struct Cell {
    run: String,
    case: String,
    /// `None` for the whole case.
    method: Option<String>,
    truth: f64,
    /// By the columns of [`WAYS`].
    ways: [f64; WAYS.len()],
    /// Of the calibrated estimate, and of the joined one.
    bounds: [(f64, f64); 2],
    share: f64,
    /// Differences of shares of the case, by the columns.
    share_errors: [f64; WAYS.len()],
}

impl Lab {
    /// The programs that everybody knows, or those that are drawn from a seed.
    fn measure(&self, jdk: &Jdk, mode: Mode, seed: Option<u64>) -> Result<Vec<Cell>> {
        let mut java = Command::new(jdk.home.join("bin/java"));
        if mode == Mode::Interpreted {
            java.arg("-Xint");
        }
        // So that samples tell inlined methods from their callers, as they do in a program that is
        // launched by `tare record`.
        java.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]);
        java.args(["-Xms256m", "-Xmx256m", "-cp"]).arg(&self.classes).arg("bench.cost.Main");
        java.args(seed.map(|seed| seed.to_string()));
        let log = fs::File::create(self.work.join("stderr.log")).context("creating a log")?;
        // Its own times beside ours, of a run of its own; interpreted, it would take forever.
        let theirs = match &self.visual_vm {
            Some(peer) if mode == Mode::Compiled && seed.is_none() => {
                self.visual_vm(peer, jdk, &java)?
            }
            _ => HashMap::new(),
        };
        let mut program = Program::start(java.stderr(log))?;
        // HotSpot throws all its code away when the first class of a JVM is changed, and may compile it otherwise then: that
        // is done before the truth is measured, or it would be the truth of another program.
        let first = ["--region", "bench.cost.CasesTurn.turn", "-d", "100ms"];
        self.record(&program, &first, &self.work.join("first.tare"))?.wait()?;
        let ask_truth = format!("truth {}", mode.round_seconds());
        let mut truth = Truth::parse(&program.ask(&ask_truth)?)?;
        let work = format!("work {} {TURN}", mode.seconds(self.quick));
        truth.take_turns(&Truth::parse(&program.ask(&work)?)?);
        let exact = self.work.join("exact.tare");
        let window = if self.quick { "10s" } else { "25s" };
        let how = ["--exact", "--cpu", "--window", window, "--time-all", "--include", INCLUDE];
        let mut recorder = self.record(&program, &how, &exact)?;
        while !recorder.has_begun(&exact)? {
            program.ask(&format!("work {TURN} {TURN}"))?;
        }
        recorder.wait_until_woven(&self.tare, program.pid())?;
        if mode == Mode::Compiled {
            // Once for the JVM to compile what was woven; the truth, too, is that of compiled code.
            program.ask(&work)?;
        }
        thread::sleep(GAP);
        let gap = SystemTime::now() - GAP * 2 / 3;
        program.ask(&work)?;
        recorder.stop()?;
        let mut again = Truth::parse(&program.ask(&ask_truth)?)?;
        again.take_turns(&Truth::parse(&program.ask(&work)?)?);
        let kind = seed.map_or_else(|| mode.name().to_owned(), |seed| format!("drawn {seed}"));
        let run = format!("{} {kind}", jdk.major);
        if let Some(drift) = truth.drift(&again).filter(|drift| *drift > 0.05) {
            println!(
                "{run}: what is true changed by up to {:.0} % meanwhile; the machine is not quiet",
                drift * 100.0
            );
        }
        let since = format!("{:.1}s..", since_start(&self.tare, &exact, gap)?.as_secs_f64());
        let report =
            |more: &[&str]| said(&self.tare, &exact, &[&["--time", since.as_str()], more].concat());
        let reports = [
            report(&["--metric", "wall-time", "--compensate", "none"])?,
            report(&["--metric", "wall-time", "--compensate", "calibrated"])?,
            report(&["--metric", "wall-time", "--compensate", "sequences"])?,
            report(&["--metric", "joined"])?,
            theirs,
        ];
        truth.cells(&run, &reports)
    }

    /// What VisualVM's instrumenting profiler says of the same work.
    fn visual_vm(
        &self,
        peer: &VisualVm,
        jdk: &Jdk,
        java: &Command,
    ) -> Result<HashMap<String, Said>> {
        let said = self.work.join("visualvm.log");
        let log = fs::File::create(&said).context("creating a log")?;
        let mut driver = peer.of_methods(java, jdk, "bench.cost.Main", INCLUDE);
        let mut program = Program::start(driver.stderr(log))?;
        program.ask(&format!("work {VISUAL_VM_SECONDS} {TURN}"))?;
        program.end()?;
        let said = fs::read_to_string(&said)?;
        let methods = said.lines().filter_map(|line| {
            let words: Vec<&str> = line.strip_prefix("method ")?.split(' ').collect();
            let [name, calls, micros] = words[..] else { return None };
            let own = micros.parse::<f64>().ok()? * 1e3;
            let said = Said { own, bounds: (own, own), calls: calls.parse().ok()? };
            Some((name.to_owned(), said))
        });
        Ok(methods.collect())
    }

    fn record(&self, program: &Program, how: &[&str], to: &Path) -> Result<Recorder> {
        let mut tare = Command::new(&self.tare);
        tare.arg("record").args(how).arg("-o").arg(to).arg(program.pid().to_string());
        Recorder::start(&mut tare, &self.work.join("record.log"))
    }
}

/// When something was, in the time of a recording.
pub fn since_start(tare: &Path, recording: &Path, when: SystemTime) -> Result<Duration> {
    let value = report(tare, recording, &["--time", "0s..1s"])?;
    let nanos = value["run"]["started_unix_ns"].as_u64().context("a start")?;
    Ok(when.duration_since(UNIX_EPOCH)?.saturating_sub(Duration::from_nanos(nanos)))
}

fn report(tare: &Path, recording: &Path, more: &[&str]) -> Result<Value> {
    let mut report = Command::new(tare);
    report.arg("report").arg(recording).args(["--format", "json"]).args(more);
    // Only the list of methods is of interest, not the tree.
    report.args(["--min-share", "1.0"]).stderr(Stdio::null());
    Ok(serde_json::from_str(&shell::output(&mut report)?)?)
}

/// What a report says of each method.
pub fn said(tare: &Path, recording: &Path, more: &[&str]) -> Result<HashMap<String, Said>> {
    let value = report(tare, recording, more)?;
    let methods = value["methods"].as_array().context("a report without methods")?;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let said = methods.iter().map(|method| {
        let own = number(&method["self"]);
        let range = |at: usize| method["self_calibration_range"][at].as_f64();
        let bound = |key: &str, at| method[key].as_f64().or_else(|| range(at)).unwrap_or(own);
        let said = Said {
            own,
            bounds: (bound("self_lower", 0), bound("self_upper", 1)),
            calls: number(&method["invocations"]),
        };
        (method["name"].as_str().unwrap_or_default().to_owned(), said)
    });
    Ok(said.collect())
}

/// What a report says of a method, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub struct Said {
    pub own: f64,
    bounds: (f64, f64),
    pub calls: f64,
}

impl Said {
    /// Of a way that was not taken.
    const UNKNOWN: Said = Said { own: f64::NAN, bounds: (f64::NAN, f64::NAN), calls: f64::NAN };
}

/// What the program measured of itself.
struct Truth {
    cases: Vec<Case>,
}

struct Case {
    name: String,
    total: f64,
    methods: Vec<Method>,
}

struct Method {
    name: String,
    /// Per call; per round of the case if it has no calls of its own to count.
    nanos: f64,
    calls: f64,
}

impl Method {
    /// How often its nanoseconds pass in a round of the case.
    fn per_round(&self) -> f64 {
        if self.calls > 0.0 { self.calls } else { 1.0 }
    }
}

impl Truth {
    /// `case NAME NANOS`, then `method NAME NANOS CALLS` for each of its methods.
    fn parse(lines: &[String]) -> Result<Truth> {
        let mut cases: Vec<Case> = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<f64>().context("a number");
            match (words.as_slice(), cases.last_mut()) {
                (["case", name, total], _) => cases.push(Case {
                    name: (*name).to_owned(),
                    total: number(total)?,
                    methods: Vec::new(),
                }),
                (["method", name, nanos, calls], Some(case)) => case.methods.push(Method {
                    name: format!("bench.cost.{name}"),
                    nanos: number(nanos)?,
                    calls: number(calls)?,
                }),
                _ => bail!("the program says `{line}` of the truth"),
            }
        }
        if cases.is_empty() {
            bail!("the program knows no truth");
        }
        Ok(Truth { cases })
    }

    /// What a case takes in turns with the others, as it is recorded, is the truth; its methods have the same parts of
    /// it. An interpreter's jumps are foreseen less well then.
    fn take_turns(&mut self, worked: &Truth) {
        for case in &mut self.cases {
            let Some(same) = worked.cases.iter().find(|w| w.name == case.name) else { continue };
            let longer = same.total / case.total;
            case.total *= longer;
            case.methods.iter_mut().for_each(|method| method.nanos *= longer);
        }
    }

    /// The largest difference of a whole case.
    fn drift(&self, other: &Truth) -> Option<f64> {
        let pairs = self.cases.iter().zip(&other.cases);
        pairs.map(|(a, b)| (a.total / b.total - 1.0).abs()).max_by(f64::total_cmp)
    }

    fn cells(&self, run: &str, reports: &[HashMap<String, Said>; WAYS.len()]) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for case in &self.cases {
            let said = |way: usize, method: &Method| match reports[way].get(&method.name) {
                _ if reports[way].is_empty() => Said::UNKNOWN,
                found => found.copied().unwrap_or_default(),
            };
            let first = case.methods.first().context("a case without methods")?;
            // VisualVM has seen a run of its own.
            let rounds = EACH.map(|way| said(way, first).calls / first.calls);
            if rounds[0] <= 0.0 {
                bail!("{} was never called", first.name);
            }
            let all = |way: usize, of: fn(&Said) -> f64| -> f64 {
                case.methods.iter().map(|method| of(&said(way, method))).sum()
            };
            let totals = EACH.map(|way| all(way, |said| said.own));
            let bounds = [CALIBRATED, JOINED].map(|way| {
                let low = all(way, |said| said.bounds.0) / rounds[way];
                (low, all(way, |said| said.bounds.1) / rounds[way])
            });
            let whole: f64 = case.methods.iter().map(|m| m.nanos * m.per_round()).sum();
            cells.push(Cell {
                run: run.to_owned(),
                case: case.name.clone(),
                method: None,
                truth: case.total,
                ways: EACH.map(|way| totals[way] / rounds[way]),
                bounds,
                share: 1.0,
                share_errors: [0.0; WAYS.len()],
            });
            for method in &case.methods {
                let calls = EACH.map(|way| rounds[way] * method.per_round());
                let share = method.nanos * method.per_round() / whole;
                let ways = EACH.map(|way| said(way, method).own / calls[way]);
                let share_errors =
                    EACH.map(|way| said(way, method).own / totals[way].max(1.0) - share);
                let bounds = [CALIBRATED, JOINED].map(|way| {
                    let (low, high) = said(way, method).bounds;
                    (low / calls[way], high / calls[way])
                });
                cells.push(Cell {
                    run: run.to_owned(),
                    case: case.name.clone(),
                    method: Some(method.name.replace("bench.cost.", "")),
                    truth: method.nanos,
                    ways,
                    bounds,
                    share,
                    share_errors,
                });
            }
        }
        Ok(cells)
    }
}

impl Cell {
    fn is_judged(&self) -> bool {
        self.share >= JUDGED
    }

    fn covered(&self, which: usize) -> bool {
        let (low, high) = self.bounds[which];
        // The truth, too, was measured.
        low <= self.truth * 1.01 + 0.1 && self.truth * 0.99 - 0.1 <= high
    }

    fn error(&self, way: usize) -> f64 {
        self.ways[way] / self.truth - 1.0
    }

    fn json(&self) -> Value {
        json!({
            "run": self.run,
            "case": self.case,
            "method": self.method,
            "truth_ns": self.truth,
            "estimates_ns": WAYS.iter().zip(self.ways).collect::<HashMap<_, _>>(),
            "interval_ns": self.bounds[0],
            "joined_interval_ns": self.bounds[1],
            "covered": self.covered(0),
            "joined_covered": self.covered(1),
            "share": self.share,
        })
    }
}

fn table(cells: &[Cell]) -> String {
    let mut text = format!(
        "{:<26}{:>10}{:>10}{:>11}{:>11}{:>10}{:>10}  {:>19}  covers  {:>19}  covers\n",
        "ns per call",
        "truth",
        "raw",
        "calibrated",
        "sequences",
        "joined",
        "VisualVM",
        "interval",
        "joined interval",
    );
    for cell in cells.iter().filter(|cell| cell.is_judged()) {
        let name = match &cell.method {
            None => format!("{} {}", cell.run, cell.case),
            Some(method) => format!("    {}", method.replace("Cases.", "").replace("Cases$", "")),
        };
        let number = |value: f64| match value.abs() {
            _ if value.is_nan() => "–".to_owned(),
            1000.0.. => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        };
        let interval = |(low, high): (f64, f64)| format!("{} … {}", number(low), number(high));
        let covers = |which| if cell.covered(which) { "yes" } else { "NO" };
        text.push_str(&format!(
            "{name:<26}{:>10}{:>10}{:>11}{:>11}{:>10}{:>10}  {:>19}  {:<6}  {:>19}  {}\n",
            number(cell.truth),
            number(cell.ways[0]),
            number(cell.ways[1]),
            number(cell.ways[2]),
            number(cell.ways[3]),
            number(cell.ways[4]),
            interval(cell.bounds[0]),
            covers(0),
            interval(cell.bounds[1]),
            covers(1),
        ));
    }
    text
}

/// How the goals are met, in each run and by each way.
struct Summary {
    lines: Vec<Line>,
    /// Covered cells, by the calibrated interval and the joined one.
    covered: Vec<(String, [Tally; 2])>,
}

/// How many of how many.
type Tally = (usize, usize);

/// One run by one way.
struct Line {
    run: String,
    way: &'static str,
    /// Totals, methods of 100 ns and more, shorter ones.
    within: [Tally; 3],
    /// The largest error of a whole case.
    worst: f64,
}

impl Summary {
    fn of(cells: &[Cell]) -> Summary {
        let mut runs: Vec<&str> = cells.iter().map(|cell| cell.run.as_str()).collect();
        runs.dedup();
        let (mut lines, mut covered) = (Vec::new(), Vec::new());
        for run in runs {
            let of_run = || cells.iter().filter(move |c| c.run == run && c.is_judged());
            for (way, name) in WAYS.into_iter().enumerate() {
                if of_run().all(|cell| cell.ways[way].is_nan()) {
                    continue;
                }
                let tally = |wanted: &dyn Fn(&Cell) -> bool, good: &dyn Fn(&Cell) -> bool| {
                    let all: Vec<&Cell> = of_run().filter(|cell| wanted(cell)).collect();
                    (all.iter().filter(|cell| good(cell)).count(), all.len())
                };
                let is_method = |cell: &Cell| cell.method.is_some();
                let totals = tally(&|c| !is_method(c), &|c| c.error(way).abs() <= TOTAL_GOAL);
                let long = tally(&|c| is_method(c) && c.truth >= LONG_NS * 0.95, &|c| {
                    c.error(way).abs() <= METHOD_GOAL
                });
                let short = tally(&|c| is_method(c) && c.truth < LONG_NS * 0.95, &|c| {
                    c.share_errors[way].abs() <= SHARE_GOAL
                });
                let whole = of_run().filter(|c| c.method.is_none());
                let worst = whole.map(|c| c.error(way).abs()).fold(0.0, f64::max);
                let within = [totals, long, short];
                lines.push(Line { run: run.to_owned(), way: name, within, worst });
            }
            let all = of_run().count();
            let by = [0, 1].map(|which| (of_run().filter(|c| c.covered(which)).count(), all));
            covered.push((run.to_owned(), by));
        }
        Summary { lines, covered }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "\n{:<18}{:<12}{:>18}{:>22}{:>24}{:>14}\n",
            "", "", "totals ≤ 3 %", "≥ 100 ns ≤ 10 %", "shorter ≤ 5 points", "worst total"
        );
        for Line { run, way, within, worst } in &self.lines {
            let [a, b, c] = within.map(|(good, all)| format!("{good} of {all}"));
            text.push_str(&format!(
                "{run:<18}{way:<12}{a:>17}{b:>21}{c:>23}{:>12.1} %\n",
                worst * 100.0
            ));
        }
        for (run, covered) in &self.covered {
            let [a, b] = covered.map(|(good, all)| {
                let share = good as f64 / all.max(1) as f64;
                let verdict = if share >= COVERED_GOAL { "" } else { " (goal: 95 %)" };
                format!("{good} of {all}{verdict}")
            });
            text.push_str(&format!("{run}: the range covers {a}, the joined interval {b}\n"));
        }
        text
    }

    fn json(&self) -> Value {
        let lines =
            self.lines.iter().map(|Line { run, way, within: [totals, long, short], worst }| {
                json!({
                    "run": run, "way": way, "totals": totals, "long": long, "short": short,
                    "worst_total": worst,
                })
            });
        let covered = self.covered.iter().map(|(run, [interval, joined])| {
            json!({ "run": run, "interval": interval, "joined": joined })
        });
        json!({ "ways": lines.collect::<Value>(), "covered": covered.collect::<Value>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_and_reports_become_cells() {
        let lines = ["case fan 640", "method Cases.fan 400 1", "method Cases.leaf 12 20"];
        let truth = Truth::parse(&lines.map(str::to_owned)).unwrap();
        let said = |own: f64, calls: f64| Said { own, bounds: (own * 0.9, own * 1.1), calls };
        let report: HashMap<String, Said> = [
            ("bench.cost.Cases.fan".to_owned(), said(4_200.0, 10.0)),
            ("bench.cost.Cases.leaf".to_owned(), said(2_400.0, 200.0)),
        ]
        .into();
        let cells = truth.cells("x", &EACH.map(|_| report.clone())).unwrap();
        assert_eq!(cells.len(), 3);
        let [whole, fan, leaf] = &cells[..] else { panic!() };
        assert!((whole.ways[0] - 660.0).abs() < 1e-9 && whole.covered(0));
        assert!((fan.error(1) - 0.05).abs() < 1e-9 && fan.covered(0));
        assert!((leaf.ways[2] - 12.0).abs() < 1e-9);
        let summary = Summary::of(&cells);
        assert_eq!(summary.lines[0].within, [(0, 1), (1, 1), (1, 1)]);
        let mut truth = Truth::parse(&lines.map(str::to_owned)).unwrap();
        truth.take_turns(&Truth::parse(&["case fan 1280".to_owned()]).unwrap());
        assert!((truth.cases[0].methods[1].nanos - 24.0).abs() < 1e-9);
        assert!(Truth::parse(&["method x 1 1".to_owned()]).is_err());
        assert!(Truth::parse(&[]).is_err());
    }
}
