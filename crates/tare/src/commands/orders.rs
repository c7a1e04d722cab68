//! `tare dump`, `stop`, `pause`, `resume`, `interval`: orders to a recording that another terminal began.

use crate::desk::{self, Order};
use crate::term::plain;
use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use tare_attach::Jvm;

pub fn dump(who: &str, output: Option<&Path>) -> Result<()> {
    let jvm = tare_attach::find(who)?;
    let name = || PathBuf::from(format!("dump-{}-{}.tare", jvm.pid, stamp()));
    let path = std::path::absolute(output.map_or_else(name, Path::to_owned))?;
    let answer = dump_to(&jvm, &path)?;
    outln!("{}: {}", path.display(), plain(&answer));
    Ok(())
}

/// Opens the file with our own rights and has the recording write into it. What is no ordinary
/// file (a pipe, a terminal) could hold the recording up, so that we write there ourselves.
fn dump_to(jvm: &Jvm, path: &Path) -> Result<String> {
    let cannot = || format!("cannot write {}", path.display());
    let there = fs::metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file()) {
        let mut out = File::options().write(true).open(path).with_context(cannot)?;
        let mut memory = File::from(memfd_create("tare-dump", MemfdFlags::CLOEXEC)?);
        let answer = desk::ask(jvm, &Order::Dump(memory.try_clone()?))?;
        memory.rewind()?;
        io::copy(&mut memory, &mut out).with_context(cannot)?;
        return Ok(answer);
    }
    // What is in it stays until the recording has agreed: it may be the recording's own file.
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let answer = desk::ask(jvm, &Order::Dump(file.with_context(cannot)?));
    if answer.is_err() && there.is_err() {
        let _ = fs::remove_file(path);
    }
    answer
}

pub fn give(who: &str, order: &Order) -> Result<()> {
    let answer = desk::ask(&tare_attach::find(who)?, order)?;
    outln!("{}", plain(&answer));
    Ok(())
}

/// Seconds since 1970, which sort as files do.
fn stamp() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
