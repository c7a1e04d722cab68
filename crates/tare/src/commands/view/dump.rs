//! The page of a heap dump or of a snapshot that was kept: no run, and one page.

use super::file_name;
use crate::commands::heap::Paged;
use crate::commands::report;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tare_view::{Code, CodeOf, Export, Kind, Loaded, Problem, Shown, Source, State, View};

pub struct Dump {
    name: String,
    /// What a command calls it.
    called: String,
    heap: Mutex<Paged>,
    /// An older one, to be compared.
    before: Option<Mutex<Paged>>,
}

/// Whether a file is a heap dump or a snapshot: by its beginning, or its name if it is packed.
pub fn is_one(path: &Path) -> bool {
    let mut head = [0; 12];
    let begins = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    let name = path.to_string_lossy();
    begins && head == *b"JAVA PROFILE"
        || [".hprof", ".hprof.gz", ".tareheap"].iter().any(|ending| name.ends_with(ending))
}

impl Dump {
    pub fn open(path: &Path, before: Option<&Path>, stop: &Arc<AtomicBool>) -> Result<Self> {
        let heap = Mutex::new(Paged::of_file(path, stop)?);
        let before = before.map(|path| Paged::of_file(path, stop)).transpose()?.map(Mutex::new);
        Ok(Dump { name: file_name(path), called: report::quoted(path), heap, before })
    }
}

fn no_run() -> Problem {
    Problem::new(404, "this is a heap dump, which has no run; its page is the heap's")
}

impl Source for Dump {
    fn state(&self) -> State {
        let age = Duration::ZERO;
        State { epoch: 0, kind: Kind::File, age, duration: 0, sentence: None }
    }

    fn command(&self) -> Vec<String> {
        vec!["tare".to_owned(), "heap".to_owned(), self.called.clone()]
    }

    fn load(&self, _: &View) -> Result<Loaded, Problem> {
        Err(no_run())
    }

    fn timed(&self, _: &View) -> Result<Loaded, Problem> {
        Err(no_run())
    }

    fn compared(&self, _: &View, _: bool) -> Result<Loaded, Problem> {
        Err(no_run())
    }

    fn document(&self, _: &View) -> Result<Value, Problem> {
        Err(no_run())
    }

    fn run(&self) -> Result<Value, Problem> {
        Ok(json!({
            "name": self.name,
            "headline": [self.name],
            "run": {},
            "series": [],
            "pages": [{ "page": "heap", "has": true, "how": null }],
        }))
    }

    fn exports(&self) -> Value {
        json!([])
    }

    fn export(&self, _: &View, _: &str, _: &Shown) -> Result<Export, Problem> {
        Err(no_run())
    }

    fn code(&self, _: &CodeOf) -> Result<Code, Problem> {
        Err(no_run())
    }

    fn heap(&self, question: &str, what: Option<&str>) -> Result<Value, Problem> {
        let heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.before.as_ref();
        let before = before.map(|before| before.lock().unwrap_or_else(PoisonError::into_inner));
        heap.answer(question, what, before.as_deref())
            .map_err(|error| Problem::new(400, format!("{error:#}")))
    }
}
