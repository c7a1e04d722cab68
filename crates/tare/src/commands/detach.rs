//! `tare detach`: every agent of ours leaves the JVM, whatever its version.

use crate::cli::Target;
use crate::client::{self, Agent, Answered, Turn, Watch, inside};
use crate::term::plain;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::{Progress, Request, Response};

/// How often one looks whether it is done.
const STEP: Duration = Duration::from_millis(2);

pub fn run(target: &Target) -> Result<()> {
    let jvm = tare_attach::find(&target.jvm)?;
    let patience = target.patience.timeout;
    let name = plain(jvm.name());
    let agents = client::agents(&jvm, patience)?;
    if agents.is_empty() && tare_attach::has_control_thread(jvm.pid) {
        // An agent that was sent away before has no socket any more, but may have much to restore.
        wait_for_threads(&jvm, patience)?;
        outln!("Detached from JVM {} ({name}): an agent was leaving, and is gone.", jvm.pid);
        return Ok(());
    }
    if agents.is_empty() {
        outln!("JVM {} ({name}) holds no active agent; there is nothing to do.", jvm.pid);
        return Ok(());
    }
    for mut agent in agents {
        send_away(&mut agent, &jvm)?;
        outln!(
            "Detached from JVM {} ({name}): the agent of tare {} is gone.",
            jvm.pid,
            plain(&agent.greeting.version)
        );
    }
    wait_for_threads(&jvm, patience)
}

/// Has an agent leave, however long that takes, as long as it can be seen that it goes on.
pub fn send_away(agent: &mut Agent, jvm: &Jvm) -> Result<()> {
    match agent.ask_watched(&Request::Detach, &mut Leaving { pid: jvm.pid, last: None })? {
        Answered::With(Response::Ok) => Ok(()),
        Answered::With(Response::Error { message, .. }) => {
            bail!("the agent did not leave: {message}")
        }
        _ => bail!("the agent gave an answer to another question"),
    }
}

/// Looks from outside how an agent goes on that answers nobody.
struct Leaving {
    pid: u32,
    last: Option<Progress>,
}

impl Leaving {
    /// Whether it went on since the last look.
    fn look(&mut self) -> bool {
        let now = tare_attach::progress(self.pid);
        let moved = now.is_some() && now != self.last;
        self.last = now.or(self.last);
        moved
    }

    fn still_there(&self, patience: Duration) -> String {
        let doing = self.last.as_ref().map_or_else(
            || "the JVM may be stopped, or stuck on its way to a safepoint".to_owned(),
            inside,
        );
        format!(
            "the agent has not left JVM {} after {:.1} s; {doing}. It leaves by itself as soon as the JVM \
             lets it; `--timeout` waits longer",
            self.pid,
            patience.as_secs_f64()
        )
    }
}

impl Watch for Leaving {
    fn told(&mut self, _: &Progress) {}

    fn turn(&mut self) -> Turn {
        if self.look() { Turn::Moves } else { Turn::Wait }
    }

    fn given_up(&self, patience: Duration) -> String {
        self.still_there(patience)
    }
}

/// The agent's answer is its last act, but its thread still has to return; whoever counts threads
/// after us must not meet it.
pub fn wait_for_threads(jvm: &Jvm, patience: Duration) -> Result<()> {
    let mut leaving = Leaving { pid: jvm.pid, last: None };
    let mut deadline = Instant::now() + patience;
    while tare_attach::has_control_thread(jvm.pid) {
        if leaving.look() {
            deadline = Instant::now() + patience;
        }
        if Instant::now() > deadline {
            bail!(leaving.still_there(patience));
        }
        std::thread::sleep(STEP);
    }
    Ok(())
}
