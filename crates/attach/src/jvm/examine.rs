//! Describes one process as a JVM, as far as we may see it, from /proc and the files that HotSpot
//! leaves. Nothing here talks to a JVM or sends it a signal.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Jvm, VmKind, command_line, is_java};
use crate::cmdline::{self, Settings};
use crate::error::Error;
use crate::jvm_files::{self, JvmFiles};
use crate::left_behind::JobThread;
use crate::perfdata::{self, PerfData};
use crate::procfs::{self, Mapped, Stat, Status};
use crate::rights;
use crate::secrets::mask_secrets;

/// Looks at processes on a thread that can be left behind: what a process's owner chose, say a
/// directory on a file system that does not answer, must not keep us from all the others.
pub(super) struct Examiner {
    users: Arc<Users>,
    jobs: JobThread,
    patience: Duration,
}

impl Examiner {
    /// Far longer than it takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// Once a process has used that up, others get less.
    const NO_PATIENCE: Duration = Duration::from_secs(1);

    pub(super) fn new() -> Self {
        Examiner {
            users: Arc::new(Users::read()),
            jobs: JobThread::default(),
            patience: Self::PATIENCE,
        }
    }

    /// A process that does not let itself be looked at in time is described by its name only.
    pub(super) fn examine(&mut self, pid: u32) -> Result<Jvm, Error> {
        let users = Arc::clone(&self.users);
        if let Some(found) = self.jobs.wait(self.patience, move || examine(pid, &users)) {
            return found;
        }
        self.patience = Self::NO_PATIENCE;
        examine_here(pid, &self.users, Look::Name)
    }

    pub(super) fn remove_stale(&mut self, jvms: &[Jvm]) {
        let jvms = jvms.to_owned();
        self.jobs.wait(self.patience, move || crate::control::remove_stale(&jvms));
    }
}

/// How closely a process is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// All that we may see.
    Close,
    /// Only what the kernel tells without asking the process's memory or file systems.
    Name,
}

/// Describes a process with our own rights or, if these do not suffice and we are root, with those
/// of its user.
fn examine(pid: u32, users: &Users) -> Result<Jvm, Error> {
    let seen = examine_here(pid, users, Look::Close)?;
    if seen.details {
        return Ok(seen);
    }
    match rights::as_user(seen.uid, seen.gid, || examine_here(pid, users, Look::Close)) {
        Some(Ok(closer)) if closer.details => Ok(closer),
        _ => Ok(seen),
    }
}

fn examine_here(pid: u32, users: &Users, look: Look) -> Result<Jvm, Error> {
    let gone = |_| Error::NoSuchProcess { pid };
    let stat = Stat::of(pid).map_err(gone)?;
    let status = Status::of(pid).map_err(gone)?;
    if matches!(stat.state, 'Z' | 'X') {
        return Err(Error::Gone { pid });
    }
    let comm = procfs::read(pid, "comm").unwrap_or_default();
    let comm = String::from_utf8_lossy(&comm).trim_end().to_owned();
    let close = look == Look::Close;
    let (mapped, maps_seen) = match close.then(|| Mapped::of(pid)) {
        Some(Ok(mapped)) => (mapped, true),
        _ => (Mapped::default(), false),
    };
    let is_jvm = match maps_seen {
        true => mapped.libjvm.is_some() || mapped.openj9,
        false => looks_like_java(pid, &comm),
    };
    if !is_jvm {
        return Err(Error::NotAJvm { pid, comm });
    }
    let command_line = if close { command_line(pid) } else { Vec::new() };
    let ours = status.uid == rustix::process::geteuid().as_raw() && status.pid_levels == 1;
    let file_system = close.then(|| JvmFiles::open(pid, ours).ok()).flatten();
    let perf = file_system
        .as_ref()
        .and_then(|file_system| perf_data(file_system, &status, &mapped, maps_seen));
    let perf = perf.unwrap_or_default();

    let files = Files::of(file_system.as_ref());
    let read = |name: &str| files.read(name);
    let launch = cmdline::understand(&command_line, is_java(&command_line), &read);
    let settings = if close { settings(pid, &launch, &perf, &read) } else { Settings::default() };
    let java_home = mapped.libjvm.as_deref().and_then(home_of);
    let java_version = perf.java_version.clone().or_else(|| {
        let release = java_home.as_ref()?.join("release");
        version_in_release(&file_system.as_ref()?.read(&release, 64 << 10).ok()?)
    });
    let uptime = uptime(stat.start);
    let same_mount_ns = procfs::same_namespace(pid, "mnt").unwrap_or(status.pid_levels == 1)
        && file_system.as_ref().is_none_or(JvmFiles::is_ours);
    let in_container = !same_mount_ns
        || status.pid_levels > 1
        || procfs::same_namespace(pid, "user") == Some(false);
    let main = perf.command.as_deref().and_then(|command| main_of(command, &launch));
    let mut jvm = Jvm {
        pid,
        ns_pid: status.ns_pid,
        uid: status.uid,
        gid: status.gid,
        user: users.name(status.uid),
        vm: match (mapped.openj9, maps_seen) {
            (true, _) => VmKind::OpenJ9,
            (false, true) => VmKind::HotSpot { name: perf.vm_name },
            (false, false) => VmKind::Unknown,
        },
        java_version,
        java_home,
        main: main.or(launch.main).map(|main| cmdline::short(&main)),
        comm,
        command_line: mask_secrets(&command_line),
        started: SystemTime::now().checked_sub(uptime).unwrap_or(SystemTime::UNIX_EPOCH),
        uptime,
        same_mount_ns,
        in_container,
        musl: mapped.musl,
        details: maps_seen && file_system.is_some(),
        tare_agents: Vec::new(),
        start_ticks: stat.start,
        settings,
        mapped,
    };
    jvm.tare_agents = crate::control::seen(&jvm, file_system.as_ref());
    // All of this took several reads; if the pid changed hands between them, none of it holds.
    if jvm.is_same_process() { Ok(jvm) } else { Err(Error::NoSuchProcess { pid }) }
}

