//! What probes weigh between two events of a trace, by the sequence that the two belong to: a
//! transition from one method into a second, and one from the second into a third, with the types
//! of all three. Of each sequence the least that was ever seen is known: not of single times, since
//! a processor's clock may move in steps that are as long as a probe, but of means of a few. The
//! derivation is in docs/internals/times.md.
//!
//! The table is the same whether it is filled while events come or from a file, so it knows no
//! unit: ticks there, nanoseconds here.

use crate::method_type::MethodType;
use tare_profile::facts::{Cost, ProbeCost, SequenceCost};

/// How a thread goes from one method into the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Entry,
    Exit,
    /// By an exception.
    Thrown,
}

impl Transition {
    const ALL: [Transition; 3] = [Transition::Entry, Transition::Exit, Transition::Thrown];

    fn name(self) -> &'static str {
        match self {
            Transition::Entry => "entry",
            Transition::Exit => "exit",
            Transition::Thrown => "exception",
        }
    }
}

/// Two transitions and the methods around them. The time between them is that of the middle one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub before: MethodType,
    pub first: Transition,
    pub between: MethodType,
    pub second: Transition,
    pub after: MethodType,
}

impl Sequence {
    const COUNT: usize = MethodType::COUNT.pow(3) * 9;

    #[inline]
    fn index(self) -> usize {
        let pair = self.first as usize * 3 + self.second as usize;
        let types = self.before.index() * MethodType::COUNT + self.between.index();
        (pair * MethodType::COUNT * MethodType::COUNT + types) * MethodType::COUNT
            + self.after.index()
    }

    fn from_index(index: usize) -> Option<Self> {
        let (rest, after) = (index / MethodType::COUNT, index % MethodType::COUNT);
        let (rest, between) = (rest / MethodType::COUNT, rest % MethodType::COUNT);
        let (pair, before) = (rest / MethodType::COUNT, rest % MethodType::COUNT);
        let of = |index: usize| MethodType::from_index(index as u32);
        Some(Sequence {
            before: of(before)?,
            first: *Transition::ALL.get(pair / 3)?,
            between: of(between)?,
            second: *Transition::ALL.get(pair % 3)?,
            after: of(after)?,
        })
    }

    /// Sequences whose probes run alike: the same transitions, in code of the same kind.
    fn kin(self) -> usize {
        let code = if self.between.is_interpreted() {
            0
        } else if self.between.is_native() {
            1
        } else {
            2
        };
        let is_entry = |transition| usize::from(transition == Transition::Entry);
        (is_entry(self.first) * 2 + is_entry(self.second)) * 3 + code
    }

    /// `static tier 4`, `entry`, `tier 4`, `exit`, `static tier 4`
    fn names(self) -> [String; 5] {
        [
            self.before.name(),
            self.first.name().to_owned(),
            self.between.name(),
            self.second.name().to_owned(),
            self.after.name(),
        ]
    }

    fn from_names(names: &[String; 5]) -> Option<Self> {
        let [before, first, between, second, after] = names;
        let transition =
            |name: &str| Transition::ALL.into_iter().find(|known| known.name() == name);
        Some(Sequence {
            before: MethodType::from_name(before)?,
            first: transition(first)?,
            between: MethodType::from_name(between)?,
            second: transition(second)?,
            after: MethodType::from_name(after)?,
        })
    }
}

const KINS: usize = 12;
/// Of what was never seen.
const NEVER: u32 = u32::MAX;

/// Times of a sequence of which the mean is taken; the calibration has fewer, and is less
/// disturbed.
const BATCH: u32 = 64;
const EMPTY_BATCH: u32 = 16;

/// What calls cost without any probe, in the unit of the table: no part of what is subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    /// Of static methods and of others.
    compiled: [f64; 2],
    interpreted: [f64; 2],
}

impl Calls {
    /// As a calibration has measured them; `unit` is how many units a nanosecond has.
    pub fn of(costs: &[ProbeCost], unit: f64) -> Self {
        let figure = |name: &str| {
            let picos = costs.iter().find_map(|cost| match cost.cost {
                Cost::One(picos) if cost.work == name => Some(picos),
                _ => None,
            });
            picos.unwrap_or(0) as f64 / 1000.0 * unit
        };
        Calls {
            compiled: [figure("call"), figure("call-static")],
            interpreted: [figure("cold-call"), figure("cold-call-static")],
        }
    }

    fn of_call(&self, caller: MethodType, callee: MethodType) -> f64 {
        let interpreted = caller.is_interpreted() || callee.is_interpreted();
        let kind = if interpreted { &self.interpreted } else { &self.compiled };
        kind[usize::from(callee.is_static())]
    }

