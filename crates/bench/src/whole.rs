//! `cargo xtask bench whole`: every table there is, one after the other, in little more than an
//! hour.
//!
//! Each part is a process of its own, so that one that fails or hangs costs no more than its own
//! time: the others are measured all the same, and what did not work is told at the end.

use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

const HELP: &str = "\
Runs every benchmark once, each with few launches, in little more than an hour on two cores.

Usage: cargo xtask bench whole [OPTION…] [PART…]

Without PARTs it is all of them, those first whose figures are quoted most. One that fails, or takes twice its
time, does not keep the others from being measured; at the end it is told how to run again what is missing.

Options:
  --write-docs     write the pages in docs/measured/ anew
  --quick          only see whether all of it works: small inputs, and no figure that means anything
  --minutes N      begin no part that would not end within that time (default: 72)
  --tare FILE      measure this `tare` instead of building one
  --list           show the parts, the minutes each takes, and the pages that they write
";

/// This program as it runs: its file may be built anew meanwhile.
const OWN: &str = "/proc/self/exe";

struct Part {
    name: &'static str,
    /// Of `cargo xtask bench`.
    words: &'static [&'static str],
    /// The same, to see whether it works.
    quick: &'static [&'static str],
    /// What it takes on two cores, without what is built and fetched the first time.
    minutes: f64,
    /// Below docs/measured/.
    page: &'static str,
}

/// All programs, the one that takes longest by far at the end: what is begun in time comes out.
#[rustfmt::skip]
const SUITE: [&str; 24] = [
    "suite", "--brief", "--launches", "1", "--minutes", "12.5",
    "javac", "h2", "lucene", "jetty", "web", "saxon", "pdfbox", "json", "clojure", "spark",
    "fib", "trees", "throws", "locks", "parks", "garbage", "virtual", "scala",
];

/// Those first whose figures are quoted most.
const PARTS: [Part; 20] = [
    Part {
        name: "modes",
        words: &["--launches", "2", "--jdk", "25", "--minutes", "4.5"],
        quick: &["--quick", "fib"],
        minutes: 6.0,
        page: "cost.md",
    },
    Part {
        name: "suite",
        words: &SUITE,
        quick: &["suite", "--brief", "--quick", "web", "fib"],
        minutes: 14.0,
        page: "programs.md",
    },
    Part {
        name: "self",
        words: &["self"],
        quick: &["self", "--quick", "h2"],
        minutes: 2.0,
        page: "self.md",
    },
    Part {
        name: "scale",
        words: &["scale", "--minutes", "4"],
        quick: &["scale", "--quick"],
        minutes: 3.0,
        page: "scale.md",
    },
    Part {
        name: "bytecodes",
        words: &["bytecodes", "--launches", "1", "--jdk", "25"],
        quick: &["bytecodes", "--quick", "fib"],
        minutes: 3.0,
        page: "bytecodes.md",
    },
    Part {
        name: "sampling",
        words: &["sampling", "--rounds", "2", "--jdk", "25", "javac", "h2", "crowd"],
        quick: &["sampling", "--quick", "h2"],
        minutes: 3.5,
        page: "sampling.md",
    },
    Part {
        name: "alloc",
        words: &["alloc", "--rounds", "1"],
        quick: &["alloc", "--quick", "json"],
        minutes: 2.5,
        page: "alloc.md",
    },
    Part {
        name: "locks",
        words: &["locks", "--rounds", "1"],
        quick: &["locks", "--quick", "locks"],
        minutes: 2.0,
        page: "locks.md",
    },
    Part {
        name: "climb",
        words: &["climb", "--rounds", "2", "--minutes", "5"],
        quick: &["climb", "--quick", "json"],
        minutes: 5.5,
        page: "climb.md",
    },
    Part {
        name: "heap",
        words: &["heap", "--minutes", "2"],
        quick: &["heap", "--quick"],
        minutes: 4.0,
        page: "heap.md",
    },
    Part {
        name: "threads",
        words: &["threads", "--rounds", "10"],
        quick: &["threads", "--quick"],
        minutes: 1.0,
        page: "threads.md",
    },
    Part {
        name: "demotion",
        words: &["demotion", "--launches", "1", "--jdk", "25"],
        quick: &["demotion", "--quick"],
        minutes: 4.0,
        page: "overhead-budget.md",
    },
    Part {
        name: "trace",
        words: &["trace"],
        quick: &["trace", "--quick"],
        minutes: 1.0,
        page: "trace.md",
    },
    Part {
        name: "regions",
        words: &["regions"],
        quick: &["regions", "--quick"],
        minutes: 1.5,
        page: "regions.md",
    },
    Part {
        name: "accuracy",
        words: &["accuracy", "--quick", "--jdk", "17,25", "--seed", "11,16,2026"],
        quick: &["accuracy", "--quick", "--mode", "interpreted"],
        minutes: 4.5,
        page: "accuracy.md",
    },
    Part {
        name: "server",
        words: &["server", "--seconds", "6"],
        quick: &["server", "--quick"],
        minutes: 4.0,
        page: "server.md",
    },
    Part {
        name: "target",
        words: &["target", "--minutes", "1"],
        quick: &["target", "fib"],
        minutes: 1.5,
        page: "other-jvm.md",
    },
    Part {
        name: "subgraph",
        words: &["subgraph", "--quick"],
        quick: &["subgraph", "--quick", "web"],
        minutes: 2.5,
        page: "roots.md",
    },
    Part {
        name: "peers",
        words: &["peers", "--launches", "1", "trees", "h2"],
        quick: &["peers", "--quick", "fib"],
        minutes: 5.0,
        page: "peers.md",
    },
    Part {
        name: "start",
        words: &["sampling", "--rounds", "2", "--jdk", "25", "start"],
        quick: &["sampling", "--quick", "start"],
        minutes: 1.0,
        page: "sampling.md",
    },
];

