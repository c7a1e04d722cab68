//! `tare detach`: every agent of ours leaves the JVM, whatever its version.

use crate::cli::Target;
use crate::client;
use crate::term::plain;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::Request;

pub fn run(target: &Target) -> Result<()> {
    let jvm = tare_attach::find(&target.jvm)?;
    let patience = target.patience.timeout;
    let name = plain(jvm.name());
    let agents = client::agents(&jvm, patience)?;
    if agents.is_empty() {
        outln!("JVM {} ({name}) holds no active agent; there is nothing to do.", jvm.pid);
        return Ok(());
    }
    for mut agent in agents {
        agent.tell(&Request::Detach).context("the agent did not leave")?;
        outln!(
            "Detached from JVM {} ({name}): the agent of tare {} is gone.",
            jvm.pid,
            plain(&agent.greeting.version)
        );
    }
    wait_for_threads(&jvm, patience)
}

/// The agent's answer is its last act, but its thread still has to return; whoever counts threads
/// after us must not meet it.
pub fn wait_for_threads(jvm: &Jvm, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    while has_thread(jvm.pid, "tare-control") {
        if Instant::now() > deadline {
            bail!("the agent's thread is still there after {:.1} s", patience.as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn has_thread(pid: u32, name: &str) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .any(|comm| comm.trim_end() == name)
}
