//! A profile for people who look for Java methods: what is not theirs stands aside.
//!
//! Frames of libraries, of the JVM and of the kernel join the Java method that called them; what
//! the JVM's own threads do becomes one frame; waiting for work is taken out and told as a sum.
//! Nothing is lost: what is taken out is what [`Idle`] says, and the rest has the same sum as
//! before.

use crate::idle::{STATES, Wait, Waits};
use std::collections::{HashMap, HashSet};
use tare_java_names::{JvmThread, jvm_thread};
use tare_profile::{
    ContextId, Contexts, FrameId, MethodKind, Profile, Row, Series, SeriesId, SeriesInfo, ThreadId,
    ThreadKind, ValueKind,
};

/// The frame of what threads of the JVM itself did.
pub const OF_JVM: &str = "[JVM itself]";
/// The frame of what threads did that the JVM does not know.
pub const OF_NATIVE: &str = "[native threads]";
/// The frame of what Java threads did with no Java method on their stacks.
pub const NO_JAVA: &str = "[no Java frame]";

/// A thread is idle all the time if it is so for this share of it; samples of its short awakenings,
/// and of the moment at which it is found, are the rest.
const ALL_THE_TIME: f64 = 0.99;

/// What to set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asides {
    /// Frames that are not Java, and threads that run none.
    pub native: bool,
    /// Waiting for work.
    pub idle: bool,
}

