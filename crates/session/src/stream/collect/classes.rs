//! Classes as values and events of the profile: how many were loaded, where and why, what each has
//! cost (`costs`), and which are unloaded.
//!
//! Events are taken in the order in which they came: what one brings is the time of those before
//! it. So one whose stack lacks names holds up those behind it, for some milliseconds.

mod costs;

use super::naming::class as class_frame;
use super::{Addresses, Collector, Place};
use crate::java_method::loader_name;
use costs::{About, Cost, Costs, Sums, Told};
use std::collections::{HashMap, VecDeque};
use tare_arena::samples::{DeclaredKind, EventHead, StreamEvent};
use tare_java_names::{is_hidden, stable};
use tare_profile::{
    ContextId, Event, EventKind, EventTableId, FieldValue, Profile, Row, SeriesId, SeriesInfo,
    StringId, ThreadId, TimeAxis, ValueKind,
};
use tare_protocol::ClassCost;

/// Events that may stand back for names. Past it, unnamed methods stay unnamed.
const MOST_WAITING: usize = 1 << 18;

/// Classes whose costs may wait until they are told of.
const MOST_EARLY: usize = 4096;

/// A class that was there before the recording, and time that belongs to no class that is known.
const BEFORE: &str = "[loaded before the recording]";
const NOBODYS: &str = "[no class that is known]";

/// A loader has found a class that was there.
const FLAG_FOUND: u64 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tells {
    Load,
    Link,
    Present,
    Unload,
    Loader,
    Sums,
}

/// The most fields of a record that are not times.
const FIELDS: usize = 4;

/// A kind of event of the engine, and where in it each of our fields is.
#[derive(Clone, Copy)]
pub struct ClassRecordKind {
    tells: Tells,
    at: [Option<usize>; FIELDS],
    own: Option<usize>,
    sums: [Option<usize>; ClassCost::ALL.len()],
}

impl ClassRecordKind {
    /// `None` if it is none of this engine's.
    pub fn of(kind: &DeclaredKind) -> Option<Self> {
        let (tells, fields): (_, &[&str]) = match kind.name.as_str() {
            "class-loaded" => (Tells::Load, &["number", "class", "loader", "flags"]),
            "class-linked" => (Tells::Link, &["number"]),
            "class-present" => (Tells::Present, &["number", "class", "loader"]),
            "class-unloaded" => (Tells::Unload, &["number"]),
            "class-loader" => (Tells::Loader, &["number", "class", "name", "parent"]),
            "class-sums" => (Tells::Sums, &["loaded", "unloaded", "own-loads"]),
            _ => return None,
        };
        let place = |name: &str| kind.fields.iter().position(|(field, _)| field == name);
        let mut at = [None; FIELDS];
        at.iter_mut().zip(fields).for_each(|(at, field)| *at = place(field));
        let sums = ClassCost::ALL.map(|cost| place(cost.name()));
        Some(ClassRecordKind { tells, at, own: place("own"), sums })
    }
}

/// An event with its fields in our order.
#[derive(Clone, Copy)]
struct Notice {
    tells: Tells,
    head: EventHead,
    fields: [u64; FIELDS],
    own: u64,
    sums: Sums,
}

#[derive(Clone, Copy)]
struct Tables {
    loads: SeriesId,
    times: SeriesId,
    load: EventTableId,
    present: EventTableId,
    unload: EventTableId,
    cost: EventTableId,
    loader: EventTableId,
}

/// What is known of a class as long as it is there.
#[derive(Clone, Copy)]
struct Known {
    class: StringId,
    loader: u32,
    source: StringId,
    /// Where and by whom it was loaded.
    context: ContextId,
    thread: ThreadId,
}

/// What the stream has told of classes.
#[derive(Default)]
pub struct Classes {
    waiting: VecDeque<Notice>,
    tables: Option<Tables>,
    known: HashMap<u64, Known>,
    loaders: HashMap<u32, StringId>,
    costs: Costs,
    /// Costs of classes that are yet to be told: hidden ones are linked first.
    early: HashMap<u64, (u64, Cost)>,
    pub present: u64,
    pub loads: u64,
    pub links: u64,
    pub unloads: u64,
    /// Loads and unloads by the JVM's own counters, and loads on the agent's own threads.
    pub of_jvm: Option<[u64; 3]>,
    /// Time that belongs to classes, in nanoseconds.
    pub time: u64,
    /// Loads without any method that is to be shown.
    pub outside: u64,
}

impl Classes {
    pub fn push(&mut self, kind: &ClassRecordKind, event: &StreamEvent) {
        let value = |at: Option<usize>| at.and_then(|at| event.values.get(at)).copied();
        let value = |at| value(at).unwrap_or(0);
        self.waiting.push_back(Notice {
            tells: kind.tells,
            head: event.head,
            fields: kind.at.map(value),
            own: value(kind.own),
            sums: kind.sums.map(value),
        });
    }

