//! What each method has done so far, for whoever decides which are better not timed.

use super::Exact;
use super::times::{has_time, nanos, net_ticks, of_method};
use crate::demotion::{Costs, Load};
use crate::error::Result;
use std::collections::HashMap;

impl Exact {
    /// What a call costs in probes by the calibration, if there is one.
    pub fn costs(&self) -> Option<Costs> {
        let calibration = self.calibration()?;
        let (inside, outside) = calibration.empty();
        Some(Costs { timed: inside + outside, counted: calibration.counted })
    }

    /// What each method has done so far, under the id that it has when it is timed. A look of its
    /// own, which is quicker than one that a recording takes.
    pub fn loads(&mut self) -> Result<HashMap<u32, Load>> {
        let snapshot = self.arena.trees()?;
        let mut by_id: Vec<Load> = Vec::new();
        for tree in &snapshot.trees {
            let net = net_ticks(&snapshot, tree);
            let nodes = tree.nodes.iter().zip(net).enumerate();
            for (at, (node, net)) in nodes.filter(|(_, (node, _))| node.method > 0) {
                let calls = node.count as f64;
                let (timed, counted) = if has_time(&node) { (calls, 0.0) } else { (0.0, calls) };
                let own = nanos(&snapshot, net) as f64;
                let load = Load { timed, counted, own, ..Load::default() };
                of_method(&mut by_id, node.method).add(&load);
                let caller = tree.nodes.get(tree.caller_with_time(at)).method;
                let made = Load { made_timed: timed, made_counted: counted, ..Load::default() };
                of_method(&mut by_id, caller).add(&made);
            }
        }
        self.names = self.arena.names()?;
        // A method has two ids when it was timed and counted in turn; the first is the smaller.
        let mut first: HashMap<(u32, &str, &str, &str), u32> = HashMap::new();
        let mut loads: HashMap<u32, Load> = HashMap::new();
        for (id, load) in (0..).zip(&by_id) {
            let Some(name) = self.names.get(id) else { continue };
            let key = (name.loader, &*name.class, &*name.name, &*name.descriptor);
            loads.entry(*first.entry(key).or_insert(id)).or_default().add(load);
        }
        Ok(loads)
    }
}
