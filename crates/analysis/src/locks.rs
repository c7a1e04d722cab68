//! Who waits for which lock, how long, and who has it meanwhile: made of `lock` and `task` events.
//!
//! Contention (somebody else has what a thread wants) is told lock by lock. Waiting for something
//! to happen is apart, since most of it is how threads are idle.

mod doing;
mod names;
mod owners;
mod queues;
mod read;
mod tasks;
#[cfg(test)]
mod tests;

pub use doing::Doing;
pub use owners::{OWNERS, add_owners};
pub use queues::{POINTS, Queue};
pub use tasks::Executor;

pub(crate) use names::{Names, VIRTUAL};

use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use names::{Key, keys, lock_name, thread_group};
use read::{OwnerStack, Waited};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tare_profile::{
    ContextId, MethodKind, Profile, SeriesId, ThreadId, ThreadKind, ValueKind, Wait,
};

/// The account of waits that were not told one by one, because there were too many.
const DROPPED: &str = "[dropped]";

/// All that a recording tells of waiting.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Nanoseconds that were looked at.
    pub duration: u64,
    pub contended: Sum,
    /// Threads that waited for locks.
    pub threads: usize,
    /// What is counted but has no event of its own: waits below the recorder's threshold.
    pub shorter: Option<Sum>,
    /// Waits that are counted, and that the recorder could not tell one by one.
    pub dropped: Option<Sum>,
    /// The largest first.
    pub locks: Vec<Lock>,
    /// Who waits for whom, by threads and by methods; the largest first.
    pub by_threads: Vec<Pair>,
    pub by_methods: Vec<Pair>,
    /// Waiting for something to happen, by what for; the largest first.
    pub idle: Vec<Idle>,
    pub executors: Vec<Executor>,
    /// Of the contended time, what is not known: who had the lock, or where it was.
    pub without_owner: u64,
    pub without_stack: u64,
    /// The owner's stack was taken when it had just left the lock.
    pub left: u64,
    /// The owner's stack comes from samples, or from a wait of its own.
    pub inferred: u64,
}

/// Waits and how long they were, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    pub waits: u64,
    pub total: u64,
    pub longest: u64,
}

impl Sum {
    fn add(&mut self, duration: u64) {
        self.waits += 1;
        self.total = self.total.saturating_add(duration);
        self.longest = self.longest.max(duration);
    }

    fn join(&mut self, other: Sum) {
        self.waits += other.waits;
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }

    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.waits).unwrap_or(0)
    }
}

/// A lock, or several that nobody can tell apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Lock {
    /// For people: its class, and where it is used if that is a class of the JDK's.
    pub name: String,
    /// Empty if not known.
    pub class: String,
    /// How many objects it is; 0 if not known.
    pub instances: usize,
    pub sum: Sum,
    /// Threads that waited for it.
    pub threads: usize,
    /// The same by their names; who waited longest comes first.
    pub pools: Vec<Pool>,
    /// Which part of their time the first of these waited for it, of the time in which they were
    /// not idle.
    pub share: f64,
    /// Where they waited; the largest first.
    pub waiters: Vec<Place>,
    /// Who had it, and did what; the largest first.
    pub owners: Vec<Holder>,
    pub queue: Queue,
}

/// Threads of one name but for their number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    pub name: String,
    pub threads: usize,
    /// Nanoseconds that they waited.
    pub total: u64,
}

/// A method with the waits that belong to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub method: String,
    pub sum: Sum,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The method that has the lock; `None` if the owner's stack is not known.
    pub method: Option<String>,
    /// The owner's innermost method of the program's own.
    pub inside: Option<String>,
    /// Its threads; empty if nobody knows who it was.
    pub threads: String,
    pub doing: Option<Doing>,
    /// If it waits for another lock: which.
    pub waits_for: Option<String>,
    pub sum: Sum,
}

/// Somebody waits for somebody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    pub waiter: String,
    /// Empty if not known.
    pub owner: String,
    pub sum: Sum,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idle {
    pub wait: Wait,
    pub sum: Sum,
    pub threads: usize,
    /// Where the most of it is.
    pub place: Option<String>,
}

