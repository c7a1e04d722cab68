//! Which method a frame runs: its id, also while the frame runs a version that its class no longer
//! has. Part of the walker; `walk` finds the frames.
//!
//! A class keeps the ids of its methods in an array, and every method has a number in it. When a
//! class is redefined (weaving does that), a method whose code changes gets a new version. The new
//! one takes over number and id. The old one, which runs on wherever it was entered before, gets
//! another number, for which there is no id until a debugger or a profiler asks the JVM for one.
//! But every version also keeps the number with which it began: that of the version which the class
//! has now. HotSpot's tables do not tell where, so [`IdLayout`] finds out.
//!
//! What is read here is a guess: the class may be unloaded, the array freed, the method no method.
//! So an id is believed only if it leads back, and the JVM is asked only about ids that it has
//! given (`ids`).

use super::frames::Frame;
use super::hotspot::Layout;
use super::memory::Memory;
use super::native::NativeStep;
use super::walk::{Walker, up};
use crate::vm_tables::Tables;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
use tare_arena::samples::{How, Special};

/// What the tables do not tell of methods and their ids, learned from `java.lang.Object`.
#[derive(Default)]
pub struct IdLayout {
    /// Where a method keeps the number with which it began; zero means that it is not known.
    original: AtomicU64,
    /// An id is the address of a slot, in which the method's address is.
    slots: AtomicBool,
}

/// What a walker knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdRules {
    pub original: Option<u64>,
    pub slots: bool,
    /// Methods stand for themselves, because nobody can ask the JVM for ids.
    pub plain: bool,
}

/// `java.lang.Object`, by the name of the variable in which HotSpot keeps it.
const OBJECT: &str = "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]";

/// With fewer methods to compare, a field could be the right one by chance.
const FEWEST: usize = 8;
const MOST: usize = 256;

impl IdLayout {
    /// `ids` are those of the methods of `java.lang.Object`, as the JVM gave them. `peek` reads
    /// eight bytes that may not be there.
    pub fn learn(
        &self,
        tables: &Tables,
        layout: &Layout,
        ids: &[u64],
        peek: impl Fn(u64) -> Option<u64>,
    ) {
        let found = || {
            let class = tables.static_value("vmClasses", OBJECT).ok()?;
            let list = peek(class.checked_add(tables.field("InstanceKlass", "_methods")?.offset)?)?;
            let length = peek(list.checked_add(tables.field("Array<int>", "_length")?.offset)?)?;
            let data = list.checked_add(tables.field("Array<Method*>", "_data")?.offset)?;
            let methods = (0..length as u32).map(|index| peek(up(data, u64::from(index))));
            original(layout, methods, &peek)
        };
        self.original.store(found().unwrap_or(0), Relaxed);
        self.slots.store(are_slots(layout, ids, &peek), Relaxed);
    }

    pub fn rules(&self) -> IdRules {
        let original = Some(self.original.load(Relaxed)).filter(|offset| *offset != 0);
        IdRules { original, slots: self.slots.load(Relaxed), plain: false }
    }
}

/// Whether each id leads to a method whose class has that id under the method's number.
fn are_slots(layout: &Layout, ids: &[u64], peek: impl Fn(u64) -> Option<u64>) -> bool {
    let leads_back = |id: u64| {
        let method = peek(id)?;
        let constant = peek(method.checked_add(layout.method_const)?)?;
        let number = peek(constant.checked_add(layout.const_idnum)?)? as u16;
        let pool = peek(constant.checked_add(layout.const_pool)?)?;
        let holder = peek(pool.checked_add(layout.pool_holder)?)?;
        let all = peek(holder.checked_add(layout.klass_ids)?)?;
        Some(peek(up(all, u64::from(number) + 1))? == id)
    };
    ids.len() >= FEWEST && ids.iter().all(|id| leads_back(*id) == Some(true))
}

