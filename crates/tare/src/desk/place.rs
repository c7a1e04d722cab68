//! Where the desk of a recording is, and who is believed there.
//!
//! The socket lies in a directory of mode 0700 with an unguessable name. Other than an abstract
//! name, which every process of a network namespace can use or occupy, it is out of reach for other
//! users and for containers. On top of that both sides look at who the other is: the same user or
//! root, in the same namespaces. Root in a container that shares our directories is not root here.

use super::peer::peer;
use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tare_protocol::{DESK_SOCKET, desk_dir_name, parse_desk_dir};

/// What the socket is called until somebody listens: one that has its name, and refuses, is dead.
const UNFINISHED: &str = "new";

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
                Err(e) => last = Some(anyhow::Error::from(e).context(base.display().to_string())),
            }
        }
        Err(last.context("no directory to try")?).context("no place for the socket")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for name in [DESK_SOCKET, UNFINISHED] {
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
    let dir = base.join(desk_dir_name(pid, salt));
    // A directory that exists is an error, so this one is ours.
    fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let place = Place { dir };
    let unfinished = place.dir.join(UNFINISHED);
    let listener = UnixListener::bind(&unfinished)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    fs::rename(&unfinished, place.dir.join(DESK_SOCKET))?;
    Ok((listener, place))
}

/// Connects to the recording of a JVM of this user, if one takes orders and is what it says.
pub fn find(pid: u32, uid: u32) -> Result<Option<UnixStream>> {
    let us = rustix::process::geteuid().as_raw();
    let mut of_root = false;
    for base in bases() {
        let names = fs::read_dir(&base).into_iter().flatten().filter_map(Result::ok);
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        for name in names.filter(|name| parse_desk_dir(name) == Some(pid)) {
            let Some((dir, owner)) = open_private(&base.join(&name)) else { continue };
            // Who else has made such a directory cannot be the recording: only its user, the
            // JVM's and root can get into the JVM.
            if owner != us && owner != 0 && !(us == 0 && owner == uid) {
                continue;
            }
            let path = format!("/proc/self/fd/{}/{DESK_SOCKET}", dir.as_raw_fd());
            match UnixStream::connect(&path) {
                Ok(stream) if is_believed(&stream, owner) => return Ok(Some(stream)),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => of_root |= owner == 0,
                // Left by a recording that was killed.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused && owner == us => {
                    drop(Place { dir: base.join(&name) });
                }
                _ => {}
            }
        }
    }
    if of_root {
        bail!("JVM {pid} is being recorded by root; use `sudo tare`");
    }
    Ok(None)
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

/// Whether the process at the other end may give orders; if not, why.
pub fn may_order(stream: &UnixStream) -> Result<(), &'static str> {
    let (pid, uid) = peer(stream).map_err(|_| "nobody can tell who asks")?;
    if uid != rustix::process::geteuid().as_raw() && uid != 0 {
        return Err("this recording belongs to another user");
    }
    match is_neighbour(pid) {
        true => Ok(()),
        false => Err("this recording belongs to another container; ask from where it was begun"),
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
    fn a_desk_is_private_and_leaves_nothing() {
        let pid = u32::MAX - 2 * std::process::id();
        let (listener, place) = Place::bind(pid).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&place.dir), 0o700);
        assert_eq!(mode(&place.dir.join(DESK_SOCKET)), 0o600);
        let stream = find(pid, us()).unwrap().expect("it is there");
        assert_eq!(peer(&stream).unwrap(), (std::process::id(), us()));
        let (served, _) = listener.accept().unwrap();
        assert_eq!(may_order(&served), Ok(()));
        let dir = place.dir.clone();
        drop((listener, place));
        assert!(!dir.exists());
    }

    #[test]
    fn what_others_can_enter_or_have_left_is_no_desk() {
        let pid = u32::MAX - 3 * std::process::id();
        let (listener, place) = Place::bind(pid).unwrap();
        fs::set_permissions(&place.dir, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find(pid, us()).unwrap().is_none(), "others could have put the socket there");
        fs::set_permissions(&place.dir, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(find(pid, us()).unwrap().is_some());
        // As `kill -9` leaves it.
        drop(listener);
        assert!(find(pid, us()).unwrap().is_none());
        assert!(!place.dir.exists(), "a dead desk is cleared away");
    }
}
