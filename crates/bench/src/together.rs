//! `cargo xtask bench together`: what all engines cost at once, beside each of them alone, and what
//! they lose then. Each comes and goes in one warm JVM, with plain windows between them.
//!
//! Every recording tells pauses, so each engine's figure has them in it, and the stream and the
//! control thread as well. The sum of the parts counts once what they share: the figure of the
//! engine that does least beside, of references of native code, comes off the others.

use super::config::Config;
use super::launch::{Bench, after};
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::program::{Amount, Program};
use super::ready::Ready;
use super::recorder::Recorder;
use super::stats::{Ratio, beside, median, shown};
use super::warm::{Cost, Warm};
use super::workloads::{self, Workload};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures what all engines of `tare record` cost at once, beside each of them alone.

Usage: cargo xtask bench together [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without NAMEs it is h2 and jetty, a server with two clients. In
each round there is a plain window and one of each kind, in one warm JVM and in turns.

Options:
  --quick         a smoke test: small inputs and two rounds
  --rounds N      windows of each kind (default: 8; 2 with --quick)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/together.md
";

/// The kernel tells processor time in hundredths of a second: of four seconds a quarter of a per
/// cent.
const WINDOW: Amount = Amount { iterations: 3, seconds: 4.0 };

/// Long enough that there is something to record: an empty recording is an error.
const SHORT: Amount = Amount { iterations: 1, seconds: 1.0 };

/// Engines by name, and what switches each on alone. Pauses have no switch: a recording of nothing
/// else that is cheaper than any other, of references that native code makes, stands for them.
const ALONE: [(&str, &[&str]); 5] = [
    ("processor time", &["--cpu"]),
    ("allocation", &["--alloc"]),
    ("locks", &["--lock"]),
    ("classes", &["--classes"]),
    ("pauses and references of native code", &["--jni-refs"]),
];
const ALL: (&str, &[&str]) =
    ("all at once", &["--cpu", "--alloc", "--lock", "--classes", "--jni-refs"]);

/// All windows of one kind, a round each.
struct Windows {
    name: &'static str,
    /// Of `tare record`; none are a plain window.
    options: &'static [&'static str],
    costs: Vec<Cost>,
    /// What was lost in all of them, in words.
    lost: BTreeMap<String, u64>,
}

impl Windows {
    fn all() -> Vec<Windows> {
        let kinds = [("plain", &[][..])].into_iter().chain(ALONE).chain([ALL]);
        let new =
            |(name, options)| Windows { name, options, costs: Vec::new(), lost: BTreeMap::new() };
        kinds.map(new).collect()
    }

    fn cpu(&self) -> Vec<f64> {
        self.costs.iter().map(|cost| cost.cpu).collect()
    }

