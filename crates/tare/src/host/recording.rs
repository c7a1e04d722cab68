//! Recordings that are made there and grow here. The far side records and sends blocks; here they
//! are a file that `tare report` and `tare view` read at any moment, and of which the report is
//! made at the end.

use super::asking::{Interrupts, LEFT};
use super::landing::Landing;
use super::link::Link;
use super::shown::Shown;
use super::way::Wanted;
use crate::cli::{HostArgs, ReportArgs};
use crate::commands::record::{Files, check_output, check_room};
use crate::commands::report;
use crate::figures::{headline, remark_aside};
use crate::term::{self, BAD};
use crate::{files, source};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tare_profile::LossKind;
use tare_recording::{LoadOptions, Recording, Writer};
use tare_relay::FromFar;

const TURN: Duration = Duration::from_millis(50);

/// A recording that grows here while this is asked for more.
pub struct Growing {
    link: Link,
    landing: Landing,
    /// What the far side says of the JVM, once the recording has begun.
    pub jvm: Option<(String, u32)>,
    /// What it printed, for the end.
    text: Vec<u8>,
    told: Vec<String>,
    shown: Shown,
}

/// How far it is.
pub enum Turn {
    Going,
    /// The command there has ended.
    Over(u8),
}

/// Has the far side record; `words` is a command line of `tare record`. The recording goes to
/// `output`, or to a free name of the far side's choice in this directory.
pub fn begin(
    at: &HostArgs,
    words: Vec<String>,
    output: Option<PathBuf>,
    quiet: bool,
) -> Result<Growing> {
    let link = Link::open(at, words, quiet)?;
    let landing = Landing::new(output);
    let (text, told, shown) = (Vec::new(), Vec::new(), Shown::new(at));
    Ok(Growing { link, landing, jvm: None, text, told, shown })
}

impl Growing {
    /// Takes what comes within a moment.
    pub fn turn(&mut self) -> Result<Turn> {
        let Some(said) = self.link.receive(TURN)? else { return Ok(Turn::Going) };
        match self.shown.show(said)? {
            Some(FromFar::Out(bytes)) => self.text.extend(bytes),
            Some(FromFar::FileBegins { name, jvm, pid }) => {
                self.landing.begin(&name)?;
                self.jvm = jvm.zip(pid);
            }
            Some(FromFar::File(bytes)) => self.landing.add(&bytes)?,
            Some(FromFar::FileEnds) => self.landing.end()?,
            Some(FromFar::Told(text)) => self.told.push(text),
            Some(FromFar::Exit(code)) => return Ok(Turn::Over(code)),
            _ => {}
        }
        Ok(Turn::Going)
    }

    /// Where the recording is, once something has come.
    pub fn path(&self) -> Option<&Path> {
        self.landing.landed()
    }

    /// As Ctrl-C there.
    pub fn interrupt(&self) {
        self.link.interrupt();
    }

    /// Takes leave, when all has come or nothing more can.
    pub fn end(mut self, broke: Option<&anyhow::Error>) -> Option<anyhow::Error> {
        // What was begun of a line.
        let _ = self.shown.end();
        match broke {
            None => {
                self.link.end();
                None
            }
            Some(why) => Some(self.link.broke(why)),
        }
    }
}

pub fn run(at: &HostArgs, words: Vec<String>, wanted: Wanted) -> Result<ExitCode> {
    check_output(wanted.output.as_deref())?;
    check_room(wanted.output.as_deref())?;
    let mut interrupts = Interrupts::begin()?;
    // Another tool's file is made here, of a recording that lies beside it until then.
    let files = wanted.output.clone().map(Files::of_output);
    let place = files.as_ref().map(|files| files.recording.clone());
    let mut growing = begin(at, words, place, wanted.quiet)?;
    let outcome = loop {
        if interrupts.pass_on(&growing.link) {
            break Ok(LEFT);
        }
        match growing.turn() {
            Ok(Turn::Going) => {}
            Ok(Turn::Over(code)) => break Ok(code),
            Err(why) => break Err(why),
        }
    };
    let path = growing.path().map(Path::to_owned);
    let is_whole = growing.landing.is_whole();
    let size = growing.landing.size;
    let (text, told) = (std::mem::take(&mut growing.text), std::mem::take(&mut growing.told));
    let text = growing.shown.named(text);
    let broke = growing.end(outcome.as_ref().err());
    if let Some(why) = &broke {
        errln!("{BAD}tare:{BAD:#} {why:#}");
    }
    let code = outcome.unwrap_or(1);
    let Some(path) = path else { return Ok(ExitCode::from(code)) };
    let size = match is_whole {
        true => size,
        false => {
            let why = match broke {
                Some(why) => why.to_string(),
                None if code == LEFT => "its end was not waited for".to_owned(),
                None => format!("tare on the far side ended with status {code}"),
            };
            complete(&path, &why)?
        }
    };
    let files = files.unwrap_or_else(|| Files::of_output(path));
    tell(files, size, &told, &text, &wanted)?;
    Ok(ExitCode::from(code))
}

/// Makes the file that was asked for, and tells of it as if it had been recorded here.
fn tell(files: Files, size: u64, told: &[String], text: &[u8], wanted: &Wanted) -> Result<()> {
    if wanted.quiet && !wanted.json {
        files.complete(size)?;
        return Ok(());
    }
    let profile = source::load(&files.recording, None)?;
    let (path, size) = files.complete(size)?;
    if wanted.json {
        return term::printed(report::climb_json(&profile));
    }
    let size = format!("{} KiB", size.div_ceil(1024));
    // What the far side tells ends with a size, which is that of the recording.
    let told = told.first().map(|told| told.rsplit_once("; ").map_or(told.as_str(), |(t, _)| t));
    headline(&path, &told.map_or_else(|| size.clone(), |told| format!("{told}; {size}")));
    term::printed(term::show(text, false))?;
    let page = ReportArgs { threads: wanted.by_thread, ..ReportArgs::plain(&path) };
    term::printed(report::whole(&profile, &page))
}

/// Gives a recording whose rest did not come an end that says so; its size.
fn complete(path: &Path, why: &str) -> Result<u64> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Ok(0);
    }
    let doing = || format!("{} has what came, and no end", path.display());
    let mut recording = Recording::open(path).with_context(doing)?;
    let mut profile = recording.load(&LoadOptions::default()).with_context(doing)?.profile;
    drop(recording);
    let reason = format!("{why}; what came later is missing");
    profile.run.lose(LossKind::Damaged, "end of the recording", 1, &reason);
    let mut bytes = Vec::new();
    let written = Writer::new(&mut bytes).and_then(|writer| writer.finish(&profile).map(|_| ()));
    written.with_context(doing)?;
    files::replace(path, &bytes).with_context(doing)?;
    remark_aside(&format!("what had come until then is in {}", path.display()));
    Ok(bytes.len() as u64)
}