    /// What the JVM has measured, what of it is ours, what it has twice, and what may be another
    /// class's: nanoseconds.
    pub fn account(&self) -> [u64; 4] {
        let Costs { told, own, twice, shared, .. } = self.costs;
        [told, own, twice, shared]
    }

    fn tables(&mut self, profile: &mut Profile) -> Tables {
        *self.tables.get_or_insert_with(|| {
            let mut series = |kind| {
                profile.add_series(SeriesInfo::new("classes", kind).with_time(TimeAxis::Exact))
            };
            Tables {
                loads: series(ValueKind::ClassLoads),
                times: series(ValueKind::ClassLoadTime),
                load: profile.events_of(&EventKind::class_load()),
                present: profile.events_of(&EventKind::class_present()),
                unload: profile.events_of(&EventKind::class_unload()),
                cost: profile.events_of(&EventKind::class_cost()),
                loader: profile.events_of(&EventKind::class_loader()),
            }
        })
    }

    fn fields(&mut self, profile: &mut Profile, number: u64, known: Known) -> [FieldValue; 5] {
        let loader = match (known.loader, self.loaders.get(&known.loader)) {
            (_, Some(loader)) => *loader,
            (number, None) => profile.strings.intern(&loader_name(number, "")),
        };
        [
            FieldValue::Text(known.class),
            FieldValue::Text(loader),
            FieldValue::Text(known.source),
            FieldValue::Integer(i64::try_from(number).unwrap_or(0)),
            FieldValue::Integer(known.loader.into()),
        ]
    }

    /// Adds what an event says of the costs of classes.
    fn cost(&mut self, profile: &mut Profile, about: About, told: &Told, zero: u64) {
        let mut costs = Vec::new();
        self.costs.take(about, told, |number, cost| costs.push((number, cost)));
        let time = told.time.saturating_sub(zero);
        for (number, cost) in costs.into_iter().filter(|(_, cost)| cost.sum() > 0) {
            if self.known.contains_key(&number) || self.early.len() >= MOST_EARLY {
                self.add_cost(profile, number, cost, time);
            } else {
                let (_, sum) = self.early.entry(number).or_insert((time, Cost::default()));
                sum.add(cost);
            }
        }
    }

    fn add_cost(&mut self, profile: &mut Profile, number: u64, cost: Cost, time: u64) {
        let tables = self.tables(profile);
        let (context, thread) = match self.known.get(&number) {
            Some(known) => (known.context, known.thread),
            None => (nobodys(profile), ThreadId::UNKNOWN),
        };
        let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let Cost { search, define, link, verify } = cost;
        let fields = [number, search, define, link, verify].map(integer).map(FieldValue::Integer);
        let event = Event { time, duration: cost.sum(), thread, context };
        profile.events_mut(tables.cost).push(event, &fields);
        let row = Row::new(context, thread, integer(cost.sum())).at(time);
        profile.series_mut(tables.times).push(row);
        self.time = self.time.saturating_add(cost.sum());
    }

    /// Costs of classes that nobody will tell of any more.
    fn end(&mut self, profile: &mut Profile) {
        self.costs.end();
        for (number, (time, cost)) in std::mem::take(&mut self.early) {
            self.add_cost(profile, number, cost, time);
        }
    }

    fn add_loader(&mut self, profile: &mut Profile, notice: &Notice, texts: [&str; 2]) {
        let tables = self.tables(profile);
        let [number, _, _, parent] = notice.fields;
        let [class, name] = texts;
        let label = loader_name(u32::try_from(number).unwrap_or(0), class);
        let label = match name {
            "" | "app" | "platform" => label,
            name => format!("{name} ({label})"),
        };
        let label = profile.strings.intern(&label);
        let number = u32::try_from(number).unwrap_or(0);
        // A loader may be told of more than once.
        if self.loaders.insert(number, label).is_some() {
            return;
        }
        let class = profile.strings.intern(&class.replace('/', "."));
        let fields = [
            FieldValue::Text(profile.strings.intern(name)),
            FieldValue::Text(class),
            FieldValue::Integer(number.into()),
            FieldValue::Integer(i64::try_from(parent).unwrap_or(0)),
        ];
        let event = Event { time: notice.head.time, ..Event::default() };
        profile.events_mut(tables.loader).push(event, &fields);
    }
}

fn nobodys(profile: &mut Profile) -> ContextId {
    let frame = profile.special(NOBODYS);
    profile.contexts.stack([frame])
}

impl<A: Addresses> Collector<A> {
    /// Adds what is told of classes, up to a stack that lacks names; with `last`, all of it.
    pub(super) fn add_classes(&mut self, profile: &mut Profile, last: bool) {
        let Some(mut classes) = self.classes.take() else { return };
        classes.tables(profile);
        while let Some(notice) = classes.waiting.pop_front() {
            let last = last || classes.waiting.len() > MOST_WAITING;
            if self.add_class(profile, &mut classes, &notice, last).is_none() {
                classes.waiting.push_front(notice);
                break;
            }
        }
        if last {
            classes.end(profile);
        }
        self.classes = Some(classes);
    }

