//! Hooks in a few methods, which tell who calls them and what a call takes: what the `hooks` engine
//! is asked to do, and how it is doing.

use crate::fields::fields;
use crate::{EngineStatus, Status};

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

fields!(HookPlan { overhead_ppm: "overhead-ppm", memory: "memory" });

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
    /// Those that have lost their hook since then, because somebody else changed their class.
    pub taken: Vec<String>,
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
    /// What samples, the agent's threads and hooks took in all, the latter as far as calls tell, and
    /// the program's processor time meanwhile.
    pub spent_ns: u64,
    pub cpu_ns: u64,
    /// What could not be told: a number and the reason.
    pub lost: Vec<String>,
}

fields!(HookStatus {
    session: "session",
    hooks: "hook",
    waiting: "waiting",
    refused: "refused",
    taken: "taken",
    ever: "ever",
    batches: "batches",
    weaving_ns: "weaving-ns",
    pause_ns: "pause-ns",
    pass_ps: "pass-ps",
    count_ps: "count-ps",
    time_ps: "time-ps",
    spent_ns: "spent-ns",
    cpu_ns: "cpu-ns",
    lost: "lost",
});

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
    use crate::Message;

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
            taken: vec!["a/B.f()V".into()],
            ever: 5,
            pass_ps: 7,
            spent_ns: 9,
            ..HookStatus::default()
        };
        assert_eq!(HookStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(HookStatus::from_message(&Message::new("status")).is_err());
    }
}
