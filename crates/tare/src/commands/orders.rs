//! `tare dump`, `stop`, `pause`, `resume`, `interval`: orders to a recording that another terminal began.

use super::export;
use super::record::check_output;
use crate::desk::{self, Order};
use crate::source;
use anyhow::Result;
use std::path::{Path, PathBuf};
use tare_formats::Format;

pub fn dump(who: &str, output: Option<&Path>) -> Result<()> {
    check_output(output)?;
    let jvm = tare_attach::find(who)?;
    let name = || PathBuf::from(format!("dump-{}-{}.tare", jvm.pid, stamp()));
    let path = std::path::absolute(output.map_or_else(name, Path::to_owned))?;
    match Format::of_path(&path) {
        Some((format, gzip)) => dump_as(jvm.pid, format, gzip, &path),
        None => give_to(jvm.pid, &Order::Dump(path)),
    }
}

/// What there is so far in another tool's format. It is made of a recording in memory of ours, so that
/// the `tare` that records is held up no longer than by a plain dump.
fn dump_as(pid: u32, format: Format, gzip: bool, path: &Path) -> Result<()> {
    let (memory, recording) = source::shared_memory()?;
    desk::ask(pid, &Order::Dump(recording.clone()))?;
    let size = export::save(&recording, format, gzip, path)?;
    drop(memory);
    anstream::println!("{}: {} KiB", path.display(), size.div_ceil(1024));
    Ok(())
}

pub fn give(who: &str, order: &Order) -> Result<()> {
    give_to(tare_attach::find(who)?.pid, order)
}

fn give_to(pid: u32, order: &Order) -> Result<()> {
    let answer = desk::ask(pid, order)?;
    anstream::println!("{answer}");
    Ok(())
}

/// Seconds since 1970, which sort as files do.
fn stamp() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
