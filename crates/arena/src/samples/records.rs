//! The records of the stream: decoding all of them, and encoding those that the agent writes
//! outside its signal handler.

use super::events::{DeclaredKind, StreamEvent, Text};
use super::layout::{How, Special, State, frame, record, sample, trace};

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Sample(Sample),
    Trace(Trace),
    Method(SampleMethod),
    /// A thread is there, or has a new name: the same number then comes again.
    Thread(SampleThread),
    ThreadEnd {
        thread: u32,
        time: u64,
    },
    EventKind(DeclaredKind),
    Text(Text),
    Event(StreamEvent),
}

/// A thread was seen at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of the thread, see [`SampleThread`]; zero is a thread that is not known.
    pub thread: u32,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time: u64,
    /// The nanoseconds that this sample stands for: of processor time, or, in wall-clock mode,
    /// of time.
    pub weight: u64,
    /// The id of the virtual thread that was mounted; zero when there was none, or its id could
    /// not be had safely. Then a frame of `java.lang.VirtualThread.run` still tells that the
    /// stack is a virtual thread's.
    pub java_id: u64,
    /// The [`Trace`], which came earlier in the stream.
    pub trace: u32,
    pub state: State,
    /// The thread had not run since its last sample, so it was not disturbed: its trace stands.
    pub unchanged: bool,
}

/// A stack, the innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub id: u32,
    /// Frames towards the root are missing.
    pub cut: bool,
    pub frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// `method` is the key of a [`SampleMethod`], which may come later in the stream than its
    /// first trace; `bci` is `None` when unknown.
    Java {
        method: u64,
        bci: Option<u16>,
        how: How,
    },
    /// An instruction's address in the JVM's address space. For callers it is the address that
    /// the call returns to, so look up the byte before it, except for the innermost frame.
    Native {
        address: u64,
    },
    /// The same, in the kernel's.
    Kernel {
        address: u64,
    },
    Special(Special),
    /// The class of an object that was allocated by the next frame: the id of a [`Text`], its
    /// signature as the JVM spells it (`Lcom/acme/Order;`, `[B`). It may come later in the stream.
    Class {
        text: u32,
    },
    /// Of a kind that this version does not know.
    Other,
}

/// What is known of a method. One key may come again, when the JVM has used it for another
/// method after unloading the first: traces that follow mean the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleMethod {
    pub key: u64,
    /// JVM access flags.
    pub modifiers: u32,
    /// As the class file spells it: `com/acme/Orders`. All texts are empty when the class was
    /// unloaded before we could ask.
    pub class: String,
    pub name: String,
    pub descriptor: String,
    pub file: String,
    /// The number of the class loader; zero is the JVM's own. Numbers and the texts are those of
    /// exact recordings, so that a method is the same in both.
    pub loader: u32,
    /// The class of the loader, as `com/acme/PluginLoader`; empty if it is not known.
    pub loader_class: String,
    /// In order of `bci`; empty when the class does not tell.
    pub lines: Vec<LineEntry>,
}

/// From this bytecode on the source is at this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry {
    pub bci: u16,
    pub line: u16,
}

