//! Marks what is reachable in the copy, by a plan that says where objects have references.
//!
//! One thread, a bitmap by address, a stack of objects to look into. Nothing here knows HotSpot,
//! and nothing allocates. Addresses are taken from memory that the program wrote: each is checked
//! against the heap's bounds, and an object counts only if its class is one of the plan. Should a
//! page not be there all the same, the copy dies of it, and nobody else.

use super::memory::{self, Plain};
use tare_protocol::heap::wire::{
    CHUNK, FAILED_MEMORY, FAILED_PLAN, INSTANCE, KLASS_IN_MARK, KLASS_NARROW, KlassRecord, MIRROR,
    MarkHead, MarkPlanBytes, Marked, OBJECT_ARRAY, PRIMITIVE_ARRAY,
};

/// Elements of an array that are looked at in one go. The rest waits until the stack is empty, so
/// that a large array does not fill it.
const SLICE: u64 = 2048;

/// Objects that are on their way from memory while others are looked into.
const AHEAD: usize = 16;

/// A class, as it is looked up for each object.
#[derive(Clone, Copy)]
pub struct Class {
    klass: u64,
    kind: u8,
    element_shift: u8,
    /// Whether its mirror was reached already.
    met: bool,
    pub size: u32,
    first_block: u32,
    blocks: u32,
    mirror: u64,
    first_object: u32,
    objects: u32,
}

// SAFETY: numbers, and a bool that is false as a zero.
unsafe impl Plain for Class {}

/// Some references in an object.
pub struct Range {
    pub offset: u64,
    pub count: u64,
}

pub struct Marker {
    plan: MarkPlanBytes<'static>,
    head: MarkHead,
    start: u64,
    end: u64,
    bits: &'static mut [u64],
    stack: &'static mut [u64],
    depth: usize,
    /// Arrays of which a part is still to be looked at: the address, and from which element on.
    slices: &'static mut [u64],
    slice_depth: usize,
    ahead: [u64; AHEAD],
    ahead_first: usize,
    ahead_count: usize,
    classes: &'static mut [Class],
    pub marked: Marked,
}

impl Marker {
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
        let mut marker = Marker {
            head,
            start,
            end,
            bits: memory::area(granules.div_ceil(64)).ok_or(FAILED_MEMORY)?,
            // No object is pushed twice, and none is smaller than two words.
            stack: memory::area(heap / 16 + 64).ok_or(FAILED_MEMORY)?,
            depth: 0,
            slices: memory::area(heap / (SLICE as usize * 4) * 2 + 64).ok_or(FAILED_MEMORY)?,
            slice_depth: 0,
            ahead: [0; AHEAD],
            ahead_first: 0,
            ahead_count: 0,
            classes: memory::area(room).ok_or(FAILED_MEMORY)?,
            marked: Marked::default(),
            plan,
        };
        for number in 0..head.klasses as usize {
            let record = marker.plan.klass(number).ok_or(FAILED_PLAN)?;
            marker.enter(&record).ok_or(FAILED_PLAN)?;
        }
        Ok(marker)
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
            met: false,
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

    /// Marks everything that these roots reach, beside what is marked already.
    pub fn mark(&mut self, roots: impl Iterator<Item = u64>) {
        for root in roots {
            self.reach(root);
        }
        loop {
            while let Some(object) = self.next() {
                self.look_into(object);
            }
            if self.slice_depth == 0 {
                return;
            }
            self.slice_depth -= 2;
            let (array, from) = (self.slices[self.slice_depth], self.slices[self.slice_depth + 1]);
            self.elements(array, from);
        }
    }

    /// The next object to look into. The objects behind it are fetched meanwhile.
    fn next(&mut self) -> Option<u64> {
        while self.ahead_count < AHEAD && self.depth > 0 {
            self.depth -= 1;
            let object = self.stack[self.depth];
            prefetch(object);
            self.ahead[(self.ahead_first + self.ahead_count) % AHEAD] = object;
            self.ahead_count += 1;
        }
        if self.ahead_count == 0 {
            return None;
        }
        let object = self.ahead[self.ahead_first];
        self.ahead_first = (self.ahead_first + 1) % AHEAD;
        self.ahead_count -= 1;
        Some(object)
    }

    fn reach(&mut self, object: u64) {
        if object == 0 {
            return;
        }
        let Some(now) = self.settled(object) else {
            self.marked.strange += 1;
            return;
        };
        self.marked.moved += u64::from(now != object);
        let object = now;
        let granule = (object - self.start) >> self.head.alignment_shift;
        let (word, bit) = ((granule / 64) as usize, 1 << (granule % 64));
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            // The room is for as many as there can be objects.
            if let Some(place) = self.stack.get_mut(self.depth) {
                *place = object;
                self.depth += 1;
            }
        }
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

