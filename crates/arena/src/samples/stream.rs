//! Draining the ring: one reader, which tells the agent how far it has come.

use super::layout::{self, Counter, HEADER, Special, header, record};
use super::records::Record;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::{fmt, io};

/// Why a stream cannot be read.
#[derive(Debug)]
pub enum StreamError {
    Io(io::Error),
    /// The memory does not begin as ours does, or its figures contradict each other.
    NotAStream(&'static str),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Io(e) => write!(f, "cannot read the memory shared with the JVM: {e}"),
            StreamError::NotAStream(what) => {
                write!(f, "the memory shared with the JVM makes no sense: {what}")
            }
        }
    }
}

impl std::error::Error for StreamError {}

impl From<io::Error> for StreamError {
    fn from(e: io::Error) -> Self {
        StreamError::Io(e)
    }
}

/// What the header tells at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// `CLOCK_MONOTONIC` at the start, the wall clock then, and the former at the agent's last
    /// look, all in nanoseconds.
    pub started: u64,
    pub started_unix: u64,
    pub seen: u64,
    /// Processor time of the program between the start and the last look.
    pub cpu: u64,
    pub interval: u64,
    /// Nothing more will come.
    pub ended: bool,
    counters: Vec<u64>,
}

impl Totals {
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// Samples that have no whole stack for this reason.
    #[must_use]
    pub fn failures(&self, kind: Special) -> u64 {
        let index = Counter::FailedBase as usize + kind as usize;
        self.counters.get(index).copied().unwrap_or(0)
    }
}

/// The reading side of a session's memory. There must be only one.
#[derive(Debug)]
pub struct Stream {
    file: File,
    position: File,
    capacity: u64,
    read: u64,
    buffer: Vec<u8>,
}

/// Bytes taken in one go. A record always fits.
const PORTION: usize = 4 * record::LARGEST;

impl Stream {
    /// The descriptors are those that came with the answer to `start engine=sampling`.
    pub fn new([file, position]: [File; 2]) -> Result<Self, StreamError> {
        let head = read_header(&file)?;
        if field(&head, header::MAGIC) != layout::MAGIC {
            return Err(StreamError::NotAStream("it has another format"));
        }
        let capacity = field(&head, header::CAPACITY);
        let sensible = layout::RING_SMALLEST..=layout::RING_LARGEST;
        if !capacity.is_power_of_two() || !sensible.contains(&capacity) {
            return Err(StreamError::NotAStream("the ring has an impossible size"));
        }
        let mut read = [0; 8];
        read_at(&position, &mut read, 0)?;
        let read = u64::from_le_bytes(read);
        Ok(Stream { file, position, capacity, read, buffer: Vec::new() })
    }

    pub fn totals(&self) -> Result<Totals, StreamError> {
        let head = read_header(&self.file)?;
        let cpu = field(&head, header::CPU_SEEN);
        Ok(Totals {
            started: field(&head, header::STARTED),
            started_unix: field(&head, header::STARTED_UNIX),
            seen: field(&head, header::SEEN),
            cpu: cpu.saturating_sub(field(&head, header::CPU_STARTED)),
            interval: field(&head, header::INTERVAL),
            ended: field(&head, header::ENDED) != 0,
            counters: (header::COUNTERS..HEADER).step_by(8).map(|at| field(&head, at)).collect(),
        })
    }

    /// Hands what has come since the last call to `take`, in order, and makes room for more.
    /// Returns the number of records; zero means that there is nothing now.
    ///
    /// A record that a thread is just writing holds up those behind it until the next call. One
    /// call goes round the ring once at most, however quickly the other side writes.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) -> Result<usize, StreamError> {
        let mut count = 0;
        let limit = self.read.saturating_add(self.capacity);
        loop {
            let before = count;
            count += self.drain_portion(&mut take)?;
            if count == before || self.read >= limit {
                return Ok(count);
            }
        }
    }

    /// The same after the JVM has ended: what a killed thread left half written is passed over.
    pub fn drain_rest(&mut self, mut take: impl FnMut(Record)) -> Result<usize, StreamError> {
        let mut count = 0;
        loop {
            count += self.drain(&mut take)?;
            let head = self.head_at(self.read)?;
            if head & record::SIZE_MASK == 0 {
                return Ok(count);
            }
            self.read += u64::from(self.size(head)?);
        }
    }

    fn drain_portion(&mut self, take: &mut impl FnMut(Record)) -> Result<usize, StreamError> {
        let end = self.end()?;
        let offset = self.read % self.capacity;
        let length = (end - self.read).min(self.capacity - offset).min(PORTION as u64) as usize;
        self.buffer.resize(length, 0);
        read_at(&self.file, &mut self.buffer, HEADER as u64 + offset)?;
        let (mut at, mut count) = (0, 0);
        while let Some(bytes) = self.buffer[at..].first_chunk() {
            let head = u32::from_le_bytes(*bytes);
            let kind = head >> record::KIND_SHIFT;
            if head == 0 || kind & record::UNFINISHED != 0 {
                break;
            }
            let size = self.size(head)? as usize;
            let Some(bytes) = self.buffer.get(at..at + size) else { break };
            if let Some(record) = Record::decode(kind, bytes) {
                take(record);
            }
            at += size;
            count += 1;
        }
        self.read += at as u64;
        // Eight aligned bytes: the agent never sees half of them.
        self.position.write_all_at(&self.read.to_le_bytes(), 0)?;
        Ok(count)
    }

    /// Up to where there can be something.
    fn end(&self) -> Result<u64, StreamError> {
        let mut bytes = [0; 8];
        read_at(&self.file, &mut bytes, header::HEAD as u64)?;
        let end = u64::from_le_bytes(bytes);
        if end < self.read || end - self.read > self.capacity {
            return Err(StreamError::NotAStream("the ring has been overrun"));
        }
        Ok(end)
    }

    fn head_at(&self, position: u64) -> Result<u32, StreamError> {
        if self.end()? == position {
            return Ok(0);
        }
        let mut bytes = [0; 4];
        read_at(&self.file, &mut bytes, HEADER as u64 + position % self.capacity)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The size in a record's head, if the record can have it.
    fn size(&self, head: u32) -> Result<u32, StreamError> {
        let size = head & record::SIZE_MASK;
        let to_end = self.capacity - self.read % self.capacity;
        if size == 0
            || !size.is_multiple_of(8)
            || u64::from(size) > to_end.max(record::LARGEST as u64)
        {
            return Err(StreamError::NotAStream("a record has an impossible size"));
        }
        Ok(size)
    }
}

fn read_header(file: &File) -> Result<Vec<u8>, StreamError> {
    let mut head = vec![0; HEADER];
    read_at(file, &mut head, 0)?;
    Ok(head)
}

/// Reads the whole of `buffer`; `read_exact_at` of the standard library, under our own name to
/// keep the error short.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> Result<(), StreamError> {
    file.read_exact_at(buffer, at).map_err(StreamError::Io)
}

fn field(head: &[u8], at: usize) -> u64 {
    head.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}
