//! A JVM that started milliseconds ago does not yet handle SIGQUIT: it would die of it, or print a
//! thread dump. The front end waits, or says that it is too early; the JVM never suffers.

use std::thread::sleep;
use std::time::{Duration, Instant};
use tare_jvm_tests::{Jdk, PATIENCE, Tare, Target, jvm_below, on_each_jdk};

/// Milliseconds after the start of the process, or after its JVM library was mapped. Between
/// these two and the JVM's first signal handler it is at its most vulnerable.
const AGES: [u64; 9] = [0, 1, 2, 5, 10, 20, 30, 45, 80];

/// Two front ends at once meet a JVM of that age: the second finds the first one's half-done work.
/// Returns how many of them got in.
fn meet(jdk: &Jdk, age: u64, after_mapping: bool) -> u32 {
    let mut target = Target::idle(jdk).spawn();
    if after_mapping {
        let limit = Instant::now() + PATIENCE;
        while jvm_below(target.pid()).is_none() {
            assert!(Instant::now() < limit, "no JVM came up:\n{}", target.text());
        }
    }
    sleep(Duration::from_millis(age));
    let name = target.name();
    let running = [0, 1].map(|_| Tare::this().start(&["status", &name]));
    let mut entered = 0;
    for outcome in running.map(|running| running.wait()) {
        if outcome.code == 0 {
            entered += 1;
        } else {
            // Before the JVM's library is mapped it is any process, and that may be said.
            eprintln!("{}", outcome.fails(1, &[&name]));
        }
    }
    target.wait_for("ready");
    target.check_works();
    let said = target.finish();
    if entered < 2 {
        eprintln!("{said}");
    }
    entered
}

on_each_jdk! {
    fn at_every_age(jdk) {
        let entered: u32 = AGES.iter().map(|age| meet(jdk, *age, false)).sum();
        assert!(entered > 0, "none of these JVMs could be entered");
    }

    fn with_its_library_just_mapped(jdk) {
        let entered: u32 = AGES.iter().map(|age| meet(jdk, *age, true)).sum();
        assert_eq!(entered, 2 * 9, "a JVM is waited for until it can answer");
    }
}
