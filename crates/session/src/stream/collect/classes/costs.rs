//! Which class the time belongs to that the JVM has summed up.
//!
//! The JVM tells of a class at the end of its definition and of its linking, and adds to its sums
//! when the outermost work of a kind on a thread is over. So what was added since the last event is
//! the time of classes that were told of just before, mostly of one:
//!
//! | sum | is added | belongs to |
//! |---|---|---|
//! | boot, shared | just before the class is told of, with the superclasses that it needed | that class, without what its superclasses took |
//! | define | after the outermost class was told of | the classes of that thread that wait for it; a class gets no more than passed since the one before it |
//! | search | after that | the same classes, in equal parts; or the class that a loader has found |
//! | verify | just before the class is told to be linked | that class |
//! | link | after it was told of | the classes of that thread that wait for it, as above |
//!
//! The sums are those of all threads. When several load at a time, what was added goes to the
//! thread of the event, else to the one that told of a class last; how much that was is counted.

use std::collections::HashMap;
use tare_protocol::ClassCost;

/// The JVM's sums, in the order of [`ClassCost`].
pub type Sums = [u64; ClassCost::ALL.len()];

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub enum About {
    /// A class was loaded: its number, and whether the JVM's own loader did it; a hidden one is
    /// defined without being timed.
    Load {
        number: u64,
        boot: bool,
        hidden: bool,
    },
    /// A loader has found a class that was there.
    Found {
        number: u64,
    },
    Link {
        number: u64,
    },
    /// Nothing but the sums.
    Sums,
}

/// An event: when its callback began, what our own code has taken, and what was added to the sums.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub thread: u32,
    pub time: u64,
    pub own: u64,
    pub sums: Sums,
}

/// What a class has cost.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Cost {
    pub search: u64,
    pub define: u64,
    pub link: u64,
    pub verify: u64,
}

/// Times come from another process, which may say anything.
fn more(sum: &mut u64, time: u64) {
    *sum = sum.saturating_add(time);
}

fn sum(times: impl IntoIterator<Item = u64>) -> u64 {
    times.into_iter().fold(0, u64::saturating_add)
}

impl Cost {
    pub fn add(&mut self, other: Cost) {
        more(&mut self.search, other.search);
        more(&mut self.define, other.define);
        more(&mut self.link, other.link);
        more(&mut self.verify, other.verify);
    }

    pub fn sum(self) -> u64 {
        sum([self.search, self.define, self.link, self.verify])
    }
}

/// A class that waits for what it has cost.
#[derive(Clone, Copy)]
struct Waiting {
    number: u64,
    time: u64,
    own: u64,
}

impl Waiting {
    fn end(&self) -> u64 {
        self.time.saturating_add(self.own)
    }
}

/// A class of the JVM's own loader, or another that is timed by nobody, and what it took in all.
#[derive(Clone, Copy)]
struct Inner {
    time: u64,
    whole: u64,
    own: u64,
}

#[derive(Default)]
struct Track {
    defining: Vec<Waiting>,
    linking: Vec<Waiting>,
    /// The classes whose definition was told last.
    nest: Vec<u64>,
    inner: Vec<Inner>,
    last: u64,
}

/// As many may wait on one thread; superclasses are fewer.
const MOST_WAITING: usize = 64;

/// Threads that are kept; of more, those without anything to come go first.
const MOST_THREADS: usize = 1 << 16;

/// What may pass between the end of a callback and the end of what the JVM measures.
const SLACK: u64 = 5_000;

#[derive(Default)]
pub struct Costs {
    tracks: HashMap<u32, Track>,
    /// Time of boot classes, and of verification, whose class is yet to be told.
    early_boot: u64,
    early_verify: u64,
    /// What the JVM has in two of its sums.
    pub twice: u64,
    /// What was told while several threads waited for it.
    pub shared: u64,
    /// What belongs to no class that is known.
    pub nobodys: u64,
    /// All that the JVM has told, and what of it our callbacks took.
    pub told: u64,
    pub own: u64,
}

