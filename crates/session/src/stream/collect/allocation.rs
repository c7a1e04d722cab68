//! Sampled objects as values of the profile: what each of them stands for, by context and thread.
//! Which of them live, and for how long, is in `live`.
//!
//! The JVM meets an object of `size` bytes with a probability that grows with its size. So each
//! that it meets stands for as many as pass for one that is met, and for their bytes. Values are
//! whole numbers; what rounding leaves over goes to the next object of the same context.

use super::live::{Live, Object};
use super::{Addresses, Collector};
use std::collections::HashMap;
use tare_arena::samples::{DeclaredKind, StreamEvent};
use tare_profile::{ContextId, Profile, Row, SeriesId, SeriesInfo, TimeAxis, ValueKind};

/// Records that may wait for names of an allocation. Past it, unnamed methods stay unnamed.
const MOST_WAITING: usize = 1 << 18;

/// What the engine tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tells {
    /// An object was met.
    Allocation,
    /// It was found alive after a collection.
    Survived,
    /// It is gone.
    Gone,
    /// It stands for more of them from now on.
    Level,
    /// All that were there at a collection have been looked at.
    Swept,
}

/// The most fields that a record of the engine has.
const FIELDS: usize = 4;

/// A kind of event of the allocation engine, and where in it each of our fields is.
#[derive(Clone, Copy)]
pub struct AllocationKind {
    tells: Tells,
    at: [Option<usize>; FIELDS],
}

impl AllocationKind {
    /// `None` if it is none of this engine's.
    pub fn of(kind: &DeclaredKind) -> Option<Self> {
        let (tells, fields): (_, &[&str]) = match kind.name.as_str() {
            "allocation" => (Tells::Allocation, &["number", "size", "interval", "born"]),
            "live-survived" => (Tells::Survived, &["number", "level", "epoch"]),
            "live-gone" => (Tells::Gone, &["number", "epoch"]),
            "live-level" => (Tells::Level, &["number", "level"]),
            "live-swept" => (Tells::Swept, &["below", "epoch", "old"]),
            _ => return None,
        };
        let mut at = [None; FIELDS];
        for (at, field) in at.iter_mut().zip(fields) {
            *at = kind.fields.iter().position(|(name, _)| name == field);
        }
        Some(AllocationKind { tells, at })
    }
}

/// A record of the engine, with its fields in our order.
#[derive(Clone, Copy)]
struct Notice {
    tells: Tells,
    time: u64,
    java_id: u64,
    thread: u32,
    trace: u32,
    fields: [u64; FIELDS],
}

/// Bytes and objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount<T> {
    pub bytes: T,
    pub objects: T,
}

impl Amount<f64> {
    /// What an object of this size stands for that was met at this interval.
    pub fn of_sample(size: u64, interval: u64) -> Self {
        let size = size.max(1) as f64;
        let objects = match interval {
            // Every object is met.
            0 => 1.0,
            interval => 1.0 / -(-size / interval as f64).exp_m1(),
        };
        Amount { bytes: size * objects, objects }
    }

    pub fn times(self, factor: f64) -> Self {
        Amount { bytes: self.bytes * factor, objects: self.objects * factor }
    }
}

impl Amount<f64> {
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }
}

impl Amount<i64> {
    /// Sizes come from another process, which may say anything.
    pub fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.objects = self.objects.saturating_add(other.objects);
    }
}

/// What rounding has left over, by context. Beginning with a half is rounding to the nearest.
#[derive(Default)]
pub struct Fractions(HashMap<ContextId, Amount<f64>>);

impl Fractions {
    /// Whole numbers for an amount there, whose sums stay next to those of the amounts.
    pub fn whole(&mut self, context: ContextId, amount: Amount<f64>) -> Amount<i64> {
        let half = Amount { bytes: 0.5, objects: 0.5 };
        let left = self.0.entry(context).or_insert(half);
        let take = |left: &mut f64, value: f64| {
            let sum = *left + value;
            *left = sum - sum.floor();
            sum.floor() as i64
        };
        Amount {
            bytes: take(&mut left.bytes, amount.bytes),
            objects: take(&mut left.objects, amount.objects),
        }
    }
}

/// A series of bytes and one of objects.
#[derive(Clone, Copy)]
pub struct SeriesPair {
    bytes: SeriesId,
    objects: SeriesId,
}

impl SeriesPair {
    pub fn add(
        profile: &mut Profile,
        name: &str,
        kinds: [ValueKind; 2],
        interval: Option<u64>,
    ) -> Self {
        let [bytes, objects] = kinds.map(|kind| {
            let info = SeriesInfo::new(name, kind).with_time(TimeAxis::Exact);
            profile.add_series(match interval {
                Some(interval) => info.with_period(interval, ValueKind::AllocatedBytes),
                None => info,
            })
        });
        SeriesPair { bytes, objects }
    }

