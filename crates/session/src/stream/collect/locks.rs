//! Waits for locks as values and events of the profile: how often and how long, by context and
//! thread; and each wait by itself, with the owner of the lock and what that thread did.
//!
//! An owner is asked for its stack when somebody begins to wait, and the wait is told when it is
//! over. So answers come first, and are kept by their numbers until the waits come that refer to
//! them.

use super::{Addresses, Collector, Place};
use std::collections::{BTreeMap, HashMap};
use tare_arena::samples::{DeclaredKind, StreamEvent};
use tare_java_names::type_name;
use tare_profile::{
    ContextId, Event, EventKind, EventTableId, FieldValue, LockFields, MethodKind, Profile, Row,
    SeriesId, SeriesInfo, StringId, ThreadId, TimeAxis, ValueKind,
};
use tare_protocol::LockWait;

/// Waits that may stand back for names. Past it, unnamed methods stay unnamed.
const MOST_WAITING: usize = 1 << 18;

/// Answers that are kept. Of more, the oldest go: who waits for so long has no owner's stack.
const MOST_ANSWERS: usize = 1 << 20;

/// Who sleeps waits for this class.
const SLEEPS: &str = "java.lang.Thread";

/// Waits below the threshold, and waits that could not be told one by one.
const SHORTER: &str = "[shorter waits]";
const DROPPED: &str = "[dropped]";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tells {
    Wait,
    Owner,
    Sums,
    Task,
}

/// The most fields that a record of the engine has.
const FIELDS: usize = 7;

/// A kind of event of the lock engine, and where in it each of our fields is.
#[derive(Clone, Copy)]
pub struct LockRecordKind {
    tells: Tells,
    at: [Option<usize>; FIELDS],
}

impl LockRecordKind {
    /// `None` if it is none of this engine's.
    pub fn of(kind: &DeclaredKind) -> Option<Self> {
        let (tells, fields): (_, &[&str]) = match kind.name.as_str() {
            "lock-wait" => (
                Tells::Wait,
                &["operation", "class", "instance", "owner", "owner-id", "asked", "queue"],
            ),
            "lock-owner" => (Tells::Owner, &["number", "held"]),
            "lock-task" => (Tells::Task, &["class", "executor"]),
            "lock-sums" => (
                Tells::Sums,
                &[
                    "contentions",
                    "blocked",
                    "waiting",
                    "lost-contentions",
                    "lost-blocked",
                    "lost-waiting",
                ],
            ),
            _ => return None,
        };
        let mut at = [None; FIELDS];
        for (at, field) in at.iter_mut().zip(fields) {
            *at = kind.fields.iter().position(|(name, _)| name == field);
        }
        Some(LockRecordKind { tells, at })
    }
}

/// A wait, or sums, with its fields in our order.
#[derive(Clone, Copy)]
struct Notice {
    tells: Tells,
    time: u64,
    duration: u64,
    java_id: u64,
    thread: u32,
    trace: u32,
    fields: [u64; FIELDS],
}

/// What an owner has told.
#[derive(Clone, Copy)]
struct Answer {
    thread: u32,
    java_id: u64,
    trace: u32,
    held: bool,
}

#[derive(Clone, Copy)]
struct Tables {
    contentions: SeriesId,
    blocked: SeriesId,
    waiting: SeriesId,
    events: EventTableId,
}

/// What the stream has told of waits.
#[derive(Default)]
pub struct Locks {
    /// In the order in which they came.
    waiting: Vec<Notice>,
    answers: BTreeMap<u64, Answer>,
    /// Threads by their Java ids, of those that were owners.
    ids: HashMap<u64, ThreadId>,
    tables: Option<Tables>,
    /// Waits for what somebody had, and their time in nanoseconds.
    pub contentions: u64,
    pub blocked: u64,
    /// Waits that were told one by one, and time of those that were for something to happen.
    pub told: u64,
    pub waiting_time: u64,
    /// Of the waits that were told, those for what somebody had; of these, the ones whose owner is
    /// known, and has told its stack.
    pub contended: u64,
    pub owned: u64,
    pub with_owner_stack: u64,
    /// Of the waits that were told, those without any method that is to be shown.
    pub outside: u64,
}

impl Locks {
    pub fn push(&mut self, kind: &LockRecordKind, event: &StreamEvent) {
        let head = &event.head;
        let value = |at: Option<usize>| at.and_then(|at| event.values.get(at)).copied();
        let fields = kind.at.map(|at| value(at).unwrap_or(0));
        let (thread, java_id, trace) = (head.thread, head.java_id, head.trace);
        if kind.tells == Tells::Owner {
            let [number, held, ..] = fields;
            self.answers.insert(number, Answer { thread, java_id, trace, held: held != 0 });
            if self.answers.len() > MOST_ANSWERS {
                self.answers.pop_first();
            }
            return;
        }
        self.waiting.push(Notice {
            tells: kind.tells,
            time: head.time,
            duration: head.duration,
            java_id,
            thread,
            trace,
            fields,
        });
    }

