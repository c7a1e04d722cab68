//! Methods that are counted from now on, and not timed, or timed again: the front end chooses them,
//! and they are woven anew.

use super::{Between, Purpose, REGISTRY, locked, recording};
use crate::jvm::{Failure, Jni};
use std::collections::HashSet;

/// From now on just these methods are counted and not timed.
pub fn demote(jni: Jni, ids: &[u32], between: &mut Between<'_>) -> Result<(), Failure> {
    let Some(recording) = recording() else { return Ok(()) };
    let wanted: HashSet<u32> = ids.iter().copied().collect();
    let before = std::mem::replace(&mut *locked(&recording.demoted), wanted.clone());
    let changed: HashSet<u32> = before.symmetric_difference(&wanted).copied().collect();
    let classes = locked(&REGISTRY).as_ref().map(|r| r.classes_of(&changed)).unwrap_or_default();
    if classes.is_empty() {
        return Ok(());
    }
    recording.reload(jni, Purpose::WeaveAnew(classes), between).map(drop)
}
