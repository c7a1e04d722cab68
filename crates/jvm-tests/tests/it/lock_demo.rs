//! The blocked pool of the demo: one command names the lock, who has it and what keeps that one, in
//! the first screen of its output.

use rustix::process::Signal;
use tare_jvm_tests::{
    Control, Scratch, Tare, Target, control_socket, demo_classes, on_each_jdk, wait_until,
};

/// Lines of a terminal of ordinary size.
const SCREEN: usize = 30;

/// Waits that show where the time goes.
const CONTENTIONS: u64 = 60;

on_each_jdk! {
    fn who_blocks_is_named_in_the_first_screen(jdk) {
        let scratch = Scratch::new();
        let mut command = Target::java(jdk)
            .vm("-Xmx96m")
            .vm("-XX:+UseSerialGC")
            .class_path(demo_classes())
            .main("shop.Main");
        // It ends by itself even if the test is killed.
        for word in ["--threads=3", "--blocked", "--rate=300", "--quiet", "--duration=1500"] {
            command = command.arg(word);
        }
        let target = command.start();
        let file = scratch.join("x.tare").display().to_string();
        let recording = Tare::this().start(&["record", "--lock", "-o", &file, &target.name()]);
        control_socket(target.pid());
        wait_until("waits are recorded", || {
            Tare::this().status(&target.name())["engines"] == serde_json::json!(["locks"])
        });
        let mut control = Control::connect(target.pid());
        control.greet();
        wait_until("orders have waited for the pool", || {
            let status = control.status();
            status.locks().is_some_and(|locks| locks.contentions >= CONTENTIONS)
        });
        recording.signal(Signal::INT);
        let outcome = recording.wait();
        let screen: Vec<&str> = outcome.ok().lines().take(SCREEN).collect();
        let (whole, screen) = (outcome.describe(), screen.join("\n"));
        for part in ["shop.payment.LinePool, held by shop.payment.LinePool.refresh", "a socket"] {
            assert!(screen.contains(part), "no {part:?} in the first screen of\n{whole}");
        }
        // Scripts get the same.
        let outcome = Tare::this().run(&["report", &file, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(outcome.ok()).expect("JSON");
        let lock = &report["locks"]["locks"][0];
        assert_eq!(lock["name"], "shop.payment.LinePool", "{}", report["locks"]);
        let owner = &lock["owners"][0];
        assert_eq!(owner["method"], "shop.payment.LinePool.refresh", "{owner}");
        assert_eq!((&owner["doing"], &owner["threads"]), (&"socket".into(), &"line-refresher".into()));
        assert!(lock["queue"]["longest"].as_u64() >= Some(2), "{lock}");
    }
}
