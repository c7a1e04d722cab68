//! Collections in a sampling recording are those that the JVM itself counts.

use crate::recording::Recorded;
use tare_jvm_tests::{Scratch, Tare, Target, control_socket, on_each_jdk, wait_until};
use tare_profile::FieldValue;

const COLLECTIONS: usize = 7;

on_each_jdk! {
    /// The serial collector has no pauses but those that its beans count.
    fn as_many_as_the_beans_count(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let path = file.display().to_string();
        let mut target = Target::idle(jdk).vm("-XX:+UseSerialGC").vm("-Xmx256m").start();
        let pid = target.pid().to_string();
        let recording = Tare::this().start(&["record", "-o", &path, &pid]);
        control_socket(target.pid());
        wait_until("sampling is on", || {
            Tare::this().status(&pid)["engines"] == serde_json::json!(["sampling"])
        });
        let counted = |target: &mut Target| -> usize {
            let said = target.ask("collections");
            said.rsplit(' ').next().and_then(|n| n.trim().parse().ok()).expect("a number")
        };
        let before = counted(&mut target);
        for _ in 0..COLLECTIONS {
            target.ask("gc");
        }
        let came = counted(&mut target) - before;
        assert!(came >= COLLECTIONS, "{came}");
        Tare::this().run(&["stop", &pid]).ok();
        recording.wait().ok();
        let recorded = Recorded::open(&file);
        let profile = &recorded.profile;
        let (_, table) = profile
            .all_events()
            .find(|(_, table)| table.kind().name == "gc")
            .expect("a table of collections");
        // One more may have come between the start of the session and our first question.
        assert!((came..=came + 3).contains(&table.len()), "{} of {came}", table.len());
        let collector = table.field_named("collector").expect("a field");
        let mut last = 0;
        for (row, event) in table.events().enumerate() {
            assert!(event.duration > 0 && event.duration < profile.run.duration, "{event:?}");
            assert!(event.time >= last && event.time <= profile.run.duration, "{event:?}");
            last = event.time;
            let Some(FieldValue::Text(name)) = table.field(row, collector) else { panic!() };
            assert_ne!(profile.strings.get(name), "", "a collector without a name");
        }
        let report = Tare::this().run(&["report", &path]).out;
        let line = format!("{} pauses for garbage collection stopped the program for", table.len());
        assert!(report.contains(&line), "{report}");
        let json = scratch.path().join("x.trace.json").display().to_string();
        Tare::this().run(&["export", &path, "-o", &json]).ok();
        let exported = std::fs::read_to_string(&json).expect("the export");
        assert!(exported.contains("\"gc\""), "no collection in the export");
        target.check_works();
        target.finish();
    }
}
