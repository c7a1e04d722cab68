//! Streams made up here, and the profiles that become of them.

mod objects;
mod waits;

use super::*;
use tare_arena::samples::{
    DeclaredKind, EventHead, FieldKind, LineEntry, Sample, State, StreamEvent, Text,
};
use tare_profile::{FieldValue, Row};
use tare_symbols::Symbol;

struct Names;

impl Addresses for Names {
    fn native(&mut self, address: u64) -> Symbol {
        Symbol { name: format!("f{address:x}").into(), module: "libjvm.so".into() }
    }

    fn kernel(&mut self, address: u64) -> Symbol {
        Symbol { name: format!("k{address:x}").into(), module: "kernel".into() }
    }

    fn unread(&self) -> Vec<String> {
        vec!["libhung.so".into()]
    }
}

fn collector(clock: Clock) -> (Collector<Names>, Profile) {
    let samples = Samples::new(clock, 10_000_000);
    (Collector::new(Some(samples), None, 1_000, Names), Profile::new())
}

fn method(key: u64, class: &str, name: &str) -> Record {
    Record::Method(SampleMethod {
        key,
        class: class.into(),
        name: name.into(),
        lines: vec![LineEntry { bci: 0, line: 7 }, LineEntry { bci: 5, line: 9 }],
        ..SampleMethod::default()
    })
}

fn java(method: u64, bci: u16) -> SampleFrame {
    SampleFrame::Java { method, bci: Some(bci), how: How::Compiled }
}

fn trace(id: u32, frames: &[SampleFrame]) -> Record {
    Record::Trace(Trace { id, cut: false, frames: frames.to_vec() })
}

fn sample(trace: u32, weight: u64) -> Sample {
    Sample {
        thread: 1,
        time: 1_000 + weight,
        weight,
        java_id: 0,
        trace,
        state: State::Running,
        unchanged: false,
    }
}

fn thread() -> Record {
    Record::Thread(SampleThread { number: 1, name: "main".into(), ..SampleThread::default() })
}

/// The first series as lines: value, thread, stack from the root.
fn rows(profile: &Profile) -> Vec<String> {
    let (_, series) = profile.all_series().next().unwrap();
    let row = |row: Row| {
        let frames: Vec<String> = profile
            .contexts
            .frames(row.context)
            .map(|id| {
                let frame = profile.frames.get(id);
                let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
                profile.method_name(frame.method) + &line
            })
            .collect();
        let frames: Vec<String> = frames.into_iter().rev().collect();
        format!("{} {} {}", row.value, profile.thread_name(row.thread), frames.join(";"))
    };
    series.rows().map(row).collect()
}

/// As in exact recordings: what a method calls that does not fit is the method's own.
#[test]
fn what_does_not_fit_stays_with_the_caller_that_does() {
    let pattern = |text: &str| text.parse::<Pattern>().unwrap();
    let stacks = |include: &[&str], exclude: &[&str]| {
        let (mut collector, mut profile) = collector(Clock::Cpu);
        let [include, exclude] =
            [include, exclude].map(|texts| texts.iter().map(|text| pattern(text)).collect());
        collector.show_only(Fitting { include, exclude });
        let native = SampleFrame::Native { address: 0x10 };
        let records = [
            thread(),
            method(1, "com/acme/Orders", "place"),
            method(2, "java/util/HashMap", "get"),
            method(3, "com/acme/log/Log", "print"),
            trace(1, &[native, java(2, 0), java(1, 6), java(3, 0), java(2, 0)]),
            trace(2, &[native, java(2, 0)]),
            trace(3, &[]),
            Record::Sample(sample(1, 5)),
            Record::Sample(sample(2, 3)),
            Record::Sample(sample(3, 4)),
        ];
        collector.add(&mut profile, records, true);
        (rows(&profile), collector.outside())
    };
    let (lines, outside) = stacks(&["com.acme.**"], &[]);
    let nobodys = ["3 main [no method that fits]", "4 main [no method that fits]"];
    assert_eq!(lines[0], "5 main com.acme.log.Log.print:7;com.acme.Orders.place:9");
    assert_eq!((&lines[1..], outside), (&nobodys.map(str::to_owned)[..], 2));
    let (lines, outside) = stacks(&["com.acme.**"], &["com.acme.log.*"]);
    assert_eq!((lines[0].as_str(), outside), ("5 main com.acme.Orders.place:9", 2));
    let (lines, outside) = stacks(&[], &["java.**", "com.acme.log.*"]);
    assert_eq!((lines[0].as_str(), outside), ("5 main com.acme.Orders.place:9;f10", 0));
    assert_eq!(lines[1..], ["3 main f10", "4 main [no stack]"]);
}

