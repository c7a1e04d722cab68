//! Exact counts joined with samples: how often a context was called from one recording, how much
//! processor time it takes from another, in which nothing was woven.
//!
//! Samples know nothing of probes, so this is right for short methods too; what they cannot tell is
//! how much work was done while they were taken. That is told by methods that were counted
//! meanwhile, the *marks*, or else by contexts whose time is well known from the exact recording,
//! its *anchors*. docs/internals/times.md has the derivation.

mod places;

use crate::compensate::{UNTIMED, bounds_of};
use places::Places;
use std::collections::HashMap;
use std::time::Duration;
use tare_profile::facts::{Key, keys};
use tare_profile::{
    ContextId, Estimate, Facts, FrameId, Profile, Row, RunInfo, Series, SeriesId, SeriesInfo,
    ThreadId, ValueKind,
};

/// The name of the series that this adds.
pub const JOINED: &str = "joined";

/// The classes of probes begin with this.
const PROBES: &str = "java.lang.Tare";

/// Calls of a mark, in both, at least.
const FEW: f64 = 30.0;
/// The relative width of an anchor's interval at most. The narrowest ones that hold [`ANCHORED`] of
/// the samples count, unless wider ones, up to [`WIDE`], say less by more than that.
const WIDTHS: [f64; 5] = [0.05, 0.1, 0.2, 0.5, f64::MAX];
const WIDE: f64 = 0.2;
const ANCHORED: f64 = 0.05;
/// The share of the anchors' samples whose ratio is below the one that is taken.
const QUANTILE: f64 = 0.25;
/// Samples that an anchor has at least.
const ANCHOR: f64 = 30.0;
/// Of a normal distribution, for a confidence of 95 %.
const SIGMAS: f64 = 1.96;
/// With a confidence of 95 % something that was never met is rarer than this many samples.
const NEVER: f64 = 3.0;

/// What came of joining.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// Samples in woven methods, and the share of all that they are.
    pub samples: u64,
    pub share: f64,
    /// How much of the exact recording's work was done under the samples: its inverse scales them.
    pub scale: f64,
    /// Half the width of the scale's own interval, as a share.
    pub doubt: f64,
    /// Whether the scale is only that of the recordings' lengths, for lack of times.
    pub by_length: bool,
    /// How many marks told it.
    pub marks: usize,
}

/// What samples of a context are multiplied with, and how far that is in doubt, as a share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    times: f64,
    doubt: f64,
}

/// Samples of processor time.
struct Sampled {
    series: SeriesId,
    /// Of one sample, in nanoseconds.
    weight: f64,
    /// How much of it was the program's, and not the sampler's.
    share: f64,
}

/// Adds the series of processor time per context, with its bounds, from the samples of another
/// profile or of this one. `None` if one of them lacks what it takes.
pub fn join(profile: &mut Profile, samples: Option<&Profile>) -> Option<Joined> {
    let calls = exact(profile, |info| info.kind == ValueKind::Invocations)?;
    let other = samples.unwrap_or(profile);
    let sampled = sampled_series(other)?;
    // Numbers of class loaders mean something in one run only, and older recordings lack them in
    // samples.
    let by_loader = samples.is_none() && places::have_loaders(profile);
    let places = Places::new(profile, calls, by_loader);
    let placed = places.place(other, &sampled);
    let (weight, series) = (sampled.weight * sampled.share, other.series(sampled.series));
    let all: f64 = sampled.share * series.rows().map(|row| row.value as f64).sum::<f64>();
    let found: f64 = placed.values().sum();
    if found <= 0.0 || all <= 0.0 {
        return None;
    }
    let mut by_length = false;
    let (scales, marks) = match marked(profile, other, calls) {
        Some(known) => known,
        None => {
            let anchored = anchored(profile, &places, &placed, weight);
            by_length = anchored.is_none();
            // The same amount of work in the same time: the best that can be said without times.
            let (times, doubt) = match anchored {
                Some(known) => known,
                None => (lengths(profile, samples)?, 0.0),
            };
            (vec![Scale { times, doubt }; profile.contexts.len()], 0)
        }
    };
    let mean = |of: fn(&Scale) -> f64| {
        let each = placed.iter().map(|(context, weight)| of(&scales[context.index()]) * weight);
        each.sum::<f64>() / found
    };
    let joined = Joined {
        samples: (found / weight).round() as u64,
        share: found / all,
        scale: mean(|scale| scale.times),
        doubt: mean(|scale| scale.doubt),
        by_length,
        marks,
    };
    let placed = places.split(&placed, &sums(profile, calls));
    add(profile, calls, &placed, weight, &scales);
    profile.run.facts.set(keys::JOINED_SAMPLE, &weight);
    joined.note(&mut profile.run.facts);
    Some(joined)
}

