//! The child process that takes a JVM's user and group, and if need be enters its user
//! namespace, to do there what `as_jvm_user` describes.
//!
//! It is our own program started again with a hidden first argument, because a user namespace can
//! only be entered by a process with one thread. Parent and child talk over a socket pair that is
//! the child's standard input: a operation with its descriptors goes in, an error number with at
//! most one descriptor comes out. When the parent ends, however it ends, the child sees the end of
//! the stream and tidies up.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::Timeout;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg,
};
use rustix::process::{Gid, Uid};

use crate::as_jvm_user::{Executor, Operation};

/// The hidden first argument.
const HIDDEN: &str = "__tare-in-namespace";

/// Longer than any operation: a few file names.
const LONGEST: usize = 4096;
const MOST_FDS: usize = 2;

/// Each operation is a few system calls, or one copy of a few megabytes.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Whether this program's `main` gives [`run_if_child`] its chance; otherwise a second start of
/// it would do who knows what.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// To be called first thing in `main`: when this process is the helper that acts with a JVM's
/// rights, does its work and tells what came of it; the process is to end then.
#[must_use]
pub fn run_if_child() -> Option<Result<(), String>> {
    PREPARED.store(true, Ordering::Relaxed);
    let first = std::env::args_os().nth(1);
    if first.as_deref() != Some(std::ffi::OsStr::new(HIDDEN)) {
        return None;
    }
    let stdin = io::stdin();
    let served = serve(stdin.as_fd());
    Some(served.map_err(|error| format!("{HIDDEN} is for Tare's own use ({error})")))
}

/// Whether a child can be had in this program.
pub(crate) fn is_possible() -> bool {
    PREPARED.load(Ordering::Relaxed)
}

/// Whom the child shall become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity<'a> {
    pub uid: u32,
    pub gid: u32,
    /// The user namespace to enter first; the ids are then those inside.
    pub user_namespace: Option<BorrowedFd<'a>>,
}

/// The parent's end.
#[derive(Debug)]
pub(crate) struct Child {
    socket: OwnedFd,
    process: std::process::Child,
}

