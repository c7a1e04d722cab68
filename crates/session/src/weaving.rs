//! The two long moments of an exact recording, in which classes are woven and restored. Who watches
//! is told of them several times a second, and may end the first one between two batches of
//! classes.

use crate::client::{Agent, Answered, Turn, Watch, inside, unanswered};
use crate::error::{Error, Result};
use crate::observer::{self, Happening, Observer};
use crate::words::plain;
use std::fs::File;
use std::time::{Duration, Instant};
use tare_protocol::{
    Activity, BatchProgress, EngineChange, EngineName, EnginePlan, ExactPlan, Request, Response,
};

/// How long one batch of classes may take on a busy machine.
const WEAVING: Duration = Duration::from_secs(60);

/// A batch that takes longer than this is worth a word of its own.
const LONG: Duration = Duration::from_secs(3);

/// How a recording began.
pub enum Begun<const N: usize> {
    /// All is woven; the descriptors of its memory.
    Woven([File; N]),
    /// It was not wanted any more; everything is as it was. How far it had come.
    Stopped(Option<BatchProgress>),
}

/// Has the agent weave what a plan says.
pub fn start<const N: usize>(
    agent: &mut Agent,
    plan: ExactPlan,
    observer: &mut dyn Observer,
) -> Result<Begun<N>> {
    let start = Request::Start(EnginePlan::Exact(Box::new(plan)));
    let mut watch = Weaving::new(observer, Unwanted::Stop);
    let answered = agent.patiently(WEAVING, |agent| agent.ask_watched(&start, &mut watch));
    let woven = watch.done();
    match answered? {
        Answered::With(Response::Ok) => Ok(Begun::Woven(agent.files_for(&start)?)),
        Answered::Stopped => Ok(Begun::Stopped(woven)),
        other => Err(refused(other)),
    }
}

/// Has some methods woven anew in a recording under way. Whoever wants it to end is not kept
/// waiting: the agent hears of the end between two batches.
pub fn change(agent: &mut Agent, change: EngineChange, observer: &mut dyn Observer) -> Result<()> {
    let change = Request::Change(change);
    let mut watch = Weaving::new(observer, Unwanted::Leave);
    let answered = agent.patiently(WEAVING, |agent| agent.ask_watched(&change, &mut watch));
    watch.done();
    match answered? {
        Answered::With(Response::Ok) | Answered::Later => Ok(()),
        other => Err(refused(other)),
    }
}

/// Has an engine that weaves restore everything, however long that takes.
pub fn stop(agent: &mut Agent, engine: EngineName, observer: &mut dyn Observer) -> Result<()> {
    let mut watch = Weaving::new(observer, Unwanted::Wait);
    let stop = Request::Stop(engine);
    let answered = agent.patiently(WEAVING, |agent| agent.ask_watched(&stop, &mut watch));
    watch.done();
    match answered? {
        Answered::With(Response::Ok) => Ok(()),
        other => Err(refused(other)),
    }
}

fn refused(answered: Answered) -> Error {
    match answered {
        Answered::With(Response::Error { message, .. }) => {
            Error::Agent(plain(&message).into_owned())
        }
        _ => Error::another_question(),
    }
}

/// What becomes of it if the observer does not want it any more.
#[derive(Clone, Copy, PartialEq)]
enum Unwanted {
    Stop,
    Leave,
    Wait,
}

struct Weaving<'a> {
    observer: &'a mut dyn Observer,
    unwanted: Unwanted,
    began: Instant,
    last: Option<BatchProgress>,
    /// The last before anything was restored.
    woven: Option<BatchProgress>,
    /// When the batch under way began.
    batch: Instant,
}

impl<'a> Weaving<'a> {
    fn new(observer: &'a mut dyn Observer, unwanted: Unwanted) -> Self {
        let now = Instant::now();
        Weaving { observer, unwanted, began: now, last: None, woven: None, batch: now }
    }

    fn tell(&mut self) {
        let now = observer::Weaving {
            elapsed: self.began.elapsed(),
            batches: self.last,
            is_long: self.batch.elapsed() > LONG,
            stops: self.unwanted == Unwanted::Stop && self.observer.wants_end(),
        };
        self.observer.happening(&Happening::Weaving(now));
    }

    /// How far the weaving had come.
    fn done(self) -> Option<BatchProgress> {
        self.observer.happening(&Happening::Nothing);
        self.woven
    }
}

impl Watch for Weaving<'_> {
    fn told(&mut self, progress: &BatchProgress) {
        self.last = Some(*progress);
        if progress.activity == Activity::Weaving {
            self.woven = self.last;
        }
        self.batch = Instant::now();
        self.tell();
    }

    fn turn(&mut self) -> Turn {
        self.tell();
        match self.unwanted {
            Unwanted::Stop if self.observer.wants_end() => Turn::Stop,
            Unwanted::Leave if self.observer.wants_end() => Turn::Leave,
            _ => Turn::Wait,
        }
    }

    fn given_up(&self, patience: Duration) -> String {
        match &self.last {
            Some(last) => format!(
                "the agent did not answer within {:.1} s: {}. As soon as the JVM lets it, it restores the \
                 original code by itself; `tare detach JVM` shows how far it is, and `--exclude` leaves out \
                 classes that take long",
                patience.as_secs_f64(),
                inside(last)
            ),
            None => unanswered(patience),
        }
    }
}
