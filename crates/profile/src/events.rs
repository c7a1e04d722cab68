//! Timestamped events with typed fields: collections, lock waits, class loads, whatever an engine
//! or a foreign file brings.
//!
//! Each kind of event has a table of its own, whose columns are the common ones (time, duration,
//! thread, context) and its fields. Readers find a kind and its fields by name, so a new kind needs
//! no change here. The constructors of [`EventKind`] are the names that Tare's own parts agree on.

use crate::column::Column;
use crate::handle::{ContextId, StringId, ThreadId};
use crate::values::Unit;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldType {
    Integer(Unit),
    Real,
    Text,
    Thread,
    /// A stack that is not the event's own: where a lock's owner took it.
    Context,
}

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FieldValue {
    Integer(i64),
    Real(f64),
    Text(StringId),
    Thread(ThreadId),
    /// [`ContextId::ROOT`] if the stack is not known.
    Context(ContextId),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldInfo {
    pub name: String,
    pub kind: FieldType,
}

/// A kind of event: its name and fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventKind {
    pub name: String,
    pub fields: Vec<FieldInfo>,
}

impl EventKind {
    pub fn new(name: &str, fields: &[(&str, FieldType)]) -> Self {
        let field = |&(name, kind): &(&str, _)| FieldInfo { name: name.to_owned(), kind };
        EventKind { name: name.to_owned(), fields: fields.iter().map(field).collect() }
    }

    /// `gc`: a collection. Its duration is the time that the program stood still. Those that Tare
    /// records have more fields (FORMAT.md); [`collections`](crate::collections) reads them all.
    pub fn gc() -> Self {
        let (bytes, text) = (FieldType::Integer(Unit::Bytes), FieldType::Text);
        let sizes = [("heap-before", bytes), ("heap-after", bytes)];
        EventKind::new("gc", &[&[("collector", text), ("cause", text)][..], &sizes].concat())
    }

    /// `lock`: a thread waited, for the duration. The context is the waiter's stack, `class` that of
    /// the object it waited for, `instance` tells objects of a class apart (0: not known),
    /// `operation` is the name of a [`Wait`](crate::Wait). `owner-context` is where the owner was while it was
    /// waited for; `owner-held` is 1 if it still had the lock then. `queue` is how many waited for
    /// that object when the wait began, this thread among them (0: not known).
    pub fn lock() -> Self {
        let who = [("class", FieldType::Text), ("owner", FieldType::Thread)];
        let how = [("operation", FieldType::Text), ("instance", COUNT)];
        let owner = [("owner-context", FieldType::Context), ("owner-held", COUNT)];
        EventKind::new("lock", &[&who[..], &how, &owner, &[("queue", COUNT)]].concat())
    }

    /// `task`: an executor had a task for the duration before a thread began to run it. Time and
    /// context are those of the submission, the thread is the one that ran it.
    pub fn task() -> Self {
        EventKind::new("task", &[("class", FieldType::Text), ("executor", FieldType::Text)])
    }

    /// `class-load`: a class was loaded, for which the context is the reason. `source` is the jar or
    /// directory it comes from, if that is known; `number` tells classes apart that have one name,
    /// `loader-number` loaders (0: the JVM's own, or not known).
    pub fn class_load() -> Self {
        EventKind::new("class-load", &CLASS)
    }

    /// `class-present`: the same of a class that was loaded before the recording began.
    pub fn class_present() -> Self {
        EventKind::new("class-present", &CLASS)
    }

    /// `class-unload`: a collection has freed a class; when that was noticed.
    pub fn class_unload() -> Self {
        EventKind::new("class-unload", &CLASS)
    }

    /// `class-cost`: so long the JVM was busy with the class of a `number`, without other classes
    /// that had to be loaded for it. Thread and context are those of its load. A class may have
    /// several such events: it is linked later than it is loaded.
    pub fn class_cost() -> Self {
        let time = FieldType::Integer(Unit::Nanoseconds);
        let times = [("search", time), ("define", time), ("link", time), ("verify", time)];
        let number = ("number", FieldType::Integer(Unit::Count));
        EventKind::new("class-cost", &[&[number][..], &times].concat())
    }

    /// `class-loader`: a loader was met for the first time. `parent` is the number of the loader
    /// that it asks first.
    pub fn class_loader() -> Self {
        let names = [("name", FieldType::Text), ("class", FieldType::Text)];
        let numbers = [("number", COUNT), ("parent", COUNT)];
        EventKind::new("class-loader", &[&names[..], &numbers].concat())
    }