impl Joined {
    fn note(&self, facts: &mut Facts) {
        facts.set(keys::JOINED_SAMPLES, &self.samples);
        facts.set(keys::JOINED_SHARE, &self.share);
        facts.set(keys::JOINED_SCALE, &self.scale);
        facts.set(keys::JOINED_DOUBT, &self.doubt);
        facts.set(keys::JOINED_BY_LENGTH, &self.by_length);
        facts.set(keys::JOINED_MARKS, &(self.marks as u64));
    }

    /// How a run was joined, if it was.
    pub fn of_run(run: &RunInfo) -> Option<Self> {
        let facts = &run.facts;
        Some(Joined {
            samples: facts.get(keys::JOINED_SAMPLES)?,
            share: facts.get(keys::JOINED_SHARE)?,
            scale: facts.get(keys::JOINED_SCALE)?,
            doubt: facts.get(keys::JOINED_DOUBT)?,
            by_length: facts.get(keys::JOINED_BY_LENGTH)?,
            marks: usize::try_from(facts.get(keys::JOINED_MARKS)?).ok()?,
        })
    }
}

/// The intervals of sums. Those of contexts cannot be added up: where one had a sample too many,
/// another had one too few.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinedSums {
    one: f64,
    doubt: f64,
}

impl JoinedSums {
    /// `None` for series that were not joined.
    pub fn of(profile: &Profile, series: SeriesId) -> Option<JoinedSums> {
        if profile.series(series).info().name != JOINED {
            return None;
        }
        let facts = &profile.run.facts;
        let (one, doubt) = (facts.get(keys::JOINED_SAMPLE)?, facts.get(keys::JOINED_DOUBT)?);
        Some(JoinedSums { one, doubt })
    }

    /// What a sample stands for once it is scaled, on average and in nanoseconds.
    pub(crate) fn scaled_sample(&self, profile: &Profile) -> i64 {
        let sum = |estimate| {
            let mut joined = profile.all_series().map(|(_, series)| series);
            let found = joined.find(|s| s.info().name == JOINED && s.info().estimate == estimate);
            found.map_or(0.0, |found| found.rows().map(|row| row.value as f64).sum::<f64>())
        };
        let (scaled, sampled) = (sum(Estimate::Compensated), sum(Estimate::Measured));
        let times = if sampled > 0.0 { scaled / sampled } else { 1.0 };
        ((self.one * times).round() as i64).max(1)
    }

    /// The standard deviation of the scale, as a share.
    pub(crate) fn deviation(&self) -> f64 {
        self.doubt / SIGMAS
    }

    /// Of a sum, whose samples weigh `measured`, and whose contexts' bounds have these sums.
    pub fn interval(&self, value: i64, measured: i64, bounds: (i64, i64)) -> (i64, i64) {
        if value <= 0 || measured <= 0 {
            return bounds;
        }
        let spread = SIGMAS / (measured as f64 / self.one).sqrt();
        let low = value as f64 * (1.0 - spread) * (1.0 - self.doubt);
        let high = value as f64 * (1.0 + spread) * (1.0 + self.doubt);
        ((low as i64).max(bounds.0), (high as i64).min(bounds.1).max(value))
    }
}

/// How many times longer calls were counted than samples were taken.
fn lengths(profile: &Profile, samples: Option<&Profile>) -> Option<f64> {
    let window = |profile: &Profile| {
        let window = profile.run.facts.get(keys::SAMPLED_BEFORE)?;
        u64::try_from(window.as_nanos()).ok()
    };
    let counted = profile.run.duration.saturating_sub(window(profile).unwrap_or(0));
    let sampled = window(samples.unwrap_or(profile)).or(samples.map(|other| other.run.duration))?;
    (counted > 0 && sampled > 0).then(|| counted as f64 / sampled as f64)
}