    fn wall(&self) -> Vec<f64> {
        self.costs.iter().map(|cost| cost.wall).collect()
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let (rounds, mut names) = options.rounds_and_names()?;
    if names.is_empty() {
        names.extend(["h2", "jetty"]);
    }
    let rounds = rounds.unwrap_or(if options.quick { 2 } else { 8 });
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
    let mut page = head(&super::command(&[&["together"], words].concat()));
    let revision = ready.workspace.revision().unwrap_or_default();
    let load = machine::load().map_or(String::new(), |load| format!("; load before: {load:.1}"));
    let _ = writeln!(
        page,
        "\nCommit {revision}; {}; Java {}{load}; {rounds} rounds.",
        machine::describe(),
        jdk.version
    );
    for name in names {
        let Some(mut workload) = workloads::prepare(name, &kitchen, &mut stages)? else {
            stages.note(format!("NOT COVERED: {name}"));
            continue;
        };
        workload.measured = if options.quick { SHORT } else { WINDOW };
        let starts = starts(&bench, &workload, jdk, rounds)?;
        let windows = measure(&bench, &jcmd, &workload, jdk, rounds)?;
        let what = workload.what.split(", all of").next().unwrap_or(&workload.what);
        let starts = format!(
            "\nFrom the start of a new JVM to the end of its first iteration it takes {} times as \
             long with `tare record --classes`.\n",
            shown(starts),
        );
        let piece = format!("\n## {name}\n\nThis is {what}.\n\n{}{starts}", table(&windows));
        println!("{piece}");
        page += &piece;
    }
    page += &commands();
    if options.write_docs {
        super::write(&ready.workspace.root.join("docs/measured/together.md"), &page)?;
    }
    stages.finish()
}

fn measure(
    bench: &Bench,
    jcmd: &Path,
    workload: &Workload,
    jdk: &Jdk,
    rounds: usize,
) -> Result<Vec<Windows>> {
    let mut warm = Warm::start(bench, jcmd, workload, jdk)?;
    let mut windows = Windows::all();
    // The first attaching of a tool is no part of anything.
    for one in &windows {
        window(&mut warm, one.options, SHORT)?;
    }
    let count = windows.len();
    for round in 0..rounds {
        for step in 0..count {
            // Whoever comes before another in one round comes after it in the next.
            let step = if round.is_multiple_of(2) { step } else { count - 1 - step };
            let one = &mut windows[(step + round) % count];
            let (cost, lost) = window(&mut warm, one.options, workload.measured)?;
            eprintln!(
                "round {}: {}: {:.1} ms, {:.1} ms on processors",
                round + 1,
                one.name,
                cost.wall,
                cost.cpu
            );
            one.costs.push(cost);
            for (what, count) in lost {
                *one.lost.entry(what).or_default() += count;
            }
        }
    }
    warm.program.quit()?;
    Ok(windows)
}

/// How much later a new JVM has done its first iteration if it is started by a recording of classes.
fn starts(bench: &Bench, workload: &Workload, jdk: &Jdk, rounds: usize) -> Result<Option<Ratio>> {
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (is_recorded, times) in [(false, &mut plain), (true, &mut recorded)] {
            let java = bench.java(workload, jdk, Config::Plain)?;
            let file = bench.work.join("start.tare");
            let _ = fs::remove_file(&file);
            let mut tare = Command::new(&bench.tare);
            tare.args(["record", "--classes", "-q", "-o"]).arg(&file);
            let mut command = if is_recorded { after(tare, &java) } else { java };
            let log = File::create(bench.work.join("stderr.log")).context("creating a log")?;
            let mut program = Program::start(command.stderr(log))?;
            program.run(Amount { iterations: 1, seconds: 0.0 })?;
            times.push(program.first.context("no iteration")?);
            program.quit()?;
        }
    }
    Ok(beside(&recorded, &plain))
}

/// What an iteration costs while `tare record` runs with these options, and what it says is lost.
fn window(warm: &mut Warm<'_>, options: &[&str], amount: Amount) -> Result<(Cost, Lost)> {
    if options.is_empty() {
        return Ok((warm.run(amount)?, Lost::new()));
    }
    let recording = warm.file("window.tare");
    let _ = fs::remove_file(&recording);
    let mut command = Command::new(&warm.bench.tare);
    command.arg("record").args(options).arg("-o").arg(&recording);
    command.arg(warm.program.pid().to_string());
    let mut recorder = Recorder::start(&mut command, &warm.file("record.log"))?;
    recorder.wait_for(&recording)?;
    let cost = warm.run(amount)?;
    recorder.stop()?;
    let mut report = Command::new(&warm.bench.tare);
    report.arg("report").arg(&recording).args(["--format", "json", "--min-share", "1.0"]);
    let page: Value = serde_json::from_str(&shell::output(report.stderr(Stdio::null()))?)?;
    Ok((cost, lost(&page["run"]["losses"])))
}

/// What was lost, and how much of it.
type Lost = Vec<(String, u64)>;

fn lost(losses: &Value) -> Lost {
    let one = |loss: &Value| {
        let text = |key: &str| loss[key].as_str().unwrap_or_default().to_owned();
        (format!("{} {}", text("name"), text("kind")), loss["count"].as_u64().unwrap_or(0))
    };
    losses.as_array().into_iter().flatten().map(one).collect()
}

fn head(command: &str) -> String {
    format!(
        "# What all engines cost at once\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
         `tare record` comes to a warm JVM and goes again, with one engine or with all of them. In \
         each round there is a window of each kind and a plain one.\n\n\
         **Processor time** is that of the whole process for an iteration, **time** that of an \
         iteration, both beside the plain window of the same round: the median over rounds, and in \
         brackets the bounds of 95 % of 4,000 bootstrap draws of rounds. **Our threads** is what \
         Tare's threads in the process took, as a part of the plain window's processor time; the \
         median. **Lost** is what the recordings of all rounds say that they have lost.\n\n\
         Every recording tells pauses, which have no switch of their own, and has a stream and a \
         thread that looks after it. The sum of the engines alone counts these once: what the \
         last of them takes, references of native code, of which these programs make next to \
         none, comes off each of the other four.\n"
    )
}

