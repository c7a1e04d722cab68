//! The two long moments of an exact recording, in which classes are woven and restored: what the terminal
//! says meanwhile, and Ctrl-C, which is heard between two batches of classes.

use crate::figures::{grouped, remark_aside, several};
use crate::term::{self, plain};
use anyhow::{Result, bail};
use std::fs::File;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_protocol::{
    Activity, EngineChange, EngineName, EnginePlan, ExactPlan, Progress, Request, Response,
};
use tare_session::client::{Agent, Answered, Turn, Watch, inside};

/// How long one batch of classes may take on a busy machine.
pub const WEAVING: Duration = Duration::from_secs(60);

/// What is over sooner is not worth a word where there is no terminal.
const SOON: Duration = Duration::from_secs(1);

/// A batch that takes longer than this is worth one of its own.
const LONG: Duration = Duration::from_secs(3);

/// How a recording began.
pub enum Begun<const N: usize> {
    /// All is woven; the descriptors of its memory.
    Woven([File; N]),
    /// Ctrl-C came before; everything is as it was.
    Stopped,
}

/// Has the agent weave what a plan says.
pub fn start<const N: usize>(
    agent: &mut Agent,
    plan: ExactPlan,
    stop: &AtomicBool,
    quiet: bool,
) -> Result<Begun<N>> {
    let mut watch = Weaving::new(Some(stop), quiet);
    let begun = start_watched(agent, plan, &mut watch)?;
    if matches!(begun, Begun::Stopped) {
        let far = watch.woven.map_or_else(String::new, |woven| {
            let all = several(woven.all, "class");
            format!(" with {} of {all} woven", woven.done)
        });
        remark_aside(&format!(
            "stopped{far}; the program's code is as it was, and nothing was recorded"
        ));
    }
    Ok(begun)
}

/// The same for a trial before the recording, of whose end nothing is said.
pub fn start_trial<const N: usize>(
    agent: &mut Agent,
    plan: ExactPlan,
    stop: &AtomicBool,
    quiet: bool,
) -> Result<Begun<N>> {
    start_watched(agent, plan, &mut Weaving::new(Some(stop), quiet))
}

fn start_watched<const N: usize>(
    agent: &mut Agent,
    plan: ExactPlan,
    watch: &mut Weaving<'_>,
) -> Result<Begun<N>> {
    let start = Request::Start(EnginePlan::Exact(Box::new(plan)));
    let answered = agent.patiently(WEAVING, |agent| agent.ask_watched(&start, watch));
    watch.clear();
    match answered? {
        Answered::With(Response::Ok) => Ok(Begun::Woven(agent.files_for(&start)?)),
        Answered::With(Response::Error { message, .. }) => bail!("{}", plain(&message)),
        Answered::Stopped => Ok(Begun::Stopped),
        _ => bail!("the agent gave an answer to another question"),
    }
}

/// Has some methods woven anew in a recording under way. Whoever wants it to end is not kept waiting:
/// the agent hears of the end between two batches.
pub fn demote(
    agent: &mut Agent,
    ids: Vec<u32>,
    over: &dyn Fn() -> bool,
    quiet: bool,
) -> Result<()> {
    let mut watch = Weaving::new(None, quiet);
    watch.over = Some(over);
    let demote = Request::Change(EngineChange::Exact { demote: ids });
    let answered = agent.patiently(WEAVING, |agent| agent.ask_watched(&demote, &mut watch));
    watch.clear();
    match answered? {
        Answered::With(Response::Ok) | Answered::Later => Ok(()),
        Answered::With(Response::Error { message, .. }) => bail!("{}", plain(&message)),
        _ => bail!("the agent gave an answer to another question"),
    }
}

/// Has it restore everything.
pub fn stop(agent: &mut Agent, quiet: bool) -> Result<()> {
    let mut watch = Weaving::new(None, quiet);
    let answered =
        agent.patiently(WEAVING, |a| a.ask_watched(&Request::Stop(EngineName::Exact), &mut watch));
    watch.clear();
    match answered? {
        Answered::With(Response::Ok) => Ok(()),
        Answered::With(Response::Error { message, .. }) => bail!("{}", plain(&message)),
        _ => bail!("the agent gave an answer to another question"),
    }
}

struct Weaving<'a> {
    stop: Option<&'a AtomicBool>,
    /// Whether nobody wants to wait any more.
    over: Option<&'a dyn Fn() -> bool>,
    terminal: bool,
    quiet: bool,
    began: Instant,
    last: Option<Progress>,
    /// The last before anything was restored.
    woven: Option<Progress>,
    /// When the batch under way began.
    batch: Instant,
    /// What was said where there is no terminal: of which activity, and of a batch that takes long.
    said: Option<Activity>,
    said_long: bool,
    said_stop: bool,
    shown: bool,
}

