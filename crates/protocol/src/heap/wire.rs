//! What the tool and a copy of the JVM say to each other, on the socket that came with the answer
//! to `start engine=heap`. Binary, little endian, because it is gigabytes: the copy greets with a
//! [`Hello`]; then the tool commands and the copy answers, one command after the other.
//!
//! | command (u64) | arguments | answer |
//! |---|---|---|
//! | [`READ`] | u64 address, u64 length | u64 n, then n bytes: as many as can be read, at most [`MOST_READ`] |
//! | [`MARK`] | u64 length, then a [`MarkPlan`] | [`Marked`] |
//! | [`IMAGE`] | none | (u64 address, u64 length, the bytes) by ascending address; (0, 0) is the end |
//! | [`STACKS`] | u64 address of the class of virtual threads | u64 n, then n addresses of such threads; then [`Stacks`], and [`Marked`] of all so far |
//! | [`SETTLE`] | u64 n, then n addresses | n addresses: where those objects are now, zero if nowhere |
//! | [`END`] | none | none: the copy ends, as it does when the socket is closed |
//!
//! The copy knows nothing of HotSpot: the tool reads the JVM's own tables with [`READ`], and tells
//! it by the plan where objects have references.

/// Reads memory.
pub const READ: u64 = 1;
/// Marks what is reachable.
pub const MARK: u64 = 2;
/// Hands out what is marked.
pub const IMAGE: u64 = 3;
/// Ends the copy.
pub const END: u64 = 4;
/// Has the JVM's code look for roots on stacks of virtual threads that are not mounted. Once.
pub const STACKS: u64 = 5;
/// Tells where objects are that may have moved.
pub const SETTLE: u64 = 6;

/// The most virtual threads whose stacks are looked at.
pub const MOST_STACKS: u64 = 16 << 10;

/// The most bytes of one reading.
pub const MOST_READ: u64 = 64 << 10;

/// The most bytes of a plan: room for two million classes.
pub const MOST_PLAN: u64 = 256 << 20;

const GREETING: u64 = u64::from_le_bytes(*b"TAREFORK");

/// Fixed numbers of `u64` words, sent as they are.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl $name {
            pub const BYTES: usize = 8 * [$(stringify!($field)),*].len();

            #[must_use]
            pub fn encode(&self) -> [u8; Self::BYTES] {
                let mut out = [0; Self::BYTES];
                let words = [$(self.$field),*];
                for (place, word) in out.chunks_exact_mut(8).zip(words) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                out
            }

            #[must_use]
            pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
                let mut words = bytes.chunks_exact(8);
                let mut next = || word(words.next().unwrap_or(&[]));
                $name { $($field: next(),)* }
            }
        }
    };
}

words! {
    /// What the copy says first.
    Hello {
        /// [`Hello::greets`] checks it.
        greeting,
        /// Where the [`RawRoot`]s are, how many, and how many more there was no room for.
        roots, root_count, roots_dropped,
        /// The addresses that objects may have.
        heap_start, heap_end,
        /// `gHotSpotVMStructs`: its address, the distance of entries, and parts of an entry.
        structs, struct_stride, struct_type, struct_field, struct_offset, struct_address,
        /// `gHotSpotVMTypes`.
        types, type_stride, type_name, type_size,
        /// `gHotSpotVMIntConstants`.
        ints, int_stride, int_name, int_value,
        /// Nanoseconds since 1970.
        taken_ns,
        /// Where the [`Watched`] objects of a recording of allocation are, and how many.
        watched, watched_count,
    }
}

words! {
    /// An object that a recording of allocation has sampled.
    Watched {
        /// Where the JVM has its address; zero there if it is gone.
        slot,
        /// What the recording knows it by.
        number,
    }
}

impl Hello {
    #[must_use]
    pub fn greets(&self) -> bool {
        self.greeting == GREETING
    }

    #[must_use]
    pub fn greeting() -> u64 {
        GREETING
    }
}

words! {
    /// A root as the JVM told of it.
    RawRoot {
        object,
        /// JVMTI's kind in the lower half, the depth in the upper one.
        kind_and_depth,
        /// The thread's id, the method's id, the bytecode index.
        thread, method, location,
        /// As `i32`; -1 is none.
        slot,
    }
}

words! {
    /// What the stacks of virtual threads have brought.
    Stacks {
        /// As in [`Hello`], with what is new.
        root_count, roots_dropped,
        /// Threads beyond the first [`MOST_STACKS`].
        left_out,
    }
}

words! {
    /// Where objects have references, and what they are: the beginning of a [`MarkPlan`].
    MarkHead {
        /// Bytes that objects are aligned to, as a shift.
        alignment_shift,
        /// 4 or 8: the bytes of a reference.
        reference_bytes,
        oop_base, oop_shift,
        /// One of [`KLASS_NARROW`], [`KLASS_WIDE`] and [`KLASS_IN_MARK`].
        klass_place,
        klass_base, klass_shift,
        /// Of [`KLASS_IN_MARK`]: from which bit on.
        klass_bit,
        klass_offset,
        array_length_offset,
        /// In a mirror: its size in words, its class's address, the number of its static
        /// references, and where those are.
        mirror_size_offset, mirror_klass_offset, mirror_count_offset, mirror_statics,
        /// In a stack chunk: the words of its stack.
        chunk_size_offset,
        /// Whether objects may have moved and left an address in their first word.
        forwarded,
        /// The numbers of what follows: [`KlassRecord`]s, blocks and objects.
        klasses, blocks, objects,
    }
}

/// A class is named by a number of four bytes at `klass_offset`.
pub const KLASS_NARROW: u64 = 0;
/// By its address.
pub const KLASS_WIDE: u64 = 1;
/// By the upper bits of the first word.
pub const KLASS_IN_MARK: u64 = 2;

