//! Where the command socket of a recording is, and who is believed there.
//!
//! The socket lies in a directory of mode 0700 with an unguessable name. Other than an abstract
//! name, which every process of a network namespace can use or occupy, it is out of reach for other
//! users and for containers. On top of that both sides look at who the other is: the same user or
//! root, in the same namespaces. Root in a container that shares our directories is not root here.

use super::peer::peer;
use crate::error::{Context, Error, Result, refuse};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_protocol::{COMMAND_SOCKET, command_dir_name, parse_command_dir};

/// What the socket is called until somebody listens: one that has its name, and refuses, is dead.
const UNFINISHED: &str = "new";

/// How long a recording whose queue is full is waited for, and how often one looks.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(10);

/// A directory holds few entries of ours; others may hold very many of theirs.
const MOST_NAMES: usize = 100_000;

/// A directory and the socket in it; both vanish with their owner.
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// Listens in the first directory that allows it.
    pub fn bind(pid: u32) -> Result<(UnixListener, Place)> {
        let mut last = None;
        for base in bases() {
            match bind_in(&base, pid) {
                Ok(bound) => return Ok(bound),
                Err(e) => last = Some(Error::from(e).during(base.display().to_string())),
            }
        }
        Err(last.context("no directory to try")?).context("no place for the socket")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for name in [COMMAND_SOCKET, UNFINISHED] {
            let _ = fs::remove_file(self.dir.join(name));
        }
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The same for both sides, whatever their environments: root asks, too.
fn bases() -> [PathBuf; 3] {
    ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from)
}

fn bind_in(base: &Path, pid: u32) -> io::Result<(UnixListener, Place)> {
    let salt = RandomState::new().hash_one(pid) as u32;
    let dir = base.join(command_dir_name(pid, salt));
    // A directory that exists is an error, so this one is ours.
    fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let place = Place { dir };
    let unfinished = place.dir.join(UNFINISHED);
    let listener = UnixListener::bind(&unfinished)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    fs::rename(&unfinished, place.dir.join(COMMAND_SOCKET))?;
    Ok((listener, place))
}

/// A recording that takes commands.
pub struct Found {
    pub stream: UnixStream,
    /// It is of another user, the JVM's: what it says of itself is theirs, and nothing of ours may
    /// come into its hands.
    pub foreign: bool,
}

/// Connects to the recording of a JVM of this user, if one takes commands and is what it says. One
/// of our own goes first: the JVM's user can put as many beside it as they like.
pub fn find(pid: u32, uid: u32) -> Result<Option<Found>> {
    if let Some(stream) = find_own(pid)? {
        return Ok(Some(Found { stream, foreign: false }));
    }
    let us = rustix::process::geteuid().as_raw();
    if us == 0 && uid != 0 {
        let stream = find_of(pid, uid)?;
        return Ok(stream.map(|stream| Found { stream, foreign: true }));
    }
    if us != 0 && sockets(pid, 0).next().is_some() {
        refuse!("root is recording JVM {pid}; use `sudo tare`");
    }
    Ok(None)
}

/// The same among recordings of our own alone.
pub fn find_own(pid: u32) -> Result<Option<UnixStream>> {
    find_of(pid, rustix::process::geteuid().as_raw())
}

fn find_of(pid: u32, owner: u32) -> Result<Option<UnixStream>> {
    let us = rustix::process::geteuid().as_raw();
    // For all of them together: somebody may have made many.
    let limit = Instant::now() + PATIENCE;
    let mut deaf = false;
    for (path, dir) in sockets(pid, owner) {
        let socket = PathBuf::from(format!("/proc/self/fd/{}/{COMMAND_SOCKET}", dir.as_raw_fd()));
        match connect_until(&socket, limit) {
            Ok(stream) if is_believed(&stream, owner) => return Ok(Some(stream)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => deaf = true,
            // Left by a recording that was killed.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused && owner == us => {
                drop(Place { dir: path });
            }
            _ => {}
        }
    }
    if deaf {
        refuse!(
            "the recording of JVM {pid} accepted no command for {} s: its queue is full, or its `tare \
             record` is stopped",
            PATIENCE.as_secs()
        );
    }
    Ok(None)
}

/// The directories of recordings of a JVM that this user has made. Who else has made such a
/// directory cannot be the recording: only its user, the JVM's and root can get into the JVM.
fn sockets(pid: u32, owner: u32) -> impl Iterator<Item = (PathBuf, OwnedFd)> {
    let entries = bases().into_iter().flat_map(|base| {
        let all = fs::read_dir(&base).into_iter().flatten().take(MOST_NAMES).flatten();
        all.map(|entry| entry.path())
    });
    let named = entries.filter(move |path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| parse_command_dir(name) == Some(pid))
    });
    named.filter_map(move |path| {
        let (dir, is_of) = open_private(&path)?;
        (is_of == owner).then_some((path, dir))
    })
}

