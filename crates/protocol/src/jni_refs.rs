//! What a recording of references that native code holds is asked to do, and how it is doing.

use crate::fields::fields;

/// How references are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JniRefsPlan {
    /// The most frames of a stack.
    pub depth: u32,
    /// Bytes of the ring; rounded up to a power of two. Without effect on a stream that is open.
    pub memory: u64,
}

impl Default for JniRefsPlan {
    fn default() -> Self {
        JniRefsPlan { depth: 4096, memory: 32 << 20 }
    }
}

fields!(JniRefsPlan { depth: "depth", memory: "memory" });

/// A recording of references under way. Weak ones are among all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JniRefsStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub paused: bool,
    /// References made and deleted since it began, and of the former those that are there now.
    pub made: u64,
    pub deleted: u64,
    pub alive: u64,
    /// Deleted ones that nobody has seen being made: they were there before.
    pub before: u64,
    /// References that are not followed, and what could not be known of others: a number and the
    /// reason.
    pub lost: Vec<String>,
    /// Stacks that are not whole: a number and the name of the frame that stands there.
    pub failures: Vec<String>,
    pub elapsed_ns: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

fields!(JniRefsStatus {
    session: "session",
    paused: "paused",
    made: "made",
    deleted: "deleted",
    alive: "alive",
    before: "before",
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
        let plan = JniRefsPlan { depth: 99, memory: 1 << 20 };
        let message = plan.add_to(Message::new("start"));
        assert_eq!(JniRefsPlan::from_message(&message), Ok(plan));
        let status = JniRefsStatus {
            session: 2,
            made: 3,
            alive: 1,
            notes: vec!["No.".into()],
            ..JniRefsStatus::default()
        };
        assert_eq!(JniRefsStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(JniRefsStatus::from_message(&Message::new("status")).is_err());
    }
}
