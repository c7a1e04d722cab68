//! Times of exact recordings without the probes' own weight, and how far they can be trusted.
//!
//! What was measured stays; estimates and bounds become series of their own beside it. The figures
//! are made of sums per context, so this can be done again, in another way, at any time afterwards.
//! The derivation, and where it fails, is in docs/internals/times.md.

mod groups;
mod waiting;

use crate::calibration::{Bounded, Calibration};
use crate::pairs::{Pairs, Passed};
use crate::probes::{PROBE_TIME, probes_of_calls};
use groups::{Group, Groups, Node, Nodes};
use std::collections::HashMap;
use tare_profile::facts::keys;
use tare_profile::{ContextId, Estimate, Profile, Row, Series, SeriesId, SeriesInfo, ValueKind};
use waiting::Waiting;

/// The engine whose times are compensated, its calls that have no time of their own, and those that
/// made timed calls.
const ENGINE: &str = "exact";
pub const UNTIMED: &str = "untimed-calls";
pub const CALLING: &str = "calling-calls";

/// Where only some calls of a context are timed: how many were, and the variance of its own time,
/// in microseconds squared. The third sums up to the variance of a total time, over a context and
/// all that it called.
pub const TIMED_CALLS: &str = "timed-calls";
pub const TIME_VARIANCE: &str = "time-variance";
pub const TOTAL_VARIANCE: &str = "total-time-variance";

/// Where one call of a root in so many is followed: the variance of a context's calls.
pub const CALLS_VARIANCE: &str = "invocations-variance";

/// Calls of a method that the interpreter does, as a JVM is set up by default; and up to how many
/// calls a method may run in code that is not yet as quick as it will be.
const INTERPRETED: f64 = 200.0;
const WARMING: f64 = 5_000.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compensation {
    /// As measured.
    None,
    /// By what probes cost around work of the same length.
    #[default]
    Calibrated,
    /// By the least that each pair of transitions costs.
    Sequences,
}

/// Adds the series of estimates, lower and upper bounds, if the profile is of an exact recording
/// that was timed and calibrated. Whether it was.
pub fn compensate(profile: &mut Profile, how: Compensation) -> bool {
    // Where calls of roots are drawn, times are scaled to what all calls took, most of which ran
    // without probes.
    if how == Compensation::None || profile.run.facts.get(keys::FOLLOWED_ONE_IN).is_some() {
        return false;
    }
    if let Some(probes) = probes_of_trace(profile) {
        return compensate_trace(profile, probes);
    }
    let Some(calibration) = Calibration::of_run(&profile.run) else { return false };
    let Some(times) = find(profile, |info| {
        matches!(info.kind, ValueKind::WallTime | ValueKind::CpuTime)
            && info.estimate == Estimate::Measured
    }) else {
        return false;
    };
    let Some(calls) = find(profile, |info| info.kind == ValueKind::Invocations) else {
        return false;
    };
    let untimed = find(profile, |info| info.kind.name() == UNTIMED);
    let info = profile.series(times).info().clone();
    let mut series = [Estimate::Compensated, Estimate::Lower, Estimate::Upper]
        .map(|estimate| Series::new(info.clone().with_estimate(estimate)));
    let some = find(profile, |info| info.kind.name() == TIMED_CALLS);
    let calling = find(profile, |info| info.kind.name() == CALLING).filter(|_| some.is_none());
    let groups = Groups::of(profile, [Some(times), Some(calls), untimed, some.or(calling)]);
    let mut model = Model {
        pairs: Pairs::calibrated(&calibration),
        interpreted: Pairs::interpreted(&calibration),
        calibration,
        // Pairs of transitions are known only where every call has both.
        how: if some.is_some() { Compensation::Calibrated } else { how },
        some: some.is_some(),
        calls: calls_by_method(profile, calls),
        counts_calling: calling.is_some(),
        quicker: 0.0,
    };
    let mut rows = vec![NOWHERE; profile.contexts.len()];
    model.learn(profile, &groups, &mut rows);
    for ((thread, time), nodes) in groups.iter() {
        model.tell_nodes(profile, nodes, &mut rows, |context, net| {
            let values = [net.middle, net.low, net.high];
            for (series, value) in series.iter_mut().zip(values) {
                series.push(Row::new(context, thread, value.round() as i64).at(time));
            }
        });
    }
    series.into_iter().for_each(|series| _ = profile.add_made_series(series));
    true
}

