//! What probes cost, as the agent measured it around work of known length, and what follows for a
//! time that probes measured. The derivation, and where it fails, is in docs/internals/times.md.
//!
//! A *body* is what a method takes when nothing is woven. Around it, probes measure an *inside*
//! (from the clock's first reading to its second) and add an *outside* to the caller's time. Both
//! depend on the body: beside work that waits for itself (*narrow*) a processor does most of a
//! probe for nothing, and reads the clock too early; beside work that fills it (*wide*) it cannot.

use tare_profile::RunInfo;
use tare_profile::facts::{Cost, ProbeCost, keys};

/// How far two measurements of the same thing lie apart, in nanoseconds and as a share.
const NOISE_NS: f64 = 1.0;
const NOISE: f64 = 0.01;

/// All in nanoseconds.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Calibration {
    narrow: Curve,
    wide: Curve,
    /// What a method measures as its own that does nothing but call another.
    pub chained: Option<f64>,
    /// And one that calls two, one after the other.
    pub paired: Option<f64>,
    /// What a compiled call costs when nothing is woven.
    pub call: Option<f64>,
    /// What a call that is only counted adds to its caller.
    pub counted: f64,
    /// Inside and outside of calls that the interpreter does.
    pub cold: Option<(f64, f64)>,
    /// Of both curves: the least inside and outside, of the shortest work.
    empty: (f64, f64),
    /// And the least and the most that was measured outside.
    outside: (f64, f64),
}

/// One kind of work at several lengths, the shortest first.
#[derive(Clone, Debug, PartialEq, Default)]
struct Curve {
    points: Vec<Point>,
    /// The least that was measured inside.
    least: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    body: f64,
    inside: f64,
    outside: f64,
}

/// A figure with what the truth is not below and not above.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Bounded {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl std::ops::Add for Bounded {
    type Output = Bounded;

    fn add(self, other: Bounded) -> Bounded {
        Bounded {
            low: self.low + other.low,
            middle: self.middle + other.middle,
            high: self.high + other.high,
        }
    }
}

impl std::ops::Mul<f64> for Bounded {
    type Output = Bounded;

    fn mul(self, factor: f64) -> Bounded {
        let Bounded { low, middle, high } = self;
        Bounded { low: low * factor, middle: middle * factor, high: high * factor }
    }
}

impl Calibration {
    /// What a run was calibrated with, if it was timed.
    pub fn of_run(run: &RunInfo) -> Option<Self> {
        Self::of(&run.facts.rows(keys::CALIBRATION))
    }

    /// `None` if something is missing without which nothing can be said.
    pub fn of(costs: &[ProbeCost]) -> Option<Self> {
        let nanos = |picos: i64| picos as f64 / 1000.0;
        let mut table = Calibration::default();
        for ProbeCost { work, cost } in costs {
            match (work.as_str(), *cost) {
                ("narrow" | "wide", Cost::AroundBody { body, inside, outside }) => {
                    let curve = if work == "wide" { &mut table.wide } else { &mut table.narrow };
                    let [body, inside, outside] = [body, inside, outside].map(nanos);
                    curve.points.push(Point { body, inside, outside });
                }
                ("chained", Cost::One(own)) => table.chained = Some(nanos(own)),
                ("paired", Cost::One(own)) => table.paired = Some(nanos(own)),
                ("call-static", Cost::One(cost)) => table.call = Some(nanos(cost)),
                ("counted", Cost::One(cost)) => table.counted = nanos(cost),
                ("cold", Cost::Around { inside, outside }) => {
                    table.cold = Some((nanos(inside), nanos(outside)));
                }
                // What a later version adds, or is only for people.
                _ => {}
            }
        }
        for curve in [&mut table.narrow, &mut table.wide] {
            if curve.points.len() < 2 {
                return None;
            }
            curve.points.sort_by(|a, b| a.body.total_cmp(&b.body));
            curve.least = curve.points.iter().map(|point| point.inside).fold(f64::MAX, f64::min);
        }
        let curves = [&table.narrow, &table.wide];
        let least = |value: fn(&Point) -> f64| {
            let first = curves.map(|curve| curve.points.first().map_or(0.0, value));
            first[0].min(first[1])
        };
        let empty = (least(|point| point.inside), least(|point| point.outside));
        let all = || curves.into_iter().flat_map(|curve| &curve.points).map(|point| point.outside);
        let outside = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        Some(Calibration { empty, outside, ..table })
    }

    /// Inside and outside of a method that does nothing: what is subtracted at most.
    pub fn empty(&self) -> (f64, f64) {
        self.empty
    }

