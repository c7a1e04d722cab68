//! The shared memory of a session: any thread appends, from a signal handler too; the control
//! thread frees what was read.
//!
//! Appending is: reserve by compare-and-swap on the head (or give up, when a full ring's length
//! lies between head and tail), write the size with a mark, the content, the head without the
//! mark. Nobody waits for anybody. What was not yet written stays zero, because the control
//! thread clears memory before it is free again. `tare_arena::samples` is the reading side.
//!
//! Every load and store of shared fields is atomic; the content of a record is written between
//! two stores to its head, of which the second is a release.

use super::kinds::Numbers;
use crate::shared_memory::{self, Writers};
use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use tare_arena::samples::layout::{
    HEADER, MAGIC, POSITION, RING_LARGEST, RING_SMALLEST, event, header, record, sample, trace,
};
use tare_arena::samples::{Counter, EventHead, Special};

use crate::stacks::frames::Frame;

pub struct Ring {
    file: File,
    base: *mut u8,
    capacity: u64,
    /// How far the front end has read: memory that it writes, so no more than a hint.
    position: File,
    read: *mut u8,
    /// Of kinds and texts.
    pub(super) numbers: Numbers,
}

// SAFETY: all shared fields are atomics; a record's bytes belong to the one who reserved them.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of at least so many bytes, all of them allocated: later nobody can run out.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let capacity = bytes.clamp(RING_SMALLEST, RING_LARGEST).next_power_of_two();
        let length = HEADER as u64 + capacity;
        let (file, position) =
            (shared_memory::create(c"tare-samples")?, shared_memory::create(c"tare-position")?);
        shared_memory::allocate(&file, 0, length)?;
        shared_memory::allocate(&position, 0, POSITION as u64)?;
        let read = shared_memory::map(&position, POSITION)?;
        let base = shared_memory::map(&file, length as usize).inspect_err(|_| {
            // SAFETY: the mapping just made, used no more.
            unsafe { libc::munmap(read.cast(), POSITION) };
        })?;
        let ring = Ring { file, base, capacity, position, read, numbers: Numbers::default() };
        shared_memory::seal(&ring.file, Writers::Mapped)?;
        shared_memory::seal(&ring.position, Writers::Any)?;
        ring.put(header::MAGIC, MAGIC);
        ring.put(header::CAPACITY, capacity);
        Ok(ring)
    }

    /// For the front end: the stream, which it can only read, and where it says how far it has
    /// come.
    pub fn files(&self) -> io::Result<[File; 2]> {
        Ok([shared_memory::read_only(&self.file)?, self.position.try_clone()?])
    }

    /// Up to where the front end says that it has read. It may say anything.
    fn read(&self) -> u64 {
        // SAFETY: the first word of a page that is mapped for as long as `self` lives; the other
        // process writes it in one piece.
        unsafe { &*self.read.cast::<AtomicU64>() }.load(Acquire)
    }

    fn field(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at < HEADER);
        // SAFETY: an aligned word of the header, which is mapped for as long as `self` lives;
        // the other process accesses it in whole words too.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    pub fn get(&self, at: usize) -> u64 {
        self.field(at).load(Acquire)
    }

    pub fn put(&self, at: usize, value: u64) {
        self.field(at).store(value, Release);
    }

    pub fn add(&self, counter: Counter, value: u64) {
        self.field(counter.at()).fetch_add(value, Relaxed);
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.get(counter.at())
    }

    pub fn add_failure(&self, kind: Special) {
        self.add(Counter::Failed, 1);
        self.field(Counter::failure(kind)).fetch_add(1, Relaxed);
    }

    fn record(&self, position: u64) -> *mut u8 {
        let offset = (position & (self.capacity - 1)) as usize;
        // SAFETY: inside the mapping, because the offset is below the capacity.
        unsafe { self.base.add(HEADER + offset) }
    }

    fn head_of(&self, position: u64) -> &AtomicU32 {
        // SAFETY: inside the mapping; positions of records are multiples of eight.
        unsafe { &*self.record(position).cast::<AtomicU32>() }
    }

    /// Room for a record of `size` bytes, a multiple of eight; `None` when there are `most` bytes
    /// in the ring.
    fn reserve(&self, size: usize, most: u64) -> Option<u64> {
        let size = size as u64;
        let head = self.field(header::HEAD);
        let mut position = head.load(Acquire);
        loop {
            let to_end = self.capacity - (position & (self.capacity - 1));
            let padding = if size <= to_end { 0 } else { to_end };
            let end = position + padding + size;
            if end.saturating_sub(self.get(header::TAIL)) > most {
                return None;
            }
            match head.compare_exchange_weak(position, end, AcqRel, Acquire) {
                Ok(_) => {
                    if padding != 0 {
                        let filler = padding as u32 | record::PADDING << record::KIND_SHIFT;
                        self.head_of(position).store(filler, Release);
                    }
                    return Some(position + padding);
                }
                Err(now) => position = now,
            }
        }
    }

    /// What samples may fill: the rest is for names, without which samples are worth little.
    fn for_samples(&self) -> u64 {
        self.capacity - self.capacity / 8
    }

    /// Whether half of it is free: whoever could fill it leaves the rest to others.
    pub fn is_half_free(&self) -> bool {
        let used = self.get(header::HEAD).saturating_sub(self.get(header::TAIL));
        used <= self.capacity / 2
    }

    /// Appends a record whose content after the head `fill` writes.
    fn append(&self, kind: u32, size: usize, most: u64, fill: impl FnOnce(*mut u8)) -> bool {
        let Some(position) = self.reserve(size, most) else { return false };
        let head = size as u32 | kind << record::KIND_SHIFT;
        self.head_of(position).store(head | record::UNFINISHED << record::KIND_SHIFT, Relaxed);
        fill(self.record(position));
        self.head_of(position).store(head, Release);
        true
    }

    /// Appends a record that is encoded already.
    pub fn append_bytes(&self, bytes: &[u8]) -> bool {
        let Some(head) = bytes.first_chunk::<4>() else { return false };
        let kind = u32::from_le_bytes(*head) >> record::KIND_SHIFT;
        // SAFETY: the record has room for `bytes`, and the first four are the head's.
        self.append(kind, bytes.len(), self.capacity, |to| unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr().add(4), to.add(4), bytes.len() - 4);
        })
    }

    pub fn append_trace(&self, id: u32, frames: &[Frame], cut: bool) -> bool {
        let size = trace::HEAD + size_of_val(frames);
        // SAFETY: the record has room for the head and the frames; all offsets are aligned.
        self.append(record::TRACE, size, self.for_samples(), |to| unsafe {
            to.add(trace::ID).cast::<u32>().write(id);
            to.add(trace::FRAMES).cast::<u32>().write(frames.len() as u32);
            to.add(trace::FLAGS).cast::<u32>().write(if cut { trace::FLAG_CUT } else { 0 });
            ptr::copy_nonoverlapping(frames.as_ptr(), to.add(trace::HEAD).cast(), frames.len());
        })
    }

    pub fn append_sample(&self, new: &tare_arena::samples::Sample) -> bool {
        // SAFETY: the record has room for a sample; all offsets are aligned.
        self.append(record::SAMPLE, sample::SIZE, self.for_samples(), |to| unsafe {
            to.add(sample::THREAD).cast::<u32>().write(new.thread);
            to.add(sample::TIME).cast::<u64>().write(new.time);
            to.add(sample::WEIGHT).cast::<u64>().write(new.weight);
            to.add(sample::JAVA_ID).cast::<u64>().write(new.java_id);
            to.add(sample::TRACE).cast::<u32>().write(new.trace);
            to.add(sample::STATE).write(new.state as u8);
            to.add(sample::FLAGS).write(u8::from(new.unchanged) * sample::FLAG_UNCHANGED);
        })
    }

    /// Appends an event, with a value for each field of its kind. What finds no room is counted.
    pub fn append_event(&self, new: &EventHead, values: &[u64]) -> bool {
        let values = values.get(..values.len().min(event::FIELDS_MOST)).unwrap_or(&[]);
        let size = event::HEAD + size_of_val(values);
        // SAFETY: the record has room for the head and the values; all offsets are aligned.
        let written = self.append(record::EVENT, size, self.for_samples(), |to| unsafe {
            to.add(event::KIND).cast::<u32>().write(new.kind);
            to.add(event::TIME).cast::<u64>().write(new.time);
            to.add(event::DURATION).cast::<u64>().write(new.duration);
            to.add(event::JAVA_ID).cast::<u64>().write(new.java_id);
            to.add(event::THREAD).cast::<u32>().write(new.thread);
            to.add(event::TRACE).cast::<u32>().write(new.trace);
            ptr::copy_nonoverlapping(values.as_ptr(), to.add(event::HEAD).cast(), values.len());
        });
        self.add(if written { Counter::Events } else { Counter::LostEvents }, 1);
        written
    }

    /// Looks through finished records from `position` on; `look` gets their kind and bytes.
    /// Returns where it stopped. For the control thread, which alone frees records.
    pub fn scan(&self, mut position: u64, mut look: impl FnMut(u32, &[u8])) -> u64 {
        let end = self.get(header::HEAD);
        while position < end {
            let head = self.head_of(position).load(Acquire);
            let (kind, size) = (head >> record::KIND_SHIFT, head & record::SIZE_MASK);
            if size == 0 || kind & record::UNFINISHED != 0 {
                break;
            }
            // SAFETY: the record was finished by its writer and is not freed before we say so.
            // Nobody else can change it: the memory is sealed.
            look(kind, unsafe {
                std::slice::from_raw_parts(self.record(position), self.bounded(position, size))
            });
            position += u64::from(size);
        }
        position
    }

    /// A size that stays inside the mapping, whatever stands in the record.
    fn bounded(&self, position: u64, size: u32) -> usize {
        let to_end = self.capacity - (position & (self.capacity - 1));
        u64::from(size).min(to_end) as usize
    }

    /// Frees what the front end has read, up to `scanned` at most.
    pub fn free(&self, scanned: u64) {
        let tail = self.get(header::TAIL);
        // A multiple of eight, as every record's place: whatever the front end says.
        let read = self.read().min(scanned) & !7;
        if read <= tail {
            return;
        }
        let mut position = tail;
        while position < read {
            let to_end = self.capacity - (position & (self.capacity - 1));
            let length = (read - position).min(to_end);
            // SAFETY: these records were read by both readers; no writer is in them, because the
            // tail still protects them.
            unsafe { ptr::write_bytes(self.record(position), 0, length as usize) };
            position += length;
        }
        self.put(header::TAIL, read);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; whoever drops the ring knows that nobody writes.
        unsafe { libc::munmap(self.base.cast(), HEADER + self.capacity as usize) };
        // SAFETY: as above.
        unsafe { libc::munmap(self.read.cast(), POSITION) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;
    use tare_arena::samples::{Record, Sample, SampleThread, State, Stream, StreamEvent};

    fn sample(thread: u32, time: u64) -> Sample {
        let state = State::Running;
        Sample { thread, time, weight: 1, java_id: 0, trace: 7, state, unchanged: false }
    }

    #[test]
    fn what_is_appended_comes_out_in_order_round_after_round() {
        let ring = Ring::new(RING_SMALLEST).unwrap();
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let frames = vec![Frame::java(5, 3, tare_arena::samples::How::Compiled); 1000];
        let (mut sent, mut got, mut scanned) = (0, 0, 0);
        for round in 0..1000_u32 {
            assert!(ring.append_trace(round, &frames[..round as usize % 1000], false));
            for _ in 0..20 {
                assert!(ring.append_sample(&sample(round, sent)));
                sent += 1;
            }
            stream
                .drain(|record| match record {
                    Record::Sample(sample) => {
                        assert_eq!(sample.time, got);
                        got += 1;
                    }
                    Record::Trace(trace) => assert_eq!(trace.frames.len(), trace.id as usize),
                    other => panic!("{other:?}"),
                })
                .unwrap();
            scanned = ring.scan(scanned, |_, _| {});
            ring.free(scanned);
        }
        assert_eq!(got, sent);
        assert!(ring.get(header::HEAD) > 3 * ring.capacity, "the ring never came round");
    }

    #[test]
    fn events_come_out_as_they_went_in_and_what_finds_no_room_is_counted() {
        let ring = Ring::new(RING_SMALLEST).unwrap();
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let head = EventHead { kind: 2, thread: 3, time: 5, duration: 7, java_id: 9, trace: 11 };
        assert!(ring.append_event(&head, &[u64::MAX, 1]));
        assert!(ring.append_event(&head, &[]));
        let mut came = Vec::new();
        stream.drain(|record| came.push(record)).unwrap();
        let event = |values| Record::Event(StreamEvent { head, values });
        assert_eq!(came, [event(vec![u64::MAX, 1]), event(vec![])]);
        while ring.append_event(&head, &[1]) {}
        assert_eq!(ring.count(Counter::LostEvents), 1);
        let written = ring.count(Counter::Events);
        assert!(written > 10_000, "{written}");
        let mut came = 0;
        stream.drain(|_| came += 1).unwrap();
        assert_eq!(came + 2, written);
    }

    #[test]
    fn a_full_ring_refuses_samples_but_takes_names() {
        let ring = Ring::new(RING_SMALLEST).unwrap();
        while ring.append_sample(&sample(1, 1)) {}
        let name = SampleThread { number: 1, name: "late".into(), ..Default::default() };
        assert!(ring.append_bytes(&name.encode()));
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let mut names = 0;
        stream.drain(|record| names += u32::from(matches!(record, Record::Thread(_)))).unwrap();
        assert_eq!(names, 1);
        assert!(!ring.append_sample(&sample(1, 1)), "what was read is not free before it is freed");
        ring.free(ring.scan(0, |_, _| {}));
        assert!(ring.append_sample(&sample(1, 1)));
    }

    /// A front end may say anything of how far it has read: nothing is freed that it cannot have
    /// seen, and writers stay within the ring.
    #[test]
    fn a_position_that_makes_no_sense_is_harmless() {
        let ring = Ring::new(RING_SMALLEST).unwrap();
        let [_, position] = ring.files().unwrap();
        let (mut time, mut scanned) = (0, 0);
        for said in [u64::MAX, 3, 1 << 40, 0, u64::MAX / 2] {
            position.write_all_at(&said.to_le_bytes(), 0).unwrap();
            for _ in 0..100 {
                ring.append_sample(&sample(1, time));
                time += 1;
            }
            let head = ring.get(header::HEAD);
            scanned = ring.scan(scanned, |_, _| {});
            assert_eq!(scanned, head, "a record was lost");
            ring.free(scanned);
            assert!(ring.get(header::TAIL) <= head);
        }
    }

    #[test]
    fn many_writers_lose_nothing_and_a_half_written_record_is_stepped_over() {
        let ring = Ring::new(RING_SMALLEST).unwrap();
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let done = AtomicBool::new(false);
        let mut got = 0_u64;
        let taken: u64 = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|thread| {
                    let ring = &ring;
                    scope.spawn(move || {
                        (0..10_000)
                            .filter(|time| ring.append_sample(&sample(thread, *time)))
                            .count()
                    })
                })
                .collect();
            let (ring, done) = (&ring, &done);
            scope.spawn(move || {
                let mut scanned = 0;
                while !done.load(Acquire) {
                    scanned = ring.scan(scanned, |_, _| {});
                    ring.free(scanned);
                }
            });
            while writers.iter().any(|writer| !writer.is_finished()) {
                stream.drain(|_| got += 1).unwrap();
            }
            let taken = writers.into_iter().map(|writer| writer.join().unwrap() as u64).sum();
            done.store(true, Release);
            taken
        });
        stream.drain(|_| got += 1).unwrap();
        assert_eq!(got, taken);
        ring.free(ring.scan(ring.get(header::TAIL), |_, _| {}));
        // A writer that was killed in the middle.
        let position = ring.reserve(sample::SIZE, ring.capacity).unwrap();
        let unfinished = (record::UNFINISHED | record::SAMPLE) << record::KIND_SHIFT;
        ring.head_of(position).store(sample::SIZE as u32 | unfinished, Release);
        assert!(ring.append_sample(&sample(9, 9)));
        let mut rest = 0;
        assert_eq!(stream.drain(|_| rest += 1).unwrap(), 0);
        stream.drain_rest(|_| rest += 1).unwrap();
        assert_eq!(rest, 1);
    }
}
