//! A heap as a `.hprof` file.

use super::Asked;
use super::names::{bytes, number};
use super::progress::Line;
use anyhow::{Context, Result, bail};
use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub fn run(asked: &Asked<'_>, path: &Path) -> Result<()> {
    let name = path.display();
    if path.exists() {
        bail!("{name} is there already; name another file");
    }
    let cannot = || format!("{name} cannot be written");
    // What was in a program's memory is for nobody else.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let line = Line::new(asked.args.quiet, None);
    let out = BufWriter::with_capacity(1 << 20, file.with_context(cannot)?);
    let outcome = asked.heap.write_hprof(out, &line).map_err(anyhow::Error::from);
    let outcome = outcome.and_then(|mut out| Ok(out.flush()?)).with_context(cannot);
    if outcome.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(path);
    }
    outcome?;
    drop(line);
    let size = fs::metadata(path).map_or(0, |file| file.len());
    errln!("{name}: {}, {} objects", bytes(size), number(asked.heap.objects()));
    Ok(())
}
