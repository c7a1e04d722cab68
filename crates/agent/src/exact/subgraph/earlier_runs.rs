//! What is known of a method's past. HotSpot counts how often a method is interpreted, and keeps
//! its code once it was compiled; where, tell the tables that libjvm exports. (That there are
//! counters or a profile says nothing: compilers make them for methods that never ran.) And what
//! ran below a root in an earlier recording will do so again, even if the JVM has forgotten all
//! that because its class was changed.

use super::super::own_memory::read;
use super::super::{REGISTRY, locked};
use super::{METHODS_MAX, done};
use crate::jvm::Jvmti;
use crate::vm_tables::Tables;
use jvmti_bindings::sys::jni::{jclass, jmethodID};
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock};
use tare_callgraph::{Loader, Past};

/// Ids of methods that ran below a root in earlier recordings of this JVM.
static EARLIER: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// A method that was interpreted so many times ran often; compiling begins at about 200.
const OFTEN: u32 = 100;

/// Counts stand above one bit for an overflow, from JDK 14 on.
const SHIFT: u32 = 1;

/// Where HotSpot keeps what we need of a method.
#[derive(Clone, Copy)]
struct Places {
    code: u64,
    counters: u64,
    /// In the counters: how often it was interpreted.
    count: u64,
}

fn places(jvmti: Jvmti) -> Option<Places> {
    static PLACES: OnceLock<Option<Places>> = OnceLock::new();
    *PLACES.get_or_init(|| {
        let tables = Tables::read(jvmti.inside_libjvm()).ok()?;
        let offset = |of, name| tables.offset(&[of], name).ok();
        Some(Places {
            code: offset("Method", "_code")?,
            counters: offset("Method", "_method_counters")?,
            count: offset("MethodCounters", "_invocation_counter")?,
        })
    })
}

impl Places {
    /// An id points to where the method's address is. Wrong places cost time, no counts: the past
    /// only says what is looked at first.
    fn past(self, id: jmethodID) -> Option<Past> {
        let word = |at: u64, offset: u64| Some(u64::from_ne_bytes(read(at.checked_add(offset)?)?));
        let method = word(id as u64, 0)?;
        if word(method, self.code)? != 0 {
            return Some(Past::RanOften);
        }
        let count = match word(method, self.counters)? {
            0 => 0,
            counters => u32::from_ne_bytes(read(counters.checked_add(self.count)?)?),
        };
        Some(match count >> SHIFT {
            0 => Past::Unknown,
            OFTEN.. => Past::RanOften,
            _ => Past::Ran,
        })
    }
}

/// The past of a method of a loaded class, which the caller keeps from being unloaded.
pub fn of(jvmti: Jvmti, id: jmethodID) -> Past {
    places(jvmti).and_then(|places| places.past(id)).unwrap_or_default()
}

/// Whether the JVM tells the past of methods: if so, some of a class that everything uses have one.
pub fn is_told(jvmti: Jvmti, class: jclass) -> bool {
    let methods = jvmti.methods(class).unwrap_or_default();
    methods.iter().any(|m| of(jvmti, m.id) == Past::RanOften)
}

/// Whether it ran below a root in an earlier recording.
pub fn ran_below_a_root(loader: Loader, class: &str, name: &[u8], descriptor: &[u8]) -> bool {
    let earlier = locked(&EARLIER);
    let Some(earlier) = earlier.as_ref().filter(|ids| !ids.is_empty()) else { return false };
    let id = locked(&REGISTRY).as_ref().and_then(|r| r.known_id(loader, class, name, descriptor));
    id.is_some_and(|id| earlier.contains(&id))
}

/// Keeps what the last recording found, and begins anew.
pub fn turn_the_page() {
    let mut earlier = locked(&EARLIER);
    let earlier = earlier.get_or_insert_default();
    for (at, word) in done().iter().enumerate().take(METHODS_MAX / 32) {
        let bits = word.swap(0, Relaxed);
        earlier.extend((0..32).filter(|bit| bits >> bit & 1 != 0).map(|bit| at as u32 * 32 + bit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_past_is_told_by_what_the_jvm_keeps() {
        let places = Places { code: 0, counters: 8, count: 4 };
        let past = |code: u64, count: u32| {
            let counters = [0, count << 1];
            let method = [code, &raw const counters as u64];
            let id = &raw const method as u64;
            places.past((&raw const id).cast_mut().cast())
        };
        assert_eq!(past(0, 0), Some(Past::Unknown));
        assert_eq!(past(0, 1), Some(Past::Ran));
        assert_eq!(past(0, OFTEN), Some(Past::RanOften));
        assert_eq!(past(1, 0), Some(Past::RanOften));
        assert_eq!(places.past(std::ptr::without_provenance_mut(8)), None);
    }
}