#[test]
fn kernel_native_and_java_frames_make_one_stack() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let frames = [
        SampleFrame::Kernel { address: 0x30 },
        SampleFrame::Kernel { address: 0x20 },
        SampleFrame::Native { address: 0x10 },
        SampleFrame::Native { address: 0x9 },
        java(1, 6),
        java(2, 0),
    ];
    let records = [
        thread(),
        trace(5, &frames),
        Record::Sample(sample(5, 40)),
        method(1, "com/acme/Orders$$Lambda/0x000001", "apply"),
        method(2, "com/acme/Orders", "main"),
    ];
    collector.add(&mut profile, records, false);
    assert_eq!(
        rows(&profile),
        ["40 main com.acme.Orders.main:7;com.acme.Orders$$Lambda.apply:9;f8;f10;k1f;k30"]
    );
    assert_eq!(profile.check(), Ok(()));
    let (_, series) = profile.all_series().next().unwrap();
    assert_eq!(series.row(0).map(|row| row.time), Some(40), "since the start");
}

#[test]
fn a_stack_waits_for_its_names_and_not_for_ever() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let records = [thread(), trace(1, &[java(1, 0)]), Record::Sample(sample(1, 3))];
    collector.add(&mut profile, records, false);
    assert_eq!(rows(&profile), [""; 0]);
    collector.add(&mut profile, [method(1, "A", "run")], false);
    assert_eq!(rows(&profile), ["3 main A.run:7"]);
    collector.add(&mut profile, [trace(2, &[java(9, 0)]), Record::Sample(sample(2, 4))], false);
    collector.add(&mut profile, [], true);
    assert_eq!(rows(&profile)[1], "4 main [unnamed method]");
    collector.add(&mut profile, [Record::Sample(sample(77, 5))], true);
    assert_eq!(rows(&profile)[2], "5 main [stack lost]");
}

#[test]
fn a_key_that_comes_again_means_the_new_method_from_then_on() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let records = [
        thread(),
        method(1, "A", "old"),
        trace(1, &[java(1, 0)]),
        method(1, "B", "new"),
        trace(2, &[java(1, 0)]),
        Record::Sample(sample(1, 1)),
        Record::Sample(sample(2, 2)),
    ];
    collector.add(&mut profile, records, false);
    assert_eq!(rows(&profile), ["1 main A.old:7", "2 main B.new:7"]);
}

#[test]
fn virtual_threads_are_told_from_their_carriers() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let records = [
        thread(),
        method(1, "A", "work"),
        method(2, "java/lang/VirtualThread", "run"),
        method(3, "jdk/internal/vm/Continuation", "enterSpecial"),
        method(4, "java/util/concurrent/ForkJoinWorkerThread", "run"),
        trace(1, &[java(1, 0), java(2, 0), java(3, 0), java(4, 0)]),
        trace(2, &[java(1, 0)]),
        Record::Sample(sample(1, 1)),
        Record::Sample(Sample { java_id: 34, ..sample(1, 2) }),
        Record::Sample(sample(2, 3)),
    ];
    collector.add(&mut profile, records, false);
    let found = rows(&profile);
    assert!(found[0].starts_with("1 virtual, id unknown, on main "), "{}", found[0]);
    assert!(found[1].starts_with("2 virtual thread 34, first on main "), "{}", found[1]);
    assert!(found[2].starts_with("3 main "), "{}", found[2]);
    assert!(found[0].ends_with("java.lang.VirtualThread.run:7;A.work:7"), "{}", found[0]);
}

#[test]
fn failures_are_frames_with_their_names() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let frames = [SampleFrame::Special(Special::NotWalkableJava), java(1, 0)];
    let records = [
        thread(),
        method(1, "A", "run"),
        trace(1, &frames),
        trace(2, &[]),
        Record::Sample(sample(1, 1)),
        Record::Sample(sample(2, 1)),
    ];
    collector.add(&mut profile, records, false);
    assert_eq!(rows(&profile), ["1 main A.run:7;[not_walkable_Java]", "1 main [no stack]"]);
}

#[test]
fn wall_time_is_told_by_state_as_well() {
    let (mut collector, mut profile) = collector(Clock::Wall);
    let mut records = vec![thread(), method(1, "A", "run"), trace(1, &[java(1, 0)])];
    for (state, weight) in
        [(State::Parked, 5), (State::Running, 2), (State::Parked, 6), (State::SystemCall, 1)]
    {
        records.push(Record::Sample(Sample { state, ..sample(1, weight) }));
    }
    collector.add(&mut profile, records, false);
    let totals: Vec<(String, i64)> = profile
        .all_series()
        .map(|(_, series)| (series.info().name.clone(), series.total()))
        .collect();
    let expected = [("wall", 14), ("parked", 11), ("running", 2), ("system-call", 1)];
    assert_eq!(totals, expected.map(|(name, total)| (name.to_owned(), total)));
}

