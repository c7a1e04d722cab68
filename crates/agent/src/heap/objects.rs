//! The objects of a copied heap, by a plan that says what they are and where they have references.
//!
//! Nothing here knows HotSpot, and nothing allocates. Addresses are taken from memory that the
//! program wrote: each is checked against the heap's bounds, and an object counts only if its class
//! is one of the plan. Should a page not be there all the same, the copy dies of it, and nobody
//! else.

use super::memory::{self, Plain};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tare_protocol::heap::wire::{
    CHUNK, FAILED_MEMORY, FAILED_PLAN, INSTANCE, KLASS_IN_MARK, KLASS_NARROW, KlassRecord, MIRROR,
    MarkHead, MarkPlanBytes, OBJECT_ARRAY, PRIMITIVE_ARRAY,
};

/// A class, as it is looked up for each object.
#[derive(Clone, Copy)]
pub struct Class {
    pub klass: u64,
    pub kind: u8,
    element_shift: u8,
    pub size: u32,
    first_block: u32,
    blocks: u32,
    pub mirror: u64,
    first_object: u32,
    objects: u32,
}

// SAFETY: plain numbers.
unsafe impl Plain for Class {}

/// Some references in an object.
pub struct Range {
    pub offset: u64,
    pub count: u64,
}

/// What is known of the heap, and which objects of it are marked. Threads share it.
pub struct Objects {
    plan: MarkPlanBytes<'static>,
    pub head: MarkHead,
    start: u64,
    pub end: u64,
    /// A bit for each place at which an object can begin.
    marks: &'static [AtomicU64],
    classes: &'static mut [Class],
    /// A bit for each class whose mirror was reached.
    met: &'static [AtomicU64],
}

impl Objects {
    /// Memory for everything, or the number of a failure.
    pub fn new(bytes: &'static [u8], start: u64, end: u64) -> Result<Self, u64> {
        let plan = MarkPlanBytes::new(bytes).ok_or(FAILED_PLAN)?;
        let head = plan.head;
        let sensible = (3..=8).contains(&head.alignment_shift)
            && matches!(head.reference_bytes, 4 | 8)
            && start < end
            && start.is_multiple_of(64)
            && head.klasses > 0;
        if !sensible {
            return Err(FAILED_PLAN);
        }
        let heap = usize::try_from(end - start).map_err(|_| FAILED_MEMORY)?;
        let granules = heap >> head.alignment_shift;
        let room = (2 * head.klasses as usize).next_power_of_two();
        let mut objects = Objects {
            head,
            start,
            end,
            marks: memory::words(granules.div_ceil(64)).ok_or(FAILED_MEMORY)?,
            classes: memory::area(room).ok_or(FAILED_MEMORY)?,
            met: memory::words(room.div_ceil(64)).ok_or(FAILED_MEMORY)?,
            plan,
        };
        for number in 0..head.klasses as usize {
            let record = objects.plan.klass(number).ok_or(FAILED_PLAN)?;
            objects.enter(&record).ok_or(FAILED_PLAN)?;
        }
        Ok(objects)
    }