/// Without the right to see its maps, a process is told by its name or by the names of the
/// threads that every HotSpot JVM has.
fn looks_like_java(pid: u32, comm: &str) -> bool {
    if comm == "java" {
        return true;
    }
    let threads = procfs::thread_names(pid);
    ["VM Thread", "Signal Dispatch"].iter().all(|name| threads.iter().any(|t| t == name))
}

/// The performance data of the JVM. A file can be left over from an earlier process with the
/// same pid; the JVM maps its own.
fn perf_data(
    file_system: &JvmFiles,
    status: &Status,
    mapped: &Mapped,
    maps_seen: bool,
) -> Option<PerfData> {
    const LARGEST: u64 = 4 << 20;
    let read = |path: &Path| {
        let owner = file_system.stat(path).ok()?.st_uid;
        if owner != status.uid {
            return None;
        }
        perfdata::parse(&file_system.read(path, LARGEST).ok()?)
    };
    if maps_seen {
        return read(Path::new(mapped.perf_data.as_deref()?));
    }
    let tmp = file_system.directory(Path::new("/tmp")).ok()?;
    let names = jvm_files::names(&tmp, 10_000);
    let mut users = names.iter().filter(|name| name.starts_with("hsperfdata_"));
    users.find_map(|user| read(&PathBuf::from(format!("/tmp/{user}/{}", status.ns_pid))))
}

/// Files of options, as the JVM sees them. The JVM's owner names them, as many as fit on a command
/// line: they are read within bounds.
struct Files<'a> {
    file_system: Option<&'a JvmFiles>,
    left: Cell<(u32, u64)>,
}

impl<'a> Files<'a> {
    const MOST: u32 = 100;
    const LARGEST: u64 = 1 << 20;
    const ALL: u64 = 8 << 20;

    fn of(file_system: Option<&'a JvmFiles>) -> Self {
        Files { file_system, left: Cell::new((Self::MOST, Self::ALL)) }
    }

