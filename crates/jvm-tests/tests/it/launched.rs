//! The agent comes in with the JVM, by `-agentpath`, and is spoken to directly.

use crate::common::{agentpath, assert_no_java_thread, assert_no_trace, nameless_files};
use tare_jvm_tests::{Control, Target, control_dirs, on_each_jdk, own_mappings};
use tare_protocol::{EngineName, EnginePlan, LoadedBy, Request, Response, Status};

on_each_jdk! {
    /// Greeting, status, counters, detach, with the JVM checking every JNI call of ours.
    fn a_whole_visit(jdk) {
        let mut target = Target::idle(jdk).vm("-Xcheck:jni").vm(agentpath("")).arg("spam").start();
        let mut control = Control::connect(target.pid());
        assert_eq!(control.greeting.build.len(), 16, "{:?}", control.greeting);
        control.greet();

        let status = control.status();
        assert_eq!(status.pid, target.pid());
        assert_eq!(status.loaded_by, Some(LoadedBy::Launch));
        assert!(status.java_version.starts_with(&jdk.major.to_string()), "{status:?}");
        assert!(status.command.contains("Idle spam"), "{status:?}");
        assert!(status.threads > 3 && status.classes > 100, "{status:?}");
        assert_eq!((status.front_ends, status.panics, status.refused), (1, 0, 0));
        assert!(status.engines.is_empty(), "{status:?}");

        assert_eq!(control.ask(&Request::Start(EnginePlan::Counters)), Response::Ok);
        let counters = |status: &Status| *status.counters().expect("they are on");
        let before = counters(&control.status());
        target.check_works();
        target.ask("gc");
        let status = control.status();
        assert_eq!(status.engine_names(), ["counters"]);
        assert!(counters(&status).threads_started > before.threads_started, "{status:?}");
        assert!(counters(&status).collections > before.collections, "{status:?}");

        assert_eq!(control.ask(&Request::Stop(EngineName::Counters)), Response::Ok);
        let off = control.status();
        assert!(off.engines.is_empty(), "{off:?}");
        target.check_works();
        assert_eq!(control.status().events, off.events, "told of events while switched off");

        assert_eq!(control.ask(&Request::Detach), Response::Ok);
        drop(control);
        assert_no_trace(target.pid());
        assert_no_java_thread(&mut target);
        assert_eq!(nameless_files(target.pid()), [""; 0]);
        target.check_works();
        target.finish();
    }

    /// The program ends while the agent is active: by itself, by exit, by a signal.
    fn the_program_ends_first(jdk) {
        let start = || {
            let target = Target::idle(jdk).vm("-Xcheck:jni").vm(agentpath("")).start();
            let mut control = Control::connect(target.pid());
            control.greet();
            assert_eq!(control.ask(&Request::Start(EnginePlan::Counters)), Response::Ok);
            (target, control)
        };
        let gone = |pid| assert!(control_dirs("/tmp".as_ref(), pid).is_empty(), "a file is left");

        let (target, mut control) = start();
        let pid = target.pid();
        target.finish();
        assert!(control.receive().is_ok_and(|m| m.is_none()), "the connection must end");
        gone(pid);

        let (mut target, _control) = start();
        let pid = target.pid();
        target.tell("exit 7");
        assert_eq!(target.wait().0, 7);
        gone(pid);

        let (target, _control) = start();
        let pid = target.pid();
        target.signal(rustix::process::Signal::TERM);
        assert_eq!(target.wait().0, 143);
        gone(pid);
    }

    /// Bad options cost the profile, never the program: one line says why, and it runs.
    fn bad_options(jdk) {
        for (options, reason) in [
            ("spam=1", "unknown agent option \"spam\""),
            ("rendezvous=%zz", "bad %XX escape"),
            ("rendezvous=/nowhere/at/all", ""),
        ] {
            let mut target = Target::idle(jdk).vm(agentpath(options)).start();
            target.check_works();
            let text = target.finish();
            let said: Vec<_> = text.lines().filter(|line| line.contains("tare")).collect();
            if reason.is_empty() {
                assert!(said.is_empty(), "{text}");
            } else {
                assert!(said.len() == 1 && said[0].contains(reason), "{text}");
            }
        }
    }

    /// The same library twice on one command line is one agent.
    fn named_twice(jdk) {
        let mut target =
            Target::idle(jdk).vm("-Xcheck:jni").vm(agentpath("")).vm(agentpath("")).start();
        let mut control = Control::connect(target.pid());
        control.greet();
        assert_eq!(control_dirs("/tmp".as_ref(), target.pid()).len(), 1);
        assert!(!own_mappings(target.pid()).is_empty());
        assert_eq!(control.ask(&Request::Detach), Response::Ok);
        assert_no_trace(target.pid());
        target.check_works();
        target.finish();
    }
}
