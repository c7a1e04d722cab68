//! Exact liveness: every object of chosen classes that woven code makes is watched, and what a
//! recording says of those that live is what the program keeps; on every collector.

use crate::allocation::Session;
use crate::common::assert_no_trace;
use crate::recording::{Recorded, java};
use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk, wait_until};
use tare_profile::facts::keys;
use tare_profile::{ContextId, FieldValue, Profile, ValueKind};

const PROGRAM: &str = "Watches";

/// Objects and bytes by site.
type Sites = BTreeMap<String, (i64, i64)>;

fn record(options: &[&str], file: &Path) -> Vec<String> {
    let mut words: Vec<String> = ["record", "--alloc-exact", "-o"].map(str::to_owned).into();
    words.push(file.display().to_string());
    words.extend(options.iter().map(|word| (*word).to_owned()));
    words
}

/// Has the program collect until it is known of all objects whether they live.
fn settle(session: &mut Session, target: &mut Target, live: u64) {
    wait_until("all is proven", || {
        target.ask("gc 1");
        let status = session.status();
        (status.entries, status.unproven) == (live, 0)
    });
}

/// `METHOD CLASS` of what a context made.
fn site(profile: &Profile, context: ContextId) -> String {
    let mut frames = profile.contexts.frames(context).map(|frame| profile.method_of(frame));
    let (class, method) = (frames.next().expect("a class"), frames.next().expect("a method"));
    let text = |id| profile.strings.get(id);
    format!("{} {}", text(method.name), text(class.class))
}

/// Of two series; sites at which the sums are zero are left out.
fn sums(recorded: &Recorded, kinds: [ValueKind; 2]) -> Sites {
    let profile = &recorded.profile;
    let mut sums = Sites::new();
    for (_, series) in profile.all_series() {
        let is = |at: usize| series.info().kind == kinds[at];
        for row in series.rows().filter(|_| is(0) || is(1)) {
            let amount = sums.entry(site(profile, row.context)).or_default();
            *(if is(0) { &mut amount.0 } else { &mut amount.1 }) += row.value;
        }
    }
    sums.retain(|_, amount| *amount != (0, 0));
    sums
}

fn live(recorded: &Recorded) -> Sites {
    sums(recorded, [ValueKind::LiveObjects, ValueKind::LiveBytes])
}

fn allocated(recorded: &Recorded) -> Sites {
    sums(recorded, [ValueKind::AllocatedObjects, ValueKind::AllocatedBytes])
}

/// What lives, by site, whose objects are all of one size.
#[track_caller]
fn assert_live(recorded: &Recorded, expected: &[(&str, i64)]) {
    let (live, allocated) = (live(recorded), allocated(recorded));
    let objects: Vec<(&str, i64)> = live.iter().map(|(site, of)| (site.as_str(), of.0)).collect();
    assert_eq!(objects, expected);
    for (site, (objects, bytes)) in live.iter().filter(|(site, _)| !site.contains('[')) {
        let (made, of_all) = allocated[site];
        assert_eq!(bytes * made, of_all * objects, "{site}");
    }
}

/// Ages of survivors by site: how many are how old.
fn ages(recorded: &Recorded) -> BTreeMap<String, Vec<i64>> {
    let profile = &recorded.profile;
    let mut tables = profile.all_events().map(|(_, table)| table);
    let table = tables.find(|table| table.kind().name == "survivor").expect("survivors");
    let number = |row: usize, name: &str| match table
        .field_named(name)
        .and_then(|field| table.field(row, field))
    {
        Some(FieldValue::Integer(value)) => value,
        Some(FieldValue::Real(value)) => value as i64,
        other => panic!("{name} is {other:?}"),
    };
    let mut ages: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (row, event) in table.events().enumerate() {
        let all = ages.entry(site(profile, event.context)).or_default();
        (0..number(row, "objects")).for_each(|_| all.push(number(row, "collections")));
    }
    ages
}

/// Flags of each collector of a JVM.
fn collectors(jdk: &Jdk) -> Vec<Vec<&'static str>> {
    let mut all = vec![
        vec!["-XX:+UseSerialGC"],
        vec!["-XX:+UseParallelGC"],
        vec!["-XX:+UseG1GC"],
        vec!["-XX:+UseZGC"],
    ];
    if jdk.major == 21 {
        all.push(vec!["-XX:+UseZGC", "-XX:+ZGenerational"]);
    }
    all
}

