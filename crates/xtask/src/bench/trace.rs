//! How many entries and exits a trace takes from one thread before it drops some.

use super::jdks;
use super::options::Options;
use super::ready::Ready;
use crate::shell;
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const HELP: &str = "\
Measures how quickly the events of one thread are taken from its ring, at several rates of calls.

Usage: cargo xtask bench trace [--jdk N] [--tare FILE] [--ring SIZE]

A program calls an empty method as quickly as it can, and with work between two calls. For each pace: the
time of a call when nothing is woven, and traced, in the best round; events per second that the
program made, and that were taken, over all rounds; and the share of all events that were dropped.
";

/// Steps of work between two calls, each about a nanosecond.
const PACES: [u32; 6] = [0, 10, 30, 40, 50, 80];
pub const ROUNDS: u32 = 8;

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 17)? else { return Ok(()) };
    let Options { jdk, tare, rest, .. } = options;
    let ring = match rest[..] {
        [] => "4M",
        ["--ring", size] => size,
        _ => bail!("{} is not understood; see --help", rest.join(" ")),
    };
    let ready = Ready::alone(tare)?;
    let Ready { tare, work, classes, .. } = &ready;
    let jdks = jdks(&[jdk], &mut Stages::new())?;
    let java = jdks[0].home.join("bin/java");
    println!("| work | plain, ns a call | traced | made, M/s | taken, M/s | dropped |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for pace in PACES {
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
        traced.arg(&file).arg("--").arg(&java);
        program(&mut traced);
        let said = shell::output(&mut traced)?;
        let (traced, all) = (best(&said)?, rounds(&said).sum::<f64>());
        let (taken, dropped) = taken_and_dropped(tare, &file)?;
        println!(
            "| {pace} | {plain:.1} | {traced:.1} | {:.1} | {:.1} | {:.1} % |",
            (taken + dropped) / all * 1e3,
            taken / all * 1e3,
            dropped / (taken + dropped) * 100.0
        );
        fs::remove_file(&file)?;
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

fn taken_and_dropped(tare: &Path, file: &Path) -> Result<(f64, f64)> {
    let mut report = Command::new(tare);
    report.arg("report").arg(file).args(["--format", "json"]);
    let page: Value = serde_json::from_str(&shell::output(&mut report)?)?;
    let taken = page["run"]["options"]["events"].as_str().context("how many were taken")?;
    let losses = page["run"]["losses"].as_array().context("the losses")?;
    let dropped = losses
        .iter()
        .filter(|loss| loss["name"].as_str().is_some_and(|name| name.starts_with("events of")))
        .filter_map(|loss| loss["count"].as_f64());
    Ok((taken.parse()?, dropped.fold(0.0, |sum, count| sum + count)))
}