    fn tables(&mut self, profile: &mut Profile) -> Tables {
        *self.tables.get_or_insert_with(|| {
            let mut series =
                |kind| profile.add_series(SeriesInfo::new("lock", kind).with_time(TimeAxis::Exact));
            Tables {
                contentions: series(ValueKind::Contentions),
                blocked: series(ValueKind::BlockedTime),
                waiting: series(ValueKind::WaitingTime),
                events: profile.events_of(&EventKind::lock()),
            }
        })
    }

    /// Adds waits; `row` says where and when.
    fn add(&mut self, profile: &mut Profile, row: Row, contentions: u64, blocked: u64, idle: u64) {
        let tables = self.tables(profile);
        self.contentions = self.contentions.saturating_add(contentions);
        self.blocked = self.blocked.saturating_add(blocked);
        self.waiting_time = self.waiting_time.saturating_add(idle);
        let values =
            [(tables.contentions, contentions), (tables.blocked, blocked), (tables.waiting, idle)];
        for (series, value) in values {
            if value > 0 {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                profile.series_mut(series).push(Row { value, ..row });
            }
        }
    }

    /// What was not told wait by wait.
    fn add_sums(&mut self, profile: &mut Profile, time: u64, fields: [u64; FIELDS]) {
        for (name, sums) in [SHORTER, DROPPED].iter().zip(fields.chunks_exact(3)) {
            let &[contentions, blocked, idle] = sums else { continue };
            if contentions | blocked | idle > 0 {
                let frame = profile.special(name);
                let context = profile.contexts.stack([frame]);
                let row = Row::new(context, ThreadId::UNKNOWN, 0).at(time);
                self.add(profile, row, contentions, blocked, idle);
            }
        }
    }
}

/// The owner of a lock in the profile.
struct Owner {
    thread: ThreadId,
    context: ContextId,
    held: bool,
}

/// Classes and names of the Java methods of a stack, innermost first.
fn java_names(
    profile: &Profile,
    context: ContextId,
) -> impl Iterator<Item = (&str, &str)> + use<'_> {
    let methods = profile.contexts.frames(context).map(|frame| profile.method_of(frame));
    let java = methods.filter(|method| method.kind == MethodKind::Java);
    java.map(|m| (profile.strings.get(m.class), profile.strings.get(m.name)))
}

/// Whether a thread that parks for nothing known sleeps: a virtual thread parks for it.
fn is_of_sleep(profile: &Profile, context: ContextId) -> bool {
    let mut names = java_names(profile, context);
    let caller = names.find(|(class, _)| !class.starts_with("java.lang.VirtualThread"));
    caller.is_some_and(|(class, name)| class == SLEEPS && name.starts_with("sleep"))
}

/// Whether a thread that waits for a condition waits for something to come into a queue: that is
/// told by who called the condition.
fn is_of_queue(profile: &Profile, context: ContextId) -> bool {
    const INSIDE: [&str; 4] = [
        "java.util.concurrent.locks.",
        "jdk.internal.misc.",
        "java.util.concurrent.ForkJoinPool",
        "java.lang.",
    ];
    let caller = java_names(profile, context)
        .find(|(class, _)| !INSIDE.iter().any(|inside| class.starts_with(inside)));
    caller.is_some_and(|(class, name)| {
        let is_queue = class.starts_with("java.util.concurrent.")
            && ["Queue", "Deque"].iter().any(|end| class.ends_with(end));
        is_queue && (name.starts_with("take") || name.starts_with("poll"))
    })
}

impl<A: Addresses> Collector<A> {
    /// Adds the waits whose stacks have all their names; with `last`, all of them.
    pub(super) fn add_waits(&mut self, profile: &mut Profile, last: bool) {
        let Some(mut locks) = self.locks.take() else { return };
        locks.tables(profile);
        let waiting = std::mem::take(&mut locks.waiting);
        let last = last || waiting.len() > MOST_WAITING;
        for notice in waiting {
            if notice.tells == Tells::Sums {
                let time = notice.time.saturating_sub(self.zero);
                locks.add_sums(profile, time, notice.fields);
                continue;
            }
            let added = match notice.tells {
                Tells::Task => self.add_task(profile, &notice, last),
                _ => self.add_wait(profile, &mut locks, &notice, last),
            };
            if added.is_none() {
                locks.waiting.push(notice);
            }
        }
        self.locks = Some(locks);
    }

