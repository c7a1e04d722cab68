//! Sampled objects made up here: what they stand for, which live, and how old they get.

use super::super::allocation::Amount;
use super::*;
use tare_arena::samples::BORN_OLD;
use tare_profile::{EventTable, Series, ValueKind};

/// Kinds as the agent declares them, with numbers of their own.
const KINDS: [(&str, &[&str]); 5] = [
    ("allocation", &["number", "size", "interval", "born"]),
    ("live-survived", &["number", "level", "epoch"]),
    ("live-gone", &["number", "epoch"]),
    ("live-level", &["number", "level"]),
    ("live-swept", &["below", "epoch", "entries", "unproven", "old"]),
];

fn declared() -> Vec<Record> {
    let kinds = (10..).zip(KINDS).map(|(id, (name, fields))| {
        let fields: Vec<_> = fields.iter().map(|field| (*field, FieldKind::Integer)).collect();
        Record::EventKind(DeclaredKind::new(id, name, &fields))
    });
    kinds.collect()
}

fn told(name: &str, time: u64, trace: u32, values: &[u64]) -> Record {
    let at = KINDS.iter().position(|(known, _)| *known == name).unwrap();
    let kind = 10 + at as u32;
    let head = EventHead { kind, thread: 1, time: 1_000 + time, trace, ..Default::default() };
    Record::Event(StreamEvent { head, values: values.to_vec() })
}

/// Every object is met, so each stands for itself.
fn allocation(number: u64, size: u64, born: u64) -> Record {
    told("allocation", number, 1, &[number, size, 0, born])
}

fn objects(live: bool) -> (Collector<Names>, Profile) {
    let allocation = Allocation::new(512 << 10, live);
    (Collector::new(None, Some(allocation), 1_000, Names), Profile::new())
}

/// A stack that allocates an order, and one that allocates bytes.
fn stacks() -> Vec<Record> {
    let class = |text| SampleFrame::Class { text };
    let mut records = declared();
    records.extend([
        thread(),
        method(1, "com/acme/Orders", "place"),
        method(2, "java/util/Arrays", "copyOf"),
        Record::Text(Text { id: 1, text: "Lcom/acme/Order;".into() }),
        Record::Text(Text { id: 2, text: "[B".into() }),
        trace(1, &[class(1), java(1, 0)]),
        trace(2, &[class(2), java(2, 0), java(1, 6)]),
    ]);
    records
}

fn series(profile: &Profile, kind: &ValueKind) -> Series {
    let mut all = profile.all_series();
    all.find(|(_, series)| series.info().kind == *kind).unwrap().1.clone()
}

fn events<'a>(profile: &'a Profile, name: &str) -> &'a EventTable {
    profile.all_events().find(|(_, table)| table.kind().name == name).unwrap().1
}

/// Time, bytes, objects and age of each.
fn lives(table: &EventTable) -> Vec<(u64, i64, f64, i64)> {
    let field = |row, name| table.field(row, table.field_named(name).unwrap()).unwrap();
    let life = |row: usize| {
        let FieldValue::Integer(bytes) = field(row, "bytes") else { panic!() };
        let FieldValue::Real(objects) = field(row, "objects") else { panic!() };
        let FieldValue::Integer(collections) = field(row, "collections") else { panic!() };
        (table.event(row).unwrap().time, bytes, objects, collections)
    };
    (0..table.len()).map(life).collect()
}

fn survivors(collector: &Collector<Names>, profile: &mut Profile) -> Vec<(u64, i64, f64, i64)> {
    collector.allocation.as_ref().unwrap().live.as_ref().unwrap().add_survivors(profile);
    lives(events(profile, "survivor"))
}

