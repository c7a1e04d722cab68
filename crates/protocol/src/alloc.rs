//! What an allocation recording by samples is asked to do, and how it is doing.

use crate::fields::fields;

/// Which allocations to meet, and what to keep of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocPlan {
    /// Bytes of allocation between two samples, on average.
    pub interval_bytes: u64,
    /// Whether the objects that were met are watched until they are gone.
    pub live: bool,
    /// Objects are those that woven code hands over ([`crate::ExactPlan::watched`]), and none is
    /// sampled: each stands for itself, and past what the table holds they are not watched.
    pub woven: bool,
    /// The most objects that are watched at once. Past it a part of them is let go, and the rest
    /// stands for it.
    pub table: u64,
    /// The most frames of a stack.
    pub depth: u32,
    /// Native frames above the Java frames.
    pub native: bool,
    /// Bytes of the ring; rounded up to a power of two. Without effect on a stream that is open.
    pub memory: u64,
}

impl Default for AllocPlan {
    fn default() -> Self {
        AllocPlan {
            interval_bytes: 512 << 10,
            live: true,
            woven: false,
            table: 1 << 20,
            depth: 4096,
            native: false,
            memory: 32 << 20,
        }
    }
}

fields!(AllocPlan {
    interval_bytes: "interval-bytes",
    live: "live",
    woven: "woven",
    table: "table",
    depth: "depth",
    native: "native",
    memory: "memory",
});

/// Why an object that woven code hands over is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwatched {
    /// The JVM gives no reference.
    Reference,
    /// Past what the table holds.
    Limit,
    /// Past what generational ZGC may be made to keep.
    Young,
    /// It has no context of its own.
    Context,
}

impl Unwatched {
    pub const ALL: [Unwatched; 4] =
        [Unwatched::Reference, Unwatched::Limit, Unwatched::Young, Unwatched::Context];

    /// A word for it, as the stream names the number of such objects.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Unwatched::Reference => "reference",
            Unwatched::Limit => "limit",
            Unwatched::Young => "young",
            Unwatched::Context => "context",
        }
    }

    /// The reason, for a person.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unwatched::Reference => "the JVM has no memory for references",
            Unwatched::Limit => {
                "as many as there is room for were watched, and no collection had told yet which of \
                 them are gone; name fewer classes"
            }
            Unwatched::Young => {
                "generational ZGC keeps a watched object until its next major collection, so only so \
                 many that are young are watched at once"
            }
            Unwatched::Context => {
                "their contexts are summed up in others, by --depth or because --memory is full"
            }
        }
    }
}

/// Sampled allocations under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub paused: bool,
    /// Zero where woven code hands the objects over.
    pub interval_bytes: u64,
    /// Objects that were met and told, and the sum of their own sizes.
    pub samples: u64,
    pub sampled_bytes: u64,
    /// Samples that were not kept: a number and the reason.
    pub lost: Vec<String>,
    /// Samples without a whole stack: a number and the name of the frame that stands there.
    pub failures: Vec<String>,
    /// Whether objects are watched.
    pub live: bool,
    /// Objects that are watched now, the most there were at once, and the bytes of the table.
    pub entries: u64,
    pub entries_most: u64,
    pub table_bytes: u64,
    /// Of the entries those that no collection has proven alive yet; and of objects that woven code
    /// handed over, their bytes.
    pub unproven: u64,
    pub unproven_bytes: u64,
    /// An object that is met now stands for 2^level of them in what lives.
    pub level: u32,
    /// Collections finished since the start; with generational ZGC major ones.
    pub collections: u64,
    pub elapsed_ns: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

fields!(AllocStatus {
    session: "session",
    paused: "paused",
    interval_bytes: "interval-bytes",
    samples: "samples",
    sampled_bytes: "sampled-bytes",
    lost: "lost",
    failures: "failure",
    live: "live",
    entries: "entries",
    entries_most: "entries-most",
    table_bytes: "table-bytes",
    unproven: "unproven",
    unproven_bytes: "unproven-bytes",
    level: "level",
    collections: "collections",
    elapsed_ns: "elapsed-ns",
    notes: "note",
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        let plan = AllocPlan {
            interval_bytes: 7,
            live: false,
            woven: true,
            native: true,
            ..Default::default()
        };
        let message = plan.add_to(Message::new("start"));
        assert_eq!(AllocPlan::from_message(&message), Ok(plan));
        assert!(AllocPlan::from_message(&Message::new("start")).is_err());
        let status = AllocStatus {
            session: 2,
            live: true,
            entries: 3,
            level: 4,
            lost: vec!["5 of threads that are not known".into()],
            failures: vec!["3 [unknown_Java]".into()],
            notes: vec!["No.".into(), "Nor that.".into()],
            ..AllocStatus::default()
        };
        assert_eq!(AllocStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(AllocStatus::from_message(&Message::new("status")).is_err());
    }
}
