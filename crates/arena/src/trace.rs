//! Draining the rings of a trace: every entry and exit, thread by thread, while the threads write.
//!
//! Each thread has a ring of its own, so writers need no lock and no loop; the agent has one, too,
//! for what it alone knows. One reader takes what has come and says for each ring, in memory of its
//! own, how far it has come. A writer that finds its ring full counts what it drops and goes on; it
//! waits for us only where that was asked for.

use crate::clock::Clock;
use crate::layout::{self, Holds, PAGE, header, page, record, ring, tails};
use crate::tree::{ReadError, Snapshot, u32_at, u64_at};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::{fmt, io};

/// Why a trace cannot be read.
#[derive(Debug)]
pub enum TraceError {
    Io(io::Error),
    Arena(ReadError),
    /// The arena belongs to a session of another kind.
    NoTrace,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io(e) => write!(f, "cannot read the memory shared with the JVM: {e}"),
            TraceError::Arena(e) => write!(f, "{e}"),
            TraceError::NoTrace => write!(f, "the session of this memory is no trace"),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<io::Error> for TraceError {
    fn from(e: io::Error) -> Self {
        TraceError::Io(e)
    }
}

impl From<ReadError> for TraceError {
    fn from(e: ReadError) -> Self {
        TraceError::Arena(e)
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Entry,
    Exit,
    /// An exception left the method.
    Thrown,
    /// The method at this depth caught an exception: what it had called is over.
    Caught,
    /// From this time on so many records (the value) were dropped; the thread was never in fewer
    /// methods than the depth says.
    Gap,
    /// From here on the records are another thread's: its id is in the place of the time, the value
    /// has the length of its name.
    Thread,
    /// Up to eight bytes of that name, in the place of the time.
    Name,
    /// The thread was held up for our sake, from this time on, for the value's ticks.
    Held,
    /// The agent's: there is compiled code of a method now, of the tier in the depth.
    Compiled,
    /// The agent's: there is none any more.
    Discarded,
    /// The agent's: all threads stood still for our sake, from this time on, for the value's ticks.
    Pause,
}

impl What {
    #[inline]
    fn of(kind: u8) -> Option<Self> {
        Some(match kind {
            record::ENTRY => What::Entry,
            record::EXIT => What::Exit,
            record::THROWN => What::Thrown,
            record::CAUGHT => What::Caught,
            record::GAP => What::Gap,
            record::THREAD => What::Thread,
            record::NAME => What::Name,
            record::HELD => What::Held,
            record::COMPILED => What::Compiled,
            record::DISCARDED => What::Discarded,
            record::PAUSE => What::Pause,
            _ => return None,
        })
    }
}

/// One record of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub what: What,
    /// Ticks.
    pub time: u64,
    /// A method's id, or what [`What`] says.
    pub value: u32,
    /// How many traced methods the thread was in, without the one that this is about.
    pub depth: u32,
}

impl Record {
    /// From sixteen bytes of a ring; `None` for a kind that does not exist.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8; ring::RECORD]) -> Option<Self> {
        let time = u64_at(bytes, 0)?;
        let word = u64_at(bytes, 8)?;
        let upper = (word >> 32) as u32;
        Some(Record {
            what: What::of((upper >> record::DEPTH_BITS) as u8)?,
            time,
            value: word as u32,
            depth: upper & ((1 << record::DEPTH_BITS) - 1),
        })
    }
}

/// A ring, and how far it was read.
#[derive(Debug)]
struct Ring {
    at: u64,
    size: u64,
    read: u64,
    /// Records dropped, as was told last.
    dropped: u64,
}

/// What one ring brought.
#[derive(Debug)]
pub struct Portion<'b> {
    /// Where the ring lies: the same for its whole life.
    pub ring: u32,
    /// Records that were dropped since the ring was made.
    pub dropped: u64,
    bytes: &'b [u8],
}

impl Portion<'_> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / ring::RECORD
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The records, in the order of their writing.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let (records, _) = self.bytes.as_chunks::<{ ring::RECORD }>();
        records.iter().filter_map(Record::read)
    }
}

/// What the header says of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub clock: Clock,
    /// Ticks when the session began.
    pub began: u64,
    /// The same moment by the monotonic clock, in nanoseconds.
    pub began_at: u64,
    /// Calls that found no ring.
    pub lost: u64,
    pub used: u64,
}

/// Bytes taken from a ring in one go.
const PORTION: u64 = 1 << 20;

/// The reading side of a trace. There must be only one.
#[derive(Debug)]
pub struct Rings {
    file: File,
    tails: File,
    agent: u32,
    rings: Vec<Ring>,
    /// Where the next ring will begin.
    next: u64,
    buffer: Vec<u8>,
}

impl Rings {
    /// The descriptors of the arena, and of what says how far its rings were read.
    pub fn new(file: File, tails: File) -> Result<Self, TraceError> {
        let head = read_page(&file, 0)?;
        Snapshot::used(&head)?;
        if u32_at(&head, header::HOLDS) != Some(Holds::Trace.code()) {
            return Err(TraceError::NoTrace);
        }
        let next = u64_at(&head, header::FIRST).unwrap_or(0);
        let agent = u32_at(&head, header::AGENT_RING).unwrap_or(0);
        Ok(Rings { file, tails, agent, rings: Vec::new(), next, buffer: Vec::new() })
    }

