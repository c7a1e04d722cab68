//! What the search for what roots reach has found and may have missed, as the recording tells of
//! it.

use super::Exact;
use tare_profile::facts::keys;
use tare_profile::{LossKind, RunInfo};

impl Exact {
    /// First calls that may be missing, as losses, and how much was woven for how little.
    pub(super) fn searched(&self, run: &mut RunInfo) {
        let Some(subgraph) = &self.status.subgraph else { return };
        for (what, count, reason) in [
            (
                "first calls by threads",
                subgraph.hurried,
                "the thread was loading a class, and could not wait until what it calls was woven",
            ),
            (
                "first calls by threads",
                subgraph.gave_up,
                "what the thread calls was not woven within a second, so it went on",
            ),
            (
                "first calls of classes",
                subgraph.late,
                "first used outside the roots, and woven up to 20 ms and one pause later; calls below a root \
                 meanwhile are missing",
            ),
        ] {
            if count > 0 {
                run.lose(LossKind::Failed, what, count, reason);
            }
        }
        if let Ok((woven, ran)) = self.woven_and_ran() {
            let methods = [
                (keys::METHODS_REACHED, subgraph.reachable),
                (keys::METHODS_WOVEN, woven as u64),
                (keys::METHODS_RUN, ran as u64),
            ];
            methods.iter().for_each(|(key, count)| run.facts.set(*key, count));
        }
    }
}
