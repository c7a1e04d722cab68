//! The leak of the demo: one command names it in the first screen of its output.

use crate::allocation::Session;
use tare_jvm_tests::{Scratch, Target, demo_classes, on_each_jdk, wait_until};

/// Lines of a terminal of ordinary size.
const SCREEN: usize = 40;

/// After so many collections it shows that something stays and grows.
const COLLECTIONS: u64 = 10;

on_each_jdk! {
    fn the_leak_is_named_in_the_first_screen(jdk) {
        let scratch = Scratch::new();
        let mut command = Target::java(jdk)
            .vm("-Xmx512m")
            .vm("-Xmn16m")
            .vm("-XX:+UseSerialGC")
            .class_path(demo_classes())
            .main("shop.Main");
        // It ends by itself even if the test is killed.
        for word in ["--threads=1", "--leak=fast", "--quiet", "--duration=1500"] {
            command = command.arg(word);
        }
        let target = command.start();
        let mut session = Session::start(&target, "32K", &scratch.join("x.tare"));
        wait_until("some collections have passed", || {
            session.status().collections >= COLLECTIONS
        });
        let outcome = session.stop();
        let screen: Vec<&str> = outcome.ok().lines().take(SCREEN).collect();
        let (whole, screen) = (outcome.describe(), screen.join("\n"));
        // The site, the type of what is kept, and that it grows.
        for part in ["Sessions", "byte[]", "grow"] {
            assert!(screen.contains(part), "no {part} in the first screen of\n{whole}");
        }
    }
}
