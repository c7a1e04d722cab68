//! Exports a JFR file as collapsed stacks, as a flame graph and as pprof, by this crate and, if its
//! jar is given, by async-profiler's converter, and compares processor time and memory: `cargo run
//! --release -p tare-formats --example bench_conversions -- FILE.jfr [CONVERTER.jar]`.
//!
//! Every export is a process of its own, and the two tools take turns, so that whatever else the
//! machine does meets both. What the collapsed stacks add up to is compared, so that both did the
//! same work.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tare_formats::{Format, Options};
use tare_profile::{
    ContextId, Frame, FrameId, Method, MethodKind, Profile, Row, SeriesInfo, Thread, ThreadId,
    TimeAxis, ValueKind,
};

const USAGE: &str = "\
Usage: bench_conversions FILE.jfr [CONVERTER.jar]

FILE.jfr       is exported; if it is not there and its name ends in synthetic.jfr, a file
               of 5 million samples is made first
CONVERTER.jar  async-profiler's converter, tools.profiler:jfr-converter in Maven Central:
               mvn dependency:copy -Dartifact=tools.profiler:jfr-converter:4.1 -DoutputDirectory=.";

const ROUNDS: usize = 3;
const SAMPLES: u64 = 5_000_000;
const CONTEXTS: usize = 100_000;
const DEEPEST: u32 = 60;

/// What is exported: the ending of the file, and what the converter calls the format.
const EXPORTS: [(&str, &str); 3] =
    [(".collapsed", "collapsed"), (".html", "html"), (".pb.gz", "pb.gz")];

