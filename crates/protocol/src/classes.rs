//! What a recording of classes is asked to do, and how it is doing.

use crate::{Message, WireError};

/// How classes are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPlan {
    /// The most frames of a stack.
    pub depth: u32,
    /// Bytes of the ring; rounded up to a power of two. Without effect on a stream that is open.
    pub memory: u64,
}

impl Default for ClassPlan {
    fn default() -> Self {
        ClassPlan { depth: 4096, memory: 32 << 20 }
    }
}

impl ClassPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        message.with("depth", self.depth).with("memory", self.memory)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(ClassPlan { depth: m.parse("depth")?, memory: m.parse("memory")? })
    }
}

/// What the JVM itself sums up the time of, in the order of the stream's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassCost {
    /// Java code of class loaders that the JVM has asked for a class.
    Search,
    /// Making a class of the bytes that a loader written in Java has brought.
    Define,
    /// Classes that the JVM's own loader reads from the JDK's files.
    Boot,
    /// Classes that it takes from an archive.
    Shared,
    /// Linking, without verification.
    Link,
    Verify,
}

impl ClassCost {
    pub const ALL: [ClassCost; 6] = [
        ClassCost::Search,
        ClassCost::Define,
        ClassCost::Boot,
        ClassCost::Shared,
        ClassCost::Link,
        ClassCost::Verify,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClassCost::Search => "search",
            ClassCost::Define => "define",
            ClassCost::Boot => "boot",
            ClassCost::Shared => "shared",
            ClassCost::Link => "link",
            ClassCost::Verify => "verify",
        }
    }
}

/// A recording of classes under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub paused: bool,
    /// Classes that were there when it began and are told of.
    pub present: u64,
    /// Since then: classes loaded, found once more by another loader, linked, unloaded.
    pub loads: u64,
    pub found: u64,
    pub links: u64,
    pub unloads: u64,
    /// Of the loads, those on threads of ours.
    pub own_loads: u64,
    /// What our callbacks took, in nanoseconds: part of what the JVM sums up.
    pub own_ns: u64,
    /// What the JVM itself has counted since: loads and unloads. Nothing if it does not count.
    pub jvm_loads: Option<u64>,
    pub jvm_unloads: Option<u64>,
    /// Its sums of time before the recording and since, by [`ClassCost`]; empty if it has none.
    pub jvm_before_ns: Vec<u64>,
    pub jvm_ns: Vec<u64>,
    /// Loads that were not told, and what could not be known of others: a number and the reason.
    pub lost: Vec<String>,
    /// Stacks that are not whole: a number and the name of the frame that stands there.
    pub failures: Vec<String>,
    pub elapsed_ns: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

impl ClassStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("session", self.session)
            .with("paused", self.paused)
            .with("present", self.present)
            .with("loads", self.loads)
            .with("found", self.found)
            .with("links", self.links)
            .with("unloads", self.unloads)
            .with("own-loads", self.own_loads)
            .with("own-ns", self.own_ns)
            .with_some("jvm-loads", self.jvm_loads)
            .with_some("jvm-unloads", self.jvm_unloads)
            .with_all("jvm-before-ns", &self.jvm_before_ns)
            .with_all("jvm-ns", &self.jvm_ns)
            .with_all("lost", &self.lost)
            .with_all("failure", &self.failures)
            .with("elapsed-ns", self.elapsed_ns)
            .with_all("note", &self.notes)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        let some = |key| m.get(key).map(|_| m.parse(key)).transpose();
        Ok(ClassStatus {
            session: m.parse("session")?,
            paused: m.parse("paused")?,
            present: m.parse("present")?,
            loads: m.parse("loads")?,
            found: m.parse("found")?,
            links: m.parse("links")?,
            unloads: m.parse("unloads")?,
            own_loads: m.parse("own-loads")?,
            own_ns: m.parse("own-ns")?,
            jvm_loads: some("jvm-loads")?,
            jvm_unloads: some("jvm-unloads")?,
            jvm_before_ns: crate::exact::all(m, "jvm-before-ns")?,
            jvm_ns: crate::exact::all(m, "jvm-ns")?,
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
        let plan = ClassPlan { depth: 99, memory: 1 << 20 };
        let message = plan.add_to(Message::new("start"));
        assert_eq!(ClassPlan::from_message(&message), Ok(plan));
        assert!(ClassPlan::from_message(&Message::new("start")).is_err());
        let status = ClassStatus {
            session: 2,
            loads: 3,
            unloads: 4,
            jvm_loads: Some(5),
            jvm_ns: vec![1, 2, 3, 4, 5, 6],
            lost: vec!["5 lost: the front end reads too slowly".into()],
            ..ClassStatus::default()
        };
        assert_eq!(ClassStatus::from_message(&status.to_message()), Ok(status));
        assert!(ClassStatus::from_message(&Message::new("status")).is_err());
    }
}
