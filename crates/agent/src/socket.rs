//! The control socket's place in the file system, and who may use it.
//!
//! The socket lies in a directory of mode 0700 with an unguessable name, so that nobody but the
//! JVM's user and root can even reach it in the moment before its own mode is 0600. The
//! credentials of every peer are checked on top.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_protocol::{CONTROL_SOCKET, control_dir_name};

/// `sun_path` holds 108 bytes with the final NUL.
const MAX_PATH: usize = 107;

/// A bound socket and the directory made for it; both vanish with [`Place::remove`].
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// Binds in the first directory that allows it: `/tmp`, as HotSpot does, else wherever a
    /// read-only system usually still lets one write.
    pub fn bind() -> io::Result<(UnixListener, Place)> {
        let mut last = io::Error::other("no directory to try");
        for base in candidates() {
            match bind_in(&base) {
                Ok(bound) => return Ok(bound),
                Err(e) => last = io::Error::new(e.kind(), format!("{}: {e}", base.display())),
            }
        }
        Err(last)
    }

    /// Removes socket and directory. Safe to call twice and at any time.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(self.dir.join(CONTROL_SOCKET));
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn candidates() -> Vec<PathBuf> {
    let from_env = |key| std::env::var_os(key).filter(|v: &OsString| !v.is_empty());
    let mut out = vec![PathBuf::from("/tmp")];
    out.extend(["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(from_env).map(PathBuf::from));
    out.extend(["/dev/shm", "/var/tmp", "/run"].map(PathBuf::from));
    out.retain(|path| path.is_absolute());
    out
}

fn bind_in(base: &Path) -> io::Result<(UnixListener, Place)> {
    let dir = base.join(control_dir_name(std::process::id(), salt()?));
    let path = dir.join(CONTROL_SOCKET);
    if path.as_os_str().len() > MAX_PATH {
        return Err(io::Error::other("the path is too long for a socket"));
    }
    let c_dir = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: a NUL-terminated path that lives across the call. A directory that exists is an
    // error, so what we go on with was made by us just now.
    if unsafe { libc::mkdir(c_dir.as_ptr(), 0o700) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let place = Place { dir };
    let bound = (|| {
        chmod(&c_dir, 0o700)?;
        let listener = UnixListener::bind(&path)?;
        chmod(&CString::new(path.as_os_str().as_bytes())?, 0o600)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    })();
    match bound {
        Ok(listener) => Ok((listener, place)),
        Err(e) => {
            place.remove();
            Err(e)
        }
    }
}

/// The program's umask may be anything; the modes are set, not hoped for.
fn chmod(path: &CString, mode: libc::mode_t) -> io::Result<()> {
    // SAFETY: a NUL-terminated path that lives across the call.
    if unsafe { libc::chmod(path.as_ptr(), mode) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn salt() -> io::Result<u32> {
    let mut bytes = [0_u8; 4];
    // SAFETY: fills the four bytes of a local.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 4 { Ok(u32::from_ne_bytes(bytes)) } else { Err(io::Error::last_os_error()) }
}

/// Whether the process at the other end runs as this JVM's user or as root, and in no container of
/// its own: root of a container that shares our directories is the kernel's root too.
///
/// Who is outside our pid namespace has no number here. That may be the machine's root, who enters
/// containers, or another container that shares our directory: the two cannot be told apart from
/// within, so both are let in. Outside the first namespace there is nobody.
pub fn peer_allowed(stream: &UnixStream) -> bool {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the out-pointers refer to locals of the size given.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    // SAFETY: no preconditions.
    let us = unsafe { libc::geteuid() };
    code == 0
        && (credentials.uid == 0 || credentials.uid == us)
        && !is_elsewhere(u32::try_from(credentials.pid).unwrap_or(0))
}

/// Whether a process is known to live in a container that we are not in. Where `/proc` does not
/// tell (none is mounted, it is another namespace's, or it hides processes of others), the user
/// decides.
fn is_elsewhere(pid: u32) -> bool {
    /// The number of the first pid namespace, the same on every machine.
    const FIRST: &str = "pid:[4026531836]";
    if pid == 0 {
        return std::fs::read_link("/proc/self/ns/pid").is_ok_and(|ours| ours == Path::new(FIRST));
    }
    let levels = |process: &str| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        pid_levels(&status)
    };
    levels("self") == Some(1) && levels(&pid.to_string()).is_some_and(|levels| levels > 1)
}

/// In how many pid namespaces a process has a number, from the one of `/proc` downwards.
fn pid_levels(status: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(line.split_whitespace().count())
}

/// Sends without ever raising SIGPIPE, whose default action would end the program.
pub fn send(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    send_with(stream, bytes, &[])
}

/// The same, with descriptors that go with the first byte. At most three.
pub fn send_with(stream: &UnixStream, bytes: &[u8], files: &[File]) -> io::Result<usize> {
    /// Room for the head of a control message and three descriptors, aligned as the kernel wants
    /// it.
    #[repr(C, align(8))]
    struct Space([u8; 64]);
    let mut space = Space([0; 64]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is a valid empty message; every pointer put into it refers to a local or
    // to the arguments, which live across the call. CMSG_SPACE of three descriptors is below 64.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        let files = &files[..files.len().min(3)];
        if !files.is_empty() {
            let length = (size_of::<libc::c_int>() * files.len()) as u32;
            message.msg_control = space.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(length) as usize;
            let data = libc::CMSG_DATA(head).cast::<libc::c_int>();
            for (at, file) in files.iter().enumerate() {
                data.add(at).write_unaligned(file.as_raw_fd());
            }
        }
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Waits until one of the descriptors can be read (or, where asked, written), has an error or a
/// hang-up. Returns for each whether it is ready.
pub fn wait(interest: &[(RawFd, bool)], timeout: Option<Duration>) -> Vec<bool> {
    let mut polled: Vec<libc::pollfd> = interest
        .iter()
        .map(|&(fd, write)| libc::pollfd {
            fd,
            events: libc::POLLIN | if write { libc::POLLOUT } else { 0 },
            revents: 0,
        })
        .collect();
    let timeout = timeout.map_or(-1, |t| i32::try_from(t.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: pointer and length describe `polled`. An interrupted call leaves all as not ready.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    polled.iter().map(|p| p.revents != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn levels_of_namespaces_are_counted() {
        assert_eq!(pid_levels("Pid:\t7\nNSpid:\t7\nNSpgid:\t7\t1\n"), Some(1));
        assert_eq!(pid_levels("Pid:\t7\nNSpid:\t7\t1\n"), Some(2));
        assert_eq!(pid_levels("Pid:\t7\n"), None, "a kernel without such namespaces");
    }

    #[test]
    fn a_process_in_a_container_of_its_own_is_elsewhere() {
        assert!(!is_elsewhere(std::process::id()));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert!(peer_allowed(&ours));
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child", "sh", "-c", "echo in; read x; :"]);
        let unshare = unshare.stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = unshare.spawn() else { return eprintln!("not covered: no unshare") };
        let mut said = [0; 3];
        let inside = io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said);
        if inside.is_err() {
            let _ = child.wait();
            return eprintln!("not covered: no namespaces for us");
        }
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let children = std::fs::read_to_string(children).unwrap();
        let inner: u32 = children.trim().parse().unwrap();
        assert!(!is_elsewhere(child.id()), "only its children are");
        assert!(is_elsewhere(inner));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