/// What of a trace's time was its probes, by thread and time.
type Probes = HashMap<(Group, ContextId), i64>;

/// Out of the calls, if they were loaded, or as the recorder found while they came.
fn probes_of_trace(profile: &Profile) -> Option<Probes> {
    if let Some(found) = probes_of_calls(profile) {
        let times = find(profile, |info| info.kind == ValueKind::WallTime)?;
        let time = profile.series(times).rows().map(|row| row.time).min().unwrap_or(0);
        let at = |((thread, context), nanos)| (((thread, time), context), nanos);
        return Some(found.into_iter().map(at).collect());
    }
    let told = find(profile, |info| info.kind.name() == PROBE_TIME)?;
    let mut found = Probes::new();
    for row in profile.series(told).rows() {
        *found.entry(((row.thread, row.time), row.context)).or_default() += row.value;
    }
    Some(found)
}

/// Adds the series of estimates to a trace; how far they are to be trusted is not known.
fn compensate_trace(profile: &mut Profile, mut probes: Probes) -> bool {
    let measured =
        |info: &SeriesInfo| info.kind == ValueKind::WallTime && info.estimate == Estimate::Measured;
    let Some(times) = find(profile, measured) else { return false };
    let info = profile.series(times).info().clone().with_estimate(Estimate::Compensated);
    let mut net = Series::new(info);
    for row in profile.series(times).rows() {
        let weight = probes.remove(&((row.thread, row.time), row.context)).unwrap_or(0);
        net.push(Row::new(row.context, row.thread, row.value - weight).at(row.time));
    }
    // A call that was entered in one second and left in another has weight where it has no time
    // yet.
    for (((thread, time), context), weight) in probes {
        net.push(Row::new(context, thread, -weight).at(time));
    }
    profile.add_made_series(net);
    true
}

/// The estimate's own bounds, and what was measured: lower, upper, raw.
pub fn bounds_of(profile: &Profile, id: SeriesId) -> Option<[SeriesId; 3]> {
    let info = profile.series(id).info();
    if info.estimate != Estimate::Compensated {
        return None;
    }
    let same = |estimate| {
        let wanted = SeriesInfo { estimate, ..info.clone() };
        profile.all_series().find(|(_, series)| *series.info() == wanted).map(|(id, _)| id)
    };
    Some([same(Estimate::Lower)?, same(Estimate::Upper)?, same(Estimate::Measured)?])
}

fn find(profile: &Profile, fits: impl Fn(&SeriesInfo) -> bool) -> Option<SeriesId> {
    let found = profile.all_series().find(|(_, series)| {
        series.info().name == ENGINE && fits(series.info()) && !series.is_empty()
    });
    found.map(|(id, _)| id)
}

/// How often each method was called in all.
fn calls_by_method(profile: &Profile, calls: SeriesId) -> Vec<f64> {
    let mut sums = vec![0.0; profile.methods.len()];
    for row in profile.series(calls).rows() {
        if let Some(frame) = profile.contexts.frame(row.context) {
            sums[profile.frames.get(frame).method.index()] += row.value as f64;
        }
    }
    sums
}

struct Model {
    calibration: Calibration,
    how: Compensation,
    /// Only some calls were timed.
    some: bool,
    calls: Vec<f64>,
    /// What pairs of transitions cost, compiled and interpreted.
    pairs: Pairs,
    interpreted: Pairs,
    /// Whether the recording tells which calls made timed ones; older ones do not.
    counts_calling: bool,
    /// By so much the probes of the program are quicker, inside, than the calibration's: no context
    /// can measure less than its probes.
    quicker: f64,
}

/// What the callees of a context weigh on its time, and how many of their calls there were.
#[derive(Clone, Copy, Default)]
struct Callees {
    weight: Bounded,
    timed: f64,
    untimed: f64,
    /// Of the timed ones, those that the interpreter did, as far as can be guessed.
    interpreted: f64,
}