#[test]
fn the_class_is_the_innermost_frame_and_stays_when_its_methods_are_not_shown() {
    let lines = |include: &[&str]| {
        let (mut collector, mut profile) = objects(false);
        let include = include.iter().map(|text| text.parse().unwrap()).collect();
        collector.show_only(Fitting { include, exclude: Vec::new() });
        let mut records = stacks();
        records.push(allocation(1, 40, 0));
        records.push(told("allocation", 2, 2, &[2, 64, 0, 0]));
        collector.add(&mut profile, records, false);
        assert_eq!(profile.check(), Ok(()));
        (rows(&profile), collector.outside())
    };
    let (all, outside) = lines(&[]);
    assert_eq!(all[0], "40 main com.acme.Orders.place:7;com.acme.Order");
    assert_eq!(all[1], "64 main com.acme.Orders.place:9;java.util.Arrays.copyOf:7;byte[]");
    assert_eq!(outside, 0);
    let (own, outside) = lines(&["com.acme.*"]);
    assert_eq!((own[1].as_str(), outside), ("64 main com.acme.Orders.place:9;byte[]", 0));
    let (none, outside) = lines(&["org.**"]);
    assert_eq!(none[0], "40 main [no method that fits];com.acme.Order");
    assert_eq!((none[1].as_str(), outside), ("64 main [no method that fits];byte[]", 2));
}

#[test]
fn an_object_waits_for_the_name_of_its_class_and_not_for_ever() {
    let (mut collector, mut profile) = objects(true);
    let mut records: Vec<Record> =
        stacks().into_iter().filter(|record| !matches!(record, Record::Text(_))).collect();
    // It lives and dies before anybody knows what it is, and so does what is behind it.
    records.push(allocation(1, 40, 0));
    records.push(told("live-survived", 50, 0, &[1, 0, 1]));
    records.push(told("live-swept", 50, 0, &[2, 1, 1, 0, 0]));
    records.push(told("live-gone", 60, 0, &[1, 3]));
    records.push(told("live-swept", 60, 0, &[2, 3, 0, 0, 0]));
    collector.add(&mut profile, records, false);
    assert_eq!(rows(&profile), [""; 0]);
    let text = Record::Text(Text { id: 1, text: "Lcom/acme/Order;".into() });
    collector.add(&mut profile, [text], false);
    assert_eq!(rows(&profile), ["40 main com.acme.Orders.place:7;com.acme.Order"]);
    let live = series(&profile, &ValueKind::LiveBytes);
    let changes: Vec<(u64, i64)> = live.rows().map(|row| (row.time, row.value)).collect();
    assert_eq!(changes, [(50, 40), (60, -40)]);
    assert_eq!(lives(events(&profile, "death")), [(60, 40, 1.0, 2)]);
    // What never gets a name is told without at the end.
    collector.add(&mut profile, [told("allocation", 70, 2, &[2, 64, 0, 3])], false);
    assert_eq!(rows(&profile).len(), 1);
    collector.add(&mut profile, [], true);
    let last = rows(&profile).pop().unwrap();
    assert!(last.ends_with("Arrays.copyOf:7;[unknown class]"), "{last}");
}

/// A sampler as HotSpot's: it meets a byte each so often, at random.
#[test]
fn what_samples_stand_for_adds_up_to_what_was_allocated() {
    const INTERVAL: u64 = 16 << 10;
    let mut state = 42_u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut distance = move || -random().ln() * INTERVAL as f64;
    let (mut collector, mut profile) = objects(false);
    let mut records = stacks();
    let mut next = distance();
    let (mut objects, mut bytes) = (0_u64, 0_u64);
    for n in 0..2_000_000_u64 {
        // Small ones, larger ones, and a few that are always met.
        let (trace, size) = match n % 1000 {
            0 => (2, 1 << 20),
            n if n % 10 == 0 => (2, 4096),
            _ => (1, 64),
        };
        objects += 1;
        bytes += size;
        next -= size as f64;
        if next < 0.0 {
            next = distance();
            records.push(told("allocation", n, trace, &[0, size, INTERVAL, 0]));
        }
    }
    collector.add(&mut profile, records, true);
    let [got_bytes, got_objects] = [ValueKind::AllocatedBytes, ValueKind::AllocatedObjects]
        .map(|kind| series(&profile, &kind).total() as f64);
    let samples = collector.allocation.as_ref().unwrap().samples;
    // Small objects are met 7,000 times, so 4 % are three standard deviations.
    assert!((40_000..60_000).contains(&samples), "{samples}");
    assert!((got_bytes / bytes as f64 - 1.0).abs() < 0.01, "{got_bytes} of {bytes} bytes");
    assert!((got_objects / objects as f64 - 1.0).abs() < 0.04, "{got_objects} of {objects}");
}

