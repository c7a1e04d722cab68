//! The way from hot methods to the roots: by hooks where they have told, else by samples, which know
//! callers before any hook is set.

use std::collections::HashSet;
use tare_analysis::climb::{Climb, ClimbMetric, MethodKey, Payer, State};

/// Callers are followed until they cover this share, and none that has less than the other.
const COVER: f64 = 0.9;
const LEAST: f64 = 0.03;
/// Of what is climbed from, this part must come by way of a method for it to be worth a hook.
pub const LEAST_WEIGHT: f64 = 0.03;
/// A caller with this share is the only one; with the lower one where a hook would have to be set.
pub const ONLY: f64 = 0.97;
pub const NEARLY_ONLY: f64 = 0.85;

/// Methods of a level, each with the part of the hot methods that comes by way of it.
pub type Weighted = Vec<(MethodKey, f64)>;

/// The callers that matter, with their shares: together they pay for most of a method.
pub fn payers(climb: &Climb, method: MethodKey, metric: ClimbMetric) -> Weighted {
    let mut covered = 0.0;
    let mut followed = Vec::new();
    for payer in climb.payers(method, metric) {
        let Payer { method: Some(caller), .. } = payer else { continue };
        if covered >= COVER || payer.share() < LEAST || caller == method {
            continue;
        }
        covered += payer.share();
        followed.push((caller, payer.share()));
    }
    followed
}

/// One more way by which something comes to a method.
pub fn arrive(level: &mut Weighted, method: MethodKey, weight: f64) {
    match level.iter_mut().find(|(known, _)| *known == method) {
        Some((_, all)) => *all += weight,
        None => level.push((method, weight)),
    }
}

/// The heavy ones first; those that next to nothing comes by way of are taken out, but for the
/// heaviest.
pub fn split_light(level: &mut Weighted) -> Weighted {
    level.sort_by(|a, b| b.1.total_cmp(&a.1));
    let heavy = level.iter().take_while(|(_, weight)| *weight >= LEAST_WEIGHT).count();
    level.split_off(heavy.max(1).min(level.len()))
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
    from: Weighted,
    metric: ClimbMetric,
    without: &HashSet<MethodKey>,
    most: usize,
) -> Vec<MethodKey> {
    let mut found = Vec::new();
    let mut seen: HashSet<MethodKey> = from.iter().map(|(method, _)| *method).collect();
    let mut level = from;
    while !level.is_empty() && found.len() < most {
        let mut next = Weighted::new();
        for (method, weight) in level {
            match payers(climb, method, metric)[..] {
                [(only, _)] if !without.contains(&method) => {
                    let above = branching(climb, only);
                    above.into_iter().for_each(|above| arrive(&mut next, above, weight));
                }
                ref payers => {
                    payers.iter().for_each(|(one, share)| arrive(&mut next, *one, weight * share));
                }
            }
        }
        next.retain(|(method, _)| seen.insert(*method));
        split_light(&mut next);
        let new = next.iter().map(|(method, _)| *method);
        found.extend(new.filter(|method| !without.contains(method)));
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
