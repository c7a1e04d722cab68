//! The profile of an exact recording that somebody else makes, and what is known of every run.

use super::{Arena, Exact};
use crate::client::{self, Found};
use crate::error::{Result, refuse};
use crate::origins::Origins;
use crate::recorder::Source;
use std::time::Duration;
use tare_attach::{Jvm, VmKind};
use tare_profile::{Profile, RunInfo};
use tare_protocol::{EngineName, Request};

/// How long a JVM may take to answer somebody who only looks.
const PATIENCE: Duration = Duration::from_secs(10);

/// The profile, as it is now, of a JVM that somebody records at this moment.
pub fn live(jvm: &Jvm) -> Result<Profile> {
    let Found::Ours(mut agent) = client::find(jvm, PATIENCE)? else {
        refuse!("JVM {} is not being recorded; begin with `tare record {0}`", jvm.pid);
    };
    let Some(status) = agent.status()?.exact().cloned() else {
        refuse!("JVM {} is not being recorded; begin with `tare record {0}`", jvm.pid);
    };
    let arena = Arena::new(agent.tell_for_files(&Request::Open(EngineName::Exact))?);
    let mut profile = Profile::new();
    profile.run = RunInfo { duration: status.elapsed_ns, ..run_info(jvm) };
    let elapsed = profile.run.duration;
    let mut exact = Exact::new(arena, status, Origins::of(jvm));
    exact.look_once(&mut profile, elapsed)?;
    exact.account(&mut profile.run);
    Ok(profile)
}

/// What is known of a run before anything is measured.
pub fn run_info(jvm: &Jvm) -> RunInfo {
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    RunInfo {
        tool: format!("tare {}", tare_protocol::VERSION),
        command_line: jvm.command_line.clone(),
        main_class: jvm.name().to_owned(),
        pid: Some(jvm.pid),
        jdk: jvm.java_version.clone().unwrap_or_default(),
        vm: vm(jvm),
        host: text(uname.nodename()),
        os: format!("{} {}", text(uname.sysname()), text(uname.release())),
        cpus: std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok()),
        ..RunInfo::default()
    }
}

/// The name of a virtual machine.
pub fn vm(jvm: &Jvm) -> String {
    match &jvm.vm {
        VmKind::HotSpot { name: Some(name) } => name.clone(),
        VmKind::HotSpot { name: None } => "HotSpot".to_owned(),
        VmKind::OpenJ9 => "OpenJ9".to_owned(),
        _ => "unknown".to_owned(),
    }
}
