//! The functions of one ELF file: by its symbol tables, or by the beginnings of functions that its
//! call-frame information tells.

use crate::foreign::open_regular;
use crate::maps::{Mapping, Source};
use crate::{Shared, Symbol, demangle};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tare_unwind::cfi::{self, Section};

/// More functions than that are not kept; the largest libraries have a million.
const MOST_FUNCTIONS: usize = 4_000_000;
/// Call-frame information beyond that is not read.
const MOST_FRAMES: u64 = 256 << 20;

/// Of headers and notes, where only a build id is asked for.
const MOST_NOTES: u64 = 64 << 20;

/// A file below this size is read at one go, which is faster than piece by piece.
const WHOLE: u64 = 128 << 20;

/// A name that is longer is none.
const LONGEST_NAME: u64 = 16 << 10;

/// Reads at least this large count against what may be read of all files together.
const LARGE: u64 = 1 << 20;

pub struct FileSymbols {
    module: Rc<str>,
    pid: u32,
    shared: Rc<Shared>,
    /// Opened while it could be found, and read when the first name is asked for.
    file: Cell<Option<File>>,
    content: OnceCell<Content>,
    /// Each function is demangled when it is first met.
    names: RefCell<HashMap<u64, Rc<str>>>,
}

/// What a file says.
#[derive(Default)]
struct Content {
    /// From offsets in the file to addresses as the file counts them.
    segments: Vec<Segment>,
    functions: Vec<Function>,
    /// Beginnings of functions without a name.
    starts: Vec<(u64, u64)>,
}

struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

struct Function {
    start: u64,
    end: u64,
    name: Box<str>,
}

/// What may still be taken of all files of a process together.
pub struct Allowance {
    /// Bytes that are read.
    read: AtomicU64,
    /// Bytes of names. Symbols may share theirs, or overlap, so that a small file can have more of
    /// them than there is memory.
    names: AtomicU64,
}

impl Allowance {
    pub fn new(read: u64, names: u64) -> Self {
        Allowance { read: AtomicU64::new(read), names: AtomicU64::new(names) }
    }
}

/// What whoever reads a file keeps to.
#[derive(Clone, Copy)]
struct Limits<'a> {
    allowance: &'a Allowance,
    /// Nobody waits for it any more.
    stop: &'a AtomicBool,
}

/// A file, of which no more is read than is left of the allowance: a symbol table may claim any
/// size, and a file with holes can back the claim.
#[derive(Clone, Copy)]
struct Allowed<'a, R> {
    data: R,
    /// Whether the data is in memory already.
    whole: bool,
    limits: Limits<'a>,
}

impl<'a, R: ReadRef<'a>> ReadRef<'a> for Allowed<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.data.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if !self.whole && size >= LARGE && !take(&self.limits.allowance.read, size) {
            return Err(());
        }
        self.data.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let names = &self.limits.allowance.names;
        // One that is not looked for costs neither time nor memory.
        if names.load(Relaxed) == 0 || self.limits.stop.load(Relaxed) {
            return Err(());
        }
        let end = range.end.min(range.start.saturating_add(LONGEST_NAME));
        let name = self.data.read_bytes_at_until(range.start..end, delimiter)?;
        if !take(names, name.len() as u64 + 1) {
            names.store(0, Relaxed);
            return Err(());
        }
        Ok(name)
    }
}

/// Takes from what may be had; false if that is not enough.
fn take(left: &AtomicU64, size: u64) -> bool {
    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(size)).is_ok()
}

impl Content {
    fn read(file: &File, pid: u32, limits: Limits<'_>) -> Self {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        if size > WHOLE {
            let cache = ReadCache::new(file);
            return Self::of(Allowed { data: &cache, whole: false, limits }, pid, limits);
        }
        if !take(&limits.allowance.read, size) {
            return Content::default();
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {
                Self::of(Allowed { data: bytes.as_slice(), whole: true, limits }, pid, limits)
            }
            Err(_) => Content::default(),
        }
    }

    fn of<'a>(data: impl ReadRef<'a>, pid: u32, limits: Limits<'_>) -> Self {
        let mut content = Content::default();
        let Ok(elf) = ElfFile64::<Endianness, _>::parse(data) else { return content };
        content.segments = segments(&elf);
        content.functions = functions(elf.symbols(), limits.stop);
        if content.functions.is_empty() {
            // Stripped; perhaps its symbols lie in a file of their own.
            content.functions = debug_functions(pid, elf.build_id().ok().flatten(), limits);
        }
        if content.functions.is_empty() {
            content.functions = functions(elf.dynamic_symbols(), limits.stop);
            content.starts = starts(&elf);
        }
        content
    }

    /// The beginning of a function that has no name, or the address itself.
    fn start_of(&self, address: u64) -> u64 {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        let found = after.checked_sub(1).and_then(|index| self.starts.get(index));
        found.filter(|(_, end)| address < *end).map_or(address, |(start, _)| *start)
    }
}

