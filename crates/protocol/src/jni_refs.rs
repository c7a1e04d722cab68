//! What a recording of references that native code holds is asked to do, and how it is doing.

use crate::{Message, WireError};

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

impl JniRefsPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        message.with("depth", self.depth).with("memory", self.memory)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(JniRefsPlan { depth: m.parse("depth")?, memory: m.parse("memory")? })
    }
}

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

impl JniRefsStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("session", self.session)
            .with("paused", self.paused)
            .with("made", self.made)
            .with("deleted", self.deleted)
            .with("alive", self.alive)
            .with("before", self.before)
            .with_all("lost", &self.lost)
            .with_all("failure", &self.failures)
            .with("elapsed-ns", self.elapsed_ns)
            .with_all("note", &self.notes)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(JniRefsStatus {
            session: m.parse("session")?,
            paused: m.parse("paused")?,
            made: m.parse("made")?,
            deleted: m.parse("deleted")?,
            alive: m.parse("alive")?,
            before: m.parse("before")?,
            lost: m.list("lost"),
            failures: m.list("failure"),
            elapsed_ns: m.parse("elapsed-ns")?,
            notes: m.list("note"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(JniRefsStatus::from_message(&status.to_message()), Ok(status));
        assert!(JniRefsStatus::from_message(&Message::new("status")).is_err());
    }
}
