//! What the copy does for the tool: reads memory, marks, and hands out what is marked.
//!
//! The messages are `tare_protocol::heap::wire`'s. Whatever cannot be read or written means that the
//! tool is gone, and ends the copy.

use super::mark::Marker;
use super::memory::{self, Descriptor, Prober};
use super::objects::{Class, Objects};
use tare_protocol::heap::wire::{
    FAILED_MEMORY, FAILED_PLAN, Hello, IMAGE, MARK, MOST_PLAN, MOST_READ, MOST_STACKS, Marked,
    READ, RawRoot, SETTLE, STACKS, Stacks,
};

/// What is written in one go.
const BUFFER: usize = 1 << 20;

/// Objects that lie one behind the other are written from where they are if they are so many bytes.
const LONG: u64 = 256 << 10;

/// What is changed before it goes out is changed in pieces of so many bytes.
const PIECE: u64 = 64 << 10;

/// What the tool wants that only the JVM's code can do.
pub enum Asked {
    /// Nothing more.
    End,
    /// To find what stacks of threads of this class hold.
    Stacks { klass: u64 },
}

/// The copy's side of the conversation.
pub struct Server {
    socket: Descriptor,
    hello: Hello,
    redact: bool,
    threads: usize,
    prober: Prober,
    buffer: &'static mut [u8],
    marker: Option<Marker>,
    /// Roots that are marked from.
    marked_roots: usize,
}

impl Server {
    /// Greets the tool. `None` if nobody is there, or no memory.
    pub fn new(socket: libc::c_int, hello: Hello, redact: bool, threads: usize) -> Option<Self> {
        let (socket, buffer) = (Descriptor(socket), memory::area(MOST_READ as usize)?);
        let prober = Prober::new()?;
        let greeted = socket.write_all(&hello.encode());
        let (marker, marked_roots) = (None, 0);
        let server =
            Server { socket, hello, redact, threads, prober, buffer, marker, marked_roots };
        greeted.then_some(server)
    }

    /// Serves until the tool has enough, or wants what is not done here.
    pub fn serve(&mut self, roots: &[RawRoot]) -> Asked {
        loop {
            let served = match self.word() {
                Some(READ) => self.read(),
                Some(MARK) => self.mark(roots),
                Some(SETTLE) => self.settle(),
                Some(IMAGE) => self.image(),
                Some(STACKS) => match self.word() {
                    Some(klass) => return Asked::Stacks { klass },
                    None => None,
                },
                // END, and whatever makes no sense.
                _ => None,
            };
            if served.is_none() {
                return Asked::End;
            }
        }
    }

    /// Puts every object of a class that is marked into an array; how many there are, if they
    /// could be told.
    pub fn gather(&mut self, klass: u64, array: u64) -> Option<u64> {
        let objects = &self.marker.as_ref()?.objects;
        let all = objects.fill(array, klass);
        let some = all.min(MOST_STACKS);
        let mut told = self.socket.write_all(&some.to_le_bytes());
        for number in 0..some {
            told = told && self.socket.write_all(&objects.element(array, number).to_le_bytes());
        }
        told.then_some(all)
    }

    /// Marks from roots that were found since, and tells so.
    pub fn found(&mut self, roots: &[RawRoot], dropped: u64, left_out: u64) -> Option<()> {
        let marker = self.marker.as_mut()?;
        let new = roots.get(self.marked_roots..)?;
        marker.mark(new.iter().map(|root| root.object));
        self.marked_roots = roots.len();
        let stacks = Stacks { root_count: roots.len() as u64, roots_dropped: dropped, left_out };
        let told = self.socket.write_all(&stacks.encode())
            && self.socket.write_all(&marker.marked.encode());
        told.then_some(())
    }