#[test]
fn fractions_are_carried_over() {
    let (mut collector, mut profile) = objects(false);
    let mut records = stacks();
    // Met with a probability of about two thirds, so each stands for one and a half.
    let (size, interval) = (1000, 1000);
    let exact = Amount::of_sample(size, interval);
    assert!((exact.objects - 1.582).abs() < 0.001, "{exact:?}");
    records.extend((0..999).map(|n| told("allocation", n, 1, &[0, size, interval, 0])));
    collector.add(&mut profile, records, false);
    let rows = series(&profile, &ValueKind::AllocatedObjects);
    assert!(rows.rows().all(|row| row.value == 1 || row.value == 2));
    let total = exact.objects * 999.0;
    assert!((rows.total() as f64 - total).abs() <= 1.0, "{} for {total}", rows.total());
}

#[test]
fn objects_that_survive_have_ages_and_those_that_die_young_cost_nothing() {
    let (mut collector, mut profile) = objects(true);
    let mut records = stacks();
    records.extend((1..=4).map(|n| allocation(n, 100 * n, 0)));
    // After the first collection two are left, and one is born.
    records.push(told("live-survived", 100, 0, &[1, 0, 1]));
    records.push(told("live-survived", 100, 0, &[3, 0, 1]));
    records.push(told("live-swept", 100, 0, &[5, 1, 2, 0, 0]));
    records.push(allocation(5, 50, 1));
    collector.add(&mut profile, records, false);
    let live = |profile: &Profile| series(profile, &ValueKind::LiveBytes).total();
    assert_eq!(live(&profile), 400);
    let unproven = |collector: &Collector<Names>| {
        collector.allocation.as_ref().unwrap().live.as_ref().unwrap().unproven()
    };
    assert_eq!(unproven(&collector), Amount { bytes: 50.0, objects: 1.0 });
    // A dump in the middle.
    assert_eq!(survivors(&collector, &mut profile.clone()), [(1, 100, 1.0, 1), (3, 300, 1.0, 1)]);
    // The third collection frees one of them; the new one survives.
    let records = [
        told("live-survived", 300, 0, &[5, 0, 3]),
        told("live-gone", 300, 0, &[1, 3]),
        told("live-swept", 300, 0, &[6, 3, 2, 0, 0]),
    ];
    collector.add(&mut profile, records, true);
    assert_eq!(live(&profile), 350);
    assert_eq!(lives(events(&profile, "death")), [(300, 100, 1.0, 2)]);
    assert_eq!(survivors(&collector, &mut profile), [(3, 300, 1.0, 3), (5, 50, 1.0, 2)]);
    assert_eq!(unproven(&collector), Amount { bytes: 0.0, objects: 0.0 });
    assert_eq!(profile.check(), Ok(()));
}

