//! Writes `.hprof` files of version 1.0.2, as HotSpot does: names first, then objects in segments.
//!
//! What an object holds is given by whoever calls; `export` does it for a whole heap.

use super::record::Width;
use crate::classes::Type;
use crate::roots::RootKind;
use std::io::{self, Write};

/// Segments are about this large, unless one object is larger.
const SEGMENT: usize = 1 << 20;

const HEAP_DUMP_SEGMENT: u8 = 0x1c;
const HEAP_DUMP_END: u8 = 0x2c;

pub struct Writer<W> {
    out: W,
    width: Width,
    /// What the next segment holds so far.
    segment: Vec<u8>,
}

/// A class as the file has it.
#[derive(Default)]
pub struct ClassOut<'a> {
    pub address: u64,
    pub super_class: u64,
    pub loader: u64,
    /// The bytes of the fields of an instance, with inherited ones.
    pub size: u32,
    /// Names by id, types, and bits of values.
    pub statics: &'a [(u64, Type, u64)],
    pub fields: &'a [(u64, Type)],
}

fn code(kind: Type) -> u8 {
    match kind {
        Type::Reference => 2,
        Type::Boolean => 4,
        Type::Char => 5,
        Type::Float => 6,
        Type::Double => 7,
        Type::Byte => 8,
        Type::Short => 9,
        Type::Int => 10,
        Type::Long => 11,
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file; the time is in milliseconds since 1970.
    pub fn new(mut out: W, width: Width, taken: u64) -> io::Result<Writer<W>> {
        out.write_all(b"JAVA PROFILE 1.0.2\0")?;
        out.write_all(&(width.bytes() as u32).to_be_bytes())?;
        out.write_all(&taken.to_be_bytes())?;
        Ok(Writer { out, width, segment: Vec::new() })
    }

    fn put_id(width: Width, into: &mut Vec<u8>, id: u64) {
        match width {
            Width::Four => into.extend((id as u32).to_be_bytes()),
            Width::Eight => into.extend(id.to_be_bytes()),
        }
    }

    fn id(&mut self, id: u64) {
        Self::put_id(self.width, &mut self.segment, id);
    }

    /// The bits of a value, as many bytes as its type has.
    pub fn put(width: Width, into: &mut Vec<u8>, kind: Type, bits: u64) {
        let size = kind.size(width.bytes() as u32) as usize;
        into.extend(&bits.to_be_bytes()[8 - size..]);
    }

    fn record(&mut self, tag: u8, body: &[u8]) -> io::Result<()> {
        self.head(tag, body.len() as u64)?;
        self.out.write_all(body)
    }

    fn head(&mut self, tag: u8, length: u64) -> io::Result<()> {
        let Ok(length) = u32::try_from(length) else {
            let text = "a record of more than 4 GiB cannot be written in this format";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        self.out.write_all(&[tag, 0, 0, 0, 0])?;
        self.out.write_all(&length.to_be_bytes())
    }

    pub fn text(&mut self, id: u64, text: &str) -> io::Result<()> {
        let mut body = Vec::new();
        Self::put_id(self.width, &mut body, id);
        body.extend(text.as_bytes());
        self.record(0x01, &body)
    }

    pub fn load_class(&mut self, serial: u32, class: u64, name: u64) -> io::Result<()> {
        let mut body = serial.to_be_bytes().to_vec();
        Self::put_id(self.width, &mut body, class);
        body.extend([0; 4]);
        Self::put_id(self.width, &mut body, name);
        self.record(0x02, &body)
    }

    /// A frame by ids of its texts.
    pub fn frame(
        &mut self,
        id: u64,
        method: u64,
        source: u64,
        class_serial: u32,
        line: i32,
    ) -> io::Result<()> {
        let mut body = Vec::new();
        for id in [id, method, 0, source] {
            Self::put_id(self.width, &mut body, id);
        }
        body.extend(class_serial.to_be_bytes());
        body.extend(line.to_be_bytes());
        self.record(0x04, &body)
    }

    pub fn trace(&mut self, serial: u32, thread: u32, frames: &[u64]) -> io::Result<()> {
        let mut body = serial.to_be_bytes().to_vec();
        body.extend(thread.to_be_bytes());
        body.extend((frames.len() as u32).to_be_bytes());
        for frame in frames {
            Self::put_id(self.width, &mut body, *frame);
        }
        self.record(0x05, &body)
    }

    /// A root, with the serial number of its thread, and of a frame, or of a thread's stack trace.
    pub fn root(&mut self, kind: RootKind, object: u64, thread: u32, frame: u32) -> io::Result<()> {
        let tag = match kind {
            RootKind::JniGlobal => 0x01,
            RootKind::JniLocal => 0x02,
            RootKind::Local => 0x03,
            RootKind::NativeStack => 0x04,
            RootKind::SystemClass => 0x05,
            RootKind::ThreadBlock => 0x06,
            RootKind::Monitor => 0x07,
            RootKind::Thread => 0x08,
            RootKind::Interned | RootKind::Other | RootKind::Unreachable => 0xff,
        };
        self.segment.push(tag);
        self.id(object);
        match tag {
            0x01 => self.id(0),
            0x02 | 0x03 | 0x08 => {
                self.segment.extend(thread.to_be_bytes());
                self.segment.extend(frame.to_be_bytes());
            }
            0x04 | 0x06 => self.segment.extend(thread.to_be_bytes()),
            _ => {}
        }
        self.flush_if_large()
    }

    pub fn class(&mut self, class: &ClassOut<'_>) -> io::Result<()> {
        let width = self.width;
        self.segment.push(0x20);
        self.id(class.address);
        self.segment.extend([0; 4]);
        for id in [class.super_class, class.loader, 0, 0, 0, 0] {
            self.id(id);
        }
        self.segment.extend(class.size.to_be_bytes());
        // No constants.
        self.segment.extend([0; 2]);
        self.segment.extend((class.statics.len() as u16).to_be_bytes());
        for (name, kind, bits) in class.statics.iter().take(u16::MAX.into()) {
            self.id(*name);
            self.segment.push(code(*kind));
            Self::put(width, &mut self.segment, *kind, *bits);
        }
        self.segment.extend((class.fields.len() as u16).to_be_bytes());
        for (name, kind) in class.fields.iter().take(u16::MAX.into()) {
            self.id(*name);
            self.segment.push(code(*kind));
        }
        self.flush_if_large()
    }

    /// An instance with the values of its fields, the class' own first.
    pub fn instance(&mut self, address: u64, class: u64, body: &[u8]) -> io::Result<()> {
        self.segment.push(0x21);
        self.id(address);
        self.segment.extend([0; 4]);
        self.id(class);
        self.segment.extend((body.len() as u32).to_be_bytes());
        self.segment.extend(body);
        self.flush_if_large()
    }

    /// The beginning of an array of references, whose elements follow.
    pub fn array(&mut self, address: u64, class: u64, length: u32) -> io::Result<()> {
        let size = self.width.bytes() as u64;
        self.make_room(u64::from(length) * size, 9 + 2 * size)?;
        self.segment.push(0x22);
        self.id(address);
        self.segment.extend([0; 4]);
        self.segment.extend(length.to_be_bytes());
        self.id(class);
        Ok(())
    }

    pub fn elements(&mut self, elements: &[u64]) -> io::Result<()> {
        for element in elements {
            self.id(*element);
        }
        Ok(())
    }

    /// The beginning of an array of values, whose bytes follow in the order of the file.
    pub fn values(&mut self, address: u64, kind: Type, length: u32) -> io::Result<()> {
        let size = self.width.bytes() as u64;
        self.make_room(u64::from(length) * u64::from(kind.size(0)), 10 + size)?;
        self.segment.push(0x23);
        self.id(address);
        self.segment.extend([0; 4]);
        self.segment.extend(length.to_be_bytes());
        self.segment.push(code(kind));
        Ok(())
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.segment.extend(bytes);
    }

    /// After the last element of an array.
    pub fn array_end(&mut self) -> io::Result<()> {
        self.flush_if_large()
    }

    /// Ends the segment if what follows would let it grow beyond 4 GiB, which no length can tell.
    fn make_room(&mut self, body: u64, head: u64) -> io::Result<()> {
        if body + head + self.segment.len() as u64 > u64::from(u32::MAX) {
            self.flush()?;
        }
        Ok(())
    }

    fn flush_if_large(&mut self) -> io::Result<()> {
        if self.segment.len() >= SEGMENT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.segment.is_empty() {
            return Ok(());
        }
        let segment = std::mem::take(&mut self.segment);
        self.record(HEAP_DUMP_SEGMENT, &segment)?;
        self.segment = segment;
        self.segment.clear();
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.record(HEAP_DUMP_END, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }
}