impl FileSymbols {
    /// Opens the file behind a mapping. One that cannot be read, or is not the one that is mapped,
    /// has no names, but offsets.
    pub fn open(pid: u32, mapping: &Mapping, source: &Source, shared: &Rc<Shared>) -> Self {
        let name = source.path.file_name().unwrap_or_default().to_string_lossy();
        let (mapping, of) = (mapping.clone(), source.clone());
        let opened = shared.ask(&name, move |_| open_mapped(pid, &mapping, &of));
        FileSymbols {
            module: name.as_ref().into(),
            pid,
            shared: Rc::clone(shared),
            file: Cell::new(opened.flatten()),
            content: OnceCell::new(),
            names: RefCell::default(),
        }
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| {
            let (Some(file), pid) = (self.file.take(), self.pid) else {
                return Content::default();
            };
            let allowance = Arc::clone(&self.shared.allowance);
            let read = self.shared.ask(&self.module, move |stop| {
                Content::read(&file, pid, Limits { allowance: &allowance, stop })
            });
            read.unwrap_or_default()
        })
    }

    /// The name of what is at an offset in the file.
    pub fn name(&self, offset: u64) -> Symbol {
        let (module, content) = (Rc::clone(&self.module), self.content());
        let segment =
            content.segments.iter().find(|s| (s.offset..s.offset + s.length).contains(&offset));
        let Some(address) = segment.map(|s| offset - s.offset + s.address) else {
            return Symbol { name: format!("{module}+{offset:#x}").into(), module };
        };
        let after = content.functions.partition_point(|f| f.start <= address);
        let function = after.checked_sub(1).and_then(|index| content.functions.get(index));
        let function = function.filter(|f| address < f.end);
        let start = function.map_or_else(|| content.start_of(address), |f| f.start);
        let mut names = self.names.borrow_mut();
        let name = names.entry(start).or_insert_with(|| match function {
            Some(function) => demangle(&function.name).into(),
            None => format!("{module}+{start:#x}").into(),
        });
        Symbol { name: Rc::clone(name), module }
    }
}

/// The names at some offsets of a file with these bytes, for fuzzers.
pub fn untrusted_names(bytes: &[u8], offsets: &[u64]) -> Vec<Rc<str>> {
    let (allowance, stop) = (Allowance::new(MOST_NOTES, MOST_NOTES), AtomicBool::new(false));
    let limits = Limits { allowance: &allowance, stop: &stop };
    let content = Content::of(Allowed { data: bytes, whole: true, limits }, 0, limits);
    let symbols = FileSymbols {
        module: "any".into(),
        pid: 0,
        shared: Rc::default(),
        file: Cell::new(None),
        content: OnceCell::from(content),
        names: RefCell::default(),
    };
    offsets.iter().map(|offset| symbols.name(*offset).name).collect()
}

/// Opens the file that is mapped, and no other: an update may have put another one in its place.
fn open_mapped(pid: u32, mapping: &Mapping, source: &Source) -> Option<File> {
    // The kernel's own link to it, for those who may; it works for deleted files too.
    let link = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    if let Ok(file) = open_regular(Path::new(&link)) {
        return Some(file);
    }
    if source.deleted {
        return None;
    }
    // The path is one without links, as the kernel resolved it.
    let opened = open_regular(&in_root(pid, &source.path));
    // A process that has ended has no root any more; the file may be the one here.
    let file = opened.or_else(|_| open_regular(&source.path)).ok()?;
    let metadata = file.metadata().ok()?;
    let device = (rdev_major(metadata.dev()), rdev_minor(metadata.dev()));
    let same = metadata.ino() == source.inode && device == source.device;
    // Layered file systems give the mapping another number than the file: ask for the build id.
    (same || same_build_id(pid, mapping, &file)).then_some(file)
}

fn in_root(pid: u32, path: &Path) -> PathBuf {
    let inside = path.strip_prefix("/").unwrap_or(path);
    PathBuf::from(format!("/proc/{pid}/root")).join(inside)
}

fn rdev_major(device: u64) -> u32 {
    ((device >> 8 & 0xfff) | (device >> 32 & !0xfff)) as u32
}

fn rdev_minor(device: u64) -> u32 {
    ((device & 0xff) | (device >> 12 & !0xff)) as u32
}

