//! Times of trees by pairs of transitions: what probes weigh between one reading of the clock and
//! the next, learned from the contexts in place. The derivation, and where it fails, is in
//! docs/internals/times.md.
//!
//! A call that makes no timed call goes from its entry to its exit. One that makes some goes from
//! entry to entry and from exit to exit, once each, and between two of its calls from exit to
//! entry. How many calls of a context made some is counted by the probes, so all four can be told
//! from sums.

use crate::calibration::Calibration;

/// Contexts with fewer of a pair teach nothing: what disturbed one call would count for much.
const ENOUGH: f64 = 1_000.0;

/// What a pair costs in probes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// From entry to exit.
    leaf: f64,
    /// From entry to entry and from exit to exit, together: a call has both or none.
    ends: f64,
    /// From exit to entry.
    between: f64,
}

/// How often a context passed each pair, and its own time with all that probes put into it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passed {
    pub nanos: f64,
    pub leaves: f64,
    pub calling: f64,
    pub between: f64,
}

impl Passed {
    /// `timed` calls of a context, of which `calling` made timed calls, `made` of them in all.
    pub fn of(nanos: f64, timed: f64, calling: f64, made: f64) -> Self {
        let calling = calling.min(timed).min(made).max(0.0);
        Passed { nanos, leaves: timed - calling, calling, between: made - calling }
    }

    /// Whether there is enough of anything.
    pub fn teaches(&self) -> bool {
        [self.leaves, self.calling, self.between].iter().any(|count| *count >= ENOUGH)
    }
}

impl Pairs {
    /// What empty methods cost in the calibration. A call that nobody instruments costs something
    /// as well, between the caller's code and the callee's first probe: that is not the probes'.
    pub fn calibrated(table: &Calibration) -> Self {
        let (leaf, outside) = table.empty();
        let ends = table.chained.unwrap_or(leaf + outside);
        let paired = table.paired.map_or(outside, |paired| paired - ends);
        let call = table.call.unwrap_or(0.0);
        Pairs { leaf, ends: (ends - call).max(0.0), between: (paired - call).max(0.0) }
    }

    /// The same for calls that the interpreter does.
    pub fn interpreted(table: &Calibration) -> Self {
        let warm = Pairs::calibrated(table);
        let (inside, outside) = table.cold.unwrap_or((warm.leaf, warm.between));
        Pairs { leaf: inside, ends: inside + outside, between: outside }
    }

    /// The least that contexts took on average for a pair, where that is less than the calibration
    /// saw. A call without instrumentation costs `call`, which is theirs.
    pub fn learn(self, contexts: &[Passed], call: f64) -> Self {
        let least = |known: f64, found: &dyn Fn(&Passed) -> Option<f64>| {
            contexts.iter().filter_map(found).filter(|mean| *mean > 0.0).fold(known, f64::min)
        };
        let leaf = least(self.leaf, &|c| {
            (c.leaves >= ENOUGH && c.calling == 0.0).then(|| c.nanos / c.leaves)
        });
        let ends = least(self.ends, &|c| {
            let only = c.calling >= ENOUGH && c.leaves == 0.0 && c.between == 0.0;
            only.then(|| c.nanos / c.calling - call)
        });
        let between = least(self.between, &|c| {
            let rest = c.nanos - c.leaves * leaf - c.calling * (ends + call);
            (c.between >= ENOUGH).then(|| rest / c.between - call)
        });
        Pairs { leaf, ends, between }
    }

    /// From entry to exit.
    pub fn leaf(self) -> f64 {
        self.leaf
    }

    /// A mixture: a share of the context's own calls, and one of those that it made, at the price
    /// of another.
    pub fn mixed(self, other: Pairs, own: f64, made: f64) -> Self {
        let mix = |a: f64, b: f64, share: f64| a + share * (b - a);
        Pairs {
            leaf: mix(self.leaf, other.leaf, own),
            ends: mix(self.ends, other.ends, own),
            between: mix(self.between, other.between, made),
        }
    }

    /// A context's own time without its probes.
    pub fn net(self, passed: Passed) -> f64 {
        passed.nanos
            - passed.leaves * self.leaf
            - passed.calling * self.ends
            - passed.between * self.between
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::tests::costs;
    use tare_profile::facts::ProbeCost;

    /// Empty: 10 inside, 10 outside, 20 chained, 31 for a method that calls two; a call takes 1.
    fn calibrated() -> Pairs {
        let more = ProbeCost::of_lines(["paired 31000", "call-static 1000"]);
        let table = Calibration::of(&[costs(), more].concat()).unwrap();
        Pairs::calibrated(&table)
    }

    #[test]
    fn calls_are_told_apart_by_what_they_called() {
        assert_eq!(calibrated(), Pairs { leaf: 10.0, ends: 19.0, between: 10.0 });
        // Ten calls, of which two called something, seven times in all.
        let passed = Passed::of(1_000.0, 10.0, 2.0, 7.0);
        assert_eq!(passed, Passed { nanos: 1_000.0, leaves: 8.0, calling: 2.0, between: 5.0 });
        assert_eq!(calibrated().net(passed), 1_000.0 - 80.0 - 38.0 - 50.0);
        // What is damaged makes no negative numbers.
        assert_eq!(Passed::of(1.0, 3.0, 9.0, 2.0).between, 0.0);
    }

    #[test]
    fn the_least_of_all_contexts_is_learned() {
        let contexts = [
            Passed::of(8.0 * 5_000.0, 5_000.0, 0.0, 0.0),
            Passed::of(400.0 * 5_000.0, 5_000.0, 0.0, 0.0),
            Passed::of(3.0 * 10.0, 10.0, 0.0, 0.0),
            Passed::of(16.0 * 2_000.0, 2_000.0, 2_000.0, 2_000.0),
            Passed::of((16.0 + 9.0 * 7.0) * 2_000.0, 2_000.0, 2_000.0, 20_000.0),
        ];
        let learned = calibrated().learn(&contexts, 1.0);
        assert_eq!(learned, Pairs { leaf: 8.0, ends: 15.0, between: 6.0 });
        // What takes long teaches that probes cost no more than it, which is known already.
        assert_eq!(calibrated().learn(&contexts[1..3], 1.0), calibrated());
    }

    #[test]
    fn some_calls_are_interpreted() {
        let table = Calibration::of(&costs()).unwrap();
        let mixed = calibrated().mixed(Pairs::interpreted(&table), 0.1, 0.0);
        assert!((mixed.leaf - 29.0).abs() < 1e-9, "{mixed:?}");
        assert!((mixed.between - 10.0).abs() < 1e-9, "{mixed:?}");
    }
}
