//! Keeps a recording of the JVM going, in memory or in a file, on a thread of its own. It gives way
//! to everybody else, waits until they are done, and begins again.

use super::others::{Other, has_stream};
use crate::commands::{record, status};
use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_session::client::Agent;
use tare_session::engines::stream;
use tare_session::words::interval;
use tare_session::{Begun, Figures, Note, Observer, Output, Place, Plan, State, What};
use tare_top::Standing;

/// Memory that a recording may take before another one takes its place.
const MOST: u64 = 64 << 20;

/// How often it is looked whether somebody else is done.
const LOOK: Duration = Duration::from_secs(1);

/// What is recorded, whatever is looked at.
pub struct How {
    pub interval: Option<Duration>,
    pub light: bool,
    pub timeout: Duration,
}

/// What is to be recorded from now on.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Wish {
    pub wall: bool,
    /// The file that is to be written, for nobody to take away.
    pub file: Option<PathBuf>,
}

/// A recording that can be followed.
#[derive(Clone)]
pub struct Source {
    /// Another one has another number.
    pub number: u64,
    pub path: PathBuf,
    /// Keeps the path what it is.
    _memory: Option<Arc<File>>,
}

/// How it stands, for who shows it.
#[derive(Default)]
pub struct Shared {
    pub standing: Standing,
    pub source: Option<Source>,
    pub how: String,
    /// What there is to say.
    pub notes: Vec<String>,
    /// A file that is complete.
    pub recorded: Option<PathBuf>,
    wish: Wish,
}

pub struct Feed {
    pub jvm: Jvm,
    pub timeout: Duration,
    shared: Arc<Mutex<Shared>>,
    /// Whether everything is to end.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Feed {
    /// Enters the JVM; what is wrong with that is said at once.
    pub fn begin(jvm: Jvm, how: How, wall: bool) -> Result<Self> {
        let shared = Shared { wish: Wish { wall, file: None }, ..Shared::default() };
        let shared = Arc::new(Mutex::new(shared));
        let stop = Arc::new(AtomicBool::new(false));
        let timeout = how.timeout;
        let was_there = jvm.has_agent();
        let agent = status::enter_quietly(&jvm, timeout)?;
        let keeper = Keeper {
            jvm: jvm.clone(),
            how,
            shared: Arc::clone(&shared),
            stop: Arc::clone(&stop),
            numbers: 0,
        };
        let thread = std::thread::Builder::new()
            .name("tare-record".to_owned())
            .spawn(move || keeper.go(agent, was_there))?;
        Ok(Feed { jvm, timeout, shared, stop, thread: Some(thread) })
    }

    pub fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wish(&self) -> Wish {
        self.shared().wish.clone()
    }

    /// From now on something else is recorded.
    pub fn wants(&self, wish: Wish) {
        self.shared().wish = wish;
    }

    /// Whether the thread has ended by itself.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the JVM is as it was.
    pub fn end(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => bail!("the recording has failed"),
        }
    }
}

struct Keeper {
    jvm: Jvm,
    how: How,
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    numbers: u64,
}

impl Keeper {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn go(mut self, mut agent: Agent, was_there: bool) -> Result<()> {
        let outcome = self.keep_going(&mut agent);
        let has_gone = agent.has_gone() || tare_attach::inspect(self.jvm.pid).is_err();
        if !self.stops() {
            let who = format!("JVM {} ({})", self.jvm.pid, self.jvm.name());
            let sentence = match &outcome {
                _ if has_gone => format!("{who} has ended; these are its last figures"),
                Err(error) => format!("{error:#}"),
                Ok(()) => format!("{who} is not recorded any more"),
            };
            self.shared().standing = Standing::Ended(sentence);
        }
        let (timeout, stop) = (self.how.timeout, Arc::clone(&self.stop));
        record::leave_as_found(&mut agent, &self.jvm, !has_gone && !was_there, timeout, &stop)?;
        // A JVM that has ended is no failure of ours.
        outcome.or_else(|error| if has_gone { Ok(()) } else { Err(error) })
    }

    fn keep_going(&mut self, agent: &mut Agent) -> Result<()> {
        let mut refused = 0;
        while !self.stops() {
            let status = agent.status()?;
            if has_stream(&status) {
                let other = Other::find(&self.jvm, &status);
                self.wait(agent, other)?;
                continue;
            }
            match self.record(agent) {
                Ok(()) => refused = 0,
                // Somebody else may have come first, which the next turn sees.
                Err(error) if refused > 2 || agent.has_gone() => return Err(error),
                Err(_) => {
                    refused += 1;
                    sleep(Duration::from_millis(200));
                }
            }
        }
        Ok(())
    }

    fn plan(&self, wish: &Wish) -> Plan {
        let full = !self.how.light;
        let what = What::Stream(stream::Plan {
            samples: Some(stream::Samples {
                wall: wish.wall,
                interval: self.how.interval,
                // Who has asked for a file wants all of it.
                yields: wish.file.is_none(),
                ..stream::Samples::default()
            }),
            alloc: full.then_some(stream::Alloc { interval: None, live: false }),
            locks: full.then(stream::Locks::default),
            classes: full,
            ..stream::Plan::default()
        });
        Plan { what, duration: None, command: Vec::new() }
    }