impl Locks {
    /// What a recording tells of waiting, as far as a filter lets it through; `None` if it tells
    /// nothing.
    pub fn of(profile: &Profile, filter: &Filter) -> Result<Option<Locks>, AnalysisError> {
        let executors = tasks::executors(profile, filter)?;
        let has_waits =
            read::tables(profile, &tare_profile::EventKind::lock()).any(|table| !table.is_empty());
        if !has_waits && executors.is_empty() {
            return Ok(None);
        }
        let range = read::range(profile, filter);
        let waits = read::waits(profile, filter)?;
        let mut locks = Locks {
            duration: range.end - range.start,
            idle: idle(profile, &waits),
            executors,
            ..Locks::default()
        };
        locks.contend(profile, &waits, &range);
        [locks.shorter, locks.dropped] = untold(profile, filter, locks.contended)?;
        Ok(Some(locks))
    }

    /// Contention, counted exactly where the recorder did so.
    pub fn blocked(&self) -> Sum {
        let mut sum = self.contended;
        [self.shorter, self.dropped].into_iter().flatten().for_each(|more| sum.join(more));
        sum
    }

    fn contend(&mut self, profile: &Profile, waits: &[Waited], range: &Range<u64>) {
        let keys = keys(profile, waits);
        let busy = busy(profile, waits, range);
        let mut names = Names::new(profile);
        let mut groups: HashMap<Key, Vec<usize>> = HashMap::new();
        let mut threads = HashSet::new();
        // Names are looked for once for all waits that have the same.
        let mut alike: HashMap<Alike, Sum> = HashMap::new();
        for (at, wait) in waits.iter().enumerate().filter(|(_, wait)| wait.is_contention()) {
            groups.entry(keys[at]).or_default().push(at);
            self.contended.add(wait.duration);
            threads.insert(wait.thread);
            let unknown = match wait.stack {
                _ if wait.owner == ThreadId::UNKNOWN => &mut self.without_owner,
                OwnerStack::Unknown => &mut self.without_stack,
                OwnerStack::Left => &mut self.left,
                OwnerStack::Inferred => &mut self.inferred,
                OwnerStack::Held => &mut 0,
            };
            *unknown = unknown.saturating_add(wait.duration);
            let kept_by = wait.owner_waits.map(|at| (waits[at].wait, keys[at]));
            let same = Alike {
                key: keys[at],
                thread: wait.thread,
                context: wait.context,
                owner: wait.owner,
                owner_context: wait.owner_context,
                known: wait.stack != OwnerStack::Unknown,
                kept_by,
            };
            alike.entry(same).or_default().add(wait.duration);
        }
        self.threads = threads.len();
        let (mut by_threads, mut by_methods) = (HashMap::new(), HashMap::new());
        let mut parts: HashMap<Key, Vec<(Alike, Sum)>> = HashMap::new();
        for (wait, sum) in alike {
            let groups = [wait.thread, wait.owner].map(|thread| thread_group(profile, thread));
            by_threads.entry(groups).or_insert_with(Sum::default).join(sum);
            let waiter = names.place(wait.context);
            let holder = names.holder(wait.key, wait.context, wait.owner_context);
            let pair = [waiter, holder].map(|frame| frame.map(|frame| names.method(frame)));
            let pair = pair.map(Option::unwrap_or_default);
            by_methods.entry(pair).or_insert_with(Sum::default).join(sum);
            parts.entry(wait.key).or_default().push((wait, sum));
        }
        self.by_threads = pairs(by_threads.into_iter());
        self.by_methods = pairs(by_methods.into_iter());
        let whole = Whole { profile, waits, busy: &busy, range };
        let made = groups.iter().map(|(key, group)| {
            let parts = parts.get(key).map_or(&[][..], Vec::as_slice);
            lock(&whole, &mut names, *key, group, parts)
        });
        self.locks = made.collect();
        self.locks.sort_by(|a, b| b.sum.total.cmp(&a.sum.total).then_with(|| a.name.cmp(&b.name)));
    }
}

/// What waits have in common that are told as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Alike {
    key: Key,
    thread: ThreadId,
    context: ContextId,
    owner: ThreadId,
    owner_context: ContextId,
    /// Whether the owner's stack is.
    known: bool,
    /// What the owner itself waited for.
    kept_by: Option<(Wait, Key)>,
}

fn pairs(sums: impl Iterator<Item = ([String; 2], Sum)>) -> Vec<Pair> {
    let mut pairs: Vec<Pair> =
        sums.map(|([waiter, owner], sum)| Pair { waiter, owner, sum }).collect();
    pairs.sort_by(|a, b| {
        let names = |pair: &Pair| (pair.waiter.clone(), pair.owner.clone());
        b.sum.total.cmp(&a.sum.total).then_with(|| names(a).cmp(&names(b)))
    });
    pairs
}

