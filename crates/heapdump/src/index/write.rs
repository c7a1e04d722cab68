//! Writes the index of a heap, front to back.

use super::answers;
use super::column::{BLOCK, Cell, pack};
use super::{
    ADDRESSES, BEFORE, CHUNKS, CLASS, DOMINATOR, Directory, Key, LEVEL, LIST_ALL, LIST_BASE,
    LIST_OFFSET, MAGIC, ORDER, PARENT, PLACE, Place, RETAINED, ROOT_NODE, ROOT_NUMBER, SIZE, Spec,
    Text, VERSION, sum,
};
use crate::heap::Heap;
use crate::levels::Level;
use crate::progress::Progress;
use std::io::{self, Write};

struct Out<'a> {
    to: &'a mut dyn Write,
    at: u64,
    columns: Vec<Place>,
    progress: &'a dyn Progress,
    /// Columns in all, for progress.
    all: u64,
}

impl Heap {
    /// Writes what was computed of a dump, so that it can be opened with it again. Only a heap that
    /// was read with the usual options has an index.
    pub fn write_index(
        &self,
        key: &Key,
        to: &mut dyn Write,
        progress: &dyn Progress,
    ) -> io::Result<()> {
        let mut out = Out { to, at: 0, columns: Vec::new(), progress, all: 16 };
        out.put(&MAGIC)?;
        out.column(self, &CLASS)?;
        out.column(self, &SIZE)?;
        out.column(self, &LEVEL)?;
        out.column(self, &PLACE)?;
        out.column(self, &ORDER)?;
        out.column(self, &PARENT)?;
        out.column(self, &DOMINATOR)?;
        out.column(self, &RETAINED)?;
        out.column(self, &LIST_BASE)?;
        out.column(self, &LIST_OFFSET)?;
        out.column(self, &LIST_ALL)?;
        out.column(self, &CHUNKS)?;
        out.column(self, &ADDRESSES)?;
        out.column(self, &BEFORE)?;
        out.column(self, &ROOT_NODE)?;
        out.column(self, &ROOT_NUMBER)?;
        let state = out.text(&self.source.state().map_err(io::Error::other)?)?;
        let answers = answers::text(self).map(|text| out.text(&text)).transpose()?;
        let directory = Directory {
            key: *key,
            columns: std::mem::take(&mut out.columns),
            state,
            answers,
            is_snapshot: self.source.is_snapshot(),
            ids: self.ids.numbers(),
            levels: Level::ALL.map(|level| self.sum(level)).to_vec(),
            losses: self.losses(),
        };
        let directory = serde_json::to_vec(&directory).map_err(io::Error::other)?;
        let begin = out.at;
        out.put(&directory)?;
        let mut tail = Vec::new();
        begin.put(&mut tail);
        (directory.len() as u64).put(&mut tail);
        sum(&directory).put(&mut tail);
        VERSION.put(&mut tail);
        tail.extend(MAGIC);
        out.put(&tail)?;
        out.to.flush()
    }
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.to.write_all(bytes)
    }

    fn text(&mut self, text: &[u8]) -> io::Result<Text> {
        let begin = self.at;
        self.put(text)?;
        Ok(Text { begin, length: text.len() as u64, sum: sum(text) })
    }

    fn column<T: Cell>(&mut self, heap: &Heap, spec: &Spec<T>) -> io::Result<()> {
        let count = (spec.count)(heap);
        let (begin, mut lengths, mut sums) = (self.at, Vec::new(), Vec::new());
        let mut bytes = Vec::with_capacity(BLOCK * T::WIDTH);
        for first in (0..count).step_by(BLOCK) {
            bytes.clear();
            let block = first..count.min(first + BLOCK);
            match (spec.all)(heap) {
                Some(all) => pack(all[block].iter().map(|one| one.bits()), &mut bytes),
                None => pack(block.map(|at| (spec.pick)(heap, at).bits()), &mut bytes),
            }
            lengths.push(bytes.len() as u32);
            sums.push(sum(&bytes));
            self.put(&bytes)?;
            self.progress.tell("writing the index", self.columns.len() as u64, self.all);
        }
        let (name, count, width) = (spec.name.to_owned(), count as u64, T::WIDTH as u32);
        self.columns.push(Place { name, begin, count, width, lengths, sums });
        Ok(())
    }
}
