//! Waits of threads, in and out: `jdk.JavaMonitorEnter`, `jdk.JavaMonitorWait`, `jdk.ThreadPark`,
//! `jdk.ThreadSleep`; and tasks that wait for a thread, which the JDK has no event for:
//! `tare.TaskQueued`.
//!
//! The JDK's events have no place for the owner of a lock that is no monitor, for its stack and for
//! what a thread parks for. Files of ours have fields of our own for these, behind the JDK's. In
//! files of others a park is told by its stack.

use super::schema::{MONITOR_ENTER, MONITOR_WAIT, TASK_QUEUED, THREAD_PARK, THREAD_SLEEP};
use super::track::Track;
use super::write::Writer;
use crate::error::WriteError;
use std::collections::HashMap;
use tare_profile::{
    ContextId, Event, EventKind, EventTable, FieldValue, LockFields, Profile, Series, StringId,
    ThreadId, ValueKind, Wait,
};

/// What series made of waits are called.
pub const LOCK: &str = "lock";

/// The fields of an event that bring a wait, in the order of [`super::events`]: class and owner as
/// the JDK has them, then ours. `jdk.ThreadSleep` has no class.
pub fn fields(track: Track) -> &'static [&'static str] {
    match track {
        Track::MonitorEnter => &[
            "monitorClass",
            "previousOwner",
            "operation",
            "address",
            "ownerStackTrace",
            "ownerHeld",
            "queueLength",
        ],
        Track::MonitorWait => &["monitorClass", "notifier", "operation", "address"],
        Track::Park => &[
            "parkedClass",
            "owner",
            "operation",
            "address",
            "ownerStackTrace",
            "ownerHeld",
            "queueLength",
        ],
        _ => &[],
    }
}

/// What a wait is, where the file does not say.
pub fn wait_of(profile: &Profile, track: Track, class: &str, context: ContextId) -> Wait {
    match track {
        Track::MonitorEnter => Wait::MonitorEnter,
        Track::MonitorWait => Wait::MonitorWait,
        Track::Sleep => Wait::Sleep,
        _ => {
            let frames = profile.contexts.frames(context).map(|frame| {
                let method = profile.method_of(frame);
                (profile.strings.get(method.class), profile.strings.get(method.name))
            });
            Wait::of_park(class, frames)
        }
    }
}

/// The kinds of series that a wait adds to, with its value.
pub fn values_of(wait: Wait, duration: i64) -> Vec<(ValueKind, i64)> {
    match wait.is_contention() {
        true => vec![(ValueKind::BlockedTime, duration), (ValueKind::Contentions, 1)],
        false => vec![(ValueKind::WaitingTime, duration)],
    }
}

fn field(table: &EventTable, row: usize, name: &str) -> Option<FieldValue> {
    table.field_named(name).and_then(|field| table.field(row, field))
}

fn wait(profile: &Profile, table: &EventTable, row: usize) -> Wait {
    let name = match field(table, row, "operation") {
        Some(FieldValue::Text(text)) => profile.strings.get(text),
        _ => "",
    };
    Wait::from_name(name).unwrap_or(Wait::MonitorEnter)
}

/// Which series say nothing that the events of waits do not: a reader makes them of those again.
pub fn derived(profile: &Profile) -> impl Fn(&Series) -> bool + use<> {
    let mut sums: HashMap<ValueKind, i64> = HashMap::new();
    for (_, table) in profile.all_events().filter(|(_, t)| t.kind().name == EventKind::lock().name)
    {
        for (row, event) in table.events().enumerate() {
            let duration = i64::try_from(event.duration).unwrap_or(i64::MAX);
            for (kind, value) in values_of(wait(profile, table, row), duration) {
                let sum = sums.entry(kind).or_default();
                *sum = sum.saturating_add(value);
            }
        }
    }
    move |series| {
        let info = series.info();
        info.name == LOCK && sums.get(&info.kind).is_some_and(|sum| *sum == series.total())
    }
}

impl Writer<'_, '_> {
    pub(super) fn write_locks(&mut self, table: &EventTable) -> Result<(), WriteError> {
        for (row, event) in table.events().enumerate() {
            self.write_lock(table, row, event)?;
        }
        Ok(())
    }

    fn write_lock(
        &mut self,
        table: &EventTable,
        row: usize,
        event: Event,
    ) -> Result<(), WriteError> {
        let thread_of = |name| match field(table, row, name) {
            Some(FieldValue::Thread(thread)) => thread,
            _ => ThreadId::UNKNOWN,
        };
        let number = |name| match field(table, row, name) {
            Some(FieldValue::Integer(number)) => number,
            _ => 0,
        };
        let wait = wait(self.profile, table, row);
        let kind = match wait {
            Wait::MonitorEnter => MONITOR_ENTER,
            Wait::MonitorWait => MONITOR_WAIT,
            Wait::Sleep => THREAD_SLEEP,
            _ => THREAD_PARK,
        };
        self.begin(kind, event.time);
        // The stack may end with the class, as those of values do.
        let (of_stack, context) = self.constants.split_class(event.context);
        let thread = self.constants.thread(event.thread);
        let stack = self.constants.stack(context);
        let duration = i64::try_from(event.duration).unwrap_or(i64::MAX);
        [duration, thread, stack].into_iter().for_each(|number| self.event.long(number));
        if wait == Wait::Sleep {
            self.event.long(duration);
            return self.end();
        }
        let class = match field(table, row, "class") {
            Some(FieldValue::Text(name)) if name != StringId::EMPTY => {
                self.constants.class_named(name, StringId::EMPTY, StringId::EMPTY)
            }
            _ => of_stack,
        };
        let owner = self.constants.thread(thread_of("owner"));
        self.event.long(class);
        self.event.long(owner);
        self.event.long(number("instance"));
        self.event.text(wait.name());
        if kind != MONITOR_WAIT {
            let stack = match field(table, row, "owner-context") {
                Some(FieldValue::Context(context)) => self.constants.stack(context),
                _ => 0,
            };
            self.event.long(stack);
            self.event.flag(number("owner-held") != 0);
            self.event.int(i32::try_from(number("queue")).unwrap_or(i32::MAX));
        }
        self.end()
    }
}

impl Writer<'_, '_> {
    pub(super) fn write_tasks(&mut self, table: &EventTable) -> Result<(), WriteError> {
        for (row, event) in table.events().enumerate() {
            let text = |name| match field(table, row, name) {
                Some(FieldValue::Text(text)) => text,
                _ => StringId::EMPTY,
            };
            self.begin(TASK_QUEUED, event.time);
            let thread = self.constants.thread(event.thread);
            let stack = self.constants.stack(event.context);
            let class = match text("class") {
                StringId::EMPTY => 0,
                name => self.constants.class_named(name, StringId::EMPTY, StringId::EMPTY),
            };
            let duration = i64::try_from(event.duration).unwrap_or(i64::MAX);
            let numbers = [duration, thread, stack, class];
            numbers.into_iter().for_each(|number| self.event.long(number));
            self.event.text(self.profile.strings.get(text("executor")));
            self.end()?;
        }
        Ok(())
    }
}

/// Adds an event to a profile, whose texts are its own.
pub fn push(profile: &mut Profile, event: Event, class: &str, wait: Wait, fields: LockFields) {
    let class = profile.strings.intern(class);
    let operation = profile.strings.intern(wait.name());
    let table = profile.events_of(&EventKind::lock());
    let fields = LockFields { class, operation, ..fields };
    profile.events_mut(table).push(event, &fields.values());
}
