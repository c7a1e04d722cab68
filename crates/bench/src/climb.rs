//! `cargo xtask bench climb`: what a climb costs a warm program while its hooks are in, beside the
//! full exact recording; and whether the edges that it finds are those of the exact recording.

mod edges;

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
use edges::{Edges, agreement, edges_of_climbs, edges_of_tree};
use serde_json::Value;
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
plain window and one with a climb whose hooks are in, in the same JVM; what it takes until then and afterwards is told
apart. At the end there are two windows with an exact recording of the program's own classes.

Options:
  --quick         a smoke test: small inputs and one round
  --rounds N      windows of each kind (default: 4; 1 with --quick)
  --minutes N     begin no further round when a program has had its part of this time (default: 11)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/climb.md
";

/// Until samples are taken, hooks are in, and most of what was woven is compiled again; and until what
/// was restored is.
const LEAD_IN: Amount = Amount { iterations: 1, seconds: 20.0 };
/// Then until the compilers take no more than this part of a processor beyond what they took in the
/// plain window, by looks of three seconds; so many looks at most.
const LOOK: Amount = Amount { iterations: 1, seconds: 3.0 };
const SETTLED: f64 = 0.02;
const LOOKS: usize = 12;
const WINDOW: Amount = Amount { iterations: 1, seconds: 8.0 };
const LEAD_OUT: Amount = Amount { iterations: 1, seconds: 5.0 };

/// The first climb in a JVM makes HotSpot throw its compiled code away, once: no steady cost.
const FIRST: Amount = Amount { iterations: 1, seconds: 15.0 };
const AFTERWARDS: Amount = Amount { iterations: 2, seconds: 12.0 };

/// Windows with an exact recording, which is so dear that they need not be many.
const EXACT: usize = 2;

/// What is over when the time was, and something hangs.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Climb,
    Exact,
}

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
    let rounds = rounds.unwrap_or(if options.quick { 1 } else { 4 });
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
    let mut table =
        "| program | rounds | climb, hooks are in | of that compilers | of that our threads | \
                     the window began after | to set them and take them out | exact recording | hooks at once | \
                     set anew in the window | by its own account | heaviest edges that agree |\n\
                     |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
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
        let revision = ready.workspace.revision().unwrap_or_default();
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
A program is warm; in each round there is a plain window of eight seconds and one with `tare climb`.
It begins when its hooks are in and what was woven is compiled: twenty seconds after the climb, and
then as soon as the JVM's compilers take no more than 2 % of a processor beyond what they took in
the plain window, by looks of three seconds, twelve at most. Samples and hooks are part of it. A
first climb of thirty-five seconds is not measured: it makes HotSpot throw its compiled code away,
once in a JVM that was started without the agent. At the end there are two windows with `tare record
--exact` of the program's own classes.

- **Climb, hooks are in**, and **exact recording**: processor time of the whole process for an
  iteration beside the plain windows before and after: the median over rounds, and in brackets the
  bounds of 95 % of 4,000 bootstrap draws of rounds. The goal of a climb is 1.02; 1.05 where hot
  methods are called more than 5 M times a second. For the exact recording it is beside the median
  of all plain windows.
- **Of that compilers**, and **our threads**: what the JVM's compilers took more than in the plain
  window before, and what Tare's threads in the process took, beside a plain iteration; medians.
  What is left is the program's own threads: hooks, samples, and code that is inlined less.
- **To set them and take them out**: what the process took more than plain iterations would have,
  from the climb's begin to the window, and in the five seconds after the climb; once a climb. In
  seconds of the plain program: as much processor time as it uses in that time. Most of it are the
  JVM's compilers, which compile woven classes, and all that these are inlined into, anew.
- **Set anew in the window**: how often classes were loaded again there, on average, since the climb
  came to methods that samples had not foretold.
- **By its own account** is the part of the program's processor time that the climbs say they took,
  samples, hooks and our threads, from the first sample on; the median.
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
    /// How often each had classes loaded again in its window.
    changes: Vec<f64>,
    /// What each took beside its window, in seconds of the plain program.
    around: Vec<f64>,
    /// When the window of each began, in seconds.
    began: Vec<f64>,
    agree: Option<(usize, usize)>,
}

