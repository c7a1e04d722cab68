//! `tare dump`, `stop`, `pause`, `resume`, `interval`: orders to a recording that another terminal began.

use crate::desk::{self, Order};
use anyhow::Result;
use std::path::{Path, PathBuf};

pub fn dump(who: &str, output: Option<&Path>) -> Result<()> {
    let jvm = tare_attach::find(who)?;
    let name = || PathBuf::from(format!("dump-{}-{}.tare", jvm.pid, stamp()));
    let path = std::path::absolute(output.map_or_else(name, Path::to_owned))?;
    give_to(jvm.pid, &Order::Dump(path))
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
