//! Bringing the agent into a JVM, and having it leave.

use crate::client::{self, Agent, Answered, Found, Turn, Watch, inside};
use crate::error::{Error, Result, refuse};
use crate::library;
use crate::words::plain;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::{AgentOptions, BatchProgress, ErrorCode, Request, Response};

/// How often one looks whether it is gone.
const STEP: Duration = Duration::from_millis(2);

/// An agent that goes on is waited for no longer than this: that it does is told by memory in which
/// the JVM's owner can write what they like.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The agent in the JVM, attached now if it is not there. With `grace` such a one stays for so long
/// while nobody talks to it.
pub fn enter(jvm: &Jvm, patience: Duration, grace: Option<Duration>) -> Result<Agent> {
    match present(jvm, patience)? {
        Some(agent) => Ok(agent),
        None => attach(jvm, patience, grace),
    }
}

/// The agent that is there already; one of another version is an error.
pub fn present(jvm: &Jvm, patience: Duration) -> Result<Option<Agent>> {
    match client::find(jvm, patience)? {
        Found::Ours(agent) => Ok(Some(agent)),
        Found::None => Ok(None),
        Found::Other(agent) => refuse!(
            "JVM {} already has the agent of tare {} (build {}) loaded; this is tare {} (build {}). \
             Use that version, or remove its agent first: tare detach {}",
            jvm.pid,
            plain(&agent.greeting.version),
            plain(&agent.greeting.build),
            tare_protocol::VERSION,
            tare_protocol::BUILD_ID,
            jvm.pid
        ),
    }
}

/// Brings the agent into a JVM that has none.
pub fn attach(jvm: &Jvm, patience: Duration, grace: Option<Duration>) -> Result<Agent> {
    let library = library::locate()?;
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1);
    let options = AgentOptions { grace: grace.map(seconds), ..AgentOptions::default() };
    tare_attach::load_agent(jvm, &library, &options.to_string(), patience, &mut |_| {})?;
    match client::find(jvm, patience)? {
        Found::Ours(agent) => Ok(agent),
        _ => {
            refuse!(
                "the JVM reports that it loaded the agent, but the agent's control socket is not there"
            )
        }
    }
}

/// Has an agent leave, as long as it can be seen that it goes on and nobody wants to `stop`
/// waiting.
pub fn send_away(agent: &mut Agent, jvm: &Jvm, stop: &AtomicBool) -> Result<()> {
    match agent.ask_watched(&Request::Detach, &mut Leaving::new(jvm.pid, stop))? {
        Answered::With(Response::Ok) => Ok(()),
        Answered::With(Response::Error { message, .. }) => {
            Err(Error::Agent(format!("the agent did not leave: {}", plain(&message))))
        }
        _ => Err(Error::another_question()),
    }
}

/// Has an agent leave that this front end has brought, unless others talk to it meanwhile: then it
/// stays with them, and leaves by itself when they have gone. Whether it has left.
pub fn leave(agent: &mut Agent, jvm: &Jvm, stop: &AtomicBool) -> Result<bool> {
    match agent.ask_watched(&Request::Leave, &mut Leaving::new(jvm.pid, stop))? {
        Answered::With(Response::Ok) => Ok(true),
        Answered::With(Response::Error { code: ErrorCode::Others, .. }) => Ok(false),
        Answered::With(Response::Error { message, .. }) => {
            Err(Error::Agent(format!("the agent did not leave: {}", plain(&message))))
        }
        _ => Err(Error::another_question()),
    }
}

/// Looks from outside how an agent goes on that answers nobody.
struct Leaving<'a> {
    pid: u32,
    last: Option<BatchProgress>,
    began: Instant,
    longest: Duration,
    stop: &'a AtomicBool,
}

impl<'a> Leaving<'a> {
    fn new(pid: u32, stop: &'a AtomicBool) -> Self {
        Leaving { pid, last: None, began: Instant::now(), longest: LONGEST, stop }
    }

    /// Whether it went on since the last look.
    fn look(&mut self) -> bool {
        self.went_on(tare_attach::progress(self.pid))
    }

    fn went_on(&mut self, now: Option<BatchProgress>) -> bool {
        let moved = now.is_some() && now != self.last;
        self.last = now.or(self.last);
        moved
    }

    /// Whether nothing is waited for any more, even if it goes on.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.began.elapsed() >= self.longest
    }

    fn still_there(&self, patience: Duration) -> String {
        let doing = self.last.as_ref().map_or_else(
            || "the JVM may be stopped (SIGSTOP), or cannot reach a safepoint".to_owned(),
            inside,
        );
        let waits = match self.is_over() {
            true => "`tare detach` waits for it",
            false => "`--timeout` waits longer",
        };
        let after = if self.is_over() { self.began.elapsed() } else { patience };
        format!(
            "the agent has not left JVM {} after {:.1} s: {doing}. It will leave by itself as soon as the \
             JVM lets it; {waits}",
            self.pid,
            after.as_secs_f64()
        )
    }
}

impl Watch for Leaving<'_> {
    fn told(&mut self, _: &BatchProgress) {}

    fn turn(&mut self) -> Turn {
        match () {
            () if self.is_over() => Turn::GiveUp,
            () if self.look() => Turn::Moves,
            () => Turn::Wait,
        }
    }

    fn given_up(&self, patience: Duration) -> String {
        self.still_there(patience)
    }
}

/// The agent's answer is its last act, but its thread still has to return; whoever counts threads
/// after us must not meet it.
pub fn wait_for_threads(jvm: &Jvm, patience: Duration, stop: &AtomicBool) -> Result<()> {
    let mut leaving = Leaving::new(jvm.pid, stop);
    let is_there = || tare_attach::has_control_thread(jvm.pid);
    wait(&mut leaving, patience, is_there, Leaving::look)
}

fn wait<'a>(
    leaving: &mut Leaving<'a>,
    patience: Duration,
    is_there: impl Fn() -> bool,
    mut look: impl FnMut(&mut Leaving<'a>) -> bool,
) -> Result<()> {
    let mut deadline = Instant::now() + patience;
    while is_there() {
        if look(leaving) {
            deadline = Instant::now() + patience;
        }
        if leaving.is_over() || Instant::now() > deadline {
            return Err(Error::Silent(leaving.still_there(patience)));
        }
        std::thread::sleep(STEP);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A JVM whose agent never leaves, and always seems to go on.
    fn for_ever<'a>(leaving: &mut Leaving<'a>, each: impl Fn(u64)) -> String {
        let mut done = 0;
        let look = |leaving: &mut Leaving<'a>| {
            done += 1;
            each(done);
            leaving.went_on(Some(BatchProgress { done, ..BatchProgress::default() }))
        };
        wait(leaving, Duration::from_secs(3600), || true, look).unwrap_err().to_string()
    }

    #[test]
    fn an_agent_that_seems_to_go_on_is_not_waited_for_for_ever() {
        let stop = AtomicBool::new(false);
        let mut leaving = Leaving::new(7, &stop);
        leaving.longest = Duration::from_millis(50);
        let error = for_ever(&mut leaving, |_| {});
        assert!(error.contains("has not left JVM 7"), "{error}");
        assert!(matches!(leaving.turn(), Turn::GiveUp));
    }

    #[test]
    fn ctrl_c_ends_the_waiting() {
        let stop = AtomicBool::new(false);
        let mut leaving = Leaving::new(7, &stop);
        let error = for_ever(&mut leaving, |done| stop.store(done == 3, Ordering::Relaxed));
        assert!(error.contains("leave by itself"), "{error}");
        assert!(matches!(leaving.turn(), Turn::GiveUp));
    }
}
