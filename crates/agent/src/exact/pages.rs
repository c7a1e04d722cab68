//! The files behind a session's memory, and the pages of them that are real: trees, names and, in a
//! trace, where the front end says how far it has read.
//!
//! Pages are allocated before anybody may touch them: memory that cannot be had makes a limit stay
//! where it is, and not the program die.

use super::budget::{Budget, Want};
use super::headroom::Headroom;
use super::names_file::{NamesFile, NoRoom};
use super::{locked, slots};
use crate::shared_memory::{self, Writers};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use tare_arena::MethodName;
use tare_arena::layout::{PAGE, tails};

pub struct Pages {
    pub budget: u64,
    arena: File,
    division: Mutex<Budget>,
    headroom: Headroom,
    names: NamesFile,
    /// In a trace only.
    tails: Option<File>,
}

impl Pages {
    /// Nothing is real yet but the tails, which are small.
    pub fn new(budget: u64, trace: bool) -> io::Result<Self> {
        let (names, headroom) = (NamesFile::new()?, Headroom::new());
        let arena = shared_memory::create(c"tare-arena")?;
        arena.set_len(budget)?;
        let tails = trace.then(|| shared_memory::create(c"tare-tails")).transpose()?;
        let of_tails = if trace { tails::length(budget) } else { 0 };
        let division = Mutex::new(Budget::new(budget - of_tails));
        let pages = Pages { budget, arena, division, headroom, names, tails };
        if let Some(tails) = &pages.tails {
            pages.allocate(tails, 0, of_tails)?;
        }
        Ok(pages)
    }

    /// Maps everything at addresses that no session had before: those, and the session's number.
    /// From now on nobody else can change anything but the tails, and no file changes its size.
    pub fn map(&self) -> io::Result<(u64, u32)> {
        let (base, session) = slots::take()?;
        slots::map(base, self.budget, libc::MAP_SHARED, self.arena.as_raw_fd())?;
        let mapped = shared_memory::seal(&self.arena, Writers::Mapped).and_then(|()| {
            let Some(tails) = &self.tails else { return Ok(()) };
            let length = tails::length(self.budget);
            slots::map(base + tails::AT, length, libc::MAP_SHARED, tails.as_raw_fd())?;
            shared_memory::seal(tails, Writers::Any)
        });
        mapped.inspect_err(|_| self.give_back(base))?;
        Ok((base, session))
    }

    /// What was mapped becomes zeros.
    pub fn give_back(&self, base: u64) {
        slots::give_back(base, self.budget);
        if self.tails.is_some() {
            slots::give_back(base + tails::AT, tails::length(self.budget));
        }
    }

    /// The descriptors for a front end: trees, names, and for the one that drains a trace what it
    /// writes.
    pub fn files(&self, drains: bool) -> io::Result<Vec<File>> {
        let mut files = vec![shared_memory::read_only(&self.arena)?, self.names.file()?];
        if let Some(tails) = self.tails.as_ref().filter(|_| drains) {
            files.push(tails.try_clone()?);
        }
        Ok(files)
    }

    /// Bytes of the names.
    pub fn of_names(&self) -> u64 {
        self.names.backed()
    }

    /// The most that trees may have, in whole pages.
    pub fn for_trees(&self, want: Want) -> u64 {
        locked(&self.division).for_trees(want) & !(PAGE as u64 - 1)
    }

    /// Makes pages of the arena real, up to an end or as far as the budget goes; up to where.
    pub fn back(&self, from: u64, end: u64, want: Want) -> io::Result<u64> {
        let end = locked(&self.division).take_for_trees(end, want) & !(PAGE as u64 - 1);
        let got = self.allocate(&self.arena, from, end.saturating_sub(from));
        got.inspect_err(|_| locked(&self.division).leave_to_trees(from))?;
        Ok(end)
    }

    fn allocate(&self, file: &File, at: u64, length: u64) -> io::Result<()> {
        if !self.headroom.allows(length) {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        shared_memory::allocate(file, at, length)
    }

    /// Logs a name. Names, and what is kept `beside` them for as long as their classes are there,
    /// are part of the budget.
    pub fn log_name(&self, method: &MethodName, beside: u64) -> Result<(), NoRoom> {
        self.names.add(method, beside, &self.division, &self.headroom)
    }
}
