//! The pages: what each is a table of, made of the rows of the last seconds.

mod classes;
mod collections;
mod locks;
mod methods;
mod threads;

pub(crate) use classes::{Load, load_table, loads};
pub(crate) use collections::{Pause, pause_table};
pub(crate) use locks::lock_table;
pub(crate) use methods::{Methods, method_table};
pub(crate) use threads::thread_table;

use crate::table::{Column, Table};
use tare_profile::{Profile, SeriesId, ValueKind};

/// What is shown of a JVM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Page {
    #[default]
    Methods,
    Threads,
    Collections,
    Locks,
    Classes,
}

impl Page {
    pub const ALL: [Page; 5] =
        [Page::Methods, Page::Threads, Page::Collections, Page::Locks, Page::Classes];

    /// For scripts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Page::Methods => "methods",
            Page::Threads => "threads",
            Page::Collections => "collections",
            Page::Locks => "locks",
            Page::Classes => "classes",
        }
    }

    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Page::Methods => "Methods",
            Page::Threads => "Threads",
            Page::Collections => "GC",
            Page::Locks => "Locks",
            Page::Classes => "Classes",
        }
    }

    #[must_use]
    pub fn number(self) -> usize {
        Page::ALL.iter().position(|page| *page == self).unwrap_or(0)
    }

    #[must_use]
    pub fn columns(self) -> &'static [Column] {
        match self {
            Page::Methods => &methods::COLUMNS,
            Page::Threads => &threads::COLUMNS,
            Page::Collections => &collections::COLUMNS,
            Page::Locks => &locks::COLUMNS,
            Page::Classes => &classes::COLUMNS,
        }
    }

    /// What its table is ordered by at first.
    pub(crate) fn first_order(self) -> usize {
        // The newest collections and classes come first as they are.
        match self {
            Page::Collections | Page::Classes => usize::MAX,
            Page::Methods | Page::Threads | Page::Locks => 0,
        }
    }

    pub(crate) fn empty(self) -> Table {
        Table::empty(self.columns())
    }
}

/// What there is beside a row: those who called a method and those that it called, or the like.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Detail {
    pub left: Side,
    pub right: Side,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Side {
    pub title: String,
    /// Shares, where it has some, and names.
    pub rows: Vec<(Option<f64>, String)>,
}

/// A method that can be woven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Callable {
    pub class: String,
    pub name: String,
    pub descriptor: String,
}

/// What the last seconds are: the profile has their rows and no others.
pub(crate) struct Seconds<'p> {
    pub profile: &'p Profile,
    /// When they began and ended, in nanoseconds of the recording.
    pub from: u64,
    pub to: u64,
}

impl Seconds<'_> {
    pub fn count(&self) -> f64 {
        ((self.to - self.from) as f64 / 1e9).max(1e-3)
    }
}

/// The samples of a recording: by processor time, or by the wall clock.
pub(crate) fn samples(profile: &Profile) -> Option<SeriesId> {
    named(profile, "cpu", &ValueKind::CpuTime)
        .or_else(|| named(profile, "wall", &ValueKind::WallTime))
}

pub(crate) fn named(profile: &Profile, name: &str, kind: &ValueKind) -> Option<SeriesId> {
    let mut all = profile.all_series();
    all.find(|(_, series)| series.info().name == name && series.info().kind == *kind)
        .map(|(id, _)| id)
}

/// A share of a sum; none of nothing.
pub(crate) fn share(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}
