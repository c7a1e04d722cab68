//! Finds our agents' control sockets, connects to them, and clears away those of dead JVMs.
//!
//! A socket is believed only when its directory belongs to the JVM's user alone and the kernel
//! names the JVM as the process at the other end. What is said over it is left to the callers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use tare_protocol::{CHECK_PREFIX, CONTROL_SOCKET, parse_control_dir, socket_in};

use crate::error::{Error, Step};
use crate::jvm::{AgentSeen, Jvm};
use crate::jvm_files::{self, JvmFiles};
use crate::left_behind;
use crate::procfs::{self, DELETED};
use crate::rights::{as_jvm_user, peer_is};
use crate::{load, procfs::build_of};

/// A connection to an agent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Control {
    /// Connected, blocking, and verified to lead to the JVM.
    pub stream: UnixStream,
    /// The socket's path in the JVM's own root.
    pub path: PathBuf,
}

/// A directory holds few entries of ours; others may hold very many of theirs.
const MOST_NAMES: usize = 100_000;

/// A younger directory may belong to an agent that has not opened its socket yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Connects to every agent of ours in this JVM; an empty list means that none is at work.
pub fn connect(jvm: &Jvm, timeout: Duration) -> Result<Vec<Control>, Error> {
    let theirs = jvm.clone();
    let connect = move |_: &mut dyn FnMut(Step)| connect_here(&theirs, timeout);
    left_behind::in_directories(jvm.pid, timeout, &mut |_| {}, connect)
}

fn connect_here(jvm: &Jvm, timeout: Duration) -> Result<Vec<Control>, Error> {
    let deadline = Instant::now() + timeout;
    let files = jvm.files()?;
    let paths = control_paths(jvm, &files);
    if paths.is_empty() {
        return match jvm.is_same_process() {
            true => Ok(Vec::new()),
            false => Err(Error::Gone { pid: jvm.pid }),
        };
    }
    let mut as_user = as_jvm_user(jvm, false)?;
    let mut controls = Vec::new();
    for path in paths {
        let Some(dir) = open_control_dir(&files, &path, jvm.uid) else { continue };
        let socket = loop {
            match as_user.connect(dir.as_fd(), CONTROL_SOCKET) {
                Ok(socket) => break Some(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        let state = procfs::Stat::of(jvm.pid).ok().map(|stat| stat.state);
                        let step = Step::Connecting;
                        return Err(Error::TimedOut { pid: jvm.pid, after: timeout, step, state });
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Error::NotPermitted {
                        pid: jvm.pid,
                        user: jvm.user_name(),
                        what: "connect to the agent in it",
                    });
                }
                // Gone between finding and connecting, or left by a JVM that was killed.
                Err(_) => break None,
            }
        };
        if let Some(socket) = socket.filter(|socket| peer_is(socket, jvm.pid)) {
            let stream = UnixStream::from(socket);
            stream.set_nonblocking(false).map_err(Error::io("prepare the control connection"))?;
            controls.push(Control { stream, path });
        }
    }
    Ok(controls)
}

/// The traces of our agents in a JVM.
pub(crate) fn seen(jvm: &Jvm, files: Option<&JvmFiles>) -> Vec<AgentSeen> {
    let mut seen: Vec<AgentSeen> = Vec::new();
    for path in &jvm.mapped.agents {
        let live = path.strip_suffix(DELETED).unwrap_or(path);
        let name = live.rsplit('/').next().unwrap_or(live);
        let Some(build) = procfs::build_of(name) else { continue };
        seen.push(AgentSeen::Library { build: build.to_owned(), path: path.clone() });
    }
    if let Some(files) = files {
        let controls = control_paths(jvm, files).into_iter();
        let controls = controls.filter(|path| open_control_dir(files, path, jvm.uid).is_some());
        seen.extend(controls.map(|path| AgentSeen::Control { path }));
    }
    seen
}