fn exact(profile: &Profile, fits: impl Fn(&SeriesInfo) -> bool) -> Option<SeriesId> {
    let found = profile.all_series().find(|(_, series)| {
        series.info().name == "exact" && fits(series.info()) && !series.is_empty()
    });
    found.map(|(id, _)| id)
}

fn sampled_series(profile: &Profile) -> Option<Sampled> {
    let (id, series) = profile.all_series().find(|(_, series)| {
        let info = series.info();
        info.kind == ValueKind::CpuTime && info.name == "cpu" && !series.is_empty()
    })?;
    let facts = &profile.run.facts;
    let nanos =
        |key: Key<Duration>| facts.get(key).map(|time| time.as_nanos() as f64).filter(|n| *n > 0.0);
    let period = series.info().period as f64;
    let (all, samples) = (nanos(keys::SAMPLED_TIME), facts.get(keys::SAMPLES));
    let samples = samples.map(|samples| samples as f64).filter(|n| *n > 0.0);
    let weight = all.zip(samples).map_or(period, |(all, samples)| all / samples);
    let own = nanos(keys::SAMPLER_TIME).zip(all).map_or(0.0, |(own, all)| own / all);
    (weight > 0.0 && own < 1.0).then_some(Sampled { series: id, weight, share: 1.0 - own })
}

fn sums(profile: &Profile, id: SeriesId) -> HashMap<ContextId, f64> {
    let mut sums = HashMap::new();
    for row in profile.series(id).rows() {
        *sums.entry(row.context).or_insert(0.0) += row.value as f64;
    }
    sums
}

/// What the calls of marks say, in the exact recording and while samples were taken: of each
/// context by the nearest mark that it is called from, and where there is none by what most marks
/// say. Also how many there are.
fn marked(profile: &Profile, other: &Profile, calls: SeriesId) -> Option<(Vec<Scale>, usize)> {
    let marks = other.run.facts.rows(keys::MARKS);
    let sampled: HashMap<&str, (f64, f64)> =
        marks.iter().map(|mark| (mark.method.as_str(), (mark.calls as f64, mark.spread))).collect();
    if sampled.is_empty() {
        return None;
    }
    // Of each method the number of its mark, if it is one.
    let mut names: HashMap<&str, usize> = HashMap::new();
    let numbers: Vec<Option<usize>> = profile
        .methods
        .iter()
        .map(|(_, method)| {
            let (class, name) =
                (profile.strings.get(method.class), profile.strings.get(method.name));
            let (name, _) = sampled.get_key_value(&*format!("{class}.{name}"))?;
            let next = names.len();
            Some(*names.entry(name).or_insert(next))
        })
        .collect();
    let number = |frame: FrameId| numbers[profile.frames.get(frame).method.index()];
    let mut counted = vec![0.0; names.len()];
    for (context, count) in sums(profile, calls) {
        if let Some(number) = profile.contexts.frame(context).and_then(number) {
            counted[number] += count;
        }
    }
    let mut marks: Vec<Option<Scale>> = vec![None; names.len()];
    for (name, number) in names {
        let (exact, (then, spread)) = (counted[number], sampled[name]);
        if exact >= FEW && then >= FEW {
            // Calls that take different times, and the ones that were under way when samples began
            // and ended.
            let doubt = SIGMAS * spread * (1.0 / exact + 1.0 / then).sqrt() + 1.0 / then;
            marks[number] = Some(Scale { times: exact / then, doubt });
        }
    }
    let mut all: Vec<Scale> = marks.iter().flatten().copied().collect();
    all.sort_by(|a, b| a.times.total_cmp(&b.times));
    let quartile = |n: usize| all.get(all.len() * n / 4).copied();
    let mut usual = quartile(2)?;
    usual.doubt += (quartile(3)?.times / quartile(1)?.times - 1.0) / 2.0;
    let mut scales = vec![usual; profile.contexts.len()];
    for (context, parent, frame) in profile.contexts.iter() {
        let own = number(frame).and_then(|number| marks[number]);
        scales[context.index()] = own.unwrap_or(scales[parent.index()]);
    }
    Some((scales, all.len()))
}