words! {
    /// A class of objects.
    KlassRecord {
        klass,
        /// One of [`INSTANCE`], [`OBJECT_ARRAY`], [`PRIMITIVE_ARRAY`], [`MIRROR`] and [`CHUNK`].
        kind,
        /// Of instances their size in bytes, of arrays where the first element is.
        size,
        /// Of arrays the bytes of an element, as a shift.
        element_shift,
        /// Blocks of references in instances: the first one's number, and how many.
        first_block, blocks,
        /// The mirror, which lives as long as an instance does.
        mirror,
        /// Objects that live as long as the mirror does: the first one's number, and how many.
        first_object, objects,
    }
}

pub const INSTANCE: u64 = 0;
pub const OBJECT_ARRAY: u64 = 1;
pub const PRIMITIVE_ARRAY: u64 = 2;
/// `java.lang.Class`.
pub const MIRROR: u64 = 3;
/// `jdk.internal.vm.StackChunk`.
pub const CHUNK: u64 = 4;

/// Some references in instances, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub offset: u32,
    pub count: u32,
}

impl Block {
    pub const BYTES: usize = 8;

    #[must_use]
    pub fn encode(self) -> [u8; 8] {
        (u64::from(self.count) << 32 | u64::from(self.offset)).to_le_bytes()
    }

    #[must_use]
    pub fn decode(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Block { offset: word as u32, count: (word >> 32) as u32 }
    }
}

/// All that marking needs to know.
#[derive(Clone, Debug, Default)]
pub struct MarkPlan {
    pub head: MarkHead,
    pub klasses: Vec<KlassRecord>,
    pub blocks: Vec<Block>,
    /// What mirrors keep alive beside their fields.
    pub objects: Vec<u64>,
}

impl MarkPlan {
    /// The head, classes, blocks and objects.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = MarkHead {
            klasses: self.klasses.len() as u64,
            blocks: self.blocks.len() as u64,
            objects: self.objects.len() as u64,
            ..self.head
        };
        let mut out = head.encode().to_vec();
        out.extend(self.klasses.iter().flat_map(KlassRecord::encode));
        out.extend(self.blocks.iter().flat_map(|block| block.encode()));
        out.extend(self.objects.iter().flat_map(|word| word.to_le_bytes()));
        out
    }
}

/// An encoded plan, read in place: the copy takes no memory for it.
pub struct MarkPlanBytes<'a> {
    pub head: MarkHead,
    klasses: &'a [u8],
    blocks: &'a [u8],
    objects: &'a [u8],
}

impl<'a> MarkPlanBytes<'a> {
    /// `None` when the bytes are no plan.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk()?;
        let head = MarkHead::decode(head);
        let part = |rest: &'a [u8], count: u64, each: usize| {
            rest.split_at_checked(usize::try_from(count).ok()?.checked_mul(each)?)
        };
        let (klasses, rest) = part(rest, head.klasses, KlassRecord::BYTES)?;
        let (blocks, rest) = part(rest, head.blocks, Block::BYTES)?;
        let (objects, _) = part(rest, head.objects, 8)?;
        Some(MarkPlanBytes { head, klasses, blocks, objects })
    }

    #[must_use]
    pub fn klass(&self, number: usize) -> Option<KlassRecord> {
        let bytes = self.klasses.get(number.checked_mul(KlassRecord::BYTES)?..)?;
        Some(KlassRecord::decode(bytes.first_chunk()?))
    }

    #[must_use]
    pub fn block(&self, number: u64) -> Option<Block> {
        let at = usize::try_from(number).ok()?.checked_mul(Block::BYTES)?;
        Some(Block::decode(*self.blocks.get(at..)?.first_chunk()?))
    }

    #[must_use]
    pub fn object(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number).ok()?.checked_mul(8)?;
        self.objects.get(at..at + 8).map(word)
    }
}

words! {
    /// What marking has found.
    Marked {
        objects, bytes,
        /// References that were passed over because what they lead to is no object of a known
        /// class.
        strange,
        /// References to objects that have moved.
        moved,
        /// Not zero: it was not done; one of the `FAILED_` numbers.
        failed,
    }
}

/// The plan makes no sense.
pub const FAILED_PLAN: u64 = 1;
/// There is no memory for it.
pub const FAILED_MEMORY: u64 = 2;

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_in_place_as_it_was_made() {
        let plan = MarkPlan {
            head: MarkHead { alignment_shift: 3, forwarded: 1, ..MarkHead::default() },
            klasses: vec![KlassRecord { klass: 7, objects: 9, ..KlassRecord::default() }; 3],
            blocks: vec![Block { offset: 12, count: 2 }, Block { offset: 24, count: u32::MAX }],
            objects: vec![5, 6],
        };
        let bytes = plan.encode();
        let read = MarkPlanBytes::new(&bytes).unwrap();
        assert_eq!((read.head.alignment_shift, read.head.klasses), (3, 3));
        assert_eq!(read.klass(2), Some(plan.klasses[2]));
        assert_eq!(read.klass(3), None);
        assert_eq!(read.block(1), Some(plan.blocks[1]));
        assert_eq!(read.object(1), Some(6));
        assert_eq!(read.object(u64::MAX), None);
        for length in 0..bytes.len() {
            assert!(MarkPlanBytes::new(&bytes[..length]).is_none(), "cut to {length}");
        }
    }

    #[test]
    fn the_copy_is_known_by_its_greeting() {
        let hello = Hello { greeting: Hello::greeting(), taken_ns: 9, ..Hello::default() };
        let again = Hello::decode(&hello.encode());
        assert!(again.greets() && again == hello);
        assert!(!Hello::default().greets());
    }
}
