//! The few operations that must happen with the JVM's own rights: make and remove files in its
//! directories, connect to its sockets.
//!
//! An [`Executor`] does them, either in this process or, behind the same calls, in a child that has
//! taken the JVM's user and group (see `child`). Directories are given as descriptors, so that
//! nothing here depends on whose root a path would mean. Whatever an executor made and did not
//! remove, it removes when it ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::child::Child;
use crate::jvm_files;
use crate::procfs::Stat;

/// One operation; descriptors travel beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// In directory 0, make the empty file; it must not exist, or is replaced if so wished.
    Create { name: String, replace: bool },
    /// Remove the file that `Create` made.
    Remove,
    /// The JVM was signalled because of the file: when we end before `socket` appears beside it,
    /// it must stay for a while, or the JVM would take the signal for a wish to see its threads.
    Signalled { pid: u32, start: u64, socket: String },
    /// In directory 0, connect to the socket.
    Connect { name: String },
    /// In directory 0, make the folder, and in it a file with the content of descriptor 1.
    PlaceFile { folder: String, file: String },
    /// Remove what `PlaceFile` made.
    RemovePlaced,
}

/// How long a file that was announced by a signal outlives a caller who gave up.
const LINGER: Duration = Duration::from_secs(60);

/// Who performs operations.
#[derive(Debug)]
pub(crate) enum AsJvmUser {
    /// With the rights that we have.
    Here(Executor),
    /// With those of a child process that has taken the JVM's user and group.
    InChild(Child),
}

impl AsJvmUser {
    fn perform(
        &mut self,
        operation: Operation,
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Here(executor) => executor.perform(&operation, fds),
            Self::InChild(child) => child.perform(&operation, fds),
        }
    }

    pub(crate) fn create(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &str,
        replace: bool,
    ) -> io::Result<()> {
        self.perform(Operation::Create { name: name.to_owned(), replace }, &[dir]).map(drop)
    }

    pub(crate) fn remove(&mut self) -> io::Result<()> {
        self.perform(Operation::Remove, &[]).map(drop)
    }

    pub(crate) fn signalled(&mut self, pid: u32, start: u64, socket: &str) -> io::Result<()> {
        let socket = socket.to_owned();
        self.perform(Operation::Signalled { pid, start, socket }, &[]).map(drop)
    }

    pub(crate) fn connect(&mut self, dir: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
        let socket = self.perform(Operation::Connect { name: name.to_owned() }, &[dir])?;
        socket.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// `WouldBlock` means that another attach holds the folder; try again later.
    pub(crate) fn place_file(
        &mut self,
        dir: BorrowedFd<'_>,
        folder: &str,
        file: &str,
        content: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let operation = Operation::PlaceFile { folder: folder.to_owned(), file: file.to_owned() };
        self.perform(operation, &[dir, content]).map(drop)
    }

    pub(crate) fn remove_placed(&mut self) -> io::Result<()> {
        self.perform(Operation::RemovePlaced, &[]).map(drop)
    }
}

/// A file that `Create` made.
#[derive(Debug)]
struct Created {
    dir: OwnedFd,
    name: String,
    /// Set once the JVM was signalled because of it.
    awaited: Option<(u32, u64, String)>,
}

/// What `PlaceFile` made. The folder is locked as long as its descriptor is open.
#[derive(Debug)]
struct PlacedFile {
    dir: OwnedFd,
    folder: OwnedFd,
    folder_name: String,
    file_name: String,
}

/// Performs operations with the rights of its thread.
#[derive(Debug, Default)]
pub(crate) struct Executor {
    created: Option<Created>,
    placed: Option<PlacedFile>,
    lingers: bool,
}

impl Executor {
    /// An executor that may stay for [`LINGER`] after its caller has gone: only good for a process
    /// of its own.
    pub(crate) fn that_lingers() -> Self {
        Self { created: None, placed: None, lingers: true }
    }

