//! The first walk over all objects: their addresses, the classes, the roots, and where to begin
//! when one object is looked for.

use super::Block;
use super::evidence::Evidence;
use super::record::{self, ClassRecord, Record, Stop, Width};
use super::top::{self, Segment, Top};
use crate::addresses::Addresses;
use crate::classes::Type;
use crate::error::{HeapError, Result};
use crate::input::Input;
use crate::par;
use crate::progress::Progress;
use crate::roots::RootKind;
use crate::window::{PORTION, Window};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Of the file, for one piece of work.
const PIECE: u64 = 16 << 20;

/// Bytes of records in a block. One object is found by walking over its block.
const BLOCK: u64 = 256 << 10;

/// More than any JVM has; each costs memory.
const MOST_CLASSES: usize = 2 << 20;
const MOST_ROOTS: usize = 64 << 20;

/// Notes of the same kind beyond this say nothing new.
const MOST_NOTES: usize = 5;

#[derive(Default, Serialize, Deserialize)]
pub struct Found {
    pub blocks: Vec<Block>,
    pub classes: Vec<ClassRecord>,
    pub roots: Vec<RootRecord>,
    pub evidence: Evidence,
    pub notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct RootRecord {
    pub object: u64,
    pub kind: RootKind,
    pub thread: u32,
    pub frame: u32,
}

pub fn scan(input: &Input, top: &Top, progress: &dyn Progress) -> Result<(Found, Vec<Addresses>)> {
    let pieces = pieces(&top.segments);
    let done = AtomicU64::new(0);
    let outcomes = par::each_with(
        pieces.len(),
        || Window::new(input, PORTION),
        |window, at| {
            let (found, list) = Default::default();
            let mut piece = Piece { width: top.width, found, list };
            for segment in pieces[at] {
                piece.segment(window, *segment)?;
                let length = segment.end - segment.begin;
                let sum = done.fetch_add(length, Ordering::Relaxed) + length;
                progress.tell("reading objects", sum, input.length());
            }
            Ok((piece.found, piece.list))
        },
    );
    let (mut found, mut addresses) = (Found::default(), Vec::new());
    for outcome in outcomes {
        let (part, list): (Found, Addresses) = outcome?;
        addresses.push(list);
        found.blocks.extend(part.blocks);
        found.classes.extend(part.classes);
        found.roots.extend(part.roots);
        found.evidence.merge(&part.evidence);
        found.notes.extend(part.notes);
        if found.classes.len() > MOST_CLASSES || found.roots.len() > MOST_ROOTS {
            let what = "it has more classes or roots than any JVM".to_owned();
            return Err(HeapError::TooLarge { what });
        }
    }
    let more = found.notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        found.notes.truncate(MOST_NOTES);
        found.notes.push(format!("{more} more places are damaged"));
    }
    Ok((found, addresses))
}

/// Segments in groups that are worth a turn.
fn pieces(segments: &[Segment]) -> Vec<&[Segment]> {
    let mut pieces = Vec::new();
    let (mut begin, mut sum) = (0, 0);
    for (at, segment) in segments.iter().enumerate() {
        sum += segment.end - segment.begin;
        if sum >= PIECE {
            pieces.push(&segments[begin..=at]);
            (begin, sum) = (at + 1, 0);
        }
    }
    if begin < segments.len() {
        pieces.push(&segments[begin..]);
    }
    pieces
}

struct Piece {
    width: Width,
    found: Found,
    list: Addresses,
}

/// An array that may have a neighbour.
type Before = Option<(u64, Type, u32)>;

impl Piece {
    fn segment(&mut self, window: &mut Window<'_>, segment: Segment) -> Result<()> {
        window.go(segment.begin, segment.end);
        let mut before: Before = None;
        let mut block = empty(segment.begin);
        loop {
            let offset = window.offset();
            let stop = self.record(window, &mut block, &mut before)?.err();
            let end = if stop.is_some() { offset } else { window.offset() };
            if stop.is_some() || end - block.begin >= BLOCK {
                block.end = end;
                if block.objects > 0 {
                    self.found.blocks.push(std::mem::replace(&mut block, empty(end)));
                } else {
                    block = empty(end);
                }
            }
            match stop {
                None => {}
                Some(Stop::End) => return Ok(()),
                Some(Stop::Unknown(top::END)) if segment.is_open => return Ok(()),
                Some(stop) => {
                    self.tell(&stop, offset, segment.end);
                    return Ok(());
                }
            }
            if self.found.classes.len() > MOST_CLASSES || self.found.roots.len() > MOST_ROOTS {
                return Ok(());
            }
        }
    }

    fn tell(&mut self, stop: &Stop, offset: u64, end: u64) {
        let rest = (end - offset).div_ceil(1024);
        let note = match stop {
            Stop::Unknown(tag) => format!(
                "it is damaged at byte {offset}: there is no object of kind {tag:#04x}; {rest} KiB \
                 of its segment are left out"
            ),
            _ => format!("an object at byte {offset} is cut off; {rest} KiB are left out"),
        };
        if self.found.notes.len() <= MOST_NOTES {
            self.found.notes.push(note);
        }
    }

    /// One record, with its body.
    #[inline]
    fn record(
        &mut self,
        window: &mut Window<'_>,
        block: &mut Block,
        before: &mut Before,
    ) -> Result<std::result::Result<(), Stop>> {
        let width = self.width;
        let record = match record::next(window, width)? {
            Ok(record) => record,
            Err(stop) => return Ok(Err(stop)),
        };
        let (address, array, edges) = match record {
            Record::Root { object, kind, thread, frame } => {
                self.found.roots.push(RootRecord { object, kind, thread, frame });
                return Ok(Ok(()));
            }
            Record::Other => return Ok(Ok(())),
            Record::Class => {
                let class = match record::class(window, width)? {
                    Ok(class) => class,
                    Err(stop) => return Ok(Err(stop)),
                };
                let edges = class.statics.len() + class.pool.len() + class.owners.len() + 2;
                let address = class.address;
                self.found.classes.push(class);
                // A class' own object has a size that is not known.
                *before = None;
                self.add(block, address, edges as u64);
                return Ok(Ok(()));
            }
            Record::Instance { address, length, .. } => {
                (address, None, u64::from(length) / width.bytes() as u64 + 1)
            }
            Record::ObjectArray { address, length, .. } => {
                (address, Some((Type::Reference, length)), u64::from(length) + 1)
            }
            Record::PrimitiveArray { address, kind, length, .. } => {
                (address, Some((kind, length)), 1)
            }
        };
        if !record::pass(window, width, &record) {
            return Ok(Err(Stop::Cut));
        }
        if let Some((start, kind, length)) = *before
            && address > start
        {
            self.found.evidence.array(kind, length, address - start);
        }
        *before = array.map(|(kind, length)| (address, kind, length));
        self.add(block, address, edges);
        Ok(Ok(()))
    }

    fn add(&mut self, block: &mut Block, address: u64, edges: u64) {
        self.found.evidence.address(address);
        self.list.push(address);
        block.lowest = block.lowest.min(address);
        block.highest = block.highest.max(address);
        block.objects += 1;
        // One for the length that goes before a list.
        block.most_edges += edges + 1;
    }
}

fn empty(begin: u64) -> Block {
    Block { begin, end: begin, lowest: u64::MAX, highest: 0, most_edges: 0, objects: 0 }
}
