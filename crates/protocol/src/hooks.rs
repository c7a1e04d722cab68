//! Hooks in a few methods, which tell who calls them and what a call takes: what the `hooks` engine
//! is asked to do, and how it is doing.

use crate::{EngineStatus, Message, Status, WireError};

/// How hooks are to behave. None is set when the engine starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookPlan {
    /// What all hooks together may take of the program's processor time, in millionths. Calls are
    /// counted, and as many of them timed as there is room for.
    pub overhead_ppm: u32,
    /// Bytes of the ring; rounded up to a power of two. Without effect on a stream that is open.
    pub memory: u64,
}

impl Default for HookPlan {
    fn default() -> Self {
        HookPlan { overhead_ppm: 20_000, memory: 32 << 20 }
    }
}

impl HookPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        message.with("overhead-ppm", self.overhead_ppm).with("memory", self.memory)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(HookPlan { overhead_ppm: m.parse("overhead-ppm")?, memory: m.parse("memory")? })
    }
}

/// The hooks under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    /// Methods that have a hook now, each as its number, a blank, and `com/acme/Orders.place(I)V`.
    pub hooks: Vec<String>,
    /// Methods whose hooks tell nothing yet, or no more.
    pub waiting: Vec<String>,
    /// Those of the last change that got none: the method, a blank, and the reason.
    pub refused: Vec<String>,
    /// Hooks that were ever set in this session.
    pub ever: u64,
    /// How often classes were loaded again, how long that took, and how long the program stood
    /// still for it.
    pub batches: u64,
    pub weaving_ns: u64,
    pub pause_ns: u64,
    /// What a call takes here that is not counted, as are most where they are too many, what
    /// counting one takes, and what timing one takes with it, in picoseconds.
    pub pass_ps: u64,
    pub count_ps: u64,
    pub time_ps: u64,
    /// What hooks took in all, as far as calls tell, and the program's processor time meanwhile.
    pub spent_ns: u64,
    pub cpu_ns: u64,
    /// What could not be told: a number and the reason.
    pub lost: Vec<String>,
}

impl HookStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("session", self.session)
            .with_all("hook", &self.hooks)
            .with_all("waiting", &self.waiting)
            .with_all("refused", &self.refused)
            .with("ever", self.ever)
            .with("batches", self.batches)
            .with("weaving-ns", self.weaving_ns)
            .with("pause-ns", self.pause_ns)
            .with("pass-ps", self.pass_ps)
            .with("count-ps", self.count_ps)
            .with("time-ps", self.time_ps)
            .with("spent-ns", self.spent_ns)
            .with("cpu-ns", self.cpu_ns)
            .with_all("lost", &self.lost)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(HookStatus {
            session: m.parse("session")?,
            hooks: m.list("hook"),
            waiting: m.list("waiting"),
            refused: m.list("refused"),
            ever: m.parse("ever")?,
            batches: m.parse("batches")?,
            weaving_ns: m.parse("weaving-ns")?,
            pause_ns: m.parse("pause-ns")?,
            pass_ps: m.parse("pass-ps")?,
            count_ps: m.parse("count-ps")?,
            time_ps: m.parse("time-ps")?,
            spent_ns: m.parse("spent-ns")?,
            cpu_ns: m.parse("cpu-ns")?,
            lost: m.list("lost"),
        })
    }
}

impl Status {
    /// The hooks under way.
    #[must_use]
    pub fn hooks(&self) -> Option<&HookStatus> {
        self.engines.iter().find_map(|engine| match engine {
            EngineStatus::Hooks(status) => Some(&**status),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        let plan = HookPlan { overhead_ppm: 7, memory: 1 << 20 };
        let message = plan.add_to(Message::new("start"));
        assert_eq!(HookPlan::from_message(&message), Ok(plan));
        assert!(HookPlan::from_message(&Message::new("start")).is_err());
        let status = HookStatus {
            session: 2,
            hooks: vec!["3 a/B.c()V".into(), "4 a/B.<init>(I)V".into()],
            waiting: vec!["a/B.e()V".into()],
            refused: vec!["a/B.d()V it is native".into()],
            ever: 5,
            pass_ps: 7,
            spent_ns: 9,
            ..HookStatus::default()
        };
        assert_eq!(HookStatus::from_message(&status.to_message()), Ok(status));
        assert!(HookStatus::from_message(&Message::new("status")).is_err());
    }
}
