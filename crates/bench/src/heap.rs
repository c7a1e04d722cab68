//! `cargo xtask bench heap`: what a heap snapshot costs the program beside HotSpot's own dump, and
//! what reading a dump costs beside other readers, by the size of the heap. With `--peers` it is the
//! largest heap only, beside all other readers: one of them takes a quarter of an hour.
//!
//! `measure` measures, `peers` has the other readers, `plot` draws; this file reads the command line
//! and writes the page.

mod measure;
mod peers;
mod plot;

use super::machine;
use super::options::Options;
use super::ready::Ready;
use anyhow::{Context, Result, bail};
use measure::{Point, Reading};
use peers::Peers;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures the pause of a heap snapshot beside that of HotSpot's own dump, and what reading a dump takes beside
hprof-slurp, for heaps of several sizes; with --peers for the largest, beside Eclipse MAT and hprof-analyzer, too.

Usage: cargo xtask bench heap [OPTION…]

Options:
  --quick         two small heaps, one snapshot of each
  --peers         the largest heap only, beside all other readers; MAT alone takes 3 to 16 minutes
  --minutes N     begin no further size after that time (default: 10); the largest comes first
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --slurp FILE    measure beside this hprof-slurp instead of installing it (`cargo install hprof-slurp`)
  --write-docs    write docs/measured/heap.md and bench/heap.svg, or with --peers docs/measured/heap-peers.md
";

/// Entries of the map in the heap, five objects each and some; the largest has 49
/// million objects, and a dump of 2.9 GB.
const SIZES: [u32; 4] = [9_330_000, 1_000_000, 3_000_000, 6_000_000];
const SMALL: [u32; 2] = [300_000, 1_000_000];

/// Snapshots of each JVM. The first one has a pause more.
const SNAPSHOTS: usize = 3;

/// What was aimed at: milliseconds of pause for a gigabyte that the JVM holds; seconds and bytes
/// for the largest dump; seconds to open it again.
const PAUSE_GOAL: f64 = 35.0;
const READ_GOAL: f64 = 9.0;
const MEMORY_GOAL: f64 = 2.4e9;
const REOPEN_GOAL: f64 = 0.2;

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let (mut minutes, mut slurp, mut all_peers) = (10.0, None, false);
    let mut rest = options.rest.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--minutes" => minutes = value()?.parse().context("--minutes needs a number")?,
            "--peers" => all_peers = true,
            "--slurp" => slurp = Some(PathBuf::from(value()?)),
            other => bail!("{other} is no option\n\n{HELP}"),
        }
    }
    let ready = Ready::alone(options.tare.clone())?;
    let mut stages = Stages::new();
    let jdks = super::jdks(&[options.jdk], &mut stages)?;
    let jdk = jdks.first().context("no JDK")?;
    let Ready { workspace, work, javac, .. } = &ready;
    let peers = match all_peers {
        true => Peers::all(workspace, work, javac, slurp, &mut stages),
        false => Peers::quick(workspace, slurp, &mut stages),
    };
    let load = machine::load().map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}"));
    let revision = ready.workspace.revision().unwrap_or_default();
    let about = format!(
        "Commit {revision}; {}; Java {}; others that wanted a processor just before: {load}.",
        machine::describe(),
        jdk.version
    );
    let sizes = match (options.quick, all_peers) {
        (true, _) => &SMALL[..],
        (false, true) => &SIZES[..1],
        (false, false) => &SIZES,
    };
    let snapshots = if options.quick { 1 } else { SNAPSHOTS };
    let begun = Instant::now();
    let mut points = Vec::new();
    for &entries in sizes {
        if begun.elapsed().as_secs_f64() > minutes * 60.0 && !points.is_empty() {
            stages.note(format!("the time was up before {entries} entries"));
            continue;
        }
        let mut point = None;
        stages.run(&format!("{entries} entries"), || {
            point = Some(measure::point(&ready, jdk, entries, snapshots, &peers)?);
            Ok(())
        });
        points.extend(point);
        println!("{} s so far", begun.elapsed().as_secs());
    }
    points.sort_by(|a, b| a.resident.total_cmp(&b.resident));
    let page = page(&super::command(&without_files(words)), &about, &points);
    println!("{page}");
    if options.write_docs {
        let root = &ready.workspace.root;
        if all_peers {
            super::write(&root.join("docs/measured/heap-peers.md"), &page)?;
        } else {
            super::write(&root.join("docs/measured/heap.md"), &page)?;
            super::write(&root.join("bench/heap.svg"), &plot::svg(&points))?;
        }
    }
    stages.finish()
}

/// The command for the page: where this machine has its files is nobody's business.
fn without_files<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut shown = vec!["heap"];
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--slurp" => _ = rest.next(),
            word => shown.push(word),
        }
    }
    shown
}

const GB: f64 = 1e9;

