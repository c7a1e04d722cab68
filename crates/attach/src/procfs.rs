//! Reads what the kernel tells of a process under /proc: total parsers over bounded bytes.
//!
//! Knows nothing of Java beyond the names of the libraries that matter; what a finding means is
//! decided in `jvm`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Larger than any sane file under /proc; a bound, so that no odd file can exhaust us.
const LIMIT: u64 = 32 << 20;

pub(crate) const SIGQUIT: u32 = 3;

/// At most `limit` bytes of a file.
pub(crate) fn read_bounded(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn read(pid: u32, name: &str) -> io::Result<Vec<u8>> {
    read_bounded(format!("/proc/{pid}/{name}"), LIMIT)
}

/// What `/proc/PID/stat` says that we need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `T` …
    pub state: char,
    pub parent: u32,
    pub threads: u32,
    /// Clock ticks from boot to the start of the process: with the pid, its identity.
    pub start: u64,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        parse_stat(&read(pid, "stat")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The command in parentheses may hold spaces, parentheses and any byte: fields count from the
/// last closing one.
pub(crate) fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let end = bytes.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(bytes.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// What `/proc/PID/status` says that we need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Effective user and group, as our user namespace numbers them.
    pub uid: u32,
    pub gid: u32,
    /// The pid in the innermost namespace, which is what the JVM takes for its own.
    pub ns_pid: u32,
    /// How many pid namespaces lie between ours and the process's, ours included.
    pub pid_levels: usize,
    /// The mask of signals that have a handler.
    pub caught: u64,
}

impl Status {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        parse_status(&read(pid, "status")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn catches(&self, signal: u32) -> bool {
        signal.checked_sub(1).is_some_and(|bit| self.caught >> bit & 1 == 1)
    }
}

pub(crate) fn parse_status(bytes: &[u8]) -> Option<Status> {
    let text = String::from_utf8_lossy(bytes);
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let effective = |name: &str| field(name)?.split_ascii_whitespace().nth(1)?.parse().ok();
    // Kernels before 4.1 have no NSpid; then there is no namespace that we could tell.
    let pids: Vec<u32> = field("NSpid")
        .or_else(|| field("Pid"))?
        .split_ascii_whitespace()
        .map_while(|pid| pid.parse().ok())
        .collect();
    Some(Status {
        uid: effective("Uid")?,
        gid: effective("Gid")?,
        ns_pid: *pids.last()?,
        pid_levels: pids.len(),
        caught: u64::from_str_radix(field("SigCgt")?, 16).ok()?,
    })
}

/// The files of interest that a process maps, by their paths in its own root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub libjvm: Option<String>,
    pub openj9: bool,
    pub musl: bool,
    pub libc: Option<String>,
    pub perf_data: Option<String>,
    /// Copies of our agent library; a path ends in ` (deleted)` when the file is gone.
    pub agents: Vec<String>,
}

impl Mapped {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let maps = read(pid, "maps")?;
        // The kernel writes paths as seen from our root, so that a process in a chroot shows the
        // way to its root before each.
        let root = std::fs::read_link(format!("/proc/{pid}/root")).unwrap_or_default();
        Ok(parse_maps(&maps, root.to_str().filter(|root| *root != "/").unwrap_or_default()))
    }
}

pub(crate) const DELETED: &str = " (deleted)";

pub(crate) fn parse_maps(bytes: &[u8], root: &str) -> Mapped {
    let mut mapped = Mapped::default();
    for line in bytes.split(|&b| b == b'\n') {
        let Some((permissions, path)) = parse_mapping(line) else { continue };
        let inside = path.strip_prefix(root).filter(|inside| inside.starts_with('/'));
        let path = inside.unwrap_or(&path).to_owned();
        let live = path.strip_suffix(DELETED).unwrap_or(&path);
        let name = live.rsplit('/').next().unwrap_or(live);
        // A file that is only read, say by a debugger, makes no JVM: code must be mapped.
        let code = permissions.contains('x');
        if name == "libjvm.so" && code {
            mapped.libjvm.get_or_insert_with(|| live.to_owned());
        } else if name.starts_with("libj9vm") && code {
            mapped.openj9 = true;
        } else if name.starts_with("ld-musl-") || name.starts_with("libc.musl-") {
            mapped.musl = true;
        } else if name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so")) {
            mapped.libc.get_or_insert_with(|| live.to_owned());
        } else if build_of(name).is_some() {
            if !mapped.agents.contains(&path) {
                mapped.agents.push(path);
            }
        } else if live.contains("/hsperfdata_") {
            mapped.perf_data.get_or_insert_with(|| live.to_owned());
        }
    }
    mapped
}

