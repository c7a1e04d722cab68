//! Reads a snapshot with bounds: what a file says of itself is checked before memory is taken for
//! it, so a hostile file costs no more memory than it is long.
//!
//! Nothing is mapped: a file that is cut while it is read gives an error, no signal.

use super::{
    Class, ClassKind, END_MAGIC, Edge, Field, Head, MAGIC, NO_TEXT, ReferenceKind, Root, Run,
    Sample, Section, Thread, VERSION,
};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// More sections than any version has.
const MOST_SECTIONS: u64 = 1024;

/// A snapshot, without its image.
#[derive(Debug)]
pub struct Snapshot {
    pub head: Head,
    pub classes: Vec<Class>,
    pub roots: Vec<Root>,
    pub threads: Vec<Thread>,
    pub edges: Vec<Edge>,
    pub samples: Vec<Sample>,
    /// By ascending address; none overlaps another.
    pub runs: Vec<Run>,
    file: File,
    image: (u64, u64),
}

/// Why a file cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    Io(io::Error),
    /// It begins like no snapshot.
    NotASnapshot,
    /// It is a snapshot of a version that this one cannot read.
    Version(u32),
    /// It has no end: whoever wrote it did not come to it.
    CutOff {
        bytes: u64,
    },
    /// A part contradicts itself or the rest.
    Broken(&'static str),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(e) => write!(f, "{e}"),
            ReadError::NotASnapshot => f.write_str("the file is no heap snapshot of tare"),
            ReadError::Version(version) => write!(
                f,
                "the snapshot has version {version} of the format, and this tare reads version \
                 {VERSION}; read it with the version that wrote it, or a later one"
            ),
            ReadError::CutOff { bytes } => write!(
                f,
                "the snapshot is cut off: there are {bytes} bytes and no end; take it again"
            ),
            ReadError::Broken(what) => write!(f, "the snapshot is broken: {what}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(e) => e.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl Snapshot {
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Snapshot::read(File::open(path)?)
    }

    pub fn read(file: File) -> Result<Self, ReadError> {
        let sections = Sections::of(&file)?;
        let head = sections.bytes(&file, Section::Head)?;
        let head = serde_json::from_slice(&head)
            .map_err(|_| ReadError::Broken("its head is not the JSON that it should be"))?;
        let texts = texts(&sections.bytes(&file, Section::Texts)?)?;
        let mut snapshot = Snapshot {
            head,
            classes: Vec::new(),
            roots: Vec::new(),
            threads: Vec::new(),
            edges: Vec::new(),
            samples: Vec::new(),
            runs: Vec::new(),
            image: sections.place(Section::Image)?,
            file,
        };
        let file = &snapshot.file;
        let all = |section| sections.bytes(file, section);
        snapshot.classes = records(&all(Section::Classes)?, |part| class(part, &texts))?;
        snapshot.roots = records(&all(Section::Roots)?, |part| root(part, &texts))?;
        snapshot.threads = records(&all(Section::Threads)?, |part| thread(part, &texts))?;
        snapshot.edges = records(&all(Section::Edges)?, |part| {
            let edge = Edge { from: part.word()?, to: part.word()?, name: part.text(&texts)? };
            part.int()?;
            Some(edge)
        })?;
        snapshot.samples = records(&all(Section::Samples)?, |part| {
            Some(Sample { object: part.word()?, number: part.word()? })
        })?;
        snapshot.runs = records(&all(Section::Runs)?, |part| {
            Some(Run { address: part.word()?, length: part.word()?, offset: part.word()? })
        })?;
        snapshot.check_runs()?;
        Ok(snapshot)
    }

    /// The bytes of the image.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.image.1
    }

    /// Fills a buffer from an offset of the image on.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.image.1) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(buffer, self.image.0 + offset)
    }

    fn check_runs(&self) -> Result<(), ReadError> {
        let mut last = 0;
        for run in &self.runs {
            let end = run.address.checked_add(run.length);
            let inside = run.offset.checked_add(run.length).is_some_and(|end| end <= self.image.1);
            match end {
                Some(end) if run.address >= last && inside => last = end,
                _ => return Err(ReadError::Broken("its runs of objects overlap, or leave it")),
            }
        }
        Ok(())
    }
}

/// Where the sections are.
struct Sections(Vec<(u32, u64, u64)>);