/// A profile with what was set aside.
#[derive(Debug)]
pub struct Aside {
    /// Series and threads have the handles that they had; contexts do not.
    pub profile: Profile,
    /// How much of the metric ended outside of Java, in contexts of the profile, by where.
    pub outside: Vec<(&'static str, SeriesId)>,
    /// What threads that run no Java took of the metric, the largest part first.
    pub parts: Vec<(&'static str, i64)>,
    pub idle: Option<Idle>,
}

impl Aside {
    /// Whether stacks ended outside of Java.
    pub fn outside_of_java(&self) -> bool {
        self.outside.iter().any(|(_, series)| !self.profile.series(*series).is_empty())
    }
}

/// Waiting for work that was taken out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Idle {
    pub value: i64,
    /// Threads that did nothing else.
    pub threads: HashSet<ThreadId>,
    /// How many others waited so for a part of their time.
    pub partly: usize,
    /// All threads that have a value of the metric.
    pub of: usize,
}

impl Idle {
    /// What was taken out, for people, where `rest` is what is left of the metric.
    pub fn told(&self, rest: i64) -> String {
        let (all, partly, of) = (self.threads.len(), self.partly, self.of);
        let who = match (all, partly) {
            _ if of == 1 && all == 1 => "the only thread was idle all the time".to_owned(),
            _ if of == 1 => "the only thread was idle for a part of the time".to_owned(),
            (0, _) => format!("{partly} of {of} threads were idle for a part of the time"),
            (_, 0) => format!("{all} of {of} threads were idle all the time"),
            _ => format!("{all} of {of} threads were idle all the time, {partly} for a part of it"),
        };
        let (value, rest) = (seconds(self.value), seconds(rest));
        format!(
            "{who}: {value} of waiting for work (pools, selectors, queues) and of nothing but sleep \
             is left out; shares are of the other {rest} (--idle shows all)"
        )
    }
}

fn seconds(nanos: i64) -> String {
    let seconds = nanos as f64 / 1e9;
    let decimals = match seconds {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{seconds:.decimals$} s")
}

/// Sets things aside; `None` if there is nothing of the kind in the metric.
pub fn set_aside(profile: &Profile, metric: SeriesId, what: Asides) -> Option<Aside> {
    let mut aside = set_aside_of_series(profile, metric, what)?;
    let out = &mut aside.profile;
    for (_, table) in profile.all_events() {
        // Only what findings read of events: when they were and how long.
        let id = out.events_of(table.kind());
        for row in 0..table.len() {
            let nowhere = |_| ContextId::ROOT;
            let (event, values) = table.moved_row(row, nowhere, nowhere);
            out.events_mut(id).push(event, &values);
        }
    }
    Some(aside)
}

/// The same without events, of which there may be many.
pub fn set_aside_of_series(profile: &Profile, metric: SeriesId, what: Asides) -> Option<Aside> {
    let idle = if what.idle { Idleness::find(profile, metric) } else { None };
    // Most profiles have nothing of the kind, and some have millions of contexts.
    let possible = what.native
        && (profile.methods.iter().any(|(_, method)| is_foreign(method.kind))
            || profile.threads.iter().any(|(_, thread)| thread.kind == ThreadKind::Vm));
    let java = if possible { has_java(profile) } else { Vec::new() };
    let rows = || profile.series(metric).rows();
    // Where there is no Java at all, the rest is what there is to see.
    let foreign = possible
        && rows().any(|row| java[row.context.index()])
        && rows().any(|row| {
            let mut frames = profile.contexts.frames(row.context);
            part_of(profile, &java, row.context, row.thread).is_some()
                || frames.any(|frame| is_foreign(profile.method_of(frame).kind))
        });
    if !foreign && idle.is_none() {
        return None;
    }
    let mut out = Profile::new();
    out.strings = profile.strings.clone();
    out.methods = profile.methods.clone();
    out.frames = profile.frames.clone();
    out.threads = profile.threads.clone();
    out.run = profile.run.clone();
    let mut places = Places::new(profile, &mut out, &java, foreign);
    let rest = |id: SeriesId| {
        let taken = idle.as_ref().and_then(|idle| idle.taken.get(&id));
        without(profile.series(id).rows(), taken)
    };
    for (id, series) in profile.all_series() {
        let mut kept = Series::new(series.info().clone());
        for row in rest(id) {
            kept.push(Row { context: places.of(row.context, row.thread), ..row });
        }
        out.add_made_series(kept);
    }
    // Of a kind of their own, since they are no values beside those of the metric.
    let unit = profile.series(metric).info().kind.unit();
    let kind = ValueKind::Other { name: "outside of Java".to_owned(), unit };
    let mut parts: Vec<(&'static str, i64)> = Vec::new();
    let mut outside = ["kernel", "JVM", "native"]
        .map(|place| (place, Series::new(SeriesInfo::new(place, kind.clone()))));
    for row in rest(metric).into_iter().filter(|_| foreign) {
        if let Some(part) = part_of(profile, &java, row.context, row.thread) {
            match parts.iter_mut().find(|(known, _)| *known == part) {
                Some((_, value)) => *value = value.saturating_add(row.value),
                None => parts.push((part, row.value)),
            }
        } else if let Some(place) = outside_java(profile, row.context) {
            let context = places.of(row.context, row.thread);
            outside[place].1.push(Row { context, ..row });
        }
    }
    parts.retain(|(_, value)| *value != 0);
    parts.sort_by_key(|(_, value)| -i128::from(*value));
    let outside = outside.map(|(place, series)| (place, out.add_made_series(series))).to_vec();
    out.contexts = places.made;
    Some(Aside { profile: out, outside, parts, idle: idle.map(|idle| idle.told) })
}

/// Rows without what is taken out of them. Each keeps its time, so that what is left scatters over
/// the run as it was sampled.
fn without(rows: impl Iterator<Item = Row>, taken: Option<&Taken>) -> Vec<Row> {
    let Some(taken) = taken else { return rows.collect() };
    let mut taken = taken.clone();
    let mut rest: Vec<Row> = rows
        .map(|row| match taken.get_mut(&place(&row)) {
            Some(left) => {
                let part = (*left).min(row.value).max(0);
                *left -= part;
                Row { value: row.value - part, ..row }
            }
            None => row,
        })
        .collect();
    let left = taken.into_iter().filter(|(_, left)| *left != 0);
    rest.extend(
        left.map(|((context, thread, time), left)| Row::new(context, thread, -left).at(time)),
    );
    rest.retain(|row| row.value != 0);
    rest
}

fn place(row: &Row) -> Place {
    (row.context, row.thread, row.time)
}

/// Whether a frame is code that is not Java.
fn is_foreign(kind: MethodKind) -> bool {
    matches!(kind, MethodKind::Native | MethodKind::Kernel)
}

/// Whether each context has a Java method in it.
fn has_java(profile: &Profile) -> Vec<bool> {
    let mut java = vec![false; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        java[id.index()] =
            java[parent.index()] || profile.method_of(frame).kind == MethodKind::Java;
    }
    java
}

/// Where a stack ends that does not end in Java, as a number of those in [`Aside::outside`].
fn outside_java(profile: &Profile, context: ContextId) -> Option<usize> {
    let method = profile.method_of(profile.contexts.frame(context)?);
    match method.kind {
        MethodKind::Kernel => Some(0),
        MethodKind::Native if profile.strings.get(method.module).starts_with("libjvm") => Some(1),
        MethodKind::Native => Some(2),
        _ => None,
    }
}

/// What a thread that runs no Java is there for, if it is one.
fn part_of(
    profile: &Profile,
    java: &[bool],
    context: ContextId,
    thread: ThreadId,
) -> Option<&'static str> {
    if java[context.index()] {
        return None;
    }
    let of_jvm = jvm_thread(&profile.thread_name(thread));
    match (profile.threads.get(thread).kind, of_jvm) {
        (ThreadKind::Native, _) => Some(NATIVE_THREADS),
        (ThreadKind::Vm, Some(JvmThread::Compiler)) => Some("compilers"),
        (ThreadKind::Vm, Some(JvmThread::Collector)) => Some("collectors"),
        (ThreadKind::Vm, _) => Some("other"),
        (ThreadKind::Java, Some(JvmThread::Service)) => Some("other"),
        (ThreadKind::Java | ThreadKind::Virtual, _) => None,
    }
}

/// The part that is not the JVM's.
pub const NATIVE_THREADS: &str = "native threads";

/// Where contexts go.
struct Places<'a> {
    profile: &'a Profile,
    java: &'a [bool],
    foreign: bool,
    made: Contexts,
    /// By old context.
    moved: Vec<Option<ContextId>>,
    of_jvm: FrameId,
    of_native: FrameId,
    no_java: FrameId,
}

impl<'a> Places<'a> {
    fn new(profile: &'a Profile, out: &mut Profile, java: &'a [bool], foreign: bool) -> Self {
        Places {
            profile,
            java,
            foreign,
            made: Contexts::default(),
            moved: vec![None; profile.contexts.len()],
            of_jvm: out.special(OF_JVM),
            of_native: out.special(OF_NATIVE),
            no_java: out.special(NO_JAVA),
        }
    }

