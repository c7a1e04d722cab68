//! What becomes of each event that a profile has a place for.

use super::DERIVED_FROM;
use super::locks;
use super::metadata::{Slot, Type};
use super::pools::{Known, Missing, Pools};
use super::track::{OwnSeries, Track, Tracks, period};
use crate::error::ReadError;
use crate::prepared::as_read;
use std::collections::HashMap;
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, LockFields, LossKind, Profile, Row, StringId,
    ThreadId, Wait,
};

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    /// A row of a series, and for locks an event besides.
    Track(Track),
    Own,
    Collection,
    HeapSummary,
    ClassLoad,
    Task,
    ThreadStart,
    ThreadEnd,
    Jvm,
    Os,
    Cpu,
    Setting,
    Recording,
    Lost,
}

/// How the events of one type are read: what they are, and where their fields stand.
pub struct Plan {
    what: What,
    kind: usize,
    time: Option<usize>,
    duration: Option<usize>,
    thread: Option<usize>,
    stack: Option<usize>,
    /// The fields of [`fields_of`].
    fields: Vec<Option<usize>>,
}

/// The fields of interest beyond time, duration, thread and stack.
fn fields_of(what: What) -> &'static [&'static str] {
    match what {
        What::Track(track) => match track {
            Track::CpuTime => &["failed", "samplingPeriod"],
            Track::Execution | Track::NativeMethod => &[],
            Track::Wall => &["samples"],
            Track::AllocationSample => &["weight", "objectClass"],
            Track::AllocationInTlab => &["tlabSize", "objectClass"],
            Track::AllocationOutsideTlab => &["allocationSize", "objectClass"],
            Track::Malloc => &["size"],
            Track::LiveObject => &["allocationSize", "objectClass"],
            Track::MonitorEnter | Track::Park | Track::MonitorWait | Track::Sleep => {
                locks::fields(track)
            }
        },
        What::Own => &["value", "series", "kind", "unit", "estimate"],
        What::Collection => &["gcId", "name", "cause", "sumOfPauses"],
        What::HeapSummary => &["gcId", "when", "heapUsed"],
        What::ClassLoad => &["loadedClass", "definingClassLoader"],
        What::Task => &["taskClass", "executor"],
        What::ThreadStart | What::ThreadEnd => &["thread"],
        What::Jvm => &["jvmName", "jvmVersion", "jvmArguments", "jvmFlags", "javaArguments", "pid"],
        What::Os => &["osVersion"],
        What::Cpu => &["hwThreads"],
        What::Setting => &["id", "name", "value"],
        What::Recording => &["name"],
        What::Lost => &["lostSamples", "amount"],
    }
}

impl Plan {
    /// `None` for events that nothing is made of.
    pub fn of(kind: usize, described: &Type) -> Option<Plan> {
        let what = match described.name.as_str() {
            "tare.Value" => What::Own,
            "tare.TaskQueued" => What::Task,
            "jdk.GarbageCollection" => What::Collection,
            "jdk.GCHeapSummary" => What::HeapSummary,
            "jdk.ClassLoad" => What::ClassLoad,
            "jdk.ThreadStart" => What::ThreadStart,
            "jdk.ThreadEnd" => What::ThreadEnd,
            "jdk.JVMInformation" => What::Jvm,
            "jdk.OSInformation" => What::Os,
            "jdk.CPUInformation" => What::Cpu,
            "jdk.ActiveSetting" => What::Setting,
            "jdk.ActiveRecording" => What::Recording,
            "jdk.CPUTimeSamplesLost" | "jdk.DataLoss" => What::Lost,
            name => What::Track(Track::named(name)?),
        };
        let field = |name| described.field(name);
        Some(Plan {
            what,
            kind,
            time: field("startTime"),
            duration: field("duration"),
            thread: field("sampledThread").or(field("eventThread")),
            stack: field("stackTrace"),
            fields: fields_of(what).iter().map(|name| field(name)).collect(),
        })
    }
}

/// The clock of a chunk.
#[derive(Clone, Copy)]
pub struct Clock {
    /// The chunk's start, in ticks and in nanoseconds since the start of the run.
    pub ticks: i64,
    pub nanos: u64,
    pub frequency: u64,
}

impl Clock {
    fn nanos_of(self, ticks: i64) -> u64 {
        let ticks = i128::from(ticks);
        let nanos = ticks * 1_000_000_000 / i128::from(self.frequency.max(1));
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }

    fn time(self, ticks: i64) -> u64 {
        self.nanos.saturating_add(self.nanos_of(ticks.saturating_sub(self.ticks)))
    }
}

