//! Collections and pauses of a run: sums by kind, the longest, and how much of other waits they are;
//! and what the JVM's compilers did.

use std::collections::HashMap;
use std::ops::Range;
use tare_profile::{
    Collection, Event, Profile, Safepoint, collections, compiled, safepoints, traps,
};

/// A pause of so many nanoseconds is worth a word.
const LONG: u64 = 10_000_000;

/// Some pauses, summed up; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseSum {
    pub count: u64,
    pub total: u64,
    pub longest: u64,
    /// Of the total, until all threads were at the safepoint, and the longest time for that.
    pub reach: u64,
    pub longest_reach: u64,
}

impl PauseSum {
    fn add(&mut self, count: u64, duration: u64, reach: u64) {
        self.count += count;
        self.total = self.total.saturating_add(duration);
        self.reach = self.reach.saturating_add(reach);
        // Of several that nobody saw one by one no length is known.
        if count == 1 {
            self.longest = self.longest.max(duration);
            self.longest_reach = self.longest_reach.max(reach);
        }
    }

    #[must_use]
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }
}

/// All pauses of a run, or of a part of it.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    pub collections: Vec<Collection>,
    pub safepoints: Vec<Safepoint>,
    /// `None` if nothing is told of them.
    pub compilers: Option<Compilers>,
    /// The recording has changed the program's code, which takes safepoints, too.
    pub weaves: bool,
    /// The same of a climb, which says when: others may have changed code at other times.
    pub weaving: Vec<Range<u64>>,
}

/// HotSpot's operation in which it exchanges the code of classes.
const REDEFINES: &str = "RedefineClasses";

/// What the JVM's compilers did in all; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilers {
    pub methods: u64,
    /// How long all of them worked.
    pub work: u64,
    pub bailouts: u64,
    pub invalidated: u64,
    /// How often compiled code was left for something unexpected; `None` if that is not known.
    pub traps: Option<u64>,
    /// The same by HotSpot's reason, the most frequent first.
    pub reasons: Vec<(String, u64)>,
    /// The second with the most work: when it began, and how much work.
    pub busiest: (u64, u64),
}

impl Compilers {
    fn of(profile: &Profile, within: impl Fn(u64, u64) -> bool) -> Option<Self> {
        let all = compiled(profile);
        let all = all.iter().filter(|one| within(one.time, one.time.saturating_add(one.duration)));
        let sum = all.fold(None, |sum: Option<Compilers>, one| {
            let mut sum = sum.unwrap_or_default();
            sum.methods += one.methods;
            sum.work = sum.work.saturating_add(one.work);
            sum.bailouts += one.bailouts;
            sum.invalidated += one.invalidated;
            sum.traps = one.traps.map(|traps| sum.traps.unwrap_or(0) + traps).or(sum.traps);
            if one.work > sum.busiest.1 {
                sum.busiest = (one.time, one.work);
            }
            Some(sum)
        });
        let mut reasons: HashMap<String, u64> = HashMap::new();
        for one in traps(profile) {
            if within(one.time, one.time.saturating_add(one.duration)) {
                *reasons.entry(one.reason).or_default() += one.count;
            }
        }
        let mut reasons: Vec<(String, u64)> = reasons.into_iter().collect();
        reasons.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        sum.map(|sum| Compilers { reasons, ..sum })
    }
}

/// When a climb had classes loaded again.
fn weaving(profile: &Profile) -> Vec<Range<u64>> {
    let tables = profile.all_events().map(|(_, table)| table);
    let batches = tables.filter(|table| table.kind().name == "hook-batch");
    let of = |batch: Event| batch.time..batch.time.saturating_add(batch.duration);
    batches.flat_map(|table| table.events().map(of)).collect()
}

impl Pauses {
    /// `None` if there are none then.
    #[must_use]
    pub fn of(profile: &Profile, time: Option<&Range<u64>>) -> Option<Self> {
        let within =
            |from: u64, to: u64| time.is_none_or(|time| from < time.end && to >= time.start);
        let mut pauses = Pauses {
            collections: collections(profile),
            safepoints: safepoints(profile),
            compilers: Compilers::of(profile, within),
            weaves: profile.run.options.contains(&("kind".into(), "exact".into())),
            weaving: weaving(profile),
        };
        pauses.collections.retain(|one| within(one.time, one.end()));
        pauses.safepoints.retain(|one| within(one.time, one.end()));
        let none = pauses.collections.is_empty()
            && pauses.safepoints.is_empty()
            && pauses.compilers.is_none();
        (!none).then_some(pauses)
    }

    /// Whether a safepoint is, as far as can be told, one in which the recording has changed the
    /// program's code: its own doing, and told elsewhere.
    #[must_use]
    pub fn is_own(&self, one: &Safepoint) -> bool {
        let overlaps = |batch: &Range<u64>| one.time < batch.end && one.end() > batch.start;
        one.reason == REDEFINES && (self.weaves || self.weaving.iter().any(overlaps))
    }