impl Sections {
    fn of(file: &File) -> Result<Self, ReadError> {
        let bytes = file.metadata()?.len();
        let mut start = [0; 16];
        match file.read_exact_at(&mut start, 0) {
            Ok(()) if start[..8] == MAGIC => {}
            Ok(()) => return Err(ReadError::NotASnapshot),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ReadError::NotASnapshot);
            }
            Err(e) => return Err(e.into()),
        }
        let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        let cut = ReadError::CutOff { bytes };
        let Some(end_at) = bytes.checked_sub(16).filter(|at| *at >= 16) else { return Err(cut) };
        let mut end = [0; 16];
        file.read_exact_at(&mut end, end_at)?;
        if end[8..] != END_MAGIC {
            return Err(cut);
        }
        let mut part = Part(&end);
        let table_at = part.word().unwrap_or(0);
        let length =
            end_at.checked_sub(table_at).filter(|n| n % 24 == 0 && n / 24 <= MOST_SECTIONS);
        let length = length.ok_or(ReadError::Broken("its table of sections is out of place"))?;
        let mut table = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut table, table_at)?;
        let entries = records(&table, |part| {
            let kind = part.int()?;
            part.int()?;
            Some((kind, part.word()?, part.word()?))
        })?;
        let inside = |(_, offset, length): &(u32, u64, u64)| {
            offset.checked_add(*length).is_some_and(|end| end <= table_at)
        };
        if !entries.iter().all(inside) {
            return Err(ReadError::Broken("a section is out of place"));
        }
        Ok(Sections(entries))
    }

    fn place(&self, section: Section) -> Result<(u64, u64), ReadError> {
        let found = self.0.iter().find(|(kind, ..)| *kind == section as u32);
        found.map(|(_, at, length)| (*at, *length)).ok_or(ReadError::Broken("a section is missing"))
    }

    fn bytes(&self, file: &File, section: Section) -> Result<Vec<u8>, ReadError> {
        let (at, length) = self.place(section)?;
        let length = usize::try_from(length).map_err(|_| ReadError::Broken("it is too large"))?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// What is left of a section.
struct Part<'a>(&'a [u8]);

impl Part<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn int(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn text(&mut self, texts: &[Arc<str>]) -> Option<Arc<str>> {
        texts.get(self.int()? as usize).cloned()
    }

    fn maybe_text(&mut self, texts: &[Arc<str>]) -> Option<Option<Arc<str>>> {
        match self.int()? {
            NO_TEXT => Some(None),
            number => Some(Some(texts.get(number as usize)?.clone())),
        }
    }

    /// A number of records to come, of so many bytes each at least.
    fn count(&mut self, least: usize) -> Option<usize> {
        let count = self.int()? as usize;
        (count.checked_mul(least)? <= self.0.len()).then_some(count)
    }
}

fn records<T>(
    bytes: &[u8],
    mut one: impl FnMut(&mut Part<'_>) -> Option<T>,
) -> Result<Vec<T>, ReadError> {
    let (mut part, mut all) = (Part(bytes), Vec::new());
    while !part.0.is_empty() {
        all.push(one(&mut part).ok_or(ReadError::Broken("a record is out of bounds"))?);
    }
    Ok(all)
}

fn texts(bytes: &[u8]) -> Result<Vec<Arc<str>>, ReadError> {
    records(bytes, |part| {
        let length = part.int()? as usize;
        let (text, rest) = part.0.split_at_checked(length)?;
        part.0 = rest;
        Some(Arc::from(String::from_utf8_lossy(text)))
    })
}

fn class(part: &mut Part<'_>, texts: &[Arc<str>]) -> Option<Class> {
    let (klass, mirror, loader) = (part.word()?, part.word()?, part.word()?);
    let (super_klass, name) = (part.word()?, part.text(texts)?);
    let [kind, descriptor, reference, flags] = part.take()?;
    let (size, element) = (part.int()?, part.int()?);
    let count = part.int()?;
    part.int()?;
    if (count as usize).checked_mul(16)? > part.0.len() {
        return None;
    }
    let kind = match kind {
        0 => ClassKind::Instance { size },
        1 => ClassKind::ObjectArray { first: size, element },
        2 => ClassKind::PrimitiveArray { first: size, element, descriptor },
        _ => return None,
    };
    let fields = (0..count).map(|_| {
        let (name, descriptor) = (part.text(texts)?, part.text(texts)?);
        let (offset, flags) = (part.int()?, part.int()?);
        Some(Field { name, descriptor, offset, is_static: flags & 1 != 0 })
    });
    Some(Class {
        klass,
        mirror,
        loader,
        super_klass,
        name,
        kind,
        reference: ReferenceKind::from_number(reference)?,
        is_hidden: flags & 1 != 0,
        is_interface: flags & 2 != 0,
        is_mirror_class: flags & 4 != 0,
        is_stack_chunk: flags & 8 != 0,
        fields: fields.collect::<Option<_>>()?,
    })
}

fn root(part: &mut Part<'_>, texts: &[Arc<str>]) -> Option<Root> {
    let root = Root {
        object: part.word()?,
        kind: part.int()?,
        thread: part.int()?,
        depth: part.int()?,
        slot: part.int()?.cast_signed(),
        method: part.maybe_text(texts)?,
    };
    // Flags and a spare word.
    part.take::<12>()?;
    Some(root)
}

fn thread(part: &mut Part<'_>, texts: &[Arc<str>]) -> Option<Thread> {
    let (object, number, name) = (part.word()?, part.int()?, part.text(texts)?);
    let is_virtual = part.int()? & 1 != 0;
    let count = part.count(4)?;
    let frames = (0..count).map(|_| part.maybe_text(texts)).collect::<Option<_>>()?;
    Some(Thread { object, number, name, is_virtual, frames })
}
