//! What a thread waits for our sake is kept out of its times: a root's first call, in which the
//! methods that it reaches are found and woven one after the other.

use crate::recording::{Recorded, record, wait_until_on};
use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk};
use tare_profile::ValueKind;

/// Nanoseconds of all contexts, as recorded.
fn recorded_ns(recorded: &Recorded) -> i64 {
    let series = recorded.profile.all_series().map(|(_, series)| series);
    let times = series.filter(|series| series.info().kind == ValueKind::WallTime);
    times.flat_map(|series| series.rows()).map(|row| row.value).sum()
}

/// How long the threads waited, as the end of the recording says: `12 waits …, 340 ms in all`.
fn waited_ns(text: &str) -> i64 {
    let line = text.lines().find(|line| line.contains(" waits for what")).expect("the waits");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "ms").expect("a time");
    words[at - 1].parse::<i64>().expect("a number") * 1_000_000
}

on_each_jdk! {
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
}