/// Whether the file has the build id of what is in memory: the note segment is compared, where it
/// is mapped. Files without one are taken for others.
fn same_build_id(pid: u32, mapping: &Mapping, file: &File) -> bool {
    let (allowance, stop) = (Allowance::new(MOST_NOTES, MOST_NOTES), AtomicBool::new(false));
    let limits = Limits { allowance: &allowance, stop: &stop };
    let data = Allowed { data: &ReadCache::new(file), whole: false, limits };
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(data) else { return false };
    let Ok(Some(id)) = elf.build_id() else { return false };
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return false };
    // Where address zero of the file lies in memory.
    let segments = segments(&elf);
    let segment =
        segments.iter().find(|s| (s.offset..s.offset + s.length).contains(&mapping.offset));
    let Some(segment) = segment else { return false };
    let bias = mapping.start.wrapping_sub(mapping.offset - segment.offset + segment.address);
    let endian = elf.endian();
    let Ok(headers) = elf.elf_header().program_headers(endian, elf.data()) else { return false };
    let notes = headers.iter().filter(|h| h.p_type(endian) == elf::PT_NOTE);
    notes.into_iter().any(|header| {
        const MOST: u64 = 4096;
        let mut bytes = vec![0; header.p_memsz(endian).min(MOST) as usize];
        let at = bias.wrapping_add(header.p_vaddr(endian));
        memory.read_exact_at(&mut bytes, at).is_ok()
            && tare_unwind::elf::build_id(&bytes) == Some(id)
    })
}

fn segments<'a, R: ReadRef<'a>>(file: &ElfFile64<'a, Endianness, R>) -> Vec<Segment> {
    let endian = file.endian();
    let Ok(headers) = file.elf_header().program_headers(endian, file.data()) else {
        return Vec::new();
    };
    let loaded = headers.iter().filter(|h| h.p_type(endian) == elf::PT_LOAD);
    let segments = loaded.map(|h| Segment {
        offset: h.p_offset(endian),
        length: h.p_filesz(endian),
        address: h.p_vaddr(endian),
    });
    // What leads beyond all offsets or addresses is no segment.
    let fits = |s: &Segment| {
        let ends = (s.offset.checked_add(s.length), s.address.checked_add(s.length));
        ends.0.is_some() && ends.1.is_some()
    };
    segments.filter(fits).collect()
}

/// The functions of a symbol table, by address, each address once.
fn functions<'a>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'a>>,
    stop: &AtomicBool,
) -> Vec<Function> {
    let mut functions: Vec<(bool, Function)> = symbols
        .take_while(|_| !stop.load(Relaxed))
        .filter(|s| s.kind() == SymbolKind::Text && s.is_definition())
        .filter_map(|s| {
            let name = s.name().ok().filter(|name| !name.is_empty())?;
            let end = s.address().checked_add(s.size())?;
            Some((s.is_local(), Function { start: s.address(), end, name: name.into() }))
        })
        .take(MOST_FUNCTIONS)
        .collect();
    // Of several names of one place the public one, and of those the one that reaches furthest.
    functions.sort_by(|(local, a), (other, b)| {
        (a.start, local, b.end, &a.name).cmp(&(b.start, other, a.end, &b.name))
    });
    functions.dedup_by_key(|(_, f)| f.start);
    let mut functions: Vec<Function> = functions.into_iter().map(|(_, f)| f).collect();
    // Assembly often says no length: it reaches to the next.
    for index in 0..functions.len() {
        let next = functions.get(index + 1).map_or(u64::MAX, |next| next.start);
        if let Some(function) = functions.get_mut(index).filter(|f| f.end == f.start) {
            function.end = next;
        }
    }
    functions
}

/// Functions from the separate file of debugging symbols, where distributions install it.
fn debug_functions(pid: u32, build_id: Option<&[u8]>, limits: Limits<'_>) -> Vec<Function> {
    let Some([first, rest @ ..]) = build_id else { return Vec::new() };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug");
    let inside = open_regular(&in_root(pid, Path::new(&path)));
    let Ok(file) = inside.or_else(|_| open_regular(Path::new(&path))) else { return Vec::new() };
    let data = Allowed { data: &ReadCache::new(&file), whole: false, limits };
    let elf = ElfFile64::<Endianness, _>::parse(data);
    elf.map(|elf| functions(elf.symbols(), limits.stop)).unwrap_or_default()
}