/// What is collected over all chunks.
#[derive(Default)]
pub struct Collected {
    pub profile: Profile,
    pub tracks: Tracks,
    known: Known,
    collections: Vec<Collection>,
    /// Heap in use before and after, by the collection's number.
    heap: HashMap<i64, [i64; 2]>,
    truncated: u64,
    stackless: u64,
    /// Events that only repeat, in the chunk that is being read, what our own tell better.
    derived: Vec<Track>,
}

struct Collection {
    event: Event,
    id: i64,
    name: StringId,
    cause: StringId,
}

/// The slots of one event, and how to read them.
struct Read<'r, 'a> {
    plan: &'r Plan,
    slots: &'r [Slot],
    pools: &'r mut Pools<'a>,
    clock: Clock,
}

impl Read<'_, '_> {
    fn slot(&self, field: usize) -> Option<Slot> {
        self.slots.get((*self.plan.fields.get(field)?)?).copied()
    }

    fn integer_at(&self, slot: Option<usize>) -> Option<i64> {
        match self.slots.get(slot?)? {
            Slot::Integer(number) => Some(*number),
            _ => None,
        }
    }

    fn integer(&self, field: usize) -> Option<i64> {
        self.integer_at(*self.plan.fields.get(field)?)
    }

    fn text(&mut self, field: usize) -> String {
        self.slot(field).and_then(|slot| self.pools.text(slot)).unwrap_or_default()
    }

    fn time(&self) -> u64 {
        self.integer_at(self.plan.time).map_or(0, |ticks| self.clock.time(ticks))
    }

    fn duration(&self) -> u64 {
        self.integer_at(self.plan.duration).map_or(0, |ticks| self.clock.nanos_of(ticks))
    }
}

impl Collected {
    /// What settings of one chunk say is not said of the next.
    pub fn begin_chunk(&mut self) {
        self.derived.clear();
    }

    /// Takes one event, whose first field stands at a place.
    pub fn take(
        &mut self,
        plan: &Plan,
        start: usize,
        pools: &mut Pools<'_>,
        clock: Clock,
        slots: &mut Vec<Slot>,
    ) -> Result<(), ReadError> {
        if matches!(plan.what, What::Track(track) if self.derived.contains(&track)) {
            return Ok(());
        }
        pools.record_at(plan.kind, start, slots)?;
        let mut read = Read { plan, slots, pools, clock };
        match plan.what {
            What::Track(track) => self.take_row(track, &mut read),
            What::Own => self.take_own(&mut read),
            What::Collection | What::HeapSummary => self.take_collection(plan.what, &mut read),
            What::ClassLoad => {
                let (source, number) = (FieldValue::Text(StringId::EMPTY), FieldValue::Integer(0));
                let more = [source, number, number];
                self.take_named(&EventKind::class_load(), &more, &mut read);
            }
            What::Task => self.take_named(&EventKind::task(), &[], &mut read),
            What::ThreadStart | What::ThreadEnd => {
                let thread = match read.slot(0) {
                    Some(slot) => read.pools.thread(&mut self.known, &mut self.profile, slot),
                    None => self.thread(&mut read),
                };
                if thread != ThreadId::UNKNOWN {
                    let row = self.profile.threads.get_mut(thread);
                    let side = match plan.what {
                        What::ThreadStart => &mut row.started,
                        _ => &mut row.ended,
                    };
                    *side = Some(read.time());
                }
            }
            What::Jvm | What::Os | What::Cpu | What::Recording => self.take_run(&mut read),
            What::Setting => self.take_setting(&mut read),
            What::Lost => {
                let lost = read.integer(0).or(read.integer(1)).unwrap_or(0);
                let lost = u64::try_from(lost).unwrap_or(0);
                let (name, reason) = match plan.fields[0] {
                    Some(_) => ("samples", "the recorder's queue was full"),
                    None => ("bytes", "the recorder's buffers were full"),
                };
                self.profile.run.lose(LossKind::Dropped, name, lost, reason);
            }
        }
        Ok(())
    }

    fn thread(&mut self, read: &mut Read<'_, '_>) -> ThreadId {
        let slot = read.plan.thread.and_then(|thread| read.slots.get(thread)).copied();
        slot.map_or(ThreadId::UNKNOWN, |slot| {
            read.pools.thread(&mut self.known, &mut self.profile, slot)
        })
    }

    fn context(&mut self, read: &mut Read<'_, '_>) -> ContextId {
        let slot = read.plan.stack.and_then(|stack| read.slots.get(stack)).copied();
        let Some(slot) = slot else { return ContextId::ROOT };
        let (context, missing) = read.pools.stack(&mut self.profile, slot);
        match missing {
            Missing::Nothing => {}
            Missing::Outermost => self.truncated += 1,
            Missing::All => self.stackless += 1,
        }
        as_read(&self.profile, context)
    }

