//! What a JVM takes for each way of looking at all threads (`bench.DumpWays`), beside the way that
//! `tare threads` takes. Measured is the processor time of the JVM's thread that stops all others, so
//! it means something on a busy machine, too.

use super::DEPTH;
use crate::peers;
use crate::ready::Ready;
use crate::stats::{beside, median, shown};
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// The way that `tare threads` takes.
const OURS: &str = "whole";

/// Milliseconds of each look, by way, in the order in which they were told.
type Ways = Vec<(String, Vec<f64>)>;

pub fn measure(
    ready: &Ready,
    jdks: &[Jdk],
    threads: usize,
    rounds: usize,
) -> Result<Vec<(String, Ways)>> {
    let mut measured = Vec::new();
    for jdk in jdks {
        let natives =
            peers::build(&ready.workspace.root, &ready.work, [jdk, &ready.javac], "dump_ways");
        let natives =
            natives.inspect_err(|error| println!("NOT COVERED: ways by JVMTI: {error:#}")).ok();
        let mut java = Command::new(jdk.home.join("bin/java"));
        java.args(["-Xms512m", "-Xmx512m"]).arg(ready.temporary());
        java.arg("-cp").arg(&ready.classes).arg("bench.DumpWays");
        java.args([threads, DEPTH, rounds].map(|number| number.to_string())).args(natives);
        let told = shell::output(java.stdin(Stdio::null()))?;
        if !told.contains("done") {
            bail!("the program did not end well: {told}");
        }
        measured.push((jdk.version.clone(), read(&told)));
    }
    Ok(measured)
}

fn read(told: &str) -> Ways {
    let mut ways = Ways::new();
    for line in told.lines().filter_map(|line| line.strip_prefix("way ")) {
        let Some((name, nanos)) = line.rsplit_once(' ') else { continue };
        let Ok(nanos) = nanos.parse::<f64>() else { continue };
        match ways.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => all.push(nanos / 1e6),
            None => ways.push((name.to_owned(), vec![nanos / 1e6])),
        }
    }
    ways
}

pub fn table(measured: &[(String, Ways)]) -> String {
    let mut text = "| JDK | way | processor time | beside ours |\n|---|---|--:|--:|\n".to_owned();
    for (jdk, ways) in measured {
        let ours = ways.iter().find(|(name, _)| name == OURS).map_or(&[][..], |(_, all)| all);
        for (name, all) in ways {
            let ms = median(all).map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
            let _ = writeln!(text, "| {jdk} | {name} | {ms} | {} |", shown(beside(all, ours)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_told_beside_ours() {
        let told = "way whole 4000000\nway one-frame 1000000\nway whole 4000000\n\
                    way one-frame 1000000\nsomething\ndone\n";
        let text = table(&[("17".to_owned(), read(told))]);
        assert!(text.contains("| 17 | whole | 4.0 ms | 1.000 (1.000–1.000) |"), "{text}");
        assert!(text.contains("| 17 | one-frame | 1.0 ms | 0.250 (0.250–0.250) |"), "{text}");
    }
}
