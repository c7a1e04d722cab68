//! The file with the names of a session's methods. It is part of the memory that the recording may
//! use: a name that finds no room is refused, with the reason, and its method is not woven.

use super::budget::Budget;
use super::headroom::Headroom;
use crate::shared_memory;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use tare_arena::{MethodName, NameLog};

/// The file grows by so much at a time.
const STEP: u64 = 64 << 10;

/// Why a name found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// What the recording may use is used up.
    Budget,
    /// The container, or the machine, has none left.
    Machine,
    /// What the search for reachable methods may know of classes that came since it began.
    Search,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoRoom::Budget => {
                "not woven: the names of methods have used up their share of --memory; give more, or \
                 choose fewer classes with --include"
            }
            NoRoom::Machine => {
                "not woven: this container or machine has no memory left for the names of its methods"
            }
            NoRoom::Search => {
                "not woven, nor followed: so many classes were loaded that the search for what \
                 roots reach has used up its memory; a larger --memory gives it more"
            }
        })
    }
}

pub struct NamesFile {
    file: File,
    state: Mutex<State>,
}

struct State {
    log: NameLog,
    /// Bytes of the file that are real.
    backed: u64,
}

impl NamesFile {
    pub fn new() -> io::Result<Self> {
        let file = shared_memory::create(c"tare-names")?;
        let log = NameLog::default();
        file.write_all_at(&log.length().to_le_bytes(), 0)?;
        // We never read it: whoever writes into it fools nobody but its readers.
        shared_memory::keep(&file)?;
        Ok(NamesFile { file, state: Mutex::new(State { log, backed: 0 }) })
    }

    /// For a front end, which can only read it.
    pub fn file(&self) -> io::Result<File> {
        shared_memory::read_only(&self.file)
    }

    /// Bytes that it takes.
    pub fn backed(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).backed
    }

    /// Adds a name, if there is room for it and what is kept `beside` it.
    pub fn add(
        &self,
        method: &MethodName,
        beside: u64,
        budget: &Mutex<Budget>,
        headroom: &Headroom,
    ) -> Result<(), NoRoom> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let record = NameLog::record(method);
        let at = state.log.length();
        let end = at + record.len() as u64;
        let backed = state.backed.max(end.next_multiple_of(STEP));
        if !budget.lock().unwrap_or_else(PoisonError::into_inner).take_for_names(backed + beside) {
            return Err(NoRoom::Budget);
        }
        if backed > state.backed {
            let more = backed - state.backed;
            if !headroom.allows(more)
                || shared_memory::allocate(&self.file, state.backed, more).is_err()
            {
                return Err(NoRoom::Machine);
            }
            state.backed = backed;
        }
        let written = self.file.write_all_at(&record, at);
        written.map_err(|_| NoRoom::Machine)?;
        state.log.add(&record);
        let length = state.log.length().to_le_bytes();
        self.file.write_all_at(&length, 0).map_err(|_| NoRoom::Machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::Names;

    #[test]
    fn names_stay_within_their_part() {
        let names = NamesFile::new().unwrap();
        let (budget, headroom) = (Mutex::new(Budget::new(4 << 20)), Headroom::new());
        let mut method =
            MethodName { class: "a/B".into(), name: "x".repeat(90), ..Default::default() };
        let mut outcome = Ok(());
        while outcome.is_ok() && method.id < 1_000_000 {
            method.id += 1;
            outcome = names.add(&method, 0, &budget, &headroom);
        }
        assert_eq!(outcome, Err(NoRoom::Budget));
        assert_eq!(names.backed(), 2 << 20, "half of the whole, while there are no trees");
        let file = names.file().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 << 20);
        assert!(file.write_all_at(b"x", 0).is_err(), "readers cannot write");
        let mut bytes = vec![0; 2 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(
            Names::read(&bytes).len() as u32,
            method.id - 1,
            "all that were taken are there"
        );
        // What is kept beside the names counts, too.
        let other = NamesFile::new().unwrap();
        let budget = Mutex::new(Budget::new(4 << 20));
        assert_eq!(other.add(&method, 2 << 20, &budget, &headroom), Err(NoRoom::Budget));
        assert_eq!(other.add(&method, 1 << 20, &budget, &headroom), Ok(()));
    }
}