/// The beginnings and ends of functions, from call-frame information.
fn starts<'a, R: ReadRef<'a>>(file: &ElfFile64<'a, Endianness, R>) -> Vec<(u64, u64)> {
    let section = file.section_by_name(".eh_frame").filter(|s| s.size() <= MOST_FRAMES);
    let Some(section) = section else { return Vec::new() };
    let Ok(bytes) = section.data() else { return Vec::new() };
    let section = Section { bytes, address: section.address() };
    let (functions, _) = cfi::functions(section, MOST_FUNCTIONS);
    let mut starts: Vec<(u64, u64)> = functions.iter().map(|f| (f.start, f.end)).collect();
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_has_one_name_also_without_a_symbol() {
        let content = Content {
            segments: vec![Segment { offset: 0x1000, length: 0x1000, address: 0x5000 }],
            functions: vec![Function { start: 0x5100, end: 0x5180, name: "_ZN1x3runEv".into() }],
            starts: vec![(0x5100, 0x5180), (0x5200, 0x5300)],
        };
        let symbols = FileSymbols {
            module: "libx.so".into(),
            pid: 0,
            shared: Rc::default(),
            file: Cell::new(None),
            content: OnceCell::from(content),
            names: RefCell::default(),
        };
        let name = |offset| symbols.name(offset).name.to_string();
        for (offset, expected) in [
            (0x1100, "x::run"),
            (0x117f, "x::run"),
            // Between two functions.
            (0x1180, "libx.so+0x5180"),
            (0x1200, "libx.so+0x5200"),
            (0x12ff, "libx.so+0x5200"),
            // In no segment: all that is known is where it is in the file.
            (0x4000, "libx.so+0x4000"),
        ] {
            assert_eq!(name(offset), expected, "{offset:#x}");
        }
    }

    /// An ELF file of so many functions whose names begin where `name` says, in this table.
    fn elf(names: &[u8], count: u64, name: impl Fn(u64) -> u32) -> Vec<u8> {
        const HEAD: u64 = 64;
        let mut file = vec![0; HEAD as usize];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16..20].copy_from_slice(&[3, 0, 62, 0]); // A library for x86-64.
        file[20] = 1;
        let symbols_at = HEAD;
        file.extend([0; 24]); // The first one means nothing.
        for at in 0..count {
            file.extend(name(at).to_le_bytes());
            file.extend([0x12, 0, 1, 0]); // A public function in section 1.
            file.extend((at * 16).to_le_bytes());
            file.extend(16_u64.to_le_bytes());
        }
        let names_at = file.len() as u64;
        file.extend(names);
        file.resize(file.len().next_multiple_of(8), 0);
        let sections_at = file.len() as u64;
        let mut section = |kind: u32, offset: u64, size: u64, link: u32, each: u64| {
            file.extend([0; 4]);
            file.extend(kind.to_le_bytes());
            file.extend([0; 16]);
            [offset, size].iter().for_each(|word| file.extend(word.to_le_bytes()));
            [link, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
            [8, each].iter().for_each(|word| file.extend(word.to_le_bytes()));
        };
        section(0, 0, 0, 0, 0);
        section(2, symbols_at, (count + 1) * 24, 2, 24);
        section(3, names_at, names.len() as u64, 0, 0);
        file[40..48].copy_from_slice(&sections_at.to_le_bytes());
        file[52..54].copy_from_slice(&64_u16.to_le_bytes());
        file[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
        file
    }

    #[test]
    fn a_segment_that_leads_beyond_all_addresses_is_none() {
        let name = |address: u64| {
            let mut file = elf(b"\0one\0", 1, |_| 1);
            let at = file.len() as u64;
            file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
            [0, address, 0, 0x100, 0x100, 16].iter().for_each(|w| file.extend(w.to_le_bytes()));
            file[32..40].copy_from_slice(&at.to_le_bytes());
            file[54..58].copy_from_slice(&[56, 0, 1, 0]);
            untrusted_names(&file, &[8])[0].to_string()
        };
        assert_eq!(name(0), "one");
        assert_eq!(name(u64::MAX - 4), "any+0x8");
    }

    /// The functions of a file, and the bytes of their names, with so much allowed for these.
    fn found(file: &[u8], names: u64, stop: bool) -> (usize, usize) {
        let (allowance, stop) = (Allowance::new(0, names), AtomicBool::new(stop));
        let limits = Limits { allowance: &allowance, stop: &stop };
        let content = Content::of(Allowed { data: file, whole: true, limits }, 0, limits);
        let bytes = content.functions.iter().map(|f| f.name.len()).sum();
        (content.functions.len(), bytes)
    }

    #[test]
    fn names_take_no_more_than_is_allowed() {
        const MANY: u64 = 1 << 30;
        let plain = elf(b"\0one\0two\0", 2, |at| 1 + 4 * at as u32);
        assert_eq!(found(&plain, MANY, false), (2, 6));
        // Each name is the end of the one before, so that few bytes are many names.
        let mut names = vec![b'x'; 10_000];
        names.push(0);
        let ends = elf(&names, 10_000, |at| at as u32);
        assert_eq!(found(&ends, MANY, false), (10_000, 50_005_000));
        let (count, bytes) = found(&ends, 1 << 20, false);
        assert!(count > 50 && bytes <= 1 << 20, "{count} with {bytes}");
        // One long name, for all of them.
        let mut names = vec![b'x'; 10 << 20];
        names.push(0);
        assert_eq!(found(&elf(&names, 1000, |_| 0), MANY, false), (0, 0));
        // Whoever has been left behind stops.
        assert_eq!(found(&plain, MANY, true), (0, 0));
    }
}
