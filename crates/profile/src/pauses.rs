//! Pauses of the JVM, read out of `gc` and `safepoint` events, whoever wrote them: what kind a
//! collection was, and what it did; and what its compilers did (`compilers`, `uncommon-traps`).
//! Fields that a table lacks are not known.

use crate::events::{EventKind, EventTable, FieldValue};
use crate::handle::ThreadId;
use crate::profile::Profile;

/// One pause for garbage collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collection {
    /// Counted from one, in the order of the recording.
    pub number: u64,
    /// When it began and how long it lasted, in nanoseconds, as the JVM told of both.
    pub time: u64,
    pub duration: u64,
    pub thread: ThreadId,
    /// `young`, `mixed`, `full`, `remark`, `young mark start`; empty if that is not known.
    pub kind: String,
    /// In the JVM's words; empty if there is none, or none is known.
    pub cause: String,
    pub collector: String,
    /// Bytes in use.
    pub heap_before: Option<u64>,
    pub heap_after: Option<u64>,
    /// What a young collection moved to the old generation.
    pub promoted: Option<u64>,
    /// From asking for the safepoint until all threads were there, in nanoseconds. It lies before
    /// `time`.
    pub reach: Option<u64>,
}

impl Collection {
    pub fn end(&self) -> u64 {
        self.time.saturating_add(self.duration)
    }

    /// Bytes that it freed.
    pub fn freed(&self) -> Option<u64> {
        Some(self.heap_before?.saturating_sub(self.heap_after?))
    }
}

/// All threads stood still, or several times that nobody saw one by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Safepoint {
    pub number: u64,
    /// When it was asked for, and how long that lasted until threads went on; of several, the sum.
    pub time: u64,
    pub duration: u64,
    /// The JVM's operation; empty if several were for different ones.
    pub reason: String,
    pub count: u64,
    /// Until all threads were there, of the duration.
    pub reach: u64,
    /// Threads that ran when it was asked for; `None` for what came and went before anybody looked,
    /// of which no more is known than its time.
    pub running: Option<u64>,
}

impl Safepoint {
    pub fn end(&self) -> u64 {
        self.time.saturating_add(self.duration)
    }
}

/// What the JVM's compilers did in a second or so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compiled {
    pub time: u64,
    pub duration: u64,
    /// Methods, and how long all compilers worked on them, in nanoseconds.
    pub methods: u64,
    pub work: u64,
    /// What compilers gave up, and what was thrown away before it could be used.
    pub bailouts: u64,
    pub invalidated: u64,
    /// How often compiled code was left because of something that its compiler had not expected.
    pub traps: Option<u64>,
}

/// Why compiled code was left in such a second, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traps {
    pub time: u64,
    pub duration: u64,
    /// HotSpot's word for it.
    pub reason: String,
    pub count: u64,
}

/// The fields of one row, by their names.
struct Row<'a> {
    profile: &'a Profile,
    table: &'a EventTable,
    row: usize,
}

impl<'a> Row<'a> {
    fn field(&self, name: &str) -> Option<FieldValue> {
        self.table.field(self.row, self.table.field_named(name)?)
    }

    fn number(&self, name: &str) -> Option<u64> {
        match self.field(name)? {
            FieldValue::Integer(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> &'a str {
        match self.field(name) {
            Some(FieldValue::Text(text)) => self.profile.strings.get(text),
            _ => "",
        }
    }
}

fn rows<'a>(profile: &'a Profile, kind: &str) -> impl Iterator<Item = Row<'a>> {
    let tables = profile.all_events().map(|(_, table)| table);
    let tables = tables.filter(move |table| table.kind().name == kind);
    tables.flat_map(move |table| (0..table.len()).map(move |row| Row { profile, table, row }))
}

/// The pauses for collections, in order.
pub fn collections(profile: &Profile) -> Vec<Collection> {
    let name = EventKind::gc().name;
    let mut all: Vec<Collection> =
        rows(profile, &name).filter_map(|row| collection(&row)).collect();
    all.sort_by_key(|one| one.time);
    // Files of other tools do not count them.
    if all.iter().any(|one| one.number == 0) {
        all.iter_mut().zip(1..).for_each(|(one, number)| one.number = number);
    }
    all
}

fn collection(row: &Row<'_>) -> Option<Collection> {
    let event = row.table.event(row.row)?;
    let kind = kind(row);
    let old = row.number("old-before").zip(row.number("old-after"));
    let promoted = old.filter(|_| kind.starts_with("young") && !kind.ends_with("full"));
    Some(Collection {
        number: row.number("number").unwrap_or(0),
        time: event.time,
        duration: event.duration,
        thread: event.thread,
        promoted: promoted.map(|(before, after)| after.saturating_sub(before)),
        kind,
        cause: row.text("cause").to_owned(),
        collector: row.text("collector").to_owned(),
        heap_before: row.number("heap-before"),
        heap_after: row.number("heap-after"),
        reach: row.number("reach"),
    })
}

