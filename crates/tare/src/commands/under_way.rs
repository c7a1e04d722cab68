//! `tare dump`, `stop`, `pause`, `resume`, `interval`, `threshold`: commands for a recording that another
//! terminal began.

use super::export;
use super::record::{check_output, unused};
use crate::source;
use crate::term::plain;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::Path;
use tare_attach::Jvm;
use tare_formats::Format;
use tare_session::command_socket::{self, Command};

pub fn dump(who: &str, output: Option<&Path>) -> Result<()> {
    check_output(output)?;
    let jvm = tare_attach::find(who)?;
    let name = || unused(&format!("dump-{}-{}", jvm.pid, stamp()), "tare", Path::exists);
    let path = std::path::absolute(output.map_or_else(name, Path::to_owned))?;
    let answer = match Format::of_path(&path) {
        Some((format, gzip)) => dump_as(&jvm, format, gzip, &path)?,
        None => dump_to(&jvm, &path)?,
    };
    outln!("{}: {}", path.display(), plain(&answer));
    Ok(())
}

/// What there is so far in another tool's format. It is made of a recording in memory of ours, so
/// that the `tare` that records is held up no longer than by a plain dump.
fn dump_as(jvm: &Jvm, format: Format, gzip: bool, path: &Path) -> Result<String> {
    let (memory, recording) = source::shared_memory()?;
    command_socket::ask(jvm, &Command::Dump(memory.try_clone()?))?;
    let size = export::save(&recording, format, gzip, path)?;
    Ok(format!("{} KiB", size.div_ceil(1024)))
}

/// Opens the file with our own rights and has the recording write into it. What is no ordinary
/// file (a pipe, a terminal) could hold the recording up, so that we write there ourselves.
fn dump_to(jvm: &Jvm, path: &Path) -> Result<String> {
    let cannot = || format!("cannot write {}", path.display());
    let there = fs::metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file()) {
        let mut out = File::options().write(true).open(path).with_context(cannot)?;
        let (mut memory, _) = source::shared_memory()?;
        let answer = command_socket::ask(jvm, &Command::Dump(memory.try_clone()?))?;
        memory.rewind()?;
        io::copy(&mut memory, &mut out).with_context(cannot)?;
        return Ok(answer);
    }
    // What is in it stays until the recording has agreed: it may be the recording's own file.
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let answer = command_socket::ask(jvm, &Command::Dump(file.with_context(cannot)?));
    if answer.is_err() && there.is_err() {
        let _ = fs::remove_file(path);
    }
    Ok(answer?)
}

pub fn tell(who: &str, command: &Command) -> Result<()> {
    let answer = command_socket::ask(&tare_attach::find(who)?, command)?;
    outln!("{}", plain(&answer));
    Ok(())
}

/// Seconds since 1970, which sort as files do.
fn stamp() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
