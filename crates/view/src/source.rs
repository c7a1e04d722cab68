//! Where the figures come from: a file, one that grows, a JVM. Whoever serves a page implements
//! [`Source`]; the page and its queries know no more of it.

use crate::view::View;
use serde_json::Value;
use std::ops::Range;
use std::time::Duration;
use tare_analysis::{Bounds, Filter};
use tare_profile::{Profile, SeriesId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file that is complete.
    File,
    /// More comes.
    Live,
    /// Nothing more comes of what was live.
    Ended,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Live => "live",
            Kind::Ended => "ended",
        }
    }
}

/// How things stand.
#[derive(Clone, Debug)]
pub struct State {
    /// Grows whenever there is something new.
    pub epoch: u64,
    pub kind: Kind,
    /// How old the newest of it is.
    pub age: Duration,
    /// How long the run has been recorded, in nanoseconds.
    pub duration: u64,
    /// What is to be said of it, such as that the JVM has gone.
    pub sentence: Option<String>,
}

/// What a view has left of a profile, and what to make of it.
pub struct Loaded {
    pub profile: Profile,
    /// The first is the one that is shown.
    pub metrics: Vec<SeriesId>,
    pub bounds: Option<Bounds>,
    /// The part of the filter that only moves values.
    pub shape: Filter,
    /// What was left out of waiting, for people.
    pub idle: Option<String>,
    pub time: Option<Range<u64>>,
    /// How much of it there is, for the cache: about its bytes in memory.
    pub size: usize,
}

/// Why there is no answer: an HTTP status, a sentence, and what to do about it.
#[derive(Clone, Debug)]
pub struct Problem {
    pub status: u16,
    pub text: String,
    pub remedy: Option<String>,
}

impl Problem {
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Problem { status, text: text.into(), remedy: None }
    }
}

/// A file that was made of a view.
pub struct Export {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What a view is compared with.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Against {
    /// The other file.
    File,
    /// Another part of the run.
    Time(String),
}

/// How a view is shown, for a file that is opened in the same way.
#[derive(Clone, Default, Debug)]
pub struct Shown {
    /// Names of frames, from below the root to the one that fills the width.
    pub zoom: Vec<String>,
    /// What stands behind `#` in an address of the exported page.
    pub state: String,
    /// What it is compared with.
    pub against: Option<Against>,
}

/// A method whose code is asked for, as the recording names it.
#[derive(Clone, Debug)]
pub struct CodeOf {
    pub class: String,
    pub file: String,
    pub name: String,
    pub descriptor: String,
}

/// The text of a file, or of a class's methods.
pub struct Code {
    /// Where it is from, for people.
    pub origin: String,
    /// It is no bytecode.
    pub is_source: bool,
    /// Each with its number, if it has one.
    pub lines: Vec<(Option<u32>, String)>,
    /// The row at which the method begins, where the text itself tells.
    pub begins: Option<usize>,
}

pub trait Source: Send + Sync {
    fn state(&self) -> State;

    /// The words of a command that shows the same: `report run.tare`.
    fn command(&self) -> Vec<String>;

    /// What a view shows.
    fn load(&self, view: &View) -> Result<Loaded, Problem>;

    /// The same of the whole run, with times.
    fn timed(&self, view: &View) -> Result<Loaded, Problem>;

    /// A view to compare: with what tells how much its values scatter. `other` is the file that was
    /// before, if there is one.
    fn compared(&self, view: &View, other: bool) -> Result<Loaded, Problem>;

    /// What is told beside trees and lists: the JSON of a report, by its keys.
    fn document(&self, view: &View) -> Result<Value, Problem>;

    /// What it is a recording of: `run`, `series`, `headline`, `name` and `pages` of `/api/run`.
    fn run(&self) -> Result<Value, Problem>;

    /// Formats to export to: `exports` of `/api/run`.
    fn exports(&self) -> Value;

    fn export(&self, view: &View, format: &str, shown: &Shown) -> Result<Export, Problem>;

    /// The source of a method of the recording, or its bytecode.
    fn code(&self, asked: &CodeOf) -> Result<Code, Problem>;

    /// What is asked of a heap: `overview`, `histo`, `dominators` or `path`.
    fn heap(&self, _question: &str, _what: Option<&str>) -> Result<Value, Problem> {
        Err(Problem::new(404, "there is no heap dump here"))
    }

    /// What a page of a JVM can switch on and off: `parts` of `/api/live`. Null if it steers nothing.
    fn parts(&self) -> Value {
        Value::Null
    }

    /// What is measured exactly at this moment, or was last; null if nothing.
    fn exactly(&self) -> Value {
        Value::Null
    }

    /// The same with its figures.
    fn exact_figures(&self) -> Result<Value, Problem> {
        Err(Problem::new(404, NOT_LIVE))
    }

    /// Does what somebody has asked for on the page.
    fn wish(&self, _wish: &Wish) -> Result<(), Problem> {
        Err(Problem::new(409, NOT_LIVE))
    }

    /// A page is open, and hears of it.
    fn heard(&self) {}
}

const NOT_LIVE: &str = "this is a file, and no JVM that could be measured";

/// What a page of a running JVM may ask to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Record something besides, or no longer.
    Switch { part: String, on: bool },
    /// Count and time every call of a method; with `below` also of all that it calls.
    Measure { method: String, below: bool },
    /// Put the program's code back.
    TakeBack,
    /// Take a snapshot of the heap, to be asked.
    Snapshot,
}

impl Wish {
    /// As it is written in a request's body.
    pub fn of(body: &[u8]) -> Result<Self, Problem> {
        let wish: Value = serde_json::from_slice(body)
            .map_err(|_| Problem::new(400, "what is asked for is not JSON"))?;
        let text = |key: &str| {
            let text = wish[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            text.ok_or_else(|| Problem::new(400, format!("{key} is missing")))
        };
        match text("do")?.as_str() {
            "switch" => {
                let on = wish["on"].as_bool();
                let on = on.ok_or_else(|| Problem::new(400, "on is true or false"))?;
                Ok(Wish::Switch { part: text("part")?, on })
            }
            "measure" => {
                let below = wish["below"].as_bool().unwrap_or(false);
                Ok(Wish::Measure { method: text("method")?, below })
            }
            "take-back" => Ok(Wish::TakeBack),
            "snapshot" => Ok(Wish::Snapshot),
            other => Err(Problem::new(400, format!("nobody knows how to do {other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_whole_or_refused() {
        let of = |text: &str| Wish::of(text.as_bytes()).map_err(|problem| problem.text);
        let measure = Wish::Measure { method: "a.B.c".to_owned(), below: true };
        assert_eq!(of(r#"{"do": "measure", "method": "a.B.c", "below": true}"#), Ok(measure));
        let off = Wish::Switch { part: "alloc".to_owned(), on: false };
        assert_eq!(of(r#"{"do": "switch", "part": "alloc", "on": false}"#), Ok(off));
        assert_eq!(of(r#"{"do": "take-back"}"#), Ok(Wish::TakeBack));
        assert_eq!(
            of(r#"{"do": "switch", "part": "alloc"}"#),
            Err("on is true or false".to_owned())
        );
        assert_eq!(of(r#"{"do": "measure", "method": ""}"#), Err("method is missing".to_owned()));
        assert!(of(r#"{"do": "exec"}"#).is_err() && of("").is_err() && of("[]").is_err());
    }
}
