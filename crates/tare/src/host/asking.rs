//! Verbs that run there: what they print is printed here, and a file that they make is put here.

use super::landing::Landing;
use super::link::Link;
use super::shown::Shown;
use crate::cli::HostArgs;
use crate::commands::record::check_output;
use crate::figures::headline;
use crate::term::{self, BAD};
use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tare_relay::FromFar;

/// How soon Ctrl-C is passed on.
const TURN: Duration = Duration::from_millis(50);
/// After so many of them nobody waits for the other end any longer.
const ENOUGH: u32 = 3;
/// The exit status of what was left so, as a shell has it.
pub const LEFT: u8 = 130;
/// Text that waits for a pager or for the name of a file.
const MOST_TEXT: usize = 64 << 20;

/// Whoever presses Ctrl-C.
pub struct Interrupts {
    flag: Arc<AtomicBool>,
    count: u32,
}

impl Interrupts {
    pub fn begin() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Interrupts { flag, count: 0 })
    }

    /// Passes one on. Whether that was enough of them.
    pub fn pass_on(&mut self, link: &Link) -> bool {
        if self.flag.swap(false, Ordering::Relaxed) {
            self.count += 1;
            if self.count >= ENOUGH {
                return true;
            }
            link.interrupt();
        }
        false
    }
}

pub fn run(
    at: &HostArgs,
    words: Vec<String>,
    output: Option<PathBuf>,
    paged: bool,
) -> Result<ExitCode> {
    let dumps = words.first().is_some_and(|verb| verb == "dump");
    if dumps {
        check_output(output.as_deref())?;
    }
    // The name of a file is known at the end, and whether text is long, too.
    let makes_file = dumps || output.is_some();
    let waits = makes_file || (paged && term::height().is_some());
    let mut interrupts = Interrupts::begin()?;
    let mut link = Link::open(at, words, false)?;
    let (mut landing, mut shown) = (Landing::new(output), Shown::new(at));
    let (mut text, mut told) = (Vec::new(), Vec::new());
    let outcome = loop {
        if interrupts.pass_on(&link) {
            link.leave();
            landing.discard();
            return Ok(ExitCode::from(LEFT));
        }
        let said = match link.receive(TURN) {
            Ok(Some(said)) => said,
            Ok(None) => continue,
            Err(why) => break Err(why),
        };
        let taken = shown.show(said).and_then(|said| {
            match said {
                Some(FromFar::Out(bytes)) if waits && text.len() < MOST_TEXT => text.extend(bytes),
                Some(FromFar::Out(bytes)) => shown.out(&bytes)?,
                Some(FromFar::FileBegins { .. }) if !makes_file => {
                    bail!("the other end sends a file that nobody asked for")
                }
                Some(FromFar::FileBegins { name: theirs, .. }) => {
                    let here = landing.begin(&theirs)?;
                    shown.rename(&theirs, &here.display().to_string());
                }
                Some(FromFar::File(bytes)) => landing.add(&bytes)?,
                Some(FromFar::FileEnds) => landing.end()?,
                Some(FromFar::Told(text)) => told.push(text),
                Some(FromFar::Exit(code)) => return Ok(Some(code)),
                _ => {}
            }
            Ok(None)
        });
        match taken {
            Ok(None) => {}
            Ok(Some(code)) => break Ok(code),
            Err(why) => break Err(why),
        }
    };
    let ended = shown.end();
    let code = match outcome {
        Ok(code) => {
            link.end();
            code
        }
        // Who closes the pipe has all he wanted.
        Err(why) if term::is_closed(&why) => {
            link.leave();
            landing.discard();
            return Err(why);
        }
        Err(why) => {
            landing.discard();
            return Err(link.broke(&why));
        }
    };
    ended?;
    if let Some(path) = landing.landed() {
        told.iter().for_each(|told| headline(path, told));
    }
    if !text.is_empty() {
        // There the file had a place of its own for as long as it was made.
        term::show(&shown.named(text), paged)?;
    }
    if landing.landed().is_some() && !landing.is_whole() {
        landing.discard();
        errln!("{BAD}tare:{BAD:#} the file has not come whole, and is removed");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::from(code))
}
