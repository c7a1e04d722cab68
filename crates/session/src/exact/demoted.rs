//! Methods that were counted and not timed for the sake of a budget, as the recording tells of
//! them.

use super::Exact;
use std::collections::HashMap;
use tare_arena::MethodName;
use tare_profile::facts::keys;
use tare_profile::{LossKind, RunInfo};

impl Exact {
    /// Methods that were not timed all the time, as losses.
    pub(super) fn demoted(&self, run: &mut RunInfo) {
        let Some(steering) = &self.steering else { return };
        let mut demoted: Vec<(u32, bool)> = steering.ever_demoted().collect();
        demoted.sort_unstable();
        let key = |name: &MethodName| {
            (name.loader, name.class.clone(), name.name.clone(), name.descriptor.clone())
        };
        let mut counted: HashMap<_, u64> = HashMap::new();
        for (id, calls) in (0..).zip(&self.untimed).filter(|(_, calls)| **calls > 0) {
            if let Some(name) = self.names.get(id) {
                *counted.entry(key(name)).or_default() += calls;
            }
        }
        for (id, still) in demoted {
            let Some(name) = self.names.get(id) else { continue };
            let calls = counted.get(&key(name)).copied().unwrap_or(0);
            let when = if still { "" } else { " for a while" };
            let reason = format!(
                "calls counted{when} and not timed, for an overhead of {:.0} %: short and called often",
                steering.budget() * 100.0
            );
            let what = format!("{}.{}", name.class.replace('/', "."), name.name);
            run.lose(LossKind::Skipped, &what, calls, &reason);
        }
        run.facts.set(keys::OVERHEAD_BUDGET, &steering.budget());
        if let Some(overhead) = steering.overhead() {
            run.facts.set(keys::OVERHEAD, &overhead.all());
            run.facts.set(keys::OVERHEAD_OF_COUNTING, &overhead.counting);
            run.facts.set(keys::OVERHEAD_OF_TIMING, &overhead.timing);
            run.facts.set(keys::OVERHEAD_SOURCE, &steering.source());
        }
    }
}