/// Where control sockets of this JVM may be: those that the kernel lists, and those that lie in
/// its temporary directories (a socket bound by way of a short name has no useful one in the
/// kernel's list).
fn control_paths(jvm: &Jvm, files: &JvmFiles) -> Vec<PathBuf> {
    let listed = procfs::parse_net_unix(&procfs::read(jvm.pid, "net/unix").unwrap_or_default());
    let mut paths: Vec<PathBuf> = listed
        .into_iter()
        .map(PathBuf::from)
        .filter(|path| path.file_name().is_some_and(|name| name == CONTROL_SOCKET))
        .filter(|path| path.parent().is_some_and(|dir| names_pid(dir, jvm.ns_pid)))
        .collect();
    let mut temporary = vec![PathBuf::from("/tmp")];
    temporary.extend(jvm.settings.tmp_dir.clone().map(PathBuf::from));
    for directory in temporary.iter().filter(|directory| directory.is_absolute()) {
        let Ok(dir) = files.directory(directory) else { continue };
        for name in jvm_files::names(&dir, MOST_NAMES) {
            let path = directory.join(&name).join(CONTROL_SOCKET);
            if parse_control_dir(&name) == Some(jvm.ns_pid) && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn names_pid(directory: &Path, ns_pid: u32) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    name.and_then(parse_control_dir) == Some(ns_pid)
}

/// The directory of a control socket, when it belongs to `uid` and to nobody else.
fn open_control_dir(files: &JvmFiles, socket: &Path, uid: u32) -> Option<OwnedFd> {
    let directory = socket.parent()?;
    let above = files.directory(directory.parent()?).ok()?;
    let dir = open_entry(&above, directory.file_name()?.to_str()?)?;
    let is = rustix::fs::fstat(&dir).ok()?;
    let theirs = is.st_uid == uid && is.st_mode & 0o077 == 0;
    (theirs && jvm_files::entry(&dir, CONTROL_SOCKET).is_ok()).then_some(dir)
}

fn open_entry(above: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty()).ok()
}

/// Removes what JVMs and tools left when they were killed, from the directories that we share with
/// them: directories with a socket of ours, folders of an attach, and recordings of a `tare check`.
/// The pid in a name is no proof, since containers number theirs on their own and may share a
/// directory; that nobody listens at the socket, or holds the lock, is one.
pub(crate) fn remove_stale(alive: &[Jvm]) {
    let from_env =
        ["XDG_RUNTIME_DIR", "TMPDIR"].map(|key| std::env::var_os(key).map(PathBuf::from));
    let mut bases: Vec<PathBuf> = SHARED.map(PathBuf::from).into();
    for base in from_env.into_iter().flatten() {
        if base.is_absolute() && !bases.contains(&base) {
            bases.push(base);
        }
    }
    bases.iter().for_each(|base| remove_stale_in(base, alive, since_1970()));
}

/// The same in a container of a JVM that we enter.
pub(crate) fn remove_stale_inside(files: &JvmFiles, jvm: &Jvm) {
    for base in SHARED {
        if let Ok(dir) = files.directory(Path::new(base)) {
            remove_stale_at(&dir, std::slice::from_ref(jvm), since_1970());
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Where agents put their sockets, in this order, and where everybody may.
const SHARED: [&str; 4] = ["/tmp", "/dev/shm", "/var/tmp", "/run"];

fn remove_stale_in(base: &Path, alive: &[Jvm], now: Duration) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(tmp) = rustix::fs::openat(rustix::fs::CWD, base, flags, Mode::empty()) {
        remove_stale_at(&tmp, alive, now);
    }
}

/// What a directory of ours is for, by its name.
enum Made {
    /// A socket of this name lies in it.
    Socket(&'static str),
    /// The agent's library lies in it until it is loaded.
    Library,
    /// Recordings of a `tare check` lie in it.
    Check,
}

impl Made {
    fn of(name: &str) -> Option<Made> {
        let check =
            || name.strip_prefix(CHECK_PREFIX).is_some_and(|pid| pid.parse::<u32>().is_ok());
        match socket_in(name) {
            Some(socket) => Some(Made::Socket(socket)),
            None if load::is_folder_name(name) => Some(Made::Library),
            None => check().then_some(Made::Check),
        }
    }
}

fn remove_stale_at(tmp: &OwnedFd, alive: &[Jvm], now: Duration) {
    let us = rustix::process::geteuid().as_raw();
    for name in jvm_files::names(tmp, MOST_NAMES) {
        let Some(made) = Made::of(&name) else { continue };
        if parse_control_dir(&name).is_some_and(|pid| alive.iter().any(|jvm| jvm.ns_pid == pid)) {
            continue;
        }
        let Some(dir) = open_entry(tmp, &name) else { continue };
        let Ok(is) = rustix::fs::fstat(&dir) else { continue };
        let old = u64::try_from(is.st_mtime)
            .is_ok_and(|then| now.saturating_sub(Duration::from_secs(then)) > YOUNG);
        if !old || (is.st_uid != us && us != 0) || is.st_mode & 0o077 != 0 {
            continue;
        }
        let emptied = match made {
            Made::Socket(socket) if is_dead(&dir, socket) => {
                let _ = rustix::fs::unlinkat(&dir, socket, AtFlags::empty());
                true
            }
            Made::Socket(_) => false,
            Made::Library => remove_unlocked(&dir, |file| build_of(file).is_some()),
            Made::Check => remove_unlocked(&dir, |file| file.contains(".tare")),
        };
        if emptied {
            // Fails when anything else is in it, which is right.
            let _ = rustix::fs::unlinkat(tmp, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// Removes files of ours from a directory that its maker has locked for as long as they are needed.
/// Whether it was not.
fn remove_unlocked(dir: &OwnedFd, is_ours: impl Fn(&str) -> bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::openat(dir, ".", flags, Mode::empty()) else { return false };
    if rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    for file in jvm_files::names(dir, MOST_NAMES).iter().filter(|file| is_ours(file)) {
        let _ = rustix::fs::unlinkat(dir, file.as_str(), AtFlags::empty());
    }
    true
}

/// Whether nobody listens at the socket in this directory.
fn is_dead(dir: &OwnedFd, socket: &str) -> bool {
    let path = jvm_files::short_path(dir.as_fd(), socket);
    match jvm_files::entry(dir, socket) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(_) => crate::as_jvm_user::connect_now(&path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_name_their_pid() {
        assert!(names_pid(Path::new("/tmp/.tare-7-0000beef"), 7));
        assert!(!names_pid(Path::new("/tmp/.tare-7-0000beef"), 8));
        assert!(!names_pid(Path::new("/"), 7));
    }

    #[test]
    fn a_socket_without_listener_is_dead() {
        let path = std::env::temp_dir().join(format!("tare-dead-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let dir = OwnedFd::from(std::fs::File::open(&path).unwrap());
        assert!(is_dead(&dir, CONTROL_SOCKET));
        let listener = std::os::unix::net::UnixListener::bind(path.join(CONTROL_SOCKET)).unwrap();
        assert!(!is_dead(&dir, CONTROL_SOCKET));
        drop(listener);
        assert!(is_dead(&dir, CONTROL_SOCKET));
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn only_what_is_dead_old_and_ours_is_swept() {
        use std::fs;
        use std::os::unix::fs::{PermissionsExt, symlink};
        use std::os::unix::net::UnixListener;
        use tare_protocol::{COMMAND_SOCKET, command_dir_name, control_dir_name};

        let base = std::env::temp_dir().join(format!("tare-sweep-{}", std::process::id()));
        let make = |name: &str, mode: u32, socket: Option<&str>| {
            let dir = base.join(name);
            fs::create_dir_all(&dir).unwrap();
            let listener = socket.map(|socket| UnixListener::bind(dir.join(socket)).unwrap());
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            (dir, listener)
        };
        let dead = make(&control_dir_name(7, 1), 0o700, Some(CONTROL_SOCKET)).0;
        let commands = make(&command_dir_name(7, 2), 0o700, Some(COMMAND_SOCKET)).0;
        let empty = make(&control_dir_name(8, 3), 0o700, None).0;
        let (live, _listener) = make(&control_dir_name(7, 4), 0o700, Some(CONTROL_SOCKET));
        let open = make(&control_dir_name(7, 5), 0o755, Some(CONTROL_SOCKET)).0;
        let full = make(&control_dir_name(7, 6), 0o700, None).0;
        fs::write(full.join("something"), "").unwrap();
        // An attach and a `tare check` hold a lock for as long as they live.
        let lib = make(".tare-lib-7-00000007", 0o700, None).0;
        fs::write(lib.join(tare_protocol::library_name("00000007")), "").unwrap();
        let loading = make(".tare-lib-7-00000008", 0o700, None).0;
        let held = fs::File::open(&loading).unwrap();
        rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
        let checked = make(".tare-check-7", 0o700, None).0;
        fs::write(checked.join("run.tare"), "").unwrap();
        let checking = make(".tare-check-8", 0o700, None).0;
        let held_too = fs::File::open(&checking).unwrap();
        rustix::fs::flock(&held_too, FlockOperation::LockShared).unwrap();
        let other = make(".tare-check-x", 0o700, None).0;
        let behind = make("elsewhere", 0o700, Some(CONTROL_SOCKET)).0;
        let link = base.join(control_dir_name(7, 8));
        symlink(&behind, &link).unwrap();

        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        remove_stale_in(&base, &[], now);
        assert!(dead.exists() && commands.exists(), "too young to tell");
        remove_stale_in(&base, &[], now + 2 * YOUNG);
        for gone in [&dead, &commands, &empty, &lib, &checked] {
            assert!(!gone.exists(), "{}", gone.display());
        }
        for left in [&live, &open, &full, &loading, &checking, &other, &behind.join(CONTROL_SOCKET)]
        {
            assert!(left.exists(), "{}", left.display());
        }
        assert!(link.is_symlink());
        fs::remove_dir_all(&base).unwrap();
    }
}
