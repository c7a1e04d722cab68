//! Who is at the other end of a socket, as the kernel knows it.
//!
//! rustix has a call for it, whose type for the pid cannot be zero. It is zero for processes
//! outside our pid namespace, which are just those that we must tell from others.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Pid and user of the process that connected, or that listens. A pid of zero has no number here.
pub fn peer(stream: &UnixStream) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the out-pointers refer to locals of the size given.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    match code {
        0 => Ok((u32::try_from(peer.pid).unwrap_or(0), peer.uid)),
        _ => Err(io::Error::last_os_error()),
    }
}
