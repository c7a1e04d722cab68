//! Writes the index of a heap, front to back.

use super::column::{BLOCK, Cell};
use super::{
    ADDRESSES, BEFORE, CLASS, DOMINATOR, Directory, Key, LEVEL, LIST_ALL, LIST_BASE, LIST_OFFSET,
    MAGIC, ORDER, PARENT, PLACE, Place, RETAINED, ROOT_NODE, ROOT_NUMBER, SIZE, Spec, Text,
    VERSION, sum,
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
        let mut out = Out { to, at: 0, columns: Vec::new(), progress, all: 15 };
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
        out.column(self, &ADDRESSES)?;
        out.column(self, &BEFORE)?;
        out.column(self, &ROOT_NODE)?;
        out.column(self, &ROOT_NUMBER)?;
        let text = self.source.state().map_err(io::Error::other)?;
        let state = Text { begin: out.at, length: text.len() as u64, sum: sum(&text) };
        out.put(&text)?;
        let directory = Directory {
            key: *key,
            columns: std::mem::take(&mut out.columns),
            state,
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

    fn column<T: Cell>(&mut self, heap: &Heap, spec: &Spec<T>) -> io::Result<()> {
        let count = (spec.count)(heap);
        let (begin, mut sums) = (self.at, Vec::with_capacity(count.div_ceil(BLOCK)));
        let mut bytes = Vec::with_capacity(BLOCK * T::WIDTH);
        for first in (0..count).step_by(BLOCK) {
            bytes.clear();
            for at in first..count.min(first + BLOCK) {
                (spec.pick)(heap, at).put(&mut bytes);
            }
            sums.push(sum(&bytes));
            self.put(&bytes)?;
            self.progress.tell("writing the index", self.columns.len() as u64, self.all);
        }
        let (name, count, width) = (spec.name.to_owned(), count as u64, T::WIDTH as u32);
        self.columns.push(Place { name, begin, count, width, sums });
        Ok(())
    }
}