/// The build id in the file name of our agent library.
pub(crate) fn build_of(name: &str) -> Option<&str> {
    let id = name.strip_prefix("libtare_agent-")?.strip_suffix(".so")?;
    (!id.is_empty() && tare_protocol::library_name(id) == name).then_some(id)
}

fn parse_mapping(line: &[u8]) -> Option<(&str, String)> {
    let line = std::str::from_utf8(line).ok()?;
    let at = line.find('/')?;
    let permissions = line.split_ascii_whitespace().nth(1)?;
    // The kernel writes a newline in a path as \012.
    Some((permissions, line.get(at..)?.replace("\\012", "\n")))
}

/// The file-system paths in `/proc/PID/net/unix`.
pub(crate) fn parse_net_unix(bytes: &[u8]) -> Vec<String> {
    let (mut paths, mut known) = (Vec::new(), HashSet::new());
    for line in bytes.split(|&b| b == b'\n').skip(1) {
        let line = String::from_utf8_lossy(line);
        // Seven fields come before the path, and none of them holds a slash.
        let Some(at) = line.find(" /") else { continue };
        let path = line[at + 1..].to_owned();
        // Anybody may bind sockets by the ten thousand.
        if known.insert(path.clone()) {
            paths.push(path);
        }
    }
    paths
}

/// The strings of `cmdline` or `environ`.
pub(crate) fn parse_strings(bytes: &[u8]) -> Vec<String> {
    /// More than any sane process has; each takes more room here than there.
    const MOST: usize = 100_000;
    let body = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if body.is_empty() {
        return Vec::new();
    }
    body.split(|&b| b == 0).take(MOST).map(|s| String::from_utf8_lossy(s).into_owned()).collect()
}

/// Names of the threads of a process; readable even for processes of other users.
pub(crate) fn thread_names(pid: u32) -> Vec<String> {
    /// The threads that we look for are among the first that a JVM starts.
    const ENOUGH: usize = 4096;
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .take(ENOUGH)
        .filter_map(|task| read_bounded(task.ok()?.path().join("comm"), 64).ok())
        .map(|name| String::from_utf8_lossy(&name).trim_end().to_owned())
        .collect()
}

/// Whether any thread of a process is under a filter of system calls (seccomp).
pub(crate) fn has_filter(pid: u32) -> bool {
    /// Most filters are those of whole processes; a thread of its own may be anywhere.
    const ENOUGH: usize = 4096;
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let mut texts = tasks
        .take(ENOUGH)
        .filter_map(|task| read_bounded(task.ok()?.path().join("status"), LIMIT).ok());
    texts.any(|text| is_filtered(&text))
}

/// What the text of a `status` file says; a kernel without filters has no such line.
pub(crate) fn is_filtered(status: &[u8]) -> bool {
    let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Seccomp:"));
    line.is_some_and(|mode| mode.trim_ascii() != b"0")
}

/// All processes that /proc shows.
pub(crate) fn pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether process `pid` shares the namespace `kind` (`mnt`, `user`, `pid`) with us; `None` when
/// we may not know.
pub(crate) fn same_namespace(pid: u32, kind: &str) -> Option<bool> {
    let ours = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    let theirs = std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    Some(ours == theirs)
}

/// The number inside a user namespace of an id outside it, by the lines of `uid_map` or
/// `gid_map`: first inside, first outside, count.
pub(crate) fn map_id(map: &[u8], outside: u32) -> Option<u32> {
    let text = std::str::from_utf8(map).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().map_while(|f| f.parse::<u32>().ok());
        let (inside, first, count) = (fields.next()?, fields.next()?, fields.next()?);
        let offset = outside.checked_sub(first)?;
        if offset < count { inside.checked_add(offset) } else { None }
    })
}