#[test]
fn waiting_threads_of_the_jvm_are_left_out_and_counted() {
    let (mut collector, mut profile) = collector(Clock::Wall);
    let compiler = SampleThread {
        number: 2,
        kind: ThreadType::Native,
        name: "C2 CompilerThre".into(),
        ..SampleThread::default()
    };
    let of = |state, weight| Sample { state, thread: 2, ..sample(1, weight) };
    let records = [
        thread(),
        Record::Thread(compiler),
        trace(1, &[SampleFrame::Native { address: 1 }]),
        Record::Sample(of(State::SystemCall, 5)),
        Record::Sample(of(State::Running, 2)),
        Record::Sample(Sample { state: State::SystemCall, ..sample(1, 4) }),
    ];
    collector.add(&mut profile, records, false);
    assert_eq!(rows(&profile), ["2 C2 CompilerThre f1", "4 main f1"]);
    assert_eq!(collector.samples.unwrap().skipped, 1);
}

#[test]
fn a_thread_may_be_renamed_and_end() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    // The JVM tells of it after somebody has seen it.
    let (name, started) = ("worker".into(), 1_200);
    let renamed = SampleThread { number: 1, name, started, ..SampleThread::default() };
    let records = [thread(), Record::Thread(renamed), Record::ThreadEnd { thread: 1, time: 1_500 }];
    collector.add(&mut profile, records, false);
    let thread = profile.threads.get(ThreadId::new(1));
    assert_eq!((profile.strings.get(thread.name), thread.ended), ("worker", Some(500)));
    assert_eq!(thread.started, Some(200));
    assert_eq!(profile.threads.len(), 2);
}

#[test]
fn events_become_tables_with_their_fields_and_wait_for_names() {
    let (mut collector, mut profile) = collector(Clock::Cpu);
    let fields = [
        ("class", FieldKind::Text),
        ("owner", FieldKind::Thread),
        ("owner-stack", FieldKind::Trace),
        ("size", FieldKind::Bytes),
    ];
    let mut kind = DeclaredKind::new(4, "lock", &fields);
    // Of a type that only a later version knows: left out, and its value with it.
    kind.fields.insert(1, ("colour".to_owned(), None));
    let text = Text { id: 2, text: "a.Lock".to_owned() };
    let head =
        EventHead { kind: 4, thread: 1, time: 1_500, duration: 70, trace: 1, ..Default::default() };
    let event = Record::Event(StreamEvent { head, values: vec![2, 99, 1, 2, 640] });
    let unknown = StreamEvent { head: EventHead { kind: 5, ..head }, values: Vec::new() };
    let records = [
        thread(),
        Record::EventKind(kind),
        Record::Text(text),
        trace(1, &[java(1, 0)]),
        trace(2, &[java(2, 5)]),
        method(1, "a/Waiter", "take"),
        event,
        Record::Event(unknown),
    ];
    collector.add(&mut profile, records, false);
    let (id, table) = profile.all_events().next().unwrap();
    assert!(table.is_empty(), "the owner's stack has no name yet");
    collector.add(&mut profile, [method(2, "a/Owner", "hold")], false);
    let table = profile.events(id);
    let event = table.event(0).unwrap();
    assert_eq!((table.len(), event.time, event.duration), (1, 500, 70));
    assert_eq!(profile.thread_name(event.thread), "main");
    let name_of = |context| {
        let frame = profile.contexts.frames(context).last().unwrap();
        profile.method_name(profile.frames.get(frame).method)
    };
    assert_eq!(name_of(event.context), "a.Waiter.take");
    let value = |name| table.field(0, table.field_named(name).unwrap()).unwrap();
    let FieldValue::Text(class) = value("class") else { panic!() };
    assert_eq!(profile.strings.get(class), "a.Lock");
    assert_eq!(value("owner"), FieldValue::Thread(event.thread));
    let FieldValue::Context(owner) = value("owner-stack") else { panic!() };
    assert_eq!(name_of(owner), "a.Owner.hold");
    assert_eq!(value("size"), FieldValue::Integer(640));
    assert_eq!(table.field_named("colour"), None);
    let mut run = RunInfo::default();
    collector.account(&mut run);
    assert!(run.losses.iter().any(|loss| loss.name == "events" && loss.count == 1), "{run:?}");
}

/// Whatever an agent says of its events, and in whatever order.
#[test]
fn events_that_make_no_sense_are_survived() {
    let kinds: Vec<_> = FieldKind::ALL.iter().map(|kind| ("field", *kind)).collect();
    let numbers = [0, 1, 2, 77, u64::from(u32::MAX), u64::MAX];
    let (mut collector, mut profile) = collector(Clock::Cpu);
    for number in numbers {
        let id = number as u32;
        let kind = Record::EventKind(DeclaredKind::new(id, "x", &kinds));
        let again = Record::EventKind(DeclaredKind::new(id, "y", &kinds[..2]));
        let head = EventHead {
            kind: id,
            thread: id,
            time: number,
            duration: number,
            java_id: number,
            trace: id,
        };
        let event = |values| Record::Event(StreamEvent { head, values });
        let some = event(vec![number; 3]);
        let records = [kind, event(vec![number; 30]), some.clone(), event(Vec::new()), again, some];
        collector.add(&mut profile, records, false);
    }
    collector.add(&mut profile, [], true);
    let rows: usize = profile.all_events().map(|(_, table)| table.len()).sum();
    assert_eq!(rows, numbers.len() * 4);
}
