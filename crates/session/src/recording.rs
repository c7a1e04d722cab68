//! A recording under way: what is the same whatever is recorded. It ends by its time, by a wish of
//! the front end, by a command from elsewhere, or with the JVM.

use crate::client::Agent;
use crate::command_socket::{Command, CommandSocket, Waiting};
use crate::engines::{self, Beginning, Finished, Part, Running, Step};
use crate::error::{Error, Result};
use crate::observer::{Happening, Note, Observer, Progress};
use crate::plan::{Place, Plan};
use crate::words;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::BatchProgress;

/// How a recording began.
pub enum Begun<'a> {
    Recording(Recording<'a>),
    /// The observer wanted it to end before; everything is as it was. How many classes were woven
    /// by then, if any.
    Stopped(Option<BatchProgress>),
}

/// How a recording goes.
pub enum State {
    Going,
    /// The figures of another second.
    Progress(Progress),
    /// It is to be finished now.
    Over,
}

/// A recording under way. To be polled without long pauses, since what is measured waits in memory
/// of limited size, and to be finished: one that is dropped leaves what is in its file so far, and
/// the JVM is put back as it was when the agent's connection ends.
pub struct Recording<'a> {
    agent: &'a mut Agent,
    running: Box<dyn Running>,
    socket: Option<CommandSocket>,
    result: Option<PathBuf>,
    began: Instant,
    length: Option<Duration>,
    stopped: bool,
    over: bool,
    failed: Option<Error>,
}

/// The end of a recording.
pub struct End {
    /// Whether the JVM still lives.
    pub alive: bool,
    pub finished: Result<Finished>,
    /// Who had the recording stopped; they are told when this is given leave.
    pub waiting: Waiting,
}

/// Begins what a plan says in a JVM whose agent is at hand. `place` is asked once, when nothing but
/// the JVM can refuse any more, so that no name of a file is taken in vain.
pub fn begin<'a>(
    agent: &'a mut Agent,
    jvm: &Jvm,
    plan: &Plan,
    place: &mut dyn FnMut() -> Place,
    observer: &mut dyn Observer,
) -> Result<Begun<'a>> {
    // Others may hold us up here, so it comes before the JVM is touched. Without it the recording
    // is made as well.
    let socket = plan.what.engine().makes_recording().then(|| CommandSocket::open(jvm));
    let socket = match socket.transpose() {
        Ok(socket) => socket,
        Err(error) => {
            observer.note(Note::Alarm(format!(
                "this recording cannot be stopped, dumped or paused from a second terminal: {error:#}"
            )));
            None
        }
    };
    begin_with(socket, agent, jvm, plan, place, observer)
}

/// The same beside another recording of the same front end, which alone listens for commands of
/// other processes.
pub fn begin_beside<'a>(
    agent: &'a mut Agent,
    jvm: &Jvm,
    plan: &Plan,
    place: &mut dyn FnMut() -> Place,
    observer: &mut dyn Observer,
) -> Result<Begun<'a>> {
    begin_with(None, agent, jvm, plan, place, observer)
}

fn begin_with<'a>(
    socket: Option<CommandSocket>,
    agent: &'a mut Agent,
    jvm: &Jvm,
    plan: &Plan,
    place: &mut dyn FnMut() -> Place,
    observer: &mut dyn Observer,
) -> Result<Begun<'a>> {
    let engine = plan.what.engine();
    let mut result = None;
    let mut place = || {
        let place = place();
        result.clone_from(&place.result);
        place
    };
    let beginning = Beginning { agent, jvm, plan, place: &mut place, observer };
    match engine.begin(beginning)? {
        engines::Begun::Stopped(far) => Ok(Begun::Stopped(far)),
        engines::Begun::Running(running) => Ok(Begun::Recording(Recording {
            agent,
            running,
            socket,
            result,
            began: Instant::now(),
            length: plan.duration,
            stopped: false,
            over: false,
            failed: None,
        })),
    }
}

impl Recording<'_> {
    /// Does what is due, carries out a command if one has come, and waits for some milliseconds.
    /// What goes wrong ends the recording; [`Recording::finish`] tells of it.
    pub fn poll(&mut self, observer: &mut dyn Observer) -> State {
        let mut timed = Timed { until: self.length.map(|length| self.began + length), observer };
        if self.is_over() || timed.wants_end() {
            return State::Over;
        }
        self.serve();
        match self.running.step(self.agent, &mut timed) {
            Ok(Step::Going) => State::Going,
            Ok(Step::Told(figures, elapsed)) => State::Progress(Progress { elapsed, figures }),
            Ok(Step::Over) => {
                self.over = true;
                State::Over
            }
            Err(error) => {
                self.failed = Some(error);
                State::Over
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stopped || self.over || self.failed.is_some() || self.agent.has_gone()
    }

    /// Carries out a command; a sentence that answers it.
    pub fn command(&mut self, command: Command) -> Result<String> {
        let Command::Stop = command else { return self.running.command(self.agent, command) };
        self.stopped = true;
        let Some(result) = &self.result else { return Ok("stopped".to_owned()) };
        // Whoever reads it may be somewhere else.
        let path = std::path::absolute(result)?;
        Ok(format!("stopped; the recording is in {}", path.display()))
    }

    /// Switches a part of the recording on or off; what was recorded of it stays.
    pub fn switch(&mut self, part: Part, on: bool) -> Result<()> {
        self.running.switch(self.agent, part, on)
    }

    /// The parts that can be switched, and whether each is on.
    pub fn parts(&self) -> Vec<(Part, bool)> {
        self.running.parts()
    }

    /// One of those that wait at the socket.
    fn serve(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        socket.serve(|command| self.command(command));
        self.socket = Some(socket);
    }

    /// Where the result will be.
    pub fn result(&self) -> Option<&Path> {
        self.result.as_deref()
    }

    /// Has the JVM put back as it was, and completes the file.
    pub fn finish(mut self, observer: &mut dyn Observer) -> End {
        let passed = self.began.elapsed();
        if let Some(length) = self.length.filter(|length| passed < *length)
            && self.agent.has_gone()
        {
            observer.note(Note::Warning(format!(
                "the JVM ended after {}; -d asked for {}",
                words::time(passed),
                words::time(length),
            )));
        }
        let alive = self.running.end(self.agent, observer);
        let finished = self.running.finish(self.failed);
        End { alive, finished, waiting: Waiting::at(self.socket) }
    }
}

/// An observer for whom time may be over.
struct Timed<'a> {
    until: Option<Instant>,
    observer: &'a mut dyn Observer,
}

impl Observer for Timed<'_> {
    fn note(&mut self, note: Note) {
        self.observer.note(note);
    }

    fn happening(&mut self, what: &Happening) {
        self.observer.happening(what);
    }

    fn wants_end(&self) -> bool {
        self.observer.wants_end() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
