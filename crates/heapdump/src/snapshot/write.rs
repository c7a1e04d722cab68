//! Writes a snapshot in one go, front to back: the image as it comes, everything else behind it.

use super::{
    Class, ClassKind, END_MAGIC, Edge, Head, MAGIC, NO_TEXT, Root, Run, Sample, Section, Thread,
    VERSION,
};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Sections of every file.
const SECTIONS: u32 = 9;

/// A file that is being written.
pub struct Writer<W> {
    out: W,
    /// Bytes written so far.
    at: u64,
    image_at: u64,
    runs: Vec<Run>,
    table: Vec<(Section, u64, u64)>,
}

/// All but the image.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub head: Head,
    pub classes: Vec<Class>,
    pub roots: Vec<Root>,
    pub threads: Vec<Thread>,
    pub edges: Vec<Edge>,
    pub samples: Vec<Sample>,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&SECTIONS.to_le_bytes())?;
        Ok(Writer { out, at: 16, image_at: 16, runs: Vec::new(), table: Vec::new() })
    }

    /// Adds bytes of the image. Addresses ascend; what lies right behind the last bytes becomes
    /// part of their run.
    pub fn append(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        match self.runs.last_mut() {
            Some(run) if run.address + run.length == address => run.length += length,
            Some(run) if run.address + run.length > address => {
                return Err(io::Error::other("objects are not in the order of their addresses"));
            }
            _ => {
                let offset = self.at - self.image_at;
                self.runs.push(Run { address, length, offset });
            }
        }
        self.put(bytes)
    }

    /// Bytes of the image so far.
    pub fn image_bytes(&self) -> u64 {
        self.at - self.image_at
    }

    /// Completes the file.
    pub fn finish(mut self, contents: &Contents) -> io::Result<W> {
        self.table.push((Section::Image, self.image_at, self.at - self.image_at));
        self.align()?;
        let mut texts = Texts::default();
        let runs = std::mem::take(&mut self.runs);
        self.section(Section::Runs, runs.iter().flat_map(run))?;
        let classes = contents.classes.iter().flat_map(|class| texts.class(class));
        self.section(Section::Classes, classes)?;
        self.section(Section::Roots, contents.roots.iter().flat_map(|root| texts.root(root)))?;
        let threads = contents.threads.iter().flat_map(|thread| texts.thread(thread));
        self.section(Section::Threads, threads)?;
        self.section(Section::Edges, contents.edges.iter().flat_map(|edge| texts.edge(edge)))?;
        self.section(Section::Samples, contents.samples.iter().flat_map(sample))?;
        self.section(Section::Texts, texts.all.iter().flat_map(|text| encoded(text)))?;
        let head = serde_json::to_vec(&contents.head).map_err(io::Error::other)?;
        self.section(Section::Head, head.into_iter())?;
        let table_at = self.at;
        for (section, offset, length) in std::mem::take(&mut self.table) {
            self.put(&(section as u32).to_le_bytes())?;
            self.put(&0_u32.to_le_bytes())?;
            self.put(&offset.to_le_bytes())?;
            self.put(&length.to_le_bytes())?;
        }
        self.put(&table_at.to_le_bytes())?;
        self.put(&END_MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn section(&mut self, section: Section, bytes: impl Iterator<Item = u8>) -> io::Result<()> {
        const PORTION: usize = 64 << 10;
        let began = self.at;
        let mut portion = Vec::with_capacity(PORTION);
        for byte in bytes {
            portion.push(byte);
            if portion.len() == PORTION {
                self.put(&portion)?;
                portion.clear();
            }
        }
        self.put(&portion)?;
        self.table.push((section, began, self.at - began));
        self.align()
    }

    fn align(&mut self) -> io::Result<()> {
        let lacking = (8 - self.at % 8) % 8;
        self.put(&[0; 8][..lacking as usize])
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

/// The texts, each once.
#[derive(Default)]
struct Texts {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Texts {
    fn number(&mut self, text: &Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(NO_TEXT);
        self.all.push(text.clone());
        self.numbers.insert(text.clone(), number);
        number
    }

    fn maybe(&mut self, text: Option<&Arc<str>>) -> u32 {
        text.map_or(NO_TEXT, |text| self.number(text))
    }

    fn class(&mut self, class: &Class) -> Vec<u8> {
        let (kind, descriptor, size, element) = match class.kind {
            ClassKind::Instance { size } => (0, 0, size, 0),
            ClassKind::ObjectArray { first, element } => (1, b'L', first, element),
            ClassKind::PrimitiveArray { first, element, descriptor } => {
                (2, descriptor, first, element)
            }
        };
        let flags = u8::from(class.is_hidden)
            | u8::from(class.is_interface) << 1
            | u8::from(class.is_mirror_class) << 2
            | u8::from(class.is_stack_chunk) << 3;
        let mut out = Vec::with_capacity(56 + 16 * class.fields.len());
        for word in [class.klass, class.mirror, class.loader, class.super_klass] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.number(&class.name).to_le_bytes());
        out.extend([kind, descriptor, class.reference as u8, flags]);
        let fields = u32::try_from(class.fields.len()).unwrap_or(u32::MAX);
        for int in [size, element, fields, 0] {
            out.extend(int.to_le_bytes());
        }
        for field in class.fields.iter().take(fields as usize) {
            let (name, descriptor) = (self.number(&field.name), self.number(&field.descriptor));
            for int in [name, descriptor, field.offset, u32::from(field.is_static)] {
                out.extend(int.to_le_bytes());
            }
        }
        out
    }

    fn root(&mut self, root: &Root) -> Vec<u8> {
        let mut out = Vec::with_capacity(40);
        out.extend(root.object.to_le_bytes());
        let method = self.maybe(root.method.as_ref());
        for int in [root.kind, root.thread, root.depth, root.slot.cast_unsigned(), method, 0, 0, 0]
        {
            out.extend(int.to_le_bytes());
        }
        out
    }

    fn thread(&mut self, thread: &Thread) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + 4 * thread.frames.len());
        out.extend(thread.object.to_le_bytes());
        let frames = u32::try_from(thread.frames.len()).unwrap_or(u32::MAX);
        let name = self.number(&thread.name);
        for int in [thread.number, name, u32::from(thread.is_virtual), frames] {
            out.extend(int.to_le_bytes());
        }
        for frame in thread.frames.iter().take(frames as usize) {
            out.extend(self.maybe(frame.as_ref()).to_le_bytes());
        }
        out
    }

    fn edge(&mut self, edge: &Edge) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.extend(edge.from.to_le_bytes());
        out.extend(edge.to.to_le_bytes());
        out.extend(self.number(&edge.name).to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out
    }
}

fn run(run: &Run) -> impl Iterator<Item = u8> {
    [run.address, run.length, run.offset].into_iter().flat_map(u64::to_le_bytes)
}

fn sample(sample: &Sample) -> impl Iterator<Item = u8> {
    [sample.object, sample.number].into_iter().flat_map(u64::to_le_bytes)
}

fn encoded(text: &str) -> impl Iterator<Item = u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    length.to_le_bytes().into_iter().chain(text.bytes())
}
