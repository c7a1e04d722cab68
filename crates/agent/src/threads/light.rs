//! Who has a monitor whose owner HotSpot has not noted. Since JDK 24 that is one which was a light
//! lock until somebody wanted it: only who has it knows, by a list of light locks.
//!
//! A thread has its list in HotSpot's own structure. A virtual thread that left its carrier has it
//! in the heap, in the innermost chunk of its frames, before these. How long it is there no table
//! tells, and what is behind its end may be left over from before. So all virtual threads are looked
//! at, and exactly one of them must have the lock, or nobody is believed to.

use super::memory::ByKernel;
use crate::stacks::chunk_layout::ChunkRules;
use crate::stacks::memory::Memory;
use crate::vm_tables::Tables;

/// HotSpot's word for an owner that is not noted.
pub const ANONYMOUS: u64 = 1;

/// Light locks that a list has room for, unchanged since there are such lists.
const MOST: u64 = 8;

/// Where things are.
pub struct LightLocks {
    /// In a monitor: where the reference to its object is.
    object: u64,
    /// In HotSpot's thread: the first of its light locks, where the end of them is told, and the
    /// id of who runs on it.
    first: u64,
    top: u64,
    id: u64,
}

/// How frames in the heap are found: in a virtual thread its continuation and its id, in an array
/// of them the first and how far it is to the next, and the rest.
pub struct InHeap {
    pub continuation: u64,
    pub id: u64,
    pub elements: (u64, u64),
    pub rules: ChunkRules,
}

/// A virtual thread, by its id, and what may be references to its light locks: addresses, or, where
/// a collector has been, what fields have for these.
pub struct InChunk {
    id: u64,
    words: Vec<u64>,
}

impl LightLocks {
    pub fn new(tables: &Tables) -> Option<Self> {
        let field = |of: &str, name: &str| tables.field(of, name).map(|field| field.offset);
        let list = field("JavaThread", "_lock_stack")?;
        Some(LightLocks {
            object: field("ObjectMonitor", "_object")?,
            first: list.checked_add(field("LockStack", "_base[0]")?)?,
            top: list.checked_add(field("LockStack", "_top")?)?,
            id: field("JavaThread", "_monitor_owner_id")?,
        })
    }

    /// The id of who has a monitor; zero if that cannot be told.
    pub fn owner(
        &self,
        memory: &ByKernel,
        monitor: u64,
        threads: &[(u64, u64)],
        virtuals: &[InChunk],
    ) -> u64 {
        let object = memory.field(monitor, self.object).and_then(|place| memory.word(place));
        let Some(object) = object.filter(|object| *object != 0) else { return 0 };
        let has = |thread: &u64| self.has(memory, *thread, object);
        if let Some(thread) = threads.iter().map(|(_, thread)| *thread).find(has) {
            return memory.field(thread, self.id).unwrap_or(0);
        }
        let mut found = virtuals.iter().filter(|one| one.words.contains(&object));
        match (found.next(), found.next()) {
            (Some(one), None) => one.id,
            _ => 0,
        }
    }

    fn has(&self, memory: &ByKernel, thread: u64, object: u64) -> bool {
        // The end is told by its distance from the thread.
        let end = memory.int(thread.wrapping_add(self.top)).unwrap_or(0).cast_unsigned();
        let end = u64::from(end).min(self.first + 8 * MOST);
        (self.first..end).step_by(8).any(|at| memory.field(thread, at) == Some(object))
    }
}

impl InHeap {
    /// Of all virtual threads in an array that may move meanwhile; `None` if it did.
    pub fn all(&self, memory: &ByKernel, reference: u64, length: usize) -> Option<Vec<InChunk>> {
        let array = memory.word(reference)?;
        let (first, next) = self.elements;
        let mut all = Vec::new();
        for at in 0..length as u64 {
            let thread = self.rules.reference(memory, array, first + next * at)?;
            // One that is mounted, or has not begun, has none here.
            all.extend(self.of(memory, thread));
        }
        (memory.word(reference)? == array).then_some(all)
    }

    /// What the innermost chunk of a virtual thread begins with.
    fn of(&self, memory: &ByKernel, thread: u64) -> Option<InChunk> {
        let rules = &self.rules;
        let continuation = rules.reference(memory, thread, self.continuation)?;
        let chunk = rules.reference(memory, continuation, rules.tail)?;
        if chunk == 0 || !rules.is_chunk(memory, chunk) {
            return None;
        }
        // Frames begin there; before that are the locks.
        let sp = u64::try_from(memory.int(chunk.wrapping_add(rules.sp))?).ok()?;
        let start = chunk.wrapping_add(rules.frames);
        let mut words = Vec::new();
        for at in 0..sp.min(MOST) {
            let at = start.wrapping_add(8 * at);
            let two = [memory.word(at), rules.reference(memory, at, 0)];
            words.extend(two.into_iter().flatten().filter(|word| *word != 0));
        }
        Some(InChunk { id: memory.field(thread, self.id)?, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// A thread is its light locks from its third word on, before these where they end, and who
    /// runs on it; a monitor has a reference to its object in its second word.
    const LOCKS: LightLocks = LightLocks { object: 8, first: 16, top: 8, id: 0 };

    fn address<T>(of: &T) -> u64 {
        std::ptr::from_ref(black_box(of)) as u64
    }

    #[test]
    fn who_has_it_in_its_list_is_the_owner() {
        let memory = ByKernel::open().unwrap();
        let (object, other) = ([0_u64; 2], [0_u64; 2]);
        let handle = address(&object);
        let monitor = [ANONYMOUS, address(&handle)];
        let has = [7_u64, 32, address(&other), address(&object), 0];
        let had = [8_u64, 24, address(&other), address(&object), 0];
        let ask = |threads: &[(u64, u64)]| LOCKS.owner(&memory, address(&monitor), threads, &[]);
        black_box((&has, &had, &handle));
        assert_eq!(ask(&[(70, address(&had)), (80, address(&has))]), 7);
        assert_eq!(ask(&[(70, address(&had))]), 0, "what is behind the end is over");
        assert_eq!(ask(&[]), 0);
    }

    #[test]
    fn of_virtual_threads_one_alone_must_have_it() {
        let memory = ByKernel::open().unwrap();
        let object = [0_u64; 2];
        let handle = address(&object);
        let monitor = [ANONYMOUS, address(&handle)];
        black_box(&handle);
        let one = |id, words: &[u64]| InChunk { id, words: words.to_vec() };
        let ask = |all: &[InChunk]| LOCKS.owner(&memory, address(&monitor), &[], all);
        assert_eq!(ask(&[one(5, &[1, handle]), one(6, &[2])]), 5);
        assert_eq!(ask(&[one(5, &[handle]), one(6, &[handle])]), 0, "one of them had it before");
        assert_eq!(ask(&[one(5, &[]), one(6, &[3])]), 0);
    }
}