impl Costs {
    /// What an event says of the classes before it and of its own: numbers and costs.
    pub fn take(&mut self, about: About, told: &Told, mut out: impl FnMut(u64, Cost)) {
        let of = |cost: ClassCost| told.sums[cost as usize];
        more(&mut self.told, sum(told.sums));
        if self.tracks.len() > MOST_THREADS {
            self.tracks.retain(|_, track| !track.defining.is_empty() || !track.linking.is_empty());
        }
        let defined = self.share_out(told, of(ClassCost::Define), |track| &mut track.defining);
        if !defined.is_empty() {
            let numbers = defined.iter().map(|(number, _)| *number).collect();
            self.tracks.entry(told.thread).or_default().nest = numbers;
        }
        for (number, define) in defined {
            out(number, Cost { define, ..Cost::default() });
        }
        self.searched(about, told, of(ClassCost::Search), &mut out);
        for (number, link) in self.share_out(told, of(ClassCost::Link), |track| &mut track.linking)
        {
            out(number, Cost { link, ..Cost::default() });
        }
        more(&mut self.early_verify, of(ClassCost::Verify));
        more(&mut self.early_boot, sum([of(ClassCost::Boot), of(ClassCost::Shared)]));
        let waiting = |number| Waiting { number, time: told.time, own: told.own };
        match about {
            About::Load { number, boot: true, .. } => {
                let define = self.booted(told);
                out(number, Cost { define, ..Cost::default() });
            }
            About::Load { number, hidden: false, .. } => {
                self.track(told).defining.push(waiting(number));
            }
            About::Load { .. } | About::Found { .. } => {
                self.track(told).inner.push(Inner { time: told.time, whole: 0, own: told.own });
            }
            About::Link { number } => {
                let verify = self.verified(told);
                if verify > 0 {
                    out(number, Cost { verify, ..Cost::default() });
                }
                self.track(told).linking.push(waiting(number));
            }
            About::Sums => {}
        }
        if !matches!(about, About::Sums) {
            let track = self.track(told);
            track.last = told.time;
            for list in [&mut track.defining, &mut track.linking] {
                let over = list.len().saturating_sub(MOST_WAITING);
                list.drain(..over);
            }
            let over = track.inner.len().saturating_sub(MOST_WAITING);
            track.inner.drain(..over);
        }
    }

    /// What is left at the end: nobody knows whose it is.
    pub fn end(&mut self) {
        let left = [&mut self.early_boot, &mut self.early_verify].map(std::mem::take);
        more(&mut self.nobodys, sum(left));
    }

    fn track(&mut self, told: &Told) -> &mut Track {
        self.tracks.entry(told.thread).or_default()
    }

    /// Shares time out among the classes of one thread that wait for it, the last one first: none
    /// took longer than what passed since the one before it, and the first has the rest.
    fn share_out(
        &mut self,
        told: &Told,
        time: u64,
        list: impl Fn(&mut Track) -> &mut Vec<Waiting>,
    ) -> Vec<(u64, u64)> {
        if time == 0 {
            return Vec::new();
        }
        let mut who = Vec::new();
        for (thread, track) in &mut self.tracks {
            if !list(track).is_empty() {
                let is_own = *thread == told.thread;
                who.push((is_own, track.last, *thread));
            }
        }
        if who.len() > 1 {
            more(&mut self.shared, time);
        }
        let Some((_, _, thread)) = who.into_iter().max() else {
            more(&mut self.nobodys, time);
            return Vec::new();
        };
        let Some(track) = self.tracks.get_mut(&thread) else { return Vec::new() };
        let waiting = std::mem::take(list(track));
        let mut rest = time;
        let mut shares = Vec::new();
        for (at, class) in waiting.iter().enumerate().rev() {
            let before = at.checked_sub(1).and_then(|at| waiting.get(at));
            let most = before.map_or(u64::MAX, |before| {
                sum([class.time.saturating_sub(before.end()), class.own, SLACK])
            });
            let gross = rest.min(most);
            rest -= gross;
            let own = class.own.min(gross);
            more(&mut self.own, own);
            shares.push((class.number, gross - own));
        }
        shares
    }

