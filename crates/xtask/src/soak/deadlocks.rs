//! `cargo xtask soak deadlocks`: is a deadlock ever told of where threads only nearly are in one?
//! The programs are those of the tests: circles that come and go, by limits of time, by a lock
//! above them and by interrupts, of platform threads and of virtual ones.

use super::{Outcome, Soak, running::Running};
use anyhow::{Result, anyhow};
use std::process::{Command, Stdio};
use tare_toolbox::jdks::Jdk;

/// Programs, with the Java version that their source needs.
const PROGRAMS: [(&str, &str, u32); 2] = [
    ("targets/Deadlocks.java", "Deadlocks", 17),
    ("targets21/VirtualDeadlocks.java", "VirtualDeadlocks", 21),
];

pub fn run(soak: &Soak, jdk: &Jdk, times: u32) -> Result<Outcome> {
    let directory = soak.directory("deadlocks", jdk)?;
    let (mut runs, mut bad) = (0, 0);
    for (source, name, release) in PROGRAMS.into_iter().filter(|program| jdk.major >= program.2) {
        let classes = soak.compile(&directory, source, release)?;
        let mut java = Command::new(jdk.home.join("bin/java"));
        java.current_dir(&directory).args(["-Xmx128m", "-cp"]).arg(classes);
        // Before JDK 24 a virtual thread that waits for a monitor keeps its carrier.
        java.args(["-Djdk.virtualThreadScheduler.parallelism=16", name, "nearly"]);
        let mut program = Running::start(&mut java, &directory.join("program.log"))?;
        for number in 1..=times {
            runs += 1;
            let mut look = Command::new(&soak.tare);
            look.args(["threads", "--json", &program.pid().to_string()]);
            let output = look.stdin(Stdio::null()).output()?;
            if !output.status.success() {
                bad += 1;
                let kept = directory.join(format!("bad-{name}-{number}.json"));
                std::fs::write(&kept, &output.stdout)?;
                println!("{name}, look {number}: {}; see {}", output.status, kept.display());
            }
        }
        program.end()?;
        println!("{name}: {times} looks, {bad} bad so far");
    }
    let verdict = match bad {
        0 => Ok(()),
        _ => Err(anyhow!("{bad} looks told of a deadlock, or failed; see {}", directory.display())),
    };
    Ok(Outcome { runs, failed: bad, verdict })
}