fn page(command: &str, about: &str, points: &[Point]) -> String {
    let growth = match points {
        [_] => "",
        _ => {
            " Times and memory grow with the heap:\n\n![By the size of the heap](../../bench/heap.svg)"
        }
    };
    let mut text = format!(
        "# What a heap snapshot costs\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n{about}\n\n\
         Each line is one JVM with G1 that holds a map of so many objects and does nothing else.{growth}\n\n\
         ## The pause\n\n\
         **Snapshot** is the median pause of `tare heap PID` after the first one, which has a short pause more. \
         **HotSpot's dump** is that of `jcmd PID GC.heap_dump -all`, and **count** that of `tare heap PID histo`: \
         the time at safepoints by the JVM's own counter. **Beside** is HotSpot's dump beside the snapshot. \
         **Copy** is how long the copy of the JVM lived, in which a write to a page costs the program more. The \
         goal is {PAUSE_GOAL:.0} ms per GB.\n\n\
         | objects | resident | snapshot | per GB | first | count | HotSpot's dump | beside | copy |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for point in points {
        let Point { objects, resident, pause, first_pause, count_pause, dump_pause, copy, .. } =
            point;
        let _ = writeln!(
            text,
            "| {:.1} M | {:.2} GB | {pause:.0} ms | {:.0} ms | {first_pause:.0} ms | {count_pause:.0} ms | \
             {dump_pause:.0} ms | {:.0}× | {copy:.1} s |",
            objects / 1e6,
            resident / GB,
            pause / (resident / GB),
            dump_pause / pause.max(1e-3),
        );
    }
    let has = |at: &usize| points.iter().any(|point| point.peers[*at].is_some());
    let there: Vec<usize> = (0..peers::ALL.len()).filter(has).collect();
    let _ = write!(
        text,
        "\n## Reading a dump\n\n\
         `tare heap FILE` prints who holds the memory, which takes dominators and retained sizes; **again** is the \
         second time. {}\
         All read the same file, which HotSpot wrote; time on the wall, the most memory that the process had, and \
         **beside**, what tare takes beside it. The goals for the largest are {READ_GOAL:.0} s, {:.1} GB, and \
         {REOPEN_GOAL} s again.\n\n\
         | objects | dump | tare | memory | again |",
        there.iter().map(|at| peers::ALL[*at].about()).collect::<String>(),
        MEMORY_GOAL / GB
    );
    for at in &there {
        let _ = write!(text, " {} | memory | beside |", peers::ALL[*at].name());
    }
    let _ = writeln!(text, "\n|--:|--:|--:|--:|--:|{}", "--:|--:|--:|".repeat(there.len()));
    for point in points {
        let Reading { seconds, memory } = point.ours;
        let _ = write!(
            text,
            "| {:.1} M | {:.2} GB | {seconds:.1} s | {:.2} GB | {:.2} s |",
            point.objects / 1e6,
            point.dump / GB,
            memory / GB,
            point.again.seconds,
        );
        for at in &there {
            let _ = match point.peers[*at] {
                Some(peer) => write!(
                    text,
                    " {:.1} s | {:.2} GB | {:.2} |",
                    peer.seconds,
                    peer.memory / GB,
                    seconds / peer.seconds.max(1e-3)
                ),
                None => write!(text, " – | – | – |"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn point(resident: f64) -> Point {
        Point {
            objects: 5e6,
            resident,
            pause: 30.0,
            first_pause: 40.0,
            count_pause: 500.0,
            dump_pause: 3000.0,
            copy: 1.5,
            dump: 3e8,
            ours: Reading { seconds: 2.0, memory: 5e8 },
            again: Reading { seconds: 0.1, memory: 2e8 },
            peers: [20.0, 8.0, 4.0].map(|seconds| Some(Reading { seconds, memory: 1e9 })),
        }
    }

    #[test]
    fn the_page_has_pauses_per_gigabyte_and_ratios() {
        let lonely = Point { peers: [None; 3], ..point(2e9) };
        let text = page("cargo xtask bench heap", "Here.", &[point(1e9), lonely]);
        let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
        has("| 5.0 M | 1.00 GB | 30 ms | 30 ms | 40 ms | 500 ms | 3000 ms | 100× | 1.5 s |");
        has("| 5.0 M | 2.00 GB | 30 ms | 15 ms |");
        has("| 5.0 M | 0.30 GB | 2.0 s | 0.50 GB | 0.10 s | 20.0 s | 1.00 GB | 0.10 | 8.0 s |");
        has(" 1.00 GB | 0.25 | 4.0 s | 1.00 GB | 0.50 |\n");
        has("| 0.10 s | – | – | – | – | – | – | – | – | – |\n");
    }

    #[test]
    fn who_was_not_there_has_no_column() {
        let slurp = Some(Reading { seconds: 4.0, memory: 1e9 });
        let text = page("x", "Here.", &[Point { peers: [None, None, slurp], ..point(1e9) }]);
        assert!(text.contains("| again | hprof-slurp | memory | beside |\n"), "{text}");
        assert!(!text.contains("MAT") && !text.contains(".svg"), "{text}");
    }

    #[test]
    fn files_of_this_machine_are_not_on_the_page() {
        assert_eq!(without_files(&["--slurp", "x/y", "--quick"]), ["heap", "--quick"]);
    }
}
