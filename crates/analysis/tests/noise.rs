//! Differences between sampled profiles: what chance makes is not taken for a change, and a change
//! is found. Profiles are drawn from a seed, so the outcome is the same each time.
#![forbid(unsafe_code)]

use tare_analysis::{Diff, DiffOptions, Noise};
use tare_profile::facts::keys;
use tare_profile::{
    Estimate, Profile, Row, SeriesId, SeriesInfo, ThreadId, TimeAxis, Unit, ValueKind,
};

const FIRST: SeriesId = SeriesId::new(0);
const PERIOD: i64 = 1_000_000;
const METHODS: usize = 40;

/// Numbers by chance: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A program: how much each method takes, in bursts of about so many samples.
struct Program {
    weights: Vec<f64>,
    burst: f64,
    samples: f64,
    times: bool,
}

impl Program {
    fn new(burst: f64, times: bool) -> Self {
        // From 15 % of the whole down to next to nothing.
        let weights = (0..METHODS).map(|n| 0.85_f64.powi(n as i32)).collect();
        Program { weights, burst, samples: 4000.0, times }
    }

    /// A run of it. Bursts come one after another, each of one method, so that a run which has more
    /// to do takes longer.
    fn run(&self, random: &mut Random) -> Profile {
        let mut profile = Profile::new();
        let kind = ValueKind::CpuTime;
        let mut info = SeriesInfo::new("cpu", kind.clone()).with_period(PERIOD as u64, kind);
        if self.times {
            info = info.with_time(TimeAxis::Exact);
        }
        let series = profile.add_series(info);
        let main = profile.special("main");
        let frames: Vec<_> = (0..METHODS).map(|n| profile.special(&format!("m{n}"))).collect();
        let contexts: Vec<_> =
            frames.iter().map(|frame| profile.contexts.stack([main, *frame])).collect();
        // A method's bursts are drawn as often as it takes time.
        let bursts = self.weights.iter().sum::<f64>() / 1.0_f64.max(self.burst);
        let mut time = 0;
        let mut left = self.samples * self.weights.iter().sum::<f64>() / whole();
        while left > 0.0 {
            let mut at = random.next() * bursts * self.burst.max(1.0);
            let chosen = self.weights.iter().position(|weight| {
                at -= weight;
                at < 0.0
            });
            let mut length = 1;
            while random.next() < 1.0 - 1.0 / self.burst {
                length += 1;
            }
            for _ in 0..length {
                time += PERIOD as u64;
                let row = Row::new(contexts[chosen.unwrap_or(0)], ThreadId::UNKNOWN, PERIOD);
                profile.series_mut(series).push(if self.times { row.at(time) } else { row });
            }
            left -= f64::from(length);
        }
        profile
    }
}

/// All weights of a program that nobody changed.
fn whole() -> f64 {
    (0..METHODS).map(|n| 0.85_f64.powi(n as i32)).sum()
}

fn diff(old: &Profile, new: &Profile, normalise: bool) -> Diff {
    let options = DiffOptions { normalise, ..DiffOptions::default() };
    Diff::build((old, FIRST), (new, FIRST), &options).unwrap()
}

#[test]
fn equal_programs_do_not_differ() {
    const PAIRS: usize = 150;
    for (burst, times, normalise) in
        [(1.0, true, false), (12.0, true, false), (12.0, true, true), (1.0, false, true)]
    {
        let program = Program::new(burst, times);
        let mut random = Random(11);
        let (mut blamed, mut naive) = (0, 0);
        for _ in 0..PAIRS {
            let (old, new) = (program.run(&mut random), program.run(&mut random));
            let diff = diff(&old, &new, normalise);
            assert_eq!(diff.noise, Noise::Samples);
            let told = |change: &tare_analysis::Change| {
                diff.may_be_chance(change.own, change.doubt.own) == Some(false)
            };
            blamed += usize::from(diff.worst().at_least > 0.0 || diff.methods.iter().any(told));
            naive += usize::from(diff.largest() > 0.005);
        }
        // One in a hundred, and what chance adds to that in so few pairs.
        assert!(blamed <= 6, "bursts of {burst}: {blamed} of {PAIRS} equal pairs are blamed");
        assert!(naive > PAIRS / 2, "only {naive} differ at all, so nothing was put to the test");
    }
}

