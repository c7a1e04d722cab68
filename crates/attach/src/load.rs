//! Makes the agent library visible to a JVM, has it loaded, and takes the copy away again.
//!
//! The copy lies in a folder of its own, named after the JVM's pid and the agent's build, in the
//! first directory of the JVM's that allows code to be mapped. The name does not vary from one
//! attach to the next: glibc knows a library by its path, so that a second attach finds the copy
//! that is mapped already and nothing grows.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use crate::attach_socket::{Attachment, Pauses};
use crate::control;
use crate::elf;
use crate::error::{Error, Step};
use crate::hotspot::{self, Verdict};
use crate::jvm::Jvm;
use crate::jvm_files;
use crate::left_behind;
use crate::procfs::{DELETED, Mapped};
use crate::rights;

/// What a successful load tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The library's path in the JVM's own root.
    pub library: PathBuf,
    /// Its build id.
    pub build: String,
    /// Whether the JVM had this build mapped before.
    pub was_mapped: bool,
}

/// Where the agent library is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// A file here.
    File(PathBuf),
    /// Its content, which the program carries.
    Carried(&'static [u8]),
}

/// An agent is a few megabytes; with debug information a few tens.
const LARGEST_LIBRARY: u64 = 512 << 20;

/// Folders of these endings are tried when one of the name is taken by somebody else.
const SPARES: u32 = 4;

/// Loads the agent library into the JVM with these options. Everything that was
/// put into the JVM's directories is removed again, whatever the outcome.
pub fn load_agent(
    jvm: &Jvm,
    library: &Library,
    options: &str,
    timeout: Duration,
    progress: &mut dyn FnMut(Step),
) -> Result<Loaded, Error> {
    let (theirs, library, options) = (jvm.clone(), library.clone(), options.to_owned());
    left_behind::in_directories(jvm.pid, timeout, progress, move |progress| {
        load_here(&theirs, &library, &options, timeout, progress)
    })
}

fn load_here(
    jvm: &Jvm,
    library: &Library,
    options: &str,
    timeout: Duration,
    progress: &mut dyn FnMut(Step),
) -> Result<Loaded, Error> {
    let pid = jvm.pid;
    control::remove_stale(std::slice::from_ref(jvm));
    let Source { file: source, build, needs_libc } =
        open_library(library).map_err(|error| Error::LibraryUnreadable {
            path: match library {
                Library::File(path) => path.clone(),
                Library::Carried(_) => PathBuf::from("inside this program"),
            },
            error,
        })?;
    if options.len() > hotspot::LONGEST_ARGUMENT {
        return Err(Error::TooLong { what: "text of the agent's options", length: options.len() });
    }
    if jvm.settings.dynamic_agents == Some(false) {
        return Err(Error::DynamicLoadingDisabled { pid });
    }
    if jvm.musl && needs_libc {
        return Err(Error::Musl { pid });
    }
    let mut attachment = Attachment::new(jvm, timeout, progress)?;
    attachment.refuse_early()?;
    if !attachment.files.is_ours() {
        control::remove_stale_inside(&attachment.files, jvm);
    }
    let name = tare_protocol::library_name(&build);
    let mapped = mapped_paths(jvm, &name);
    let was_mapped = !mapped.is_empty();
    let path = match in_place(&attachment, &mapped) {
        Some(path) => path,
        None => place(&mut attachment, &mapped, &name, &build, source.as_fd())?,
    };
    (attachment.progress)(Step::LibraryPlaced(path.clone()));
    let outcome = command_load(&mut attachment, &path, options);
    let cleared = attachment.as_user.remove_placed();
    outcome?;
    cleared.map_err(Error::io(format!("remove {} again", path.display())))?;
    Ok(Loaded { library: path, build, was_mapped })
}

fn command_load(attachment: &mut Attachment<'_>, path: &Path, options: &str) -> Result<(), Error> {
    let pid = attachment.jvm.pid;
    let text = path.to_string_lossy().into_owned();
    let mut pauses = Pauses::default();
    loop {
        let answer = attachment.command("load", [&text, "true", options])?;
        return Err(match hotspot::judge_load(&answer) {
            Verdict::Loaded => return Ok(()),
            Verdict::TooEarly => {
                attachment.pause(&mut pauses, &Step::AwaitingStart)?;
                continue;
            }
            Verdict::AgentFailed(code) => Error::AgentFailed { pid, code },
            Verdict::DynamicLoadingDisabled => Error::DynamicLoadingDisabled { pid },
            Verdict::NoExec(text) => Error::NoExec { pid, text },
            Verdict::OldGlibc(needs) => Error::OldGlibc { pid, needs, has: glibc_of(attachment) },
            Verdict::Musl => Error::Musl { pid },
            Verdict::Rejected(text) => Error::LibraryRejected { pid, text },
        });
    }
}