on_each_jdk! {
    /// What is kept lives and gets older, what is dropped is gone; constructors of subclasses hand
    /// an object over once, those that throw not at all.
    fn what_lives_is_what_the_program_keeps(jdk) {
        for flags in collectors(jdk) {
            let target = flags.iter().fold(Target::java(jdk).vm("-Xmx128m"), |t, flag| t.vm(flag));
            let mut target = target.class_path(classes()).main(PROGRAM).start();
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let patterns = ["Watches$*", "int[]", "java.lang.Long"];
            let mut session = Session::watch(&target, &patterns, &file);
            for command in ["keep 100", "subs 40", "fails 10", "waste 300", "copies 5", "boxes 20"] {
                target.ask(command);
            }
            target.ask("arrays 12");
            target.ask("threads 30");
            // 100 kept, 40 and the 20 in them, 5 copies, 10 boxes, 24 arrays in others, 30 of threads.
            settle(&mut session, &mut target, 229);
            target.ask("drop");
            settle(&mut session, &mut target, 129);
            target.ask("keep 3");
            settle(&mut session, &mut target, 132);
            for _ in 0..2 {
                let before = session.status().collections;
                wait_until("another collection is told", || {
                    target.ask("gc 1");
                    session.status().collections > before
                });
            }
            let status = session.status();
            assert_eq!(status.lost, Vec::<String>::new(), "{flags:?}");
            session.stop();
            assert_no_trace(target.pid());
            target.ask("keep 1");
            target.finish();

            let recorded = Recorded::open(&file);
            assert_eq!(recorded.losses(), [""; 0], "{flags:?}");
            assert_live(&recorded, &[
                ("arrays int[]", 24),
                ("boxes java.lang.Long", 10),
                ("copy Watches$Copied", 5),
                ("keep Watches$Base", 3),
                ("keepOne Watches$Base", 30),
                ("subs Watches$Base", 20),
                ("subs Watches$Sub", 40),
            ]);
            let ages = ages(&recorded);
            let young = &ages["keep Watches$Base"];
            let old = &ages["subs Watches$Sub"];
            assert!(young.len() == 3 && young.iter().all(|age| *age >= 3), "{flags:?}: {young:?}");
            let oldest = young.iter().max().expect("some");
            assert!(old.len() == 40 && old.iter().all(|age| age > oldest), "{flags:?}: {old:?}");
            assert_eq!(recorded.fact(keys::LIVE_UNPROVEN_OBJECTS), Some(0), "{flags:?}");
        }
    }

    /// From before main to its end; the report has what stays, and says of what.
    fn launched(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut words = record(&["--live", "Watches$Base"], &file);
        let program = ["-XX:+UseSerialGC", PROGRAM, "keep 1000", "subs 10", "waste 9", "gc 3"];
        words.extend(java(jdk, classes(), &[&program[..], &["sleep 500"]].concat()));
        let outcome = Tare::this().run(&words);
        let text = outcome.ok();
        for part in ["What stays", "of Watches$Base after 3 collections", "Watches.keep"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let recorded = Recorded::open(&file);
        assert_live(&recorded, &[("keep Watches$Base", 1000), ("subs Watches$Base", 5)]);
        assert_eq!(ages(&recorded)["keep Watches$Base"], vec![3; 1000]);
    }

    /// Objects without a context of their own are counted, also if the program ends before anybody
    /// could ask for their number.
    fn below_a_depth(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut words = record(&["--depth", "2", "--live", "Watches$Base"], &file);
        words.extend(java(jdk, classes(), &[PROGRAM, "keep 1000", "sleep 200"]));
        Tare::this().run(&words).ok();
        let losses = Recorded::open(&file).losses();
        let [loss] = &losses[..] else { panic!("{losses:?}") };
        assert!(loss.starts_with("skipped 1000 live objects: their contexts"), "{loss}");
    }

    /// What is beyond the limit is counted, and the program goes on.
    fn no_more_than_a_million_at_once(jdk) {
        const LIMIT: i64 = 1 << 20;
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut target = Target::java(jdk)
            .vm("-Xmx512m")
            .vm("-XX:+UseSerialGC")
            .class_path(classes())
            .main(PROGRAM)
            .start();
        let mut session = Session::watch(&target, &["Watches$Base"], &file);
        target.ask("many 1100000");
        settle(&mut session, &mut target, LIMIT.unsigned_abs());
        session.stop();
        target.finish();
        let recorded = Recorded::open(&file);
        assert_live(&recorded, &[("many Watches$Base", LIMIT)]);
        let losses = recorded.losses();
        let [loss] = &losses[..] else { panic!("{losses:?}") };
        let beyond = format!("skipped {} live objects: as many", 1_100_000 - LIMIT);
        assert!(loss.starts_with(&beyond), "{loss}");
    }
}

#[test]
fn patterns_are_needed_and_checked() {
    let fails = |words: &[&str], code: i32, parts: &[&str]| {
        Tare::this().run(&[&["record"], words, &["4711"]].concat()).fails(code, parts);
    };
    fails(&["--live", "a.**"], 2, &["--alloc-exact"]);
    fails(&["--alloc", "--live", "a.**"], 1, &["--alloc-exact", "samples"]);
    fails(&["--alloc-exact", "--live", "a[3]"], 2, &["--live", "cannot stand in a pattern"]);
}