#[test]
fn a_regression_is_found() {
    let (plain, mut slower) = (Program::new(4.0, true), Program::new(4.0, true));
    // The largest method twice as slow: 15 % of the whole.
    slower.weights[0] *= 2.0;
    let mut random = Random(16);
    let (mut grew, mut exceeds, mut covered) = (0, 0, 0);
    for _ in 0..50 {
        let (old, new) = (plain.run(&mut random), slower.run(&mut random));
        let diff = diff(&old, &new, false);
        exceeds += usize::from(diff.worst().at_least > 0.02);
        let change = diff.methods.iter().find(|change| change.label == "m0").unwrap();
        let (delta, doubt) = (diff.delta(change.own), change.doubt.own);
        grew += usize::from(diff.may_be_chance(change.own, doubt) == Some(false));
        let truth = plain.samples * PERIOD as f64 * plain.weights[0] / whole();
        covered += usize::from((delta - truth).abs() < doubt);
    }
    let found = (grew, exceeds, covered);
    assert!(grew >= 45 && exceeds >= 45 && covered == 50, "{found:?} of 50");
}

#[test]
fn counts_have_no_noise_and_exact_times_an_unknown_one() {
    let build = |kind: ValueKind| {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("exact", kind));
        let frame = profile.special("a");
        let context = profile.contexts.stack([frame]);
        profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, 100));
        let mut more = profile.clone();
        more.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, 1));
        diff(&profile, &more, false)
    };
    let counted = build(ValueKind::Bytecodes);
    assert_eq!((counted.noise, counted.worst().at_least), (Noise::None, 0.01));
    assert_eq!(counted.may_be_chance([100, 101], 0.0), Some(false));
    assert_eq!(counted.first_difference(), (1, Some(1)));
    // Sampled every so many bytecodes, they scatter as samples do.
    let mut sampled = Profile::new();
    let series = sampled.add_series(SeriesInfo::new("exact", ValueKind::Bytecodes));
    sampled.run.facts.set(keys::BYTECODES_PER_SAMPLE, &10_000);
    assert_eq!(Noise::of(&sampled, series), Noise::Samples);
    let timed = build(ValueKind::WallTime);
    assert_eq!((timed.noise, timed.may_be_chance([100, 101], 0.0)), (Noise::Unknown, None));
}

/// Costs on another JVM are sums over what was executed; only figures that both do not scatter do
/// not.
#[test]
fn what_is_counted_on_both_sides_does_not_scatter() {
    let of = |info: SeriesInfo| {
        let mut profile = Profile::new();
        let series = profile.add_series(info);
        let frame = profile.special("m");
        let context = profile.contexts.stack([frame]);
        profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, 5));
        profile
    };
    let kind = ValueKind::Other { name: "target-time".to_owned(), unit: Unit::Nanoseconds };
    let target = of(SeriesInfo::new("exact", kind.clone()));
    let foreign = of(SeriesInfo::new("somebody", kind));
    let noise = |old: &Profile, new: &Profile| {
        Diff::build((old, FIRST), (new, FIRST), &DiffOptions::default()).unwrap().noise
    };
    assert_eq!(noise(&target, &target), Noise::None);
    assert_eq!(noise(&target, &foreign), Noise::Unknown);
    assert_eq!(noise(&foreign, &target), Noise::Unknown);
}

/// Joined times are samples that were scaled: a few more of them are chance, whatever the scale.
#[test]
fn joined_times_scatter_as_their_samples_do() {
    let joined = |samples: i64, doubt: f64| {
        let mut profile = Profile::new();
        profile.run.facts.set(keys::JOINED_SAMPLE, &1e6);
        profile.run.facts.set(keys::JOINED_DOUBT, &doubt);
        let info = SeriesInfo::new("joined", ValueKind::CpuTime);
        let net = profile.add_series(info.clone().with_estimate(Estimate::Compensated));
        let raw = profile.add_series(info.with_estimate(Estimate::Measured));
        for (name, count) in [("rest", 4000), ("m", samples)] {
            let frame = profile.special(name);
            let context = profile.contexts.stack([frame]);
            let row = |value| Row::new(context, ThreadId::UNKNOWN, value);
            // Twenty times as much was counted as was sampled.
            profile.series_mut(net).push(row(count * PERIOD * 20));
            profile.series_mut(raw).push(row(count * PERIOD));
        }
        profile
    };
    let compare = |old: &Profile, new: &Profile| {
        Diff::build((old, FIRST), (new, FIRST), &DiffOptions::default()).unwrap()
    };
    let diff = compare(&joined(400, 0.001), &joined(450, 0.001));
    assert_eq!(diff.noise, Noise::Samples);
    assert!(diff.largest() > 0.01 && diff.worst().at_least <= 0.0, "{:?}", diff.worst());
    let grown = compare(&joined(400, 0.001), &joined(1200, 0.001));
    assert!(grown.worst().at_least > 0.05, "{:?}", grown.worst());
    // A scale that is in doubt makes every value doubtful.
    let doubtful = compare(&joined(400, 0.5), &joined(1200, 0.5));
    assert!(doubtful.worst().at_least <= 0.05, "{:?}", doubtful.worst());
}
