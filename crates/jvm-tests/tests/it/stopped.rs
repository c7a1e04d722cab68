//! A JVM that does not run (SIGSTOP, a debugger, a frozen container): a time-out that says so, and
//! no thread dump once it runs again.

use crate::common::assert_no_trace;
use rustix::process::Signal;
use tare_jvm_tests::{Tare, Target, on_each_jdk, wait_until};

fn stop(target: &Target) {
    target.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", target.pid());
    wait_until("it is stopped", || {
        std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
    });
}

on_each_jdk! {
    fn before_anything(jdk) {
        let mut target = Target::idle(jdk).start();
        let name = target.name();
        stop(&target);
        Tare::this().run(&["status", &name, "--timeout", "2s"]).fails(1, &["2 s", "stopped"]);
        target.signal(Signal::CONT);
        target.check_works();
        assert_eq!(Tare::this().status(&name)["loaded_by"], "attach");
        target.check_works();
        target.finish();
    }

    fn while_the_agent_is_in(jdk) {
        let mut target = Target::idle(jdk).start();
        let name = target.name();
        let tare = Tare::this();
        tare.run(&["status", &name]).ok();
        stop(&target);
        for verb in ["status", "detach"] {
            tare.run(&[verb, &name, "--timeout", "2s"]).fails(1, &["2.0 s", "stopped"]);
        }
        target.signal(Signal::CONT);
        target.check_works();
        // The detach that was asked for may or may not have been heard; now it is.
        tare.run(&["detach", &name]).ok();
        assert_no_trace(target.pid());
        target.check_works();
        target.finish();
    }
}
