//! Write rate, open time and memory: `cargo run --release -p tare-recording --example
//! bench_recordings`.
//!
//! Ten million contexts with a value each, as an exact profile has them, and fifty million samples
//! with times in eight threads, written in steps of a second as a recorder would. Beside it a plain
//! dump of the same numbers, as the baseline. Arguments: millions of contexts, millions of samples,
//! directory.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tare_profile::{
    ContextId, Frame, FrameId, Method, Profile, Row, SeriesInfo, Thread, ThreadId, TimeAxis,
    ValueKind,
};
use tare_recording::{LoadOptions, Recording, Writer};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let millions = |at: usize, otherwise: u64| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise) * 1_000_000
    };
    let process = std::process::id();
    let directory = arguments.get(3).map_or_else(std::env::temp_dir, PathBuf::from);
    println!("Seconds are of the processor, so that other work on the machine counts less.");
    println!("{:<46} {:>8} {:>10} {:>9} {:>10}", "", "seconds", "M rows/s", "file MB", "peak MB");
    exact(millions(1, 10), &directory.join(format!("tare-bench-exact-{process}.tare")))?;
    samples(millions(2, 50), &directory.join(format!("tare-bench-samples-{process}.tare")))?;
    Ok(())
}

fn names(profile: &mut Profile) -> Vec<FrameId> {
    (0..20_000)
        .map(|n| {
            let class = profile.strings.intern(&format!("com.acme.part{}.Class{}", n % 97, n / 8));
            let name = profile.strings.intern(&format!("method{}", n % 8));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            profile.frames.intern(Frame { line: Some(n % 500), ..Frame::of(method) })
        })
        .collect()
}

/// A walk up and down, as a running program's stack does; common calls are more common than others.
fn step(
    profile: &mut Profile,
    frames: &[FrameId],
    at: ContextId,
    random: &mut Random,
) -> ContextId {
    let up = random.below(100) < 49;
    match profile.contexts.parent(at).filter(|_| up) {
        Some(parent) => parent,
        None => {
            let bound = random.below(frames.len() as u64) + 1;
            profile.contexts.child(at, frames[random.below(bound) as usize])
        }
    }
}

fn exact(count: u64, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut profile = Profile::new();
    let frames = names(&mut profile);
    let random = &mut Random(1);
    let mut at = ContextId::ROOT;
    while (profile.contexts.len() as u64) < count {
        at = step(&mut profile, &frames, at, random);
    }
    let calls = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
    let times = profile.add_series(SeriesInfo::new("exact", ValueKind::WallTime));
    for row in 1..profile.contexts.len() as u32 {
        let context = ContextId::new(row);
        let value = (random.below(1000) * random.below(1000) / 100) as i64 + 1;
        profile.series_mut(calls).push(Row::new(context, ThreadId::UNKNOWN, value));
        let time = value * (random.below(200) as i64 + 20);
        profile.series_mut(times).push(Row::new(context, ThreadId::UNKNOWN, time));
    }
    let start = cpu_seconds();
    let mut out = BufWriter::new(File::create(path)?);
    for (id, parent, frame) in profile.contexts.iter() {
        for word in [id.raw(), parent.raw(), frame.raw()] {
            out.write_all(&word.to_le_bytes())?;
        }
        for series in [calls, times] {
            let row = profile.series(series).row(id.index() - 1);
            out.write_all(&row.map_or(0, |row| row.value).to_le_bytes())?;
        }
    }
    out.flush()?;
    drop(out);
    report("plain dump of contexts and two values each", count, start, path)?;

    let start = cpu_seconds();
    Writer::create(path)?.finish(&profile)?;
    report("contexts and two values each: write", count, start, path)?;
    let total = profile.series(times).total();
    drop(profile);
    open(path, count, total, &[1])
}

fn samples(count: u64, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut profile = Profile::new();
    let frames = names(&mut profile);
    let name = profile.strings.intern("worker");
    let threads: Vec<ThreadId> =
        (0..8).map(|_| profile.threads.push(Thread { name, ..Thread::default() })).collect();
    let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let series = profile.add_series(info.with_period(1_000_000, ValueKind::CpuTime));
    let random = &mut Random(2);
    let mut stacks = [ContextId::ROOT; 8];
    while profile.contexts.len() < 300_000 {
        let thread = random.below(8) as usize;
        stacks[thread] = step(&mut profile, &frames, stacks[thread], random);
    }
    // The contexts met so far, of which some are met again and again.
    let known = profile.contexts.len() as u64;
    let mut writer = Writer::create(path)?;
    let (mut busy, mut time) = (0.0, 0_u64);
    let mut left = count;
    while left > 0 {
        // Eight threads at 1 ms for ten seconds.
        let now = left.min(80_000);
        for _ in 0..now {
            time += 100_000 + random.below(50_000);
            let bound = random.below(known) + 1;
            let context =
                ContextId::new((random.below(bound) * random.below(bound) / bound) as u32);
            let thread = threads[random.below(8) as usize];
            profile.series_mut(series).push(Row::new(context, thread, 1).at(time));
        }
        left -= now;
        profile.run.duration = time;
        let start = cpu_seconds();
        writer.write(&profile)?;
        busy += cpu_seconds() - start;
        profile.forget_rows();
    }
    let start = cpu_seconds();
    writer.finish(&profile)?;
    busy += cpu_seconds() - start;
    drop(profile);
    line("samples with times: write, 80,000 at a time", count, busy, Some(path))?;
    open(path, count, count as i64, &[0])
}

fn open(
    path: &Path,
    count: u64,
    total: i64,
    series: &[u16],
) -> Result<(), Box<dyn std::error::Error>> {
    let start = cpu_seconds();
    let mut recording = Recording::open(path)?;
    let summary = recording.summary()?;
    report("  open, run and list of series", 0, start, path)?;
    assert!(summary.rows.iter().all(|rows| *rows > 0));

    for (what, options) in [
        ("  load one series, merged", LoadOptions { merge: true, ..LoadOptions::default() }),
        ("  load one series, every row", LoadOptions::default()),
    ] {
        let options = LoadOptions { series: Some(series.to_vec()), ..options };
        let start = cpu_seconds();
        let loaded = recording.load(&options)?;
        report(what, count, start, path)?;
        assert_eq!(loaded.profile.all_series().map(|(_, s)| s.total()).sum::<i64>(), total);
        println!("{:<46} {:>30} MB held", "", loaded.profile.memory() / 1_000_000);
    }
    let cut = File::options().write(true).open(path)?;
    cut.set_len(cut.metadata()?.len() - 1)?;
    let start = cpu_seconds();
    let mut recording = Recording::open(path)?;
    recording.summary()?;
    report("  open without an index", 0, start, path)?;
    std::fs::remove_file(path)?;
    Ok(())
}

fn report(what: &str, rows: u64, start: f64, path: &Path) -> std::io::Result<()> {
    line(what, rows, cpu_seconds() - start, Some(path))
}

fn line(what: &str, rows: u64, seconds: f64, path: Option<&Path>) -> std::io::Result<()> {
    let rate =
        if rows == 0 { String::new() } else { format!("{:.1}", rows as f64 / 1e6 / seconds) };
    let size = path.map_or(Ok(0), |path| path.metadata().map(|data| data.len()))? / 1_000_000;
    println!("{what:<46} {seconds:>8.3} {rate:>10} {size:>9} {:>10}", peak_memory());
    Ok(())
}

/// What this process has used of the processor, as Linux tells it, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // utime and stime are the fields 14 and 15, and the third follows the name.
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The most that this process ever held, in MB, as Linux tells it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1000
}