/// What the JVM's operation and the collectors that ran say. An operation that has come to collect
/// may do so in several ways, which only the collectors tell.
fn kind(row: &Row<'_>) -> String {
    let told = row.text("kind");
    if !told.is_empty() {
        return told.into();
    }
    let (operation, collector) = (row.text("operation"), row.text("collector"));
    if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == operation) {
        return (*kind).into();
    }
    let collected = match () {
        () if collector.contains(" full ") => "full",
        () if collector.contains(" young ") => "young",
        () if operation.contains("Full") => "full",
        () if operation.contains("Collect") || operation.contains("FailedAllocation") => {
            // G1 may come to collect for metadata, and only ask for a concurrent cycle.
            let heap = row.number("heap-before").zip(row.number("heap-after"));
            let is_same = heap.is_some_and(|(before, after)| before == after);
            return if is_same { "nothing collected" } else { "young or full" }.into();
        }
        () => return operation.into(),
    };
    let old = row.number("old-before").zip(row.number("old-after"));
    match collected {
        "full" if row.number("collectors") == Some(2) => "young, then full".into(),
        "young" if operation == "G1TryInitiateConcMark" => "young, starts marking".into(),
        // Only a mixed collection frees old regions.
        "young" if operation.starts_with("G1") && old.is_some_and(|(from, to)| to < from) => {
            "mixed".into()
        }
        kind => kind.into(),
    }
}

/// Operations that are one kind of pause.
const KINDS: [(&str, &str); 21] = [
    ("G1PauseRemark", "remark"),
    ("G1PauseCleanup", "cleanup"),
    ("G1CollectFull", "full"),
    ("ZMarkStart", "mark start"),
    ("ZMarkEnd", "mark end"),
    ("ZRelocateStart", "relocate start"),
    ("XMarkStart", "mark start"),
    ("XMarkEnd", "mark end"),
    ("XRelocateStart", "relocate start"),
    ("ZMarkStartYoung", "young mark start"),
    ("ZMarkStartYoungAndOld", "major mark start"),
    ("ZMarkEndYoung", "young mark end"),
    ("ZRelocateStartYoung", "young relocate start"),
    ("ZMarkEndOld", "old mark end"),
    ("ZRelocateStartOld", "old relocate start"),
    ("ShenandoahInitMark", "init mark"),
    ("ShenandoahFinalMarkStartEvac", "final mark"),
    ("ShenandoahInitUpdateRefs", "init update refs"),
    ("ShenandoahFinalUpdateRefs", "final update refs"),
    ("ShenandoahFullGC", "full"),
    ("ShenandoahDegeneratedGC", "degenerated"),
];

/// The safepoints, in order.
pub fn safepoints(profile: &Profile) -> Vec<Safepoint> {
    let mut all: Vec<Safepoint> =
        rows(profile, "safepoint").filter_map(|row| safepoint(&row)).collect();
    all.sort_by_key(|one| one.time);
    all
}

fn safepoint(row: &Row<'_>) -> Option<Safepoint> {
    let event = row.table.event(row.row)?;
    Some(Safepoint {
        number: row.number("number").unwrap_or(0),
        time: event.time,
        duration: event.duration,
        reason: row.text("reason").to_owned(),
        count: row.number("count").unwrap_or(1),
        reach: row.number("reach").unwrap_or(0),
        running: row.number("running"),
    })
}

/// What compilers did, in order.
pub fn compiled(profile: &Profile) -> Vec<Compiled> {
    let mut all: Vec<Compiled> = rows(profile, "compilers")
        .filter_map(|row| {
            let event = row.table.event(row.row)?;
            let number = |name| row.number(name).unwrap_or(0);
            Some(Compiled {
                time: event.time,
                duration: event.duration,
                methods: number("compilations"),
                work: number("compile-time"),
                bailouts: number("bailouts"),
                invalidated: number("invalidated"),
                traps: row.number("uncommon-traps"),
            })
        })
        .collect();
    all.sort_by_key(|one| one.time);
    all
}