impl Measured {
    fn line(&self, name: &str) -> String {
        let cpu =
            |kind: Kind| self.costs[kind as usize].iter().map(|cost| cost.cpu).collect::<Vec<_>>();
        let (plain, exact) = (cpu(Kind::Plain), cpu(Kind::Exact));
        // Each climb is beside the plain window before it and the one after it.
        let around: Vec<f64> = plain.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        let usual = vec![median(&plain).unwrap_or(0.0); exact.len()];
        let most = self.climbs.iter().filter_map(|climb| climb["hooks_most"].as_u64()).max();
        let account: Vec<f64> =
            self.climbs.iter().filter_map(|climb| climb["overhead"].as_f64()).collect();
        let of_plain = |part: fn(&Cost, &Cost) -> f64| {
            let pairs = self.costs[Kind::Climb as usize].iter().zip(&self.costs[0]);
            let shares: Vec<f64> = pairs.map(|(one, plain)| part(one, plain) / plain.cpu).collect();
            median(&shares).map(|share| format!("{:.1} %", share * 1e2))
        };
        let changes = self.changes.iter().sum::<f64>() / self.changes.len().max(1) as f64;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {changes:.1} | {} | {} |",
            self.climbs.len(),
            shown(beside(&cpu(Kind::Climb), &around)),
            or_none(of_plain(|one, plain| one.compiling - plain.compiling)),
            or_none(of_plain(|one, _| one.own)),
            or_none(median(&self.began).map(|seconds| format!("{seconds:.0} s"))),
            or_none(median(&self.around).map(|seconds| format!("{seconds:.1} s"))),
            shown(beside(&exact, &usual)),
            most.unwrap_or(0),
            or_none(median(&account).map(|share| format!("{:.1} %", share * 1e2))),
            or_none(self.agree.map(|(same, of)| format!("{same} of {of}"))),
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
    let long = if quick { window } else { FIRST };
    let first = one_window(&mut warm, workload, Kind::Climb, LEAD_IN, None, long)?;
    warm.run(AFTERWARDS)?;
    // What exact recordings take at the end is about half of what all of this took.
    let exact_takes = began.elapsed() / 2;
    let mut round_takes = Duration::ZERO;
    for round in 0..rounds {
        let start = Instant::now();
        if round > 0 && start + round_takes + exact_takes > limit {
            eprintln!("{}: {round} rounds of {rounds} fit into its time", workload.name);
            break;
        }
        let plain = warm.run(window)?;
        measured.take(workload, round, Kind::Plain, plain);
        let beside = Some(plain).filter(|_| !quick);
        let one = one_window(&mut warm, workload, Kind::Climb, lead_in, beside, window)?;
        let out = warm.run(LEAD_OUT)?;
        measured.take(workload, round, Kind::Climb, one.cost);
        measured.take_climb(&one, plain, out);
        round_takes = start.elapsed();
    }
    let last = warm.run(window)?;
    measured.take(workload, measured.climbs.len(), Kind::Plain, last);
    let mut exact = Edges::new();
    for round in 0..if quick { 1 } else { EXACT } {
        let one = one_window(&mut warm, workload, Kind::Exact, LEAD_OUT, None, window)?;
        exact = edges_of_tree(&one.report)?;
        measured.take(workload, round, Kind::Exact, one.cost);
    }
    warm.program.quit()?;
    let climbs = [&[first.report["climb"].clone()][..], &measured.climbs].concat();
    measured.agree = Some(agreement(&edges_of_climbs(&climbs), &exact));
    Ok(measured)
}

impl Measured {
    fn take(&mut self, workload: &Workload, round: usize, kind: Kind, cost: Cost) {
        let Cost { wall, cpu, .. } = cost;
        let (name, kind_name) = (workload.name, kind.name());
        eprintln!(
            "{name}: round {}: {kind_name}: {wall:.1} ms, {cpu:.1} ms on processors",
            round + 1
        );
        self.costs[kind as usize].push(cost);
    }

