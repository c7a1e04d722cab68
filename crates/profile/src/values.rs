//! What a number in a profile counts, in which unit, and how it came to be.

/// What a series measures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueKind {
    /// How often a sampler met the context.
    Samples,
    WallTime,
    CpuTime,
    /// Time waiting for a lock that somebody else had.
    BlockedTime,
    /// Time waiting for something to happen: a signal, a task, a result, the end of a sleep.
    WaitingTime,
    AllocatedBytes,
    AllocatedObjects,
    /// Bytes of what was allocated there and still lives.
    LiveBytes,
    LiveObjects,
    /// How often the context was entered; exact.
    Invocations,
    /// Bytecodes executed in the context.
    Bytecodes,
    /// How often a lock was found taken.
    Contentions,
    /// How many classes were loaded.
    ClassLoads,
    /// Time that loading and linking classes took.
    ClassLoadTime,
    /// Anything else, such as a hardware counter or a foreign format's own.
    Other {
        name: String,
        unit: Unit,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unit {
    #[default]
    Count,
    Nanoseconds,
    Bytes,
}

/// Which of several figures for the same thing a series holds. Exact times come as four.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Estimate {
    /// As measured.
    #[default]
    Measured,
    /// With the measuring's own weight subtracted; may be negative.
    Compensated,
    /// What the truth is not below.
    Lower,
    /// What the truth is not above.
    Upper,
}

/// References of native code to Java objects, as kinds of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JniReferences {
    /// Global references that were made.
    Global,
    /// Of those, the ones that were not deleted.
    GlobalAlive,
    Weak,
    WeakAlive,
}

impl JniReferences {
    pub const ALL: [JniReferences; 4] = [
        JniReferences::Global,
        JniReferences::GlobalAlive,
        JniReferences::Weak,
        JniReferences::WeakAlive,
    ];

    fn name(self) -> &'static str {
        match self {
            JniReferences::Global => "jni-globals",
            JniReferences::GlobalAlive => "jni-globals-alive",
            JniReferences::Weak => "jni-weaks",
            JniReferences::WeakAlive => "jni-weaks-alive",
        }
    }

    /// Which of them values of a kind are, if any.
    pub fn of(kind: &ValueKind) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == kind.name() && kind.unit() == Unit::Count)
    }
}

impl From<JniReferences> for ValueKind {
    fn from(of: JniReferences) -> Self {
        ValueKind::Other { name: of.name().to_owned(), unit: Unit::Count }
    }
}

impl ValueKind {
    /// A short lasting name, used in files and on the command line.
    pub fn name(&self) -> &str {
        match self {
            ValueKind::Samples => "samples",
            ValueKind::WallTime => "wall-time",
            ValueKind::CpuTime => "cpu-time",
            ValueKind::BlockedTime => "blocked-time",
            ValueKind::WaitingTime => "waiting-time",
            ValueKind::AllocatedBytes => "allocated-bytes",
            ValueKind::AllocatedObjects => "allocated-objects",
            ValueKind::LiveBytes => "live-bytes",
            ValueKind::LiveObjects => "live-objects",
            ValueKind::Invocations => "invocations",
            ValueKind::Bytecodes => "bytecodes",
            ValueKind::Contentions => "contentions",
            ValueKind::ClassLoads => "class-loads",
            ValueKind::ClassLoadTime => "class-load-time",
            ValueKind::Other { name, .. } => name,
        }
    }

    /// The opposite of [`ValueKind::name`] and [`ValueKind::unit`].
    pub fn from_name(name: &str, unit: Unit) -> Self {
        const KNOWN: [ValueKind; 14] = [
            ValueKind::Samples,
            ValueKind::WallTime,
            ValueKind::CpuTime,
            ValueKind::BlockedTime,
            ValueKind::WaitingTime,
            ValueKind::AllocatedBytes,
            ValueKind::AllocatedObjects,
            ValueKind::LiveBytes,
            ValueKind::LiveObjects,
            ValueKind::Invocations,
            ValueKind::Bytecodes,
            ValueKind::Contentions,
            ValueKind::ClassLoads,
            ValueKind::ClassLoadTime,
        ];
        let known = KNOWN.into_iter().find(|kind| kind.name() == name && kind.unit() == unit);
        known.unwrap_or_else(|| ValueKind::Other { name: name.to_owned(), unit })
    }

    pub fn unit(&self) -> Unit {
        match self {
            ValueKind::Samples
            | ValueKind::AllocatedObjects
            | ValueKind::LiveObjects
            | ValueKind::Invocations
            | ValueKind::Bytecodes
            | ValueKind::Contentions
            | ValueKind::ClassLoads => Unit::Count,
            ValueKind::WallTime
            | ValueKind::CpuTime
            | ValueKind::BlockedTime
            | ValueKind::WaitingTime
            | ValueKind::ClassLoadTime => Unit::Nanoseconds,
            ValueKind::AllocatedBytes | ValueKind::LiveBytes => Unit::Bytes,
            ValueKind::Other { unit, .. } => *unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_kinds() {
        for name in ["samples", "wall-time", "cpu-time", "blocked-time", "allocated-bytes"] {
            let count = ValueKind::from_name(name, Unit::Count);
            let time = ValueKind::from_name(name, Unit::Nanoseconds);
            let bytes = ValueKind::from_name(name, Unit::Bytes);
            let kinds = [count, time, bytes];
            let other = kinds.iter().filter(|k| matches!(k, ValueKind::Other { .. })).count();
            assert_eq!(other, 2, "{name} has one unit");
        }
        let other = ValueKind::from_name("cache-misses", Unit::Count);
        assert_eq!((other.name(), other.unit()), ("cache-misses", Unit::Count));
    }
}
