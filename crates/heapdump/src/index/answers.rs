//! Answers to the usual questions: what was found once is not looked for again, and an index keeps
//! it, so that the first screen of a dump that was read before needs none of the columns.
//!
//! Only what is expensive to find is kept. Names of classes and labels of objects come from the
//! dump, as they do the first time. Whoever asks something else gets an answer from the columns.

use super::{Shelf, Text};
use crate::analyses::histogram::{By, Row};
use crate::analyses::suspects::{self, Suspect, USUAL};
use crate::classes::ClassId;
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::levels::{Level, Sum};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Longer ones are not kept. Most of it are classes, about a hundred bytes each.
const MOST_TEXT: u64 = 64 << 20;

#[derive(Default)]
pub(crate) struct Answers {
    /// In the order of [`USUAL`].
    suspects: [Mutex<Option<Vec<Suspect>>>; USUAL.len()],
    classes: Mutex<Option<Vec<Row>>>,
    /// Where an index has them.
    text: Option<Text>,
    is_read: OnceLock<()>,
}

/// What an index has of them, as JSON.
#[derive(Serialize, Deserialize)]
struct Kept {
    suspects: Vec<Vec<Suspect>>,
    classes: Vec<KeptRow>,
}

/// A class, objects and bytes that are held, all objects and their bytes, and what is retained.
type KeptRow = (ClassId, u64, u64, u64, u64, u64);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// What is known, or else what is found. Whoever asks meanwhile waits for it.
fn known_or<T: Clone>(known: &Mutex<Option<T>>, find: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut known = lock(known);
    if let Some(known) = &*known {
        return Ok(known.clone());
    }
    let found = find()?;
    *known = Some(found.clone());
    Ok(found)
}

impl Answers {
    /// Those of an index, which are read when somebody asks.
    pub(super) fn stored(text: Option<Text>) -> Answers {
        Answers { text, ..Answers::default() }
    }

    /// Suspects by the number of the question in [`USUAL`].
    pub fn suspects(
        &self,
        heap: &Heap,
        question: usize,
        find: impl FnOnce() -> Result<Vec<Suspect>>,
    ) -> Result<Vec<Suspect>> {
        self.read(heap);
        known_or(&self.suspects[question], find)
    }

    /// The histogram by class.
    pub fn classes(&self, heap: &Heap, find: impl FnOnce() -> Vec<Row>) -> Vec<Row> {
        self.read(heap);
        known_or(&self.classes, || Ok(find())).unwrap_or_default()
    }

    fn read(&self, heap: &Heap) {
        self.is_read.get_or_init(|| {
            let (Some(text), Some(shelf)) = (&self.text, &heap.index) else { return };
            let Some((suspects, classes)) = read(text, shelf, heap) else {
                shelf.set_damaged();
                return;
            };
            for (known, suspects) in self.suspects.iter().zip(suspects) {
                *lock(known) = Some(suspects);
            }
            *lock(&self.classes) = Some(classes);
        });
    }
}

/// All answers as an index has them; none if they are too long or the dump cannot be read.
pub(super) fn text(heap: &Heap) -> Option<Vec<u8>> {
    let suspects = USUAL.map(|(least, most)| heap.suspects(least, most));
    let row = |row: Row| {
        let Row { class, held, all, retained, .. } = row;
        let (held, all) = ((held.objects, held.bytes), (all.objects, all.bytes));
        Some((class?, held.0, held.1, all.0, all.1, retained))
    };
    let kept = Kept {
        suspects: suspects.into_iter().collect::<Result<_>>().ok()?,
        classes: heap.histogram(By::Class).into_iter().filter_map(row).collect(),
    };
    let text = serde_json::to_vec(&kept).ok()?;
    (text.len() as u64 <= MOST_TEXT).then_some(text)
}

/// The answers of an index, if they can be those of a heap.
fn read(text: &Text, shelf: &Shelf, heap: &Heap) -> Option<(Vec<Vec<Suspect>>, Vec<Row>)> {
    let length = shelf.index.metadata().ok()?.len();
    if text.length > MOST_TEXT || text.begin.checked_add(text.length)? > length {
        return None;
    }
    let bytes = shelf.bytes(text.begin, text.length as usize, text.sum)?;
    let Kept { mut suspects, classes } = serde_json::from_slice(&bytes).ok()?;
    if suspects.len() != USUAL.len() {
        return None;
    }
    let known = heap.classes().len();
    let is_class = |class: ClassId| (class as usize) < known;
    let is_node = |node: Node| (node as usize) < heap.count();
    let total = heap.sum(Level::Strong).bytes;
    for suspect in suspects.iter_mut().flatten() {
        if !suspect.nodes().all(is_node) || !suspect.classes().all(is_class) {
            return None;
        }
        // It is always the largest that is shown.
        suspect.members.first()?;
        suspect.share = suspects::share(suspect.retained, total);
        if let Some(path) = &mut suspect.path {
            path.root = crate::path::root_text(path.kind);
        }
    }
    let row = |(id, objects, bytes, all_objects, all_bytes, retained): KeptRow| {
        is_class(id).then(|| Row {
            name: heap.classes().get(id).name.clone(),
            class: Some(id),
            loader: None,
            held: Sum { objects, bytes },
            all: Sum { objects: all_objects, bytes: all_bytes },
            retained,
        })
    };
    let classes = classes.into_iter().map(row).collect::<Option<Vec<Row>>>()?;
    Some((suspects, classes))
}