    /// `region`: so many passages of a code region by a thread. Least and most are those of the run
    /// so far.
    pub fn region() -> Self {
        let time = FieldType::Integer(Unit::Nanoseconds);
        let times = [("total", time), ("min", time), ("max", time)];
        let fields = [&[("region", FieldType::Text), ("count", COUNT)][..], &times].concat();
        EventKind::new("region", &fields)
    }

    /// `region-times`: how many of those passages took from so long to so long.
    pub fn region_times() -> Self {
        let time = FieldType::Integer(Unit::Nanoseconds);
        let stretch = [("from", time), ("to", time), ("count", COUNT)];
        let fields = [&[("region", FieldType::Text)][..], &stretch].concat();
        EventKind::new("region-times", &fields)
    }

    /// `call`: one call of a trace, in its context. `exit` is `return`, `exception`, `running` (the
    /// trace ended first) or `cut` (its end is not known); `type` tells what code ran; of the
    /// duration, `held` was none of the program's doing.
    pub fn call() -> Self {
        let held = ("held", FieldType::Integer(Unit::Nanoseconds));
        let texts = [("exit", FieldType::Text), ("type", FieldType::Text)];
        EventKind::new("call", &[&texts[..], &[held]].concat())
    }

    /// `gap`: so many events of a thread are missing from its trace.
    pub fn gap() -> Self {
        EventKind::new("gap", &[("events", FieldType::Integer(Unit::Count))])
    }

    /// `survivor`: a sampled object that lives at the end of the recording. Time, thread and context
    /// are those of its allocation. It stands for `objects` with `bytes` in all; `collections` is
    /// how many it has survived. `number` is what snapshots of the heap know it by (0: not told).
    pub fn survivor() -> Self {
        let size = ("size", FieldType::Integer(Unit::Bytes));
        let number = ("number", FieldType::Integer(Unit::Count));
        EventKind::new("survivor", &[&[size][..], &LIFE, &[number]].concat())
    }

    /// `death`: a collection freed a sampled object that had survived others. The time is when that
    /// was noticed, the context that of its allocation; the fields are those of a survivor.
    pub fn death() -> Self {
        EventKind::new("death", &LIFE)
    }

    /// `marker`: something that happened once, told by its text.
    pub fn marker() -> Self {
        EventKind::new("marker", &[("text", FieldType::Text)])
    }
}

/// The fields of a `lock` event. The default knows nothing but that there was a wait.
#[derive(Clone, Copy, Default, Debug)]
pub struct LockFields {
    pub class: StringId,
    pub owner: ThreadId,
    /// The name of a [`Wait`](crate::Wait).
    pub operation: StringId,
    pub instance: i64,
    pub owner_context: ContextId,
    pub owner_held: bool,
    pub queue: i64,
}

impl LockFields {
    /// In the order of [`EventKind::lock`].
    pub fn values(&self) -> [FieldValue; 7] {
        [
            FieldValue::Text(self.class),
            FieldValue::Thread(self.owner),
            FieldValue::Text(self.operation),
            FieldValue::Integer(self.instance),
            FieldValue::Context(self.owner_context),
            FieldValue::Integer(self.owner_held.into()),
            FieldValue::Integer(self.queue),
        ]
    }
}

const COUNT: FieldType = FieldType::Integer(Unit::Count);

/// A class and its loader.
const CLASS: [(&str, FieldType); 5] = [
    ("class", FieldType::Text),
    ("loader", FieldType::Text),
    ("source", FieldType::Text),
    ("number", FieldType::Integer(Unit::Count)),
    ("loader-number", FieldType::Integer(Unit::Count)),
];

/// What a sampled object stands for, and how many collections it has survived.
const LIFE: [(&str, FieldType); 3] = [
    ("bytes", FieldType::Integer(Unit::Bytes)),
    ("objects", FieldType::Real),
    ("collections", FieldType::Integer(Unit::Count)),
];

/// What all events have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// When it began, in nanoseconds since the start of the run.
    pub time: u64,
    /// Nanoseconds; zero for what has no duration.
    pub duration: u64,
    pub thread: ThreadId,
    /// [`ContextId::ROOT`] if the stack is not known.
    pub context: ContextId,
}

