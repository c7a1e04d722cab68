//! The clock of an arena's ticks: its rate, as far as it is known.

use crate::layout::header;
use crate::tree::{ReadError, u64_at};

/// How to turn ticks into nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    ticks: u64,
    nanos: u64,
    /// Ticks at the agent's last look, for invocations that are under way.
    pub now: u64,
}

impl Clock {
    /// Given the header.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let head = |at| u64_at(bytes, at).ok_or(ReadError::NotAnArena);
        let now = head(header::TICKS_1)?;
        Ok(Clock {
            ticks: now.saturating_sub(head(header::TICKS_0)?),
            nanos: head(header::NANOS_1)?.saturating_sub(head(header::NANOS_0)?),
            now,
        })
    }

    /// Nanoseconds from the start of the session to a reading of its clock.
    #[must_use]
    pub fn since_start(&self, reading: u64) -> u64 {
        let start = self.now.saturating_sub(self.ticks);
        self.nanos(reading.saturating_sub(start))
    }

    #[must_use]
    pub fn nanos(&self, ticks: u64) -> u64 {
        match self.ticks {
            0 => ticks,
            per => u64::try_from(u128::from(ticks) * u128::from(self.nanos) / u128::from(per))
                .unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let clock = Clock { ticks: 2_600, nanos: 1_000, now: 0 };
        assert_eq!(clock.nanos(26), 10);
        assert_eq!(clock.nanos(u64::MAX), 7_094_901_566_811_366_005);
    }
}
