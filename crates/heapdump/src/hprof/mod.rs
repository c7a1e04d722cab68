//! `.hprof` files of versions 1.0.1 to 1.0.3: those of HotSpot, and Android's.
//!
//! A file is a list of records; those that hold objects are segments, whose insides are a second
//! kind of list. `top` finds the segments, `scan` reads all of them once for addresses, classes
//! and roots, `read` a second time for what they hold. Whatever is missing or damaged is said in
//! notes, and the rest is used.

mod evidence;
mod export;
mod read;
mod record;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod top;
mod write;

pub use record::Width;
pub use write::{ClassOut, Writer};

use crate::addresses::Addresses;
use crate::classes::{ClassId, Classes, IdMap, Type};
use crate::conventions::Conventions;
use crate::error::Result;
use crate::heap::Options;
use crate::input::Input;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::roots::{Root, RootKind, Thread};
use scan::Found;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use top::Top;

pub struct Hprof {
    input: Input,
    width: Width,
    layout: Layout,
    classes: Classes,
    roots: Vec<Root>,
    threads: Vec<Thread>,
    /// What was found by walking over all objects, but for their addresses.
    found: Found,
    /// Groups of its blocks.
    parts: Vec<Range<usize>>,
    /// Milliseconds since 1970.
    taken: u64,
    notes: Vec<String>,
    conventions: Conventions,
}

/// A range of the file that holds whole records inside a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    begin: u64,
    end: u64,
    /// Of its objects.
    lowest: u64,
    highest: u64,
    /// The most references that it can have, each with room for what goes before a list.
    most_edges: u64,
    objects: u64,
}

impl Block {
    /// Whether a file of this length can have it.
    fn is_in(&self, length: u64) -> bool {
        let counts = [self.objects, self.most_edges];
        self.begin <= self.end && self.end <= length && counts.iter().all(|count| *count <= length)
    }
}

impl Hprof {
    /// Reads everything but references; the addresses of all objects beside it.
    pub fn open(mut input: Input, progress: &dyn Progress) -> Result<(Hprof, Vec<Addresses>)> {
        let mut notes = std::mem::take(&mut input.notes);
        let top = top::read(&input, &mut notes)?;
        let (found, addresses) = scan::scan(&input, &top, progress)?;
        Ok((Hprof::new(input, &top, found, notes)?, addresses))
    }

    /// The same with what was found before. `None` if that makes no sense.
    pub fn reopen(mut input: Input, state: &[u8], options: &Options) -> Result<Option<Hprof>> {
        let Ok(found) = serde_json::from_slice::<Found>(state) else { return Ok(None) };
        if !found.blocks.iter().all(|block| block.is_in(input.length())) {
            return Ok(None);
        }
        let mut notes = std::mem::take(&mut input.notes);
        let top = top::read(&input, &mut notes)?;
        let mut hprof = Hprof::new(input, &top, found, notes)?;
        hprof.add_lasting_classes(options.conventions)?;
        Ok(Some(hprof))
    }

    fn new(input: Input, top: &Top, found: Found, mut notes: Vec<String>) -> Result<Hprof> {
        notes.extend(found.notes.iter().cloned());
        let layout = found.evidence.layout(top.width);
        let mut classes = table::classes(&input, top, &found.classes)?;
        let pointer = if top.width == Width::Four { Type::Int } else { Type::Long };
        layout.set_sizes(&mut classes, pointer);
        let (roots, threads) = table::roots(&input, top, &found.roots)?;
        Ok(Hprof {
            width: top.width,
            taken: top.taken,
            parts: read::parts(&found.blocks),
            found,
            input,
            layout,
            classes,
            roots,
            threads,
            notes,
            conventions: Conventions::Ours,
        })
    }

    /// Classes of the JVM's own loaders are never unloaded, although a dump lists only some.
    pub fn add_lasting_classes(&mut self, conventions: Conventions) -> Result<()> {
        self.conventions = conventions;
        let mut loaders: IdMap<Option<ClassId>> = IdMap::default();
        for (_, class) in self.classes.iter() {
            if loaders.len() < MOST_LOADERS && !loaders.contains_key(&class.loader) {
                let of = self.class_of(class.loader)?;
                loaders.insert(class.loader, of);
            }
        }
        for (id, class) in self.classes.iter().filter(|(_, class)| class.address != 0) {
            let loader = loaders.get(&class.loader).copied().flatten();
            if self.classes.stays(id, loader, conventions) {
                let (object, kind) = (class.address, RootKind::SystemClass);
                self.roots.push(Root { object, kind, thread: None, frame: None });
            }
        }
        Ok(())
    }
}

/// Each is looked for in the file.
const MOST_LOADERS: usize = 20_000;
