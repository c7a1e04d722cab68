//! Our own snapshots as a source of objects: the memory of a JVM as it was, which classes with
//! offsets explain.

mod table;
mod walk;

use crate::addresses::Addresses;
use crate::classes::{ClassId, Classes, IdMap};
use crate::error::{HeapError, Result};
use crate::heap::Options;
use crate::input::ReadAt;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::roots::{Root, Thread};
use crate::snapshot::{self, MAGIC, Snapshot};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub struct Image {
    snapshot: Snapshot,
    /// Sizes and classes of objects, and the same for all of them.
    objects: snapshot::Layout,
    layout: Layout,
    classes: Classes,
    /// The class of an object by what its header says, and the one of a mirror.
    by_klass: IdMap<ClassId>,
    by_mirror: IdMap<ClassId>,
    /// References that are in no field.
    edges: IdMap<Vec<u64>>,
    roots: Vec<Root>,
    threads: Vec<Thread>,
    parts: Vec<Stretch>,
    notes: Vec<String>,
}

/// What was found by walking over all objects.
#[derive(Serialize, Deserialize)]
struct Found {
    parts: Vec<Stretch>,
    notes: Vec<String>,
}

/// A part of a run that begins with an object.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stretch {
    address: u64,
    /// In the image.
    begin: u64,
    end: u64,
    most_edges: u64,
    objects: u64,
}

impl Stretch {
    /// Whether an image of this length can have it.
    fn is_in(&self, length: u64) -> bool {
        let counts = [self.objects, self.most_edges];
        self.begin <= self.end
            && self.end <= length
            && self.address.checked_add(length).is_some()
            && counts.iter().all(|count| *count <= length)
    }
}

impl Image {
    /// Whether a file begins as a snapshot does.
    pub fn is_one(file: &File) -> bool {
        let mut magic = [0; MAGIC.len()];
        file.read_exact_at(&mut magic, 0).is_ok() && magic == MAGIC
    }

    /// Reads everything but references; the addresses of all objects beside it.
    pub fn open(file: File, progress: &dyn Progress) -> Result<(Image, Vec<Addresses>)> {
        let snapshot = Snapshot::read(file).map_err(|error| match error {
            snapshot::ReadError::Io(error) => HeapError::Io { doing: "it cannot be read", error },
            error => HeapError::Broken { reason: error.to_string() },
        })?;
        let mut image = table::image(snapshot)?;
        let addresses = image.find_objects(progress)?;
        image.find_statics()?;
        image.find_roots()?;
        Ok((image, addresses))
    }

    /// The same with what was found before. `None` if that makes no sense.
    pub fn reopen(file: File, state: &[u8], options: &Options) -> Result<Option<Image>> {
        let Ok(found) = serde_json::from_slice::<Found>(state) else { return Ok(None) };
        let Ok(snapshot) = Snapshot::read(file) else { return Ok(None) };
        if !found.parts.iter().all(|part| part.is_in(snapshot.image_bytes())) {
            return Ok(None);
        }
        let mut image = table::image(snapshot)?;
        (image.parts, image.notes) = (found.parts, found.notes);
        image.find_statics()?;
        image.find_roots()?;
        image.add_lasting_classes(options.conventions)?;
        Ok(Some(image))
    }

    /// Where an address is in the image.
    fn offset(&self, address: u64) -> Option<(u64, u64)> {
        let runs = &self.snapshot.runs;
        let at = runs.partition_point(|run| run.address <= address).checked_sub(1)?;
        let distance = address - runs[at].address;
        let left = runs[at].length.checked_sub(distance).filter(|left| *left > 0)?;
        Some((runs[at].offset + distance, left))
    }
}

impl ReadAt for Image {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.snapshot.image_bytes().saturating_sub(offset);
        let count = left.min(buffer.len() as u64) as usize;
        let part = &mut buffer[..count];
        self.snapshot.read_at(offset, part).map_err(HeapError::io("it cannot be read"))?;
        Ok(count)
    }
}