/// The values of one field, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldColumn {
    Integer(Column<i64>),
    Real(Column<f64>),
    Text(Column<u32>),
    Thread(Column<u32>),
    Context(Column<u32>),
}

impl FieldColumn {
    fn new(kind: FieldType) -> Self {
        match kind {
            FieldType::Integer(_) => FieldColumn::Integer(Column::new()),
            FieldType::Real => FieldColumn::Real(Column::new()),
            FieldType::Text => FieldColumn::Text(Column::new()),
            FieldType::Thread => FieldColumn::Thread(Column::new()),
            FieldType::Context => FieldColumn::Context(Column::new()),
        }
    }

    /// False if the value is of another type.
    #[inline]
    fn push(&mut self, value: FieldValue) -> bool {
        match (self, value) {
            (FieldColumn::Integer(column), FieldValue::Integer(value)) => column.push(value),
            (FieldColumn::Real(column), FieldValue::Real(value)) => column.push(value),
            (FieldColumn::Text(column), FieldValue::Text(id)) => column.push(id.raw()),
            (FieldColumn::Thread(column), FieldValue::Thread(id)) => column.push(id.raw()),
            (FieldColumn::Context(column), FieldValue::Context(id)) => column.push(id.raw()),
            _ => return false,
        }
        true
    }

    pub fn get(&self, row: usize) -> Option<FieldValue> {
        match self {
            FieldColumn::Integer(column) => column.get(row).map(FieldValue::Integer),
            FieldColumn::Real(column) => column.get(row).map(FieldValue::Real),
            FieldColumn::Text(column) => {
                column.get(row).map(|id| FieldValue::Text(StringId::new(id)))
            }
            FieldColumn::Thread(column) => {
                column.get(row).map(|id| FieldValue::Thread(ThreadId::new(id)))
            }
            FieldColumn::Context(column) => {
                column.get(row).map(|id| FieldValue::Context(ContextId::new(id)))
            }
        }
    }

    fn clear(&mut self) {
        match self {
            FieldColumn::Integer(column) => column.clear(),
            FieldColumn::Real(column) => column.clear(),
            FieldColumn::Text(column)
            | FieldColumn::Thread(column)
            | FieldColumn::Context(column) => column.clear(),
        }
    }

    fn memory(&self) -> usize {
        match self {
            FieldColumn::Integer(column) => column.memory(),
            FieldColumn::Real(column) => column.memory(),
            FieldColumn::Text(column)
            | FieldColumn::Thread(column)
            | FieldColumn::Context(column) => column.memory(),
        }
    }
}

/// All events of one kind, in the order in which they came.
#[derive(Clone, Debug, PartialEq)]
pub struct EventTable {
    kind: EventKind,
    /// How many rows were there before those that are held; see [`EventTable::forget_rows`].
    forgotten: u64,
    times: Column<u64>,
    durations: Column<u64>,
    threads: Column<u32>,
    contexts: Column<u32>,
    fields: Vec<FieldColumn>,
}

impl EventTable {
    pub fn new(kind: EventKind) -> Self {
        let fields = kind.fields.iter().map(|field| FieldColumn::new(field.kind)).collect();
        EventTable {
            kind,
            forgotten: 0,
            times: Column::new(),
            durations: Column::new(),
            threads: Column::new(),
            contexts: Column::new(),
            fields,
        }
    }

    pub fn kind(&self) -> &EventKind {
        &self.kind
    }

    /// # Panics
    /// If the values do not have the number and the types of the kind's fields.
    pub fn push(&mut self, event: Event, values: &[FieldValue]) {
        let mut fits = values.len() == self.fields.len();
        for (column, value) in self.fields.iter_mut().zip(values) {
            fits &= column.push(*value);
        }
        assert!(fits, "the fields of a {:?} event are not {values:?}", self.kind.name);
        self.times.push(event.time);
        self.durations.push(event.duration);
        self.threads.push(event.thread.raw());
        self.contexts.push(event.context.raw());
    }