struct Args<'a> {
    parts: Vec<&'static Part>,
    write_docs: bool,
    quick: bool,
    list: bool,
    minutes: f64,
    tare: Option<&'a str>,
}

impl<'a> Args<'a> {
    fn parse(words: &[&'a str]) -> Result<Args<'a>> {
        let (mut write_docs, mut quick, mut list) = (false, false, false);
        let (mut minutes, mut tare, mut named) = (72.0, None, Vec::new());
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--write-docs" => write_docs = true,
                "--quick" => quick = true,
                "--list" => list = true,
                "--minutes" => minutes = value()?.parse().context("--minutes needs a number")?,
                "--tare" => tare = Some(*value()?),
                name if PARTS.iter().any(|part| part.name == name) => named.push(name),
                unknown => bail!("there is no part {unknown}\n\n{HELP}"),
            }
        }
        let chosen = |part: &&Part| named.is_empty() || named.contains(&part.name);
        let parts = PARTS.iter().filter(chosen).collect();
        Ok(Args { parts, write_docs, quick, list, minutes, tare })
    }

    fn words(&self, part: &Part) -> Vec<&'a str> {
        let mut words = if self.quick { part.quick } else { part.words }.to_vec();
        words.extend(self.write_docs.then_some("--write-docs"));
        words.extend(self.tare.into_iter().flat_map(|file| ["--tare", file]));
        words
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        print!("{HELP}");
        return Ok(());
    }
    let args = Args::parse(words)?;
    if args.list {
        print!("{}", list(&args));
        return Ok(());
    }
    let began = Instant::now();
    let gone = || began.elapsed().as_secs_f64() / 60.0;
    let mut outcomes: Vec<(&Part, Duration, Result<()>)> = Vec::new();
    for (at, part) in args.parts.iter().enumerate() {
        let words = args.words(part);
        let left: f64 = args.parts[at..].iter().map(|part| part.minutes).sum();
        println!(
            "\n=== {} of {}: {}, about {} min; {:.0} min gone, about {left:.0} left\n    {}",
            at + 1,
            args.parts.len(),
            part.name,
            part.minutes,
            gone(),
            super::command(&words),
        );
        let start = Instant::now();
        let outcome = if !args.quick && gone() + part.minutes > args.minutes {
            Err(anyhow::anyhow!("not begun: it would not end within {} minutes", args.minutes))
        } else {
            alone(part, &words)
        };
        if let Err(error) = &outcome {
            println!("{}: {error:#}", part.name);
        }
        outcomes.push((part, start.elapsed(), outcome));
    }
    println!();
    for (part, took, outcome) in &outcomes {
        let outcome = outcome.as_ref().map_or_else(|error| format!("{error:#}"), |()| "ok".into());
        println!("{:<10} {:>5} s  {outcome}", part.name, took.as_secs());
    }
    println!("{:<10} {:>5} s", "in all", began.elapsed().as_secs());
    let missing: Vec<&str> =
        outcomes.iter().filter(|part| part.2.is_err()).map(|part| part.0.name).collect();
    if !missing.is_empty() {
        let docs = if args.write_docs { " --write-docs" } else { "" };
        bail!("missing; again: cargo xtask bench whole{docs} {}", missing.join(" "));
    }
    Ok(())
}