    /// The body of a call that measured so much inside. `low` and `high` are what is known of that
    /// measure, `middle` its best estimate.
    pub fn body(&self, inside: Bounded) -> Bounded {
        let curves = [&self.narrow, &self.wide];
        let middles = curves.map(|curve| {
            let (low, high) = curve.bodies(inside.middle);
            (low + high) / 2.0
        });
        let low = curves.map(|curve| curve.shortest(inside.low));
        let high = curves.map(|curve| curve.bodies(inside.high).1);
        // As much again as an empty probe costs, for what it disturbs.
        Bounded {
            low: (low[0].min(low[1]) - self.empty().0).max(0.0),
            middle: (middles[0] + middles[1]) / 2.0,
            high: high[0].max(high[1]),
        }
    }

    /// What a call of a method with this body adds to its caller. How much of it overlaps with what
    /// the caller does next, nobody knows: the bounds are those of all that was measured. And what
    /// stands around a probe is disturbed by it, registers are saved and branches forgotten: that
    /// may cost as much again as an empty probe does.
    pub fn outside(&self, body: f64) -> Bounded {
        Bounded {
            low: self.outside.0,
            middle: (self.narrow.outside(body) + self.wide.outside(body)) / 2.0,
            high: self.outside.1 + self.empty().1,
        }
    }
}

impl Curve {
    /// The shortest and the longest body that can have measured so much inside.
    fn bodies(&self, inside: f64) -> (f64, f64) {
        let short = self.shortest(inside);
        let [first, .., last] = self.points.as_slice() else { return (inside, inside) };
        let wanted = inside.max(self.least) + noise(inside);
        let long = match self.points.windows(2).rev().find(|pair| pair[0].inside <= wanted) {
            _ if last.inside <= wanted => beyond(last, wanted),
            Some(pair) => between(pair, wanted),
            None => first.body,
        };
        (short, long.max(short).max(0.0))
    }

    fn shortest(&self, inside: f64) -> f64 {
        let [first, .., last] = self.points.as_slice() else { return inside };
        let wanted = inside - noise(inside);
        if first.inside >= wanted {
            return 0.0;
        }
        let short = match self.points.windows(2).find(|pair| pair[1].inside >= wanted) {
            Some(pair) => between(pair, wanted),
            None => beyond(last, wanted),
        };
        short.max(0.0)
    }

    fn outside(&self, body: f64) -> f64 {
        let Some(last) = self.points.last() else { return 0.0 };
        let Some(after) = self.points.iter().position(|point| point.body >= body) else {
            return last.outside;
        };
        let Some(before) = after.checked_sub(1) else { return self.points[0].outside };
        let (a, b) = (self.points[before], self.points[after]);
        let part = (body - a.body) / (b.body - a.body).max(1e-9);
        a.outside + part * (b.outside - a.outside)
    }
}

fn noise(inside: f64) -> f64 {
    NOISE_NS.max(inside * NOISE)
}

/// Beyond the longest work that was measured, the cost stays the same.
fn beyond(last: &Point, inside: f64) -> f64 {
    inside - last.inside + last.body
}

/// Where between two points so much is measured inside.
fn between(pair: &[Point], inside: f64) -> f64 {
    let (a, b) = (pair[0], pair[1]);
    let part = (inside - a.inside) / (b.inside - a.inside);
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 1.0 };
    a.body + part * (b.body - a.body)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// As measured on a machine: the empty probe is 10 ns inside and 10 outside.
    const TABLE: &str = "counted 1000; clock 5000; narrow 0 10000 10000; narrow 10000 10000 \
        12000; narrow 100000 90000 16000; wide 0 10000 10000; wide 100000 110000 10000; chained \
        20000; cold 200000 300000; news 1";

    /// The same as the agent tells it.
    pub fn costs() -> Vec<ProbeCost> {
        ProbeCost::of_lines(TABLE.split(';'))
    }

    fn exactly(inside: f64) -> Bounded {
        Bounded { low: inside, middle: inside, high: inside }
    }

    #[test]
    fn a_long_body_is_known_within_the_spread_of_the_probes() {
        let table = Calibration::of(&costs()).unwrap();
        let body = table.body(exactly(1000.0));
        // 1,010 if narrow, 990 if wide; and a hundredth for noise.
        assert_eq!(body, Bounded { low: 970.0, middle: 1000.0, high: 1020.0 });
        assert_eq!(table.outside(body.middle), Bounded { low: 10.0, middle: 13.0, high: 26.0 });
    }

    #[test]
    fn of_a_short_body_only_the_bounds_are_known() {
        let table = Calibration::of(&costs()).unwrap();
        let body = table.body(exactly(10.0));
        assert_eq!(body.low, 0.0);
        assert!(body.high >= 10.0 && body.high < 13.0, "{body:?}");
        assert!(table.body(exactly(1.0)).high >= 10.0, "less than an empty probe is as much");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in ["", "narrow 0 1 1; narrow 1 1 1", "wide x", "narrow 1 2; wide 3"] {
            let costs = ProbeCost::of_lines(text.split(';'));
            assert_eq!(Calibration::of(&costs), None, "{text}");
        }
    }
}
