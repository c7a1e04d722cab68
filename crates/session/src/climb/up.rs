//! From one level to the next: which callers of what is known are worth a hook.

use super::spine::{
    Above, LEAST_WEIGHT, NEARLY_ONLY, ONLY, Weighted, above, arrive, is_known, is_root, payers,
    split_light,
};
use super::{Climber, MOST_HOOKS, Phase, Turn, short};
use crate::words::several;
use tare_analysis::climb::{Climb, MethodKey, State};

/// A caller that samples did not foretell gets a hook if this part of what is hot comes by way of it.
const UNFORETOLD: f64 = 0.15;

/// Levels at most: a walk that finds no root does not go on for ever.
const LEVELS: u32 = 50;

impl Climber {
    /// The level is known: its callers are next.
    pub(super) fn climb_up(&mut self, climb: &mut Climb) -> Turn {
        self.level += 1;
        let mut next = Weighted::new();
        let mut chains = Weighted::new();
        for (method, weight) in std::mem::take(&mut self.current) {
            let payers = self.worth_a_hook(climb, method, weight);
            match payers[..] {
                [] => {
                    let measured = climb.measured(method).is_some_and(|hook| hook.told > 0);
                    if measured || is_root(climb, method) {
                        let why = "a thread begins with it".to_owned();
                        self.decide(climb, method, State::Root, why);
                    }
                }
                // What could not be measured has its only caller measured instead.
                [(only, _)] if !is_known(climb, method) => arrive(&mut next, only, weight),
                [(only, _)] => chains.push((only, weight)),
                _ => {
                    payers.iter().for_each(|(one, share)| arrive(&mut next, *one, weight * share));
                }
            }
        }
        // What gets a hook in any case is not passed by.
        for (only, weight) in chains {
            let above = self.above(climb, only, &next);
            above.into_iter().for_each(|above| arrive(&mut next, above, weight));
        }
        next.retain(|(method, _)| !self.met.contains(method));
        for (method, weight) in split_light(&mut next) {
            let why = format!(
                "only {:.0} % of what is hot comes by way of it; samples tell who calls it",
                weight * 100.0
            );
            self.decide(climb, method, State::Sampled, why);
        }
        for (method, _) in next.split_off(next.len().min(MOST_HOOKS)) {
            let why = format!("it would have been more than {MOST_HOOKS} hooks at once");
            self.decide(climb, method, State::Sampled, why);
        }
        if next.is_empty() || self.level > LEVELS {
            let levels = several(self.level, "level");
            self.notes.push(format!("{levels} climbed, to the roots"));
            self.enter(if self.aims.again { Phase::Resting } else { Phase::Done });
            // They will be wanted again, and to wait is cheaper than to be set anew.
            return match self.aims.again {
                true => Turn::Hook(self.hooks(Vec::new(), self.woven.clone())),
                false => Turn::Done,
            };
        }
        self.current = next;
        self.hook_level(climb)
    }

    /// The callers that are followed. One that samples did not foretell has no hook yet, and to set
    /// one has the JVM compile anew; so it must pay for more than others.
    fn worth_a_hook(&mut self, climb: &mut Climb, method: MethodKey, weight: f64) -> Weighted {
        let mut payers = payers(climb, method, self.aims.metric);
        let is_ready =
            |caller: &MethodKey| self.woven.contains(caller) || self.met.contains(caller);
        if !payers.iter().any(|(caller, _)| is_ready(caller)) {
            return payers;
        }
        let is_left = |(caller, share): &mut (MethodKey, f64)| {
            let part = weight * *share;
            let is_little = (LEAST_WEIGHT..UNFORETOLD).contains(&part);
            is_little && !is_ready(caller) && !self.refused.contains_key(caller)
        };
        let left: Weighted = payers.extract_if(.., is_left).collect();
        for (caller, share) in left {
            let name = short(climb.names.name(method)).to_owned();
            let why = format!(
                "it pays for {:.0} % of {name}, which samples did not foretell; a hook for that would \
                 cost more than it tells",
                share * 100.0
            );
            self.decide(climb, caller, State::Sampled, why);
        }
        payers
    }

    /// From the only caller of a method on, the first that has several callers, by samples; none if
    /// there is a root instead.
    fn above(
        &mut self,
        climb: &mut Climb,
        from: MethodKey,
        next: &[(MethodKey, f64)],
    ) -> Option<MethodKey> {
        let mut method = from;
        let is_next = |method| next.iter().any(|(one, _)| *one == method);
        while !self.met.contains(&method) && !is_next(method) {
            // What is not woven is passed by a little sooner: a few more samples of another caller
            // are no reason to load classes again.
            let only = match self.woven.is_empty() || self.woven.contains(&method) {
                true => ONLY,
                false => NEARLY_ONLY,
            };
            match above(climb, method, only) {
                Above::Several => return Some(method),
                Above::Nobody => {
                    let why = "a thread begins with it".to_owned();
                    self.decide(climb, method, State::Root, why);
                }
                Above::One(caller) => {
                    let name = short(climb.names.name(caller)).to_owned();
                    let why = format!("samples know one caller, {name}");
                    self.decide(climb, method, State::Passed, why);
                    method = caller;
                }
            }
        }
        None
    }
}
