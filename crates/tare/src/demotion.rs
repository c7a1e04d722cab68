//! Which methods of a timed recording are better only counted: those that are so short and so often
//! called that timing them says more about the probes than about them. Decided again and again from
//! what the last seconds brought, so that the probes' share stays near a budget.
//!
//! This file decides; the agent weaves anew, and `exact` brings the figures.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Weaving anew holds the JVM up, so it is done seldom, and the more seldom the longer it goes on.
const FIRST: Duration = Duration::from_millis(1_500);
const SLOWER: u32 = 2;
const SLOWEST: Duration = Duration::from_secs(60);
/// What is timed again may take the probes to this share of the budget at most.
const ROOM: f64 = 0.8;

/// A method that costs less than this share of the program's own time stays timed: its contexts
/// would begin anew, and take memory, for next to nothing.
const WORTH_IT: f64 = 0.001;

/// What one call costs in probes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub timed: f64,
    pub counted: f64,
}

/// What a method did in all, up to a look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub timed: f64,
    pub counted: f64,
    /// Its own time, as measured, in nanoseconds.
    pub own: f64,
}

/// Holds the probes to a budget.
pub struct Steering {
    /// Probes may take this share of what the program takes without them.
    budget: f64,
    /// By id.
    before: HashMap<u32, Load>,
    demoted: HashSet<u32>,
    ever: HashSet<u32>,
    next: Instant,
    pause: Duration,
    /// At the last look, as a share of the program's own time.
    overhead: Option<f64>,
}

impl Steering {
    pub fn new(budget: f64) -> Self {
        Steering {
            budget,
            before: HashMap::new(),
            demoted: HashSet::new(),
            ever: HashSet::new(),
            next: Instant::now() + FIRST,
            pause: FIRST,
            overhead: None,
        }
    }

    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// The probes' share at the last look.
    pub fn overhead(&self) -> Option<f64> {
        self.overhead
    }

    /// Methods that were not timed for a while, and those that are not timed now.
    pub fn ever_demoted(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        self.ever.iter().map(|id| (*id, self.demoted.contains(id)))
    }

    /// Takes note of what methods have done so far. The ids of all methods that are not to be timed
    /// from now on, if that is to change.
    pub fn look(&mut self, loads: HashMap<u32, Load>, costs: Costs) -> Option<Vec<u32>> {
        if Instant::now() < self.next {
            return None;
        }
        let since: Vec<(u32, Load)> = loads
            .iter()
            .map(|(id, now)| {
                let before = self.before.get(id).copied().unwrap_or_default();
                let since = Load {
                    timed: now.timed - before.timed,
                    counted: now.counted - before.counted,
                    own: now.own - before.own,
                };
                (*id, since)
            })
            .collect();
        self.before = loads;
        self.overhead = overhead(&since, &self.demoted, &HashSet::new(), costs);
        let wanted = choose(&since, &self.demoted, costs, self.budget);
        let changed = wanted != self.demoted;
        if changed {
            self.pause = (self.pause * SLOWER).min(SLOWEST);
            self.ever.extend(&wanted);
            self.demoted = wanted;
        }
        self.next = Instant::now() + self.pause;
        changed.then(|| self.demoted.iter().copied().collect())
    }
}

/// The probes' share of the program's own time if `demoted` were counted and `others` timed again;
/// `None` if nothing ran.
fn overhead(
    loads: &[(u32, Load)],
    demoted: &HashSet<u32>,
    others: &HashSet<u32>,
    costs: Costs,
) -> Option<f64> {
    let own = own_time(loads, costs);
    let weight: f64 = loads
        .iter()
        .map(|(id, load)| {
            let counted = demoted.contains(id) && !others.contains(id);
            (load.timed + load.counted) * if counted { costs.counted } else { costs.timed }
        })
        .sum();
    (own > 0.0).then(|| weight / own)
}

/// What the program took without probes.
fn own_time(loads: &[(u32, Load)], costs: Costs) -> f64 {
    let measured: f64 = loads.iter().map(|(_, load)| load.own).sum();
    let paid: f64 =
        loads.iter().map(|(_, l)| l.timed * costs.timed + l.counted * costs.counted).sum();
    // Where probes overlap with work they cost less than they do alone; some work there was.
    (measured - paid).max(measured * 0.05)
}

