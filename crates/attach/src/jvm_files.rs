//! The file system as a JVM sees it: directories opened through `/proc/PID/root`, so that a
//! container or a chroot needs no entering.
//!
//! Symbolic links are resolved inside the JVM's root, never in ours. What is done in a directory,
//! and with whose rights, is left to `as_jvm_user`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
};

/// The root and the working directory of a process.
#[derive(Debug)]
pub(crate) struct JvmFiles {
    root: OwnedFd,
    cwd: Option<OwnedFd>,
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl JvmFiles {
    /// Opens the files of `pid`. A process that the kernel guards even from its own user (one with
    /// file capabilities, say) hides its root; with `assume_ours`, ours is taken for it.
    pub(crate) fn open(pid: u32, assume_ours: bool) -> io::Result<Self> {
        let open = |path: String| openat(CWD, path, DIRECTORY, Mode::empty());
        let root = match open(format!("/proc/{pid}/root")) {
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) if assume_ours => {
                open("/".to_owned())?
            }
            other => other?,
        };
        Ok(Self { root, cwd: open(format!("/proc/{pid}/cwd")).ok() })
    }

    pub(crate) fn cwd(&self) -> Option<BorrowedFd<'_>> {
        self.cwd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the root of this files is the root of our own.
    pub(crate) fn is_ours(&self) -> bool {
        let ours = rustix::fs::stat("/").ok();
        let theirs = fstat(&self.root).ok();
        matches!((ours, theirs), (Some(a), Some(b)) if same_file(&a, &b))
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        if let Ok(inside) = path.strip_prefix("/") {
            return open_beneath(self.root.as_fd(), inside, flags);
        }
        let cwd = self.cwd.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // Not resolved in the root, since the root's descriptor is not above this one; links
        // that lead out of the working directory are refused with the rest.
        let how = ResolveFlags::BENEATH;
        Ok(openat2(cwd, path, flags | OFlags::CLOEXEC, Mode::empty(), how)?)
    }

    /// A directory, for use as the base of further calls only.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open_at(path, DIRECTORY)
    }

    /// At most `limit` bytes of a regular file; relative paths start at the working directory.
    pub(crate) fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        // Looked at before it is opened: a device may do anything when it is, a pipe may wait.
        let place = self.open_at(path, OFlags::PATH)?;
        if FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        read_regular(File::from(openat(CWD, link, flags, Mode::empty())?), limit)
    }

    /// The metadata of a path, links followed.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(fstat(self.open_at(path, OFlags::PATH)?)?)
    }
}

/// Opens `path` with `root` as the root of all links.
fn open_beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = flags | OFlags::CLOEXEC;
    match openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Kernels before 5.6, and filters that do not know the call: go down step by step and
        // follow no link at all, since a link would be resolved in our root.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => open_stepwise(root, path, flags),
        other => Ok(other?),
    }
}

fn open_stepwise(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let names: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(Ok(name)),
            Component::ParentDir => Some(Err(io::Error::from(io::ErrorKind::InvalidInput))),
            _ => None,
        })
        .collect::<Result<_, _>>()?;
    let mut at = openat(root, ".", DIRECTORY, Mode::empty())?;
    let Some((last, above)) = names.split_last() else {
        return Ok(openat(&at, ".", flags, Mode::empty())?);
    };
    for name in above {
        at = openat(&at, *name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Reads a file unless it is a pipe, a device or the like, which could keep us waiting.
pub(crate) fn read_regular(file: File, limit: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn same_file(a: &Stat, b: &Stat) -> bool {
    a.st_dev == b.st_dev && a.st_ino == b.st_ino
}

/// The metadata of `name` in `dir`, links not followed.
pub(crate) fn entry(dir: impl AsFd, name: &str) -> io::Result<Stat> {
    Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The names in a directory, at most `limit` of them.
pub(crate) fn names(dir: impl AsFd, limit: usize) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = openat(dir, ".", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = rustix::fs::Dir::new(dir) else { return Vec::new() };
    entries
        .take(limit)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()))
        .collect()
}

/// Whether nobody but root and the owners in `trusted` could swap this directory, or one above
/// it, for another: each must belong to one of them, and be writable for others only when it is
/// sticky.
pub(crate) fn is_guarded(dir: BorrowedFd<'_>, trusted: &[u32]) -> io::Result<bool> {
    const DEEPEST: usize = 100;
    let mut at = openat(dir, ".", DIRECTORY, Mode::empty())?;
    for _ in 0..DEEPEST {
        let here = fstat(&at)?;
        let open = here.st_mode & 0o022 != 0 && here.st_mode & 0o1000 == 0;
        if open || !(here.st_uid == 0 || trusted.contains(&here.st_uid)) {
            return Ok(false);
        }
        let above = openat(&at, "..", DIRECTORY, Mode::empty())?;
        if same_file(&fstat(&above)?, &here) {
            return Ok(true);
        }
        at = above;
    }
    Ok(false)
}

/// A name for `fd` that fits into a socket address however long the true path is.
pub(crate) fn short_path(fd: BorrowedFd<'_>, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", fd.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_view_is_ours() {
        let files = JvmFiles::open(std::process::id(), false).unwrap();
        assert!(files.is_ours());
        assert!(files.directory(Path::new("/")).is_ok());
        assert!(files.read(Path::new("/proc/self/stat"), 10).is_ok_and(|b| b.len() == 10));
        assert!(files.read(Path::new("/proc"), 10).is_err());
        assert!(files.read(Path::new("/dev/zero"), 10).is_err());
        assert!(files.read(Path::new("Cargo.toml"), 10).is_ok());
    }

    #[test]
    fn without_openat2_no_link_is_followed() {
        let base = std::env::temp_dir().join(format!("tare-files-{}", std::process::id()));
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::os::unix::fs::symlink("/", base.join("a/link")).unwrap();
        let root = openat(CWD, &base, DIRECTORY, Mode::empty()).unwrap();
        assert!(open_stepwise(root.as_fd(), Path::new("a/b"), DIRECTORY).is_ok());
        assert!(open_stepwise(root.as_fd(), Path::new("a/link"), DIRECTORY).is_err());
        assert!(open_stepwise(root.as_fd(), Path::new("a/link/tmp"), DIRECTORY).is_err());
        assert!(open_stepwise(root.as_fd(), Path::new("a/../a"), DIRECTORY).is_err());
        std::fs::remove_dir_all(&base).unwrap();
    }
}
