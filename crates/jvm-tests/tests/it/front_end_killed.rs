//! The front end dies without a word, 50 times, at any moment between its start and its work:
//! requests go on, and nothing that it had switched on stays on.

use std::thread::sleep;
use std::time::Duration;
use tare_jvm_tests::{Control, Demo, Seeded, Tare, control_dirs, on_each_jdk, wait_until};
use tare_protocol::{EnginePlan, Request, Response};

const KILLS: u64 = 50;

on_each_jdk! {
    fn fifty_times(jdk) {
        let tare = Tare::this();
        let demo = Demo::start(jdk);
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let mut seeded = Seeded::new(u64::from(jdk.major));
        let mut seen_on = 0;
        tare.run(&["status", &name]).ok();
        assert!(events_of_a_visit(&demo, true) > 0, "the counters do not count");
        for kill in 0..KILLS {
            // Some die while they attach, the others while they count.
            if kill % 5 == 0 {
                tare.run(&["detach", &name]).ok();
            }
            let mut watching = tare.start(&["status", &name, "--watch", "--interval", "5ms"]);
            sleep(Duration::from_millis(seeded.below(if kill % 5 == 0 { 120 } else { 60 })));
            if !control_dirs("/tmp".as_ref(), pid).is_empty() {
                let status = tare.status(&name);
                seen_on += u64::from(status["engines"].as_array().is_some_and(|e| !e.is_empty()));
            }
            watching.kill();
            // A library that was being loaded may become active after its front end has died.
            wait_until("all is switched off again", || {
                let status = tare.status(&name);
                status["front_ends"] == 1 && status["engines"].as_array().is_some_and(Vec::is_empty)
            });
            demo.check_answers();
        }
        assert!(seen_on >= KILLS / 5, "only {seen_on} of {KILLS} were killed with counters on");
        assert_eq!(tare.status(&name)["panics"], 0);
        // Whatever the status says: the JVM really sends us nothing.
        assert_eq!(events_of_a_visit(&demo, false), 0);
        tare.run(&["detach", &name]).ok();
        crate::common::assert_no_trace(pid);
        demo.finish();
    }
}

/// How many events the JVM tells the agent of when a client visits the demo, which starts a
/// thread for it.
fn events_of_a_visit(demo: &Demo, switched_on: bool) -> u64 {
    let mut control = Control::connect(demo.target.pid());
    control.greet();
    if switched_on {
        assert_eq!(control.ask(&Request::Start(EnginePlan::Counters)), Response::Ok);
    }
    let before = control.status().events;
    demo.visit();
    control.status().events - before
    // The connection ends here as a killed front end's does, without switching anything off.
}