/// The methods that are to be counted only.
fn choose(
    loads: &[(u32, Load)],
    demoted: &HashSet<u32>,
    costs: Costs,
    budget: f64,
) -> HashSet<u32> {
    let mut wanted = demoted.clone();
    let none = HashSet::new();
    let Some(now) = overhead(loads, demoted, &none, costs) else { return wanted };
    let calls = |load: &Load| load.timed + load.counted;
    if now > budget {
        // A method that takes longer than this pays for its own probes within the budget.
        let short = costs.timed / budget;
        let least = own_time(loads, costs) * WORTH_IT / (costs.timed - costs.counted).max(1.0);
        let mut candidates: Vec<&(u32, Load)> = loads
            .iter()
            .filter(|(id, load)| {
                let body = load.own / load.timed.max(1.0) - costs.timed;
                load.timed > least && !demoted.contains(id) && body < short
            })
            .collect();
        candidates.sort_by(|a, b| calls(&b.1).total_cmp(&calls(&a.1)));
        for (id, _) in candidates {
            wanted.insert(*id);
            if overhead(loads, &wanted, &none, costs).is_none_or(|share| share <= budget) {
                break;
            }
        }
    } else {
        let mut back: Vec<&(u32, Load)> =
            loads.iter().filter(|(id, _)| demoted.contains(id)).collect();
        back.sort_by(|a, b| calls(&a.1).total_cmp(&calls(&b.1)));
        let mut timed = HashSet::new();
        for (id, _) in back {
            timed.insert(*id);
            let share = overhead(loads, demoted, &timed, costs);
            if share.is_none_or(|share| share > budget * ROOM) {
                break;
            }
            wanted.remove(id);
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { timed: 20.0, counted: 2.0 };

    /// Calls of a method, each with so many nanoseconds of its own, as a timed session measures it.
    fn timed(id: u32, calls: f64, body: f64) -> (u32, Load) {
        (id, Load { timed: calls, counted: 0.0, own: calls * (body + 20.0) })
    }

    #[test]
    fn short_methods_go_first_and_no_more_than_need_be() {
        let loads = [timed(1, 1e6, 5.0), timed(2, 1e5, 5.0), timed(3, 1e4, 20_000.0)];
        let chosen = choose(&loads, &HashSet::new(), COSTS, 0.05);
        assert_eq!(chosen, [1].into());
        assert_eq!(choose(&loads, &HashSet::new(), COSTS, 0.01), [1, 2].into());
        assert!(choose(&loads, &HashSet::new(), COSTS, 1.0).is_empty());
    }

    #[test]
    fn what_costs_next_to_nothing_stays_timed() {
        let loads = [timed(1, 1e6, 5.0), timed(2, 100.0, 5.0)];
        assert_eq!(choose(&loads, &HashSet::new(), COSTS, 0.001), [1].into());
    }

    #[test]
    fn a_long_method_is_always_timed() {
        let loads = [timed(1, 1e6, 1_000.0), timed(2, 1e6, 1.0)];
        assert_eq!(choose(&loads, &HashSet::new(), COSTS, 0.001), [1, 2].into());
        assert_eq!(choose(&loads, &HashSet::new(), COSTS, 0.03), [2].into());
    }

    #[test]
    fn what_has_become_rare_is_timed_again() {
        let rare = Load { timed: 0.0, counted: 100.0, own: 0.0 };
        let often = Load { timed: 0.0, counted: 1e7, own: 0.0 };
        let loads = [(1, rare), (2, often), timed(3, 1e4, 20_000.0)];
        assert_eq!(choose(&loads, &[1, 2].into(), COSTS, 0.2), [2].into());
    }

    #[test]
    fn nothing_is_decided_where_nothing_ran() {
        assert_eq!(choose(&[], &[1].into(), COSTS, 0.2), [1].into());
        let mut steering = Steering::new(0.2);
        assert_eq!(steering.look(HashMap::new(), COSTS), None);
    }
}
