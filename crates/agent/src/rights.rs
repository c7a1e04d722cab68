//! Capabilities of our JVMTI environment: who needs one takes it, and the JVM gets it back when
//! nobody needs it any more.
//!
//! Engines come and go one by one, and several need the same. JVMTI does not count: one that is
//! given back is gone for all. Environments of their own (`heap/walk`, `events/class_hook`) have
//! nothing to do with these.

use crate::jvm::{Failure, Jvmti};
use jvmti_bindings::sys::jvmti::jvmtiCapabilities;
use std::sync::{Mutex, PoisonError};

/// What the JVM has to allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// To be told of sampled allocations. One agent of a JVM can have it.
    Allocations,
    /// To see the bytes of every class, also the JDK's.
    AllClasses,
    Bytecodes,
    /// To be told when collections begin and end.
    Collections,
    /// To be told of compiled methods.
    Compilations,
    ConstantPools,
    LineNumbers,
    /// To be told of monitors that are waited for.
    Monitors,
    Retransform,
    SourceFiles,
    Tags,
    ThreadCpuTime,
    /// To be told which virtual thread a carrier carries; JDK 21 and later know of it.
    VirtualThreads,
}

const ALL: [Right; 13] = [
    Right::Allocations,
    Right::AllClasses,
    Right::Bytecodes,
    Right::Collections,
    Right::Compilations,
    Right::ConstantPools,
    Right::LineNumbers,
    Right::Monitors,
    Right::Retransform,
    Right::SourceFiles,
    Right::Tags,
    Right::ThreadCpuTime,
    Right::VirtualThreads,
];

/// How many have each right, in the order of [`ALL`]. Held while the JVM is told.
static HOLDERS: Mutex<Holders> = Mutex::new(Holders([0; ALL.len()]));

struct Holders([u32; ALL.len()]);

impl Holders {
    /// One more needs these: those that nobody had.
    fn add(&mut self, rights: &[Right]) -> Vec<Right> {
        let mut new = rights.to_vec();
        new.retain(|right| {
            let count = &mut self.0[*right as usize];
            *count += 1;
            *count == 1
        });
        new
    }

    /// One no longer needs these: those that nobody has any more.
    fn remove(&mut self, rights: &[Right]) -> Vec<Right> {
        let mut over = rights.to_vec();
        over.retain(|right| {
            let count = &mut self.0[*right as usize];
            let was_last = *count == 1;
            *count = count.saturating_sub(1);
            was_last
        });
        over
    }
}

fn set_of(rights: &[Right]) -> jvmtiCapabilities {
    let mut set = jvmtiCapabilities::default();
    for right in rights {
        match right {
            Right::Allocations => set.set_can_generate_sampled_object_alloc_events(true),
            Right::AllClasses => set.set_can_generate_all_class_hook_events(true),
            Right::Bytecodes => set.set_can_get_bytecodes(true),
            Right::Collections => set.set_can_generate_garbage_collection_events(true),
            Right::Compilations => set.set_can_generate_compiled_method_load_events(true),
            Right::ConstantPools => set.set_can_get_constant_pool(true),
            Right::LineNumbers => set.set_can_get_line_numbers(true),
            Right::Monitors => set.set_can_generate_monitor_events(true),
            Right::Retransform => set.set_can_retransform_classes(true),
            Right::SourceFiles => set.set_can_get_source_file_name(true),
            Right::Tags => set.set_can_tag_objects(true),
            Right::ThreadCpuTime => set.set_can_get_thread_cpu_time(true),
            Right::VirtualThreads => set.set_can_support_virtual_threads(true),
        }
    }
    set
}

/// Takes each of them once more; after a failure none of them.
pub fn take(jvmti: Jvmti, rights: &[Right]) -> Result<(), Failure> {
    let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = holders.add(rights);
    if new.is_empty() {
        return Ok(());
    }
    jvmti.add_capabilities(&set_of(&new)).inspect_err(|_| _ = holders.remove(rights))
}

/// Gives each of them back once: only what was taken.
pub fn give_back(jvmti: Jvmti, rights: &[Right]) {
    let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let over = holders.remove(rights);
    if !over.is_empty() {
        // A JVM that refuses this is about to end.
        let _ = jvmti.relinquish_capabilities(&set_of(&over));
    }
}

/// None is held any more: they went with the environment that they belonged to.
pub fn forget() {
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner).0.fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_held_from_the_first_to_the_last_who_needs_it() {
        let mut holders = Holders([0; ALL.len()]);
        let sampling = [Right::LineNumbers, Right::ThreadCpuTime];
        let exact = [Right::ThreadCpuTime, Right::Monitors];
        assert_eq!(holders.add(&sampling), sampling);
        assert_eq!(holders.add(&exact), [Right::Monitors]);
        assert_eq!(holders.remove(&sampling), [Right::LineNumbers]);
        assert_eq!(holders.remove(&exact), exact);
        assert_eq!(holders.remove(&exact), []);
        assert_eq!(holders.add(&exact), exact);
    }

    #[test]
    fn every_right_has_its_place() {
        for (at, right) in ALL.into_iter().enumerate() {
            assert_eq!(right as usize, at, "{right:?}");
        }
    }
}
