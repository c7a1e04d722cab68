//! What is known of a snapshot as a whole: the JSON of its first section.

use serde::{Deserialize, Serialize};

/// Sentences for a person on what the snapshot lacks.
pub type Notes = Vec<String>;

/// Keys that are not known are passed over, so later versions may add some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The version that users know, such as `21.0.8`.
    pub java: String,
    pub vm: String,
    /// `G1`, `Serial`, `Parallel`, `Shenandoah`.
    pub collector: String,
    pub pid: u32,
    pub command: String,
    /// RFC 3339.
    pub taken: String,
    /// For how long the program stood.
    pub pause_ns: u64,
    /// Whether contents were left out: all but headers, lengths and references is zero.
    pub redacted: bool,
    pub objects: u64,
    pub bytes: u64,
    pub object_alignment: u32,
    /// How references in fields are packed; `None`: they are addresses.
    pub narrow_oop: Option<Narrow>,
    /// How headers name classes; `None`: by address.
    pub narrow_klass: Option<Narrow>,
    /// Where the class is part of the first word of an object.
    pub compact_headers: Option<CompactHeaders>,
    pub klass_offset: u32,
    pub array_length_offset: u32,
    /// Of the `i32` in a mirror that has its size in words.
    pub mirror_size_offset: u32,
    /// Of the `i32` in a stack chunk that has the words of its stack; zero where there are none.
    pub stack_chunk_size_offset: u32,
    /// Whether everything that was reached is there.
    pub complete: bool,
    pub notes: Notes,
}

/// An address is `base + (number << shift)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrow {
    pub base: u64,
    pub shift: u32,
}

impl Narrow {
    #[must_use]
    pub fn address(self, number: u32) -> u64 {
        self.base.wrapping_add(u64::from(number) << (self.shift & 63))
    }
}

/// The class's number begins at this bit of an object's first word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactHeaders {
    pub klass_shift: u32,
}