    fn take_climb(&mut self, one: &Window, plain: Cost, out: Cost) {
        let climb = &one.report["climb"];
        let changes = changes(climb, one.from, one.to);
        let around = one.lead_in.iter().chain([&out]).map(|cost| cost.beyond(plain)).sum::<f64>();
        eprintln!(
            "  the window began after {:.0} s; {changes} changes in it, {around:.2} s more around it",
            one.from
        );
        self.changes.push(changes as f64);
        self.around.push(around);
        self.began.push(one.from);
        self.climbs.push(climb.clone());
    }
}

/// What a window brought, and when it was, in seconds since the recording began.
struct Window {
    cost: Cost,
    lead_in: Vec<Cost>,
    report: Value,
    from: f64,
    to: f64,
}

/// With a plain window `beside` it, it begins when the compilers have settled.
fn one_window(
    warm: &mut Warm<'_>,
    workload: &Workload,
    kind: Kind,
    lead_in: Amount,
    beside: Option<Cost>,
    window: Amount,
) -> Result<Window> {
    let recording = warm.file("climb.tare");
    let _ = fs::remove_file(&recording);
    let mut command = Command::new(&warm.bench.tare);
    match kind {
        Kind::Plain => bail!("a plain window has no recording"),
        Kind::Climb => command.args(["climb", "--again", "-q"]),
        Kind::Exact => command.args(["record", "--exact", "-q", "--include", workload.include]),
    };
    command.arg("-o").arg(&recording).arg(warm.program.pid().to_string());
    let mut recorder = Recorder::start(&mut command, &warm.file("record.log"))?;
    recorder.wait_for(&recording)?;
    let began = Instant::now();
    let mut lead_in = vec![warm.run(lead_in)?];
    for _ in 0..LOOKS {
        let Some(plain) = beside else { break };
        let look = warm.run(LOOK)?;
        lead_in.push(look);
        if look.compiling / look.wall <= plain.compiling / plain.wall + SETTLED {
            break;
        }
    }
    let from = began.elapsed().as_secs_f64();
    let cost = warm.run(window)?;
    let to = began.elapsed().as_secs_f64();
    recorder.stop()?;
    let mut report = Command::new(&warm.bench.tare);
    report.arg("report").arg(&recording).args(["--format", "json"]);
    let report = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
    Ok(Window { cost, lead_in, report, from, to })
}

/// How often classes were loaded again between two moments, in seconds.
fn changes(climb: &Value, from: f64, to: f64) -> usize {
    let batches = climb["batches"].as_array().into_iter().flatten();
    let at = batches.filter_map(|batch| Some(batch["at_ns"].as_f64()? / 1e9));
    at.filter(|at| (from..to).contains(at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_ratios_of_the_same_round() {
        let cost =
            |cpu| Cost { wall: cpu, cpu, own: cpu / 100.0, compiling: cpu / 50.0, iterations: 1 };
        let measured = Measured {
            costs: [
                vec![cost(10.0), cost(20.0), cost(30.0)],
                vec![cost(15.15), cost(25.25)],
                vec![cost(40.0), cost(80.0)],
            ],
            climbs: vec![
                json!({ "hooks_most": 3, "overhead": 0.012 }),
                json!({ "hooks_most": 4, "overhead": 0.016 }),
            ],
            changes: vec![0.0, 1.0],
            around: vec![1.5, 2.5],
            began: vec![30.0, 40.0],
            agree: Some((9, 10)),
        };
        let line = measured.line("h2");
        assert_eq!(
            line,
            "| h2 | 2 | 1.010 (1.010–1.010) | 0.8 % | 1.4 % | 35 s | 2.0 s | 3.000 (2.000–4.000) | 4 | 0.5 | 1.4 % | 9 of 10 |"
        );
    }

    #[test]
    fn what_is_beyond_the_plain_program_is_told_in_its_seconds() {
        // An iteration takes a tenth of a second, and two processors.
        let plain = Cost { wall: 100.0, cpu: 200.0, iterations: 80, ..Cost::default() };
        let dearer = Cost { wall: 150.0, cpu: 300.0, iterations: 40, ..Cost::default() };
        assert!((dearer.beyond(plain) - 2.0).abs() < 1e-9);
        assert_eq!(plain.beyond(plain), 0.0);
    }

    #[test]
    fn batches_count_in_their_window() {
        let at = |second: u64| json!({ "at_ns": second * 1_000_000_000 });
        let climb = json!({ "batches": [at(2), at(5), at(9), at(20)] });
        assert_eq!(changes(&climb, 4.0, 12.0), 2);
        assert_eq!(changes(&Value::Null, 4.0, 12.0), 0);
    }
}