    fn take_row(&mut self, track: Track, read: &mut Read<'_, '_>) {
        let thread = self.thread(read);
        let mut context = self.context(read);
        let time = read.time();
        let (value, class) = match track {
            Track::Execution | Track::NativeMethod => (1, None),
            Track::CpuTime => {
                if read.integer(0).unwrap_or(0) != 0 {
                    let reason = "the JVM could not walk them";
                    self.profile.run.lose(LossKind::Failed, "stacks", 1, reason);
                    context = self.failed();
                }
                if let Some(ticks) = read.integer(1) {
                    self.tracks.set_period(track, read.clock.nanos_of(ticks));
                }
                (1, None)
            }
            Track::Wall => (read.integer(0).unwrap_or(1), None),
            Track::Malloc => (read.integer(0).unwrap_or(0), None),
            Track::AllocationSample
            | Track::AllocationInTlab
            | Track::AllocationOutsideTlab
            | Track::LiveObject => (read.integer(0).unwrap_or(0), read.slot(1)),
            Track::MonitorEnter | Track::Park | Track::MonitorWait | Track::Sleep => {
                return self.take_lock(track, read, thread, context);
            }
        };
        if let Some(frame) = class.and_then(|slot| read.pools.class_frame(&mut self.profile, slot))
        {
            context = self.profile.contexts.child(context, frame);
        }
        if value != 0 {
            self.tracks.push(track, Row::new(context, thread, value).at(time));
        }
    }

    fn failed(&mut self) -> ContextId {
        let frame = self.profile.special("[failed: the JVM could not walk the stack]");
        self.profile.contexts.stack([frame])
    }

    fn take_lock(
        &mut self,
        track: Track,
        read: &mut Read<'_, '_>,
        thread: ThreadId,
        context: ContextId,
    ) {
        let class = read.slot(0).and_then(|slot| read.pools.class(slot)).unwrap_or_default();
        let owner = match read.slot(1) {
            Some(slot) => read.pools.thread(&mut self.known, &mut self.profile, slot),
            None => ThreadId::UNKNOWN,
        };
        let told = Wait::from_name(&read.text(2));
        let wait = told.unwrap_or_else(|| locks::wait_of(&self.profile, track, &class, context));
        // The JDK's addresses change when a collector moves the object; ours are numbers.
        let instance = read.integer(3).filter(|_| told.is_some()).unwrap_or(0);
        let owner_stack = read.slot(4).map(|slot| read.pools.stack(&mut self.profile, slot).0);
        let owner_context =
            owner_stack.map_or(ContextId::ROOT, |stack| as_read(&self.profile, stack));
        let fields = LockFields {
            owner,
            instance,
            owner_context,
            owner_held: read.integer(5).unwrap_or(0) != 0,
            queue: read.integer(6).unwrap_or(0),
            ..LockFields::default()
        };
        let event = Event { time: read.time(), duration: read.duration(), thread, context };
        locks::push(&mut self.profile, event, &class, wait, fields);
        let frame = read.slot(0).and_then(|slot| read.pools.class_frame(&mut self.profile, slot));
        let place = frame.map_or(context, |frame| self.profile.contexts.child(context, frame));
        let duration = i64::try_from(event.duration).unwrap_or(i64::MAX);
        for (kind, value) in locks::values_of(wait, duration) {
            if value != 0 {
                self.tracks.push_wait(&kind, Row::new(place, thread, value).at(event.time));
            }
        }
    }

    fn take_own(&mut self, read: &mut Read<'_, '_>) {
        let thread = self.thread(read);
        let context = self.context(read);
        let value = read.integer(0).unwrap_or(0);
        let [name, kind, unit, estimate] = [1, 2, 3, 4].map(|field| read.text(field));
        let row = Row::new(context, thread, value).at(read.time());
        if !self.tracks.push_own(OwnSeries { name, kind, unit, estimate }, row) {
            self.profile.run.lose(LossKind::Damaged, "values", 1, "too many series");
        }
    }

    fn take_collection(&mut self, what: What, read: &mut Read<'_, '_>) {
        let id = read.integer(0).unwrap_or(0);
        if what == What::HeapSummary {
            let side = usize::from(read.text(1).starts_with("After"));
            self.heap.entry(id).or_default()[side] = read.integer(2).unwrap_or(0);
            return;
        }
        let (name, cause) = (read.text(1), read.text(2));
        let name = self.profile.strings.intern(&name);
        let cause = self.profile.strings.intern(&cause);
        let thread = self.thread(read);
        // The event lasts as long as the collection, of which the program stands still for a part.
        let pauses = read.integer(3).map(|ticks| read.clock.nanos_of(ticks));
        let duration = pauses.unwrap_or_else(|| read.duration());
        let event = Event { time: read.time(), duration, thread, context: ContextId::ROOT };
        self.collections.push(Collection { event, id, name, cause });
    }