    /// The same of all safepoints of a reason.
    #[must_use]
    pub fn are_own(&self, reason: &str) -> bool {
        let mut of_reason = self.safepoints.iter().filter(|one| one.reason == reason);
        reason == REDEFINES && of_reason.all(|one| self.is_own(one))
    }

    /// Safepoints that are not the recording's own doing.
    fn of_program(&self) -> impl Iterator<Item = &Safepoint> {
        self.safepoints.iter().filter(|one| !self.is_own(one))
    }

    /// Whether they are worth a place in what is about something else: those that take one per cent
    /// of a run, or one of ten milliseconds. What the recording does itself does not count.
    #[must_use]
    pub fn are_worth(&self, run: u64) -> bool {
        let stops = self.of_program().map(|one| one.duration).sum::<u64>();
        let collections = self.collections.iter().map(|one| one.duration);
        let longest = self.of_program().filter(|one| one.count == 1).map(|one| one.duration);
        let is_long = collections.clone().chain(longest).any(|length| length >= LONG);
        is_long || stops.max(collections.sum()).saturating_mul(100) >= run.max(1)
    }

    /// Collections by kind, those that took most first. A pause that has more than one cause is
    /// still one.
    #[must_use]
    pub fn by_kind(&self) -> Vec<(&str, PauseSum)> {
        sums(
            self.collections
                .iter()
                .map(|one| (one.kind.as_str(), 1, one.duration, one.reach.unwrap_or(0))),
        )
    }

    /// Safepoints by reason, in the same way.
    #[must_use]
    pub fn by_reason(&self) -> Vec<(&str, PauseSum)> {
        sums(
            self.safepoints
                .iter()
                .map(|one| (one.reason.as_str(), one.count, one.duration, one.reach)),
        )
    }

    /// The longest collections.
    #[must_use]
    pub fn longest(&self, most: usize) -> Vec<&Collection> {
        let mut all: Vec<&Collection> = self.collections.iter().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.duration));
        all.truncate(most);
        all
    }

    /// The longest safepoints of those that were seen one by one.
    #[must_use]
    pub fn longest_safepoints(&self, most: usize) -> Vec<&Safepoint> {
        let mut all: Vec<&Safepoint> =
            self.safepoints.iter().filter(|one| one.count == 1).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.duration));
        all.truncate(most);
        all
    }

    /// The safepoint that took longest to reach, of those that the program, or the JVM, asked for.
    #[must_use]
    pub fn slowest_to_reach(&self) -> Option<&Safepoint> {
        let alone = self.of_program().filter(|one| one.count == 1);
        alone.max_by_key(|one| one.reach)
    }

    /// How long the program stood still in all, as far as is known: safepoints, or where these are
    /// not told, collections.
    #[must_use]
    pub fn stopped(&self) -> u64 {
        let of_safepoints = self.safepoints.iter().map(|one| one.duration).sum::<u64>();
        of_safepoints.max(self.collections.iter().map(|one| one.duration).sum())
    }

    /// When the program stood still, in order and without overlaps.
    #[must_use]
    pub fn stretches(&self) -> Vec<Range<u64>> {
        self.merged(self.safepoints.iter())
    }

    /// The same without what the recording has done itself.
    #[must_use]
    pub fn stretches_of_program(&self) -> Vec<Range<u64>> {
        self.merged(self.of_program())
    }

    fn merged<'a>(&self, safepoints: impl Iterator<Item = &'a Safepoint>) -> Vec<Range<u64>> {
        let collections = self.collections.iter().map(|one| one.time..one.end());
        let safepoints = safepoints.filter(|one| one.count == 1);
        let mut all: Vec<Range<u64>> =
            collections.chain(safepoints.map(|one| one.time..one.end())).collect();
        all.sort_by_key(|stretch| stretch.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for stretch in all {
            match merged.last_mut() {
                Some(last) if stretch.start <= last.end => last.end = last.end.max(stretch.end),
                _ => merged.push(stretch),
            }
        }
        merged
    }
}

/// How much of some time lies in stretches that are in order and do not overlap.
#[must_use]
pub fn overlap(stretches: &[Range<u64>], time: &Range<u64>) -> u64 {
    let first = stretches.partition_point(|stretch| stretch.end <= time.start);
    let inside = stretches[first..].iter().take_while(|stretch| stretch.start < time.end);
    inside.map(|stretch| stretch.end.min(time.end) - stretch.start.max(time.start)).sum()
}