    pub(crate) fn perform(
        &mut self,
        operation: &Operation,
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Option<OwnedFd>> {
        let fd = |at: usize| fds.get(at).copied().ok_or(io::Error::from(Errno::BADF));
        match operation {
            Operation::Create { name, replace } => self.create(fd(0)?, name, *replace)?,
            Operation::Remove => self.remove()?,
            Operation::Signalled { pid, start, socket } => {
                if let Some(created) = &mut self.created {
                    created.awaited = Some((*pid, *start, socket.clone()));
                }
            }
            Operation::Connect { name } => return connect(fd(0)?, name).map(Some),
            Operation::PlaceFile { folder, file } => {
                self.place_file(fd(0)?, folder, file, fd(1)?)?
            }
            Operation::RemovePlaced => self.remove_placed()?,
        }
        Ok(None)
    }

    fn create(&mut self, dir: BorrowedFd<'_>, name: &str, replace: bool) -> io::Result<()> {
        if replace {
            absent_is_fine(rustix::fs::unlinkat(dir, name, AtFlags::empty()))?;
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        let dir = dir.try_clone_to_owned()?;
        self.created = Some(Created { dir, name: name.to_owned(), awaited: None });
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        let Some(created) = self.created.take() else { return Ok(()) };
        absent_is_fine(rustix::fs::unlinkat(&created.dir, &created.name, AtFlags::empty()))
    }

    fn place_file(
        &mut self,
        dir: BorrowedFd<'_>,
        folder_name: &str,
        file_name: &str,
        content: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let folder = open_own_folder(dir, folder_name)?;
        rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        // The holder before us may have removed the folder before it let go of the lock.
        let there = jvm_files::entry(dir, folder_name).map_err(|_| Errno::WOULDBLOCK)?;
        if !jvm_files::same_file(&there, &rustix::fs::fstat(&folder)?) {
            return Err(Errno::WOULDBLOCK.into());
        }
        self.placed = Some(PlacedFile {
            dir: dir.try_clone_to_owned()?,
            folder,
            folder_name: folder_name.to_owned(),
            file_name: file_name.to_owned(),
        });
        let filled = self.fill(content);
        if filled.is_err() {
            self.remove_placed()?;
        }
        filled
    }

    fn fill(&self, content: BorrowedFd<'_>) -> io::Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        absent_is_fine(rustix::fs::unlinkat(&placed.folder, &placed.file_name, AtFlags::empty()))?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::XUSR;
        let target =
            rustix::fs::openat(&placed.folder, &placed.file_name, flags | OFlags::CLOEXEC, mode)?;
        // The umask must not take from the JVM's user what the JVM needs.
        rustix::fs::fchmod(&target, mode)?;
        copy(&File::from(content.try_clone_to_owned()?), &mut File::from(target))
    }

    fn remove_placed(&mut self) -> io::Result<()> {
        let Some(placed) = self.placed.take() else { return Ok(()) };
        let file = rustix::fs::unlinkat(&placed.folder, &placed.file_name, AtFlags::empty());
        let folder = rustix::fs::unlinkat(&placed.dir, &placed.folder_name, AtFlags::REMOVEDIR);
        absent_is_fine(file)?;
        absent_is_fine(folder)
    }

    /// Waits, within bounds, until the JVM has acted on a signal that the caller gave up on.
    fn linger(&self) {
        let Some(created) = &self.created else { return };
        let Some((pid, start, socket)) = &created.awaited else { return };
        let end = Instant::now() + LINGER;
        while Instant::now() < end
            && jvm_files::entry(&created.dir, socket).is_err()
            && Stat::of(*pid).is_ok_and(|stat| stat.start == *start)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Errors have nobody left to hear them.
        let _ = self.remove_placed();
        if self.lingers {
            self.linger();
        }
        let _ = self.remove();
    }
}

fn absent_is_fine(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// Makes or opens a folder that is ours alone; one that another could write to is refused, so
/// that nobody can plant a library.
fn open_own_folder(dir: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let made = match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        // Removed by another attach between the two calls.
        Err(Errno::NOENT) => return Err(Errno::WOULDBLOCK.into()),
        other => other?,
    };
    if made {
        // A umask can take bits away, and a parent's default ACL can add some.
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
    }
    let is = rustix::fs::fstat(&folder)?;
    if is.st_uid != rustix::process::geteuid().as_raw() || is.st_mode & 0o077 != 0 {
        return Err(Errno::EXIST.into());
    }
    Ok(folder)
}

fn copy(from: &File, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        // Reading by position leaves the descriptor's own offset alone, which may be shared.
        let n = from.read_at(&mut buffer, at)?;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..n])?;
        at += n as u64;
    }
}

