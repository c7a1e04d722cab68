//! How the engine is doing that tells of collections, safepoints and compilers alone.

use crate::fields::fields;

/// Pauses that are being told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausesStatus {
    /// Events so far, and those that found no room.
    pub events: u64,
    pub lost: u64,
    /// What is less than it could be, and why. Whole sentences for a person.
    pub notes: Vec<String>,
}

fields!(PausesStatus { events: "events", lost: "lost", notes: "note" });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn a_state_comes_back_as_it_was_sent() {
        let status = PausesStatus { events: 3, lost: 1, notes: vec!["No.".into()] };
        assert_eq!(PausesStatus::from_message(&status.add_to(Message::new("status"))), Ok(status));
        assert!(PausesStatus::from_message(&Message::new("status")).is_err());
    }
}
