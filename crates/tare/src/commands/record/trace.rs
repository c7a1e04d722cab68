//! `tare record --trace`: every entry and exit of the chosen methods, as they come.

use super::exact::{ExactSession, run_info, say_weaving};
use super::patterns::{self, Wanted};
use super::plan::plan;
use super::weaving::{self, Begun};
use super::{Files, Kept, Names, Session, WOVEN_AFTER};
use crate::cli::RecordArgs;
use crate::commands::report;
use crate::figures::{headline, remark, roughly, several};
use crate::source;
use crate::term::{self, DIM, Doing};
use anyhow::{Result, bail};
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};
use tare_attach::Jvm;
use tare_session::client::Agent;
use tare_session::desk::{self, Desk, Order};
use tare_session::launch::Settings;
use tare_session::origins::Origins;
use tare_session::recorder::Recorder;
use tare_session::trace::{Limits, Trace};

/// How long to sleep when little comes: the rings hold much more than what comes meanwhile.
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(10);
/// Between two questions to the agent, and two words on the terminal.
const SECOND: Duration = Duration::from_secs(1);

/// A trace up to this size is copied for whoever asks, in some tenths of a second.
const MOST_COPIED: u64 = 64 << 20;

/// A trace under way.
pub struct TraceSession {
    trace: Trace,
    recorder: Recorder,
    began: Instant,
    files: Files,
    wanted: Wanted,
    /// The agent was asked once more when all was over.
    told_all: bool,
    quiet: bool,
    /// Where a second terminal can look at the trace, and end it.
    desk: Option<Desk>,
    stopped: bool,
}

impl Session for TraceSession {
    fn settings(args: &RecordArgs) -> Settings {
        ExactSession::settings(args)
    }

    fn begin(
        agent: &mut Agent,
        jvm: &Jvm,
        args: &RecordArgs,
        names: &Names,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let plan = plan(args)?;
        let origins = Origins::of(jvm);
        let looking = Doing::say("looking for the classes that are asked for", args.quiet);
        let wanted = patterns::check(agent, args, &origins)?;
        drop(looking);
        let files = Files::take(args, jvm, names);
        // Without a desk the trace is made as well. Others may hold us up here, so it comes before the
        // JVM is touched.
        let desk = Desk::open(jvm).ok();
        let started = SystemTime::now();
        let began = Instant::now();
        let Begun::Woven(memory) = weaving::start(agent, plan, stop, args.quiet)? else {
            return Ok(None);
        };
        let mut run = run_info(jvm, args, started);
        run.options.push((WOVEN_AFTER.to_owned(), began.elapsed().as_nanos().to_string()));
        let recorder = Recorder::begin(&files.recording, run, began)?;
        let status = agent.status()?.exact().cloned().unwrap_or_default();
        let limits = Limits { rate: args.rate, most: args.events };
        let trace = Trace::new(memory, status, origins, limits, began)?;
        Ok(Some(TraceSession {
            trace,
            recorder,
            began,
            files,
            wanted,
            told_all: false,
            quiet: args.quiet,
            desk,
            stopped: false,
        }))
    }

    fn watch(&mut self, agent: &mut Agent, over: &dyn Fn() -> bool) -> Result<()> {
        let mut progress = Progress::new(self.quiet);
        let (mut pause, mut asked) = (SHORTEST, Instant::now());
        while !over() && !self.stopped && !self.trace.is_full() && !agent.has_gone() {
            self.attend();
            let before = self.trace.events;
            self.recorder.take(&mut [&mut self.trace])?;
            let came = self.trace.events != before;
            if !self.trace.is_behind {
                pause = if came { SHORTEST } else { (pause * 2).min(LONGEST) };
                std::thread::sleep(pause);
            }
            if asked.elapsed() >= SECOND {
                asked = Instant::now();
                let Ok(Some(status)) = agent.status().map(|status| status.exact().cloned()) else {
                    break;
                };
                self.trace.status = status;
                progress.show(&self.trace, self.began);
            }
        }
        Ok(())
    }

    fn end(&mut self, agent: &mut Agent) -> bool {
        if let Ok(Some(status)) = agent.status().map(|status| status.exact().cloned()) {
            self.trace.status = status;
            self.told_all = true;
        }
        weaving::stop(agent, self.quiet).is_ok()
    }

