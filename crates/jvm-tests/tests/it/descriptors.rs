//! The program has used up its descriptors while the agent is in it: a front end cannot be let in,
//! the control thread waits instead of spinning, and all is well once there are some again.

use crate::common::{agentpath, assert_no_trace};
use std::fs;
use std::thread::sleep;
use std::time::Duration;
use tare_jvm_tests::{Tare, Target, on_each_jdk};

/// The processor time that the control thread has used, in ticks of 10 ms.
fn control_ticks(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").filter_map(Result::ok);
    let stat = tasks
        .map(|task| fs::read_to_string(task.path().join("stat")).unwrap_or_default())
        .find(|stat| stat.contains("(tare-control)"))
        .expect("the control thread");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

on_each_jdk! {
    fn used_up(jdk) {
        let java = Target::idle(jdk).vm("-Xcheck:jni").vm(agentpath(""));
        // The JVM raises its limit to what it may have, so it must not have more.
        let limit = ["sh", "-c", "ulimit -Hn 200; ulimit -n 200; exec \"$@\"", "sh"];
        let mut target = java.through(&limit).start();
        let (pid, name) = (target.pid(), target.name());
        Tare::this().run(&["status", &name]).ok();
        assert!(target.ask("files").contains("files: opened"));

        Tare::this().run(&["status", &name, "--timeout", "2s"]).fails(1, &[]);
        let before = control_ticks(pid);
        sleep(Duration::from_secs(1));
        let used = control_ticks(pid) - before;
        assert!(used < 50, "the control thread used {used} ticks of 100 while it could do nothing");
        target.check_works();

        target.ask("close");
        assert_eq!(Tare::this().status(&name)["panics"], 0);
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }
}
