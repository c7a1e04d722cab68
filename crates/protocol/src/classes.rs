//! What a recording of classes is asked to do, and how it is doing.

use crate::fields::fields;

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

fields!(ClassPlan { depth: "depth", memory: "memory" });

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

fields!(ClassStatus {
    session: "session",
    paused: "paused",
    present: "present",
    loads: "loads",
    found: "found",
    links: "links",
    unloads: "unloads",
    own_loads: "own-loads",
    own_ns: "own-ns",
    jvm_loads: "jvm-loads",
    jvm_unloads: "jvm-unloads",
    jvm_before_ns: "jvm-before-ns",
    jvm_ns: "jvm-ns",
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
        assert_eq!(ClassStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(ClassStatus::from_message(&Message::new("status")).is_err());
    }
}