    /// Time that loaders have spent looking for classes.
    fn searched(&mut self, about: About, told: &Told, time: u64, out: &mut impl FnMut(u64, Cost)) {
        if time == 0 {
            return;
        }
        let found = match about {
            About::Found { number } => vec![number],
            _ => Vec::new(),
        };
        let own = self.track(told).nest.clone();
        let latest = || {
            let tracks = self.tracks.values().filter(|track| !track.nest.is_empty());
            tracks.max_by_key(|track| track.last).map(|track| track.nest.clone())
        };
        let whose = match (found.is_empty(), own.is_empty()) {
            (false, _) => found,
            (true, false) => own,
            (true, true) => latest().unwrap_or_default(),
        };
        if whose.is_empty() {
            more(&mut self.nobodys, time);
            return;
        }
        let part = time / whose.len() as u64;
        let mut rest = time - part * whose.len() as u64;
        for number in whose {
            let search = part + std::mem::take(&mut rest);
            out(number, Cost { search, ..Cost::default() });
        }
    }

    /// A class of the JVM's own loader is there. What was told since the last one contains the
    /// superclasses that were loaded for it meanwhile, and our callbacks for them.
    fn booted(&mut self, told: &Told) -> u64 {
        let whole = std::mem::take(&mut self.early_boot);
        let since = told.time.saturating_sub(whole);
        let track = self.track(told);
        let (mut nested, mut own) = (0, 0);
        while let Some(inner) = track.inner.last().filter(|inner| inner.time >= since) {
            more(&mut nested, inner.whole);
            more(&mut own, inner.own);
            track.inner.pop();
        }
        track.inner.push(Inner { time: told.time, whole, own: sum([told.own, own]) });
        let nested = nested.min(whole);
        let own = own.min(whole - nested);
        more(&mut self.twice, nested);
        more(&mut self.own, own);
        whole - nested - own
    }