#[test]
fn thinned_out_objects_are_not_dead_and_the_rest_stands_for_them() {
    let (mut collector, mut profile) = objects(true);
    let mut records = stacks();
    records.extend((1..=4).map(|n| allocation(n, 10, 0)));
    records.extend((1..=4).map(|n| told("live-survived", 100, 0, &[n, 0, 1])));
    collector.add(&mut profile, records, false);
    let live = |profile: &Profile| series(profile, &ValueKind::LiveObjects).total();
    assert_eq!(live(&profile), 4);
    let records = [
        told("live-gone", 200, 0, &[2, u64::MAX]),
        told("live-gone", 200, 0, &[3, u64::MAX]),
        told("live-level", 200, 0, &[1, 1]),
        told("live-level", 200, 0, &[4, 1]),
        // What is born now stands for two from its first proof on.
        allocation(5, 10, 1),
        told("live-survived", 300, 0, &[5, 1, 2]),
        told("live-swept", 300, 0, &[6, 2, 3, 0, 0]),
    ];
    collector.add(&mut profile, records, false);
    assert_eq!(live(&profile), 6);
    assert!(events(&profile, "death").is_empty());
    collector.add(&mut profile, [told("live-gone", 400, 0, &[4, 3])], true);
    assert_eq!(live(&profile), 4);
    assert_eq!(lives(events(&profile, "death")), [(400, 20, 2.0, 2)]);
    assert_eq!(survivors(&collector, &mut profile), [(1, 20, 2.0, 3), (5, 20, 2.0, 2)]);
}

/// Records are lost, come twice, or before others: nothing lives for ever, and sums stay sums.
#[test]
fn what_is_missing_is_counted() {
    let (mut collector, mut profile) = objects(true);
    let mut records = stacks();
    // The thread was slower in telling of its object than the sweep.
    records.push(told("live-survived", 100, 0, &[1, 0, 1]));
    records.push(told("live-level", 100, 0, &[1, 2]));
    records.push(told("live-swept", 100, 0, &[2, 1, 1, 0, 0]));
    records.push(allocation(1, 10, 0));
    // Its allocation was lost, and it dies; that of another never comes.
    records.push(told("live-survived", 100, 0, &[7, 0, 1]));
    records.push(told("live-gone", 200, 0, &[7, 2]));
    records.push(told("live-survived", 200, 0, &[8, 0, 2]));
    // Told again, of none that is known, and too late.
    records.push(told("live-survived", 200, 0, &[1, 2, 2]));
    records.push(told("live-gone", 200, 0, &[99, 2]));
    records.push(told("live-level", 200, 0, &[99, 2]));
    records.push(told("live-swept", 200, 0, &[9, 2, 1, 0, 0]));
    records.push(told("allocation", 0, 1, &[3, 10, 0, 0]));
    collector.add(&mut profile, records, true);
    assert_eq!(series(&profile, &ValueKind::LiveObjects).total(), 4);
    assert_eq!(survivors(&collector, &mut profile), [(1, 40, 4.0, 2)]);
    let live = collector.allocation.as_ref().unwrap().live.as_ref().unwrap();
    assert_eq!((live.lost(), live.unproven().objects), (2, 0.0));
}

#[test]
fn objects_that_were_born_old_wait_for_a_proof_of_their_own() {
    let (mut collector, mut profile) = objects(true);
    let mut records = stacks();
    let old = |number: u64| number | BORN_OLD;
    records.extend([1, 4].map(|number| allocation(number, 100, 0)));
    records.extend([old(2), old(3), old(5)].map(|number| allocation(number, 1 << 20, 0)));
    records.push(told("live-survived", 100, 0, &[1, 0, 1]));
    records.push(told("live-swept", 100, 0, &[6, 1, 4, 3, 0]));
    collector.add(&mut profile, records, false);
    let live = |profile: &Profile| series(profile, &ValueKind::LiveBytes).total();
    assert_eq!(live(&profile), 100);
    assert_eq!(
        collector.allocation.as_ref().unwrap().live.as_ref().unwrap().unproven().bytes,
        3.0 * 1048576.0
    );
    // One goes early, one is proven later, one died without a word before that.
    let records = [
        told("live-gone", 200, 0, &[old(2), 2]),
        told("live-swept", 200, 0, &[6, 2, 3, 2, 0]),
        told("live-survived", 300, 0, &[old(3), 0, 3]),
        told("live-swept", 300, 0, &[6, 3, 2, 0, 6]),
    ];
    collector.add(&mut profile, records, true);
    assert_eq!(live(&profile), 100 + (1 << 20));
    assert_eq!(collector.allocation.as_ref().unwrap().live.as_ref().unwrap().unproven().bytes, 0.0);
}
