//! A JVM elsewhere that is sampled while its page is looked at here. The far side records; the
//! recording grows in memory here, or in a file if it is to be kept, as one of a JVM here does.

use super::live::{Ended, Standing, has_figures, wait_until_ready};
use crate::cli::{HostArgs, ViewerArgs};
use crate::commands::record;
use crate::figures::{remark_aside, say};
use crate::host::{Growing, Turn, begin_growing};
use anyhow::{Result, bail};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use tare_session::Note;

/// A recording that is made there, and grows here on a thread of its own.
pub struct There {
    pub name: String,
    pub pid: u32,
    pub path: PathBuf,
    pub standing: Arc<Standing>,
    /// What the path leads to, unless that is a file.
    pub memory: Option<Arc<File>>,
    thread: JoinHandle<Result<()>>,
}

impl There {
    /// Waits until the far side has ended.
    pub fn end(self) -> Result<()> {
        self.thread.join().unwrap_or_else(|_| bail!("the recording has failed"))
    }
}

/// Begins to record there; what is wrong is said at once.
pub fn begin(args: &ViewerArgs, at: &HostArgs, stop: &Arc<AtomicBool>) -> Result<There> {
    crate::source::reads_what_grows();
    let (path, memory) = match &args.output {
        Some(path) => {
            record::check_output(Some(path))?;
            if path.extension().is_none_or(|ending| ending != "tare") {
                bail!("the recording is kept as a .tare file; `tare export` makes others of it");
            }
            (path.clone(), None)
        }
        None => {
            let (memory, path) = crate::source::shared_memory()?;
            (path, Some(Arc::new(memory)))
        }
    };
    let mut growing = begin_growing(at, words(args), Some(path.clone()), false)?;
    let place = at.host.as_ref().map(ToString::to_string).unwrap_or_default();
    // Until it records, or says why it cannot.
    while growing.path().is_none() {
        if stop.load(Ordering::Relaxed) {
            growing.interrupt();
        }
        if let Turn::Over(_) = growing.turn()? {
            bail!("nothing is recorded on {place}; what is wrong was said there");
        }
    }
    let Some((jvm, pid)) = growing.jvm.clone() else { bail!("{place} does not name the JVM") };
    let standing = Arc::new(Standing::elsewhere());
    remark_aside(&format!("sampling JVM {pid} ({}) on {place}", crate::term::plain(&jvm)));
    let name = format!("{jvm} on {place}");
    let thread = {
        let (standing, stop, path) = (Arc::clone(&standing), Arc::clone(stop), path.clone());
        let (who, is_kept) = (name.clone(), args.output.is_some());
        std::thread::Builder::new().name("tare-record".to_owned()).spawn(move || {
            let outcome = go(growing, &who, &standing, &stop);
            if is_kept {
                remark_aside(&format!("the recording is in {}", path.display()));
            }
            outcome
        })?
    };
    wait_until_ready(|| has_figures(&path), stop);
    Ok(There { name, pid, path, standing, memory, thread })
}

/// As `tare record` would be asked for the same.
fn words(args: &ViewerArgs) -> Vec<String> {
    let jvm = args.what.display().to_string();
    let mut words = vec!["record".to_owned(), jvm, "--quiet".to_owned()];
    words.push(if args.wall { "--wall" } else { "--cpu" }.to_owned());
    for (flag, is) in [("--alloc", args.alloc), ("--lock", args.lock), ("--classes", args.classes)]
    {
        words.extend(is.then(|| flag.to_owned()));
    }
    if let Some(interval) = args.interval {
        words.extend(["--interval".to_owned(), format!("{}us", interval.as_micros())]);
    }
    words.extend(["--timeout".to_owned(), format!("{}ms", args.patience.timeout.as_millis())]);
    words
}

fn go(mut growing: Growing, who: &str, standing: &Standing, stop: &AtomicBool) -> Result<()> {
    let mut is_told = false;
    let outcome = loop {
        if stop.load(Ordering::Relaxed) && !is_told {
            is_told = true;
            growing.interrupt();
        }
        match growing.turn() {
            Ok(Turn::Going) => {}
            Ok(Turn::Over(_)) => break None,
            Err(why) => break Some(why),
        }
    };
    let broke = growing.end(outcome.as_ref());
    let sentence = match &broke {
        Some(why) => format!("{why:#}; what had come until then is here"),
        None => format!("the recording of {who} has ended; it is here as it was"),
    };
    let ended = Ended { sentence: sentence.clone(), after: standing.began.elapsed() };
    *standing.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    if !is_told {
        say(Note::Warning(sentence));
    }
    Ok(())
}
