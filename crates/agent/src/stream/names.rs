//! Who the numbers in the stream are: methods and threads, resolved on the control thread.
//!
//! The handler records a method by its id. Each tick the control thread looks through the traces
//! that have come and sends what is known of ids that it has not seen. A class that is unloaded
//! between the sample and the tick loses its name; the time in between is a tick.
//!
//! The JVM is asked only about ids that it has given (`ids`). A class tells its ids on the thread
//! that prepares it, perhaps a moment after another thread was sampled in it: so an unknown id gets
//! some time.

use super::ring::Ring;
use crate::stacks::ids::MethodIds;
use std::collections::{HashSet, VecDeque};
use tare_arena::samples::layout::{frame, record, trace};
use tare_arena::samples::{Counter, SampleMethod};

/// Methods resolved at most per tick, so that the control thread stays responsive.
const PER_TICK: usize = 2_000;

/// An id that the JVM has not given after so many looks, a tick apart, is none.
const LOOKS: u8 = 100;

#[derive(Default)]
pub struct MethodNames {
    /// Up to where the stream was looked through.
    pub scanned: u64,
    known: HashSet<u64>,
    /// Ids without a name yet, and how often they were looked for in vain.
    waiting: VecDeque<(u64, u8)>,
}

impl MethodNames {
    /// Looks for new methods in what has come.
    pub fn scan(&mut self, ring: &Ring) {
        let (known, waiting) = (&mut self.known, &mut self.waiting);
        self.scanned = ring.scan(self.scanned, |kind, bytes| {
            if kind != record::TRACE {
                return;
            }
            let frames = bytes.get(trace::HEAD..).unwrap_or(&[]);
            for one in frames.chunks_exact(frame::SIZE) {
                let key = one.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                if one[frame::KIND] == frame::JAVA && known.insert(key) {
                    waiting.push_back((key, 0));
                }
            }
        });
    }

    /// Sends names; what finds no room in the ring waits for the next call. With `last`, nothing
    /// waits any longer. `describe` asks the JVM, so it gets nothing but what the JVM gave.
    pub fn send(
        &mut self,
        ring: &Ring,
        ids: &MethodIds,
        last: bool,
        mut describe: impl FnMut(u64) -> SampleMethod,
    ) {
        let most = if last { usize::MAX } else { PER_TICK };
        for _ in 0..self.waiting.len().min(most) {
            let Some((key, looks)) = self.waiting.pop_front() else { return };
            let given = ids.is_given(key);
            if !given && !last && looks < LOOKS {
                self.waiting.push_back((key, looks + 1));
                continue;
            }
            let method =
                if given { describe(key) } else { SampleMethod { key, ..SampleMethod::default() } };
            if !ring.append_bytes(&method.encode()) {
                self.waiting.push_front((key, looks));
                return;
            }
            ring.add(Counter::Unproven, u64::from(!given));
        }
    }

    /// Forgets ids whose classes are gone: no new trace can name them.
    pub fn forget(&mut self, gone: &[u64]) {
        gone.iter().for_each(|id| {
            self.known.remove(id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::frames::Frame;
    use tare_arena::samples::layout::RING_LARGEST;
    use tare_arena::samples::{How, Record, Stream};

    /// Ids that were given are multiples of 64, below this.
    const GIVEN: u64 = 64 * 1_000;

    fn is_one(id: u64) -> bool {
        id < GIVEN && id.is_multiple_of(64)
    }

    #[test]
    fn garbage_never_reaches_the_jvm() {
        let ring = Ring::new(RING_LARGEST).unwrap();
        let ids = MethodIds::default();
        (0..GIVEN).step_by(64).for_each(|id| ids.add(id));
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut garbage = HashSet::new();
        for id in 0..1_000 {
            let mut frames = vec![Frame::java(64 * u64::from(id), 0, How::Compiled)];
            frames.extend((0..100).map(|_| {
                // Anything, what could be an address, and what is beside an id.
                let value = match random() % 3 {
                    0 => random(),
                    1 => 0x7f00_0000_0000 | ((random() % (1 << 32)) & !7),
                    _ => (random() % GIVEN) | 8,
                };
                garbage.insert(value);
                Frame::java(value, 0, How::Interpreted)
            }));
            assert!(ring.append_trace(id, &frames, false));
        }
        assert!(garbage.len() > 50_000);
        let mut names = MethodNames::default();
        let mut described = 0;
        let mut ask = |names: &mut MethodNames, last| {
            names.send(&ring, &ids, last, |key| {
                assert!(is_one(key), "{key:#x} went to the JVM");
                described += 1;
                SampleMethod { key, name: "run".into(), ..SampleMethod::default() }
            });
        };
        names.scan(&ring);
        for _ in 0..3 {
            ask(&mut names, false);
        }
        assert_eq!(ring.count(Counter::Unproven), 0, "an id may still come");
        ask(&mut names, true);
        assert_eq!(described, 1_000);
        assert_eq!(ring.count(Counter::Unproven), garbage.len() as u64);
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let mut nameless = 0;
        let look = |record| {
            if let Record::Method(method) = record {
                assert_eq!(method.name.is_empty(), !is_one(method.key));
                nameless += u64::from(method.name.is_empty());
            }
        };
        stream.drain(look).unwrap();
        assert_eq!(nameless, garbage.len() as u64);
    }

    #[test]
    fn an_id_that_is_given_late_has_its_name() {
        let ring = Ring::new(1 << 20).unwrap();
        let ids = MethodIds::default();
        let mut names = MethodNames::default();
        assert!(ring.append_trace(1, &[Frame::java(640, 0, How::Compiled)], false));
        names.scan(&ring);
        let method = |key| SampleMethod { key, name: "late".into(), ..SampleMethod::default() };
        names.send(&ring, &ids, false, |_| unreachable!("nobody gave it"));
        ids.add(640);
        names.send(&ring, &ids, false, method);
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let mut found = Vec::new();
        let look = |record| {
            if let Record::Method(method) = record {
                found.push(method.name);
            }
        };
        stream.drain(look).unwrap();
        assert_eq!(found, ["late"]);
        // One that is never given is given up.
        assert!(ring.append_trace(2, &[Frame::java(648, 0, How::Compiled)], false));
        names.scan(&ring);
        for _ in 0..=LOOKS {
            names.send(&ring, &ids, false, |_| unreachable!("nobody gave it"));
        }
        assert_eq!(ring.count(Counter::Unproven), 1);
    }
}