    /// Until somebody else wants to record, or something else is wished for.
    fn record(&mut self, agent: &mut Agent) -> Result<()> {
        let wish = self.shared().wish.clone();
        let plan = self.plan(&wish);
        let written = Arc::new(AtomicU64::new(0));
        let memory = Arc::new(named_memory(&self.jvm)?);
        let (output, path) = match &wish.file {
            Some(path) => (Output::File(path.clone()), path.clone()),
            None => {
                let out = Counted { out: memory.try_clone()?, written: Arc::clone(&written) };
                let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
                (Output::Writer(Box::new(out)), path.into())
            }
        };
        let mut output = Some(output);
        let mut place = || {
            let output = output.take().unwrap_or_else(|| Output::Writer(Box::new(io::sink())));
            Place { output, result: wish.file.clone() }
        };
        let mut heard = Heard {
            shared: Arc::clone(&self.shared),
            stop: Arc::clone(&self.stop),
            wish: wish.clone(),
            written,
        };
        let begin = match wish.file {
            Some(_) => tare_session::begin,
            None => tare_session::begin_beside,
        };
        let begun = match begin(agent, &self.jvm, &plan, &mut place, &mut heard) {
            Ok(begun) => begun,
            Err(error) => {
                // A file that cannot be written is not asked for again.
                let mut shared = self.shared();
                if shared.wish.file.take().is_some() {
                    shared.notes.push(format!("not recorded: {error:#}"));
                }
                return Err(error.into());
            }
        };
        let Begun::Recording(mut recording) = begun else { return Ok(()) };
        self.numbers += 1;
        {
            let mut shared = self.shared();
            let memory = wish.file.is_none().then(|| Arc::clone(&memory));
            shared.source = Some(Source { number: self.numbers, path, _memory: memory });
            shared.standing = Standing::Live;
            shared.how = told(&wish, self.how.interval);
        }
        loop {
            match recording.poll(&mut heard) {
                State::Going => {}
                State::Progress(progress) => {
                    if let Figures::Stream(stream::Figures { samples: Some(samples), .. }) =
                        &progress.figures
                    {
                        let clock = if wish.wall { "wall" } else { "cpu" };
                        let how = format!("{clock}, every {}", interval(samples.interval));
                        self.shared().how = how;
                    }
                }
                State::Over => break,
            }
        }
        let end = recording.finish(&mut heard);
        end.waiting.answer();
        let finished = end.finished;
        if let Some(path) = wish.file {
            let mut shared = self.shared();
            // Somebody else has ended it, or the disk is full: it is not begun again by itself.
            if shared.wish.file.as_ref() == Some(&path) {
                shared.wish.file = None;
            }
            match &finished {
                Ok(_) => shared.recorded = Some(path),
                Err(error) => shared.notes.push(format!("the recording has failed: {error:#}")),
            }
        }
        Ok(())
    }

    /// Until nobody else records. One may follow another without a gap, and whoever has just begun
    /// may have no file yet.
    fn wait(&mut self, agent: &mut Agent, mut other: Other) -> Result<()> {
        self.meet(&other);
        let mut looked = Instant::now();
        while !self.stops() {
            sleep(Duration::from_millis(50));
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            let status = agent.status()?;
            if !has_stream(&status) {
                break;
            }
            if let Some(next) = other.next(&self.jvm, &status) {
                self.meet(&next);
                other = next;
            }
        }
        Ok(())
    }

    /// Shows what somebody else records.
    fn meet(&mut self, other: &Other) {
        self.numbers += 1;
        let number = self.numbers;
        let mut shared = self.shared();
        shared.standing = Standing::Waiting(other.sentence.clone());
        shared.source = other.path.clone().map(|path| Source { number, path, _memory: None });
    }
}

fn told(wish: &Wish, every: Option<Duration>) -> String {
    let clock = if wish.wall { "wall" } else { "cpu" };
    match every {
        Some(every) => {
            format!("{clock}, every {}", interval(u64::try_from(every.as_nanos()).unwrap_or(0)))
        }
        None => clock.to_owned(),
    }
}

/// Memory whose name says what it is of.
fn named_memory(jvm: &Jvm) -> Result<File> {
    let name: String = jvm.name().chars().filter(char::is_ascii_alphanumeric).take(60).collect();
    let memory = memfd_create(format!("{name}-{}", jvm.pid), MemfdFlags::CLOEXEC);
    Ok(File::from(memory.context("no memory for the recording")?))
}

/// Counts what is written.
struct Counted {
    out: File,
    written: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.written.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Keeps what is said for the screen, and knows when a recording is to end.
struct Heard {
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    wish: Wish,
    written: Arc<AtomicU64>,
}

impl Observer for Heard {
    fn note(&mut self, note: Note) {
        // What is only good to know has no room on a screen.
        let (Note::Warning(text) | Note::Alarm(text)) = note else { return };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.notes.push(text);
    }

    fn wants_end(&self) -> bool {
        let is_other = || {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.wish != self.wish
        };
        let is_full = || self.written.load(Ordering::Relaxed) > MOST;
        self.stop.load(Ordering::Relaxed) || is_full() || is_other()
    }
}
