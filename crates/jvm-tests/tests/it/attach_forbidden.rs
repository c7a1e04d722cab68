//! JVMs whose owner forbids attaching, or loading agents later: a message with the remedy, however
//! the flag was given.

use std::fs;
use tare_jvm_tests::{Scratch, Tare, Target, TargetBuilder, on_each_jdk, own_mappings};

const FLAGS: [&str; 2] = ["-XX:+DisableAttachMechanism", "-XX:-EnableDynamicAgentLoading"];

fn check(target: TargetBuilder, flag: &str) {
    let mut target = target.start();
    let tare = Tare::this();
    assert!(tare.listed(target.pid()).is_some());
    tare.run(&["status", &target.name()]).fails(1, &[flag, "restart"]);
    assert!(own_mappings(target.pid()).is_empty());
    target.check_works();
    target.finish();
}

on_each_jdk! {
    fn on_the_command_line(jdk) {
        for flag in FLAGS {
            check(Target::idle(jdk).vm(flag), flag);
        }
    }

    fn in_the_environment(jdk) {
        for flag in FLAGS {
            check(Target::idle(jdk).var("JAVA_TOOL_OPTIONS", flag), flag);
            check(Target::idle(jdk).var("JDK_JAVA_OPTIONS", flag), flag);
        }
    }

    fn in_a_file(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("options");
        for flag in FLAGS {
            fs::write(&file, format!("# our options\n{flag}\n")).unwrap();
            check(Target::idle(jdk).vm(format!("@{}", file.display())), flag);
        }
    }

    /// The last of contradicting flags wins.
    fn taken_back(jdk) {
        let mut target = Target::idle(jdk)
            .vm("-XX:+DisableAttachMechanism")
            .vm("-XX:-EnableDynamicAgentLoading")
            .vm("-XX:-DisableAttachMechanism")
            .vm("-XX:+EnableDynamicAgentLoading")
            .start();
        assert_eq!(Tare::this().status(&target.name())["loaded_by"], "attach");
        target.check_works();
        target.finish();
    }
}
