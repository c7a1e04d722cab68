//! What a thread waits for our sake is kept out of its times: a root's first call, in which the
//! methods that it reaches are found and woven one after the other.

use crate::recording::{Recorded, java, record, wait_until_on};
use tare_jvm_tests::{Scratch, Tare, Target, classes, demo_classes, on_each_jdk};
use tare_profile::ValueKind;

/// Nanoseconds of all contexts, as recorded.
fn recorded_ns(recorded: &Recorded) -> i64 {
    let series = recorded.profile.all_series().map(|(_, series)| series);
    let times = series.filter(|series| series.info().kind == ValueKind::WallTime);
    times.flat_map(|series| series.rows()).map(|row| row.value).sum()
}

/// Nanoseconds of one method and what it called.
fn recorded_total_ns(recorded: &Recorded, wanted: &str) -> i64 {
    let profile = &recorded.profile;
    let series = profile.all_series().map(|(_, series)| series);
    let times = series.filter(|series| series.info().kind == ValueKind::WallTime);
    let name = |frame| {
        let method = profile.method_of(frame);
        format!("{}.{}", profile.strings.get(method.class), profile.strings.get(method.name))
    };
    let inside = |row: &tare_profile::Row| {
        profile.contexts.frames(row.context).any(|frame| name(frame) == wanted)
    };
    times.flat_map(|series| series.rows()).filter(inside).map(|row| row.value).sum()
}

/// What a program says: `took NAME 12345`.
fn took_ns(text: &str, name: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("took {name} ")));
    line.and_then(|number| number.parse().ok()).expect("a time")
}

/// How long the threads waited, as the end of the recording says: `12 waits …, 340 ms in all`.
fn waited_ns(text: &str) -> i64 {
    let line = text.lines().find(|line| line.contains(" waits for what")).expect("the waits");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "ms").expect("a time");
    words[at - 1].parse::<i64>().expect("a number") * 1_000_000
}

on_each_jdk! {
    // A getter takes less than reading the clock.
    fn what_is_over_sooner_than_the_clock_is_read(jdk) {
        const GETTER: &str = "shop.orders.Kit.sku";
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let program = ["shop.Main", "--orders", "300", "--threads", "2", "--report-every", "0"];
        for (options, timed) in [(&[][..], false), (&["--time-all"], true)] {
            let mut words = record(options, &file);
            words.extend(java(jdk, demo_classes(), &program));
            Tare::this().run(&words).ok();
            let recorded = Recorded::open(&file);
            assert!(recorded.counts()[GETTER] > 0);
            assert_eq!(recorded_total_ns(&recorded, GETTER) > 0, timed, "{options:?}");
            assert!(recorded_total_ns(&recorded, "shop.orders.OrderDesk.handle") > 0);
            let page = Tare::this().run(&["report", &file.display().to_string()]).ok().to_owned();
            assert_eq!(page.contains("--time-all"), !timed, "{page}");
        }
    }

    fn a_wait_is_nobodys_time(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("FirstCalls").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let name = target.name();
        let words = record(&["--root", "FirstCalls.root", "--no-skip-trivial", &name], &file);
        let recording = Tare::this().start(&words);
        wait_until_on(&name);
        target.tell("go");
        target.wait_for("done go");
        recording.signal(rustix::process::Signal::INT);
        let text = recording.wait().ok().to_owned();
        let took = target.text().lines().find_map(|line| {
            line.strip_prefix("took ")?.split(' ').next()?.parse::<i64>().ok()
        });
        let (took, waited) = (took.expect("a time"), waited_ns(&text));
        let recorded = recorded_ns(&Recorded::open(&file));
        assert!(waited > 0, "the root's first call has to wait: {text}");
        // Rounded to milliseconds; and the call itself is next to nothing.
        assert!(
            recorded <= took - waited + 2_000_000,
            "{recorded} ns recorded, of {took} ns of which {waited} were waited: {text}"
        );
        assert!(recorded > 0, "{text}");
        target.finish();
    }

    // Classes are woven while their loader's thread holds a lock, or initialises a class.
    fn nor_is_that_of_others_who_wait_for_the_one_that_waits(jdk) {
        let mut target = Target::java(jdk).vm("-Xcheck:jni").class_path(classes()).main("HeldLocks").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let name = target.name();
        let recording = Tare::this().start(&record(&[&name], &file));
        wait_until_on(&name);
        target.tell("go");
        target.wait_for("done go");
        target.tell("initialise");
        target.wait_for("done initialise");
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        let recorded = Recorded::open(&file);
        let kept_out = |method: &str| {
            let took = took_ns(&target.text(), method);
            let counted = recorded_total_ns(&recorded, &format!("HeldLocks.{method}"));
            assert!(counted > 0, "{method} took {took} ns, of which none is recorded");
            took - counted
        };
        let needy =
            ["needs", "needsByASubclass", "needsByReflection", "needsOnAVirtualThread"];
        let needy = &needy[..if jdk.major >= 21 { 4 } else { 3 }];
        for (who, waiters) in
            [("holds", &["waits", "waitsForTheWaiter"][..]), ("initialises", needy)]
        {
            let held = kept_out(who);
            assert!(held > 5_000_000, "weaving takes its time: {held} ns");
            for &waiter in waiters {
                let waited = kept_out(waiter);
                assert!(waited > held / 2, "{who}: {held} ns kept out, but {waiter}: {waited} ns");
            }
        }
        target.finish();
    }
}