    /// A task's time in a queue. `None` while names are missing.
    fn add_task(&mut self, profile: &mut Profile, notice: &Notice, last: bool) -> Option<()> {
        let [class, executor, ..] = notice.fields;
        let place = match notice.trace {
            0 => Place::of(ContextId::ROOT),
            trace => self.context(profile, trace, last)?,
        };
        let mut text = |id: u64| {
            let text = u32::try_from(id).ok().and_then(|id| self.events.text_of(id));
            let text = text.and_then(type_name);
            FieldValue::Text(text.map_or(StringId::EMPTY, |text| profile.strings.intern(&text)))
        };
        let fields = [text(class), text(executor)];
        let thread = self.thread_of(profile, notice.thread, notice.java_id, false);
        let (time, duration) = (notice.time.saturating_sub(self.zero), notice.duration);
        let table = profile.events_of(&EventKind::task());
        let event = Event { time, duration, thread, context: place.context };
        profile.events_mut(table).push(event, &fields);
        Some(())
    }

    /// `None` while names are missing.
    fn add_wait(
        &mut self,
        profile: &mut Profile,
        locks: &mut Locks,
        notice: &Notice,
        last: bool,
    ) -> Option<()> {
        let [operation, class, instance, owner, owner_id, asked, queue] = notice.fields;
        let place = match notice.trace {
            // The agent counts those that it has lost.
            0 => {
                let frame = profile.special("[stack lost]");
                Place::of(profile.contexts.stack([frame]))
            }
            trace => self.context(profile, trace, last)?,
        };
        let answer = locks.answers.get(&asked).copied();
        let owner = self.owner(profile, locks, answer, (owner, owner_id), last)?;
        let kind = LockWait::of_code(operation).unwrap_or(LockWait::Park);
        let kind = match kind {
            LockWait::Condition if is_of_queue(profile, place.context) => LockWait::Queue,
            LockWait::Park if class == 0 && is_of_sleep(profile, place.context) => LockWait::Sleep,
            kind => kind,
        };
        let class = u32::try_from(class).ok().and_then(|class| self.events.text_of(class));
        let class = match class.and_then(type_name) {
            None if kind == LockWait::Sleep => Some(SLEEPS.to_owned()),
            class => class,
        };
        let fields = LockFields {
            class: class.map_or(StringId::EMPTY, |class| profile.strings.intern(&class)),
            owner: owner.thread,
            operation: profile.strings.intern(kind.name()),
            instance: i64::try_from(instance).unwrap_or(0),
            owner_context: owner.context,
            owner_held: owner.held,
            queue: i64::try_from(queue).unwrap_or(0),
        };
        let thread = self.thread_of(profile, notice.thread, notice.java_id, place.is_virtual);
        let (time, duration) = (notice.time.saturating_sub(self.zero), notice.duration);
        locks.told += 1;
        if kind.is_contention() {
            locks.contended += 1;
            locks.owned += u64::from(owner.thread != ThreadId::UNKNOWN);
            locks.with_owner_stack += u64::from(owner.context != ContextId::ROOT);
        }
        locks.outside += u64::from(place.is_outside);
        let row = Row::new(place.context, thread, 0).at(time);
        match kind.is_contention() {
            true => locks.add(profile, row, 1, duration, 0),
            false => locks.add(profile, row, 0, 0, duration),
        }
        let event = Event { time, duration, thread, context: place.context };
        let table = locks.tables(profile).events;
        profile.events_mut(table).push(event, &fields.values());
        Some(())
    }

    /// `None` while names are missing. Without an answer the owner is whom the waiter saw, by its
    /// number and its Java id.
    fn owner(
        &mut self,
        profile: &mut Profile,
        locks: &mut Locks,
        answer: Option<Answer>,
        (number, java_id): (u64, u64),
        last: bool,
    ) -> Option<Owner> {
        if let Some(Answer { thread, java_id, trace, held }) = answer {
            let place = self.context(profile, trace, last)?;
            let thread = self.thread_of(profile, thread, java_id, place.is_virtual);
            return Some(Owner { thread, context: place.context, held });
        }
        let number = u32::try_from(number).unwrap_or(0);
        let thread = match (number, java_id) {
            (0, 0) => ThreadId::UNKNOWN,
            (0, id) => match locks.ids.get(&id).copied() {
                Some(thread) => thread,
                None => {
                    let thread = self.with_java_id(profile, id);
                    locks.ids.insert(id, thread);
                    thread
                }
            },
            (number, id) => self.thread_of(profile, number, id, false),
        };
        Some(Owner { thread, context: ContextId::ROOT, held: false })
    }

    /// A thread of which only the id is known. One that the stream has not told of is virtual.
    fn with_java_id(&mut self, profile: &mut Profile, id: u64) -> ThreadId {
        let known = self.threads.values().copied();
        let mut known = known.filter(|thread| profile.threads.get(*thread).java_id == Some(id));
        match known.next() {
            Some(thread) => thread,
            None => self.thread_of(profile, 0, id, true),
        }
    }
}