impl SampleMethod {
    /// The line of a bytecode.
    #[must_use]
    pub fn line(&self, bci: u16) -> Option<u32> {
        let after = self.lines.partition_point(|entry| entry.bci <= bci);
        Some(u32::from(self.lines.get(after.checked_sub(1)?)?.line))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadType {
    /// A platform thread of Java; carriers of virtual threads are such.
    #[default]
    Java,
    /// A thread of the JVM itself or of a native library; their names tell.
    Native,
}

/// One thread's life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleThread {
    /// Counted from 1 in the session; never used again for another thread.
    pub number: u32,
    pub kind: ThreadType,
    /// As the operating system numbers it, in the JVM's own namespace.
    pub os_id: u32,
    /// `Thread.threadId()`, zero for native threads or when not known.
    pub java_id: u64,
    /// When it was first seen starting; zero if it was there before.
    pub started: u64,
    pub name: String,
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Record {
    /// Decodes a record of a kind, head included. `None` for kinds and contents that make no
    /// sense: they are passed over.
    pub(super) fn decode(kind: u32, bytes: &[u8]) -> Option<Self> {
        match kind {
            record::SAMPLE => Some(Record::Sample(Sample {
                thread: word(bytes, sample::THREAD)?,
                time: long(bytes, sample::TIME)?,
                weight: long(bytes, sample::WEIGHT)?,
                java_id: long(bytes, sample::JAVA_ID)?,
                trace: word(bytes, sample::TRACE)?,
                state: State::from_code(u64::from(*bytes.get(sample::STATE)?))
                    .unwrap_or(State::Unknown),
                unchanged: bytes.get(sample::FLAGS)? & sample::FLAG_UNCHANGED != 0,
            })),
            record::TRACE => decode_trace(bytes).map(Record::Trace),
            record::METHOD => SampleMethod::decode(bytes).map(Record::Method),
            record::THREAD => SampleThread::decode(bytes).map(Record::Thread),
            record::THREAD_END => {
                Some(Record::ThreadEnd { thread: word(bytes, 4)?, time: long(bytes, 8)? })
            }
            record::EVENT_KIND => DeclaredKind::decode(bytes).map(Record::EventKind),
            record::TEXT => Text::decode(bytes).map(Record::Text),
            record::EVENT => StreamEvent::decode(bytes).map(Record::Event),
            _ => None,
        }
    }

    /// The bytes of a thread's end.
    #[must_use]
    pub fn encode_thread_end(thread: u32, time: u64) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&thread.to_le_bytes());
        out.extend_from_slice(&time.to_le_bytes());
        finish(out, record::THREAD_END)
    }
}

fn decode_trace(bytes: &[u8]) -> Option<Trace> {
    let count = word(bytes, trace::FRAMES)? as usize;
    let frames = bytes.get(trace::HEAD..)?;
    let frames = frames.get(..count.checked_mul(frame::SIZE)?)?;
    Some(Trace {
        id: word(bytes, trace::ID)?,
        cut: word(bytes, trace::FLAGS)? & trace::FLAG_CUT != 0,
        frames: frames.chunks_exact(frame::SIZE).filter_map(decode_frame).collect(),
    })
}

fn decode_frame(bytes: &[u8]) -> Option<Frame> {
    let value = long(bytes, frame::VALUE)?;
    Some(match *bytes.get(frame::KIND)? {
        frame::JAVA => Frame::Java {
            method: value,
            bci: u16::try_from(word(bytes, frame::BCI)?.cast_signed()).ok(),
            how: How::from_code(u64::from(*bytes.get(frame::HOW)?)).unwrap_or(How::Unknown),
        },
        frame::NATIVE => Frame::Native { address: value },
        frame::KERNEL => Frame::Kernel { address: value },
        frame::CLASS => u32::try_from(value).map_or(Frame::Other, |text| Frame::Class { text }),
        frame::SPECIAL => Special::from_code(value).map_or(Frame::Other, Frame::Special),
        _ => Frame::Other,
    })
}

/// Puts the head on and fills up to a multiple of eight. What would be too long for the ring is
/// cut by the callers.
pub(super) fn finish(mut out: Vec<u8>, kind: u32) -> Vec<u8> {
    out.resize(out.len().next_multiple_of(8), 0);
    let head = out.len() as u32 | kind << record::KIND_SHIFT;
    out[..4].copy_from_slice(&head.to_le_bytes());
    out
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(TEXT_MOST)];
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Longer names than this are cut.
const TEXT_MOST: usize = 16 << 10;

pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl Cursor<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (head, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    fn long(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    fn short(&mut self) -> Option<u16> {
        let (head, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*head))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.short()?;
        let (text, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

impl SampleMethod {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&self.modifiers.to_le_bytes());
        out.extend_from_slice(&self.key.to_le_bytes());
        for text in [&self.class, &self.name, &self.descriptor, &self.file, &self.loader_class] {
            put_text(&mut out, text);
        }
        out.extend_from_slice(&self.loader.to_le_bytes());
        let room = (record::LARGEST - 64 - out.len()) / 4;
        let lines = &self.lines[..self.lines.len().min(room)];
        out.extend_from_slice(&(lines.len() as u32).to_le_bytes());
        for entry in lines {
            out.extend_from_slice(&entry.bci.to_le_bytes());
            out.extend_from_slice(&entry.line.to_le_bytes());
        }
        finish(out, record::METHOD)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.get(4..)?);
        let modifiers = cursor.number()?;
        let key = cursor.long()?;
        let (class, name) = (cursor.text()?, cursor.text()?);
        let (descriptor, file) = (cursor.text()?, cursor.text()?);
        let (loader_class, loader) = (cursor.text()?, cursor.number()?);
        let count = cursor.number()? as usize;
        let lines = cursor.0.get(..count.checked_mul(4)?)?.chunks_exact(4);
        let entry = |b: &[u8]| LineEntry {
            bci: u16::from_le_bytes([b[0], b[1]]),
            line: u16::from_le_bytes([b[2], b[3]]),
        };
        let lines = lines.map(entry).collect();
        Some(SampleMethod {
            key,
            modifiers,
            class,
            name,
            descriptor,
            file,
            loader,
            loader_class,
            lines,
        })
    }
}

impl SampleThread {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        for number in [self.number, self.os_id, (self.kind == ThreadType::Native).into()] {
            out.extend_from_slice(&u32::to_le_bytes(number));
        }
        for number in [self.java_id, self.started] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_text(&mut out, &self.name);
        finish(out, record::THREAD)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.get(4..)?);
        let (number, os_id) = (cursor.number()?, cursor.number()?);
        let kind = if cursor.number()? == 0 { ThreadType::Java } else { ThreadType::Native };
        let (java_id, started) = (cursor.long()?, cursor.long()?);
        Some(SampleThread { number, kind, os_id, java_id, started, name: cursor.text()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(bytes: &[u8]) -> Option<Record> {
        let head = word(bytes, 0).unwrap();
        assert_eq!((head & record::SIZE_MASK) as usize, bytes.len());
        assert_eq!(bytes.len() % 8, 0);
        Record::decode(head >> record::KIND_SHIFT, bytes)
    }

    #[test]
    fn names_come_back() {
        let method = SampleMethod {
            key: 0x7f00_1234_5678,
            modifiers: 9,
            class: "a/B".into(),
            name: "größe".into(),
            descriptor: "()V".into(),
            file: "B.java".into(),
            loader: 3,
            loader_class: "a/Loader".into(),
            lines: vec![LineEntry { bci: 3, line: 7 }, LineEntry { bci: 9, line: 8 }],
        };
        assert_eq!(method.line(2), None);
        assert_eq!(method.line(8), Some(7));
        assert_eq!(method.line(900), Some(8));
        assert_eq!(again(&method.encode()), Some(Record::Method(method)));
        let thread = SampleThread { number: 3, name: "x".repeat(20_000), ..Default::default() };
        let Some(Record::Thread(back)) = again(&thread.encode()) else { panic!() };
        assert_eq!((back.number, back.name.len()), (3, TEXT_MOST));
        let end = Record::ThreadEnd { thread: 3, time: 9 };
        assert_eq!(again(&Record::encode_thread_end(3, 9)), Some(end));
    }

    #[test]
    fn a_method_with_more_lines_than_fit_keeps_the_first() {
        let lines = vec![LineEntry { bci: 1, line: 1 }; 100_000];
        let bytes = SampleMethod { lines, ..Default::default() }.encode();
        assert!(bytes.len() <= record::LARGEST);
        assert!(again(&bytes).is_some());
    }

    #[test]
    fn a_class_is_a_frame_with_the_id_of_a_text() {
        let class = |value: u64| {
            let mut bytes = value.to_le_bytes().to_vec();
            bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, frame::CLASS, 0, 0, 0]);
            decode_frame(&bytes)
        };
        assert_eq!(class(7), Some(Frame::Class { text: 7 }));
        assert_eq!(class(1 << 32), Some(Frame::Other), "no text has such an id");
    }

    #[test]
    fn cut_records_are_no_records() {
        let bytes = SampleMethod { class: "abc".into(), ..Default::default() }.encode();
        for length in 0..bytes.len() - 8 {
            assert_eq!(Record::decode(record::METHOD, &bytes[..length]), None);
        }
    }
}
