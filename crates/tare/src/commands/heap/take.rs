//! Where a dump comes from: a file, or a JVM of which a snapshot is taken.

use super::names::bytes;
use super::progress::STOPPED;
use crate::cli::HeapArgs;
use crate::commands::status::enter_quietly;
use crate::figures::{remark_aside, roughly};
use crate::{interrupt, source, term};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tare_attach::Jvm;
use tare_session::Error;
use tare_session::command_socket::{self, Command};
use tare_session::heap::histogram::{self, Pause};
use tare_session::heap::{SnapshotPlan, Stage, Taken, dump_by_hotspot, take};

/// A dump that can be read.
pub struct Dump {
    /// What it is called in messages.
    pub name: String,
    pub file: File,
    /// Where it is, if it stays there.
    pub path: Option<PathBuf>,
    /// What a recording of allocation in that JVM tells at this moment, as a file in memory.
    pub recording: Option<(File, PathBuf)>,
    /// Whether Ctrl-C was pressed, if a JVM was involved.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Opens a file, or takes a snapshot of a JVM, which is kept if there is a file for it. Whoever
/// looks for Ctrl-C already says so.
pub fn open(
    args: &HeapArgs,
    target: &str,
    output: Option<&Path>,
    stop: Option<Arc<AtomicBool>>,
) -> Result<Dump> {
    let path = Path::new(target);
    if path.exists() {
        for (flag, is_given) in [
            ("--output", output.is_some()),
            ("--redact", args.redact),
            ("--fallback", args.fallback),
        ] {
            if is_given {
                bail!("{flag} is for snapshots of a running JVM, and {} is a file", target);
            }
        }
        let (name, file) = (target.to_owned(), opened(path)?);
        let path = Some(path.to_owned());
        return Ok(Dump { name, file, path, recording: None, stop: None });
    }
    if !is_jvm(target) {
        bail!("there is no file {target}");
    }
    let jvm = tare_attach::find(target)?;
    let stop = stop.map_or_else(interrupt::flag, Ok)?;
    let (path, is_kept) = match output {
        Some(path) => (path.to_owned(), true),
        None => (temporary(jvm.pid), false),
    };
    if path.exists() {
        bail!("{} is there already; name another file", path.display());
    }
    let taken = snapshot(args, &jvm, &path, &stop);
    if interrupt::is_set(&stop) && taken.is_err() {
        // No file and no copy of the JVM is left of it.
        remark_aside("stopped; there is no snapshot, and the program runs as before");
        std::process::exit(STOPPED);
    }
    let mut recording = None;
    let file = taken.and_then(|taken| {
        tell(&jvm, &taken);
        if taken.samples > 0 && args.recording.is_none() {
            recording = recorded(&jvm)?;
        }
        opened(&path)
    });
    if !is_kept {
        // It stays readable as long as it is open.
        let _ = fs::remove_file(&path);
    }
    let name = format!("the snapshot of JVM {}", jvm.pid);
    let path = is_kept.then_some(path);
    Ok(Dump { name, file: file?, path, recording, stop: Some(stop) })
}

/// What the recording that is under way has so far.
fn recorded(jvm: &Jvm) -> Result<Option<(File, PathBuf)>> {
    let (memory, path) = source::shared_memory()?;
    match command_socket::ask_if_any(jvm, &Command::Dump(memory.try_clone()?)) {
        Ok(Some(_)) => Ok(Some((memory, path))),
        Ok(None) => Ok(None),
        Err(error) => {
            let what = "the recording of this JVM does not tell where objects were allocated";
            remark_aside(&format!("{what}: {error}"));
            Ok(None)
        }
    }
}

/// Whether these words mean a JVM: they name no file, and look like none.
pub fn is_jvm(target: &str) -> bool {
    let path = Path::new(target);
    let looks_like_file =
        target.contains('/') || path.extension().is_some() && !is_dotted_class(target);
    !path.exists() && !looks_like_file
}

fn opened(path: &Path) -> Result<File> {
    let name = path.display();
    let kind = fs::metadata(path).with_context(|| format!("{name} cannot be read"))?.file_type();
    // Opening a pipe would wait for whoever writes into it.
    if !kind.is_file() {
        bail!("{name} is a directory, a device or a pipe; name a file, or a JVM");
    }
    File::open(path).with_context(|| format!("{name} cannot be read"))
}

/// Names of classes have endings, too, which begin with a capital letter.
fn is_dotted_class(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    last.starts_with(|c: char| c.is_uppercase()) && !last.contains(|c: char| c.is_whitespace())
}

fn temporary(pid: u32) -> PathBuf {
    let name = format!("tare-heap-{pid}-{}.tareheap", std::process::id());
    std::env::temp_dir().join(name)
}

/// Takes a snapshot, or has the JVM dump its heap if that is wanted instead of nothing.
fn snapshot(args: &HeapArgs, jvm: &Jvm, path: &Path, stop: &Arc<AtomicBool>) -> Result<Taken> {
    let patience = args.patience.timeout;
    let mut agent = enter_quietly(jvm, patience)?;
    let stop = Arc::clone(stop);
    let plan = SnapshotPlan { redact: args.redact, stop, ..SnapshotPlan::default() };
    let shows = term::shows_progress(args.quiet);
    let mut watch = |stage: Stage| {
        if shows {
            term::progress(&stage_text(jvm.pid, stage));
        }
    };
    let taken = take(&mut agent, jvm, &plan, path, &mut watch);
    if shows {
        term::progress("");
    }
    match taken {
        Ok(taken) => Ok(taken),
        Err(error) if args.fallback && matches!(error.root(), Error::Agent(_)) => {
            remark_aside(&format!("{error}"));
            let pause = expected(jvm, Pause::CollectAndDump, args)?;
            remark_aside(&format!("JVM {} stands while it dumps its heap itself{pause}", jvm.pid));
            Ok(dump_by_hotspot(jvm, path, SnapshotPlan::default().limit)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// For how long the program will stand, as the end of a sentence; nothing if that is not known.
pub fn expected(jvm: &Jvm, pause: Pause, args: &HeapArgs) -> Result<String> {
    const SHORT: Duration = Duration::from_millis(20);
    let outlook = histogram::outlook(jvm, pause, args.patience.timeout)?;
    Ok(outlook.map_or_else(String::new, |outlook| {
        let long = match outlook.most < SHORT {
            true => "some milliseconds".to_owned(),
            false => format!(
                "{} to {}",
                term::time(outlook.least.max(Duration::from_millis(1))),
                term::time(outlook.most)
            ),
        };
        format!(": for {long}, with {} in use", bytes(outlook.used))
    }))
}

fn stage_text(pid: u32, stage: Stage) -> String {
    match stage {
        Stage::Copied { pause } => {
            format!("JVM {pid} stood for {:.1} ms and runs on; reading", pause.as_secs_f64() * 1e3)
        }
        Stage::Classes { read } => format!("reading: {}", roughly(read as u64, "class")),
        Stage::Marked { objects, .. } => format!("reading: {}", roughly(objects, "object")),
        Stage::Image { bytes, of } => format!("reading: {} %", bytes * 100 / of.max(1)),
        Stage::Again { .. } => "the copy came to no end; once more".to_owned(),
    }
}

fn tell(jvm: &Jvm, taken: &Taken) {
    let pause = taken.pause.as_secs_f64() * 1e3;
    let by = if taken.is_hprof { " while it dumped its heap" } else { "" };
    let often = match taken.attempts {
        1 => String::new(),
        attempts => format!(", at attempt {attempts}; the copies before came to no end"),
    };
    let copy = match taken.is_hprof {
        true => String::new(),
        false => format!("; its copy lived for {:.1} ms", taken.life.as_secs_f64() * 1e3),
    };
    remark_aside(&format!("JVM {} stood for {pause:.1} ms{by}{copy}{often}", jvm.pid));
}
