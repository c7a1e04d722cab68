//! Methods that were counted and not timed for the sake of a budget, as the recording tells of them.

use super::Exact;
use tare_profile::{LossKind, RunInfo};

impl Exact {
    /// Methods that were not timed all the time, as losses.
    pub(super) fn demoted(&self, run: &mut RunInfo) {
        let Some(steering) = &self.steering else { return };
        let mut demoted: Vec<(u32, bool)> = steering.ever_demoted().collect();
        demoted.sort_unstable();
        for (id, still) in demoted {
            let Some(name) = self.names.get(id) else { continue };
            let load = self.loads.get(&id.cast_signed());
            let calls = load.map_or(0, |load| load.counted as u64);
            let when = if still { "" } else { " for a while" };
            let reason = format!(
                "calls counted{when} and not timed, for an overhead of {:.0} %: short and called often",
                steering.budget() * 100.0
            );
            let what = format!("{}.{}", name.class.replace('/', "."), name.name);
            run.lose(LossKind::Skipped, &what, calls, &reason);
        }
        let shown = |share: f64| format!("{:.1} %", share * 100.0);
        run.options.push(("overhead budget".to_owned(), shown(steering.budget())));
        if let Some(overhead) = steering.overhead() {
            run.options.push(("overhead".to_owned(), shown(overhead)));
        }
    }
}