/// The one field that is the same as a method's number in all methods that a class has now: those
/// that it had before, which no longer agree, are not among them.
fn original(
    layout: &Layout,
    methods: impl ExactSizeIterator<Item = Option<u64>>,
    peek: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    if !(FEWEST..=MOST).contains(&methods.len()) {
        return None;
    }
    let mut candidates: Vec<u64> = (2..layout.const_size).step_by(2).collect();
    candidates.retain(|offset| *offset != layout.const_idnum);
    for method in methods {
        let constant = peek(method?.checked_add(layout.method_const)?)?;
        let short = |offset: u64| Some(peek(constant.checked_add(offset)?)? as u16);
        let number = short(layout.const_idnum)?;
        candidates.retain(|offset| short(*offset) == Some(number));
    }
    match candidates[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// What is known of the version of a method that a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// It has this id.
    Known(u64),
    /// It is old; the version that the class has now has this id, if it has one.
    Old(Option<u64>),
}

impl Version {
    /// The frame. Where a bytecode of old code would be in the new code, nobody knows.
    pub fn frame(self, bci: i32, how: How) -> Frame {
        match self {
            Version::Known(id) => Frame::java(id, bci, how),
            Version::Old(Some(id)) => Frame::java(id, -1, how),
            Version::Old(None) => Frame::special(Special::OldMethod),
        }
    }
}

impl<M: Memory, N: NativeStep> Walker<'_, M, N> {
    /// The version of a method. `None` if it is no method, or one without an id.
    pub(super) fn version(&self, method: u64) -> Option<Version> {
        let l = self.layout;
        if !method.is_multiple_of(8) {
            return None;
        }
        let constant = self.memory.word(method.checked_add(l.method_const)?)?;
        let pool = self.memory.word(constant.checked_add(l.const_pool)?)?;
        let number = self.short_field(constant, l.const_idnum)?;
        let holder = self.memory.word(pool.checked_add(l.pool_holder)?)?;
        let ids_at = holder.checked_add(l.klass_ids)?;
        if self.ids.plain {
            return Some(Version::Known(method));
        }
        let ids = self.memory.word(ids_at)?;
        let length = self.memory.word(ids)?;
        let id = |number: u16| {
            let index = u64::from(number);
            let id = if index < length { self.memory.word(up(ids, index + 1))? } else { 0 };
            // The array is freed once there is a longer one: what was read before that is true.
            fence(Acquire);
            (id != 0 && self.memory.word(ids_at)? == ids).then_some(id)
        };
        if let Some(id) = id(number) {
            return self.leads_back(id, method, holder, number).then_some(Version::Known(id));
        }
        // Methods of a class have ids before they run, so one without is an old version; unless it
        // has the number with which it began: then it is one that the JVM made up.
        let Some(at) = self.ids.original else { return Some(Version::Old(None)) };
        let original = self.short_field(constant, at)?;
        let present = |id: &u64| self.leads_back(*id, method, holder, original);
        (original != number).then(|| Version::Old(id(original).filter(present)))
    }

    /// Whether an id leads back to where it was found: to the method itself, or to the one that its
    /// class has in its place now. All that was read on the way to it may have been something else
    /// by then.
    fn leads_back(&self, id: u64, method: u64, holder: u64, number: u16) -> bool {
        if !self.ids.slots {
            return true;
        }
        let l = self.layout;
        let present = |found: u64| {
            let constant = self.memory.word(found.checked_add(l.method_const)?)?;
            let pool = self.memory.word(constant.checked_add(l.const_pool)?)?;
            let same = self.short_field(constant, l.const_idnum)? == number
                && self.memory.word(pool.checked_add(l.pool_holder)?)? == holder;
            Some(same)
        };
        id.is_multiple_of(8)
            && self
                .memory
                .word(id)
                .is_some_and(|found| found == method || present(found) == Some(true))
    }

    /// The index of a bytecode of a method, if it is one.
    pub(super) fn bci(&self, method: u64, bcp: u64) -> Option<i32> {
        let l = self.layout;
        let constant = self.field(method, l.method_const)?;
        let index = bcp.checked_sub(constant.wrapping_add(l.const_size))?;
        let size = u64::from(self.short_field(constant, l.const_code_size)?);
        (index < size).then_some(index as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 32;

    /// Looks for the field among methods whose numbers are also in these fields, where they are
    /// their own.
    fn look(count: u64, fields: &[u64]) -> Option<u64> {
        let layout =
            Layout { method_const: 8, const_idnum: 10, const_size: SIZE, ..Layout::default() };
        let constant = |index: u64| 0x1_0000 + index * SIZE;
        // Methods are at 0x1000 and so on, each with nothing but the address of what never changes.
        let peek = |at: u64| {
            if at < 0x1_0000 {
                return Some(constant((at - 0x1008) / 8));
            }
            let (index, offset) = ((at - 0x1_0000) / SIZE, (at - 0x1_0000) % SIZE);
            let number = offset == 10 || fields.contains(&offset);
            Some(if number { count - index } else { 7 })
        };
        let methods = (0..count as u32).map(|index| Some(0x1000 + 8 * u64::from(index)));
        original(&layout, methods, peek)
    }

    #[test]
    fn the_field_is_the_only_one_that_agrees_in_all_methods() {
        assert_eq!(look(12, &[18]), Some(18));
        assert_eq!(look(12, &[20]), Some(20));
        assert_eq!(look(12, &[18, 20]), None, "two fields agree");
        assert_eq!(look(12, &[]), None);
        assert_eq!(look(4, &[18]), None, "too few methods to tell");
        assert_eq!(look(1_000_000, &[18]), None, "this is no list of methods");
    }

    #[test]
    fn ids_are_slots_if_all_lead_back() {
        let layout =
            Layout { method_const: 8, const_idnum: 16, const_pool: 24, ..Layout::default() };
        let id = |number: u64| 0x1000 + 8 * number;
        let memory = |methods: u64| {
            let (pool, class, ids) = (0x5000, 0x6000, 0x7000);
            let mut words = std::collections::HashMap::from([(pool, class), (class, ids)]);
            for number in 0..methods {
                let (method, constant) = (0x10_0000 + 64 * number, 0x20_0000 + 64 * number);
                words.extend([(id(number), method), (method + 8, constant)]);
                words.extend([(constant + 16, number), (constant + 24, pool)]);
                words.insert(ids + 8 * (number + 1), id(number));
            }
            words
        };
        let ask = |words: &std::collections::HashMap<u64, u64>, ids: &[u64]| {
            are_slots(&layout, ids, |at| words.get(&at).copied())
        };
        let ids: Vec<u64> = (0..12).map(id).collect();
        let mut words = memory(12);
        assert!(ask(&words, &ids));
        assert!(!ask(&words, &ids[..4]), "too few to tell");
        assert!(!ask(&words, &(1..13).collect::<Vec<u64>>()), "numbers are no addresses");
        words.insert(id(3), 0x10_0000);
        assert!(!ask(&words, &ids), "one leads to another method");
    }
}