impl Child {
    /// Starts a child; with `identity` it becomes another.
    pub(crate) fn start(identity: Option<Identity<'_>>) -> io::Result<Self> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let process = Command::new("/proc/self/exe")
            .arg0("tare")
            .arg(HIDDEN)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // An interrupt from the terminal must not reach the one who tidies up.
            .process_group(0)
            .current_dir("/")
            .spawn()?;
        // A file system of the JVM's may hang; the caller must not hang with it.
        rustix::net::sockopt::set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_WITHIN))?;
        let child = Self { socket: ours, process };
        if let Some(identity) = identity {
            let entered = u8::from(identity.user_namespace.is_some());
            let text = format!("become\0{}\0{}\0{entered}", identity.uid, identity.gid);
            child.ask(text.as_bytes(), identity.user_namespace.as_slice())?;
        }
        Ok(child)
    }

    pub(crate) fn perform(
        &mut self,
        operation: &Operation,
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Option<OwnedFd>> {
        self.ask(&encode(operation), fds)
    }

    fn ask(&self, request: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<Option<OwnedFd>> {
        send(self.socket.as_fd(), request, fds)?;
        let (answer, fds) = receive(self.socket.as_fd())?;
        let raw = <[u8; 4]>::try_from(answer.as_slice())
            .map_err(|_| io::Error::other("the helper process ended early"))?;
        match i32::from_le_bytes(raw) {
            0 => Ok(fds.into_iter().next()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Closing our end tells the child to tidy up. It may linger for the JVM's sake, so it is
        // not waited for beyond the usual case.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        for _ in 0..200 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The child's life: one answer per request until the stream ends.
fn serve(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut executor = Executor::that_lingers();
    loop {
        let (request, fds) = receive(socket)?;
        if request.is_empty() {
            return Ok(());
        }
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let result = match decode(&request) {
            Some(Request::Become { uid, gid, enters }) => {
                become_user(uid, gid, enters.then(|| fds.first().copied()).flatten(), enters)
                    .map(|()| None)
            }
            Some(Request::Operation(operation)) => executor.perform(&operation, &fds),
            None => Err(Errno::INVAL.into()),
        };
        let (errno, fd) = match result {
            Ok(fd) => (0, fd),
            Err(error) => (error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()), None),
        };
        let fd = fd.as_ref().map(AsFd::as_fd);
        // A parent that has gone meanwhile needs no answer; the next receive ends the loop.
        let _ = send(socket, &errno.to_le_bytes(), fd.as_slice());
    }
}

/// Takes on another identity for good. The process has a single thread, so that the calls, which
/// act on one thread, act on all of it.
fn become_user(
    uid: u32,
    gid: u32,
    namespace: Option<BorrowedFd<'_>>,
    enters: bool,
) -> io::Result<()> {
    if enters {
        let namespace = namespace.ok_or(Errno::BADF)?;
        let kind = rustix::thread::LinkNameSpaceType::User;
        rustix::thread::move_into_link_name_space(namespace, Some(kind))?;
    }
    match rustix::thread::set_thread_groups(&[]) {
        // In a user namespace made by an ordinary user, groups may not be dropped.
        Err(Errno::PERM) if enters => {}
        other => other?,
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

enum Request {
    Become { uid: u32, gid: u32, enters: bool },
    Operation(Operation),
}

fn encode(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::Create { name, replace: false } => format!("create\0{name}"),
        Operation::Create { name, replace: true } => format!("replace\0{name}"),
        Operation::Remove => "remove".to_owned(),
        Operation::Signalled { pid, start, socket } => {
            format!("signalled\0{pid}\0{start}\0{socket}")
        }
        Operation::Connect { name } => format!("connect\0{name}"),
        Operation::PlaceFile { folder, file } => format!("place\0{folder}\0{file}"),
        Operation::RemovePlaced => "remove-placed".to_owned(),
    }
    .into_bytes()
}

fn decode(bytes: &[u8]) -> Option<Request> {
    let words: Vec<&str> = std::str::from_utf8(bytes).ok()?.split('\0').collect();
    let operation = match *words.as_slice() {
        ["become", uid, gid, enters] => {
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            // The largest number means "leave as it is" to the kernel: never what is meant.
            let valid = uid != u32::MAX && gid != u32::MAX;
            return valid.then_some(Request::Become { uid, gid, enters: enters == "1" });
        }
        ["create", name] => Operation::Create { name: name.to_owned(), replace: false },
        ["replace", name] => Operation::Create { name: name.to_owned(), replace: true },
        ["remove"] => Operation::Remove,
        ["signalled", pid, start, socket] => Operation::Signalled {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
            socket: socket.to_owned(),
        },
        ["connect", name] => Operation::Connect { name: name.to_owned() },
        ["place", folder, file] => {
            Operation::PlaceFile { folder: folder.to_owned(), file: file.to_owned() }
        }
        ["remove-placed"] => Operation::RemovePlaced,
        _ => return None,
    };
    Some(Request::Operation(operation))
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG.into());
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// One message; an empty one is the end of the stream.
fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; LONGEST];
    let length = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    bytes.truncate(length);
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    Ok((bytes, fds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeds_survive_the_wire() {
        let name = || "x y".to_owned();
        for operation in [
            Operation::Create { name: name(), replace: false },
            Operation::Create { name: name(), replace: true },
            Operation::Remove,
            Operation::Signalled { pid: 1, start: u64::MAX, socket: name() },
            Operation::Connect { name: name() },
            Operation::PlaceFile { folder: name(), file: name() },
            Operation::RemovePlaced,
        ] {
            assert!(
                matches!(decode(&encode(&operation)), Some(Request::Operation(d)) if d == operation)
            );
        }
        assert!(decode(b"become\x004294967295\x000\x000").is_none());
        assert!(decode(b"").is_none() && decode(b"\xff").is_none() && decode(b"x").is_none());
    }

    #[test]
    fn a_served_socket_passes_descriptors() {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .unwrap();
        let server = std::thread::spawn(move || serve(theirs.as_fd()));
        let dir = std::env::temp_dir().join(format!("tare-serve-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap();
        let base = std::fs::File::open(&dir).unwrap();

        send(ours.as_fd(), &encode(&Operation::Connect { name: "s".into() }), &[base.as_fd()])
            .unwrap();
        let (answer, fds) = receive(ours.as_fd()).unwrap();
        assert_eq!((answer, fds.len()), (vec![0; 4], 1));
        listener.accept().unwrap();

        let create = encode(&Operation::Create { name: "made".into(), replace: false });
        send(ours.as_fd(), &create, &[base.as_fd()]).unwrap();
        assert_eq!(receive(ours.as_fd()).unwrap().0, [0; 4]);
        assert!(dir.join("made").exists());
        send(ours.as_fd(), b"nonsense", &[]).unwrap();
        assert_eq!(receive(ours.as_fd()).unwrap().0, Errno::INVAL.raw_os_error().to_le_bytes());

        drop(ours);
        server.join().unwrap().unwrap();
        assert!(!dir.join("made").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