/// Why compiled code was left, in order.
pub fn traps(profile: &Profile) -> Vec<Traps> {
    let mut all: Vec<Traps> = rows(profile, "uncommon-traps")
        .filter_map(|row| {
            let event = row.table.event(row.row)?;
            let (time, duration) = (event.time, event.duration);
            let reason = row.text("reason").to_owned();
            Some(Traps { time, duration, reason, count: row.number("count").unwrap_or(0) })
        })
        .collect();
    all.sort_by_key(|one| one.time);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, FieldType};
    use crate::values::Unit;

    /// One pause of an operation, with the collector that ran in it and the old generation's change.
    fn kind_of(
        operation: &str,
        collector: &str,
        ran: i64,
        old: (i64, i64),
    ) -> (String, Option<u64>) {
        let (bytes, text) = (FieldType::Integer(Unit::Bytes), FieldType::Text);
        let count = FieldType::Integer(Unit::Count);
        let mut profile = Profile::new();
        let fields = [
            ("collector", text),
            ("collectors", count),
            ("operation", text),
            ("old-before", bytes),
            ("old-after", bytes),
        ];
        let table = profile.events_of(&EventKind::new("gc", &fields));
        let mut text = |text: &str| FieldValue::Text(profile.strings.intern(text));
        let values = [
            text(collector),
            FieldValue::Integer(ran),
            text(operation),
            FieldValue::Integer(old.0),
            FieldValue::Integer(old.1),
        ];
        profile.events_mut(table).push(Event { time: 5, duration: 2, ..Event::default() }, &values);
        let all = collections(&profile);
        assert_eq!((all[0].number, all[0].end(), all[0].heap_before), (1, 7, None));
        (all[0].kind.clone(), all[0].promoted)
    }

    #[test]
    fn a_pause_that_leaves_the_heap_as_it_is_collects_nothing() {
        let kind = |before, after| {
            let mut profile = Profile::new();
            let names = ["operation", "heap-before", "heap-after"];
            let bytes = FieldType::Integer(Unit::Bytes);
            let kinds = [FieldType::Text, bytes, bytes];
            let fields: Vec<_> = names.into_iter().zip(kinds).collect();
            let table = profile.events_of(&EventKind::new("gc", &fields));
            let operation = profile.strings.intern("CollectForMetadataAllocation");
            let sizes = [before, after].map(FieldValue::Integer);
            let values = [FieldValue::Text(operation), sizes[0], sizes[1]];
            profile.events_mut(table).push(Event::default(), &values);
            collections(&profile)[0].kind.clone()
        };
        assert_eq!(kind(454, 454), "nothing collected");
        assert_eq!(kind(454, 90), "young or full");
    }

    #[test]
    fn kinds_are_told_by_operation_and_collector() {
        let young = "G1 young collection pauses";
        let of = |operation, collector, ran, old| kind_of(operation, collector, ran, old).0;
        assert_eq!(kind_of("G1CollectForAllocation", young, 1, (5, 9)), ("young".into(), Some(4)));
        assert_eq!(kind_of("G1CollectForAllocation", young, 1, (9, 5)), ("mixed".into(), None));
        assert_eq!(kind_of("G1CollectForAllocation", young, 1, (-1, -1)).1, None);
        assert_eq!(of("G1CollectForAllocation", "G1 full collection pauses", 1, (9, 5)), "full");
        assert_eq!(of("G1TryInitiateConcMark", young, 1, (5, 5)), "young, starts marking");
        assert_eq!(of("G1PauseCleanup", "", 0, (5, 5)), "cleanup");
        let full = "Serial full collection pauses";
        let both = kind_of("GenCollectForAllocation", full, 2, (5, 9));
        assert_eq!(both, ("young, then full".into(), None));
        assert_eq!(of("GenCollectForAllocation", "", 0, (9, 5)), "young or full");
        assert_eq!(of("ZMarkStartYoungAndOld", "", 0, (-1, -1)), "major mark start");
        assert_eq!(of("", "Serial young collection pauses", 1, (1, 1)), "young");
        assert_eq!(of("", "", 0, (0, 0)), "");
    }

    #[test]
    fn safepoints_are_read_and_other_tables_are_not() {
        let (count, time) =
            (FieldType::Integer(Unit::Count), FieldType::Integer(Unit::Nanoseconds));
        let mut profile = Profile::new();
        profile.events_of(&EventKind::marker());
        let fields = [("number", count), ("reason", FieldType::Text), ("reach", time)];
        let table = profile.events_of(&EventKind::new("safepoint", &fields));
        let reason = profile.strings.intern("ThreadDump");
        let values = [FieldValue::Integer(3), FieldValue::Text(reason), FieldValue::Integer(7)];
        profile
            .events_mut(table)
            .push(Event { time: 5, duration: 20, ..Event::default() }, &values);
        let one = Safepoint {
            number: 3,
            time: 5,
            duration: 20,
            reason: "ThreadDump".to_owned(),
            count: 1,
            reach: 7,
            running: None,
        };
        assert_eq!(safepoints(&profile), [one]);
        assert!(collections(&profile).is_empty());
    }
}