    fn read(&self, name: &str) -> Option<String> {
        let (files, bytes) = self.left.get();
        let files = files.checked_sub(1)?;
        self.left.set((files, bytes));
        let text = self.file_system?.read(Path::new(name), bytes.min(Self::LARGEST)).ok()?;
        self.left.set((files, bytes.saturating_sub(text.len() as u64)));
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The settings from every place where a JVM finds its options, in the order in which they win.
fn settings(
    pid: u32,
    launch: &cmdline::Launch,
    perf: &PerfData,
    read: cmdline::ReadFile<'_>,
) -> Settings {
    let environment = procfs::parse_strings(&procfs::read(pid, "environ").unwrap_or_default());
    let variable = |name: &str| {
        let value = environment.iter().find_map(|v| v.strip_prefix(name)?.strip_prefix('='));
        cmdline::tokens(value.unwrap_or_default(), false)
    };
    let split = |text: &Option<String>| cmdline::tokens(text.as_deref().unwrap_or_default(), false);
    let mut settings = Settings::default();
    if let Some(dir) = environment.iter().find_map(|v| v.strip_prefix("TMPDIR=")) {
        settings.tmp_dir = Some(dir.to_owned());
    }
    settings.home = environment.iter().find_map(|v| v.strip_prefix("HOME=")).map(str::to_owned);
    settings.apply(&split(&perf.vm_flags), read);
    settings.apply(&variable("JAVA_TOOL_OPTIONS"), read);
    settings.apply(&cmdline::opened(&variable("JDK_JAVA_OPTIONS"), read), read);
    settings.apply(&launch.vm_args, read);
    settings.apply(&variable("_JAVA_OPTIONS"), read);
    // What the JVM itself took wins, unless its text was cut off.
    if perf.vm_args.as_ref().is_some_and(|args| args.len() < perfdata::CUT - 1) {
        settings.apply(&split(&perf.vm_args), read);
    }
    settings
}

/// The first word of the JVM's own record of its command, unless that cuts a path with a space
/// that the command line shows whole.
fn main_of(command: &str, launch: &cmdline::Launch) -> Option<String> {
    if let Some(main) = launch.main.as_ref().filter(|main| command.starts_with(main.as_str())) {
        return Some(main.clone());
    }
    command.split(' ').next().filter(|word| !word.is_empty()).map(str::to_owned)
}

/// The JDK's directory, from the path of its libjvm.so: `HOME/lib/server/libjvm.so`, and in JDK 8
/// `HOME/jre/lib/amd64/server/libjvm.so`.
fn home_of(libjvm: &str) -> Option<PathBuf> {
    let mut home = Path::new(libjvm).parent()?.parent()?;
    if home.file_name()? != "lib" {
        home = home.parent()?;
    }
    let home = home.parent()?;
    Some(if home.file_name()? == "jre" { home.parent()? } else { home }.to_owned())
}

fn version_in_release(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let value = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(value.trim().trim_matches('"').to_owned()).filter(|version| !version.is_empty())
}

/// How long ago a process started, from the ticks between boot and its start.
pub(crate) fn uptime(start: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let since_boot = procfs::read_bounded("/proc/uptime", 64).ok().and_then(|bytes| {
        std::str::from_utf8(&bytes).ok()?.split_ascii_whitespace().next()?.parse::<f64>().ok()
    });
    let age = since_boot.unwrap_or(0.0) - start as f64 / per_second as f64;
    Duration::try_from_secs_f64(age).unwrap_or_default()
}

/// Names of users by `/etc/passwd`. Users known only to a directory service have none here.
struct Users(Vec<(u32, String)>);

impl Users {
    fn read() -> Self {
        let bytes = procfs::read_bounded("/etc/passwd", 16 << 20).unwrap_or_default();
        Self(parse_passwd(&String::from_utf8_lossy(&bytes)))
    }

    fn name(&self, uid: u32) -> Option<String> {
        self.0.iter().find(|(id, _)| *id == uid).map(|(_, name)| name.clone())
    }
}

fn parse_passwd(text: &str) -> Vec<(u32, String)> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect;

    #[test]
    fn the_home_is_found_from_the_library() {
        let home = |path| home_of(path).map(|home| home.display().to_string());
        assert_eq!(home("/opt/jdk/lib/server/libjvm.so").as_deref(), Some("/opt/jdk"));
        let old = home("/opt/jdk8/jre/lib/amd64/server/libjvm.so");
        assert_eq!(old.as_deref(), Some("/opt/jdk8"));
        assert_eq!(home("libjvm.so"), None);
        assert_eq!(home("/libjvm.so"), None);
    }

    #[test]
    fn small_files_are_read() {
        let release = b"IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"21.0.8\"\n";
        assert_eq!(version_in_release(release).as_deref(), Some("21.0.8"));
        assert_eq!(version_in_release(&[0xff; 9]), None);
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nme:x:1000:1000::/:\n";
        assert_eq!(parse_passwd(passwd), [(0, "root".into()), (1000, "me".into())]);
    }

    #[test]
    fn this_test_is_no_jvm() {
        let pid = std::process::id();
        assert!(matches!(inspect(pid), Err(Error::NotAJvm { pid: p, .. }) if p == pid));
        assert!(matches!(inspect(u32::MAX), Err(Error::NoSuchProcess { .. })));
    }
}