    /// `None` while names are missing.
    fn add_class(
        &mut self,
        profile: &mut Profile,
        classes: &mut Classes,
        notice: &Notice,
        last: bool,
    ) -> Option<()> {
        let Notice { head, own, sums, .. } = *notice;
        let [number, second, third, fourth] = notice.fields;
        let mut told = Told { thread: head.thread, time: head.time, own, sums };
        let zero = self.zero;
        let tables = classes.tables(profile);
        match notice.tells {
            Tells::Load if fourth & FLAG_FOUND != 0 => {
                classes.cost(profile, About::Found { number }, &told, zero);
            }
            Tells::Load => {
                let place = match head.trace {
                    // The agent counts those that it has lost.
                    0 => {
                        let frame = profile.special("[stack lost]");
                        Place::of(profile.contexts.stack([frame]))
                    }
                    trace => self.context(profile, trace, last)?,
                };
                let thread = self.thread_of(profile, head.thread, head.java_id, place.is_virtual);
                let loader = u32::try_from(third).unwrap_or(0);
                let known = self.named(profile, classes, second, loader);
                let known = Known {
                    context: with_class(profile, place.context, known.class),
                    thread,
                    ..known
                };
                classes.known.insert(number, known);
                classes.loads += 1;
                classes.outside += u64::from(place.is_outside);
                let time = head.time.saturating_sub(zero);
                let event = Event { time, duration: 0, thread, context: known.context };
                let fields = classes.fields(profile, number, known);
                profile.events_mut(tables.load).push(event, &fields);
                let row = Row::new(known.context, thread, 1).at(time);
                profile.series_mut(tables.loads).push(row);
                if let Some((time, cost)) = classes.early.remove(&number) {
                    classes.add_cost(profile, number, cost, time);
                }
                let hidden = self.signature(second).is_some_and(is_hidden);
                classes.cost(
                    profile,
                    About::Load { number, boot: loader == 0, hidden },
                    &told,
                    zero,
                );
            }
            Tells::Present => {
                let loader = u32::try_from(third).unwrap_or(0);
                let frame = profile.special(BEFORE);
                let before = profile.contexts.stack([frame]);
                let known = self.named(profile, classes, second, loader);
                let context = with_class(profile, before, known.class);
                let known = Known { context, ..known };
                classes.known.insert(number, known);
                classes.present += 1;
                let fields = classes.fields(profile, number, known);
                let time = head.time.saturating_sub(zero);
                let event = Event { time, ..Event::default() };
                profile.events_mut(tables.present).push(event, &fields);
            }
            Tells::Link => {
                classes.links += 1;
                classes.cost(profile, About::Link { number }, &told, zero);
            }
            Tells::Sums => {
                told.thread = 0;
                classes.of_jvm = Some([number, second, third]);
                classes.cost(profile, About::Sums, &told, zero);
            }
            Tells::Unload => {
                classes.unloads += 1;
                if let Some(known) = classes.known.remove(&number) {
                    let fields = classes.fields(profile, number, known);
                    let time = head.time.saturating_sub(zero);
                    let Known { thread, context, .. } = known;
                    let event = Event { time, duration: 0, thread, context };
                    profile.events_mut(tables.unload).push(event, &fields);
                }
            }
            Tells::Loader => {
                let mut notice = *notice;
                notice.head.time = head.time.saturating_sub(zero);
                let texts = [second, third].map(|id| self.signature(id).unwrap_or("").to_owned());
                classes.add_loader(profile, &notice, [&texts[0], &texts[1]]);
            }
        }
        Some(())
    }

    fn signature(&self, text: u64) -> Option<&str> {
        u32::try_from(text).ok().and_then(|id| self.events.text_of(id))
    }

    /// A class by its text: as it is called in every run, and where it comes from.
    fn named(&self, profile: &mut Profile, classes: &Classes, text: u64, loader: u32) -> Known {
        let signature = self.signature(text).unwrap_or("");
        let internal = signature.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
        let internal = internal.unwrap_or(signature);
        let label = classes.loaders.get(&loader).map_or("", |label| profile.strings.get(*label));
        let source = match (loader, label) {
            (0, _) | (_, "platform") => Some("jdk".into()),
            // The class path tells only of what the application's own loader loads.
            (_, "app") => self.origins.as_ref().and_then(|origins| origins.of_class(internal)),
            _ => None,
        };
        Known {
            class: profile.strings.intern(&stable(internal).replace('/', ".")),
            loader,
            source: source.map_or(StringId::EMPTY, |source| profile.strings.intern(&source)),
            context: ContextId::ROOT,
            thread: ThreadId::UNKNOWN,
        }
    }
}

/// A stack with a class innermost.
fn with_class(profile: &mut Profile, stack: ContextId, class: StringId) -> ContextId {
    let name = profile.strings.get(class).to_owned();
    let frame = class_frame(profile, &name);
    profile.contexts.child(stack, frame)
}