    fn of(&mut self, context: ContextId, thread: ThreadId) -> ContextId {
        if self.foreign
            && let Some(part) = part_of(self.profile, self.java, context, thread)
        {
            let frame = if part == NATIVE_THREADS { self.of_native } else { self.of_jvm };
            return self.made.child(ContextId::ROOT, frame);
        }
        if let Some(known) = self.moved[context.index()] {
            return known;
        }
        let mut frames: Vec<FrameId> = self.profile.contexts.frames(context).collect();
        let count = frames.len();
        if self.foreign {
            frames.retain(|frame| !is_foreign(self.profile.method_of(*frame).kind));
        }
        if frames.is_empty() && count > 0 {
            frames.push(self.no_java);
        }
        let place = self.made.stack(frames.into_iter().rev());
        self.moved[context.index()] = Some(place);
        place
    }
}

type Place = (ContextId, ThreadId, u64);
/// What is taken out of rows, by where and when they are.
type Taken = HashMap<Place, i64>;

/// What is waiting for work.
struct Idleness {
    taken: HashMap<SeriesId, Taken>,
    told: Idle,
}

impl Idleness {
    /// What of a metric is idleness: told where wall-clock samples have states.
    fn find(profile: &Profile, metric: SeriesId) -> Option<Self> {
        let info = profile.series(metric).info();
        let named = |name: &str| {
            let mut all = profile.all_series();
            all.find(|(_, s)| s.info().name == name && s.info().kind == ValueKind::WallTime)
        };
        let states: Vec<SeriesId> = STATES.into_iter().filter_map(named).map(|s| s.0).collect();
        // Of one state, too, a thread is judged by all that it did.
        let (wall, whole) = named("wall")?;
        if info.kind != ValueKind::WallTime || !(metric == wall || states.contains(&metric)) {
            return None;
        }
        let mut threads: HashMap<ThreadId, Times> = HashMap::new();
        for row in whole.rows() {
            let whole = &mut threads.entry(row.thread).or_default().whole;
            *whole = whole.saturating_add(row.value);
        }
        let mut waits = Waits::new(profile);
        let mut kinds: HashMap<ContextId, Wait> = HashMap::new();
        let mut sums: HashMap<(SeriesId, Place), i64> = HashMap::new();
        for id in states {
            for row in profile.series(id).rows() {
                let wait = kinds.entry(row.context);
                let wait = wait.or_insert_with(|| waits.of(profile, row.context));
                let times = threads.entry(row.thread).or_default();
                let time = match wait {
                    Wait::Other => continue,
                    Wait::Work => &mut times.work,
                    Wait::Queue => &mut times.queue,
                    Wait::Sleep => times.asleep.entry(row.context).or_default(),
                };
                *time = time.saturating_add(row.value);
                let sum = sums.entry((id, place(&row))).or_default();
                *sum = sum.saturating_add(row.value);
            }
        }
        let mut told = Idle { of: threads.len(), ..Idle::default() };
        let all: Vec<_> = threads.iter().filter(|(_, times)| times.are_idle()).collect();
        told.threads = all.into_iter().map(|(id, _)| *id).collect();
        let partly =
            |(id, times): &(&ThreadId, &Times)| times.work > 0 && !told.threads.contains(id);
        told.partly = threads.iter().filter(partly).count();
        let mut taken: HashMap<SeriesId, Taken> = HashMap::new();
        for ((series, place), value) in sums {
            let (context, thread, _) = place;
            let counts = match kinds[&context] {
                Wait::Other => false,
                Wait::Work => true,
                Wait::Queue => told.threads.contains(&thread),
                Wait::Sleep => threads[&thread].sleep_in(context),
            };
            if !counts {
                continue;
            }
            for series in [series, wall] {
                let sum = taken.entry(series).or_default().entry(place).or_default();
                *sum = sum.saturating_add(value);
            }
            if metric == series || metric == wall {
                told.value = told.value.saturating_add(value);
            }
        }
        (told.value > 0).then_some(Idleness { taken, told })
    }
}

/// Times of a thread.
#[derive(Default)]
struct Times {
    whole: i64,
    work: i64,
    queue: i64,
    asleep: HashMap<ContextId, i64>,
}

impl Times {
    fn are_idle(&self) -> bool {
        self.is_all(self.work.saturating_add(self.queue))
            || self.asleep.keys().any(|context| self.sleep_in(*context))
    }

    /// Whether it slept all the time, and in this one place. Who sleeps here and there does so on
    /// the way of something.
    fn sleep_in(&self, context: ContextId) -> bool {
        self.asleep.get(&context).is_some_and(|time| self.is_all(*time))
    }

    fn is_all(&self, idle: i64) -> bool {
        idle > 0 && idle as f64 >= self.whole as f64 * ALL_THE_TIME
    }
}