/// What a lock is made of.
struct Whole<'a> {
    profile: &'a Profile,
    waits: &'a [Waited],
    busy: &'a HashMap<ThreadId, u64>,
    range: &'a Range<u64>,
}

fn lock(
    whole: &Whole<'_>,
    names: &mut Names<'_>,
    key: Key,
    group: &[usize],
    parts: &[(Alike, Sum)],
) -> Lock {
    let profile = whole.profile;
    let waits = || group.iter().map(|at| &whole.waits[*at]);
    let mut instances: HashSet<i64> = waits().map(|wait| wait.instance).collect();
    let (mut sum, mut threads) = (Sum::default(), HashSet::new());
    let mut places: HashMap<String, Sum> = HashMap::new();
    let mut pools: HashMap<String, (u64, HashSet<ThreadId>)> = HashMap::new();
    let mut holders: HashMap<Holder, Sum> = HashMap::new();
    for (wait, part) in parts {
        sum.join(*part);
        threads.insert(wait.thread);
        let pool = pools.entry(thread_group(profile, wait.thread)).or_default();
        pool.0 = pool.0.saturating_add(part.total);
        pool.1.insert(wait.thread);
        let place = names.place(wait.context).map(|frame| names.method(frame));
        places.entry(place.unwrap_or_default()).or_default().join(*part);
        holders.entry(holder(profile, names, wait)).or_default().join(*part);
    }
    let mut pools: Vec<(String, (u64, HashSet<ThreadId>))> = pools.into_iter().collect();
    pools.sort_by(|(a, (x, _)), (b, (y, _))| y.cmp(x).then_with(|| a.cmp(b)));
    // Others that met it once in passing would make it look smaller than it is for those it stops.
    let queue = queues::queue(waits(), whole.range);
    let first = pools.first().map(|(_, pool)| pool);
    let share = first.map_or(0.0, |(total, threads)| {
        let busy: u64 = threads.iter().filter_map(|thread| whole.busy.get(thread)).sum();
        // Of virtual threads nobody knows how long they live: as many as waited at once did.
        let unknown = threads.iter().any(|thread| has_no_life(profile, *thread));
        let least = queue.longest.saturating_mul(whole.range.end - whole.range.start);
        let busy = if unknown { busy.max(least) } else { busy };
        if busy > 0 { (*total as f64 / busy as f64).min(1.0) } else { 0.0 }
    });
    let pool = |(name, (total, threads)): (String, (u64, HashSet<ThreadId>))| Pool {
        name,
        threads: threads.len(),
        total,
    };
    let mut waiters: Vec<Place> =
        places.into_iter().map(|(method, sum)| Place { method, sum }).collect();
    waiters.sort_by(|a, b| b.sum.total.cmp(&a.sum.total).then_with(|| a.method.cmp(&b.method)));
    let mut owners: Vec<Holder> =
        holders.into_iter().map(|(holder, sum)| Holder { sum, ..holder }).collect();
    owners.sort_by(|a, b| {
        let name = |holder: &Holder| (holder.method.clone(), holder.threads.clone());
        b.sum.total.cmp(&a.sum.total).then_with(|| name(a).cmp(&name(b)))
    });
    instances.remove(&0);
    Lock {
        name: lock_name(profile, key),
        class: profile.strings.get(key.class).to_owned(),
        instances: instances.len(),
        sum,
        threads: threads.len(),
        pools: pools.into_iter().map(pool).collect(),
        share,
        waiters,
        owners,
        queue,
    }
}

fn holder(profile: &Profile, names: &mut Names<'_>, wait: &Alike) -> Holder {
    let frame = names.holder(wait.key, wait.context, wait.owner_context).filter(|_| wait.known);
    let inside = names.place(wait.owner_context).filter(|_| wait.known);
    let other_lock = wait.kept_by.filter(|(wait, _)| wait.is_contention());
    let doing = match wait.kept_by {
        Some((other, _)) if other.is_contention() => Some(Doing::Lock),
        _ if wait.known => Doing::of(profile, wait.owner_context),
        Some((other, _)) => Some(Doing::of_wait(other)),
        None => None,
    };
    Holder {
        method: frame.map(|frame| names.method(frame)),
        inside: inside.filter(|inside| Some(*inside) != frame).map(|frame| names.method(frame)),
        threads: thread_group(profile, wait.owner),
        doing,
        waits_for: other_lock.map(|(_, key)| lock_name(profile, key)),
        sum: Sum::default(),
    }
}