/// The first argument by which this program is told to export once, as the process that is
/// measured.
const EXPORT: &str = "--export";

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match arguments.as_slice() {
        [flag, from, to] if flag.as_os_str() == EXPORT => export(from, to),
        [file] => compare(file, None),
        [file, jar] => compare(file, Some(jar)),
        _ => Err(USAGE.into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn export(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let profile = tare_formats::open(from)?;
    let (format, gzip) = Format::of_path(to).ok_or("an ending that asks for no format")?;
    let options = Options { gzip, title: "bench", ..Options::default() };
    tare_formats::write(&profile, format, options, File::create(to)?)?;
    Ok(())
}

fn compare(file: &Path, jar: Option<&Path>) -> Result<(), Box<dyn Error>> {
    if !file.exists() {
        if !file.to_string_lossy().ends_with("synthetic.jfr") {
            return Err(format!("there is no file {}\n\n{USAGE}", file.display()).into());
        }
        let mut bytes = Vec::new();
        tare_formats::write(&made(), Format::Jfr, Options::default(), &mut bytes)?;
        fs::write(file, bytes)?;
    }
    let directory = std::env::temp_dir().join(format!("tare-bench-formats-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let done = take_turns(file, jar, &directory);
    fs::remove_dir_all(&directory)?;
    done
}

fn take_turns(file: &Path, jar: Option<&Path>, directory: &Path) -> Result<(), Box<dyn Error>> {
    let size = file.metadata()?.len() as f64 / 1e6;
    println!("{size:.0} MB of JFR; medians of {ROUNDS} rounds; seconds are of the processor.");
    println!(
        "{:<11} {:>9} {:>8} {:>13} {:>12} {:>12} {:>10}",
        "export", "tare s", "tare MB", "converter s", "converter MB", "s, ratio", "MB, ratio"
    );
    let mut totals = Vec::new();
    for (ending, name) in EXPORTS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let our_output = directory.join(format!("tare{ending}"));
        let their_output = directory.join(format!("converter{ending}"));
        for _ in 0..ROUNDS {
            let mut command = Command::new(std::env::current_exe()?);
            ours.push(measure(command.arg(EXPORT).arg(file).arg(&our_output))?);
            if let Some(jar) = jar {
                let mut command = Command::new("java");
                command.arg("-jar").arg(jar).args(["-o", name]).arg(file).arg(&their_output);
                theirs.push(measure(&mut command)?);
            }
        }
        let ours = median(&ours);
        print!("{name:<11} {:>9.2} {:>8.0}", ours.seconds, ours.megabytes);
        if jar.is_some() {
            let theirs = median(&theirs);
            print!(" {:>13.2} {:>12.0}", theirs.seconds, theirs.megabytes);
            print!(" {:>12.2}", ours.seconds / theirs.seconds);
            print!(" {:>10.2}", ours.megabytes / theirs.megabytes);
        }
        println!();
        if ending == ".collapsed" {
            totals.push(("tare", total_of(&our_output)?));
            if jar.is_some() {
                totals.push(("converter", total_of(&their_output)?));
            }
        }
    }
    for (tool, total) in totals {
        println!("The collapsed stacks of {tool} add up to {total}.");
    }
    Ok(())
}

/// What a process took.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    megabytes: f64,
}

/// Each value's own median: the round with the least memory need not be the fastest.
fn median(costs: &[Cost]) -> Cost {
    let middle = |value: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Cost { seconds: middle(|cost| cost.seconds), megabytes: middle(|cost| cost.megabytes) }
}

/// Runs a command and watches it. A process that has ended keeps its times, but not its memory,
/// until it is waited for; so memory is looked at all along.
fn measure(command: &mut Command) -> Result<Cost, Box<dyn Error>> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let mut megabytes = 0.0_f64;
    let seconds = loop {
        let stat = fs::read_to_string(process.join("stat"))?;
        // The name may hold anything, so fields are counted behind it; the first is the state.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            // The times in the program and in the kernel, in hundredths of a second.
            let ticks = fields.iter().skip(11).take(2);
            break ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0;
        }
        if let Ok(status) = fs::read_to_string(process.join("status")) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes =
                line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
            megabytes = megabytes.max(kilobytes.unwrap_or(0.0) * 1024.0 / 1e6);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(Cost { seconds, megabytes })
}

fn total_of(collapsed: &Path) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string(collapsed)?;
    let values = text.lines().filter_map(|line| line.rsplit_once(' '));
    Ok(values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Samples of a program whose stacks go up and down by chance (always the same chance), in eight
/// threads; some contexts are met again and again.
fn made() -> Profile {
    let mut profile = Profile::new();
    profile.run.started = Some(1_700_000_000_000_000_000);
    let frames: Vec<FrameId> = (0..20_000_u32)
        .map(|number| {
            let class = format!("com.acme.part{}.Class{}", number % 97, number / 8);
            let class = profile.strings.intern(&class);
            let name = profile.strings.intern(&format!("method{}", number % 8));
            let descriptor = profile.strings.intern("()V");
            let kind = MethodKind::Java;
            let method = Method { kind, class, name, descriptor, ..Method::default() };
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame { line: Some(number % 500 + 1), ..Frame::of(method) })
        })
        .collect();
    let threads: Vec<ThreadId> = (1..=8)
        .map(|number| {
            let name = profile.strings.intern(&format!("worker {number}"));
            let (java_id, os_id) = (Some(number), Some(number + 1000));
            profile.threads.push(Thread { name, java_id, os_id, ..Thread::default() })
        })
        .collect();
    let random = &mut Random(3);
    let (mut at, mut depth) = (ContextId::ROOT, 0);
    while profile.contexts.len() < CONTEXTS {
        let up = depth == DEEPEST || random.below(100) < 45;
        (at, depth) = match profile.contexts.parent(at).filter(|_| up) {
            Some(parent) => (parent, depth - 1),
            None => {
                let bound = random.below(frames.len() as u64) + 1;
                (profile.contexts.child(at, frames[random.below(bound) as usize]), depth + 1)
            }
        };
    }
    let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let series = profile.add_series(info.with_period(1_000_000, ValueKind::CpuTime));
    let mut time = 0;
    for _ in 0..SAMPLES {
        time += 100_000 + random.below(50_000);
        let bound = random.below(CONTEXTS as u64 - 1) + 1;
        let context =
            ContextId::new((random.below(bound) * random.below(bound) / bound) as u32 + 1);
        let thread = threads[random.below(8) as usize];
        profile.series_mut(series).push(Row::new(context, thread, 1).at(time));
    }
    profile.run.duration = time;
    profile
}
