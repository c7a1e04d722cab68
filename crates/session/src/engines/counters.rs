//! Events that the agent counts of the whole JVM: threads, classes, compilations, collections. They
//! are figures to look at while they change, and make no recording.
//!
//! The smallest engine there is, and so the example for a new one.

use super::{Beginning, Begun, Engine, Finished, Running, Step};
use crate::client::Agent;
use crate::command_socket::Command;
use crate::error::{Error, Result, refuse};
use crate::launch::Settings;
use crate::observer::Observer;
use std::time::{Duration, Instant};
use tare_protocol::{EngineName, EnginePlan, EventCounts, Request};

/// How often the agent is asked.
#[derive(Clone, Debug)]
pub struct Plan {
    pub every: Duration,
}

/// What there is, and what was counted since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub threads: u32,
    pub classes: u32,
    pub counts: EventCounts,
}

/// Nothing is left of it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome;

struct Counting {
    every: Duration,
    began: Instant,
    due: Instant,
}

impl Engine for Plan {
    fn name(&self) -> String {
        "counters".to_owned()
    }

    fn settings(&self) -> Settings {
        Settings::default()
    }

    fn makes_recording(&self) -> bool {
        false
    }

    fn begin(&self, beginning: Beginning<'_>) -> Result<Begun> {
        beginning.agent.tell(&Request::Start(EnginePlan::Counters))?;
        let (every, began) = (self.every, Instant::now());
        Ok(Begun::Running(Box::new(Counting { every, began, due: began + every })))
    }
}

impl Running for Counting {
    fn step(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> Result<Step> {
        let left = self.due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left.min(super::STEP));
            return Ok(Step::Going);
        }
        self.due = Instant::now() + self.every;
        let status = agent.status()?;
        let counts = status.counters().copied().unwrap_or_default();
        let figures = Figures { threads: status.threads, classes: status.classes, counts };
        Ok(Step::Told(super::Figures::Counters(figures), self.began.elapsed()))
    }

    fn command(&mut self, _: &mut Agent, _: Command) -> Result<String> {
        refuse!("counters take no commands: nothing is recorded")
    }

    fn end(&mut self, agent: &mut Agent, _: &mut dyn Observer) -> bool {
        agent.tell(&Request::Stop(EngineName::Counters)).is_ok()
    }

    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished> {
        match failed {
            Some(error) => Err(error),
            None => {
                let outcome = super::Outcome::Counters(Box::new(Outcome));
                Ok(Finished { recorded: None, nothing: None, outcome })
            }
        }
    }
}