impl Model {
    /// Net times of all contexts that have some: callees first, since callers pay for them.
    fn tell_nodes(
        &self,
        profile: &Profile,
        nodes: Nodes<'_>,
        rows: &mut [u32],
        mut tell: impl FnMut(ContextId, Bounded),
    ) {
        // Callees come before their callers here, and few callers wait for the rest of them.
        let mut waiting = Waiting::of(nodes, rows);
        for (context, node) in nodes.iter().rev() {
            let below = waiting.take(context);
            let timed = node.calls - node.untimed;
            let warmth = self.warmth(profile, context);
            let body = self.body(node, timed, below, warmth);
            if node.nanos != 0.0 {
                let net = match self.how {
                    Compensation::Sequences => {
                        let middle = self.by_sequences(node, timed, below, warmth);
                        Bounded { low: body.low.min(middle), middle, high: body.high.max(middle) }
                    }
                    _ => body,
                };
                tell(context, net);
            }
            let Some(caller) = profile.contexts.parent(context) else { continue };
            let Some(caller) = waiting.caller(caller) else { continue };
            // A context that is not timed hands on to its caller what its callees weigh.
            if timed > 0.0 {
                let share =
                    if self.some { (node.calling / node.calls).clamp(0.0, 1.0) } else { 1.0 };
                let weight = self.outside(body, timed, warmth);
                caller.weight =
                    caller.weight + weight * share + self.counted(timed) * (1.0 - share);
                caller.timed += timed;
                caller.interpreted += timed * warmth.interpreted;
            } else {
                caller.weight = caller.weight + below.weight;
                caller.timed += below.timed;
                caller.interpreted += below.interpreted;
                caller.untimed += below.untimed;
            }
            caller.weight = caller.weight + self.counted(node.untimed);
            caller.untimed += node.untimed;
        }
    }

    /// The share of a method's calls that the interpreter did, as far as can be guessed, and that
    /// may have run before the JVM had compiled it as well as it can.
    fn warmth(&self, profile: &Profile, context: ContextId) -> Warmth {
        let frame = profile.contexts.frame(context);
        let calls = frame.map_or(0.0, |frame| self.calls[profile.frames.get(frame).method.index()]);
        let share = |most: f64| if calls > most { most / calls } else { 1.0 };
        Warmth { interpreted: share(INTERPRETED), warming: share(WARMING) }
    }

    /// What all calls of a context took by themselves.
    fn body(&self, node: Node, timed: f64, below: Callees, warmth: Warmth) -> Bounded {
        let rest = Bounded {
            low: node.nanos - below.weight.high,
            middle: node.nanos - below.weight.middle,
            high: node.nanos - below.weight.low,
        };
        if timed <= 0.0 {
            // A call that began at another time: no probe of its own to pay for here.
            return Bounded { low: rest.low.max(0.0), ..rest };
        }
        let (empty, _) = self.calibration.empty();
        let cold = self.calibration.cold.map_or(0.0, |(inside, _)| (inside - empty).max(0.0));
        let body = self.calibration.body(Bounded {
            low: rest.low / timed - cold * warmth.warming,
            middle: rest.middle / timed - cold * warmth.interpreted + self.quicker,
            high: rest.high / timed + self.quicker,
        });
        Bounded { low: body.low * timed, middle: body.middle * timed, high: body.high * timed }
    }

    /// What calls weigh on their caller's time.
    fn outside(&self, body: Bounded, timed: f64, warmth: Warmth) -> Bounded {
        let outside = self.calibration.outside(body.middle / timed);
        let (_, empty) = self.calibration.empty();
        let cold = self.calibration.cold.map_or(0.0, |(_, outside)| (outside - empty).max(0.0));
        Bounded {
            low: outside.low * timed,
            middle: (outside.middle + cold * warmth.interpreted) * timed,
            high: (outside.high + cold * warmth.warming) * timed,
        }
    }

    /// What calls weigh on their caller's time that are only counted.
    fn counted(&self, calls: f64) -> Bounded {
        let counted = self.calibration.counted * calls;
        Bounded { low: 0.0, middle: counted / 2.0, high: counted }
    }

    /// By what each pair of transitions costs, and each call that is only counted.
    fn by_sequences(&self, node: Node, timed: f64, below: Callees, warmth: Warmth) -> f64 {
        let made = if below.timed > 0.0 { below.interpreted / below.timed } else { 0.0 };
        let pairs = self.pairs.mixed(self.interpreted, warmth.interpreted, made);
        pairs.net(self.passed(node, timed, below)) - below.untimed * self.calibration.counted
    }