struct Source {
    /// A copy in memory, since a file that is being rebuilt could change under us.
    file: OwnedFd,
    /// The id that the library carries or, for one without, our own.
    build: String,
    /// Whether it only loads into programs on the C library that it was built for.
    needs_libc: bool,
}

fn open_library(library: &Library) -> io::Result<Source> {
    let bytes = match library {
        Library::File(path) => {
            Cow::from(jvm_files::read_regular(File::open(path)?, LARGEST_LIBRARY)?)
        }
        Library::Carried(bytes) => Cow::from(*bytes),
    };
    elf::check(&bytes).map_err(io::Error::other)?;
    let build = build_in(&bytes).unwrap_or_else(|| tare_protocol::BUILD_ID.to_owned());
    let needs_libc = elf::needs_libraries(&bytes);
    let copy = rustix::fs::memfd_create("tare-agent", MemfdFlags::CLOEXEC)?;
    let mut copy = File::from(copy);
    copy.write_all(&bytes)?;
    Ok(Source { file: copy.into(), build, needs_libc })
}

/// The build id by the marker that stands in every agent library.
fn build_in(bytes: &[u8]) -> Option<String> {
    let own = tare_protocol::BUILD_MARKER;
    let prefix = own.get(..own.find(':')? + 1)?.as_bytes();
    let digits = tare_protocol::BUILD_ID.len();
    let starts = bytes.windows(prefix.len()).enumerate().filter(|(_, window)| *window == prefix);
    starts.map(|(at, _)| at + prefix.len()).find_map(|at| {
        let id = bytes.get(at..at + digits)?;
        let ended = bytes.get(at + digits) == Some(&b';');
        let plain = id.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (ended && plain).then(|| String::from_utf8_lossy(id).into_owned())
    })
}

/// Where the JVM has mapped a library of this name, the file gone or not.
fn mapped_paths(jvm: &Jvm, name: &str) -> Vec<String> {
    let mapped = Mapped::of(jvm.pid).unwrap_or_else(|_| jvm.mapped.clone());
    mapped
        .agents
        .into_iter()
        .filter(|path| {
            let live = path.strip_suffix(DELETED).unwrap_or(path);
            live.rsplit('/').next() == Some(name)
        })
        .collect()
}

/// A mapped library that still is where it was loaded from, say by `-agentpath`, outside our own
/// folders: the JVM can load it again from there.
fn in_place(attachment: &Attachment<'_>, mapped: &[String]) -> Option<PathBuf> {
    let lives = |path: &&String| {
        let path = Path::new(path.as_str());
        let folder = path.parent().unwrap_or(path);
        let ours = folder.file_name().is_some_and(|name| is_folder_name(&name.to_string_lossy()));
        let safe = || {
            let owner = attachment.files.stat(path).ok()?;
            let owned = trusted(attachment).contains(&owner.st_uid) && owner.st_mode & 0o022 == 0;
            let folder = attachment.files.directory(folder).ok()?;
            Some(
                owned
                    && jvm_files::is_guarded(folder.as_fd(), &trusted(attachment)).unwrap_or(false),
            )
        };
        !ours && !path.to_string_lossy().ends_with(DELETED) && safe() == Some(true)
    };
    mapped.iter().find(lives).map(PathBuf::from)
}

/// Whose directories and files we believe in: root's, the JVM's user's, and ours.
fn trusted(attachment: &Attachment<'_>) -> Vec<u32> {
    let us = rustix::process::geteuid().as_raw();
    let mut users = vec![0, attachment.jvm.uid, us];
    users.extend(attachment.jvm.namespace_root());
    users.extend(rights::outsider());
    users
}

const FOLDER: &str = ".tare-lib-";

fn folder_name(pid: u32, build: &str, spare: u32) -> String {
    match spare {
        0 => format!("{FOLDER}{pid}-{build}"),
        n => format!("{FOLDER}{pid}-{build}-{n}"),
    }
}

pub(crate) fn is_folder_name(name: &str) -> bool {
    name.starts_with(FOLDER)
}

/// Copies the library into the first directory that will do.
fn place(
    attachment: &mut Attachment<'_>,
    mapped: &[String],
    name: &str,
    build: &str,
    source: BorrowedFd<'_>,
) -> Result<PathBuf, Error> {
    let mut tried = Vec::new();
    for directory in places(attachment, mapped) {
        match lay_in(attachment, &directory, name, build, source)? {
            Ok(path) => return Ok(path),
            Err(reason) => tried.push(format!("{}: {reason}", directory.display())),
        }
    }
    Err(Error::NoPlaceForLibrary { pid: attachment.jvm.pid, tried })
}

