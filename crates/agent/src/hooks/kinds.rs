//! What hooks tell, as events of the stream; what the fields mean is in the recording's FORMAT.md.

use crate::stream::Stream;
use tare_arena::samples::FieldKind;

/// The kinds of events in the stream.
pub struct Kinds {
    pub batch: u32,
    pub hook: u32,
    pub calls: u32,
    pub caller: u32,
    pub times: u32,
    pub cost: u32,
}

impl Kinds {
    pub fn declare(stream: &Stream) -> Option<Self> {
        use FieldKind::{Duration, Integer, Text};
        let batch = [("hooks", Integer), ("new", Integer), ("pause", Duration)];
        let hook = [("number", Integer), ("method", Text), ("on", Integer)];
        let calls = [("number", Integer), ("calls", Integer), ("told", Integer)];
        let caller = [
            ("number", Integer),
            ("calls", Integer),
            ("ended", Integer),
            ("wall", Duration),
            ("cpu", Duration),
            ("with-cpu", Integer),
        ];
        let times = [("number", Integer), ("from", Duration), ("to", Duration), ("count", Integer)];
        let cost = [("spent", Duration), ("cpu", Duration), ("hooks", Integer)];
        Some(Kinds {
            batch: stream.declare("hook-batch", &batch)?,
            hook: stream.declare("hook", &hook)?,
            calls: stream.declare("hook-calls", &calls)?,
            caller: stream.declare("hook-caller", &caller)?,
            times: stream.declare("hook-times", &times)?,
            cost: stream.declare("hook-cost", &cost)?,
        })
    }
}
