//! Exact recordings as the control thread sees them: an engine among others.

use super::demote::demote;
use super::{SUBSCRIBER, files, recording, start, status, stop, subgraph, tick};
use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::Subscriber;
use std::fs::File;
use std::os::fd::RawFd;
use std::time::Duration;
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus};

/// How often a recording is looked after: its clock, and memory ahead of the probes.
const TICK: Duration = Duration::from_millis(20);

pub struct Exact;

/// The descriptors of what is recorded. The one who has begun a trace drains it, and gets what it
/// needs for that.
fn descriptors(drains: bool) -> Result<Vec<File>, EngineError> {
    let none = || EngineError::Refused("no exact recording is under way".into());
    files(drains).ok_or_else(none)?.map_err(EngineError::Files)
}

impl Engine for Exact {
    fn name(&self) -> EngineName {
        EngineName::Exact
    }

    fn subscriber(&self) -> &'static Subscriber {
        &SUBSCRIBER
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        between: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Exact(plan) = plan else {
            return Err(EngineError::misdirected(self.name()));
        };
        if crate::hooks::is_on() {
            let why = "`tare climb` has hooks in methods of this JVM; end that first (`tare stop`)";
            return Err(EngineError::Refused(why.into()));
        }
        start(jvm.jvmti, jvm.jni, (**plan).clone(), between)?;
        descriptors(true).inspect_err(|_| stop(jvm.jvmti, jvm.jni, between))
    }

    fn change(
        &self,
        jvm: Jvm,
        change: &EngineChange,
        between: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        match change {
            EngineChange::Exact { demote: ids } => Ok(demote(jvm.jni, ids, between)?),
            EngineChange::Follow { one_in } => {
                recording().iter().for_each(|recording| recording.memory.follow(*one_in));
                Ok(())
            }
            _ => Err(EngineError::misdirected(self.name())),
        }
    }

    fn stop(&self, jvm: Jvm, between: &mut Between<'_>) {
        stop(jvm.jvmti, jvm.jni, between);
    }

    fn status(&self) -> Option<EngineStatus> {
        status().map(|status| EngineStatus::Exact(Box::new(status)))
    }

    fn open(&self) -> Result<Vec<File>, EngineError> {
        descriptors(false)
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&self, jvm: Jvm) {
        tick(jvm.jni);
    }

    fn bell(&self) -> Option<RawFd> {
        subgraph::bell()
    }

    fn answer_bell(&self, jvm: Jvm, between: &mut Between<'_>) {
        subgraph::work(jvm.jni, between);
    }
}