    fn look_into(&mut self, object: u64) {
        let found = self.class_at(object);
        let fits = |(_, size): &(usize, u64)| *size <= self.end - object;
        let Some((class, size)) = found.filter(fits) else {
            let granule = (object - self.start) >> self.head.alignment_shift;
            self.bits[(granule / 64) as usize] &= !(1 << (granule % 64));
            self.marked.strange += 1;
            return;
        };
        self.marked.objects += 1;
        self.marked.bytes += size;
        if !self.classes[class].met {
            self.classes[class].met = true;
            self.reach(self.classes[class].mirror);
        }
        let class = self.classes[class];
        match u64::from(class.kind) {
            PRIMITIVE_ARRAY => {}
            OBJECT_ARRAY => self.elements(object, 0),
            kind => {
                self.blocks(object, &class);
                if kind == MIRROR {
                    self.statics(object);
                }
            }
        }
    }

    fn blocks(&mut self, object: u64, class: &Class) {
        for number in 0..class.blocks {
            let number = u64::from(class.first_block) + u64::from(number);
            if let Some(block) = self.plan.block(number) {
                self.references(object + u64::from(block.offset), u64::from(block.count));
            }
        }
    }

    /// What a class object holds beside its fields.
    fn statics(&mut self, mirror: u64) {
        let count = u64::from(self.int(mirror + self.head.mirror_count_offset));
        self.references(mirror + self.head.mirror_statics, count);
        let klass = self.word(mirror + self.head.mirror_klass_offset);
        let Some(at) = self.place(klass).filter(|at| self.classes[*at].klass != 0) else { return };
        let class = self.classes[at];
        for number in 0..class.objects {
            let number = u64::from(class.first_object) + u64::from(number);
            self.reach(self.plan.object(number).unwrap_or(0));
        }
    }

    fn elements(&mut self, array: u64, from: u64) {
        let length = self.length(array);
        let Some((class, _)) = self.class_at(array) else { return };
        let to = length.min(from + SLICE);
        if to < length
            && let Some(place) = self.slices.get_mut(self.slice_depth..self.slice_depth + 2)
        {
            place.copy_from_slice(&[array, to]);
            self.slice_depth += 2;
        }
        let first = array + u64::from(self.classes[class].size);
        self.references(first + from * self.head.reference_bytes, to - from);
    }

    fn references(&mut self, at: u64, count: u64) {
        for number in 0..count {
            let place = at + number * self.head.reference_bytes;
            if place > self.end - 8 {
                return;
            }
            let object = self.reference(place);
            self.reach(object);
        }
    }

    fn reference(&self, at: u64) -> u64 {
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

    fn length(&self, array: u64) -> u64 {
        let length = self.int(array + self.head.array_length_offset);
        if length > i32::MAX as u32 { 0 } else { u64::from(length) }
    }

    /// The class of an object, by its place, and the object's size.
    fn class_at(&self, object: u64) -> Option<(usize, u64)> {
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
    pub fn each(&mut self, mut visit: impl FnMut(&mut Self, u64, &Class, u64) -> bool) -> bool {
        for word in 0..self.bits.len() {
            let mut bits = self.bits[word];
            while bits != 0 {
                let granule = 64 * word as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let object = self.start + (granule << self.head.alignment_shift);
                let Some((class, size)) = self.class_at(object) else { continue };
                let class = self.classes[class];
                if !visit(self, object, &class, size) {
                    return false;
                }
            }
        }
        true
    }

    /// Where an object has references, range by range.
    pub fn ranges(&self, object: u64, class: &Class, mut range: impl FnMut(&Self, Range)) {
        match u64::from(class.kind) {
            PRIMITIVE_ARRAY => {}
            OBJECT_ARRAY => {
                range(self, Range { offset: u64::from(class.size), count: self.length(object) });
            }
            kind => {
                for number in 0..class.blocks {
                    let number = u64::from(class.first_block) + u64::from(number);
                    if let Some(block) = self.plan.block(number) {
                        let (offset, count) = (u64::from(block.offset), u64::from(block.count));
                        range(self, Range { offset, count });
                    }
                }
                if kind == MIRROR {
                    let count = u64::from(self.int(object + self.head.mirror_count_offset));
                    range(self, Range { offset: self.head.mirror_statics, count });
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
    pub fn fill(&mut self, array: u64, klass: u64) -> u64 {
        let Some((class, _)) = self.class_at(array) else { return 0 };
        let (first, room) = (array + u64::from(self.classes[class].size), self.length(array));
        let mut count = 0;
        self.each(|marker, object, class, _| {
            if class.klass == klass {
                if count < room {
                    marker.put(first + count * marker.head.reference_bytes, object);
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

    fn word(&self, at: u64) -> u64 {
        // SAFETY: callers pass places inside the heap's bounds; a page that is missing ends the
        // copy, which is what it should do.
        unsafe { (at as *const u64).read_unaligned() }
    }

    fn int(&self, at: u64) -> u32 {
        // SAFETY: as above.
        unsafe { (at as *const u32).read_unaligned() }
    }
}

fn prefetch(at: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which no address makes fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
#[path = "mark_tests.rs"]
mod tests;