/// The directories to try. One from which the same build was loaded before comes first, for the
/// sake of the same path.
fn places(attachment: &Attachment<'_>, mapped: &[String]) -> Vec<PathBuf> {
    let jvm = attachment.jvm;
    let mut places: Vec<PathBuf> = Vec::new();
    for path in mapped {
        let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
        if folder.file_name().is_some_and(|name| is_folder_name(&name.to_string_lossy())) {
            places.extend(folder.parent().map(Path::to_owned));
        }
    }
    places.extend(["/tmp", "/dev/shm", "/var/tmp"].map(PathBuf::from));
    places.extend(jvm.settings.tmp_dir.clone().map(PathBuf::from));
    let uid = jvm.id_inside("uid_map", jvm.uid).unwrap_or(jvm.uid);
    places.push(PathBuf::from(format!("/run/user/{uid}")));
    places.extend(working_directory(attachment));
    places.extend(jvm.settings.home.clone().map(PathBuf::from));
    let mut unique = Vec::new();
    for place in places {
        if place.is_absolute() && !unique.contains(&place) {
            unique.push(place);
        }
    }
    unique
}

/// The JVM's working directory by its name in the JVM's root, if that name leads there.
fn working_directory(attachment: &Attachment<'_>) -> Option<PathBuf> {
    let pid = attachment.jvm.pid;
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let root = std::fs::read_link(format!("/proc/{pid}/root")).ok()?;
    let path = Path::new("/").join(cwd.strip_prefix(&root).ok()?);
    let by_name = attachment.files.stat(&path).ok()?;
    let truly = rustix::fs::fstat(attachment.files.cwd()?).ok()?;
    jvm_files::same_file(&by_name, &truly).then_some(path)
}

/// The outer error ends the attach; the inner one only rules this directory out.
fn lay_in(
    attachment: &mut Attachment<'_>,
    directory: &Path,
    name: &str,
    build: &str,
    source: BorrowedFd<'_>,
) -> Result<Result<PathBuf, String>, Error> {
    use rustix::fs::StatVfsMountFlags as Flags;
    let dir = match attachment.files.directory(directory) {
        Ok(dir) => dir,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match rustix::fs::fstatvfs(&dir) {
        Ok(mount) if mount.f_flag.contains(Flags::RDONLY) => {
            return Ok(Err("mounted read-only".to_owned()));
        }
        Ok(mount) if mount.f_flag.contains(Flags::NOEXEC) => {
            return Ok(Err("mounted noexec".to_owned()));
        }
        Ok(_) => {}
        Err(error) => return Ok(Err(error.to_string())),
    }
    match jvm_files::is_guarded(dir.as_fd(), &trusted(attachment)) {
        Ok(true) => {}
        Ok(false) => return Ok(Err("other users could exchange files in it".to_owned())),
        Err(error) => return Ok(Err(error.to_string())),
    }
    let mut pauses = Pauses::default();
    let mut spare = 0;
    let mut said = false;
    loop {
        let folder = folder_name(attachment.jvm.ns_pid, build, spare);
        let path = directory.join(&folder).join(name);
        if path.as_os_str().len() > hotspot::LONGEST_ARGUMENT {
            return Ok(Err("its path is too long for the attach protocol".to_owned()));
        }
        match attachment.as_user.place_file(dir.as_fd(), &folder, name, source) {
            Ok(()) => return Ok(Ok(path)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !said {
                    (attachment.progress)(Step::AwaitingOther);
                    said = true;
                }
                attachment.pause(&mut pauses, &Step::AwaitingOther)?;
            }
            // Somebody else's folder, or one that is open to others.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && spare < SPARES => {
                spare += 1;
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
}

/// The version of the C library that the JVM runs on.
fn glibc_of(attachment: &Attachment<'_>) -> Option<String> {
    let path = attachment.jvm.mapped.libc.as_deref()?;
    let bytes = attachment.files.read(Path::new(path), 16 << 20).ok()?;
    hotspot::glibc_version(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_read_from_the_library() {
        let mut bytes = b"\x7fELF tare-build-id:short; ".to_vec();
        assert_eq!(build_in(&bytes), None);
        bytes.extend(b"tare-build-id:0123456789abcdef;");
        assert_eq!(build_in(&bytes).as_deref(), Some("0123456789abcdef"));
        assert_eq!(build_in(b"tare-build-id:0123456789abcde"), None);
        assert_eq!(
            build_in(tare_protocol::BUILD_MARKER.as_bytes()).unwrap(),
            tare_protocol::BUILD_ID
        );
    }

    #[test]
    fn folders_are_told_by_their_names() {
        assert_eq!(folder_name(7, "ab", 0), ".tare-lib-7-ab");
        assert_eq!(folder_name(7, "ab", 2), ".tare-lib-7-ab-2");
        assert!(is_folder_name(&folder_name(7, "ab", 0)) && !is_folder_name(".tare-7-00000000"));
    }
}