    /// The bytes of the heap, as far as it is reserved.
    pub fn size(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn enter(&mut self, record: &KlassRecord) -> Option<()> {
        let at = self.place(record.klass)?;
        let known = [INSTANCE, OBJECT_ARRAY, PRIMITIVE_ARRAY, MIRROR, CHUNK];
        if record.klass == 0 || !known.contains(&record.kind) || record.element_shift > 3 {
            return None;
        }
        self.classes[at] = Class {
            klass: record.klass,
            kind: record.kind as u8,
            element_shift: record.element_shift as u8,
            size: u32::try_from(record.size).ok()?,
            first_block: u32::try_from(record.first_block).ok()?,
            blocks: u32::try_from(record.blocks).ok()?,
            mirror: record.mirror,
            first_object: u32::try_from(record.first_object).ok()?,
            objects: u32::try_from(record.objects).ok()?,
        };
        Some(())
    }

    /// Where a class is, or would be. The table is half empty at least.
    fn place(&self, klass: u64) -> Option<usize> {
        let mask = self.classes.len() - 1;
        let mut at = (klass >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 20 & mask;
        for _ in 0..self.classes.len() {
            let found = self.classes[at].klass;
            if found == klass || found == 0 {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Marks an object; whether nobody had.
    pub fn mark(&self, object: u64) -> bool {
        let (word, bit) = self.mark_of(object);
        // Most references lead to what is marked, and a load is cheaper than an exchange.
        word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Relaxed) & bit == 0
    }

    pub fn unmark(&self, object: u64) {
        let (word, bit) = self.mark_of(object);
        word.fetch_and(!bit, Relaxed);
    }

    fn mark_of(&self, object: u64) -> (&AtomicU64, u64) {
        let granule = (object - self.start) >> self.head.alignment_shift;
        (&self.marks[(granule / 64) as usize], 1 << (granule % 64))
    }

    /// Whether this is the first object of its class that somebody looks into.
    pub fn meet(&self, place: usize) -> bool {
        let (word, bit) = (&self.met[place / 64], 1 << (place % 64));
        word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Relaxed) & bit == 0
    }

    pub fn class(&self, place: usize) -> Class {
        self.classes[place]
    }

    /// The class that a mirror is of, and what lives as long as the mirror does, beside its fields.
    pub fn kept_by(&self, mirror: u64) -> impl Iterator<Item = u64> {
        let klass = self.word(mirror + self.head.mirror_klass_offset);
        let class = self.place(klass).map(|at| self.classes[at]).filter(|class| class.klass != 0);
        let (first, count) = class.map_or((0, 0), |class| (class.first_object, class.objects));
        (0..count)
            .map(move |number| self.plan.object(u64::from(first) + u64::from(number)).unwrap_or(0))
    }

    /// Where an object is now; `None` if it cannot be one.
    pub fn settled(&self, object: u64) -> Option<u64> {
        let object = self.inside(object)?;
        if self.head.forwarded == 0 {
            return Some(object);
        }
        let first = self.word(object);
        if first & 3 == 3 && first & !3 != 0 { self.inside(first & !3) } else { Some(object) }
    }

    fn inside(&self, object: u64) -> Option<u64> {
        let aligned = object.trailing_zeros() >= self.head.alignment_shift as u32;
        (aligned && object >= self.start && object <= self.end - 16).then_some(object)
    }

    pub fn reference(&self, at: u64) -> u64 {
        if self.head.reference_bytes == 8 {
            return self.word(at);
        }
        match self.int(at) {
            0 => 0,
            number => self.head.oop_base + (u64::from(number) << self.head.oop_shift),
        }
    }

    /// What a reference is to be in the image: it leads to where the object is now.
    pub fn settled_reference(&self, at: u64) -> u64 {
        let object = self.reference(at);
        if object == 0 { 0 } else { self.settled(object).unwrap_or(0) }
    }

    /// As references are packed.
    pub fn packed(&self, object: u64) -> u64 {
        match (self.head.reference_bytes, object) {
            (_, 0) => 0,
            (8, _) => object,
            _ => (object - self.head.oop_base) >> self.head.oop_shift,
        }
    }

    pub fn length(&self, array: u64) -> u64 {
        let length = self.int(array + self.head.array_length_offset);
        if length > i32::MAX as u32 { 0 } else { u64::from(length) }
    }

    /// The class of an object, by its place, and the object's size.
    pub fn class_at(&self, object: u64) -> Option<(usize, u64)> {
        let klass = match self.head.klass_place {
            KLASS_NARROW => self.narrow(u64::from(self.int(object + self.head.klass_offset))),
            KLASS_IN_MARK => self.narrow(self.word(object) >> (self.head.klass_bit & 63)),
            _ => self.word(object + self.head.klass_offset),
        };
        if klass == 0 {
            return None;
        }
        let at = self.place(klass)?;
        let class = self.classes[at];
        if class.klass == 0 {
            return None;
        }
        let size = match u64::from(class.kind) {
            OBJECT_ARRAY | PRIMITIVE_ARRAY => {
                u64::from(class.size) + (self.length(object) << class.element_shift)
            }
            MIRROR => 8 * u64::from(self.int(object + self.head.mirror_size_offset)),
            CHUNK => {
                let words = u64::from(self.int(object + self.head.chunk_size_offset));
                let bits = words * 8 / self.head.reference_bytes;
                u64::from(class.size) + 8 * words + 8 * bits.div_ceil(64)
            }
            _ => u64::from(class.size),
        };
        let unit = 1 << self.head.alignment_shift;
        (size >= 8).then(|| (at, size.next_multiple_of(unit)))
    }

    fn narrow(&self, number: u64) -> u64 {
        self.head.klass_base.wrapping_add(number << (self.head.klass_shift & 63))
    }

    /// Calls with each object that is marked, by ascending address: its address, class and size.
    /// Ends when a call answers false, and tells whether none did.
    pub fn each(&self, mut visit: impl FnMut(u64, &Class, u64) -> bool) -> bool {
        for word in 0..self.marks.len() {
            let mut bits = self.marks[word].load(Relaxed);
            while bits != 0 {
                let granule = 64 * word as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let object = self.start + (granule << self.head.alignment_shift);
                let Some((class, size)) = self.class_at(object) else { continue };
                let class = self.classes[class];
                if !visit(object, &class, size) {
                    return false;
                }
            }
        }
        true
    }

    /// Where an object has references, range by range.
    pub fn ranges(&self, object: u64, class: &Class, mut range: impl FnMut(Range)) {
        match u64::from(class.kind) {
            PRIMITIVE_ARRAY => {}
            OBJECT_ARRAY => {
                range(Range { offset: u64::from(class.size), count: self.length(object) });
            }
            kind => {
                for number in 0..class.blocks {
                    let number = u64::from(class.first_block) + u64::from(number);
                    if let Some(block) = self.plan.block(number) {
                        let (offset, count) = (u64::from(block.offset), u64::from(block.count));
                        range(Range { offset, count });
                    }
                }
                if kind == MIRROR {
                    let count = u64::from(self.int(object + self.head.mirror_count_offset));
                    range(Range { offset: self.head.mirror_statics, count });
                }
            }
        }
    }

    /// The bytes at an object's beginning that are no content: its header, and what else its size
    /// depends on.
    pub fn header(&self, class: &Class) -> u64 {
        match (u64::from(class.kind), self.head.klass_place) {
            (OBJECT_ARRAY | PRIMITIVE_ARRAY | CHUNK, _) => u64::from(class.size),
            (MIRROR, _) => self.head.mirror_statics,
            (_, KLASS_IN_MARK) => 8,
            (_, KLASS_NARROW) => self.head.klass_offset + 4,
            _ => self.head.klass_offset + 8,
        }
    }

    /// Writes references into an array of objects, as many as it has room for; how many there
    /// were. What is written is the copy's own memory.
    pub fn fill(&self, array: u64, klass: u64) -> u64 {
        let Some((class, _)) = self.class_at(array) else { return 0 };
        let (first, room) = (array + u64::from(self.classes[class].size), self.length(array));
        let mut count = 0;
        self.each(|object, class, _| {
            if class.klass == klass {
                if count < room {
                    self.put(first + count * self.head.reference_bytes, object);
                }
                count += 1;
            }
            true
        });
        count
    }

    /// The elements of an array of objects, as [`Marker::fill`] has left them.
    pub fn element(&self, array: u64, number: u64) -> u64 {
        let Some((class, _)) = self.class_at(array) else { return 0 };
        let first = array + u64::from(self.classes[class].size);
        self.reference(first + number * self.head.reference_bytes)
    }

    fn put(&self, at: u64, object: u64) {
        let packed = self.packed(object);
        // SAFETY: inside an array of the copy's, which nobody else has.
        unsafe {
            match self.head.reference_bytes {
                8 => (at as *mut u64).write(packed),
                _ => (at as *mut u32).write(packed as u32),
            }
        }
    }

    pub fn reference_bytes(&self) -> u64 {
        self.head.reference_bytes
    }

    pub fn word(&self, at: u64) -> u64 {
        // SAFETY: callers pass places inside the heap's bounds; a page that is missing ends the
        // copy, which is what it should do.
        unsafe { (at as *const u64).read_unaligned() }
    }

    pub fn int(&self, at: u64) -> u32 {
        // SAFETY: as above.
        unsafe { (at as *const u32).read_unaligned() }
    }
}