impl std::hash::Hash for Holder {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.method, &self.inside, &self.threads, self.doing, &self.waits_for).hash(state);
    }
}

/// Whether nobody was told when a thread came and went.
fn has_no_life(profile: &Profile, thread: ThreadId) -> bool {
    let known = profile.threads.get(thread);
    known.kind == ThreadKind::Virtual && known.started.is_none() && known.ended.is_none()
}

/// How long each thread that waited was there and not idle.
fn busy(profile: &Profile, waits: &[Waited], range: &Range<u64>) -> HashMap<ThreadId, u64> {
    let mut seen: HashMap<ThreadId, (Range<u64>, u64)> = HashMap::new();
    for wait in waits {
        let (span, idle) = seen.entry(wait.thread).or_insert((wait.time..wait.end(), 0));
        *span = span.start.min(wait.time)..span.end.max(wait.end());
        // Who waits for a result has work to do.
        if !wait.is_contention() && wait.wait != Wait::Future {
            *idle = idle.saturating_add(wait.duration);
        }
    }
    let busy = |(thread, (span, idle)): (ThreadId, (Range<u64>, u64))| {
        let known = profile.threads.get(thread);
        let (start, end) = match has_no_life(profile, thread) {
            true => (span.start, span.end),
            false => (
                known.started.map_or(range.start, |at| at.clamp(range.start, span.start)),
                known.ended.map_or(range.end, |at| at.min(range.end)).max(span.end),
            ),
        };
        (thread, end.saturating_sub(start).saturating_sub(idle))
    };
    seen.into_iter().map(busy).collect()
}

fn idle(profile: &Profile, waits: &[Waited]) -> Vec<Idle> {
    let mut names = Names::new(profile);
    type Places = HashMap<Option<String>, u64>;
    let mut sums: HashMap<Wait, (Sum, HashSet<ThreadId>, Places)> = HashMap::new();
    for wait in waits.iter().filter(|wait| !wait.is_contention()) {
        let (sum, threads, places) = sums.entry(wait.wait).or_default();
        sum.add(wait.duration);
        threads.insert(wait.thread);
        let place = names.place(wait.context).map(|frame| names.method(frame));
        *places.entry(place).or_default() += wait.duration;
    }
    let mut idle: Vec<Idle> = sums
        .into_iter()
        .map(|(wait, (sum, threads, places))| {
            let most = places.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            Idle { wait, sum, threads: threads.len(), place: most.and_then(|(place, _)| place) }
        })
        .collect();
    idle.sort_by_key(|idle| (std::cmp::Reverse(idle.sum.total), idle.wait));
    idle
}

/// What the series have more than the events: waits that were too short for one, and waits that
/// were dropped.
fn untold(
    profile: &Profile,
    filter: &Filter,
    told: Sum,
) -> Result<[Option<Sum>; 2], AnalysisError> {
    // Of an event a range of time may have a part; its values are at one moment.
    if filter.time.is_some() {
        return Ok([None; 2]);
    }
    let selection = Selection::new(profile, filter)?;
    let is_dropped = |context: ContextId| {
        let leaf = profile.contexts.frame(context).map(|frame| profile.method_of(frame));
        leaf.is_some_and(|method| {
            method.kind == MethodKind::Special && profile.strings.get(method.name) == DROPPED
        })
    };
    let totals = |kind: ValueKind| -> Result<[u64; 2], AnalysisError> {
        let of_kind = |id: &SeriesId| {
            let info = profile.series(*id).info();
            info.kind == kind && info.name != OWNERS
        };
        let mut sums = [0_i64; 2];
        for id in profile.all_series().map(|(id, _)| id).filter(of_kind) {
            for row in selection.rows(profile, id, filter)? {
                let sum = &mut sums[usize::from(is_dropped(row.context))];
                *sum = sum.saturating_add(row.value);
            }
        }
        Ok(sums.map(|sum| u64::try_from(sum).unwrap_or(0)))
    };
    let [waits, dropped] = totals(ValueKind::Contentions)?;
    let [time, lost] = totals(ValueKind::BlockedTime)?;
    let sum = |waits: u64, total: u64| (waits > 0).then_some(Sum { waits, total, longest: 0 });
    let shorter = sum(waits.saturating_sub(told.waits), time.saturating_sub(told.total));
    Ok([shorter, sum(dropped, lost)])
}
