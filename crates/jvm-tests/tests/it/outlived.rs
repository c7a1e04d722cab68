//! A JVM that outlives the command that started it: its recording ends with the command, and is
//! complete.

use crate::recording::{Recorded, record};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tare_jvm_tests::{Scratch, Tare, classes, on_each_jdk};

/// A JVM that ends with the test.
struct Left(Pid);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

on_each_jdk! {
    fn a_daemon_is_left_and_its_recording_is_complete(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut command = record(&["--count", "--include", "Lasting"], &file);
        // Its input never ends, and the command ends when it is at work.
        let shell = format!(
            "cd {} && mkfifo in && {{ {} -cp {} Lasting <> in > out 2>&1 & }} && echo $! > pid && \
             until grep -q ready out; do sleep 0.1; done",
            scratch.path().display(),
            jdk.java().display(),
            classes().display(),
        );
        command.extend(["--", "sh", "-c", &shell].map(str::to_owned));
        let outcome = Tare::this().run(&command);
        let pid = std::fs::read_to_string(scratch.path().join("pid")).expect("its pid");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
        let left = Left(pid);
        outcome.ok();
        assert!(test_kill_process(left.0).is_ok(), "it ended with its recording");
        assert!(outcome.describe().contains("outlives the command"), "{}", outcome.describe());
        let recorded = Recorded::open(&file);
        assert!(recorded.counts()["Lasting.compiled"] > 0, "{:?}", recorded.counts());
    }
}