/// Connects, but waits for room in the queue no longer than until then.
fn connect_until(socket: &Path, limit: Instant) -> io::Result<UnixStream> {
    loop {
        match tare_attach::connect_now(socket) {
            Ok(stream) => {
                let stream = UnixStream::from(stream);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < limit => {
                std::thread::sleep(STEP);
            }
            Err(e) => return Err(e),
        }
    }
}

/// A directory that only its owner may enter, and the owner.
fn open_private(path: &Path) -> Option<(OwnedFd, u32)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let is = rustix::fs::fstat(&dir).ok()?;
    (is.st_mode & 0o077 == 0).then_some((dir, is.st_uid))
}

/// Whether the process that listens belongs to the directory's owner, and is a neighbour.
fn is_believed(stream: &UnixStream, owner: u32) -> bool {
    peer(stream).is_ok_and(|(pid, uid)| uid == owner && is_neighbour(pid))
}

/// Whether the process at the other end may give commands; if not, why.
pub fn may_command(stream: &UnixStream) -> Result<(), &'static str> {
    let (pid, uid) = peer(stream).map_err(|_| "the kernel does not say which process is asking")?;
    if uid != rustix::process::geteuid().as_raw() && uid != 0 {
        return Err("this recording belongs to another user");
    }
    match is_neighbour(pid) {
        true => Ok(()),
        false => Err(
            "this recording belongs to another container; give the command from the container it was started in",
        ),
    }
}

/// Zero is a process outside our numbering.
fn is_neighbour(pid: u32) -> bool {
    pid != 0 && tare_attach::shares_our_namespaces(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_socket_is_private_and_leaves_nothing() {
        let pid = u32::MAX - 2 * std::process::id();
        let (listener, place) = Place::bind(pid).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&place.dir), 0o700);
        assert_eq!(mode(&place.dir.join(COMMAND_SOCKET)), 0o600);
        let found = find(pid, us()).unwrap().expect("it is there");
        assert!(!found.foreign);
        assert_eq!(peer(&found.stream).unwrap(), (std::process::id(), us()));
        let (served, _) = listener.accept().unwrap();
        assert_eq!(may_command(&served), Ok(()));
        let dir = place.dir.clone();
        drop((listener, place));
        assert!(!dir.exists());
    }

    #[test]
    fn what_others_can_enter_or_have_left_is_no_socket() {
        let pid = u32::MAX - 3 * std::process::id();
        let (listener, place) = Place::bind(pid).unwrap();
        fs::set_permissions(&place.dir, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find(pid, us()).unwrap().is_none(), "others could have put the socket there");
        fs::set_permissions(&place.dir, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(find(pid, us()).unwrap().is_some());
        // As `kill -9` leaves it.
        drop(listener);
        assert!(find(pid, us()).unwrap().is_none());
        assert!(!place.dir.exists(), "a dead socket is cleared away");
    }

    /// What another user does, on a thread that has become them; only root can.
    fn as_another<T: Send>(body: impl FnOnce(u32) -> T + Send) -> Option<T> {
        const NOBODY: u32 = 65_534;
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                rustix::thread::set_thread_res_uid(None, nobody, None).ok()?;
                Some(body(NOBODY))
            });
            thread.join().unwrap()
        })
    }

    /// Connections until no more fit into the queue.
    fn crowd(socket: &Path) -> Vec<OwnedFd> {
        let all = std::iter::from_fn(|| tare_attach::connect_now(socket).ok());
        all.take(100_000).collect()
    }

    #[test]
    fn a_socket_whose_queue_is_full_is_not_waited_for_for_ever() {
        let pid = u32::MAX - 4 * std::process::id();
        let (_listener, place) = Place::bind(pid).unwrap();
        let _crowd = crowd(&place.dir.join(COMMAND_SOCKET));
        let refused = find(pid, us()).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|why| why.contains("accepted no command")));
        // The same of the JVM's user, who has time.
        let pid = u32::MAX - 5 * std::process::id();
        let Some((theirs, uid)) = as_another(|uid| (Place::bind(pid).unwrap(), uid)) else {
            return eprintln!("not covered: takes root");
        };
        let _more = crowd(&theirs.1.dir.join(COMMAND_SOCKET));
        assert!(find(pid, uid).is_err());
        assert!(find_own(pid).unwrap().is_none(), "it keeps root from no socket of its own");
    }

    #[test]
    fn our_own_socket_goes_before_those_of_the_jvms_user() {
        let pid = u32::MAX - 6 * std::process::id();
        let many = |uid| ((0..20).map(|_| Place::bind(pid).unwrap()).collect::<Vec<_>>(), uid);
        let Some((theirs, uid)) = as_another(many) else {
            return eprintln!("not covered: takes root");
        };
        let found = find(pid, uid).unwrap().expect("the JVM's user may record it");
        assert!(found.foreign && peer(&found.stream).unwrap().1 == uid);
        assert!(find_own(pid).unwrap().is_none());
        let (_listener, _place) = Place::bind(pid).unwrap();
        let found = find(pid, uid).unwrap().expect("ours is there");
        assert!(!found.foreign);
        assert_eq!(peer(&found.stream).unwrap().1, us());
        drop(theirs);
    }
}