    /// The number of rows held.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn event(&self, row: usize) -> Option<Event> {
        Some(Event {
            time: self.times.get(row)?,
            duration: self.durations.get(row)?,
            thread: ThreadId::new(self.threads.get(row)?),
            context: ContextId::new(self.contexts.get(row)?),
        })
    }

    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        (0..self.len()).filter_map(|row| self.event(row))
    }

    /// The number of a field, by its name.
    pub fn field_named(&self, name: &str) -> Option<usize> {
        self.kind.fields.iter().position(|field| field.name == name)
    }

    pub fn field(&self, row: usize, field: usize) -> Option<FieldValue> {
        self.fields.get(field)?.get(row)
    }

    /// A row with its contexts exchanged, for another table of this kind: that of the event by
    /// `place`, those of its fields by `place_of_field`. Whoever makes new contexts has to tell
    /// both.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn moved_row(
        &self,
        row: usize,
        place: impl FnOnce(ContextId) -> ContextId,
        mut place_of_field: impl FnMut(ContextId) -> ContextId,
    ) -> (Event, Vec<FieldValue>) {
        let event = self.event(row).expect("a row of the table");
        let fields = self.fields.iter().filter_map(|column| column.get(row));
        let fields = fields.map(|value| match value {
            FieldValue::Context(context) => FieldValue::Context(place_of_field(context)),
            other => other,
        });
        (Event { context: place(event.context), ..event }, fields.collect())
    }

    /// When each event began, as in [`Event::time`]; the other columns in the same way.
    pub fn times(&self) -> &Column<u64> {
        &self.times
    }

    pub fn durations(&self) -> &Column<u64> {
        &self.durations
    }

    pub fn threads(&self) -> &Column<u32> {
        &self.threads
    }

    pub fn contexts(&self) -> &Column<u32> {
        &self.contexts
    }

    /// One column per field of the kind.
    pub fn fields(&self) -> &[FieldColumn] {
        &self.fields
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let common = self.times.memory() + self.durations.memory();
        let places = self.threads.memory() + self.contexts.memory();
        common + places + self.fields.iter().map(FieldColumn::memory).sum::<usize>()
    }

    /// The number of the first row held, counted from the beginning of the run.
    pub fn first_row(&self) -> u64 {
        self.forgotten
    }

    /// Lets go of the rows, which somebody else keeps by now. Rows keep their numbers.
    pub fn forget_rows(&mut self) {
        self.forgotten += self.len() as u64;
        self.drop_rows();
    }

    /// Throws the rows held away, as if they had never come.
    pub fn drop_rows(&mut self) {
        self.times.clear();
        self.durations.clear();
        self.threads.clear();
        self.contexts.clear();
        self.fields.iter_mut().for_each(FieldColumn::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_keep_their_types() {
        let mut table = EventTable::new(EventKind::gc());
        let event = Event { time: 5, duration: 2, ..Event::default() };
        let text = FieldValue::Text(StringId::new(1));
        let values = [text, text, FieldValue::Integer(100), FieldValue::Integer(40)];
        table.push(event, &values);
        let after = table.field_named("heap-after").unwrap();
        assert_eq!(table.field(0, after), Some(FieldValue::Integer(40)));
        assert_eq!((table.event(0), table.event(1)), (Some(event), None));
        table.forget_rows();
        assert_eq!((table.len(), table.first_row(), table.field(0, after)), (0, 1, None));
    }

    #[test]
    fn a_moved_row_has_new_contexts_in_its_fields_too() {
        let kind = EventKind::new("lock", &[("owner", FieldType::Context), ("n", FieldType::Real)]);
        let mut table = EventTable::new(kind);
        let event = Event { time: 3, context: ContextId::new(5), ..Event::default() };
        table.push(event, &[FieldValue::Context(ContextId::new(7)), FieldValue::Real(0.5)]);
        let by = |more| move |context: ContextId| ContextId::new(context.raw() + more);
        let (moved, fields) = table.moved_row(0, by(10), by(20));
        assert_eq!(moved, Event { context: ContextId::new(15), ..event });
        assert_eq!(fields, [FieldValue::Context(ContextId::new(27)), FieldValue::Real(0.5)]);
    }

    #[test]
    fn rows_take_memory_until_they_are_forgotten() {
        let mut table = EventTable::new(EventKind::gap());
        let empty = table.memory();
        for n in 0..1000 {
            table.push(Event { time: n, ..Event::default() }, &[FieldValue::Integer(n as i64)]);
        }
        assert!(table.memory() >= empty + 16_000, "{} bytes", table.memory());
        table.forget_rows();
        assert_eq!(table.memory(), empty);
    }

    #[test]
    #[should_panic(expected = "the fields of a \"marker\" event are not")]
    fn a_wrong_field_is_a_mistake_of_the_caller() {
        EventTable::new(EventKind::marker()).push(Event::default(), &[FieldValue::Integer(1)]);
    }
}
