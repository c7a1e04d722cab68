//! The method ids that the JVM itself has given us in this session. Nothing else goes back to it as
//! one.
//!
//! A walker reads a method's id out of memory that other threads change and free. However well that
//! is checked, it is a guess, and HotSpot dereferences what it gets as an id: a wrong one ends the
//! JVM. So a guess is looked up here first. An id that was given stays safe to ask about: HotSpot
//! never frees the slot that it points to, and clears it when the class goes.
//!
//! Classes tell their ids when they are prepared, on any thread; the control thread asks.

use crate::jvm::Jvmti;
use crate::jvm::classes::Classes;
use jvmti_bindings::sys::jni::jclass;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ids of classes that are gone are looked for when there are this many more than double.
const SLACK: usize = 20_000;

/// Ids that are looked at in one go, so that the control thread stays responsive.
const PER_LOOK: usize = 2_000;

#[derive(Default)]
pub struct MethodIds {
    given: Mutex<HashSet<u64>>,
}

impl MethodIds {
    fn given(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the JVM make the ids of a class's methods, without which a walker cannot name them, and
    /// takes them in. False if it gave none.
    pub fn add_class(&self, jvmti: Jvmti, class: jclass) -> bool {
        let Some(ids) = jvmti.method_ids(class) else { return false };
        self.given().extend(ids);
        true
    }

    /// Takes in the ids of all methods of these classes; returns how many classes.
    pub fn add_classes(&self, jvmti: Jvmti, classes: &Classes<'_>) -> u64 {
        classes.list().iter().filter(|class| self.add_class(jvmti, **class)).count() as u64
    }

    /// Takes in an id that the JVM gave on another occasion.
    pub fn add(&self, id: u64) {
        self.given().insert(id);
    }

    pub fn is_given(&self, id: u64) -> bool {
        self.given().contains(&id)
    }

    fn count(&self) -> usize {
        self.given().len()
    }

    fn all(&self) -> Vec<u64> {
        self.given().iter().copied().collect()
    }

    fn remove(&self, ids: &[u64]) {
        let mut given = self.given();
        ids.iter().for_each(|id| {
            given.remove(id);
        });
        if given.len() < given.capacity() / 4 {
            given.shrink_to_fit();
        }
    }
}

/// Forgets ids whose classes are gone, a few at a time, whenever many have come.
#[derive(Default)]
pub struct Sweep {
    /// What is still to be looked at; empty between two sweeps.
    rest: Vec<u64>,
    /// How many were left by the last one.
    left: usize,
}

impl Sweep {
    /// One step, if one is due. Returns the ids that were forgotten.
    pub fn step(&mut self, ids: &MethodIds, is_gone: impl Fn(u64) -> bool) -> Vec<u64> {
        if self.rest.is_empty() {
            if ids.count() < 2 * self.left + SLACK {
                return Vec::new();
            }
            self.rest = ids.all();
        }
        let portion = self.rest.split_off(self.rest.len().saturating_sub(PER_LOOK));
        let gone: Vec<u64> = portion.into_iter().filter(|id| is_gone(*id)).collect();
        ids.remove(&gone);
        if self.rest.is_empty() {
            self.rest.shrink_to_fit();
            self.left = ids.count();
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_come_and_go_leave_nothing() {
        let (ids, mut sweep) = (MethodIds::default(), Sweep::default());
        let alive = |id: u64| id < 1_000;
        (0..1_000).for_each(|id| ids.add(id));
        let mut most = 0;
        for round in 1..2_000_u64 {
            (0..100).for_each(|id| ids.add(1_000 * round + id));
            sweep.step(&ids, |id| !alive(id));
            most = most.max(ids.count());
        }
        assert!(most < 3 * SLACK, "{most} ids were kept of 200,000 that came and went");
        assert!(
            (0..1_000).all(|id| ids.is_given(id)),
            "an id of a class that is there was forgotten"
        );
    }

    #[test]
    fn few_ids_are_never_looked_through() {
        let (ids, mut sweep) = (MethodIds::default(), Sweep::default());
        (0..1_000).for_each(|id| ids.add(id));
        let nobody = |_| unreachable!("nothing is due");
        assert!(sweep.step(&ids, nobody).is_empty());
    }
}
