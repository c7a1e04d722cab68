//! Where the JVM keeps the frames of a virtual thread that are in the heap, learned once: fields of
//! two classes of the JDK's, the class of a chunk, and how references and classes stand in objects.
//!
//! Only for collectors that move objects while all threads stand still; with others a reference is
//! not an address, and a chunk may be copied at any time. How an object tells its class is tried on
//! one whose class is known.

use super::memory::Memory;
use super::virtual_threads::PLAIN;
use crate::jvm::Jni;
use crate::vm_tables::Tables;
use std::ffi::CStr;
use std::sync::OnceLock;

/// How an object tells its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// In the upper bits of its mark, from this one on.
    Mark(u64),
    /// In four bytes, in eight.
    Narrow,
    Wide,
}

/// Behind an object's mark.
const CLASS: u64 = 8;

/// The bits of a mark below the class, where it has one: since JDK 24.
const MARK_BITS: u64 = 42;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRules {
    /// In a `Continuation`: its innermost chunk.
    pub tail: u64,
    /// In a chunk: the next outer one, and what it has, in words.
    pub parent: u64,
    pub size: u64,
    pub sp: u64,
    pub bottom: u64,
    /// Where its frames begin.
    pub frames: u64,
    /// The id of the method by which a carrier runs a virtual thread.
    pub enter: u64,
    /// Chunks are of this class, as an object tells it.
    pub(super) class: u64,
    pub(super) header: Header,
    /// How four bytes are a reference: base and shift. `None` where it is an address.
    pub(super) narrow: Option<(u64, u64)>,
}

impl ChunkRules {
    /// What a field of an object refers to; zero for nothing.
    pub fn reference(&self, memory: &impl Memory, object: u64, field: u64) -> Option<u64> {
        let at = object.wrapping_add(field);
        let Some((base, shift)) = self.narrow else { return memory.word(at) };
        Some(match memory.int(at)?.cast_unsigned() {
            0 => 0,
            narrow => base.wrapping_add(u64::from(narrow) << (shift & 63)),
        })
    }

    pub fn is_chunk(&self, memory: &impl Memory, object: u64) -> bool {
        object.is_multiple_of(8) && self.header.class(memory, object) == Some(self.class)
    }
}

impl Header {
    fn class(self, memory: &impl Memory, object: u64) -> Option<u64> {
        match self {
            Header::Mark(shift) => Some(memory.word(object)? >> (shift & 63)),
            Header::Narrow => {
                let class = memory.int(object.wrapping_add(CLASS))?;
                Some(u64::from(class.cast_unsigned()))
            }
            Header::Wide => memory.word(object.wrapping_add(CLASS)),
        }
    }
}

#[derive(Default)]
pub struct Chunks(OnceLock<ChunkRules>);

impl Chunks {
    /// Takes no lock once it is learned, or not.
    pub fn rules(&self) -> Option<ChunkRules> {
        self.0.get().copied()
    }

    /// Learns how, where there are virtual threads and a collector that allows it.
    pub fn learn(&self, tables: &Tables, jni: Jni, peek: impl Fn(u64) -> Option<u64>) {
        if let Some(rules) = jni.frame(|| learned(tables, jni, Peek(peek))).flatten() {
            let _ = self.0.set(rules);
        }
    }
}

struct Peek<P>(P);

impl<P: Fn(u64) -> Option<u64>> Memory for Peek<P> {
    fn word(&self, at: u64) -> Option<u64> {
        (self.0)(at)
    }
}

const CONTINUATION: &CStr = c"jdk/internal/vm/Continuation";
const CHUNK: &CStr = c"jdk/internal/vm/StackChunk";
const ENTER: (&CStr, &CStr) = (c"enterSpecial", c"(Ljdk/internal/vm/Continuation;ZZ)V");

/// `java.lang.Class`, by the name of the variable in which HotSpot keeps it.
const OF_CLASSES: &str = "_klasses[static_cast<int>(vmClassID::Class_klass_knum)]";

/// An object with nothing but a mark and its fields is no larger than this.
const LARGEST: u64 = 256;

fn learned(tables: &Tables, jni: Jni, memory: impl Memory) -> Option<ChunkRules> {
    if !PLAIN.iter().any(|name| tables.flag(name) == Some(true)) {
        return None;
    }
    let (continuation, chunk) = (jni.found(CONTINUATION)?, jni.found(CHUNK)?);
    let [tail] = jni.field_offsets(continuation, [c"tail"])?;
    let [parent, size, sp, bottom] =
        jni.field_offsets(chunk, [c"parent", c"size", c"sp", c"bottom"])?;
    let enter = jni.static_method_of(continuation, ENTER.0, ENTER.1)? as u64;
    let klass_at = tables.static_value("java_lang_Class", "_klass_offset").ok()? & 0xffff_ffff;
    let (header, classes) = header(tables)?;
    // The object that is the class may move while it is looked at; then it is looked at again.
    let reference = chunk as u64;
    let (klass, of_mirror) = (0..10).find_map(|_| {
        let mirror = memory.word(reference)?;
        let klass = memory.word(mirror.wrapping_add(klass_at))?;
        let of_mirror = header.class(&memory, mirror)?;
        (memory.word(reference)? == mirror).then_some((klass, of_mirror))
    })?;
    if classes.told(tables.static_value("vmClasses", OF_CLASSES).ok()?) != of_mirror {
        return None;
    }
    // A class without arrays in it says how long an object is, but for the lowest bits.
    let helper = memory.int(klass.wrapping_add(tables.field("Klass", "_layout_helper")?.offset))?;
    let frames = u64::try_from(helper).ok()? & !7;
    let fields = [parent, size, sp, bottom];
    if frames > LARGEST || fields.iter().any(|field| *field >= frames) {
        return None;
    }
    let narrow = match tables.flag("UseCompressedOops")? {
        true => Some(narrow(tables, "CompressedOops", "_narrow_oop")?),
        false => None,
    };
    let class = classes.told(klass);
    Some(ChunkRules { tail, parent, size, sp, bottom, frames, enter, class, header, narrow })
}

/// How an address of a class stands in objects.
#[derive(Clone, Copy)]
struct Classes(Option<(u64, u64)>);

impl Classes {
    fn told(self, klass: u64) -> u64 {
        self.0.map_or(klass, |(base, shift)| klass.wrapping_sub(base) >> (shift & 63))
    }
}

fn header(tables: &Tables) -> Option<(Header, Classes)> {
    let compact = tables.flag("UseCompactObjectHeaders") == Some(true);
    // Where there is no such flag any more, they are always compressed.
    let compressed = compact || tables.flag("UseCompressedClassPointers") != Some(false);
    if !compressed {
        return Some((Header::Wide, Classes(None)));
    }
    let classes = Classes(Some(narrow(tables, "CompressedKlassPointers", "_narrow_klass")?));
    let header = match compact {
        true => Header::Mark(MARK_BITS),
        false => Header::Narrow,
    };
    Some((header, classes))
}

/// Base and shift of something compressed; the variables were in a structure before JDK 25.
fn narrow(tables: &Tables, of: &str, before: &str) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let old = tables.static_value(of, &format!("{before}.{name}"));
        old.or_else(|_| tables.static_value(of, name)).ok()
    };
    Some((value("_base")?, value("_shift")? & 0xffff_ffff))
}