    /// `row` says where and when.
    pub fn push(self, profile: &mut Profile, row: Row, amount: Amount<i64>) {
        profile.series_mut(self.bytes).push(Row { value: amount.bytes, ..row });
        profile.series_mut(self.objects).push(Row { value: amount.objects, ..row });
    }
}

/// What the stream has told of objects.
pub struct Allocation {
    /// Bytes from one sample to the next, as asked for.
    interval: u64,
    /// In the order in which they came; what is behind an allocation that waits for names may have
    /// to wait for it.
    waiting: Vec<Notice>,
    series: Option<SeriesPair>,
    fractions: Fractions,
    /// Objects that were met.
    pub samples: u64,
    /// What they stand for.
    pub bytes: f64,
    /// Of the samples, those without any method that is to be shown.
    pub outside: u64,
    /// What lives, if that is to be told.
    pub live: Option<Live>,
}

impl Allocation {
    pub fn new(interval: u64, live: bool) -> Self {
        Allocation {
            interval,
            waiting: Vec::new(),
            series: None,
            fractions: Fractions::default(),
            samples: 0,
            bytes: 0.0,
            outside: 0,
            live: live.then(Live::default),
        }
    }

    pub fn push(&mut self, kind: &AllocationKind, event: &StreamEvent) {
        let head = &event.head;
        let value = |at: Option<usize>| at.and_then(|at| event.values.get(at)).copied();
        self.waiting.push(Notice {
            tells: kind.tells,
            time: head.time,
            java_id: head.java_id,
            thread: head.thread,
            trace: head.trace,
            fields: kind.at.map(|at| value(at).unwrap_or(0)),
        });
    }

    fn series(&mut self, profile: &mut Profile) -> SeriesPair {
        let (kinds, interval) =
            ([ValueKind::AllocatedBytes, ValueKind::AllocatedObjects], Some(self.interval));
        *self.series.get_or_insert_with(|| SeriesPair::add(profile, "alloc", kinds, interval))
    }

    /// An object that was met, now that its place is known.
    fn add(&mut self, profile: &mut Profile, row: Row, [number, size, interval, born]: [u64; 4]) {
        let amount = Amount::of_sample(size, interval);
        self.samples += 1;
        self.bytes += amount.bytes;
        let whole = self.fractions.whole(row.context, amount);
        self.series(profile).push(profile, row, whole);
        if let Some(live) = &mut self.live {
            live.born(profile, number, Object::new(row, size, amount.objects, born));
        }
    }

    fn change(&mut self, profile: &mut Profile, tells: Tells, time: u64, fields: [u64; FIELDS]) {
        let Some(live) = &mut self.live else { return };
        let [first, second, third, _] = fields;
        match tells {
            Tells::Survived => live.survived(profile, first, second, third, time),
            Tells::Gone => live.gone(profile, first, second, time),
            Tells::Level => live.level(profile, first, second, time),
            Tells::Swept => live.swept(first, third, second),
            Tells::Allocation => {}
        }
    }

    /// Whether what is told concerns only objects whose allocations have come.
    fn knows(&self, notice: &Notice) -> bool {
        let knows = |live: &Live| live.knows(notice.fields[0]);
        notice.tells == Tells::Swept || self.live.as_ref().is_none_or(knows)
    }
}

impl<A: Addresses> Collector<A> {
    /// Adds the objects whose stacks have all their names, and what became of them; with `last`,
    /// all of them.
    pub(super) fn add_allocations(&mut self, profile: &mut Profile, last: bool) {
        let Some(mut allocation) = self.allocation.take() else { return };
        allocation.series(profile);
        if let Some(live) = &mut allocation.live {
            live.begin(profile);
        }
        let waiting = std::mem::take(&mut allocation.waiting);
        let last = last || waiting.len() > MOST_WAITING;
        let (mut unnamed, mut held) = (false, false);
        for notice in waiting {
            let time = notice.time.saturating_sub(self.zero);
            let done = if notice.tells == Tells::Allocation {
                let done = self.add_object(profile, &mut allocation, &notice, time, last);
                unnamed |= !done;
                done
            } else {
                // What became of an object comes after its allocation, and in order.
                held |= unnamed && !allocation.knows(&notice);
                if !held {
                    allocation.change(profile, notice.tells, time, notice.fields);
                }
                !held
            };
            if !done {
                allocation.waiting.push(notice);
            }
        }
        self.allocation = Some(allocation);
    }

    /// False while names are missing.
    fn add_object(
        &mut self,
        profile: &mut Profile,
        allocation: &mut Allocation,
        notice: &Notice,
        time: u64,
        last: bool,
    ) -> bool {
        let Some(place) = self.context(profile, notice.trace, last) else { return false };
        let thread = self.thread_of(profile, notice.thread, notice.java_id, place.is_virtual);
        allocation.outside += u64::from(place.is_outside);
        allocation.add(profile, Row::new(place.context, thread, 0).at(time), notice.fields);
        true
    }
}
