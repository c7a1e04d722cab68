//! Collections and pauses of a run: sums by kind, the longest, and how much of other waits they are.

use std::collections::HashMap;
use std::ops::Range;
use tare_profile::{Collection, Profile, Safepoint, collections, safepoints};

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
}

impl Pauses {
    /// `None` if there are none then.
    #[must_use]
    pub fn of(profile: &Profile, time: Option<&Range<u64>>) -> Option<Self> {
        let within =
            |from: u64, to: u64| time.is_none_or(|time| from < time.end && to >= time.start);
        let mut pauses =
            Pauses { collections: collections(profile), safepoints: safepoints(profile) };
        pauses.collections.retain(|one| within(one.time, one.end()));
        pauses.safepoints.retain(|one| within(one.time, one.end()));
        let none = pauses.collections.is_empty() && pauses.safepoints.is_empty();
        (!none).then_some(pauses)
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

    /// The safepoint that took longest to reach.
    #[must_use]
    pub fn slowest_to_reach(&self) -> Option<&Safepoint> {
        let alone = self.safepoints.iter().filter(|one| one.count == 1);
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
        let collections = self.collections.iter().map(|one| one.time..one.end());
        let safepoints = self.safepoints.iter().filter(|one| one.count == 1);
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
    use tare_profile::ThreadId;

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
    fn overlaps_are_of_stretches_and_a_time() {
        let stretches = [10..20, 30..40];
        let of = |time: Range<u64>| overlap(&stretches, &time);
        assert_eq!([of(0..10), of(0..15), of(12..35), of(0..99), of(40..50)], [0, 5, 13, 20, 0]);
    }
}
