//! How far the agent is with something long, told while it lasts.
//!
//! It travels two ways: as frames on the connection that asked, before the answer, and in memory of
//! the JVM that the tool finds by its name, for when the agent is inside the JVM and answers
//! nobody.

use crate::{Message, WireError};
use std::fmt;
use std::str::FromStr;

/// The name of the memory that has the progress: one frame at its beginning, or zeros.
pub const PROGRESS_MEMORY: &str = "tare-progress";

/// The memory's size, which no frame of a progress passes.
pub const PROGRESS_BYTES: usize = 512;

/// What classes are loaded again for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    #[default]
    Weaving,
    /// Callers of methods that have lost their intrinsic, so that they are compiled anew.
    Renewing,
    Restoring,
}

impl Activity {
    const ALL: [Activity; 3] = [Activity::Weaving, Activity::Renewing, Activity::Restoring];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Activity::Weaving => "weaving",
            Activity::Renewing => "renewing",
            Activity::Restoring => "restoring",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Activity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Activity::ALL.into_iter().find(|activity| activity.name() == text).ok_or(())
    }
}

/// The state before a call into the JVM, which nothing can interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchProgress {
    pub activity: Activity,
    /// Classes: those that are done, those that go to the JVM now, and all.
    pub done: u64,
    pub now: u64,
    pub all: u64,
    /// Methods that are woven so far.
    pub methods: u64,
    /// When the call into the JVM began, in milliseconds since 1970.
    pub since_ms: u64,
}

impl BatchProgress {
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::new("progress")
            .with("activity", self.activity)
            .with("done", self.done)
            .with("now", self.now)
            .with("all", self.all)
            .with("methods", self.methods)
            .with("since-ms", self.since_ms)
    }

    pub fn from_message(m: &Message) -> Result<Self, WireError> {
        if m.verb != "progress" {
            return Err(WireError::UnknownVerb(m.verb.clone()));
        }
        Ok(BatchProgress {
            activity: m.parse("activity")?,
            done: m.parse("done")?,
            now: m.parse("now")?,
            all: m.parse("all")?,
            methods: m.parse("methods")?,
            since_ms: m.parse("since-ms")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_comes_back_and_fits_its_memory() {
        for activity in Activity::ALL {
            let most = u64::MAX;
            let progress = BatchProgress {
                activity,
                done: most,
                now: most,
                all: most,
                methods: most,
                since_ms: 1,
            };
            let message = progress.to_message();
            assert_eq!(BatchProgress::from_message(&message), Ok(progress));
            assert!(message.encode().len() < PROGRESS_BYTES);
        }
        assert!(BatchProgress::from_message(&Message::new("ok")).is_err());
        assert!(
            BatchProgress::from_message(&Message::new("progress").with("activity", "x")).is_err()
        );
    }
}
