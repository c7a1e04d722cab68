//! The conversation with a copy of the JVM: its memory, and what it marks and hands out.
//!
//! Memory is read in pages that are kept, since the JVM's own structures lie close together. What
//! the copy says is not believed further than it can be checked: lengths are bounded, addresses
//! are only numbers.

use crate::error::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_protocol::heap::wire::{
    self, FAILED_MEMORY, Hello, IMAGE, MARK, MOST_READ, MOST_STACKS, MarkPlan, Marked, READ,
    SETTLE, STACKS, Stacks,
};

const PAGE: u64 = 4096;

/// How often one looks whether it is still wanted.
const TURN: Duration = Duration::from_millis(100);

/// Pages that are kept: a quarter of a gigabyte. A JVM with a hundred thousand classes has less.
const MOST_PAGES: usize = 64 << 10;

/// What of a JVM's memory is asked for at once.
const AT_ONCE: u64 = MOST_READ;

/// The copy's memory, at the moment at which it was made.
pub struct Copy {
    stream: Wire,
    pub hello: Hello,
    pages: HashMap<u64, Box<[u8; PAGE as usize]>>,
}

impl Copy {
    /// Hears the greeting. Whatever takes longer than `patience` is a failure; so is everything
    /// after somebody has said `stop`.
    pub fn greet(file: File, patience: Duration, stop: Arc<AtomicBool>) -> Result<Self> {
        let stream = UnixStream::from(OwnedFd::from(file));
        stream.set_read_timeout(Some(TURN))?;
        stream.set_write_timeout(Some(TURN))?;
        let mut stream = Wire { stream, patience, stop };
        let mut hello = [0; Hello::BYTES];
        stream.read_exact(&mut hello).map_err(lost)?;
        let hello = Hello::decode(&hello);
        if !hello.greets() || hello.heap_start >= hello.heap_end {
            return Err(Error::Confused("the copy of the JVM greets in no way we know".into()));
        }
        Ok(Copy { stream, hello, pages: HashMap::new() })
    }

