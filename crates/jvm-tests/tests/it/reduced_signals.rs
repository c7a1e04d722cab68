//! `-Xrs`: the JVM leaves SIGQUIT to the system, whose answer is to kill it. So no signal is sent.
//! HotSpot opens its attach socket at the start instead, and that is used where it still is.

use crate::common::{agentpath, assert_no_trace};
use std::fs;
use tare_jvm_tests::{Tare, Target, on_each_jdk};

const FLAGS: [&str; 2] = ["-Xrs", "-XX:+ReduceSignalUsage"];

on_each_jdk! {
    fn is_entered_without_a_signal(jdk) {
        for flag in FLAGS {
            let mut target = Target::idle(jdk).vm(flag).start();
            assert_eq!(Tare::this().status(&target.name())["loaded_by"], "attach");
            Tare::this().run(&["detach", &target.name()]).ok();
            assert_no_trace(target.pid());
            target.check_works();
            target.finish();
        }
    }

    /// Something that cleans /tmp has taken the socket away: now only a signal could bring it back.
    fn without_its_socket_is_refused_and_survives(jdk) {
        for flag in FLAGS {
            let mut target = Target::idle(jdk).vm(flag).start();
            fs::remove_file(format!("/tmp/.java_pid{}", target.pid())).expect("it was opened");
            for _ in 0..3 {
                let outcome = Tare::this().run(&["status", &target.name()]);
                outcome.fails(1, &["-Xrs", "none was sent", "restart"]);
            }
            target.check_works();
            target.finish();
        }
    }

    /// An agent that is inside already needs neither.
    fn works_when_launched_with_the_agent(jdk) {
        let mut target = Target::idle(jdk).vm("-Xrs").vm(agentpath("")).start();
        assert_eq!(Tare::this().status(&target.name())["loaded_by"], "launch");
        Tare::this().run(&["detach", &target.name()]).ok();
        assert_no_trace(target.pid());
        target.check_works();
        target.finish();
    }
}
