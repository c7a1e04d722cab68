//! Waits made up here: what becomes of owners that answered, of those that did not, and of sums.

use super::*;
use tare_profile::ValueKind;
use tare_protocol::LockWait;

/// Kinds as the agent declares them, with numbers of their own.
const WAIT: u32 = 10;
const OWNER: u32 = 11;
const SUMS: u32 = 12;

fn declared() -> Vec<Record> {
    let kind = |id, name, fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|field| (*field, FieldKind::Integer)).collect();
        Record::EventKind(DeclaredKind::new(id, name, &fields))
    };
    let wait = ["operation", "class", "instance", "owner", "owner-id", "asked", "queue"];
    let sums =
        ["contentions", "blocked", "waiting", "lost-contentions", "lost-blocked", "lost-waiting"];
    vec![
        kind(WAIT, "lock-wait", &wait),
        kind(OWNER, "lock-owner", &["number", "held"]),
        kind(SUMS, "lock-sums", &sums),
        thread(),
        Record::Thread(SampleThread {
            number: 2,
            java_id: 22,
            name: "keeper".into(),
            ..SampleThread::default()
        }),
        method(1, "com/acme/Pool", "take"),
        method(2, "com/acme/Pool", "refresh"),
        Record::Text(Text { id: 1, text: "Lcom/acme/Pool;".into() }),
        trace(1, &[SampleFrame::Class { text: 1 }, java(1, 0)]),
        trace(2, &[java(2, 0)]),
    ]
}

fn wait(kind: LockWait, duration: u64, owner: u64, owner_id: u64, asked: u64) -> Record {
    let head =
        EventHead { kind: WAIT, thread: 1, time: 1_005, duration, trace: 1, ..Default::default() };
    let values = vec![kind.code(), 1, 77, owner, owner_id, asked, 3];
    Record::Event(StreamEvent { head, values })
}

fn answer(number: u64, held: u64) -> Record {
    let head = EventHead { kind: OWNER, thread: 2, time: 1_006, trace: 2, ..Default::default() };
    Record::Event(StreamEvent { head, values: vec![number, held] })
}

fn collected(records: Vec<Record>) -> Profile {
    let mut profile = Profile::new();
    let collector = Collector::new(None, None, 1_000, Names);
    let mut collector = collector.with_locks(Some(Locks::default()));
    collector.add(&mut profile, records, false);
    profile
}

/// A row as text: operation, class, instance, owner, its stack, held, queue.
fn waits(profile: &Profile) -> Vec<String> {
    let table = profile.all_events().find(|(_, table)| table.kind().name == "lock").unwrap().1;
    let line = |row: usize| {
        let value = |name| table.field(row, table.field_named(name).unwrap()).unwrap();
        let text = |name| match value(name) {
            FieldValue::Text(id) => profile.strings.get(id).to_owned(),
            FieldValue::Thread(id) => profile.thread_name(id).to_string(),
            FieldValue::Integer(value) => value.to_string(),
            FieldValue::Context(context) => {
                let names = profile
                    .contexts
                    .frames(context)
                    .map(|frame| profile.method_name(profile.frames.get(frame).method));
                names.collect::<Vec<_>>().join(";")
            }
            other => panic!("{other:?}"),
        };
        let event = table.event(row).unwrap();
        let names =
            ["operation", "class", "instance", "owner", "owner-context", "owner-held", "queue"];
        let fields = names.map(text).join(" ");
        format!("{}+{} {}: {fields}", event.time, event.duration, profile.thread_name(event.thread))
    };
    (0..table.len()).map(line).collect()
}

fn total(profile: &Profile, kind: &ValueKind) -> Vec<(String, i64)> {
    let series = profile.all_series().find(|(_, series)| series.info().kind == *kind).unwrap().1;
    let row = |row: Row| {
        let frame = profile.contexts.frame(row.context).unwrap();
        (profile.method_name(profile.frames.get(frame).method), row.value)
    };
    series.rows().map(row).collect()
}

#[test]
fn a_wait_has_its_owner_and_what_that_did() {
    let mut records = declared();
    records.extend([
        answer(9, 1),
        wait(LockWait::MonitorEnter, 500, 2, 0, 9),
        wait(LockWait::MonitorEnter, 600, 2, 0, 8),
        wait(LockWait::MonitorEnter, 700, 0, 22, 0),
        wait(LockWait::MonitorEnter, 800, 0, 5_000, 0),
        wait(LockWait::MonitorWait, 900, 0, 0, 0),
    ]);
    let profile = collected(records);
    let pool = "com.acme.Pool 77";
    assert_eq!(
        waits(&profile),
        [
            format!("5+500 main: monitor enter {pool} keeper com.acme.Pool.refresh 1 3"),
            format!("5+600 main: monitor enter {pool} keeper  0 3"),
            format!("5+700 main: monitor enter {pool} keeper  0 3"),
            format!("5+800 main: monitor enter {pool} virtual thread 5000  0 3"),
            format!("5+900 main: monitor wait {pool} {}  0 3", unknown(&profile)),
        ]
    );
    let of = |values: &[i64]| -> Vec<(String, i64)> {
        values.iter().map(|value| ("com.acme.Pool".to_owned(), *value)).collect()
    };
    assert_eq!(total(&profile, &ValueKind::Contentions), of(&[1, 1, 1, 1]));
    assert_eq!(total(&profile, &ValueKind::BlockedTime), of(&[500, 600, 700, 800]));
    assert_eq!(total(&profile, &ValueKind::WaitingTime), of(&[900]));
}

fn unknown(profile: &Profile) -> String {
    profile.thread_name(ThreadId::UNKNOWN).to_string()
}

#[test]
fn what_was_too_short_or_lost_stays_in_the_sums() {
    let mut records = declared();
    let head = EventHead { kind: SUMS, time: 1_010, ..Default::default() };
    records.push(Record::Event(StreamEvent { head, values: vec![4, 40, 7, 2, 90, 0] }));
    let profile = collected(records);
    let named = |values: &[(&str, i64)]| -> Vec<(String, i64)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    };
    let both = |a, b| named(&[("[shorter waits]", a), ("[dropped]", b)]);
    assert_eq!(total(&profile, &ValueKind::Contentions), both(4, 2));
    assert_eq!(total(&profile, &ValueKind::BlockedTime), both(40, 90));
    assert_eq!(total(&profile, &ValueKind::WaitingTime), named(&[("[shorter waits]", 7)]));
}

#[test]
fn a_wait_stands_back_until_the_owner_has_names() {
    let mut profile = Profile::new();
    let collector = Collector::new(None, None, 1_000, Names);
    let mut collector = collector.with_locks(Some(Locks::default()));
    let (mut first, mut later) = (declared(), Vec::new());
    let is_refresh = |record: &Record| matches!(record, Record::Method(method) if method.key == 2);
    let at = first.iter().position(is_refresh).unwrap();
    later.push(first.remove(at));
    first.extend([answer(9, 0), wait(LockWait::MonitorEnter, 500, 2, 0, 9)]);
    collector.add(&mut profile, first, false);
    assert!(waits(&profile).is_empty());
    collector.add(&mut profile, later, false);
    let line = "5+500 main: monitor enter com.acme.Pool 77 keeper com.acme.Pool.refresh 0 3";
    assert_eq!(waits(&profile), [line]);
}
