//! Finds JVMs: all of them, by pid, or by name. How one is described, from /proc and the files that
//! HotSpot leaves, is in `examine`.
//!
//! A process is a JVM when the code of libjvm.so is mapped into it, whatever started it. Nothing
//! here talks to a JVM or sends it a signal.

mod examine;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::cmdline::Settings;
use crate::error::{Candidate, Error};
use crate::jvm_files::JvmFiles;
use crate::procfs::{self, Mapped, Stat};
use crate::rights;
use examine::Examiner;
pub(crate) use examine::uptime;

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
    /// Whether it was linked with musl libc.
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
    pub(crate) fn files(&self) -> Result<JvmFiles, Error> {
        let ours = self.uid == rustix::process::geteuid().as_raw() && self.pid == self.ns_pid;
        let opened = JvmFiles::open(self.pid, ours).or_else(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                let open = || JvmFiles::open(self.pid, false);
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
}
