//! Frames: a method, where in it, and how it was running.

use crate::handle::{FrameId, MethodId};
use crate::index::Index;

/// How the code of a frame was running.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Execution {
    /// Not told by the engine.
    #[default]
    Unknown,
    Interpreted,
    /// Compiled at HotSpot's tier 1 to 4; 0 if the tier is not known.
    Compiled {
        tier: u8,
    },
    /// Inlined into the compiled code of a caller.
    Inlined,
    Native,
    Kernel,
}

/// A place in a method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    pub method: MethodId,
    /// The index of the bytecode that was running or calling.
    pub bci: Option<u16>,
    /// Its line in the source.
    pub line: Option<u32>,
    pub execution: Execution,
}

impl Frame {
    /// A frame of which only the method is known.
    pub const fn of(method: MethodId) -> Self {
        Frame { method, bci: None, line: None, execution: Execution::Unknown }
    }
}

/// All frames of a profile, each once.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    rows: Vec<Frame>,
    /// Made when it is first needed: a profile that is only read does without.
    index: Option<Index>,
}

impl Frames {
    /// The handle of a frame, which is added if it is new.
    ///
    /// # Panics
    /// If there would be more than 2³²−2 frames.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        let rows = &mut self.rows;
        let index = self.index.get_or_insert_with(|| {
            Index::of(rows.len() as u32, |index, row| hash(index, rows[row as usize]))
        });
        let code = hash(index, frame);
        if let Some(row) = index.find(code, |row| rows[row as usize] == frame) {
            return FrameId::new(row);
        }
        let id = next(rows.len());
        rows.push(frame);
        index.insert(code, id.raw(), |index, row| hash(index, rows[row as usize]));
        id
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn get(&self, id: FrameId) -> &Frame {
        &self.rows[id.index()]
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        (0..).zip(&self.rows).map(|(row, frame)| (FrameId::new(row), frame))
    }

    /// Appends a row without looking for an equal one. For readers of files that hold a table
    /// whole.
    pub fn push(&mut self, frame: Frame) -> FrameId {
        let id = next(self.rows.len());
        self.rows.push(frame);
        self.index = None;
        id
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let index = self.index.as_ref().map_or(0, Index::memory);
        self.rows.capacity() * size_of::<Frame>() + index
    }
}

fn hash(index: &Index, frame: Frame) -> u64 {
    let Frame { method, bci, line, execution } = frame;
    let execution = match execution {
        Execution::Unknown => 0,
        Execution::Interpreted => 1,
        Execution::Inlined => 2,
        Execution::Native => 3,
        Execution::Kernel => 4,
        Execution::Compiled { tier } => 5 + u64::from(tier),
    };
    // What is not known counts as the largest number: rare, and equality has the last word.
    let place = u64::from(line.unwrap_or(u32::MAX)) << 32 | u64::from(method.raw());
    index.hash_numbers(place, u64::from(bci.unwrap_or(u16::MAX)) << 16 | execution)
}

/// The last number is kept free: the context table uses it for "no frame".
fn next(rows: usize) -> FrameId {
    let row = u32::try_from(rows).ok().filter(|&row| row < u32::MAX);
    FrameId::new(row.expect("more than 2³²−2 frames"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_differ_by_place_and_execution() {
        let mut frames = Frames::default();
        let plain = Frame::of(MethodId::new(1));
        let a = frames.intern(plain);
        let pushed = frames.push(Frame { bci: Some(1), ..plain });
        assert_eq!(frames.intern(plain), a);
        assert_eq!(frames.intern(Frame { bci: Some(1), ..plain }), pushed);
        let compiled = Frame { execution: Execution::Compiled { tier: 4 }, ..plain };
        assert_ne!(frames.intern(compiled), a);
        assert_eq!(frames.get(FrameId::new(2)), &compiled);
        assert_eq!(frames.len(), 3);
    }
}