    /// What of a sequence's time is calls that nobody instruments. The probes stand at the
    /// beginning and at the end of a method's own code, so the call of a method and the return from
    /// it are its caller's; how a call's cost divides between the two is not known, and half each
    /// is taken.
    fn of_sequence(&self, sequence: Sequence) -> f64 {
        let Sequence { before, first, between, second, after } = sequence;
        let back = if first == Transition::Entry { 0.0 } else { self.of_call(between, before) };
        let on = if second == Transition::Entry { self.of_call(between, after) } else { 0.0 };
        (back + on) / 2.0
    }
}

/// Means are kept in so many parts of the unit.
pub const PARTS: u32 = 64;

/// What was seen of a sequence.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Of the batch under way.
    count: u32,
    sum: u64,
    /// The least mean, in parts of the unit.
    least: u32,
}

impl Seen {
    const NOTHING: Seen = Seen { count: 0, sum: 0, least: NEVER };

    /// Whether that makes the least mean less.
    #[inline]
    fn add(&mut self, length: u32, batch: u32) -> bool {
        self.sum += u64::from(length);
        self.count += 1;
        if self.count < batch {
            return false;
        }
        let mean = self.sum * u64::from(PARTS) / u64::from(batch);
        (self.count, self.sum) = (0, 0);
        let mean = u32::try_from(mean).unwrap_or(NEVER - 1);
        let is_less = mean < self.least;
        self.least = self.least.min(mean);
        is_less
    }
}

/// What is known of all sequences.
#[derive(Clone, Debug)]
pub struct Sequences {
    calls: Calls,
    /// Those of the program, and those of the calibration's empty methods.
    seen: Vec<Seen>,
    empty: Vec<Seen>,
    /// Of kin, the most of what empty methods cost.
    bound: [u32; KINS],
    /// What is subtracted of each, in parts of the unit.
    cost: Vec<u32>,
}

impl Sequences {
    pub fn new(calls: Calls) -> Self {
        Sequences {
            calls,
            seen: vec![Seen::NOTHING; Sequence::COUNT],
            empty: vec![Seen::NOTHING; Sequence::COUNT],
            bound: [NEVER; KINS],
            cost: vec![0; Sequence::COUNT],
        }
    }

    /// A sequence of the program took so long. What of that was its probes, as far as is known now,
    /// in parts of the unit.
    #[inline]
    pub fn see(&mut self, sequence: Sequence, length: u32) -> u32 {
        let at = sequence.index();
        if self.seen[at].add(length, BATCH) {
            match self.bound[sequence.kin()] {
                NEVER => self.settle_kin(sequence.kin()),
                bound => self.settle(sequence, bound),
            }
        }
        self.cost[at]
    }

    /// What a sequence weighs, of which it is not known how long it took.
    pub fn cost(&self, sequence: Sequence) -> u32 {
        self.cost[sequence.index()]
    }

    /// A sequence of the calibration, whose methods do nothing, took so long.
    pub fn calibrate(&mut self, sequence: Sequence, length: u32) {
        if self.empty[sequence.index()].add(length, EMPTY_BATCH) {
            self.bound_kin(sequence.kin());
        }
    }

    /// Which of kin costs most may have changed, and with it what all of them cost.
    fn bound_kin(&mut self, kin: usize) {
        let known = self.sequences(&self.empty).filter(|(known, _)| known.kin() == kin);
        self.bound[kin] = known.map(|(_, least)| least).max().unwrap_or(NEVER);
        self.settle_kin(kin);
    }

    /// A program need not have an empty method. So no sequence costs more than those of the
    /// calibration do, and what was not seen often enough as much; without one, of kin the least.
    fn settle_kin(&mut self, kin: usize) {
        let seen = || self.sequences(&self.seen).filter(|(known, _)| known.kin() == kin);
        let least = seen().map(|(_, least)| least).min();
        let bound = if self.bound[kin] == NEVER { least } else { Some(self.bound[kin]) };
        let Some(bound) = bound else { return };
        let all = (0..Sequence::COUNT).filter_map(Sequence::from_index);
        let all: Vec<Sequence> = all.filter(|sequence| sequence.kin() == kin).collect();
        all.into_iter().for_each(|sequence| self.settle(sequence, bound));
    }

    fn settle(&mut self, sequence: Sequence, bound: u32) {
        let at = sequence.index();
        let call = self.calls.of_sequence(sequence) * f64::from(PARTS);
        self.cost[at] = (f64::from(self.seen[at].least.min(bound)) - call).max(0.0) as u32;
    }