    /// A class was verified just before. Classes that are timed by nobody may have been loaded for
    /// that, with our callbacks.
    fn verified(&mut self, told: &Told) -> u64 {
        let whole = std::mem::take(&mut self.early_verify);
        let since = told.time.saturating_sub(whole);
        let inner = self.track(told).inner.iter().filter(|inner| inner.time >= since);
        let own = sum(inner.map(|inner| inner.own)).min(whole);
        more(&mut self.own, own);
        whole - own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(thread: u32, time: u64, own: u64, sums: &[(ClassCost, u64)]) -> Told {
        let mut told = Told { thread, time, own, sums: Sums::default() };
        sums.iter().for_each(|(cost, value)| told.sums[*cost as usize] = *value);
        told
    }

    /// What each class has cost in the end.
    fn cost(events: &[(About, Told)]) -> (HashMap<u64, Cost>, Costs) {
        let (mut costs, mut all) = (Costs::default(), HashMap::<u64, Cost>::new());
        for (about, told) in events {
            costs.take(*about, told, |number, cost| {
                all.entry(number).or_default().add(cost);
            });
        }
        costs.end();
        // Nothing is lost, and nothing is there twice.
        let classes = all.values().map(|cost| cost.sum()).sum::<u64>();
        assert_eq!(classes + costs.nobodys + costs.own + costs.twice, costs.told);
        (all, costs)
    }

    fn app(number: u64) -> About {
        About::Load { number, boot: false, hidden: false }
    }

    #[test]
    fn a_superclass_has_its_own_time_and_none_of_the_subclass() {
        use ClassCost::{Define, Search};
        // The superclass 1 is defined while 2 is: both are told, then the time of both, of which
        // 30 microseconds passed after the superclass was there.
        let (all, costs) = cost(&[
            (app(1), told(7, 100_000, 2_000, &[])),
            (app(2), told(7, 132_000, 3_000, &[])),
            (About::Sums, told(0, 900_000, 0, &[(Define, 95_000), (Search, 40_001)])),
        ]);
        assert_eq!(all[&2].define, 30_000 + SLACK);
        assert_eq!(all[&1].define, 95_000 - 30_000 - SLACK - 2_000 - 3_000);
        assert_eq!((all[&1].search + all[&2].search, costs.own), (40_001, 5_000));
        assert_eq!((costs.shared, costs.nobodys), (0, 0));
    }

    /// A JVM that says nonsense is told of with the largest times there are.
    #[test]
    fn times_beyond_all_bounds_stay_there() {
        use ClassCost::{Boot, Define, Link, Search, Shared, Verify};
        const MOST: u64 = u64::MAX;
        let all = [Search, Define, Link, Verify, Boot, Shared].map(|cost| (cost, MOST));
        let mut costs = Costs::default();
        let mut most = Cost::default();
        for number in 1..4 {
            let boot = About::Load { number, boot: true, hidden: false };
            for about in [app(number), boot, About::Link { number }, About::Sums] {
                costs.take(about, &told(7, MOST, MOST, &all), |_, cost| most.add(cost));
            }
        }
        costs.end();
        assert_eq!((costs.told, costs.own, costs.nobodys), (MOST, MOST, MOST));
        assert!(most.sum() > 0);
    }

    #[test]
    fn a_class_that_came_long_before_gets_nothing() {
        use ClassCost::Define;
        // Class 1 came from an archive: it was told of, and no time with it.
        let (all, _) = cost(&[
            (app(1), told(7, 100_000, 0, &[])),
            (app(2), told(7, 900_000, 0, &[])),
            (app(3), told(7, 990_000, 0, &[(Define, 50_000)])),
            (About::Sums, told(0, 999_000, 0, &[(Define, 8_000)])),
        ]);
        assert_eq!(all.get(&1).map_or(0, |cost| cost.define), 0);
        assert_eq!((all[&2].define, all[&3].define), (50_000, 8_000));
    }

    #[test]
    fn of_boot_classes_the_jvm_has_superclasses_twice() {
        use ClassCost::{Boot, Shared};
        let boot = |number| About::Load { number, boot: true, hidden: false };
        // 1 is the superclass of 2, whose time contains it and our callback; 3 is another.
        let (all, costs) = cost(&[
            (boot(1), told(7, 100_000, 1_000, &[(Boot, 20_000)])),
            (boot(2), told(7, 130_000, 1_000, &[(Boot, 60_000)])),
            (boot(3), told(7, 500_000, 1_000, &[(Shared, 5_000)])),
        ]);
        let defined = [1, 2, 3].map(|number| all[&number].define);
        assert_eq!(defined, [20_000, 39_000, 5_000]);
        assert_eq!((costs.twice, costs.own), (20_000, 1_000));
    }

    #[test]
    fn links_and_searches_go_to_their_classes() {
        use ClassCost::{Link, Search, Verify};
        let (all, costs) = cost(&[
            (About::Link { number: 1 }, told(7, 100_000, 500, &[(Verify, 9_000)])),
            (About::Link { number: 2 }, told(7, 200_000, 500, &[(Link, 3_500)])),
            (About::Found { number: 5 }, told(7, 300_000, 0, &[(Link, 4_500), (Search, 70)])),
        ]);
        assert_eq!(all[&1], Cost { link: 3_000, verify: 9_000, ..Cost::default() });
        assert_eq!(all[&2], Cost { link: 4_000, ..Cost::default() });
        assert_eq!((all[&5].search, costs.own), (70, 1_000));
    }

    #[test]
    fn what_several_threads_wait_for_is_counted() {
        use ClassCost::Define;
        let (all, costs) = cost(&[
            (app(1), told(7, 100_000, 0, &[])),
            (app(2), told(8, 110_000, 0, &[])),
            (app(3), told(7, 200_000, 0, &[(Define, 40_000)])),
            (About::Sums, told(0, 300_000, 0, &[(Define, 10_000)])),
            (About::Sums, told(0, 400_000, 0, &[(Define, 20_000)])),
            (About::Sums, told(0, 500_000, 0, &[(Define, 1)])),
        ]);
        let defined = [1, 2, 3].map(|number| all[&number].define);
        assert_eq!((defined, costs.shared), ([40_000, 20_000, 10_000], 50_000));
        assert_eq!(costs.nobodys, 1);
    }
}