/// A line for each kind beside the plain windows, and whether all cost more than their sum.
fn table(windows: &[Windows]) -> String {
    let [plain, kinds @ ..] = windows else { return String::new() };
    let head = "| | processor time | time | our threads | lost |\n|---|--:|--:|--:|---|\n";
    let mut text = head.to_owned();
    for one in kinds {
        let lost = one.lost.iter().map(|(what, count)| format!("{count} {what}"));
        let lost = lost.collect::<Vec<_>>().join(", ");
        let pairs = one.costs.iter().zip(&plain.costs);
        let own: Vec<f64> = pairs.map(|(one, plain)| one.own / plain.cpu).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} % | {} |",
            one.name,
            shown(beside(&one.cpu(), &plain.cpu())),
            shown(beside(&one.wall(), &plain.wall())),
            median(&own).unwrap_or(0.0) * 100.0,
            if lost.is_empty() { "nothing" } else { &lost },
        );
    }
    let [parts @ .., shared, all] = kinds else { return text };
    // Of each round, so that what a round's machine did is in both.
    let beyond = |one: &Windows| -> Vec<f64> {
        let pairs = one.costs.iter().zip(&plain.costs);
        pairs.map(|(one, plain)| one.cpu / plain.cpu - 1.0).collect()
    };
    let base = beyond(shared);
    let once = median(&base).unwrap_or(0.0).max(0.0);
    let mut sums: Vec<f64> = base.iter().map(|base| 1.0 + base).collect();
    for part in parts {
        sums.iter_mut().zip(beyond(part)).for_each(|(sum, one)| *sum += one - once);
    }
    let whole: Vec<f64> = beyond(all).into_iter().map(|one| 1.0 + one).collect();
    let more = |of: &[f64]| (median(of).unwrap_or(1.0) - 1.0) * 100.0;
    if let Some(ratio) = beside(&whole, &sums) {
        let verdict = match ratio {
            ratio if ratio.high <= 1.0 => "all at once cost no more than the sum of them",
            ratio if ratio.low > 1.0 => "all at once cost MORE than the sum of them",
            _ => "whether all at once cost more than the sum of them, these rounds cannot tell",
        };
        let _ = writeln!(
            text,
            "\nAll at once take {:.1} % more processor time than the plain program, each alone \
             {:.1} % in sum; one beside the other {}: {verdict}.",
            more(&whole),
            more(&sums),
            shown(Some(ratio)),
        );
    }
    text
}

fn commands() -> String {
    let mut text = "\n## Commands\n\n| | command |\n|---|---|\n".to_owned();
    for (name, options) in ALONE.into_iter().chain([ALL]) {
        let _ = writeln!(text, "| {name} | `tare record {} PID` |", options.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn windows(all: f64) -> Vec<Windows> {
        let mut windows = Windows::all();
        for one in &mut windows {
            let cpu = match one.name {
                "plain" => 100.0,
                name if name == ALL.0 => all,
                name if name == ALONE[4].0 => 102.0,
                _ => 103.0,
            };
            let cost = Cost { wall: 50.0, cpu, own: 1.0, iterations: 1, ..Cost::default() };
            one.costs = vec![cost; 3];
        }
        windows
    }

    #[test]
    fn all_at_once_is_compared_with_the_sum() {
        let mut bad = windows(109.0);
        bad[6].lost.insert("waits dropped".to_owned(), 7);
        let text = table(&bad);
        let locks = "| locks | 1.030 (1.030–1.030) | 1.000 (1.000–1.000) | 1.00 % | nothing |";
        assert!(text.contains(locks), "{text}");
        let all = "| all at once | 1.090 (1.090–1.090) | 1.000 (1.000–1.000) | 1.00 % | 7 waits";
        assert!(text.contains(all), "{text}");
        // What all have, two per cent, counts once.
        assert!(text.contains("take 9.0 % more"), "{text}");
        assert!(text.contains("6.0 % in sum; one beside the other 1.028"), "{text}");
        assert!(text.contains("all at once cost MORE than the sum"), "{text}");
        let good = table(&windows(105.0));
        assert!(good.contains("cost no more than the sum"), "{good}");
    }

    #[test]
    fn losses_and_commands_are_told() {
        let losses = json!([{ "kind": "dropped", "name": "waits", "count": 3, "reason": "x" }]);
        assert_eq!(lost(&losses), [("waits dropped".to_owned(), 3)]);
        let all = "`tare record --cpu --alloc --lock --classes --jni-refs PID`";
        assert!(commands().contains(all));
    }
}