    /// So many bytes from an address on.
    pub fn bytes(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let from = at.checked_add(done as u64).ok_or_else(|| nothing_at(at))?;
            let offset = (from % PAGE) as usize;
            let page = self.page(from - offset as u64)?;
            let length = (into.len() - done).min(PAGE as usize - offset);
            into[done..done + length].copy_from_slice(&page[offset..offset + length]);
            done += length;
        }
        Ok(())
    }

    fn page(&mut self, at: u64) -> Result<&[u8; PAGE as usize]> {
        if !self.pages.contains_key(&at) {
            if self.pages.len() > MOST_PAGES {
                self.pages.clear();
            }
            let mut all = vec![0; AT_ONCE as usize];
            let read = self.read(at, &mut all)?;
            for (number, page) in (0..).zip(all[..read].chunks_exact(PAGE as usize)) {
                let mut kept = Box::new([0; PAGE as usize]);
                kept.copy_from_slice(page);
                self.pages.insert(at + number * PAGE, kept);
            }
        }
        match self.pages.get(&at) {
            Some(page) => Ok(page),
            None => Err(nothing_at(at)),
        }
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.tell(&[READ, at, into.len() as u64])?;
        let read = self.word()?;
        let place = usize::try_from(read).ok().and_then(|read| into.get_mut(..read));
        let place = place.ok_or_else(confused)?;
        self.stream.read_exact(place).map_err(lost)?;
        Ok(place.len())
    }

    pub fn u64_at(&mut self, at: u64) -> Result<u64> {
        let mut bytes = [0; 8];
        self.bytes(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn u32_at(&mut self, at: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.bytes(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub fn i32_at(&mut self, at: u64) -> Result<i32> {
        self.u32_at(at).map(u32::cast_signed)
    }

    pub fn u16_at(&mut self, at: u64) -> Result<u16> {
        let mut bytes = [0; 2];
        self.bytes(at, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    pub fn u8_at(&mut self, at: u64) -> Result<u8> {
        let mut bytes = [0; 1];
        self.bytes(at, &mut bytes)?;
        Ok(bytes[0])
    }

    /// A text that ends with a zero, of a thousand bytes at most; empty if there is none.
    pub fn text_at(&mut self, at: u64) -> Result<String> {
        const MOST: u64 = 1000;
        let mut text = Vec::new();
        while at != 0 && (text.len() as u64) < MOST {
            match self.u8_at(at + text.len() as u64)? {
                0 => break,
                byte => text.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Has what is reachable marked.
    pub fn mark(&mut self, plan: &MarkPlan) -> Result<Marked> {
        let plan = plan.encode();
        self.tell(&[MARK, plan.len() as u64])?;
        self.stream.write_all(&plan).map_err(lost)?;
        self.marked()
    }

    fn marked(&mut self) -> Result<Marked> {
        let mut marked = [0; Marked::BYTES];
        self.stream.read_exact(&mut marked).map_err(lost)?;
        let marked = Marked::decode(&marked);
        match marked.failed {
            0 => Ok(marked),
            FAILED_MEMORY => Err(Error::Refused(
                "the copy of the JVM got no memory to note what is reachable; a limit of memory is \
                 reached where the JVM runs"
                    .to_owned(),
            )),
            _ => Err(confused()),
        }
    }

    /// Where objects are now that may have moved.
    pub fn settle(&mut self, objects: &mut [u64]) -> Result<()> {
        for some in objects.chunks_mut(4096) {
            self.tell(&[SETTLE, some.len() as u64])?;
            self.tell(some)?;
            for object in some {
                *object = self.word()?;
            }
        }
        Ok(())
    }

    /// Has roots looked for on stacks of virtual threads that are not mounted: those threads, what
    /// they have brought, and what is marked then.
    pub fn stacks(&mut self, klass: u64) -> Result<(Vec<u64>, Stacks, Marked)> {
        self.tell(&[STACKS, klass])?;
        let count = self.word()?;
        if count > MOST_STACKS {
            return Err(confused());
        }
        let threads = (0..count).map(|_| self.word()).collect::<Result<_>>()?;
        let mut stacks = [0; Stacks::BYTES];
        self.stream.read_exact(&mut stacks).map_err(lost)?;
        let stacks = Stacks::decode(&stacks);
        self.hello.root_count = stacks.root_count;
        // What was read of the roots may have more behind it.
        self.pages.clear();
        Ok((threads, stacks, self.marked()?))
    }

    /// Has the objects handed out: their addresses, ascending, and their bytes.
    pub fn image(&mut self, mut take: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.tell(&[IMAGE])?;
        let mut reader = io::BufReader::with_capacity(1 << 20, &mut self.stream);
        let mut portion = vec![0; 1 << 20];
        loop {
            let mut frame = [0; 16];
            reader.read_exact(&mut frame).map_err(lost)?;
            let (address, length) = frame.split_at(8);
            let (mut address, mut length) = (word(address), word(length));
            if (address, length) == (0, 0) {
                return Ok(());
            }
            if address.checked_add(length).is_none_or(|end| end > self.hello.heap_end) {
                return Err(confused());
            }
            while length > 0 {
                let part = &mut portion[..length.min(1 << 20) as usize];
                reader.read_exact(part).map_err(lost)?;
                take(address, part)?;
                address += part.len() as u64;
                length -= part.len() as u64;
            }
        }
    }

    /// Lets the copy end.
    pub fn end(mut self) {
        let _ = self.tell(&[wire::END]);
    }

    fn tell(&mut self, words: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.stream.write_all(&bytes).map_err(lost)
    }

    fn word(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.stream.read_exact(&mut bytes).map_err(lost)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The copy's socket. A copy may be silent for long while it marks, so each wait is made of short
/// ones.
struct Wire {
    stream: UnixStream,
    patience: Duration,
    stop: Arc<AtomicBool>,
}

impl Wire {
    fn patiently(
        &mut self,
        mut body: impl FnMut(&mut UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(STOPPED.into());
            }
            match body(&mut self.stream) {
                Err(e) if is_silent(&e) && began.elapsed() < self.patience => {}
                done => return done,
            }
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.read(into))
    }
}

impl Write for Wire {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.write(from))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Stands for "nobody wants it any more"; no socket of this kind says that by itself.
const STOPPED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

fn is_silent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn confused() -> Error {
    Error::Confused("the copy of the JVM says what makes no sense".to_owned())
}

fn nothing_at(at: u64) -> Error {
    Error::Confused(format!("the copy of the JVM has nothing to read at {at:#x}"))
}

/// The copy is gone, or does not answer, or nobody wants to hear it.
fn lost(error: io::Error) -> Error {
    match error.kind() {
        STOPPED => super::stopped(),
        _ if is_silent(&error) => {
            Error::Silent("the copy of the JVM did not answer in time".to_owned())
        }
        _ => Error::Gone(Some(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_copy_is_left_when_somebody_says_so_or_patience_is_over() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let stop = Arc::new(AtomicBool::new(true));
        let hour = Duration::from_secs(3600);
        let file = || File::from(OwnedFd::from(ours.try_clone().unwrap()));
        let stopped = Copy::greet(file(), hour, stop).err().unwrap();
        assert!(matches!(stopped, Error::Refused(_)), "{stopped}");
        let silent = Copy::greet(file(), Duration::ZERO, Arc::default()).err().unwrap();
        assert!(matches!(silent, Error::Silent(_)), "{silent}");
    }
}
