//! `tare detach`: every agent of ours leaves the JVM, whatever its version.

use crate::cli::OneJvm;
use crate::term::plain;
use anyhow::Result;
use std::sync::atomic::AtomicBool;
use tare_session::agents::{send_away, wait_for_threads};
use tare_session::{client, command_socket};

pub fn run(target: &OneJvm) -> Result<()> {
    let jvm = tare_attach::find(&target.jvm)?;
    let patience = target.patience.timeout;
    let name = plain(jvm.name());
    // Without a handler of ours Ctrl-C ends us wherever we are.
    let never = AtomicBool::new(false);
    // Of a recording whose tool was killed; one that is under way keeps its own.
    command_socket::sweep(jvm.pid);
    let agents = client::agents(&jvm, patience)?;
    if agents.is_empty() && tare_attach::has_control_thread(jvm.pid) {
        // An agent that was sent away before has no socket any more, but may have much to restore.
        wait_for_threads(&jvm, patience, &never)?;
        outln!("Detached from JVM {} ({name}): an agent was leaving, and is gone.", jvm.pid);
        return Ok(());
    }
    if agents.is_empty() {
        outln!("JVM {} ({name}) holds no active agent; there is nothing to do.", jvm.pid);
        return Ok(());
    }
    for mut agent in agents {
        send_away(&mut agent, &jvm, &never)?;
        outln!(
            "Detached from JVM {} ({name}): the agent of tare {} is gone.",
            jvm.pid,
            plain(&agent.greeting.version)
        );
    }
    Ok(wait_for_threads(&jvm, patience, &never)?)
}