/// How much the samples must be scaled so that they agree with the times of contexts that are well
/// known from both, with all that they call, and how far that is in doubt. (Not their own times:
/// which of two methods a sample belongs to that are compiled into one is often a guess.) What
/// spoils an anchor makes its woven time the longer one: it waits, it lost its processor, its woven
/// code is compiled less well. So one of the lower ratios counts, by weight, and not their mean;
/// and the further the others lie above it, the greater is the doubt.
fn anchored(
    profile: &Profile,
    places: &Places,
    placed: &HashMap<ContextId, f64>,
    weight: f64,
) -> Option<(f64, f64)> {
    let net = exact(profile, |info| info.estimate == Estimate::Compensated)?;
    let [low, high, _] = bounds_of(profile, net)?;
    // What is not timed is in its caller's time, so it cannot be an anchor, but all that calls it
    // can.
    let untimed = exact(profile, |info| info.kind.name() == UNTIMED);
    let untimed = places.own(&untimed.map(|id| sums(profile, id)).unwrap_or_default());
    let [net, low, high] = [net, low, high].map(|id| places.whole(profile, &sums(profile, id)));
    let sampled = places.whole(profile, placed);
    let all: f64 = placed.values().sum();
    let mut known: Option<(f64, f64)> = None;
    for most in WIDTHS {
        if known.is_some() && most > WIDE {
            break;
        }
        let mut anchors: Vec<(f64, f64)> = Vec::new();
        // An anchor weighs what no other one below it does.
        let mut weighed_below = vec![0.0; sampled.len()];
        for (context, caller) in places.callees_first(profile) {
            let at = context.index();
            let width = (high[at] - low[at]) / net[at];
            let enough = sampled[at] >= ANCHOR * weight;
            let mut weighed = weighed_below[at];
            if net[at] > 0.0 && enough && width <= most && untimed[at] == 0.0 {
                anchors.push((net[at] / sampled[at], sampled[at] - weighed));
                weighed = sampled[at];
            }
            weighed_below[caller.index()] += weighed;
        }
        let weighed: f64 = anchors.iter().map(|(_, weight)| weight).sum();
        if weighed < all * ANCHORED {
            continue;
        }
        anchors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quantile = |share: f64| {
            let mut before = 0.0;
            let found = anchors.iter().find(|(_, weight)| {
                before += weight;
                before >= weighed * share
            });
            found.map(|(ratio, _)| *ratio)
        };
        let (scale, median) = (quantile(QUANTILE)?, quantile(0.5)?);
        let doubt = (most / 2.0).min(1.0) + SIGMAS / (weighed / weight).sqrt();
        if known.is_none_or(|(narrow, _)| scale < narrow * (1.0 - most)) {
            known = Some((scale, doubt.max(median / scale - 1.0)));
        }
    }
    known
}