impl<'a> Weaving<'a> {
    fn new(stop: Option<&'a AtomicBool>, quiet: bool) -> Self {
        let now = Instant::now();
        Weaving {
            stop,
            over: None,
            terminal: std::io::stderr().is_terminal(),
            quiet,
            began: now,
            last: None,
            woven: None,
            batch: now,
            said: None,
            said_long: false,
            said_stop: false,
            shown: false,
        }
    }

    fn is_to_stop(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn say(&mut self) {
        if self.quiet {
            return;
        }
        let Some(last) = self.last else {
            if self.terminal {
                self.shown = true;
                term::progress(&before(self.began.elapsed(), self.is_to_stop()));
            }
            return;
        };
        let (long, stops) = (self.batch.elapsed() > LONG, self.is_to_stop());
        if self.terminal {
            self.shown = true;
            term::progress(&line(&last, self.began.elapsed(), long, stops));
            return;
        }
        if self.said != Some(last.activity) && self.began.elapsed() > SOON {
            self.said = Some(last.activity);
            let classes = several(last.all, "class");
            remark_aside(&format!("{} {classes}", verb(last.activity)));
        }
        if stops && !self.said_stop {
            self.said_stop = true;
            let classes = several(last.now, "class");
            remark_aside(&format!("stops as soon as the JVM is done with {classes}"));
        }
        if long && !self.said_long {
            self.said_long = true;
            remark_aside(&format!("the agent does not answer; {}", inside(&last)));
        }
    }

    /// Takes the line from the terminal.
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            term::progress("");
        }
    }
}

impl Watch for Weaving<'_> {
    fn told(&mut self, progress: &Progress) {
        self.last = Some(*progress);
        if progress.activity == Activity::Weaving {
            self.woven = self.last;
        }
        self.batch = Instant::now();
        self.said_long = false;
        self.say();
    }

    fn turn(&mut self) -> Turn {
        self.say();
        match () {
            () if self.over.is_some_and(|over| over()) => Turn::Leave,
            () if self.is_to_stop() => Turn::Stop,
            () => Turn::Wait,
        }
    }

    fn given_up(&self, patience: Duration) -> String {
        let patience = patience.as_secs_f64();
        match &self.last {
            Some(last) => format!(
                "the agent did not answer within {patience:.1} s: {}. Once the JVM lets it, it restores the \
                 program's code by itself; `tare detach JVM` says how far it is, `--exclude` spares classes that \
                 take long",
                inside(last)
            ),
            None => format!(
                "the agent did not answer within {patience:.1} s; the JVM may be stopped, or stuck on its \
                 way to a safepoint (`--timeout` waits longer)"
            ),
        }
    }
}

fn verb(activity: Activity) -> &'static str {
    match activity {
        Activity::Weaving => "weaving",
        Activity::Renewing => "loading again, because they call intrinsic methods that are woven,",
        Activity::Restoring => "restoring",
    }
}

/// The line on a terminal before the first batch, while the agent looks at the classes and measures
/// what its probes take.
fn before(time: Duration, stops: bool) -> String {
    let rest = if stops { "stops as soon as the agent hears of it" } else { "Ctrl-C stops it" };
    format!("{:>6.1} s  the agent gets ready; {rest}", time.as_secs_f64())
}

/// The line on a terminal.
fn line(last: &Progress, time: Duration, long: bool, stops: bool) -> String {
    let done = grouped(i64::try_from(last.done).unwrap_or(i64::MAX));
    let (all, time) = (several(last.all, "class"), time.as_secs_f64());
    let mut line = format!("{time:>6.1} s  {} {done} of {all}", verb(last.activity));
    if last.activity == Activity::Weaving {
        line += &format!(", {}", several(last.methods, "method"));
    }
    if stops {
        line += "; stops after this batch";
    } else if last.activity != Activity::Restoring {
        line += "; Ctrl-C stops it";
    }
    if long {
        line += &format!("; the JVM takes long over {} of them", last.now);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_going_on() {
        let weaving =
            Progress { done: 64, now: 128, all: 2310, methods: 900, ..Default::default() };
        let second = Duration::from_secs(1);
        assert_eq!(
            line(&weaving, second, false, false),
            "   1.0 s  weaving 64 of 2,310 classes, 900 methods; Ctrl-C stops it"
        );
        let one = Progress { done: 0, all: 1, methods: 1, ..weaving };
        assert_eq!(
            line(&one, second, false, false),
            "   1.0 s  weaving 0 of 1 class, 1 method; Ctrl-C stops it"
        );
        let restoring = Progress { activity: Activity::Restoring, ..weaving };
        assert_eq!(
            line(&restoring, second, true, true),
            "   1.0 s  restoring 64 of 2,310 classes; stops after this batch; the JVM takes long over 128 \
             of them"
        );
    }
}
