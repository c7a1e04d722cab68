//! Methods of a timed recording that were counted and not timed, as the recording tells of them.

use super::Exact;
use crate::demotion::Steering;
use std::collections::{HashMap, HashSet};
use tare_arena::MethodName;
use tare_profile::{LossKind, RunInfo};

/// What is said of methods that were only counted.
const NEVER_TIMED: &str = "they call nothing and have no loop, or --count-only names them: calls are counted, and their \
                           time is their callers' (--time-all times them)";

impl Exact {
    /// How many methods were never timed, and how often they were called.
    pub(super) fn never_timed(&self, run: &mut RunInfo) {
        if self.series.as_ref().is_none_or(|series| series.times.is_none()) {
            return;
        }
        let name =
            |id: u32| self.names.get(id).map(|n| (n.loader, &*n.class, &*n.name, &*n.descriptor));
        // A method that was demoted has two ids.
        let steering = self.steering.iter();
        let mut timed: HashSet<_> =
            steering.flat_map(Steering::ever_demoted).filter_map(|(id, _)| name(id)).collect();
        let loads = || {
            let loads = self.loads.iter();
            loads.filter_map(|(id, load)| Some((name(u32::try_from(*id).ok()?)?, load)))
        };
        timed.extend(loads().filter(|(_, load)| load.timed > 0.0).map(|(name, _)| name));
        let rest = loads().filter(|(name, load)| load.counted > 0.0 && !timed.contains(name));
        let (methods, calls) =
            rest.fold((0, 0.0), |(n, calls), (_, load)| (n + 1, calls + load.counted));
        if methods > 0 {
            run.lose(
                LossKind::Skipped,
                &format!("calls of {methods} methods not timed"),
                calls as u64,
                NEVER_TIMED,
            );
        }
    }

    /// Methods that were not timed all the time, as losses.
    pub(super) fn demoted(&self, run: &mut RunInfo) {
        let Some(steering) = &self.steering else { return };
        let mut demoted: Vec<(u32, bool)> = steering.ever_demoted().collect();
        demoted.sort_unstable();
        let key = |name: &MethodName| {
            (name.loader, name.class.clone(), name.name.clone(), name.descriptor.clone())
        };
        let mut counted: HashMap<_, f64> = HashMap::new();
        for (id, load) in self.loads.iter().filter(|(_, load)| load.counted > 0.0) {
            if let Some(name) = u32::try_from(*id).ok().and_then(|id| self.names.get(id)) {
                *counted.entry(key(name)).or_default() += load.counted;
            }
        }
        for (id, still) in demoted {
            let Some(name) = self.names.get(id) else { continue };
            let calls = counted.get(&key(name)).copied().unwrap_or(0.0) as u64;
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