    fn keep(self, watched: Result<()>) -> Result<Kept> {
        let TraceSession { mut trace, recorder, files, wanted, told_all, quiet, desk, .. } = self;
        trace.over = true;
        let finished = recorder.finish(&mut [&mut trace]);
        watched?;
        let recorded = finished?;
        let status = &trace.status;
        let methods = match told_all {
            true => status.methods,
            false => status.methods.max(trace.methods()?),
        };
        let kept = match trace.events == 0 && trace.dropped() == 0 {
            true => Kept::Nothing(wanted.but_nothing(methods, status.refused.len())),
            false => Kept::Something,
        };
        if quiet {
            files.complete(recorded.size)?;
            desk.into_iter().for_each(Desk::complete);
            return Ok(kept);
        }
        let profile = source::load(&recorded.path, None)?;
        let is_recording = files.export.is_none();
        let (path, size) = files.complete(recorded.size)?;
        desk.into_iter().for_each(Desk::complete);
        let what = format!(
            "{} entries and exits of {}, {} woven; {} KiB",
            term::count(trace.events),
            several(trace.threads(), "thread"),
            several(methods, "method"),
            size.div_ceil(1024),
        );
        headline(&path, &what);
        if told_all {
            say_weaving(status);
        }
        if trace.dropped() > 0 {
            remark(&format!(
                "{} more came quicker than they could be taken, or than --rate allows; the recording \
                 says of which threads and when",
                term::count(trace.dropped()),
            ));
        }
        if let Some(waited) = trace.waited() {
            remark(&format!(
                "threads waited {} in all for room in their rings (--wait), which is kept out of the times",
                term::time(waited),
            ));
        }
        // What went into another tool's file is what there is of it.
        if is_recording && trace.events > 0 {
            outln!(
                "{DIM}a timeline: tare export {} -o {}, for ui.perfetto.dev{DIM:#}",
                report::quoted(&path),
                report::quoted(&path.with_extension("trace.json")),
            );
        }
        term::printed(report::page(&profile, &path))?;
        Ok(kept)
    }
}

impl TraceSession {
    /// Carries out what a second terminal asks for.
    fn attend(&mut self) {
        let Some(desk) = self.desk.take() else { return };
        desk.serve(|order| match order {
            Order::Dump(file) => self.dump(file),
            Order::Stop => {
                self.stopped = true;
                let path = std::path::absolute(self.files.result())?;
                Ok(format!("stopped; the trace is in {}", path.display()))
            }
            Order::Pause | Order::Resume | Order::Interval(_) => {
                bail!("a trace takes no such orders: it has every event or ends")
            }
        });
        self.desk = Some(desk);
    }

    /// Copies what the file has by now. Nobody drains the rings meanwhile, so a long one is refused; it
    /// can be read where it is.
    fn dump(&mut self, file: File) -> Result<String> {
        self.recorder.write_now(&mut [&mut self.trace])?;
        let recording = std::path::absolute(&self.files.recording)?;
        let mut from = File::open(&recording)?;
        if from.metadata()?.len() > MOST_COPIED {
            bail!(
                "the trace grows in {}; `tare report {}` reads it at any time",
                recording.display(),
                report::quoted(&recording),
            );
        }
        let size = std::io::copy(&mut from, &mut desk::emptied(file, &recording)?)?;
        Ok(format!("{} KiB", size.div_ceil(1024)))
    }
}

/// A line on the terminal, if there is one, that says how the trace goes.
struct Progress {
    terminal: bool,
    events: u64,
    at: Instant,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        Progress { terminal: term::shows_progress(quiet), events: 0, at: Instant::now() }
    }

    fn show(&mut self, trace: &Trace, began: Instant) {
        if !self.terminal {
            return;
        }
        let rate = (trace.events - self.events) as f64 / self.at.elapsed().as_secs_f64().max(1e-9);
        (self.events, self.at) = (trace.events, Instant::now());
        term::progress(&format!(
            "{:>6.1} s  {} woven  {}, {}/s  {} dropped",
            began.elapsed().as_secs_f64(),
            several(trace.status.methods, "method"),
            roughly(trace.events, "event"),
            term::count(rate as u64),
            term::count(trace.dropped()),
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            term::progress("");
        }
    }
}