/// Connects without waiting: a socket whose queue is full gives `WouldBlock`.
fn connect(dir: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    connect_now(&jvm_files::short_path(dir, name))
}

/// Connects to a socket without waiting: one whose queue is full gives `WouldBlock`. The socket
/// does not block either.
pub fn connect_now(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;

    struct Scratch(PathBuf, OwnedFd);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(CWD, &path, flags, Mode::empty()).unwrap();
            Self(path, fd)
        }

        fn names(&self) -> Vec<String> {
            jvm_files::names(&self.1, 100)
                .into_iter()
                .filter(|n| !matches!(&**n, "." | ".."))
                .collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn content(scratch: &Scratch) -> OwnedFd {
        std::fs::write(scratch.0.join("source"), b"library").unwrap();
        File::open(scratch.0.join("source")).unwrap().into()
    }

    #[test]
    fn what_was_made_is_gone_when_the_worker_ends() {
        let scratch = Scratch::new("gone");
        let content = content(&scratch);
        let mut as_user = AsJvmUser::Here(Executor::default());
        as_user.create(scratch.1.as_fd(), ".attach_pid1", false).unwrap();
        assert!(as_user.create(scratch.1.as_fd(), ".attach_pid1", false).is_err());
        as_user.create(scratch.1.as_fd(), ".attach_pid1", true).unwrap();
        as_user.place_file(scratch.1.as_fd(), "folder", "lib.so", content.as_fd()).unwrap();
        let placed = scratch.0.join("folder/lib.so");
        assert_eq!(std::fs::read(&placed).unwrap(), b"library");
        assert_eq!(placed.metadata().unwrap().mode() & 0o777, 0o500);
        assert_eq!(placed.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        drop(as_user);
        assert_eq!(scratch.names(), ["source"]);
    }

    #[test]
    fn a_second_attach_waits_for_the_first() {
        let scratch = Scratch::new("second");
        let content = content(&scratch);
        let mut first = Executor::default();
        let mut second = Executor::default();
        let operation = Operation::PlaceFile { folder: "f".into(), file: "l".into() };
        first.perform(&operation, &[scratch.1.as_fd(), content.as_fd()]).unwrap();
        let busy = second.perform(&operation, &[scratch.1.as_fd(), content.as_fd()]);
        assert_eq!(busy.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        first.perform(&Operation::RemovePlaced, &[]).unwrap();
        second.perform(&operation, &[scratch.1.as_fd(), content.as_fd()]).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let scratch = Scratch::new("planted");
        let content = content(&scratch);
        let planted = scratch.0.join("f");
        std::fs::create_dir(&planted).unwrap();
        std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o777)).unwrap();
        let operation = Operation::PlaceFile { folder: "f".into(), file: "l".into() };
        let mut executor = Executor::default();
        let refused = executor.perform(&operation, &[scratch.1.as_fd(), content.as_fd()]);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::fs::remove_dir(&planted).unwrap();
        std::os::unix::fs::symlink("/tmp", &planted).unwrap();
        assert!(executor.perform(&operation, &[scratch.1.as_fd(), content.as_fd()]).is_err());
    }

    #[test]
    fn long_socket_paths_are_reached() {
        let scratch = Scratch::new("long");
        let deep = scratch.0.join("x".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, &deep, flags, Mode::empty()).unwrap();
        let path = jvm_files::short_path(dir.as_fd(), "s");
        let _listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        assert!(connect(dir.as_fd(), "s").is_ok());
        let absent = connect(dir.as_fd(), "t").unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
