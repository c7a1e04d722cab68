//! The id of a mounted virtual thread, where the JVM keeps no number of it: from JDK 21 to 23
//! HotSpot's thread has only a reference to the `VirtualThread`, whose field `tid` it is.
//!
//! The reference is followed in the handler, under its guard, and believed only if what it leads to
//! says that it is a `VirtualThread`. That is done only with collectors that move objects while all
//! threads stand still; with others a reference is not an address. Where class and field stand in
//! an object is learned from one that is made for it, since no table tells.

use super::memory::Memory;
use crate::jvm::Jni;
use crate::jvm::threads::ThreadFields;
use crate::vm_tables::Tables;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// How to find an id; all zeros means not at all.
#[derive(Default)]
pub struct VirtualIds {
    /// Where HotSpot's thread has its reference. Stored last.
    reference: AtomicU64,
    class: AtomicU64,
    id: AtomicU64,
}

/// Collectors that move objects only in pauses.
pub(super) const PLAIN: [&str; 3] = ["UseSerialGC", "UseParallelGC", "UseG1GC"];

/// Where an object has its class: behind the mark, and four bytes tell classes apart.
const CLASS: u64 = 8;

/// No thread has this id.
const MARK: i64 = 0x7a3e_51c9_4d02_b687;

/// A `VirtualThread` has its fields within so many bytes.
const LARGEST: u64 = 256;

impl VirtualIds {
    /// Learns how, if that is needed and possible. `peek` reads eight bytes that may not be there.
    pub fn learn(
        &self,
        tables: &Tables,
        jni: Jni,
        fields: ThreadFields,
        peek: impl Fn(u64) -> Option<u64>,
    ) {
        let reference = tables.field("JavaThread", "_vthread").map_or(0, |field| field.offset);
        if reference == 0 || !PLAIN.iter().any(|name| tables.flag(name) == Some(true)) {
            return;
        }
        let found = jni.with_marked_virtual_thread(fields, MARK, |reference| {
            // The object may move while it is looked at; then all is looked at again.
            (0..10).find_map(|_| {
                let object = peek(reference)?;
                let mut places = (CLASS..LARGEST).step_by(8);
                let id = places.find(|at| peek(object + at) == Some(MARK.cast_unsigned()))?;
                let class = peek(object + CLASS)? & CLASS_MASK;
                (peek(reference)? == object).then_some((class, id))
            })
        });
        if let Some((class, id)) = found {
            self.class.store(class, Relaxed);
            self.id.store(id, Relaxed);
            self.reference.store(reference, Release);
        }
    }

    /// The id of the virtual thread that is mounted on one of HotSpot's threads; zero for none.
    pub fn mounted(&self, memory: &impl Memory, thread: u64) -> u64 {
        let reference = self.reference.load(Acquire);
        if reference == 0 || thread == 0 {
            return 0;
        }
        let id = || {
            let slot = memory.word(thread.wrapping_add(reference))?;
            let object = memory.word(slot)?;
            let class = memory.word(object.wrapping_add(CLASS))? & CLASS_MASK;
            let id = memory.word(object.wrapping_add(self.id.load(Relaxed)))?;
            (class == self.class.load(Relaxed)).then_some(id)
        };
        id().unwrap_or(0)
    }
}

const CLASS_MASK: u64 = 0xffff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Words(HashMap<u64, u64>);

    impl Memory for Words {
        fn word(&self, at: u64) -> Option<u64> {
            self.0.get(&at).copied()
        }
    }

    #[test]
    fn only_an_object_of_the_class_has_an_id() {
        let ids = VirtualIds::default();
        let words = |class| {
            let object = [(0x5008, class), (0x5010, 77)];
            Words([(0x1020, 0x2000), (0x2000, 0x5000)].into_iter().chain(object).collect())
        };
        assert_eq!(ids.mounted(&words(9), 0x1000), 0, "nothing was learned");
        ids.class.store(9, Relaxed);
        ids.id.store(0x10, Relaxed);
        ids.reference.store(0x20, Relaxed);
        assert_eq!(ids.mounted(&words(9), 0x1000), 77);
        assert_eq!(ids.mounted(&words(0xabcd_0000_0009), 0x1000), 77, "the rest is no class");
        assert_eq!(ids.mounted(&words(8), 0x1000), 0, "the carrier's own Thread");
        assert_eq!(ids.mounted(&words(9), 0), 0);
        assert_eq!(ids.mounted(&words(9), 0x3000), 0, "nothing there");
    }
}
