//! The bytes of an arena, of which only a stretch is in our memory at a time.

use std::ops::Range;

/// What is read at once: a page would be too little for a system call each.
const STRETCH: usize = 1 << 20;

/// Fills bytes with those of the arena from a place on; tells how many there were.
pub type ReadAt<'a> = dyn FnMut(usize, &mut [u8]) -> usize + 'a;

/// Reads what is in memory already.
pub(crate) fn of(bytes: &[u8]) -> impl FnMut(usize, &mut [u8]) -> usize {
    |at, into| {
        let from = bytes.get(at..).unwrap_or(&[]);
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    }
}

/// Looks at one place after the other.
pub(crate) struct Window<'a> {
    read: &'a mut ReadAt<'a>,
    /// There is nothing from here on.
    length: usize,
    /// What is here of it.
    here: Range<usize>,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub fn new(length: usize, read: &'a mut ReadAt<'a>) -> Self {
        Window { read, length, here: 0..0, bytes: Vec::new() }
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// The bytes at a place; fewer than asked for where there are no more.
    pub fn at(&mut self, at: usize, count: usize) -> &[u8] {
        let end = at.saturating_add(count).min(self.length).max(at);
        if at < self.here.start || end > self.here.end {
            let stretch = count.max(STRETCH).min(self.length.saturating_sub(at));
            self.bytes.resize(stretch, 0);
            let mut done = 0;
            while done < stretch {
                match (self.read)(at + done, &mut self.bytes[done..]) {
                    0 => break,
                    more => done += more,
                }
            }
            self.bytes.truncate(done);
            self.here = at..at + done;
        }
        let from = at - self.here.start;
        let to = end.min(self.here.end).saturating_sub(self.here.start);
        self.bytes.get(from..to).unwrap_or(&[])
    }

    /// All of them at once.
    pub fn whole(&mut self) -> Vec<u8> {
        self.at(0, self.length).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_can_be_looked_at_in_any_order() {
        let all: Vec<u8> = (0..3 * STRETCH + 7).map(|at| (at / 251) as u8).collect();
        let mut readings = 0;
        // In portions, as a pipe would give them.
        let mut read = |at: usize, bytes: &mut [u8]| {
            readings += 1;
            let count = bytes.len().min(300_000).min(all.len() - at);
            bytes[..count].copy_from_slice(&all[at..at + count]);
            count
        };
        let mut window = Window::new(all.len(), &mut read);
        for (at, count) in
            [(0, 16), (9, 4096), (STRETCH - 8, 16), (5, 3), (2 * STRETCH, 2 * STRETCH)]
        {
            let end = (at + count).min(all.len());
            assert_eq!(window.at(at, count), &all[at..end], "{at}");
        }
        assert_eq!(window.at(all.len(), 8), &[] as &[u8]);
        assert_eq!(window.at(all.len() + 9, 8), &[] as &[u8]);
        assert_eq!(window.whole(), all);
        assert!(readings < 40, "{readings}");
    }

    #[test]
    fn what_is_shorter_than_it_says_ends_there() {
        let mut read = |at: usize, bytes: &mut [u8]| {
            let count = 10_usize.saturating_sub(at).min(bytes.len());
            bytes[..count].fill(1);
            count
        };
        let mut window = Window::new(1000, &mut read);
        assert_eq!(window.at(4, 100), [1; 6]);
        assert_eq!(window.at(20, 4), &[] as &[u8]);
    }
}