    /// What the header says now.
    pub fn head(&self) -> Result<Head, TraceError> {
        let head = read_page(&self.file, 0)?;
        let used = Snapshot::used(&head)?;
        let field = |at| u64_at(&head, at).unwrap_or(0);
        let (began, began_at) = (field(header::TICKS_0), field(header::NANOS_0));
        Ok(Head { clock: Clock::read(&head)?, began, began_at, lost: field(header::LOST), used })
    }

    /// Hands what every ring has by now to `take`, the agent's first, and makes room for more. No
    /// more than `most` records of the program are taken in all; the rest stays where it is, and
    /// what then finds no room is dropped. How many were taken.
    ///
    /// How far each ring was written is asked before the agent's ring is read, so that what a
    /// record of the program needs from the agent is there before it.
    pub fn drain(
        &mut self,
        most: u64,
        mut take: impl FnMut(&Portion<'_>),
    ) -> Result<u64, TraceError> {
        self.find()?;
        let mut heads = Vec::with_capacity(self.rings.len());
        for ring in &self.rings {
            heads.push(self.written(ring)?);
        }
        let agent = self.rings.iter().position(|ring| ring.at == u64::from(self.agent));
        if let Some(agent) = agent {
            heads[agent] = self.written(&self.rings[agent])?;
            self.drain_ring(agent, heads[agent], &mut take)?;
        }
        let mut taken = 0;
        for (number, (head, dropped)) in heads.into_iter().enumerate() {
            if Some(number) == agent {
                continue;
            }
            let left = (most - taken).saturating_mul(ring::RECORD as u64);
            let head = head.min(self.rings[number].read.saturating_add(left));
            taken += self.drain_ring(number, (head, dropped), &mut take)?;
        }
        Ok(taken)
    }

    /// Looks for rings that were made since.
    fn find(&mut self) -> Result<(), TraceError> {
        let used = Snapshot::used(&read_page(&self.file, 0)?)?;
        while self.next < used {
            let head = read_page(&self.file, self.next)?;
            if u32_at(&head, page::KIND) != Some(page::KIND_RING) {
                break; // Its owner has not written to it yet.
            }
            let size = u64::from(u32_at(&head, ring::SIZE).unwrap_or(0));
            if !size.is_power_of_two() || size < PAGE as u64 {
                return Err(ReadError::BadHeader("the size of a ring").into());
            }
            let mut read = [0; 8];
            read_all(&self.tails, &mut read, tails::of(self.next))?;
            let read = u64::from_le_bytes(read);
            self.rings.push(Ring { at: self.next, size, read, dropped: 0 });
            self.next += size + PAGE as u64;
        }
        Ok(())
    }

    /// How far a ring was written, and what was dropped.
    fn written(&self, ring: &Ring) -> Result<(u64, u64), TraceError> {
        let mut bytes = [0; ring::DROPPED + 8 - ring::HEAD];
        read_all(&self.file, &mut bytes, ring.at + ring::HEAD as u64)?;
        let head = u64_at(&bytes, 0).unwrap_or(0);
        let dropped = u64_at(&bytes, ring::DROPPED - ring::HEAD).unwrap_or(0);
        // A ring never has more than its size; anything else is damage, and nothing is taken.
        let sane = head.wrapping_sub(ring.read) <= ring.size;
        Ok((if sane { head } else { ring.read }, dropped))
    }

    fn drain_ring(
        &mut self,
        number: usize,
        (head, dropped): (u64, u64),
        take: &mut impl FnMut(&Portion<'_>),
    ) -> Result<u64, TraceError> {
        let ring = &mut self.rings[number];
        let before = ring.read;
        if dropped != ring.dropped && ring.read >= head {
            take(&Portion { ring: ring.at as u32, dropped, bytes: &[] });
        }
        ring.dropped = dropped;
        while ring.read < head {
            let place = ring.read & (ring.size - 1);
            let length = (head - ring.read).min(PORTION).min(ring.size - place);
            self.buffer.resize(length as usize, 0);
            read_all(&self.file, &mut self.buffer, ring.at + PAGE as u64 + place)?;
            ring.read += length;
            self.tails.write_all_at(&ring.read.to_le_bytes(), tails::of(ring.at))?;
            // Only now: the writer has its room back while we work.
            let ring = ring.at as u32;
            take(&Portion { ring, dropped, bytes: &self.buffer });
        }
        Ok((ring.read - before) / ring::RECORD as u64)
    }

    /// Rings that are full at this moment, with what would tell of it if there were room.
    pub fn gaps(&self) -> Result<Vec<(u32, Record)>, TraceError> {
        let mut gaps = Vec::new();
        for ring in &self.rings {
            let head = read_page(&self.file, ring.at)?;
            let field = |at| u64_at(&head, at).unwrap_or(0);
            let (time, events) = (field(ring::GAP_SINCE), field(ring::GAP_EVENTS));
            if time != 0 {
                let value = u32::try_from(events).unwrap_or(u32::MAX);
                let depth = u32_at(&head, ring::GAP_DEPTH).unwrap_or(0);
                gaps.push((ring.at as u32, Record { what: What::Gap, time, value, depth }));
            }
        }
        Ok(gaps)
    }

    /// How long the threads of each ring have waited for room, in ticks.
    pub fn waited(&self) -> Result<Vec<(u32, u64)>, TraceError> {
        let waited = |ring: &Ring| {
            let mut bytes = [0; 8];
            read_all(&self.file, &mut bytes, ring.at + ring::WAITED as u64)?;
            Ok((ring.at as u32, u64::from_le_bytes(bytes)))
        };
        self.rings.iter().map(waited).collect()
    }

    /// Where the agent's ring lies.
    #[must_use]
    pub fn agent(&self) -> u32 {
        self.agent
    }
}

fn read_page(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; layout::PAGE];
    read_all(file, &mut bytes, at)?;
    Ok(bytes)
}

fn read_all(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = PAGE;

    /// A file without a name.
    fn file(name: &str) -> File {
        let path = std::env::temp_dir().join(format!(
            "tare-{name}-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }

    fn rings(arena: &File, tails: &File) -> Result<Rings, TraceError> {
        Rings::new(arena.try_clone().unwrap(), tails.try_clone().unwrap())
    }

    /// An arena with one ring behind its header, and what the reader says of it.
    fn arena() -> (File, File) {
        let (file, tails) = (file("rings"), file("tails"));
        tails.set_len(tails::length((2 * PAGE + SIZE) as u64)).unwrap();
        let mut bytes = vec![0; 2 * PAGE + SIZE];
        let length = bytes.len() as u64;
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(header::MAGIC, &layout::MAGIC.to_le_bytes());
        put(header::HOLDS, &Holds::Trace.code().to_le_bytes());
        put(header::FIRST, &(PAGE as u64).to_le_bytes());
        put(header::BUMP, &length.to_le_bytes());
        put(PAGE + page::KIND, &page::KIND_RING.to_le_bytes());
        put(PAGE + ring::SIZE, &(SIZE as u32).to_le_bytes());
        file.write_all_at(&bytes, 0).unwrap();
        (file, tails)
    }

    /// Writes records from a position on, as a thread of the program would.
    fn write(file: &File, from: u64, times: std::ops::Range<u64>) {
        let mut head = from;
        for time in times {
            let word = u64::from(u32::from(record::ENTRY) << record::DEPTH_BITS | 3) << 32 | 7;
            let place = (2 * PAGE) as u64 + (head & (SIZE as u64 - 1));
            file.write_all_at(&time.to_le_bytes(), place).unwrap();
            file.write_all_at(&word.to_le_bytes(), place + 8).unwrap();
            head += ring::RECORD as u64;
        }
        file.write_all_at(&head.to_le_bytes(), (PAGE + ring::HEAD) as u64).unwrap();
    }

    fn times(rings: &mut Rings, most: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        rings.drain(most, |part| seen.extend(part.records().map(|r| r.time))).unwrap();
        seen
    }

    #[test]
    fn records_come_once_and_in_order_around_the_end_of_the_ring() {
        let (file, tails) = arena();
        let mut rings = self::rings(&file, &tails).unwrap();
        write(&file, 0, 0..200);
        let mut first = None;
        rings.drain(1, |part| first = part.records().next()).unwrap();
        assert_eq!(first, Some(Record { what: What::Entry, time: 0, value: 7, depth: 3 }));
        assert_eq!(times(&mut rings, 99), (1..100).collect::<Vec<_>>());
        assert_eq!(times(&mut rings, 1000), (100..200).collect::<Vec<_>>());
        write(&file, 200 * 16, 200..400);
        assert_eq!(times(&mut rings, 1000), (200..400).collect::<Vec<_>>());
        let mut tail = [0; 8];
        tails.read_exact_at(&mut tail, tails::of(PAGE as u64)).unwrap();
        assert_eq!(u64::from_le_bytes(tail), 400 * 16);
        assert!(times(&mut rings, 1000).is_empty());
    }

    #[test]
    fn damage_is_no_panic() {
        let (file, tails) = arena();
        let mut rings = self::rings(&file, &tails).unwrap();
        file.write_all_at(&u64::MAX.to_le_bytes(), (PAGE + ring::HEAD) as u64).unwrap();
        assert!(times(&mut rings, 10).is_empty());
        file.write_all_at(&3_u32.to_le_bytes(), (PAGE + ring::SIZE) as u64).unwrap();
        let mut rings = self::rings(&file, &tails).unwrap();
        assert!(rings.drain(1, |_| {}).is_err());
        file.write_all_at(&0_u32.to_le_bytes(), header::HOLDS as u64).unwrap();
        assert!(matches!(self::rings(&file, &tails), Err(TraceError::NoTrace)));
    }
}
