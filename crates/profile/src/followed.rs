//! Events of recordings in which some calls of roots are followed.

use crate::events::{EventKind, FieldType};
use crate::values::Unit;

const COUNT: FieldType = FieldType::Integer(Unit::Count);
const TIME: FieldType = FieldType::Integer(Unit::Nanoseconds);

const LENGTHS: [(&str, FieldType); 4] =
    [("calls", COUNT), ("p50", TIME), ("p90", TIME), ("p99", TIME)];

impl EventKind {
    /// `kept-call`: a root's call that was kept whole: one of the slowest, or drawn from all.
    pub fn kept_call() -> Self {
        EventKind::new("kept-call", &["number", "slow", "drawn"].map(|name| (name, COUNT)))
    }

    /// `kept-context`: what a context did in the kept call of that `number`, with what it called.
    pub fn kept_context() -> Self {
        EventKind::new("kept-context", &[("number", COUNT), ("calls", COUNT), ("own", TIME)])
    }

    /// `call-lengths`: of the calls of a context, half took no longer than `p50`, and so on. Those that
    /// were followed stand for all: `calls`. With its own calls a root has all of them.
    pub fn call_lengths() -> Self {
        EventKind::new("call-lengths", &LENGTHS)
    }

    /// `method-lengths`: the same of a method, wherever it was called. Of its context only the last
    /// frame counts.
    pub fn method_lengths() -> Self {
        EventKind::new("method-lengths", &LENGTHS)
    }

    /// `follow`: from then on one call of a root in so many was followed; `overhead` is what probes
    /// took before, as a share of the program's own time.
    pub fn follow() -> Self {
        EventKind::new("follow", &[("one-in", COUNT), ("overhead", FieldType::Real)])
    }
}