fn add(
    profile: &mut Profile,
    calls: SeriesId,
    placed: &HashMap<ContextId, f64>,
    weight: f64,
    scales: &[Scale],
) {
    // The calls may be those of a stretch of time; what is joined with them is, too.
    let axis = profile.series(calls).info().time;
    let time = profile.series(calls).rows().map(|row| row.time).min().unwrap_or(0);
    let calls = sums(profile, calls);
    let info = SeriesInfo::new(JOINED, ValueKind::CpuTime).with_time(axis);
    let estimates = [Estimate::Compensated, Estimate::Lower, Estimate::Upper, Estimate::Measured];
    let mut series = estimates.map(|estimate| Series::new(info.clone().with_estimate(estimate)));
    let mut contexts: Vec<ContextId> = calls.keys().copied().collect();
    contexts.sort_unstable();
    for context in contexts {
        let sampled = placed.get(&context).copied().unwrap_or(0.0);
        let count = sampled / weight;
        let spread = SIGMAS * count.sqrt() * weight;
        let Scale { times, doubt } = scales[context.index()];
        let low = (sampled - spread).max(0.0) * (1.0 - doubt).max(0.0);
        let high = (sampled + spread).max(NEVER * weight) * (1.0 + doubt);
        let values = [sampled * times, low * times, high * times, sampled];
        for (series, value) in series.iter_mut().zip(values) {
            let value = value.round() as i64;
            if value != 0 {
                series.push(Row::new(context, ThreadId::UNKNOWN, value).at(time));
            }
        }
    }
    series.into_iter().for_each(|series| _ = profile.add_made_series(series));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::tests::costs;
    use crate::compensate::{Compensation, compensate};
    use tare_profile::facts::Mark;
    use tare_profile::{Frame, Method};

    fn frame(profile: &mut Profile, name: &str) -> FrameId {
        let (class, name) = (profile.strings.intern("a.B"), profile.strings.intern(name));
        let method = Method { class, name, ..Method::default() };
        let method = profile.methods.intern(method);
        profile.frames.intern(Frame::of(method))
    }

    /// A long method that is called a thousand times, and a short one that it calls.
    fn exact_profile() -> (Profile, [ContextId; 2]) {
        let mut profile = Profile::new();
        profile.run.facts.set(keys::CALIBRATION, &costs());
        let frames = ["long", "short"].map(|name| frame(&mut profile, name));
        let long = profile.contexts.stack([frames[0]]);
        let short = profile.contexts.child(long, frames[1]);
        let calls = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
        let times = profile.add_series(SeriesInfo::new("exact", ValueKind::WallTime));
        for (context, count, time) in [(long, 1_000, 1_013_000_000), (short, 1_000_000, 10_000_000)]
        {
            let row = |value| Row::new(context, ThreadId::UNKNOWN, value);
            profile.series_mut(calls).push(row(count));
            profile.series_mut(times).push(row(time));
        }
        (profile, [long, short])
    }

    /// Samples of half as much work; some of what the short method calls, and of somebody else.
    fn samples() -> Profile {
        let mut profile = Profile::new();
        let info = SeriesInfo::new("cpu", ValueKind::CpuTime);
        let cpu = profile.add_series(info.with_period(1_000_000, ValueKind::CpuTime));
        let names = ["main", "long", "short", "unwoven"];
        let [main, long, short, unwoven] = names.map(|name| frame(&mut profile, name));
        for (stack, millis) in [
            (vec![main, long], 500),
            (vec![main, long, short], 2),
            (vec![main, long, short, unwoven], 1),
            (vec![main], 100),
        ] {
            let context = profile.contexts.stack(stack);
            let row = Row::new(context, ThreadId::UNKNOWN, millis * 1_000_000);
            profile.series_mut(cpu).push(row);
        }
        profile
    }

    #[test]
    fn samples_are_scaled_by_what_is_well_known() {
        let (mut profile, [_, short]) = exact_profile();
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let joined = join(&mut profile, Some(&samples())).unwrap();
        assert!((1.9..2.1).contains(&joined.scale), "{joined:?}");
        assert_eq!((joined.samples, joined.by_length), (503, false));
        assert!((joined.share - 503.0 / 603.0).abs() < 1e-9);
        let series = |estimate| {
            let (_, found) = profile
                .all_series()
                .find(|(_, s)| s.info().name == JOINED && s.info().estimate == estimate)
                .unwrap();
            let rows = found.rows().filter(|row| row.context == short);
            rows.map(|row| row.value).sum::<i64>() as f64 / 1e6
        };
        assert!((5.5..6.5).contains(&series(Estimate::Compensated)), "three samples, twice");
        assert!(series(Estimate::Lower) < 1.0 && series(Estimate::Upper) > 12.0);
    }

    /// Sums of the joined time of a context, in milliseconds.
    fn joined_ms(profile: &Profile, context: ContextId) -> f64 {
        let mut all = profile.all_series();
        let (_, series) = all
            .find(|(_, s)| s.info().name == JOINED && s.info().estimate == Estimate::Compensated)
            .unwrap();
        let rows = series.rows().filter(|row| row.context == context);
        rows.map(|row| row.value as f64 / 1e6).sum()
    }

    #[test]
    fn classes_of_one_name_share_their_samples_by_their_calls() {
        let (mut profile, [long, short]) = exact_profile();
        let (class, name) = (profile.strings.intern("a.B"), profile.strings.intern("long"));
        let loader = profile.strings.intern("another");
        let other = Method { class, name, loader, ..Method::default() };
        let other = profile.methods.intern(other);
        let other = profile.frames.intern(Frame::of(other));
        let other = profile.contexts.stack([other]);
        for (kind, value) in [(ValueKind::Invocations, 3_000), (ValueKind::WallTime, 3_039_000_000)]
        {
            let (id, _) = profile.all_series().find(|(_, s)| s.info().kind == kind).unwrap();
            profile.series_mut(id).push(Row::new(other, ThreadId::UNKNOWN, value));
        }
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let joined = join(&mut profile, Some(&samples())).unwrap();
        assert!((7.8..8.2).contains(&joined.scale), "{joined:?}");
        let parts = [long, other].map(|context| joined_ms(&profile, context));
        assert!((parts[1] / parts[0] - 3.0).abs() < 1e-6, "{parts:?}");
        assert!((23.0..25.0).contains(&joined_ms(&profile, short)));
    }

    #[test]
    fn marks_tell_what_no_probe_and_no_load_can_lengthen() {
        let (mut profile, [long, short]) = exact_profile();
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let mut samples = samples();
        // Four times as many calls while it was sampled, although anchors take it for half the
        // work.
        let mark = |method: &str, calls| Mark { method: method.to_owned(), calls, spread: 0.5 };
        let mut marks = vec![mark("a.B.long", 4_000), mark("a.B.gone", 9), mark("odd", 1)];
        samples.run.facts.set(keys::MARKS, &marks);
        let joined = join(&mut profile, Some(&samples)).unwrap();
        assert_eq!(Joined::of_run(&profile.run).as_ref(), Some(&joined));
        assert_eq!((joined.marks, joined.by_length), (1, false));
        assert!((joined.scale - 0.25).abs() < 1e-9 && joined.doubt < 0.1, "{joined:?}");
        assert!((joined_ms(&profile, long) - 125.0).abs() < 0.01);
        // What has a mark of its own goes by that.
        marks.push(mark("a.B.short", 2_000_000));
        samples.run.facts.set(keys::MARKS, &marks);
        let (mut profile, _) = exact_profile();
        let joined = join(&mut profile, Some(&samples)).unwrap();
        assert_eq!(joined.marks, 2);
        assert!((joined_ms(&profile, short) - 1.5).abs() < 0.01);
        assert!((joined_ms(&profile, long) - 125.0).abs() < 0.01);
    }

    #[test]
    fn sums_are_surer_than_their_parts() {
        let sums = JoinedSums { one: 1e6, doubt: 0.0 };
        // A hundred samples, one in each of a hundred contexts, each of which may be nothing or
        // three.
        let (low, high) = sums.interval(200_000_000, 100_000_000, (0, 600_000_000));
        assert!((160_000_000..162_000_000).contains(&low), "{low}");
        assert!((239_000_000..240_000_000).contains(&high), "{high}");
        // One context has what it has, and nothing stays nothing.
        assert_eq!(sums.interval(2_000_000, 1_000_000, (0, 5_000_000)), (0, 5_000_000));
        assert_eq!(sums.interval(0, 0, (0, 3_000_000)), (0, 3_000_000));
    }

    #[test]
    fn anchors_that_disagree_leave_doubt() {
        let (mut profile, _) = exact_profile();
        let waits = frame(&mut profile, "waits");
        let waits = profile.contexts.stack([waits]);
        for (kind, value) in [(ValueKind::Invocations, 10), (ValueKind::WallTime, 8_000_000_000)] {
            let (id, _) = profile.all_series().find(|(_, s)| s.info().kind == kind).unwrap();
            profile.series_mut(id).push(Row::new(waits, ThreadId::UNKNOWN, value));
        }
        let mut samples = samples();
        let waits = frame(&mut samples, "waits");
        let waits = samples.contexts.stack([waits]);
        let (cpu, _) = samples.all_series().next().unwrap();
        samples.series_mut(cpu).push(Row::new(waits, ThreadId::UNKNOWN, 800_000_000));
        assert!(compensate(&mut profile, Compensation::Calibrated));
        let joined = join(&mut profile, Some(&samples)).unwrap();
        assert!((1.9..2.1).contains(&joined.scale), "the lower one counts: {joined:?}");
        assert!((3.5..4.5).contains(&joined.doubt), "it may be five times as much: {joined:?}");
    }

    #[test]
    fn without_times_the_lengths_of_the_recordings_decide() {
        let (mut profile, _) = exact_profile();
        let mut samples = samples();
        assert_eq!(join(&mut profile, Some(&samples)), None, "lengths are not known");
        (profile.run.duration, samples.run.duration) = (30, 10);
        let joined = join(&mut profile, Some(&samples)).unwrap();
        assert!(joined.by_length && (joined.scale - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_lacks_samples_or_counts_cannot_be_joined() {
        let (mut profile, _) = exact_profile();
        assert_eq!(join(&mut profile, None), None);
        assert_eq!(join(&mut samples(), None), None);
    }
}
