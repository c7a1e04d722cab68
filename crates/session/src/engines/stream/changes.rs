//! What can be changed of a recording of the stream while it goes on: rests, intervals, and engines
//! that join it later.

use super::{Alloc, Locks, Part, Plan, StreamRecording};
use crate::client::Agent;
use crate::command_socket::Interval;
use crate::error::{Result, refuse};
use crate::words;
use tare_protocol::{EngineChange, EngineName, Request};

impl StreamRecording {
    fn has(&self, engine: EngineName) -> bool {
        self.engines.contains(&engine)
    }

    pub(super) fn pause_all(&mut self, agent: &mut Agent, pause: bool) -> Result<()> {
        for engine in self.engines.clone() {
            self.pause(agent, engine, pause)?;
        }
        Ok(())
    }

    fn pause(&mut self, agent: &mut Agent, engine: EngineName, pause: bool) -> Result<()> {
        let paused = Some(pause);
        let change = match engine {
            EngineName::Sampling => EngineChange::Sampling { interval_ns: None, paused },
            EngineName::Alloc => EngineChange::Alloc { interval_bytes: None, paused },
            EngineName::Locks => EngineChange::Locks { threshold_ns: None, paused },
            EngineName::Classes => EngineChange::Classes { paused: pause },
            EngineName::JniRefs => EngineChange::JniRefs { paused: pause },
            _ => return Ok(()),
        };
        agent.tell(&Request::Change(change))?;
        self.paused.retain(|other| *other != engine);
        self.paused.extend(pause.then_some(engine));
        Ok(())
    }

    /// Starts an engine on the stream that is open.
    fn start(&mut self, agent: &mut Agent, part: Part) -> Result<()> {
        let mut plan = Plan { depth: self.depth, ..Plan::default() };
        match part {
            Part::Samples => refuse!(
                "this recording began without samples of threads, and they cannot join it later"
            ),
            Part::Alloc => plan.alloc = Some(Alloc { interval: None, live: true }),
            Part::Locks => plan.locks = Some(Locks::default()),
            Part::Classes => plan.classes = true,
            Part::JniRefs => plan.jni_refs = true,
        }
        for plan in plan.wire() {
            let engine = plan.engine();
            agent.tell(&Request::Start(plan))?;
            self.engines.push(engine);
        }
        let status = agent.status()?;
        self.source.takes_in(&status);
        Ok(())
    }

    pub(super) fn change_threshold(&self, agent: &mut Agent, nanos: u64) -> Result<String> {
        if !self.has(EngineName::Locks) {
            refuse!(
                "this recording does not record locks; only `tare record --lock` has a threshold"
            );
        }
        let change = EngineChange::Locks { threshold_ns: Some(nanos), paused: None };
        agent.tell(&Request::Change(change))?;
        Ok(match nanos {
            0 => "every wait is told from now on".to_owned(),
            nanos => format!("waits from {} on are told from now on", words::interval(nanos)),
        })
    }

    pub(super) fn change_interval(&self, agent: &mut Agent, to: Interval) -> Result<String> {
        let (change, told) = match to {
            Interval::Time(nanos) if self.has(EngineName::Sampling) => {
                let change = EngineChange::Sampling { interval_ns: Some(nanos), paused: None };
                (change, words::interval(nanos))
            }
            Interval::Bytes(bytes) if self.has(EngineName::Alloc) => {
                let change = EngineChange::Alloc { interval_bytes: Some(bytes), paused: None };
                (change, words::bytes(bytes))
            }
            Interval::Time(_) if self.has(EngineName::Alloc) => refuse!(
                "this recording samples allocation only, whose interval is a number of bytes, such as 64K"
            ),
            Interval::Time(_) => refuse!(
                "this recording takes no samples; the shortest wait that it tells is set by `tare threshold`"
            ),
            Interval::Bytes(_) => refuse!(
                "this recording does not sample allocation; its interval is a time, such as 1ms"
            ),
        };
        agent.tell(&Request::Change(change))?;
        Ok(format!("samples every {told} from now on"))
    }

    pub(super) fn switch_part(&mut self, agent: &mut Agent, part: Part, on: bool) -> Result<()> {
        let engine = part.engine();
        match (self.has(engine), on) {
            (false, true) => self.start(agent, part),
            (false, false) => Ok(()),
            // What it told before would be told again if it began anew, so it rests.
            (true, on) => self.pause(agent, engine, !on),
        }
    }

    pub(super) fn all_parts(&self) -> Vec<(Part, bool)> {
        let is_on = |engine| self.has(engine) && !self.paused.contains(&engine);
        let can = |part: &Part| *part != Part::Samples || self.has(part.engine());
        Part::ALL.into_iter().filter(can).map(|part| (part, is_on(part.engine()))).collect()
    }
}
