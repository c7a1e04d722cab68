//! Converts a file and says how long reading and writing took:
//! `cargo run --release -p tare-formats --example convert IN OUT`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Instant;
use tare_formats::{Format, Options, series_name};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let (from, to) = (paths.next().ok_or("no input")?, paths.next().ok_or("no output")?);
    let start = Instant::now();
    let profile = tare_formats::open(&from)?;
    println!(
        "read    {:>8.3} s  {} contexts",
        start.elapsed().as_secs_f64(),
        profile.contexts.len()
    );
    for (_, series) in profile.all_series() {
        println!(
            "  {} rows, total {}: {}",
            series.len(),
            series.total(),
            series_name(series.info())
        );
    }
    for (_, table) in profile.all_events() {
        println!("  {} events: {}", table.len(), table.kind().name);
    }
    for loss in &profile.run.losses {
        println!("  {} {} {}: {}", loss.kind.name(), loss.count, loss.name, loss.reason);
    }
    let (format, gzip) = Format::of_path(&to).ok_or("unknown ending")?;
    let start = Instant::now();
    let options = Options { gzip, title: "convert", ..Options::default() };
    tare_formats::write(&profile, format, options, std::fs::File::create(&to)?)?;
    let size = std::fs::metadata(&to)?.len();
    println!("written {:>8.3} s  {size} bytes", start.elapsed().as_secs_f64());
    Ok(())
}
