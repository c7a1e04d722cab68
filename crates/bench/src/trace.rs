//! How many entries and exits a trace takes from one thread before it drops some.

use super::options::Options;
use super::ready::Ready;
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Measures how quickly the events of one thread are taken from its ring, at several rates of calls.

Usage: cargo xtask bench trace [--quick] [--jdk N] [--tare FILE] [--ring SIZE] [--wait TIME] [--write-docs]

A program calls an empty method as quickly as it can, and with work between two calls. For each pace: events per
second that the program made, and that were taken, over all rounds; the share of all events that were dropped; and the
time of a call when it is traced beside that when nothing is woven, in the best round.
--wait lets the program wait for room in its ring, and says how long it did; --quick looks at one pace only; --write-docs writes docs/measured/trace.md.
";

/// Steps of work between two calls, each about a nanosecond.
const PACES: [u32; 6] = [0, 10, 30, 40, 50, 80];
pub const ROUNDS: u32 = 8;

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 17)? else { return Ok(()) };
    let Options { jdk, tare, quick, write_docs, rest } = options;
    let (ring, wait) = match rest[..] {
        [] => ("4M", None),
        ["--ring", size] => (size, None),
        ["--wait", time] => ("4M", Some(time)),
        _ => bail!("{} is not understood; see --help", rest.join(" ")),
    };
    let ready = Ready::alone(tare)?;
    let Ready { workspace, tare, work, classes, .. } = &ready;
    let jdks = jdks(&[jdk], &mut Stages::new())?;
    let java = jdks[0].home.join("bin/java");
    let mut table = "| made, million events a second | taken and written | dropped | a call, beside the plain one |\n\
                     |--:|--:|--:|--:|\n"
        .to_owned();
    for &pace in if quick { &PACES[PACES.len() - 1..] } else { &PACES } {
        let (pace, times) = (pace.to_string(), ROUNDS.to_string());
        let program = |command: &mut Command| {
            command.arg("-cp").arg(classes).args(["bench.Rate", &pace, &times]);
        };
        let mut plain = Command::new(&java);
        program(&mut plain);
        let plain = best(&shell::output(&mut plain)?)?;
        let file = work.join("rate.tare");
        let mut traced = Command::new(tare);
        traced.args(["record", "--trace", "-q", "--events", "1G", "--ring", ring, "-o"]);
        traced
            .arg(&file)
            .args(wait.map(|time| ["--wait", time]).into_iter().flatten())
            .arg("--")
            .arg(&java);
        program(&mut traced);
        let said = shell::output(&mut traced)?;
        let (traced, all) = (best(&said)?, rounds(&said).sum::<f64>());
        let Taken { taken, dropped, waited } = Taken::of(tare, &file)?;
        let _ = writeln!(
            table,
            "| {:.1} | {:.1} | {:.1} % | {:.1} |",
            (taken + dropped) / all * 1e3,
            taken / all * 1e3,
            dropped / (taken + dropped) * 100.0,
            traced / plain,
        );
        println!("work {pace}: {plain:.1} ns a call, {traced:.1} traced{waited}");
        fs::remove_file(&file)?;
    }
    print!("{table}");
    if write_docs {
        let page = format!(
            "# How many events a trace takes\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n- JDK: {}\n- Ring of each thread: {ring}\n\n\
             One thread calls an empty method, with more and more work between two calls. An event is an entry or an exit. \
             [Trace every call](../guide/trace.md) says what becomes of those that are dropped.\n\n{table}",
            super::command(&[&["trace"], words].concat()),
            machine::describe(),
            jdks[0].version,
        );
        write(&workspace.root.join("docs/measured/trace.md"), &page)?;
    }
    Ok(())
}

/// Nanoseconds of each round.
fn rounds(text: &str) -> impl Iterator<Item = f64> + '_ {
    text.lines().filter_map(|line| line.strip_prefix("round ")?.parse().ok())
}

/// Nanoseconds of a call in the best round.
pub fn best(text: &str) -> Result<f64> {
    let best = rounds(text).fold(f64::MAX, f64::min);
    let calls = text.lines().find_map(|line| line.strip_prefix("calls ")?.split(' ').next());
    let calls: f64 = calls.context("how many calls there were")?.parse()?;
    Ok(best / (calls / f64::from(ROUNDS)))
}

/// What a trace has, and has not, and how long the program waited for it, in words.
struct Taken {
    taken: f64,
    dropped: f64,
    waited: String,
}

impl Taken {
    fn of(tare: &Path, file: &Path) -> Result<Taken> {
        let mut report = Command::new(tare);
        report.arg("report").arg(file).args(["--format", "json"]);
        let page: Value = serde_json::from_str(&shell::output(&mut report)?)?;
        let facts = &page["run"]["facts"];
        let taken = facts["trace-events"].as_f64().context("how many were taken")?;
        let losses = page["run"]["losses"].as_array().context("the losses")?;
        let dropped = losses
            .iter()
            .filter(|loss| loss["name"].as_str().is_some_and(|name| name.starts_with("events of")))
            .filter_map(|loss| loss["count"].as_f64())
            // The sum of nothing would be −0.
            .fold(0.0, |sum, count| sum + count);
        let waited = facts["trace-waited"].as_u64().map(Duration::from_nanos);
        let waited = waited.map_or_else(String::new, |time| {
            format!("; waited {:.1} s for room", time.as_secs_f64())
        });
        Ok(Taken { taken, dropped, waited })
    }
}
