//! Finds JVMs and describes them, from /proc and the files that HotSpot leaves.
//!
//! A process is a JVM when the code of libjvm.so is mapped into it, whatever started it. Nothing
//! here talks to a JVM or sends it a signal.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::cmdline::{self, Settings};
use crate::error::{Candidate, Error};
use crate::perfdata::{self, PerfData};
use crate::procfs::{self, Mapped, Stat, Status};
use crate::rights;
use crate::secrets::mask_secrets;
use crate::view::{self, View};
use crate::worker::Worker;

/// The make of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VmKind {
    /// With its full name when the JVM tells it, as in `OpenJDK 64-Bit Server VM`.
    HotSpot {
        name: Option<String>,
    },
    OpenJ9,
    /// It looks like a JVM, but we may not look closer.
    Unknown,
}

/// A trace of our agent in a JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentSeen {
    /// The library is mapped. It stays mapped after a detach, so it need not be at work.
    Library { build: String, path: String },
    /// A control socket exists: the agent is at work. The path is in the JVM's own root.
    Control { path: PathBuf },
}

/// A running JVM, as far as we may look.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Jvm {
    /// The pid here.
    pub pid: u32,
    /// The pid that the JVM takes for its own, in the innermost pid namespace.
    pub ns_pid: u32,
    /// Effective user and group, as numbered here.
    pub uid: u32,
    pub gid: u32,
    /// The user's name by our `/etc/passwd`.
    pub user: Option<String>,
    pub vm: VmKind,
    /// As in `17.0.21`.
    pub java_version: Option<String>,
    /// In the JVM's own root.
    pub java_home: Option<PathBuf>,
    /// Main class or file name of the jar.
    pub main: Option<String>,
    /// The kernel's name of the process.
    pub comm: String,
    /// Without the values of what is called a password or the like.
    pub command_line: Vec<String>,
    pub started: SystemTime,
    pub uptime: Duration,
    /// Whether the JVM sees our mounts under our root.
    pub same_mount_ns: bool,
    /// Whether the JVM lives in another mount, pid or user namespace, or under another root.
    pub in_container: bool,
    /// Whether it was linked with musl libc, for which there is no agent.
    pub musl: bool,
    /// False when we may not see the process's maps or files, as for a process of another user:
    /// then most fields are guesses from the command line.
    pub details: bool,
    pub tare_agents: Vec<AgentSeen>,
    /// With the pid, the identity of the process.
    pub(crate) start_ticks: u64,
    pub(crate) settings: Settings,
    pub(crate) mapped: Mapped,
}

impl Jvm {
    /// The main class or jar, or failing that the program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.main.as_deref().unwrap_or(&self.comm)
    }

    /// The JDK's feature release: 8, 17, 25.
    #[must_use]
    pub fn feature(&self) -> Option<u32> {
        let version = self.java_version.as_deref()?;
        let mut parts = version.split(|c: char| !c.is_ascii_digit());
        match parts.next()?.parse().ok()? {
            1 => parts.next()?.parse().ok(),
            feature => Some(feature),
        }
    }

    /// Whether an agent of ours is at work: its control socket exists.
    #[must_use]
    pub fn has_agent(&self) -> bool {
        self.tare_agents.iter().any(|seen| matches!(seen, AgentSeen::Control { .. }))
    }

    /// Whether a filter (seccomp) decides which system calls a thread of it may make.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        procfs::has_filter(self.pid)
    }

    /// The user for messages: the name, or the number.
    #[must_use]
    pub fn user_name(&self) -> String {
        self.user.clone().unwrap_or_else(|| format!("user {}", self.uid))
    }

    /// Whether the process with our pid is still the one that was inspected.
    pub(crate) fn is_same_process(&self) -> bool {
        Stat::of(self.pid).is_ok_and(|stat| stat.start == self.start_ticks)
    }

    /// Opens the JVM's file system. A JVM that hides its root from its own user (one started
    /// with file capabilities) is taken to share ours, unless its pid says otherwise.
    pub(crate) fn view(&self) -> Result<View, Error> {
        let ours = self.uid == rustix::process::geteuid().as_raw() && self.pid == self.ns_pid;
        let opened = View::open(self.pid, ours).or_else(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                let open = || View::open(self.pid, false);
                rights::as_user(self.uid, self.gid, open).unwrap_or(Err(error))
            }
            _ => Err(error),
        });
        opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => Error::NotPermitted {
                pid: self.pid,
                user: self.user_name(),
                what: "look into its file system",
            },
            _ if !self.is_same_process() => Error::Gone { pid: self.pid },
            _ => Error::Io { doing: format!("open the root of process {}", self.pid), error },
        })
    }
}

