//! What a heap snapshot is asked for, and how it is doing. What the tool and the copy of the JVM
//! say to each other is [`wire`].

pub mod wire;

use crate::{Message, WireError};

/// What is to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapPlan {
    /// Contents stay inside: of objects the copy hands out headers, lengths and references.
    pub redact: bool,
    /// Seconds after which the copy ends, whatever it does.
    pub limit_s: u32,
}

impl Default for HeapPlan {
    fn default() -> Self {
        HeapPlan { redact: false, limit_s: 300 }
    }
}

impl HeapPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        message.with("redact", self.redact).with("limit-s", self.limit_s)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(HeapPlan { redact: m.parse("redact")?, limit_s: m.parse("limit-s")? })
    }
}

/// A copy of the JVM, alive or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapStatus {
    /// The copy's pid as the JVM sees it.
    pub copy: u32,
    /// For how long the program stood, from the request for it to its end, and how much of that
    /// the system took to make the copy.
    pub pause_ns: u64,
    pub fork_ns: u64,
    /// How the copy ended; nothing while it lives. A sentence's part: "was ended by signal 9".
    pub ended: Option<String>,
}

impl HeapStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("copy", self.copy)
            .with("pause-ns", self.pause_ns)
            .with("fork-ns", self.fork_ns)
            .with_some("ended", self.ended.as_ref())
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(HeapStatus {
            copy: m.parse("copy")?,
            pause_ns: m.parse("pause-ns")?,
            fork_ns: m.parse("fork-ns")?,
            ended: m.get("ended").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        let plan = HeapPlan { redact: true, limit_s: 7 };
        assert_eq!(HeapPlan::from_message(&plan.add_to(Message::new("start"))), Ok(plan));
        assert!(HeapPlan::from_message(&Message::new("start")).is_err());
        for ended in [None, Some("was ended by signal 9".to_owned())] {
            let status = HeapStatus { copy: 7, pause_ns: 8, fork_ns: 9, ended };
            assert_eq!(HeapStatus::from_message(&status.to_message()), Ok(status));
        }
    }
}
