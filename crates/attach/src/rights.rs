//! Whose rights it takes to act for a JVM, and how to get them.
//!
//! Decides between our own rights, those of the JVM's user by way of root, and those that the
//! owner of a user namespace has inside it. What is then done is left to `attach_socket`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Gid, Uid};

use crate::as_jvm_user::{AsJvmUser, Executor};
use crate::child::{self, Child, Identity};
use crate::error::Error;
use crate::jvm::Jvm;
use crate::procfs;

impl Jvm {
    /// The number inside the JVM's user namespace of an id as numbered here.
    pub(crate) fn id_inside(&self, map: &str, id: u32) -> Option<u32> {
        let Ok(bytes) = procfs::read(self.pid, map) else { return Some(id) };
        if procfs::same_namespace(self.pid, "user") == Some(false) {
            return procfs::map_id(&bytes, id);
        }
        // To a reader in the same namespace the kernel shows the numbers of the parent instead;
        // ours are those inside, if they are mapped at all.
        procfs::unmap_id(&bytes, id).map(|_| id)
    }

    /// Whether its user or group has no number in its own user namespace. HotSpot cannot give
    /// its socket to such an owner and gives up without a word.
    pub(crate) fn is_unmapped(&self) -> bool {
        self.id_inside("uid_map", self.uid).is_none()
            || self.id_inside("gid_map", self.gid).is_none()
    }

    /// The number here of the user who is root to the JVM, unless nobody is.
    pub(crate) fn namespace_root(&self) -> Option<u32> {
        match procfs::same_namespace(self.pid, "user") {
            Some(false) => procfs::unmap_id(&procfs::read(self.pid, "uid_map").ok()?, 0),
            _ => Some(0),
        }
    }
}

/// How to act with the JVM's rights. With `tidy`, files will be made: then a child is preferred
/// even when our own rights would do, because it removes them even if we are killed.
pub(crate) fn as_jvm_user(jvm: &Jvm, tidy: bool) -> Result<AsJvmUser, Error> {
    let pid = jvm.pid;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::NotPermitted { pid, user: jvm.user_name(), what: "act as that user" }
        }
        _ => Error::Io { doing: format!("start a helper that acts as {}", jvm.user_name()), error },
    };
    let us = rustix::process::geteuid().as_raw();
    if us == jvm.uid {
        let child = (tidy && child::is_possible()).then(|| Child::start(None).ok()).flatten();
        return Ok(child.map_or_else(|| AsJvmUser::Here(Executor::default()), AsJvmUser::InChild));
    }
    if !child::is_possible() {
        return Err(failed(io::Error::other("this program does not call run_if_child")));
    }
    if us == 0 {
        let identity = Identity { uid: jvm.uid, gid: jvm.gid, user_namespace: None };
        return Child::start(Some(identity)).map(AsJvmUser::InChild).map_err(failed);
    }
    // The owner of a user namespace (a rootless container) is root in it without being it here.
    let namespace = std::fs::File::open(format!("/proc/{pid}/ns/user")).map_err(failed)?;
    if procfs::same_namespace(pid, "user") != Some(false) {
        return Err(failed(io::ErrorKind::PermissionDenied.into()));
    }
    let inside = (jvm.id_inside("uid_map", jvm.uid), jvm.id_inside("gid_map", jvm.gid));
    let (Some(uid), Some(gid)) = inside else {
        return Err(failed(io::ErrorKind::PermissionDenied.into()));
    };
    let identity = Identity { uid, gid, user_namespace: Some(namespace.as_fd()) };
    Child::start(Some(identity)).map(AsJvmUser::InChild).map_err(failed)
}

/// The number by which users outside our user namespace appear, when we are in one of our own: the
/// directories above a container belong to them, and what they want they can do anyway.
pub(crate) fn outsider() -> Option<u32> {
    let map = procfs::read_bounded("/proc/self/uid_map", 4096).ok()?;
    // In the first namespace every number means itself.
    if procfs::map_id(&map, u32::MAX - 1) == Some(u32::MAX - 1) {
        return None;
    }
    let number = procfs::read_bounded("/proc/sys/kernel/overflowuid", 32).ok()?;
    std::str::from_utf8(&number).ok()?.trim().parse().ok()
}

/// Runs `look` on a thread that has taken another user's identity; `None` when it may not. Root in
/// a container often lacks the capability to look into processes of others (CAP_SYS_PTRACE), but
/// not those to become their user. Identities belong to threads, so that nobody else notices.
pub(crate) fn as_user<T: Send>(uid: u32, gid: u32, look: impl FnOnce() -> T + Send) -> Option<T> {
    if !rustix::process::geteuid().is_root() || uid == 0 || uid == u32::MAX || gid == u32::MAX {
        return None;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
            rustix::thread::set_thread_res_uid(None, Uid::from_raw(uid), None).ok()?;
            Some(look())
        });
        thread.join().ok().flatten()
    })
}

/// Whether a process lives in our user, pid and mount namespaces: not in a container, if we are in
/// none, nor in another one. The links of root's processes are hidden from other users; that a
/// process has no number but ours is for all to see.
#[must_use]
pub fn shares_our_namespaces(pid: u32) -> bool {
    ["user", "pid", "mnt"].iter().all(|kind| {
        let levels = || procfs::Status::of(pid).is_ok_and(|status| status.pid_levels == 1);
        procfs::same_namespace(pid, kind).unwrap_or_else(levels)
    })
}

/// Whether the process at the other end, as the kernel remembers it, is `pid`.
pub(crate) fn peer_is(socket: &OwnedFd, pid: u32) -> bool {
    rustix::net::sockopt::socket_peercred(socket)
        .is_ok_and(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()) == Ok(pid))
}
