//! A JVM that started milliseconds ago does not yet handle SIGQUIT: it would die of it, or print a
//! thread dump. The front end waits, or says that it is too early; the JVM never suffers.

use std::thread::sleep;
use std::time::Duration;
use tare_jvm_tests::{Tare, Target, on_each_jdk};

on_each_jdk! {
    fn at_every_age(jdk) {
        let tare = Tare::this();
        let mut entered = 0;
        for age in [0, 1, 2, 3, 5, 8, 10, 12, 15, 18, 22, 26, 30, 36, 43, 50, 60, 80] {
            let mut target = Target::idle(jdk).spawn();
            sleep(Duration::from_millis(age));
            // Two at once: the second meets the first one's half-done attach.
            let name = target.name();
            let running = [0, 1].map(|_| tare.start(&["status", &name, "--timeout", "60s"]));
            for outcome in running.map(|running| running.wait()) {
                if outcome.code == 0 {
                    entered += 1;
                } else {
                    // Before the JVM's library is mapped it is any process, and that may be said.
                    outcome.fails(1, &[&name]);
                }
            }
            target.wait_for("ready");
            target.check_works();
            target.finish();
        }
        assert!(entered > 0, "none of these JVMs could be entered");
    }
}