    fn passed(&self, node: Node, timed: f64, below: Callees) -> Passed {
        // Where it is not told, as few calls as possible are taken to have made none. Calls through
        // methods that are not timed are not told either.
        let calling =
            if self.counts_calling && below.untimed == 0.0 { node.calling } else { timed };
        Passed::of(node.nanos, timed, calling, below.timed)
    }

    /// Learns what pairs cost from the contexts whose calls are all timed and were compiled early.
    fn learn(&mut self, profile: &Profile, groups: &Groups, rows: &mut [u32]) {
        if !self.counts_calling {
            return;
        }
        let mut contexts = Vec::new();
        for (_, nodes) in groups.iter() {
            note_rows(nodes, rows);
            let mut made = vec![[0.0; 2]; nodes.len()];
            for (context, node) in nodes.iter() {
                if let Some(caller) = caller_row(profile, context, rows) {
                    made[caller][0] += node.calls - node.untimed;
                    made[caller][1] += node.untimed;
                }
            }
            for ((context, node), [timed, untimed]) in nodes.iter().zip(made) {
                if node.untimed != 0.0 || untimed != 0.0 {
                    continue;
                }
                let is_warm = self.warmth(profile, context).interpreted < 0.1;
                if is_warm || timed > 100.0 * node.calls {
                    let below = Callees { timed, untimed, ..Callees::default() };
                    let passed = self.passed(node, node.calls, below);
                    contexts.extend(Some(passed).filter(Passed::teaches));
                }
            }
            forget_rows(nodes, rows);
        }
        let calibrated = self.pairs;
        self.pairs = calibrated.learn(&contexts, self.calibration.call.unwrap_or(0.0));
        self.quicker = (calibrated.leaf() - self.pairs.leaf()).max(0.0);
    }
}

/// Where a context is among those of a group, for all contexts of a profile: of one group at a
/// time, so that it is made once.
const NOWHERE: u32 = u32::MAX;

fn note_rows(nodes: Nodes<'_>, rows: &mut [u32]) {
    (0..).zip(nodes.iter()).for_each(|(row, (context, _))| rows[context.index()] = row);
}

fn forget_rows(nodes: Nodes<'_>, rows: &mut [u32]) {
    nodes.iter().for_each(|(context, _)| rows[context.index()] = NOWHERE);
}

/// Where the caller of a context is in its group, if it is there.
fn caller_row(profile: &Profile, context: ContextId, rows: &[u32]) -> Option<usize> {
    let caller = profile.contexts.parent(context)?;
    Some(rows[caller.index()]).filter(|row| *row != NOWHERE).map(|row| row as usize)
}

#[derive(Clone, Copy)]
struct Warmth {
    interpreted: f64,
    warming: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::tests::costs;
    use tare_profile::{Frame, Method, MethodKind, ThreadId};