fn sums<'a>(all: impl Iterator<Item = (&'a str, u64, u64, u64)>) -> Vec<(&'a str, PauseSum)> {
    let mut sums: HashMap<&str, PauseSum> = HashMap::new();
    for (name, count, duration, reach) in all {
        sums.entry(name).or_default().add(count, duration, reach);
    }
    let mut sums: Vec<(&str, PauseSum)> = sums.into_iter().collect();
    sums.sort_by_key(|(name, sum)| (std::cmp::Reverse(sum.total), *name));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, EventKind, FieldType, FieldValue, ThreadId, Unit};

    fn collection(number: u64, kind: &str, time: u64, duration: u64) -> Collection {
        Collection {
            number,
            time,
            duration,
            thread: ThreadId::UNKNOWN,
            kind: kind.to_owned(),
            cause: String::new(),
            collector: String::new(),
            heap_before: None,
            heap_after: None,
            promoted: None,
            reach: Some(1),
        }
    }

    fn safepoint(time: u64, duration: u64, count: u64) -> Safepoint {
        let reason = "Cleanup".to_owned();
        Safepoint { number: 1, time, duration, reason, count, reach: 2, running: Some(0) }
    }

    #[test]
    fn pauses_are_summed_up_by_kind() {
        let pauses = Pauses {
            collections: vec![
                collection(1, "young", 10, 5),
                collection(2, "full", 30, 40),
                collection(3, "young", 90, 7),
            ],
            safepoints: vec![safepoint(9, 8, 1), safepoint(60, 100, 7)],
            ..Pauses::default()
        };
        let [full, young] = pauses.by_kind()[..] else { panic!("two kinds") };
        assert_eq!((full.0, full.1.count, full.1.longest), ("full", 1, 40));
        assert_eq!((young.1.total, young.1.mean(), young.1.reach), (12, 6, 2));
        let (_, cleanup) = pauses.by_reason()[0];
        assert_eq!((cleanup.count, cleanup.total, cleanup.longest), (8, 108, 8));
        assert_eq!(pauses.longest(1)[0].number, 2);
        assert_eq!(pauses.longest_safepoints(5).len(), 1);
        assert_eq!(pauses.stopped(), 108);
        assert_eq!(pauses.stretches(), [9..17, 30..70, 90..97]);
    }

    #[test]
    fn what_a_recording_does_itself_is_not_the_programs() {
        let redefines = Safepoint { reason: REDEFINES.to_owned(), ..safepoint(9, LONG, 1) };
        let own = Pauses {
            safepoints: vec![redefines, safepoint(60, 9, 1)],
            weaves: true,
            ..Pauses::default()
        };
        assert!(!own.are_worth(LONG));
        assert_eq!(own.slowest_to_reach().map(|one| one.time), Some(60));
        assert_eq!((own.stretches().len(), own.stretches_of_program()[0].clone()), (1, 60..69));
        assert_eq!((own.stopped(), own.longest_safepoints(1)[0].time), (LONG + 9, 9), "still told");
        assert!(own.are_own(REDEFINES) && !own.are_own("G1CollectForAllocation"));
        let theirs = Pauses { weaves: false, ..own };
        assert!(theirs.are_worth(LONG) && theirs.are_worth(u64::MAX));
        // A climb says when it did.
        let climb = Pauses { weaving: vec![1..2, 5..10], ..theirs.clone() };
        assert!(!climb.are_worth(LONG) && climb.are_own(REDEFINES));
        let before = Pauses { weaving: vec![1..2, 5..9], ..theirs };
        assert!(before.are_worth(LONG) && !before.are_own(REDEFINES));
    }

    #[test]
    fn the_work_of_compilers_is_summed_up_also_of_a_part() {
        let (count, time) =
            (FieldType::Integer(Unit::Count), FieldType::Integer(Unit::Nanoseconds));
        let mut profile = Profile::new();
        assert!(Pauses::of(&profile, None).is_none());
        let fields = [("compilations", count), ("compile-time", time), ("uncommon-traps", count)];
        let work = profile.events_of(&EventKind::new("compilers", &fields));
        let fields = [("reason", FieldType::Text), ("count", count)];
        let traps = profile.events_of(&EventKind::new("uncommon-traps", &fields));
        for (time, methods, spent, left, reason) in
            [(0, 5, 700, 3, "unstable_if"), (10, 2, 900, -1, "class_check"), (20, 1, 40, 4, "null")]
        {
            let event = Event { time, duration: 9, ..Event::default() };
            let values = [methods, spent, left].map(FieldValue::Integer);
            profile.events_mut(work).push(event, &values);
            let reason = FieldValue::Text(profile.strings.intern(reason));
            profile.events_mut(traps).push(event, &[reason, FieldValue::Integer(methods)]);
        }
        let all = Pauses::of(&profile, None).and_then(|all| all.compilers).expect("compilers");
        assert_eq!((all.methods, all.work, all.traps, all.busiest), (8, 1640, Some(7), (10, 900)));
        let reasons: Vec<_> = all.reasons.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(reasons, [("unstable_if", 5), ("class_check", 2), ("null", 1)]);
        let part = Pauses::of(&profile, Some(&(10..15))).and_then(|all| all.compilers);
        assert_eq!(part.map(|part| (part.methods, part.traps)), Some((2, None)));
    }

    #[test]
    fn overlaps_are_of_stretches_and_a_time() {
        let stretches = [10..20, 30..40];
        let of = |time: Range<u64>| overlap(&stretches, &time);
        assert_eq!([of(0..10), of(0..15), of(12..35), of(0..99), of(40..50)], [0, 5, 13, 20, 0]);
    }
}