    /// An event of a class, and of a text beside it; its other fields are the same for all.
    fn take_named(&mut self, kind: &EventKind, more: &[FieldValue], read: &mut Read<'_, '_>) {
        let thread = self.thread(read);
        let context = self.context(read);
        let class = read.slot(0).and_then(|slot| read.pools.class(slot)).unwrap_or_default();
        let text = read.text(1);
        let class = FieldValue::Text(self.profile.strings.intern(&class));
        let text = FieldValue::Text(self.profile.strings.intern(&text));
        let event = Event { time: read.time(), duration: read.duration(), thread, context };
        let table = self.profile.events_of(kind);
        let fields = [&[class, text], more].concat();
        self.profile.events_mut(table).push(event, &fields);
    }

    fn take_run(&mut self, read: &mut Read<'_, '_>) {
        let first = read.text(0);
        let run = &mut self.profile.run;
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match read.plan.what {
            What::Jvm => {
                let version = read.text(1);
                run.jdk = jdk_of(&version);
                run.vm = first;
                run.flags = words(read.text(2) + " " + &read.text(3));
                run.command_line = words(read.text(4));
                run.main_class = run.command_line.first().cloned().unwrap_or_default();
                run.pid = read.integer(5).and_then(|pid| u32::try_from(pid).ok());
            }
            What::Os => {
                let line = first.lines().next().unwrap_or_default();
                let line = line.trim_start_matches("PRETTY_NAME=");
                run.os = line.trim_matches('"').to_owned();
            }
            What::Cpu => run.cpus = read.integer(0).and_then(|n| u32::try_from(n).ok()),
            _ if first.starts_with("async-profiler") || first.starts_with("tare") => {
                run.tool = first;
            }
            _ => {}
        }
    }

    fn take_setting(&mut self, read: &mut Read<'_, '_>) {
        let (name, value) = (read.text(1), read.text(2));
        if !matches!(name.as_str(), "period" | "interval" | DERIVED_FROM) {
            return;
        }
        let Some(kind) = read.integer(0).and_then(|id| read.pools.types.row(id)) else { return };
        let Some(track) = Track::named(&read.pools.types.rows[kind].name) else { return };
        if name == DERIVED_FROM {
            self.derived.push(track);
            self.tracks.set_sampled(value.split(',').map(str::to_owned).collect());
            return;
        }
        if let Some(period) = period(&value) {
            self.tracks.set_period(track, period);
        }
    }

    pub fn finish(mut self) -> Profile {
        let table = match self.collections.is_empty() {
            true => None,
            false => Some(self.profile.events_of(&EventKind::gc())),
        };
        for Collection { event, id, name, cause } in self.collections {
            let [before, after] =
                self.heap.get(&id).copied().unwrap_or_default().map(FieldValue::Integer);
            let values = [FieldValue::Text(name), FieldValue::Text(cause), before, after];
            if let Some(table) = table {
                self.profile.events_mut(table).push(event, &values);
            }
        }
        if self.truncated > 0 {
            let reason = "deeper than the recorder's stackdepth; under [truncated]";
            self.profile.run.lose(LossKind::Folded, "stacks", self.truncated, reason);
        }
        if self.stackless > 0 {
            let reason = "the file does not hold what they point to";
            self.profile.run.lose(LossKind::Damaged, "stacks", self.stackless, reason);
        }
        self.tracks.into_profile(&mut self.profile);
        self.profile
    }
}

/// `… JRE (17.0.21+9-Debian), built …` as `17.0.21+9-Debian`.
fn jdk_of(version: &str) -> String {
    let rest = version.split_once("JRE (").map_or(version, |(_, rest)| rest);
    rest.split_once(')').map_or(rest, |(version, _)| version).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found() {
        let version =
            "OpenJDK 64-Bit Server VM (25.0.3+9) for linux JRE (25.0.3+9-LTS), built on x";
        assert_eq!(jdk_of(version), "25.0.3+9-LTS");
    }

    #[test]
    fn ticks_become_nanoseconds_of_the_run() {
        let clock = Clock { ticks: 1_000, nanos: 5, frequency: 500_000_000 };
        assert_eq!((clock.time(1_010), clock.nanos_of(10)), (25, 20));
        assert_eq!(clock.time(i64::MIN), 5);
        assert_eq!(Clock { frequency: 0, ..clock }.nanos_of(i64::MAX), u64::MAX);
    }
}
