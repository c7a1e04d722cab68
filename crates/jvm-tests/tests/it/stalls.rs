//! A JVM that reaches no safepoint: an agent that is there already tells who keeps it from one, and
//! where all threads are; none can be brought in meanwhile, and that is said.

use serde_json::Value;
use tare_jvm_tests::{Jdk, Tare, Target, classes, control_socket, on_each_jdk};

fn target(jdk: &Jdk) -> Target {
    let flags = [
        "-XX:-UseCountedLoopSafepoints",
        "-XX:LoopStripMiningIter=0",
        "-XX:-TieredCompilation",
        "-Xbatch",
    ];
    let target = Target::java(jdk).class_path(classes()).main("Stalls");
    flags.into_iter().fold(target, |target, flag| target.vm(flag)).start()
}

fn thread<'a>(dump: &'a Value, name: &str) -> &'a Value {
    let mut threads = dump["threads"].as_array().expect("threads").iter();
    threads.find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("no {name} in {dump:#}"))
}

/// The frames of a thread, the innermost first.
fn stack(thread: &Value) -> Vec<&str> {
    let frames = thread["stack"].as_array().expect("a stack");
    frames.iter().map(|frame| frame.as_str().expect("a frame")).collect()
}

on_each_jdk! {
    fn who_keeps_it_from_a_safepoint_is_told(jdk) {
        let mut target = target(jdk);
        let name = target.name();
        Tare::this().run(&["status", &name]).ok();
        control_socket(target.pid());
        target.tell("stall 30");
        target.wait_for("stalls");
        let outcome = Tare::this().run(&["threads", &name, "--json", "--timeout", "3s"]);
        assert_eq!(outcome.code, 1, "{}", outcome.describe());
        let dump: Value = serde_json::from_str(&outcome.out).expect("JSON");
        let spinner = thread(&dump, "spinner");
        assert_eq!(dump["stalled"]["kept_by"], serde_json::json!([spinner["id"]]), "{dump:#}");
        assert!(dump["stalled"]["ms"].as_u64().is_some_and(|ms| ms >= 1_000), "{dump:#}");
        let frames = stack(spinner);
        let in_loop = [19, 20, 21].map(|line| format!("Stalls.spin(Stalls.java:{line})"));
        assert!(frames.first().is_some_and(|top| in_loop.iter().any(|l| l == top)), "{frames:?}");
        assert!(frames.iter().any(|f| f.starts_with("java.lang.Thread.run(")));
        assert_eq!(spinner["state"], "RUNNABLE");
        let waiter = thread(&dump, "waiter");
        let frames = stack(waiter);
        assert!(frames.contains(&"Stalls.await(Stalls.java:29)"), "{frames:?}");
        assert!(frames[0].starts_with("java.lang.Object.wait"), "{frames:?}");
        assert!(frames[0].ends_with("(Native Method)"), "{frames:?}");
        assert_eq!(waiter["state"], "WAITING");
        let frames = stack(thread(&dump, "parked"));
        assert!(frames.contains(&"Stalls.park(Stalls.java:38)"), "{frames:?}");
        // Who comes later is told at once, and of everything else why it cannot be done.
        let page = Tare::this().run(&["threads", &name, "--timeout", "3s"]);
        let waits = "It waits for 1 thread that will not stop:\n  \"spinner\"";
        assert!(page.code == 1 && page.out.contains(waits), "{}", page.describe());
        let status = Tare::this().run(&["status", &name, "--timeout", "3s"]);
        status.fails(1, &["reaches no safepoint"]);
        // Nothing of it stays once the JVM goes on.
        target.wait_for("stalled");
        let dump = Tare::this().run(&["threads", &name, "--json"]);
        let dump: Value = serde_json::from_str(dump.ok()).expect("JSON");
        assert_eq!(dump["stalled"], Value::Null);
        assert!(stack(thread(&dump, "waiter")).contains(&"Stalls.await(Stalls.java:29)"));
        Tare::this().run(&["detach", &name]).ok();
        target.ask("still there?");
        target.finish();
    }

    fn no_agent_comes_in_and_that_is_said(jdk) {
        let mut target = target(jdk);
        target.tell("stall 15");
        target.wait_for("stalls");
        let outcome = Tare::this().run(&["threads", &target.name(), "--timeout", "2s"]);
        outcome.fails(1, &["may not reach a safepoint", "running or ready to", "tare run"]);
        target.wait_for("stalled");
        target.ask("still there?");
        target.finish();
    }
}
