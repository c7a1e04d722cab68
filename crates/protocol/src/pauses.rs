//! How the engine is doing that tells of collections, safepoints and compilers alone.

use crate::{Message, WireError};

/// Pauses that are being told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausesStatus {
    /// Events so far, and those that found no room.
    pub events: u64,
    pub lost: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

impl PausesStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("events", self.events)
            .with("lost", self.lost)
            .with_all("note", &self.notes)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        let (events, lost) = (m.parse("events")?, m.parse("lost")?);
        Ok(PausesStatus { events, lost, notes: m.list("note") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_as_it_was_sent() {
        let status = PausesStatus { events: 3, lost: 1, notes: vec!["No.".into()] };
        assert_eq!(PausesStatus::from_message(&status.to_message()), Ok(status));
        assert!(PausesStatus::from_message(&Message::new("status")).is_err());
    }
}
