//! `cargo xtask bench scale`: how cost grows with threads, classes and contexts.
//!
//! For each size the same amount of work is done by one JVM, plain and then counted, attached. What
//! an iteration costs is a ratio against the plain one of that JVM; what attaching costs and the
//! memory, against the smallest size in the same run.

use super::config::{Config, Mode};
use super::launch::{Bench, Launch};
use super::machine;
use super::options::Options;
use super::peers::Peers;
use super::program::{Amount, Program};
use super::ready::Ready;
use super::recorder::Recorder;
use super::stats::median;
use super::workloads::Workload;
use anyhow::{Context, Result, bail};
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::stages::Stages;

const HELP: &str = "\
Measures how cost grows with threads, classes and contexts.

Usage: cargo xtask bench scale [OPTION…]

Options:
  --quick          the two smallest sizes of each
  --minutes N      begin no further size after that time; the smallest and the largest of all three come first
  --jdk N          the JDK to run on (default: 25)
  --tare FILE      measure this `tare` instead of building one
  --write-docs     write docs/measured/scale.md and bench/scale.svg from this run
";

struct Dimension {
    /// Of the workload, and for the reader.
    name: &'static str,
    include: &'static str,
    sizes: &'static [u32],
    what: &'static str,
}

const DIMENSIONS: [Dimension; 3] = [
    Dimension {
        name: "threads",
        include: "bench.Threads",
        sizes: &[10, 100, 1_000, 10_000],
        what: "4 million calls shared by so many threads",
    },
    Dimension {
        name: "classes",
        include: "bench.Classes$One",
        sizes: &[1_000, 5_000, 20_000, 50_000],
        what: "4 million calls into so many classes, each of a loader of its own",
    },
    Dimension {
        name: "contexts",
        include: "bench.Contexts$Paths",
        sizes: &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
        what: "about 12 million calls, at least, along so many paths; 256 MiB for trees",
    },
];

/// Code that is called from everywhere is compiled soon; that of thousands of classes is not,
/// however long one waits.
const WARM_UP: Amount = Amount { iterations: 2, seconds: 2.0 };
const MEASURED: Amount = Amount { iterations: 2, seconds: 0.5 };

/// A dimension, and its sizes as measured.
type Curve = (&'static Dimension, Vec<Point>);

/// One size of one dimension.
struct Point {
    size: u32,
    /// Times the plain iteration.
    cost: f64,
    /// In milliseconds; shown as ratios only.
    attach: f64,
    pause: f64,
    peak: f64,
    full: bool,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { cost, attach, pause, .. } = self;
        let full = if self.full { ", trees full" } else { "" };
        write!(
            f,
            "{cost:.2} × plain, attached in {attach:.0} ms, longest pause {pause:.0} ms{full}"
        )
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 25)? else { return Ok(()) };
    let Options { jdk: major, tare, quick, write_docs, rest } = options;
    let minutes: f64 = match rest[..] {
        [] => f64::MAX,
        ["--minutes", n] => n.parse().context("--minutes needs a number")?,
        _ => bail!("{} is no option\n\n{HELP}", rest.join(" ")),
    };
    let ready = Ready::alone(tare)?;
    let Ready { workspace, tare, work, classes, .. } = &ready;
    let mut stages = Stages::new();
    let jdks = super::jdks(&[major], &mut stages)?;
    let bench = Bench {
        tare: tare.clone(),
        async_profiler: None,
        peers: Peers::default(),
        work: work.clone(),
    };
    let about = format!(
        "- Machine: {}\n- JDK {}: {}\n- Others that wanted a processor just before: {}\n",
        machine::describe(),
        jdks[0].major,
        jdks[0].version,
        machine::load().map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}")),
    );
    let most = if quick { 2 } else { usize::MAX };
    let (curves, notes) = curves(&bench, classes, &jdks[0], most, minutes);
    let command = super::command(&[&["scale"], words].concat());
    let page = page(&command, &format!("{about}{notes}"), &curves);
    let plot = svg(&curves);
    let (page_file, plot_file) = match write_docs {
        true => {
            let root = &workspace.root;
            (root.join("docs/measured/scale.md"), root.join("bench/scale.svg"))
        }
        false => (work.join("scale.md"), work.join("scale.svg")),
    };
    super::write(&page_file, &page)?;
    super::write(&plot_file, &plot)?;
    stages.run("every dimension has figures", || {
        if curves.iter().any(|(_, points)| points.is_empty()) {
            bail!("{notes}");
        }
        Ok(())
    });
    stages.finish()
}