/// The id outside of an id inside: the reverse of [`map_id`].
pub(crate) fn unmap_id(map: &[u8], inside: u32) -> Option<u32> {
    let text = std::str::from_utf8(map).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().map_while(|f| f.parse::<u32>().ok());
        let (first, outside, count) = (fields.next()?, fields.next()?, fields.next()?);
        let offset = inside.checked_sub(first)?;
        if offset < count { outside.checked_add(offset) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_survives_any_command_name() {
        let line = b"42 (a) R (b) c) T 7 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 19 0 \
                     987654 1 2 3\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.threads, stat.start), ('T', 7, 19, 987_654));
        for bad in [&b""[..], b"42 (java", b"42 (java)", b"42 (java) S 1", b"\xff\xfe)"] {
            assert_eq!(parse_stat(bad), None);
        }
    }

    #[test]
    fn status_gives_effective_ids_and_the_innermost_pid() {
        let text = b"Name:\tjava\nPid:\t900\nUid:\t0\t1000\t0\t1000\nGid:\t5\t6\t7\t8\n\
                     NSpid:\t900\t31\t7\nSigCgt:\t0000000000000004\n";
        let status = parse_status(text).unwrap();
        assert_eq!((status.uid, status.gid), (1000, 6));
        assert_eq!((status.ns_pid, status.pid_levels), (7, 3));
        assert!(status.catches(SIGQUIT) && !status.catches(2) && !status.catches(0));
        assert_eq!(parse_status(b"Uid:\t0\n"), None);
        assert_eq!(parse_status(&[0xff; 64]), None);
    }

    #[test]
    fn maps_name_what_makes_a_jvm() {
        let maps = b"7f00-7f10 r--p 00000000 08:01 99 /opt/jdk 17/lib/server/libjvm.so\n\
            7f10-7f20 r-xp 00000000 08:01 99 /opt/jdk 17/lib/server/libjvm.so (deleted)\n\
            7f20-7f30 rw-s 00000000 00:21 5 /tmp/hsperfdata_root/42\n\
            7f30-7f40 r-xp 00000000 00:21 5 /lib/ld-musl-x86_64.so.1\n\
            7f40-7f50 r-xp 00000000 00:21 5 /tmp/x/libtare_agent-00ff.so (deleted)\n\
            7f50-7f60 rw-p 00000000 00:00 0\n7f60 garbage\n\xff\n";
        let mapped = parse_maps(maps, "");
        assert_eq!(mapped.libjvm.as_deref(), Some("/opt/jdk 17/lib/server/libjvm.so"));
        assert_eq!(mapped.perf_data.as_deref(), Some("/tmp/hsperfdata_root/42"));
        assert!(mapped.musl && !mapped.openj9);
        assert_eq!(mapped.agents, ["/tmp/x/libtare_agent-00ff.so (deleted)"]);
        let only_read = parse_maps(b"7f00-7f10 r--p 00000000 08:01 99 /a/libjvm.so\n", "");
        assert_eq!(only_read, Mapped::default());
        let chroot = parse_maps(b"7f00-7f10 r-xp 00000000 08:01 99 /mnt/jdk/libjvm.so\n", "/mnt");
        assert_eq!(chroot.libjvm.as_deref(), Some("/jdk/libjvm.so"));
    }

    #[test]
    fn unix_sockets_are_found_by_path() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17 /tmp/.tare-5-0000beef/control\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 19 @abstract\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20 /with space/s\n";
        assert_eq!(parse_net_unix(table), ["/tmp/.tare-5-0000beef/control", "/with space/s"]);
        assert!(parse_net_unix(&[0xff; 100]).is_empty());
    }

    #[test]
    fn strings_keep_empty_arguments() {
        assert_eq!(parse_strings(b"java\0\0x\0"), ["java", "", "x"]);
        assert!(parse_strings(b"").is_empty() && parse_strings(b"\0").is_empty());
    }

    #[test]
    fn ids_are_translated_between_namespaces() {
        let map = b"         0       1000          1\n         1     100000      65536\n";
        assert_eq!(map_id(map, 1000), Some(0));
        assert_eq!(map_id(map, 100_998), Some(999));
        assert_eq!(map_id(map, 0), None);
        assert_eq!(unmap_id(map, 999), Some(100_998));
        assert_eq!(unmap_id(b"x y z\n", 1), None);
    }
}
