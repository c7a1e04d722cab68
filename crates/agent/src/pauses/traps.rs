//! HotSpot's statistics of uncommon traps: how often compiled code was left because of something
//! that its compiler had not expected, by reason. They are not exported; libjvm's file names them
//! unless it was stripped.
//!
//! They are an array by reason, action and bytecode. The first number of each reason is that of all
//! of its traps, and the first of all that of all reasons. How many reasons there are, and so how
//! far apart they lie, tells the array of their names.

use crate::jvm::Jvmti;
use crate::libjvm::Module;
use crate::vm_tables::word;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const COUNTS: &str = "_ZN14Deoptimization20_deoptimization_histE";
const NAMES: &str = "_ZN14Deoptimization17_trap_reason_nameE";

/// More reasons than HotSpot has.
const REASONS_MOST: u64 = 64;

pub struct Traps {
    counts: &'static [AtomicU32],
    /// Of the reasons, without the first, which is none; empty if they are not known.
    pub names: Vec<String>,
    /// Numbers from one reason to the next.
    stride: usize,
}

/// Finds them, once; `None` if this JVM does not tell where they are.
pub fn find(jvmti: Jvmti) -> Option<&'static Traps> {
    static FOUND: OnceLock<Option<Traps>> = OnceLock::new();
    FOUND.get_or_init(|| Traps::find(jvmti)).as_ref()
}

impl Traps {
    fn find(jvmti: Jvmti) -> Option<Self> {
        let module = Module::containing(jvmti.inside_libjvm())?;
        let found = module.variables(&[COUNTS, NAMES])?;
        let [counts, names] = found[..] else { return None };
        let counts = counts.filter(|counts| counts.size >= 4)?;
        let at = counts.at as *const AtomicU32;
        if !at.is_aligned() {
            return None;
        }
        let numbers = usize::try_from(counts.size / 4).ok()?;
        // SAFETY: a variable of libjvm, which is never unloaded, of so many bytes; any bytes are
        // such numbers.
        let counts = unsafe { std::slice::from_raw_parts(at, numbers) };
        let reasons = names.map_or(0, |names| names.size / 8);
        let stride = numbers / usize::try_from(reasons.max(1)).ok()?;
        let fits = (2..=REASONS_MOST).contains(&reasons) && stride * reasons as usize == numbers;
        let text = |at: u64| {
            // SAFETY: HotSpot's names are texts of the module, which stays where it is.
            module.has(at, 1).then(|| unsafe { CStr::from_ptr(at as *const c_char) })
        };
        let name = |index: u64| {
            // SAFETY: an element of the array, which is inside the module.
            let at = unsafe { word(names?.at + 8 * index) };
            Some(text(at)?.to_str().ok()?.to_owned())
        };
        let named = fits.then(|| (1..reasons).map(name).collect::<Option<Vec<String>>>());
        Some(Traps { counts, names: named.flatten().unwrap_or_default(), stride })
    }

    /// All of them.
    pub fn all(&self) -> u32 {
        self.counts.first().map_or(0, |count| count.load(Relaxed))
    }

    /// Those of each reason, in the order of the names.
    pub fn by_reason(&self) -> impl Iterator<Item = u32> {
        let first = |at: usize| self.counts.get(at * self.stride);
        (1..=self.names.len()).map(move |at| first(at).map_or(0, |count| count.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_each_reason_is_that_of_all_its_traps() {
        let counts: Vec<AtomicU32> = (0..3 * 4).map(AtomicU32::new).collect();
        let names = ["null_check", "class_check"].map(str::to_owned).to_vec();
        let traps = Traps { counts: counts.leak(), names, stride: 4 };
        assert_eq!(traps.all(), 0);
        assert_eq!(traps.by_reason().collect::<Vec<_>>(), [4, 8]);
        let unnamed = Traps { names: Vec::new(), ..traps };
        assert_eq!(unnamed.by_reason().count(), 0);
    }
}
