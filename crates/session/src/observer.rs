//! What a session tells while it goes on, as values, and who is told. Showing it is left to the
//! front end.

use crate::engines::Figures;
use std::time::Duration;
use tare_protocol::BatchProgress;

/// A sentence for the user, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Good to know.
    Aside(String),
    /// Something is not as it was asked for.
    Warning(String),
    /// The same, and so grave that even somebody who wants to hear nothing should.
    Alarm(String),
}

/// What takes a moment before anything is measured, or after.
#[derive(Clone, Debug)]
pub enum Happening {
    /// It is looked up whether patterns fit any class.
    LookingForClasses,
    /// The agent takes in the JVM's threads.
    TakingInThreads,
    /// The agent changes classes, or restores them.
    Weaving(Weaving),
    /// Nothing any more.
    Nothing,
}

/// How far the agent is with changing classes.
#[derive(Clone, Copy, Debug)]
pub struct Weaving {
    /// Since it was asked to.
    pub elapsed: Duration,
    /// The agent's last word; none before the first batch of classes.
    pub batches: Option<BatchProgress>,
    /// The batch under way takes the JVM long.
    pub is_long: bool,
    /// Somebody wants it to end.
    pub stops: bool,
}

/// How a recording goes.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Since the zero of its times.
    pub elapsed: Duration,
    pub figures: Figures,
}

/// Who watches a session. Every method returns at once.
pub trait Observer {
    fn note(&mut self, note: Note);

    /// Called several times a second while something takes long.
    fn happening(&mut self, _what: &Happening) {}

    /// Whether the session is to end. Asked several times a second.
    fn wants_end(&self) -> bool {
        false
    }
}
