//! Objects of a `.hprof` file: all of a part, or one by its address.

use super::record::{self, Record};
use super::{Block, Hprof};
use crate::classes::{ClassId, Classes, Type, UNKNOWN};
use crate::error::Result;
use crate::layout::Layout;
use crate::roots::{Root, Thread};
use crate::source::{About, Decoder, MOST_VALUES, Object, Part, Source, Visitor};
use crate::window::{PORTION, Window};
use std::ops::Range;

/// Of the file, for one piece of work.
const PART: u64 = 16 << 20;

/// Elements that are handed on at once.
const BATCH: usize = 8 << 10;

/// Blocks in groups that are worth a turn.
pub fn parts(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut begin, mut sum) = (0, 0);
    for (at, block) in blocks.iter().enumerate() {
        sum += block.end.saturating_sub(block.begin);
        if sum >= PART || at + 1 == blocks.len() {
            parts.push(begin..at + 1);
            (begin, sum) = (at + 1, 0);
        }
    }
    parts
}

impl Hprof {
    /// The class of an object, found in the file.
    pub(super) fn class_of(&self, address: u64) -> Result<Option<ClassId>> {
        if address == 0 {
            return Ok(None);
        }
        Ok(match self.object(address, 0, 0)? {
            Some(Object::Instance { class, .. } | Object::Array { class, .. }) => Some(class),
            _ => None,
        })
    }

    fn class_at(&self, address: u64) -> ClassId {
        self.classes.at(address).unwrap_or(UNKNOWN)
    }

    /// Shows the elements of an array, behind whose header the window stands.
    fn elements(
        &self,
        window: &mut Window<'_>,
        length: u32,
        batch: &mut Vec<u64>,
        show: &mut dyn FnMut(&[u64]),
    ) -> Result<()> {
        let size = self.width.bytes();
        let mut left = length as usize;
        while left > 0 {
            let count = left.min(BATCH);
            let Some(bytes) = window.take(count * size)? else { return Ok(()) };
            batch.clear();
            batch.extend(bytes.chunks_exact(size).map(|bytes| self.width.id(bytes)));
            show(batch);
            left -= count;
        }
        Ok(())
    }

    fn walk_block(
        &self,
        window: &mut Window<'_>,
        batch: &mut Vec<u64>,
        block: &Block,
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        window.go(block.begin, block.end);
        let wants_values = visitor.wants_values();
        // Most objects are of the class of the one before.
        let mut last = (0, UNKNOWN);
        while let Ok(record) = record::next(window, self.width)? {
            match record {
                Record::Root { .. } | Record::Other => {}
                Record::Class => {
                    let Ok(class) = record::class(window, self.width)? else { return Ok(()) };
                    batch.clear();
                    batch.extend([class.super_class, class.loader]);
                    batch.extend(&class.pool);
                    if self.conventions.has_protection_domains() {
                        batch.extend(class.owners);
                    }
                    let statics = class.statics.iter();
                    let references = statics.filter(|(_, kind, _)| *kind == Type::Reference);
                    batch.extend(references.map(|(_, _, value)| *value));
                    visitor.class(class.address, self.class_at(class.address), batch);
                }
                Record::Instance { address, class, length } => {
                    if last.0 != class {
                        last = (class, self.class_at(class));
                    }
                    let Some(bytes) = window.take(length as usize)? else { return Ok(()) };
                    visitor.instance(address, last.1, bytes);
                }
                Record::ObjectArray { address, class, length } => {
                    visitor.array(address, self.class_at(class), length);
                    self.elements(window, length, batch, &mut |some| visitor.elements(some))?;
                    visitor.array_end();
                }
                Record::PrimitiveArray { address, kind, length, .. } => {
                    let all = record::body_length(self.width, &record);
                    let wanted = if wants_values { all.min(MOST_VALUES as u64) } else { 0 };
                    let Some(bytes) = window.take(wanted as usize)? else { return Ok(()) };
                    visitor.values(address, kind, length, bytes);
                    window.skip(all - wanted);
                }
            }
        }
        Ok(())
    }