    fn sequences<'s>(&self, table: &'s [Seen]) -> impl Iterator<Item = (Sequence, u32)> + 's {
        let seen = table.iter().enumerate().filter(|(_, seen)| seen.least != NEVER);
        seen.filter_map(|(at, seen)| Some((Sequence::from_index(at)?, seen.least)))
    }

    /// The table, of the calibration first; `unit` is how many units a nanosecond has.
    pub fn costs(&self, unit: f64) -> Vec<SequenceCost> {
        let picos =
            |least: u32| (f64::from(least) / f64::from(PARTS) / unit * 1000.0).round() as u64;
        let costs = |calibrated, table| {
            self.sequences(table).map(move |(known, least)| SequenceCost {
                calibrated,
                sequence: known.names(),
                picos: picos(least),
            })
        };
        costs(true, &self.empty).chain(costs(false, &self.seen)).collect()
    }

    /// Takes what a table has of the calibration, so that a program is looked at anew.
    pub fn take_calibrated(&mut self, costs: &[SequenceCost], unit: f64) {
        for cost in costs.iter().filter(|cost| cost.calibrated) {
            if let Some(sequence) = Sequence::from_names(&cost.sequence) {
                let parts = cost.picos as f64 / 1000.0 * unit * f64::from(PARTS);
                self.empty[sequence.index()].least = parts.round() as u32;
                self.bound_kin(sequence.kin());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(first: Transition, second: Transition) -> Sequence {
        let tier = MethodType::new(false, 4);
        Sequence { before: tier, first, between: tier, second, after: tier }
    }

    #[test]
    fn every_sequence_has_a_place_and_a_name() {
        for at in 0..Sequence::COUNT {
            let sequence = Sequence::from_index(at).unwrap();
            assert_eq!(sequence.index(), at);
            assert_eq!(Sequence::from_names(&sequence.names()), Some(sequence));
            assert!(sequence.kin() < KINS);
        }
    }

    /// As often as it takes for a mean, and what is then subtracted, in whole units.
    fn see(table: &mut Sequences, sequence: Sequence, lengths: &[u32]) -> u32 {
        for length in lengths.iter().cycle().take(BATCH as usize) {
            table.see(sequence, *length);
        }
        table.cost(sequence) / PARTS
    }

    fn calibrate(table: &mut Sequences, sequence: Sequence, length: u32) {
        (0..EMPTY_BATCH).for_each(|_| table.calibrate(sequence, length));
    }

    #[test]
    fn the_least_is_subtracted_but_for_the_call_itself() {
        let lines = ["clock 1", "call 4000", "call-static 2000", "cold-call 50000"];
        let calls = Calls::of(&ProbeCost::of_lines(lines), 1.0);
        let mut table = Sequences::new(calls);
        let leaf = sequence(Transition::Entry, Transition::Exit);
        let between = sequence(Transition::Exit, Transition::Entry);
        assert_eq!(see(&mut table, leaf, &[30]), 30);
        assert_eq!(see(&mut table, leaf, &[10, 30]), 20, "a clock with long steps");
        assert_eq!(see(&mut table, leaf, &[900]), 20);
        assert_eq!(see(&mut table, between, &[25]), 21, "return and call of what is not static");
        let into = sequence(Transition::Entry, Transition::Entry);
        let into = Sequence { after: MethodType::new(true, 1), ..into };
        assert_eq!(see(&mut table, into, &[25]), 24);
    }

    #[test]
    fn a_program_without_short_methods_does_not_lose_its_time() {
        let mut table = Sequences::new(Calls::default());
        let leaf = sequence(Transition::Entry, Transition::Exit);
        let other = Sequence { before: MethodType::OUTSIDE, after: MethodType::OUTSIDE, ..leaf };
        assert_eq!(see(&mut table, leaf, &[20_000]), 20_000);
        calibrate(&mut table, Sequence { before: MethodType::new(true, 4), ..leaf }, 30);
        calibrate(&mut table, leaf, 22);
        assert_eq!(table.cost(leaf), 30 * PARTS, "no more than the dearest of the empty ones");
        assert_eq!(see(&mut table, other, &[25]), 25);
        // What the calibration saw is kept, and the program can be looked at again.
        let mut again = Sequences::new(Calls::default());
        again.take_calibrated(&table.costs(2.0), 2.0);
        assert_eq!(again.cost(other), 30 * PARTS, "not seen yet");
        assert_eq!(see(&mut again, other, &[25]), 25);
    }

    #[test]
    fn without_a_calibration_kin_bound_each_other() {
        let mut table = Sequences::new(Calls::default());
        let leaf = sequence(Transition::Entry, Transition::Exit);
        see(&mut table, Sequence { before: MethodType::OUTSIDE, ..leaf }, &[40]);
        assert_eq!(see(&mut table, leaf, &[900]), 40);
        assert_eq!(table.cost(sequence(Transition::Exit, Transition::Exit)), 0, "nothing is known");
    }
}
