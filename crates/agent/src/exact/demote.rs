//! Methods that are counted from now on, and not timed, or timed again: the front end chooses them, and
//! their probes look it up. Nothing is woven anew, and contexts stay what they are.

use super::engine;

/// From now on just these methods are counted and not timed.
pub fn demote(ids: &[u32]) {
    if let Some(engine) = engine() {
        engine.memory.set_untimed(ids);
    }
}
