//! A whole profile: its tables, the few things that need more than one of them, and the check that
//! they fit together.

use crate::contexts::Contexts;
use crate::events::{EventKind, EventTable, FieldColumn};
use crate::frames::{Frame, Frames};
use crate::handle::{ContextId, EventTableId, FrameId, MethodId, SeriesId, ThreadId};
use crate::methods::{Method, MethodKind, Methods};
use crate::run::RunInfo;
use crate::series::{Series, SeriesInfo};
use crate::strings::Strings;
use crate::threads::Threads;
use std::fmt;

/// Everything that one run told.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub strings: Strings,
    pub methods: Methods,
    pub frames: Frames,
    pub contexts: Contexts,
    pub threads: Threads,
    pub run: RunInfo,
    series: Vec<Series>,
    events: Vec<EventTable>,
}

impl Profile {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add_series(&mut self, info: SeriesInfo) -> SeriesId {
        self.series.push(Series::new(info));
        SeriesId::new(self.series.len() as u32 - 1)
    }

    /// Adds a series that was made elsewhere, with its rows.
    pub fn add_made_series(&mut self, series: Series) -> SeriesId {
        self.series.push(series);
        SeriesId::new(self.series.len() as u32 - 1)
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn series(&self, id: SeriesId) -> &Series {
        &self.series[id.index()]
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn series_mut(&mut self, id: SeriesId) -> &mut Series {
        &mut self.series[id.index()]
    }

    pub fn all_series(&self) -> impl Iterator<Item = (SeriesId, &Series)> {
        (0..).zip(&self.series).map(|(number, series)| (SeriesId::new(number), series))
    }

    /// The table of a kind of event, which is added if there is none of exactly that kind.
    pub fn events_of(&mut self, kind: &EventKind) -> EventTableId {
        let found = self.events.iter().position(|table| table.kind() == kind);
        let number = found.unwrap_or_else(|| {
            self.events.push(EventTable::new(kind.clone()));
            self.events.len() - 1
        });
        EventTableId::new(number as u32)
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn events(&self, id: EventTableId) -> &EventTable {
        &self.events[id.index()]
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn events_mut(&mut self, id: EventTableId) -> &mut EventTable {
        &mut self.events[id.index()]
    }

    pub fn all_events(&self) -> impl Iterator<Item = (EventTableId, &EventTable)> {
        (0..).zip(&self.events).map(|(number, table)| (EventTableId::new(number), table))
    }

    /// The frame of an account that is not code, such as `[dropped]`; see [`MethodKind::Special`].
    pub fn special(&mut self, name: &str) -> FrameId {
        let name = self.strings.intern(name);
        let kind = MethodKind::Special;
        let method = self.methods.intern(Method { kind, name, ..Method::default() });
        self.frames.intern(Frame::of(method))
    }

    /// The method of a frame.
    pub fn method_of(&self, frame: FrameId) -> &Method {
        self.methods.get(self.frames.get(frame).method)
    }

    /// `com.acme.Orders.place` for Java, the bare name for all else.
    pub fn method_name(&self, id: MethodId) -> String {
        let method = self.methods.get(id);
        let (class, name) = (self.strings.get(method.class), self.strings.get(method.name));
        match (class, name) {
            ("", "") => "[unknown]".to_owned(),
            (class, "") => class.to_owned(),
            ("", name) => name.to_owned(),
            (class, name) => format!("{class}.{name}"),
        }
    }

    /// The name of a stack's innermost method; `None` if the stack is not known.
    pub fn innermost_name(&self, context: ContextId) -> Option<String> {
        let frame = self.contexts.frame(context)?;
        Some(self.method_name(self.frames.get(frame).method))
    }

    /// The name of a thread, or what else tells it from others.
    pub fn thread_name(&self, id: ThreadId) -> String {
        let thread = self.threads.get(id);
        match (self.strings.get(thread.name), thread.java_id, thread.os_id) {
            ("", None, None) => "[unknown thread]".to_owned(),
            ("", Some(java), _) => format!("thread {java}"),
            ("", None, Some(os)) => format!("thread with system id {os}"),
            (name, ..) => name.to_owned(),
        }
    }

    /// Lets go of the rows of all series and events, which somebody else keeps by now. Names,
    /// contexts and threads stay, so that measuring can go on.
    pub fn forget_rows(&mut self) {
        self.series.iter_mut().for_each(Series::forget_rows);
        self.events.iter_mut().for_each(EventTable::forget_rows);
    }

    /// Bytes on the heap, without the small change.
    pub fn memory(&self) -> usize {
        let tables = self.strings.memory() + self.methods.memory() + self.frames.memory();
        let series: usize = self.series.iter().map(Series::memory).sum();
        let events: usize = self.events.iter().map(EventTable::memory).sum();
        tables + self.contexts.memory() + self.threads.memory() + series + events
    }

    /// Checks that every handle in every table names a row that is there. A profile made of the
    /// tables' own handles passes; one made of numbers from outside is to be checked once.
    pub fn check(&self) -> Result<(), Invalid> {
        let strings = self.strings.len();
        for (id, method) in self.methods.iter() {
            let Method { class, name, descriptor, file, loader, module, .. } = *method;
            let texts = [class, name, descriptor, file, loader, module];
            let largest = texts.into_iter().max().unwrap_or_default();
            bound("methods", id.index(), "strings", largest.index(), strings)?;
        }
        for (id, frame) in self.frames.iter() {
            bound("frames", id.index(), "methods", frame.method.index(), self.methods.len())?;
        }
        for (id, _, frame) in self.contexts.iter() {
            bound("contexts", id.index(), "frames", frame.index(), self.frames.len())?;
        }
        for (id, thread) in self.threads.iter() {
            bound("threads", id.index(), "strings", thread.name.index(), strings)?;
        }
        for (id, series) in self.all_series() {
            if let Some((context, thread)) = series.largest_handles() {
                self.check_place("series", id.index(), context, thread)?;
            }
        }
        self.all_events().try_for_each(|(id, table)| self.check_events(id, table))
    }

    fn check_events(&self, id: EventTableId, table: &EventTable) -> Result<(), Invalid> {
        for event in table.events() {
            let (context, thread) = (event.context.raw(), event.thread.raw());
            self.check_place("events", id.index(), context, thread)?;
        }
        for column in table.fields() {
            let (column, target, rows) = match column {
                FieldColumn::Text(column) => (column, "strings", self.strings.len()),
                FieldColumn::Thread(column) => (column, "threads", self.threads.len()),
                FieldColumn::Context(column) => (column, "contexts", self.contexts.len()),
                FieldColumn::Integer(_) | FieldColumn::Real(_) => continue,
            };
            let largest = column.iter().max().unwrap_or_default() as usize;
            bound("events", id.index(), target, largest, rows)?;
        }
        Ok(())
    }

    fn check_place(
        &self,
        table: &'static str,
        row: usize,
        context: u32,
        thread: u32,
    ) -> Result<(), Invalid> {
        let (context, thread) = (ContextId::new(context).index(), ThreadId::new(thread).index());
        bound(table, row, "contexts", context, self.contexts.len())?;
        bound(table, row, "threads", thread, self.threads.len())
    }
}

fn bound(
    table: &'static str,
    row: usize,
    target: &'static str,
    handle: usize,
    rows: usize,
) -> Result<(), Invalid> {
    if handle < rows { Ok(()) } else { Err(Invalid { table, row, target, handle }) }
}

/// A handle that names no row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    pub table: &'static str,
    /// The row of `table`; for series and events the number of the series or kind.
    pub row: usize,
    pub target: &'static str,
    pub handle: usize,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invalid { table, row, target, handle } = self;
        write!(f, "row {row} of {table} names row {handle} of {target}, which is not there")
    }
}

impl std::error::Error for Invalid {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, FieldType, FieldValue};
    use crate::handle::StringId;
    use crate::series::Row;
    use crate::threads::Thread;
    use crate::values::ValueKind;

    fn good() -> Profile {
        let mut profile = Profile::new();
        let frame = profile.special("[dropped]");
        let context = profile.contexts.stack([frame]);
        let thread = profile.threads.push(Thread::default());
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
        profile.series_mut(series).push(Row::new(context, thread, 1));
        let events = profile.events_of(&EventKind::marker());
        let text = profile.strings.intern("hello");
        profile.events_mut(events).push(Event::default(), &[FieldValue::Text(text)]);
        profile
    }

    #[test]
    fn a_profile_of_its_own_handles_is_valid_and_others_are_named() {
        assert_eq!(good().check(), Ok(()));
        let problem = |spoil: &dyn Fn(&mut Profile)| {
            let mut profile = good();
            spoil(&mut profile);
            profile.check().expect_err("is spoilt").to_string()
        };
        let far = 99;
        let found = [
            problem(&|p| {
                p.methods.push(Method { file: StringId::new(far), ..Method::default() });
            }),
            problem(&|p| {
                p.frames.push(Frame::of(MethodId::new(far)));
            }),
            problem(&|p| {
                p.contexts.push(ContextId::ROOT, FrameId::new(far));
            }),
            problem(&|p| {
                p.threads.push(Thread { name: StringId::new(far), ..Thread::default() });
            }),
            problem(&|p| {
                let row = Row::new(ContextId::new(far), ThreadId::UNKNOWN, 1);
                p.series_mut(SeriesId::new(0)).push(row);
            }),
            problem(&|p| {
                let row = Row::new(ContextId::ROOT, ThreadId::new(far), 1);
                p.series_mut(SeriesId::new(0)).push(row);
            }),
            problem(&|p| {
                let text = FieldValue::Text(StringId::new(far));
                p.events_mut(EventTableId::new(0)).push(Event::default(), &[text]);
            }),
            problem(&|p| {
                let kind = EventKind::new("lock", &[("owner's stack", FieldType::Context)]);
                let id = p.events_of(&kind);
                let stack = FieldValue::Context(ContextId::new(far));
                p.events_mut(id).push(Event::default(), &[stack]);
            }),
        ];
        let targets = ["strings", "methods", "frames", "strings", "contexts", "threads"];
        let targets = [&targets[..], &["strings", "contexts"]].concat();
        for (text, target) in found.iter().zip(targets) {
            assert!(text.contains(&format!("row 99 of {target}")), "{text}");
        }
    }

    #[test]
    fn equal_kinds_of_events_share_a_table() {
        let mut profile = good();
        let gc = profile.events_of(&EventKind::gc());
        assert_eq!(profile.events_of(&EventKind::gc()), gc);
        assert_eq!(profile.all_events().count(), 2);
    }

    #[test]
    fn names_say_what_is_known() {
        let mut profile = good();
        assert_eq!(profile.method_name(MethodId::new(0)), "[dropped]");
        let class = profile.strings.intern("byte[]");
        let kind = MethodKind::Class;
        let method = profile.methods.intern(Method { kind, class, ..Method::default() });
        assert_eq!(profile.method_name(method), "byte[]");
        let thread = profile.threads.push(Thread { java_id: Some(7), ..Thread::default() });
        assert_eq!(profile.thread_name(thread), "thread 7");
        assert_eq!(profile.thread_name(ThreadId::UNKNOWN), "[unknown thread]");
    }
}
