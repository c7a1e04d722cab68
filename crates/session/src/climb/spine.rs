//! The way from hot methods to the roots: by hooks where they have told, else by samples, which know
//! callers before any hook is set.

use std::collections::HashSet;
use tare_analysis::climb::{Climb, ClimbMetric, MethodKey, Payer, State};

/// Callers are followed until they cover this share, and none that has less than the other.
const COVER: f64 = 0.9;
const LEAST: f64 = 0.03;
/// A caller with this share is the only one; with the lower one where a hook would have to be set.
pub const ONLY: f64 = 0.97;
pub const NEARLY_ONLY: f64 = 0.85;

/// The callers that matter: together they pay for most of a method.
pub fn payers(climb: &Climb, method: MethodKey, metric: ClimbMetric) -> Vec<MethodKey> {
    let mut covered = 0.0;
    let mut followed = Vec::new();
    for payer in climb.payers(method, metric) {
        let Payer { method: Some(caller), .. } = payer else { continue };
        if covered >= COVER || payer.share() < LEAST || caller == method {
            continue;
        }
        covered += payer.share();
        followed.push(caller);
    }
    followed
}

/// Whether hooks have told of a method for as long as it took.
pub fn is_known(climb: &Climb, method: MethodKey) -> bool {
    let state = climb.node(method).map(|node| node.state);
    matches!(state, Some(State::Stable | State::Unstable))
}

pub fn is_root(climb: &Climb, method: MethodKey) -> bool {
    climb.samples.callers(method).first().is_some_and(|(caller, _)| caller.is_none())
}

/// What samples know above a method.
pub enum Above {
    /// A thread begins with it.
    Nobody,
    One(MethodKey),
    Several,
}

pub fn above(climb: &Climb, method: MethodKey, only: f64) -> Above {
    let within = climb.samples.within(method) as f64;
    match climb.samples.callers(method).first() {
        Some((caller, weight)) if *weight as f64 >= within * only => {
            caller.map_or(Above::Nobody, Above::One)
        }
        _ => Above::Several,
    }
}

/// Which methods a walk from these on will have hooks in, as far as is known: the next levels first,
/// `most` at most. Those that get none in any case have their only caller measured.
pub fn ahead(
    climb: &Climb,
    from: &[MethodKey],
    metric: ClimbMetric,
    without: &HashSet<MethodKey>,
    most: usize,
) -> Vec<MethodKey> {
    let mut found = Vec::new();
    let mut seen: HashSet<MethodKey> = from.iter().copied().collect();
    let mut level = from.to_vec();
    while !level.is_empty() && found.len() < most {
        let mut next = Vec::new();
        for method in level {
            match payers(climb, method, metric)[..] {
                [only] if !without.contains(&method) => next.extend(branching(climb, only)),
                ref payers => next.extend_from_slice(payers),
            }
        }
        next.retain(|method| seen.insert(*method));
        next.sort_by_key(|method| std::cmp::Reverse(climb.samples.within(*method)));
        found.extend(next.iter().copied().filter(|method| !without.contains(method)));
        level = next;
    }
    found.truncate(most);
    found
}

/// From a method on upwards, the first that has several callers.
fn branching(climb: &Climb, from: MethodKey) -> Option<MethodKey> {
    let (mut method, mut seen) = (from, HashSet::new());
    while seen.insert(method) {
        match above(climb, method, ONLY) {
            Above::Nobody => return None,
            Above::One(caller) => method = caller,
            Above::Several => return Some(method),
        }
    }
    None
}