/// The sizes in the order of what they tell: both ends, then what is between.
fn by_weight(sizes: &[u32]) -> Vec<u32> {
    match sizes {
        [first, between @ .., last] => [&[*first, *last], between].concat(),
        _ => sizes.to_vec(),
    }
}

/// What was measured of each dimension, and what was not.
fn curves(
    bench: &Bench,
    classes: &Path,
    jdk: &Jdk,
    most: usize,
    minutes: f64,
) -> (Vec<Curve>, String) {
    let began = Instant::now();
    let mut curves: Vec<Curve> = DIMENSIONS.iter().map(|one| (one, Vec::new())).collect();
    let mut notes = String::new();
    let steps = DIMENSIONS.iter().map(|one| one.sizes.len()).max().unwrap_or(0).min(most);
    for step in 0..steps {
        for (dimension, points) in &mut curves {
            let sizes = &dimension.sizes[..dimension.sizes.len().min(most)];
            let Some(&size) = by_weight(sizes).get(step) else { continue };
            let what = format!("{} {size}", dimension.name);
            if began.elapsed().as_secs_f64() > minutes * 60.0 {
                notes += &format!("- The time was up before {what}\n");
                continue;
            }
            match measure(bench, classes, jdk, dimension, size) {
                Ok(point) => {
                    println!("{what}: {point}; {} s so far", began.elapsed().as_secs());
                    points.push(point);
                }
                Err(error) => {
                    println!("FAILED: {what}: {error:#}");
                    let error = error.to_string();
                    notes += &format!("- FAILED: {what}: {}\n", error.lines().next().unwrap_or(""));
                }
            }
        }
    }
    curves.iter_mut().for_each(|(_, points)| points.sort_by_key(|point| point.size));
    (curves, notes)
}

/// The page for the documentation.
fn page(command: &str, about: &str, curves: &[Curve]) -> String {
    let mut text = format!(
        "# How cost grows\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n{about}\n\
         Each size is one JVM, recorded with `--exact --count`, attached. cost: an iteration beside the plain one before, \
         in the same JVM; attaching: from the start of `tare record` until all is woven, longest pause: of those that \
         weaving made, and memory: the most that the JVM's process had, each beside the first line's. An asterisk: the \
         memory for trees was used up, so calls were summed up.\n\n\
         ![How cost grows](../../bench/scale.svg)\n",
    );
    for (dimension, points) in curves {
        table(&mut text, dimension, points);
    }
    text
}

fn measure(
    bench: &Bench,
    classes: &Path,
    jdk: &Jdk,
    dimension: &Dimension,
    size: u32,
) -> Result<Point> {
    let workload = Workload {
        root: String::new(),
        name: dimension.name,
        include: dimension.include,
        what: String::new(),
        class_path: vec![classes.to_owned()],
        arguments: vec![size.to_string()],
        options: Vec::new(),
        needs_compiler: false,
        since: 0,
        settles_within: 0.0,
        warm_up: WARM_UP,
        measured: MEASURED,
    };
    let log = File::create(bench.work.join("stderr.log")).context("creating a log")?;
    let mut java = bench.java(&workload, jdk, Config::Plain)?;
    let mut program = Program::start(java.stderr(log))?;
    let steady = |program: &mut Program| -> Result<f64> {
        program.run(WARM_UP)?;
        median(&program.run(MEASURED)?.wall).context("no iteration")
    };
    let plain = steady(&mut program)?;
    let said = bench.work.join("record.log");
    let mut record = bench.record(Mode::Count, &workload);
    let mut recorder = Recorder::start(record.arg(program.pid().to_string()), &said)?;
    let attach = recorder.wait_until_woven(&bench.tare, program.pid())?;
    let counted = steady(&mut program)?;
    recorder.stop()?;
    let peak = program.quit()?.peak_memory as f64;
    let mut launch = Launch::default();
    let said = fs::read_to_string(&said)?;
    launch.heed(&said.lines().map(str::to_owned).collect::<Vec<_>>())?;
    let pause = launch.pauses.map_or(0.0, |pauses| pauses.longest);
    let cost = counted / plain.max(1e-9);
    Ok(Point { size, cost, attach, pause, peak, full: launch.full })
}

