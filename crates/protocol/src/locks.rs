//! What a recording of locks is asked to do, and how it is doing.

use crate::fields::fields;

/// Which waits to tell one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlan {
    /// Waits of this length and longer ones are told with their stacks; shorter ones are summed up.
    pub threshold_ns: u64,
    /// The most frames of a stack.
    pub depth: u32,
    /// Whether classes of the JDK are woven, so that tasks in queues of executors are seen, too.
    pub weave: bool,
    /// Bytes of the ring; rounded up to a power of two. Without effect on a stream that is open.
    pub memory: u64,
}

impl LockPlan {
    pub const THRESHOLD_NS: u64 = 10_000;
}

impl Default for LockPlan {
    fn default() -> Self {
        LockPlan { threshold_ns: Self::THRESHOLD_NS, depth: 4096, weave: false, memory: 32 << 20 }
    }
}

fields!(LockPlan {
    threshold_ns: "threshold-ns",
    depth: "depth",
    weave: "weave",
    memory: "memory",
});

/// What a thread waits for, as the stream has it. The names are those of `tare_profile::Wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockWait {
    MonitorEnter,
    Lock,
    SharedLock,
    MonitorWait,
    Condition,
    Queue,
    Future,
    Sleep,
    Park,
}

impl LockWait {
    pub const ALL: [LockWait; 9] = [
        LockWait::MonitorEnter,
        LockWait::Lock,
        LockWait::SharedLock,
        LockWait::MonitorWait,
        LockWait::Condition,
        LockWait::Queue,
        LockWait::Future,
        LockWait::Sleep,
        LockWait::Park,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LockWait::MonitorEnter => "monitor enter",
            LockWait::Lock => "lock",
            LockWait::SharedLock => "shared lock",
            LockWait::MonitorWait => "monitor wait",
            LockWait::Condition => "condition",
            LockWait::Queue => "queue",
            LockWait::Future => "future",
            LockWait::Sleep => "sleep",
            LockWait::Park => "park",
        }
    }

    /// The number that stands for it in the stream.
    #[must_use]
    pub fn code(self) -> u64 {
        self as u64
    }

    /// The opposite of [`LockWait::code`].
    #[must_use]
    pub fn of_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|wait| wait.code() == code)
    }

    /// Whether somebody else had what the thread wanted.
    #[must_use]
    pub fn is_contention(self) -> bool {
        matches!(self, LockWait::MonitorEnter | LockWait::Lock | LockWait::SharedLock)
    }
}

/// A recording of locks under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub paused: bool,
    pub threshold_ns: u64,
    /// Waits for locks that somebody had, all of them, and how long they took together.
    pub contentions: u64,
    pub blocked_ns: u64,
    /// Waits for something to happen, in the same way.
    pub waits: u64,
    pub waiting_ns: u64,
    /// Of both, those that were told one by one, and of those the ones with an owner.
    pub told: u64,
    pub owned: u64,
    /// Owners that were asked for their stacks, and that answered.
    pub asked: u64,
    pub answered: u64,
    /// Threads that wait now.
    pub waiting: u64,
    /// Waits that were not told, and what could not be known of others: a number and the reason.
    pub lost: Vec<String>,
    /// Stacks that are not whole: a number and the name of the frame that stands there.
    pub failures: Vec<String>,
    pub elapsed_ns: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

fields!(LockStatus {
    session: "session",
    paused: "paused",
    threshold_ns: "threshold-ns",
    contentions: "contentions",
    blocked_ns: "blocked-ns",
    waits: "waits",
    waiting_ns: "waiting-ns",
    told: "told",
    owned: "owned",
    asked: "asked",
    answered: "answered",
    waiting: "waiting",
    lost: "lost",
    failures: "failure",
    elapsed_ns: "elapsed-ns",
    notes: "note",
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        let plan = LockPlan { threshold_ns: 7, depth: 99, weave: true, memory: 1 << 20 };
        let message = plan.add_to(Message::new("start"));
        assert_eq!(LockPlan::from_message(&message), Ok(plan));
        assert!(LockPlan::from_message(&Message::new("start")).is_err());
        let status = LockStatus {
            session: 2,
            contentions: 3,
            blocked_ns: 4,
            told: 5,
            lost: vec!["5 lost: too many threads wait at once".into()],
            notes: vec!["No.".into(), "Nor that.".into()],
            ..LockStatus::default()
        };
        assert_eq!(LockStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(LockStatus::from_message(&Message::new("status")).is_err());
    }

    #[test]
    fn codes_lead_back_to_waits() {
        for wait in LockWait::ALL {
            assert_eq!(LockWait::of_code(wait.code()), Some(wait));
        }
        assert_eq!(LockWait::of_code(9), None);
        assert_eq!(LockWait::ALL.into_iter().filter(|wait| wait.is_contention()).count(), 3);
    }
}
