//! The rules of a module's functions, sorted by address: four bytes per row.
//!
//! Text is cut into pages of 4 KiB. A row holds its place in the page and the number of its rule,
//! both 16 bits; rules are few (some hundred in HotSpot's library) and kept once. Every page
//! begins with a row of its own, so that a search stays inside one page: a dozen comparisons in
//! memory that lies together.

use crate::cfi::{self, Section};
use crate::rule::Rule;
use std::collections::HashMap;

const PAGE: u32 = 1 << 12;
/// The rule number of addresses that no function covers.
const NONE: u16 = u16::MAX;

#[derive(Default)]
pub struct Table {
    /// What the rows are relative to.
    start: u64,
    /// The first row of each page, and the end of the last.
    pages: Box<[u32]>,
    rows: Box<[u32]>,
    rules: Box<[Rule]>,
    /// Functions whose entries could not be read.
    pub unreadable: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableFault {
    /// The text is longer than 1 GiB.
    TextTooLong,
    /// The table would need more than the given number of bytes.
    TooLarge,
}

const TEXT_LIMIT: u64 = 1 << 30;

impl Table {
    /// Builds the table of the functions of a section that lie between two addresses.
    /// `expected` is how many functions there are at most.
    pub fn build(
        section: Section<'_>,
        text: std::ops::Range<u64>,
        expected: usize,
        limit: usize,
    ) -> Result<Self, TableFault> {
        let length = text.end.saturating_sub(text.start);
        if length > TEXT_LIMIT {
            return Err(TableFault::TextTooLong);
        }
        let (mut functions, mut unreadable) = cfi::functions(section, expected);
        functions.retain(|f| text.start <= f.start && f.end <= text.end);
        functions.sort_unstable_by_key(|f| (f.start, f.end));
        let mut builder = Builder {
            length: length as u32,
            limit,
            pages: Vec::with_capacity((length as u32 / PAGE) as usize + 2),
            rows: Vec::with_capacity(functions.len()),
            rules: Vec::new(),
            numbers: HashMap::new(),
            current: NONE,
        };
        let mut said = Vec::new();
        let mut end = text.start;
        for (index, function) in functions.iter().enumerate() {
            if function.start < end {
                // Two descriptions of the same bytes: the first one stands.
                continue;
            }
            if function.start > end {
                builder.set((end - text.start) as u32, NONE)?;
            }
            // Functions that follow one another may overlap; the next one ends this one.
            let next = functions.get(index + 1).map_or(text.end, |next| next.start);
            end = function.end.min(next.max(function.start + 1));
            // What was said before a fault may be as wrong as the rest: all of it or nothing.
            said.clear();
            let read = cfi::rows(section, *function, |at, rule| said.push((at, rule)));
            if read.is_err() {
                unreadable += 1;
                builder.set((function.start - text.start) as u32, NONE)?;
                continue;
            }
            for &(at, rule) in said.iter().filter(|(at, _)| (function.start..end).contains(at)) {
                let number = builder.number(rule);
                builder.set((at - text.start) as u32, number)?;
            }
        }
        builder.set((end - text.start) as u32, NONE)?;
        builder.finish(text.start, unreadable)
    }

    /// The rule that holds at an address. Async-signal-safe.
    pub fn find(&self, address: u64) -> Option<&Rule> {
        let offset = u32::try_from(address.checked_sub(self.start)?).ok()?;
        let page = (offset / PAGE) as usize;
        let from = *self.pages.get(page)? as usize;
        let to = *self.pages.get(page + 1)? as usize;
        let rows = self.rows.get(from..to)?;
        let place = offset % PAGE;
        let behind = rows.partition_point(|row| row >> 16 <= place);
        let row = rows.get(behind.checked_sub(1)?)?;
        self.rules.get((row & 0xffff) as usize)
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.pages) + size_of_val(&*self.rows) + size_of_val(&*self.rules)
    }
}

struct Builder {
    length: u32,
    limit: usize,
    pages: Vec<u32>,
    rows: Vec<u32>,
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    /// The rule in force.
    current: u16,
}

impl Builder {
    fn number(&mut self, rule: Rule) -> u16 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        // A module with 65,535 different rules does not exist; its last ones would have none.
        if self.rules.len() >= NONE as usize {
            return NONE;
        }
        let number = self.rules.len() as u16;
        self.rules.push(rule);
        self.numbers.insert(rule, number);
        number
    }

    /// From this place on another rule holds. Places ascend.
    fn set(&mut self, at: u32, number: u16) -> Result<(), TableFault> {
        let at = at.min(self.length);
        self.open_pages(at)?;
        if number == self.current {
            return Ok(());
        }
        self.current = number;
        let row = (at % PAGE) << 16 | u32::from(number);
        // A row that was said before for the same place covers nothing.
        let first = self.pages.last().map_or(0, |first| *first as usize);
        let last = self.rows.get_mut(first..).and_then(<[u32]>::last_mut);
        if let Some(last) = last.filter(|last| **last >> 16 == at % PAGE) {
            *last = row;
            return Ok(());
        }
        self.push(row)
    }

    /// Begins the pages up to the one with this place, each with the rule in force.
    fn open_pages(&mut self, at: u32) -> Result<(), TableFault> {
        while (self.pages.len() as u64) * u64::from(PAGE) <= u64::from(at) {
            self.pages.push(self.rows.len() as u32);
            self.push(u32::from(self.current))?;
        }
        Ok(())
    }

    fn push(&mut self, row: u32) -> Result<(), TableFault> {
        let bytes = (self.rows.len() + self.pages.len() + 2) * size_of::<u32>();
        if bytes + self.rules.len() * size_of::<Rule>() > self.limit {
            return Err(TableFault::TooLarge);
        }
        self.rows.push(row);
        Ok(())
    }

    fn finish(mut self, start: u64, unreadable: u64) -> Result<Table, TableFault> {
        // The page that holds the last byte of the text, and the end of its rows.
        self.open_pages(self.length)?;
        self.pages.push(self.rows.len() as u32);
        Ok(Table {
            start,
            pages: self.pages.into_boxed_slice(),
            rows: self.rows.into_boxed_slice(),
            rules: self.rules.into_boxed_slice(),
            unreadable,
        })
    }
}