fn table(text: &mut String, dimension: &Dimension, points: &[Point]) {
    let Some(first) = points.first() else { return };
    let _ = write!(
        text,
        "\n## {}\n{}.\n\n| {} | cost | attaching | longest pause | memory |\n|--:|--:|--:|--:|--:|\n",
        dimension.name, dimension.what, dimension.name
    );
    for point in points {
        let beside = |get: fn(&Point) -> f64| get(point) / get(first).max(1e-9);
        let _ = writeln!(
            text,
            "| {}{} | {:.2} | {:.2} | {:.2} | {:.2} |",
            point.size,
            if point.full { "*" } else { "" },
            point.cost,
            beside(|p| p.attach),
            beside(|p| p.pause),
            beside(|p| p.peak),
        );
    }
}

/// A name, a colour, and a ratio, given the first point too.
type Line = (&'static str, &'static str, fn(&Point, &Point) -> f64);

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 180.0;
const MARGIN: f64 = 44.0;
/// The largest ratio of the plots; a curve that leaves them says enough.
const MOST: f64 = 100.0;
const LEAST: f64 = 0.5;

/// One plot for each dimension, both axes logarithmic: what an iteration costs, and what attaching
/// does.
fn svg(curves: &[Curve]) -> String {
    let width = curves.len() as f64 * (WIDTH + MARGIN) + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        HEIGHT + 2.0 * MARGIN,
    );
    for (number, (dimension, points)) in curves.iter().enumerate() {
        let name = dimension.name;
        let left = MARGIN + number as f64 * (WIDTH + MARGIN);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let span = (f64::from(last.size) / f64::from(first.size)).ln().max(1e-9);
        let x = |size: u32| left + WIDTH * (f64::from(size) / f64::from(first.size)).ln() / span;
        let y =
            |ratio: f64| MARGIN + HEIGHT * (1.0 - height(ratio.clamp(LEAST, MOST)) / height(MOST));
        let _ = writeln!(
            text,
            "<text x=\"{left:.0}\" y=\"20\" font-weight=\"bold\">{name}</text>\n\
             <rect x=\"{left:.1}\" y=\"{MARGIN}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
        );
        for mark in [1.0, 2.0, 5.0, 10.0, 50.0] {
            let _ = writeln!(
                text,
                "<line x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#eee\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{mark}×</text>",
                left + WIDTH,
                left - 4.0,
                y(mark) + 4.0,
                y = y(mark),
            );
        }
        for point in points {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666\">{}</text>",
                x(point.size),
                MARGIN + HEIGHT + 14.0,
                short(point.size),
            );
        }
        let lines: [Line; 2] = [
            ("an iteration", "#1f77b4", |point, _| point.cost),
            ("attaching", "#d62728", |point, first| point.attach / first.attach.max(1e-9)),
        ];
        for (at, (label, colour, ratio)) in lines.into_iter().enumerate() {
            let line: Vec<String> = points
                .iter()
                .map(|p| format!("{:.1},{:.1}", x(p.size), y(ratio(p, first))))
                .collect();
            let _ = writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{label}</text>",
                line.join(" "),
                left + 8.0,
                MARGIN + 14.0 + at as f64 * 14.0,
            );
        }
    }
    text + "</svg>\n"
}

/// Plots begin at a half.
fn height(ratio: f64) -> f64 {
    (ratio / LEAST).ln()
}

fn short(size: u32) -> String {
    match size {
        1_000_000.. => format!("{} M", size / 1_000_000),
        1_000.. => format!("{} k", size / 1_000),
        _ => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_come_before_what_is_between() {
        assert_eq!(by_weight(&[1, 2, 3, 4]), [1, 4, 2, 3]);
        assert_eq!(by_weight(&[1, 2]), [1, 2]);
        assert_eq!(by_weight(&[1]), [1]);
    }
}