fn list(args: &Args<'_>) -> String {
    let mut text = String::new();
    for part in &args.parts {
        let command = super::command(&args.words(part));
        let _ = writeln!(
            text,
            "{:<10} {:>4.1} min  docs/measured/{:<18} {command}",
            part.name, part.minutes, part.page
        );
    }
    let sum: f64 = args.parts.iter().map(|part| part.minutes).sum();
    let _ = writeln!(text, "{:<10} {sum:>4.1} min", "in all");
    text
}

/// In a process of its own, for twice its time at most, and a minute to build and fetch what is
/// missing.
fn alone(part: &Part, words: &[&str]) -> Result<()> {
    let mut child = Command::new(OWN).args(words).spawn().context("starting it")?;
    let limit = Instant::now() + Duration::from_secs_f64(part.minutes * 120.0 + 60.0);
    loop {
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("failed ({status}); see above");
            }
            return Ok(());
        }
        if Instant::now() > limit {
            end(&mut child);
            bail!("it took too long and was ended");
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Ends a part and all that it has started; what `tare record` has woven it restores, if it gets
/// the time.
fn end(child: &mut Child) {
    let family = descendants(child.id());
    for signal in ["-TERM", "-KILL"] {
        let pids = family.iter().map(u32::to_string);
        let _ = Command::new("kill").arg(signal).args(pids).output();
        let limit = Instant::now() + Duration::from_secs(10);
        while Instant::now() < limit && family.iter().any(|pid| parent(*pid).is_some()) {
            let _ = child.try_wait();
            thread::sleep(Duration::from_millis(100));
        }
    }
    let _ = child.wait();
}

/// A process and its children, theirs, and so on.
fn descendants(of: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: HashMap<u32, u32> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![of];
    let mut at = 0;
    while let Some(&one) = family.get(at) {
        family.extend(parents.iter().filter(|(_, parent)| **parent == one).map(|(pid, _)| *pid));
        at += 1;
    }
    family
}

/// `None` if it is gone, or as good as that.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn all_parts_together_end_in_time() {
        let args = Args::parse(&["--write-docs", "--tare", "x/tare"]).unwrap();
        assert_eq!(args.parts.len(), PARTS.len());
        let sum: f64 = args.parts.iter().map(|part| part.minutes).sum();
        assert!(sum <= args.minutes, "{sum}");
        for part in &args.parts {
            assert!(args.words(part).ends_with(&["--write-docs", "--tare", "x/tare"]));
        }
        assert!(!list(&args).contains("x/tare"));
    }

    #[test]
    fn the_suite_names_every_program() {
        for name in super::super::workloads::names() {
            assert!(SUITE.contains(&name), "{name} is not in the suite of the whole");
        }
    }

    #[test]
    fn parts_can_be_named() {
        let args = Args::parse(&["self", "modes"]).unwrap();
        let names: Vec<&str> = args.parts.iter().map(|part| part.name).collect();
        assert_eq!(names, ["modes", "self"]);
        assert!(Args::parse(&["fob"]).is_err());
    }

    /// Pages of benchmarks that take longer than all parts together, or need what not every machine
    /// has: a browser, sshd.
    const BY_ITSELF: [&str; 4] = ["heap-peers.md", "together.md", "view.md", "reach.md"];

    /// The other direction: a page that says of itself that it is generated is one that a part
    /// writes.
    #[test]
    fn every_generated_page_has_a_part() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/measured");
        let mut found = 0;
        for entry in fs::read_dir(docs).unwrap().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let head: String = text.lines().take(5).collect();
            if head.contains("This page is generated") {
                let name = entry.file_name().into_string().unwrap();
                let has_part = PARTS.iter().any(|part| part.page == name);
                assert!(has_part || BY_ITSELF.contains(&name.as_str()), "{name} has no part");
                found += 1;
            }
        }
        assert!(found > 5, "only {found} pages say that they are generated");
    }

    #[test]
    fn what_a_part_has_started_ends_with_it() {
        let mut shell = Command::new("sh");
        let mut child =
            shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let inner: u32 = line.trim().parse().unwrap();
        assert!(descendants(child.id()).contains(&inner));
        end(&mut child);
        assert_eq!(parent(inner), None);
    }
}