    /// A caller called once, and what it calls a million times.
    fn profile(caller_ns: i64, callee_ns: i64, untimed: bool) -> Profile {
        let mut profile = Profile::new();
        profile.run.facts.set(keys::CALIBRATION, &costs());
        let mut frame = |name: &str| {
            let name = profile.strings.intern(name);
            let method = Method { kind: MethodKind::Java, name, ..Method::default() };
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame::of(method))
        };
        let frames = [frame("caller"), frame("callee")];
        let caller = profile.contexts.stack([frames[0]]);
        let callee = profile.contexts.child(caller, frames[1]);
        let mut add = |kind: ValueKind, values: [i64; 2]| {
            let id = profile.add_series(SeriesInfo::new(ENGINE, kind));
            for (context, value) in [caller, callee].into_iter().zip(values) {
                if value != 0 {
                    let row = Row::new(context, ThreadId::UNKNOWN, value);
                    profile.series_mut(id).push(row);
                }
            }
        };
        add(ValueKind::Invocations, [1, 1_000_000]);
        add(ValueKind::WallTime, [caller_ns, callee_ns]);
        if untimed {
            let unit = tare_profile::Unit::Count;
            add(ValueKind::Other { name: UNTIMED.to_owned(), unit }, [0, 1_000_000]);
        }
        profile
    }

    fn totals(profile: &Profile) -> [i64; 3] {
        let time = find(profile, |info| info.estimate == Estimate::Compensated).unwrap();
        let bounds = bounds_of(profile, time).unwrap();
        [bounds[0], time, bounds[1]].map(|id| profile.series(id).total())
    }

    #[test]
    fn the_weight_of_probes_is_taken_from_callee_and_caller() {
        // 1,000 ns each by the clock inside, 13 outside.
        let mut profile = profile(13_000_000, 1_000_000_000, false);
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let [low, net, high] = totals(&profile);
        assert!((995..=1_005).contains(&(net / 1_000_000)), "{net}");
        assert!(low < net - 10_000_000 && high > net + 10_000_000, "{low} {net} {high}");
    }

    #[test]
    fn sequences_subtract_the_least() {
        let mut profile = profile(10_000_000, 110_000_000, false);
        assert!(compensate(&mut profile, Compensation::Sequences));
        // Inside and outside of the callee, of which 200 calls were interpreted, and the caller's
        // own.
        let [_, net, _] = totals(&profile);
        let cold = 200 * (190 + 290) + 480;
        assert_eq!(net, 10_000_000 + 110_000_000 - 10_000_000 - 999_999 * 10 - 20 - cold);
    }

    #[test]
    fn a_context_that_measures_less_than_an_empty_probe_corrects_the_calibration() {
        let net_of = |callee_ns: i64| {
            let mut profile = profile(13_000_000, callee_ns, false);
            let unit = tare_profile::Unit::Count;
            let kind = ValueKind::Other { name: CALLING.to_owned(), unit };
            profile.add_series(SeriesInfo::new(ENGINE, kind));
            let id = profile.all_series().map(|(id, _)| id).last().unwrap();
            let caller = profile.series(find(&profile, |_| true).unwrap()).rows().next().unwrap();
            profile.series_mut(id).push(Row::new(caller.context, caller.thread, 1));
            assert!(compensate(&mut profile, Compensation::Calibrated));
            totals(&profile)
        };
        // The calibration's empty probe takes 10 ns inside; here are 8, with all that the call did.
        let [low, net, high] = net_of(8_000_000);
        assert!(low == 0 && net > 0 && high >= net, "{low} {net} {high}");
        // What takes longer is as before.
        let [_, net, _] = net_of(1_000_000_000);
        assert!((995..=1_005).contains(&(net / 1_000_000)), "{net}");
    }

    #[test]
    fn a_call_that_is_only_counted_costs_its_caller_little() {
        let mut profile = profile(50_000_000, 0, true);
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let [low, net, high] = totals(&profile);
        assert!((48_000_000..50_000_000).contains(&net), "{net}");
        assert!(low >= 48_000_000 && high >= 50_000_000, "{low} {high}");
    }

    #[test]
    fn calls_that_were_not_timed_weigh_less_on_their_caller() {
        let net_of = |timed: i64| {
            let mut profile = profile(13_000_000, 1_000_000_000, false);
            let calls = find(&profile, |info| info.kind == ValueKind::Invocations).unwrap();
            let callee = profile.series(calls).rows().last().unwrap();
            let unit = tare_profile::Unit::Count;
            let kind = ValueKind::Other { name: TIMED_CALLS.to_owned(), unit };
            let id = profile.add_series(SeriesInfo::new(ENGINE, kind));
            profile.series_mut(id).push(Row::new(callee.context, callee.thread, timed));
            assert!(compensate(&mut profile, Compensation::Calibrated));
            totals(&profile)[1]
        };
        // All timed: as where every call is. 13 ns a call are the weight, or half a nanosecond.
        let (all, few) = (net_of(1_000_000), net_of(10_000));
        assert!((995..=1_005).contains(&(all / 1_000_000)), "{all}");
        let more = few - all;
        assert!((11_000_000..13_000_000).contains(&more), "{more}");
    }

    #[test]
    fn without_a_calibration_there_is_nothing_to_add() {
        let mut profile = profile(1, 1, false);
        profile.run.facts.remove(keys::CALIBRATION);
        assert!(!compensate(&mut profile, Compensation::Calibrated));
        assert!(!compensate(&mut profile, Compensation::None));
    }
}