    fn word(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.socket.read_all(&mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    fn read(&mut self) -> Option<()> {
        let (at, length) = (self.word()?, self.word()?);
        let end = at.saturating_add(length.min(MOST_READ));
        // Contents of objects stay inside if they are to.
        let (start, stop) = (self.hello.heap_start, self.hello.heap_end);
        let allowed = match self.redact && end > start && at < stop {
            true => start.saturating_sub(at),
            false => end - at,
        };
        let place = &mut self.buffer[..allowed as usize];
        let read = self.prober.read(at, place);
        let sent = self.socket.write_all(&(read as u64).to_le_bytes())
            && self.socket.write_all(&self.buffer[..read]);
        sent.then_some(())
    }

    fn mark(&mut self, roots: &[RawRoot]) -> Option<()> {
        let length = self.word().filter(|length| *length <= MOST_PLAN)?;
        let failed = |failed| Marked { failed, ..Marked::default() };
        let marked = match memory::area::<u8>(length as usize) {
            None => failed(FAILED_MEMORY),
            Some(plan) => {
                if !self.socket.read_all(plan) {
                    return None;
                }
                let (start, end) = (self.hello.heap_start, self.hello.heap_end);
                match Marker::new(plan, start, end, self.threads) {
                    Err(reason) => failed(reason),
                    Ok(mut marker) => {
                        marker.mark(roots.iter().map(|root| root.object));
                        self.marked_roots = roots.len();
                        let marked = marker.marked;
                        self.marker = Some(marker);
                        marked
                    }
                }
            }
        };
        // What is left of a plan that there was no memory for cannot be passed over.
        let goes_on = marked.failed == 0 || marked.failed == FAILED_PLAN;
        (self.socket.write_all(&marked.encode()) && goes_on).then_some(())
    }

    fn settle(&mut self) -> Option<()> {
        for _ in 0..self.word()? {
            let object = self.word()?;
            let now = self.marker.as_ref()?.objects.settled(object).unwrap_or(0);
            if !self.socket.write_all(&now.to_le_bytes()) {
                return None;
            }
        }
        Some(())
    }

    fn image(&mut self) -> Option<()> {
        let marker = self.marker.as_ref()?;
        let objects = &marker.objects;
        let (buffer, scratch) = (memory::area(BUFFER)?, memory::area(PIECE as usize)?);
        let mut out = Output { socket: self.socket, buffer, used: 0, frame: None, end: 0 };
        let redact = self.redact;
        let changed = redact || marker.marked.moved > 0;
        let mut run = (0, 0);
        let all = objects.each(|object, class, size| {
            if changed {
                return hand_out(objects, object, class, size, redact, scratch, &mut out);
            }
            if object == run.1 {
                run.1 += size;
                return true;
            }
            let whole = out.put_memory(run.0, run.1 - run.0);
            run = (object, object + size);
            whole
        });
        let all = all && out.put_memory(run.0, run.1 - run.0) && out.flush();
        (all && self.socket.write_all(&[0; 16])).then_some(())
    }
}

/// Hands out one object, changed: references lead to where objects are now, and contents are zero
/// if they are to stay inside.
fn hand_out(
    objects: &Objects,
    object: u64,
    class: &Class,
    size: u64,
    redact: bool,
    scratch: &mut [u8],
    out: &mut Output,
) -> bool {
    let mut from = 0;
    while from < size {
        let to = size.min(from + PIECE);
        let piece = &mut scratch[..(to - from) as usize];
        let kept = if redact { objects.header(class) } else { size };
        piece.fill(0);
        let head = kept.clamp(from, to);
        // SAFETY: inside the object, of which nobody changes anything.
        unsafe { copy_from(object + from, &mut piece[..(head - from) as usize]) };
        let each = objects.reference_bytes();
        let mut moved = Settler { first: from, last: to, each, piece };
        objects.ranges(object, class, |range| {
            let mut places = moved.places(range.offset, range.count);
            while let Some(offset) = places.next_place() {
                let now = objects.packed(objects.settled_reference(object + offset));
                moved.put(offset, now);
            }
        });
        if !out.put(object + from, piece) {
            return false;
        }
        from = to;
    }
    true
}

/// A piece of an object whose references are set.
struct Settler<'a> {
    first: u64,
    last: u64,
    each: u64,
    piece: &'a mut [u8],
}

/// Offsets of references.
struct Places {
    next: u64,
    end: u64,
    each: u64,
}

impl Places {
    fn next_place(&mut self) -> Option<u64> {
        let place = self.next;
        self.next += self.each;
        (place < self.end).then_some(place)
    }
}

impl Settler<'_> {
    /// Those of a range that are in this piece. Pieces end where references end.
    fn places(&self, offset: u64, count: u64) -> Places {
        let end = (offset + count * self.each).min(self.last);
        let before = self.first.saturating_sub(offset).div_ceil(self.each);
        Places { next: offset + before * self.each, end, each: self.each }
    }

    fn put(&mut self, offset: u64, value: u64) {
        let at = (offset - self.first) as usize;
        let each = self.each as usize;
        if let Some(place) = self.piece.get_mut(at..at + each) {
            place.copy_from_slice(&value.to_le_bytes()[..each]);
        }
    }
}

/// # Safety
/// So many bytes are there, and nobody changes them.
unsafe fn copy_from(at: u64, into: &mut [u8]) {
    // SAFETY: see above; the slice is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(at as *const u8, into.as_mut_ptr(), into.len()) };
}

/// Frames of the image on their way out.
struct Output {
    socket: Descriptor,
    buffer: &'static mut [u8],
    used: usize,
    /// Where in the buffer the length of the frame is that can still grow, and the address at
    /// which it would.
    frame: Option<usize>,
    end: u64,
}

impl Output {
    fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        // SAFETY: the slice's own memory.
        unsafe { self.put_from(address, bytes.as_ptr() as u64, bytes.len() as u64) }
    }

    /// The same of objects where they are.
    fn put_memory(&mut self, address: u64, length: u64) -> bool {
        if length == 0 {
            return true;
        }
        if length < LONG {
            // SAFETY: marked objects, which nobody changes.
            return unsafe { self.put_from(address, address, length) };
        }
        let mut frame = [0; 16];
        frame[..8].copy_from_slice(&address.to_le_bytes());
        frame[8..].copy_from_slice(&length.to_le_bytes());
        // SAFETY: as above.
        self.flush()
            && self.socket.write_all(&frame)
            && unsafe { self.socket.write_from(address, length as usize) }
    }

    /// # Safety
    /// So many bytes are at `from`, and nobody changes them; no more than fit into the buffer.
    unsafe fn put_from(&mut self, address: u64, from: u64, length: u64) -> bool {
        let bytes = length as usize;
        if self.used + 16 + bytes > self.buffer.len() && !self.flush() {
            return false;
        }
        match self.frame.filter(|_| self.end == address) {
            Some(at) => {
                let place = &mut self.buffer[at..at + 8];
                let before = place.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                place.copy_from_slice(&(before + length).to_le_bytes());
            }
            None => {
                let at = self.used;
                self.buffer[at..at + 8].copy_from_slice(&address.to_le_bytes());
                self.buffer[at + 8..at + 16].copy_from_slice(&length.to_le_bytes());
                self.frame = Some(at + 8);
                self.used += 16;
            }
        }
        // SAFETY: promised by the caller.
        unsafe { copy_from(from, &mut self.buffer[self.used..self.used + bytes]) };
        self.used += bytes;
        self.end = address + length;
        true
    }

    fn flush(&mut self) -> bool {
        let written = self.socket.write_all(&self.buffer[..self.used]);
        (self.used, self.frame) = (0, None);
        written
    }
}
