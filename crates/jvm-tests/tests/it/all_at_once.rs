//! All engines of a stream in one recording: each tells what it tells alone, and what could not be
//! kept is named.

use crate::locks::waits;
use crate::recording::Recorded;
use tare_jvm_tests::{Scratch, Tare, classes, on_each_jdk, test_natives};
use tare_profile::{EventKind, FieldValue, Series, ValueKind, collections, safepoints};

/// How many of something were lost, as the recording says.
fn lost(recorded: &Recorded, what: &str) -> u64 {
    let losses = recorded.profile.run.losses.iter();
    losses.filter(|loss| loss.name == what).map(|loss| loss.count).sum()
}

/// Rows of loads of a class.
fn loads(recorded: &Recorded, class: &str) -> u64 {
    let profile = &recorded.profile;
    let kind = EventKind::class_load().name;
    let tables = profile.all_events().map(|(_, table)| table);
    let rows = tables.filter(|table| table.kind().name == kind).flat_map(|table| {
        let field = table.field_named("class").expect("its name");
        (0..table.len()).map(move |row| table.field(row, field))
    });
    let of = |text| matches!(text, Some(FieldValue::Text(id)) if profile.strings.get(id) == class);
    rows.filter(|text| of(*text)).count() as u64
}

/// Whether a sample was taken in a method.
fn is_met(recorded: &Recorded, method: &str) -> bool {
    let profile = &recorded.profile;
    let of_threads = [ValueKind::CpuTime, ValueKind::WallTime];
    let series = profile.all_series().map(|(_, series)| series);
    let mut rows =
        series.filter(|one| of_threads.contains(&one.info().kind)).flat_map(Series::rows);
    rows.any(|row| {
        let frame = profile.contexts.frame(row.context);
        frame.is_some_and(|frame| profile.method_name(profile.frames.get(frame).method) == method)
    })
}

on_each_jdk! {
    fn each_tells_what_it_tells_alone(jdk) {
        for clock in ["--cpu", "--wall"] {
            let scratch = Scratch::new();
            let file = scratch.join("all.tare");
            let (out, java) = (file.display().to_string(), jdk.java().display().to_string());
            let natives = format!("-agentpath:{}", test_natives().display());
            let classes = classes().display().to_string();
            let words =
                ["record", clock, "--alloc", "--lock", "--classes", "--jni-refs", "-q", "-o", &out];
            // The recording's file is there when all engines are on.
            let program = ["--", &java, &natives, "-cp", &classes, "AllAtOnce", &out];
            Tare::this().run(&[&words[..], &program].concat()).ok();
            let recorded = Recorded::open(&file);
            let told = format!("{clock} on {}: {:#?}", jdk.major, recorded.losses());
            // Lost ones may be others' than these.
            let waited = waits(&recorded.profile).len() as u64;
            assert!(waited <= 40 && waited + lost(&recorded, "waits") >= 40, "{waited}, {told}");
            let plugins = loads(&recorded, "ClassTruth$Plugin");
            assert_eq!(plugins + lost(&recorded, "events of classes"), 50, "{told}");
            let report = Tare::this().run(&["report", &out, "--format", "json"]).json();
            let sites = report["jni_refs"]["sites"].as_array().expect("sites");
            let made = |method: &str| -> [Option<u64>; 2] {
                let site = sites.iter().find(|site| site["java"] == method);
                ["made", "alive"].map(|key| site.and_then(|site| site[key].as_u64()))
            };
            assert_eq!(lost(&recorded, "references"), 0, "{told}");
            assert_eq!(made("Natives.leakReferences"), [Some(1000), Some(1000)], "{told}");
            assert_eq!(made("Natives.tidyReferences"), [Some(500), Some(0)], "{told}");
            let memory = report["memory"].to_string();
            assert!(memory.contains("AllAtOnce.make"), "{told}: {memory}");
            assert!(is_met(&recorded, "AllAtOnce.burn"), "{told}");
            let pauses = collections(&recorded.profile);
            assert!(pauses.iter().any(|one| one.cause == "System.gc()"), "{told}: {pauses:#?}");
            assert!(!safepoints(&recorded.profile).is_empty(), "{told}");
            let compiled = &report["pauses"]["compilers"]["methods"];
            assert!(compiled.as_u64() > Some(0), "{told}: {}", report["pauses"]["compilers"]);
            let ends = |name: &str| {
                let threads = recorded.profile.threads.iter();
                let mut threads = threads.filter(|(_, one)| recorded.profile.strings.get(one.name) == name);
                threads.any(|(_, one)| one.started.is_some() && one.ended >= one.started)
            };
            let came = report["threads_came_and_went"].as_array().expect("threads");
            for name in ["work", "locks", "classes", "references", "objects"] {
                assert!(ends(name), "thread {name:?} of {told}");
                // Who starts threads is told with locks.
                let one = came.iter().find(|one| one["name"] == name).expect(name);
                let [by, method] = ["started_by", "started_in"].map(|key| one[key].as_str());
                assert_eq!((by, method), (Some("main"), Some("AllAtOnce.start")), "{one}");
                let [from, to, lived] =
                    ["started_ns", "ended_ns", "lived_ns"].map(|key| one[key].as_u64());
                assert!(lived.is_some() && to.zip(from).map(|(to, from)| to - from) == lived, "{one}");
                let lives = report["thread_lives"].as_array().expect("lives");
                let of = lives.iter().find(|of| of["name"] == name).expect(name);
                let (count, sum) = (of["count"].as_u64(), of["lived_ns"].as_u64());
                assert_eq!((count, sum, of["started_in"].as_str()), (Some(1), lived, method), "{of}");
            }
        }
    }
}
