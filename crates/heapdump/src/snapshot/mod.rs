//! Tare's own heap snapshot, `.tareheap`: the raw bytes of every object that was reached, and what
//! it takes to understand them. SNAPSHOT.md beside this file has the format.
//!
//! Here are its records, a writer that needs no seeking, and a plain reader with bounds. What the
//! objects mean to each other is the rest of this crate's job.

mod head;
mod layout;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use head::{CompactHeaders, Head, Narrow, Notes};
pub use layout::Layout;
pub use read::{ReadError, Snapshot};
pub use write::{Contents, Writer};

use std::sync::Arc;

/// The first and the last bytes of a file.
pub const MAGIC: [u8; 8] = *b"TAREHEAP";
pub const END_MAGIC: [u8; 8] = *b"TAREHEND";
pub const VERSION: u32 = 1;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Section {
    Head = 1,
    Texts = 2,
    Classes = 3,
    Roots = 4,
    Threads = 5,
    Runs = 6,
    Image = 7,
    Samples = 8,
    Edges = 9,
}

/// No text: what is not known.
const NO_TEXT: u32 = u32::MAX;

/// A class, by what its instances look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The address by which headers of objects name it.
    pub klass: u64,
    /// Its `java.lang.Class` object; zero if it has none.
    pub mirror: u64,
    /// The object of its loader; zero is the JVM's own.
    pub loader: u64,
    /// Zero for `java.lang.Object`.
    pub super_klass: u64,
    /// Binary, with dots: `com.acme.Order`, `byte[]`, `com.acme.Order[][]`.
    pub name: Arc<str>,
    pub kind: ClassKind,
    pub reference: ReferenceKind,
    pub is_hidden: bool,
    pub is_interface: bool,
    /// Whether it is `java.lang.Class` itself, whose instances hold static fields.
    pub is_mirror_class: bool,
    /// Whether it is `jdk.internal.vm.StackChunk`, whose instances hold frames.
    pub is_stack_chunk: bool,
    /// What the class itself declares.
    pub fields: Vec<Field>,
}

/// What kind of objects a class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// Objects with fields; their size in bytes.
    Instance { size: u32 },
    /// Arrays of references; where the first element is, and the bytes of one.
    ObjectArray { first: u32, element: u32 },
    /// Arrays of numbers; also the descriptor's character of their elements.
    PrimitiveArray { first: u32, element: u32, descriptor: u8 },
}

/// How a class refers to what its instances refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReferenceKind {
    /// It is no subclass of `java.lang.ref.Reference`, or an ordinary one.
    Strong = 0,
    Soft = 1,
    Weak = 2,
    Final = 3,
    Phantom = 4,
}

impl ReferenceKind {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Strong, Self::Soft, Self::Weak, Self::Final, Self::Phantom]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: Arc<str>,
    /// As in a class file: `I`, `Ljava/lang/String;`, `[B`.
    pub descriptor: Arc<str>,
    /// In the object; of a static field in the mirror.
    pub offset: u32,
    pub is_static: bool,
}

/// Something that keeps an object alive from outside the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub object: u64,
    /// JVMTI's kind: 21 JNI global, 22 system class, 23 monitor, 24 stack local, 25 JNI local, 26
    /// thread, 27 other.
    pub kind: u32,
    /// The number of a thread in the snapshot; zero is none.
    pub thread: u32,
    /// Frames above the one that holds it.
    pub depth: u32,
    /// The local variable; -1 where there is none.
    pub slot: i32,
    /// `com.acme.A.run(A.java:17)`.
    pub method: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Zero if it is not known.
    pub object: u64,
    /// From 1 on.
    pub number: u32,
    pub name: Arc<str>,
    pub is_virtual: bool,
    /// The innermost first; `None` where only the frame's existence is known.
    pub frames: Vec<Option<Arc<str>>>,
}

/// Objects that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub address: u64,
    pub length: u64,
    /// In the image.
    pub offset: u64,
}

/// A reference that is in no field of the object that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u64,
    pub to: u64,
    pub name: Arc<str>,
}

/// An object that an allocation recording has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub object: u64,
    /// The number of the sampled allocation.
    pub number: u64,
}