/// Every JVM that we can see, by pid; those of other users as far as /proc tells.
#[must_use]
pub fn list() -> Vec<Jvm> {
    let mut examiner = Examiner::new();
    let mut jvms: Vec<Jvm> =
        procfs::pids().into_iter().filter_map(|pid| examiner.examine(pid).ok()).collect();
    // A JVM that starts a program is two processes for a moment: the second is a copy about to
    // become something else, with a single thread.
    let pids: Vec<u32> = jvms.iter().map(|jvm| jvm.pid).collect();
    jvms.retain(|jvm| {
        Stat::of(jvm.pid).is_ok_and(|stat| stat.threads > 1 || !pids.contains(&stat.parent))
    });
    jvms.sort_by_key(|jvm| jvm.pid);
    examiner.remove_stale(&jvms);
    jvms
}

/// Describes the JVM with this pid. A `java` that was started a moment ago becomes a JVM when it
/// has loaded its library; that is waited for, a second or two at most.
pub fn inspect(pid: u32) -> Result<Jvm, Error> {
    const SOON: Duration = Duration::from_secs(2);
    let mut examiner = Examiner::new();
    loop {
        let result = examiner.examine(pid);
        let young = |stat: Stat| uptime(stat.start) < SOON && is_java(&command_line(pid));
        match result {
            Err(Error::NotAJvm { .. }) if Stat::of(pid).is_ok_and(young) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn command_line(pid: u32) -> Vec<String> {
    procfs::parse_strings(&procfs::read(pid, "cmdline").unwrap_or_default())
}

/// Whether this is the command line of the `java` launcher.
fn is_java(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| program.rsplit('/').next() == Some("java"))
}

/// Finds one JVM by its pid or by a part of its main class or jar that fits no other; case does
/// not matter, and a whole name wins over a part.
pub fn find(who: &str) -> Result<Jvm, Error> {
    if let Ok(pid) = who.parse() {
        return inspect(pid);
    }
    let jvms = list();
    let names: Vec<(u32, &str)> = jvms.iter().map(|jvm| (jvm.pid, jvm.name())).collect();
    let pid = choose(who, &names)?;
    jvms.into_iter().find(|jvm| jvm.pid == pid).ok_or(Error::Gone { pid })
}

fn choose(who: &str, names: &[(u32, &str)]) -> Result<u32, Error> {
    let wanted = who.to_lowercase();
    let whole = |name: &str| {
        let name = name.to_lowercase();
        name == wanted
            || name.rsplit('.').next() == Some(&wanted)
            || name.strip_suffix(".jar") == Some(&wanted)
    };
    let pick = |fits: &dyn Fn(&str) -> bool| -> Vec<(u32, &str)> {
        names.iter().copied().filter(|(_, name)| fits(name)).collect()
    };
    let mut found = pick(&whole);
    if found.is_empty() && !wanted.is_empty() {
        found = pick(&|name| name.to_lowercase().contains(&wanted));
    }
    match found.as_slice() {
        [] => Err(Error::NoMatch { who: who.to_owned(), running: names.len() }),
        [(pid, _)] => Ok(*pid),
        several => Err(Error::Ambiguous {
            who: who.to_owned(),
            candidates: several
                .iter()
                .map(|&(pid, name)| Candidate { pid, name: name.to_owned() })
                .collect(),
        }),
    }
}

/// Looks at processes on a thread that can be left behind: what a process's owner chose, say a
/// directory on a file system that does not answer, must not keep us from all the others.
struct Examiner {
    users: Arc<Users>,
    worker: Worker,
    patience: Duration,
}

impl Examiner {
    /// Far longer than it takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// Once a process has used that up, others get less.
    const NO_PATIENCE: Duration = Duration::from_secs(1);

    fn new() -> Self {
        Examiner {
            users: Arc::new(Users::read()),
            worker: Worker::default(),
            patience: Self::PATIENCE,
        }
    }

    /// A process that does not let itself be looked at in time is described by its name only.
    fn examine(&mut self, pid: u32) -> Result<Jvm, Error> {
        let users = Arc::clone(&self.users);
        if let Some(found) = self.worker.wait(self.patience, move || examine(pid, &users)) {
            return found;
        }
        self.patience = Self::NO_PATIENCE;
        examine_here(pid, &self.users, Look::Name)
    }

    fn remove_stale(&mut self, jvms: &[Jvm]) {
        let jvms = jvms.to_owned();
        self.worker.wait(self.patience, move || crate::control::remove_stale(&jvms));
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
    let view = close.then(|| View::open(pid, ours).ok()).flatten();
    let perf = view.as_ref().and_then(|view| perf_data(view, &status, &mapped, maps_seen));
    let perf = perf.unwrap_or_default();

    let files = Files::of(view.as_ref());
    let read = |name: &str| files.read(name);
    let launch = cmdline::understand(&command_line, is_java(&command_line), &read);
    let settings = if close { settings(pid, &launch, &perf, &read) } else { Settings::default() };
    let java_home = mapped.libjvm.as_deref().and_then(home_of);
    let java_version = perf.java_version.clone().or_else(|| {
        let release = java_home.as_ref()?.join("release");
        version_in_release(&view.as_ref()?.read(&release, 64 << 10).ok()?)
    });
    let uptime = uptime(stat.start);
    let same_mount_ns = procfs::same_namespace(pid, "mnt").unwrap_or(status.pid_levels == 1)
        && view.as_ref().is_none_or(View::is_ours);
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
        details: maps_seen && view.is_some(),
        tare_agents: Vec::new(),
        start_ticks: stat.start,
        settings,
        mapped,
    };
    jvm.tare_agents = crate::control::seen(&jvm, view.as_ref());
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
fn perf_data(view: &View, status: &Status, mapped: &Mapped, maps_seen: bool) -> Option<PerfData> {
    const LARGEST: u64 = 4 << 20;
    let read = |path: &Path| {
        let owner = view.stat(path).ok()?.st_uid;
        if owner != status.uid {
            return None;
        }
        perfdata::parse(&view.read(path, LARGEST).ok()?)
    };
    if maps_seen {
        return read(Path::new(mapped.perf_data.as_deref()?));
    }
    let tmp = view.directory(Path::new("/tmp")).ok()?;
    let names = view::names(&tmp, 10_000);
    let mut users = names.iter().filter(|name| name.starts_with("hsperfdata_"));
    users.find_map(|user| read(&PathBuf::from(format!("/tmp/{user}/{}", status.ns_pid))))
}

/// Files of options, as the JVM sees them. The JVM's owner names them, as many as fit on a command
/// line: they are read within bounds.
struct Files<'a> {
    view: Option<&'a View>,
    left: Cell<(u32, u64)>,
}

impl<'a> Files<'a> {
    const MOST: u32 = 100;
    const LARGEST: u64 = 1 << 20;
    const ALL: u64 = 8 << 20;

    fn of(view: Option<&'a View>) -> Self {
        Files { view, left: Cell::new((Self::MOST, Self::ALL)) }
    }

    fn read(&self, name: &str) -> Option<String> {
        let (files, bytes) = self.left.get();
        let files = files.checked_sub(1)?;
        self.left.set((files, bytes));
        let text = self.view?.read(Path::new(name), bytes.min(Self::LARGEST)).ok()?;
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

    #[test]
    fn a_whole_name_wins_over_a_part() {
        let names = [(1, "com.acme.Orders"), (2, "com.acme.OrdersAdmin"), (3, "shop.jar")];
        assert_eq!(choose("orders", &names).unwrap(), 1);
        assert_eq!(choose("Admin", &names).unwrap(), 2);
        assert_eq!(choose("SHOP", &names).unwrap(), 3);
        assert!(matches!(choose("acme", &names), Err(Error::Ambiguous { candidates, .. })
            if candidates.len() == 2));
        assert!(matches!(choose("nope", &names), Err(Error::NoMatch { running: 3, .. })));
        assert!(matches!(choose("", &names), Err(Error::NoMatch { .. })));
    }

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