    /// Looks for an object in a block.
    fn find_in(
        &self,
        window: &mut Window<'_>,
        block: &Block,
        wanted: u64,
        skip: u32,
        limit: u32,
    ) -> Result<Option<Object>> {
        window.go(block.begin, block.end);
        while let Ok(record) = record::next(window, self.width)? {
            let is_it = match &record {
                Record::Class => {
                    let Ok(class) = record::class(window, self.width)? else { return Ok(None) };
                    if class.address == wanted {
                        return Ok(Some(Object::Class(self.class_at(wanted))));
                    }
                    continue;
                }
                Record::Instance { address, .. }
                | Record::ObjectArray { address, .. }
                | Record::PrimitiveArray { address, .. } => *address == wanted,
                _ => false,
            };
            if is_it {
                return self.read_body(window, &record, skip, limit);
            }
            if !record::pass(window, self.width, &record) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn read_body(
        &self,
        window: &mut Window<'_>,
        record: &Record,
        skip: u32,
        limit: u32,
    ) -> Result<Option<Object>> {
        Ok(match *record {
            Record::Instance { class, length, .. } => {
                let bytes = window.take(length as usize)?.unwrap_or_default().to_vec();
                Some(Object::Instance { class: self.class_at(class), bytes })
            }
            Record::ObjectArray { class, length, .. } => {
                let skip = skip.min(length);
                window.skip(u64::from(skip) * self.width.bytes() as u64);
                let (mut elements, mut batch) = (Vec::new(), Vec::new());
                let count = (length - skip).min(limit);
                let mut keep = |some: &[u64]| elements.extend_from_slice(some);
                self.elements(window, count, &mut batch, &mut keep)?;
                Some(Object::Array { class: self.class_at(class), length, elements })
            }
            Record::PrimitiveArray { kind, length, has_body, .. } => {
                let skip = skip.min(length);
                let size = kind.size(0) as usize;
                window.skip(u64::from(skip) * size as u64);
                let most = MOST_VALUES / size;
                let count = if has_body { (length - skip).min(limit) as usize } else { 0 };
                let bytes = window.take(count.min(most) * size)?.unwrap_or_default().to_vec();
                Some(Object::Values { kind, length, bytes })
            }
            _ => None,
        })
    }
}

impl Source for Hprof {
    fn classes(&self) -> &Classes {
        &self.classes
    }

    fn roots(&self) -> &[Root] {
        &self.roots
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn decoder(&self) -> Decoder {
        Decoder::Big(self.width.bytes() as u32)
    }

    fn about(&self) -> About {
        let origin = String::new();
        About { taken: self.taken, origin, notes: self.notes.clone(), is_redacted: false }
    }

    fn state(&self) -> std::result::Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self.found)
    }

    fn is_snapshot(&self) -> bool {
        false
    }

    fn parts(&self) -> Vec<Part> {
        let part = |range: &Range<usize>| {
            let blocks = &self.found.blocks[range.clone()];
            Part {
                most_edges: blocks.iter().map(|block| block.most_edges).sum(),
                objects: blocks.iter().map(|block| block.objects).sum(),
                bytes: blocks.iter().map(|block| block.end - block.begin).sum(),
            }
        };
        self.parts.iter().map(part).collect()
    }

    fn walk(&self, part: usize, visitor: &mut dyn Visitor) -> Result<()> {
        let mut window = Window::new(&self.input, PORTION);
        let mut batch = Vec::new();
        for block in &self.found.blocks[self.parts[part].clone()] {
            self.walk_block(&mut window, &mut batch, block, visitor)?;
        }
        Ok(())
    }

    fn object(&self, address: u64, skip: u32, limit: u32) -> Result<Option<Object>> {
        let mut window = Window::new(&self.input, PORTION / 4);
        for block in &self.found.blocks {
            if (block.lowest..=block.highest).contains(&address) {
                let found = self.find_in(&mut window, block, address, skip, limit)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }
}
