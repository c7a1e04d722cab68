//! `tare doctor`: each finding has a verdict, and where something does not work, a remedy.

use serde_json::Value;
use tare_jvm_tests::{Tare, Target, on_each_jdk, own_mappings};

fn checks(diagnosis: &Value, part: &str) -> Vec<Value> {
    let list = diagnosis[part].as_array().unwrap_or_else(|| panic!("no {part} in {diagnosis}"));
    assert!(!list.is_empty(), "{diagnosis}");
    for check in list {
        let text = |key: &str| check[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(text("name") && text("verdict") && text("finding"), "{check}");
        // Nothing can be done about a machine that is as it is; a JVM can be started otherwise.
        if part == "jvm" && check["verdict"] == "no" {
            let told = check.to_string().contains("Restart");
            assert!(told || text("remedy"), "a remedy is missing: {check}");
        }
    }
    list.clone()
}

#[test]
fn the_machine() {
    let tare = Tare::this();
    checks(&tare.run(&["doctor", "--json"]).json(), "machine");
    assert!(!tare.run(&["doctor"]).ok().is_empty());
}

on_each_jdk! {
    fn a_healthy_jvm(jdk) {
        let mut target = Target::idle(jdk).start();
        let (pid, name) = (target.pid(), target.name());
        let tare = Tare::this();
        let seen = checks(&tare.run(&["doctor", &name, "--no-attach", "--json"]).json(), "jvm");
        assert!(own_mappings(pid).is_empty(), "it attached although told not to");
        let asked = checks(&tare.run(&["doctor", &name, "--json"]).json(), "jvm");
        assert!(asked.len() >= seen.len(), "{asked:?}");
        assert!(asked.iter().all(|check| check["verdict"] != "no"), "{asked:?}");
        target.check_works();
        // What it attached for its question, it takes away again.
        crate::common::assert_no_trace(pid);
        target.finish();
    }

    fn a_jvm_that_cannot_be_entered(jdk) {
        for flag in ["-XX:+DisableAttachMechanism", "-XX:-EnableDynamicAgentLoading"] {
            let mut target = Target::idle(jdk).vm(flag).start();
            let diagnosis = Tare::this().run(&["doctor", &target.name(), "--json"]).json();
            let checks = checks(&diagnosis, "jvm");
            let told = checks.iter().any(|check| {
                check["verdict"] == "no" && check.to_string().contains(flag)
            });
            assert!(told, "{flag} is not named in {diagnosis}");
            target.check_works();
            target.finish();
        }
    }
}
