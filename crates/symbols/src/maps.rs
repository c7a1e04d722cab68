//! What is mapped into a process, from `/proc/PID/maps`.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// More than any sane process has mapped: bytes of the kernel's list.
const MOST: u64 = 64 << 20;

/// A file that is mapped: its path in the process's own root, and its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub path: PathBuf,
    pub device: (u32, u32),
    pub inode: u64,
    /// Its name is gone; the mapping still holds it.
    pub deleted: bool,
}

/// A range of addresses that may be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Where its first byte is in the file.
    pub offset: u64,
    /// `None` for what comes from no file.
    pub source: Option<Source>,
    /// What the kernel calls it: `[vdso]`, or nothing.
    name: String,
}

impl Mapping {
    /// A name for what lies in a mapping without a file.
    pub fn label(&self) -> &str {
        match self.name.as_str() {
            "" => "[generated code]",
            name => name,
        }
    }
}

/// The executable mappings of a process, by address. Empty when they cannot be read.
pub fn read(pid: u32) -> Vec<Mapping> {
    let mut text = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/maps")) {
        let _ = file.take(MOST).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let mut mappings: Vec<Mapping> = text.lines().filter_map(parse).collect();
    mappings.sort_by_key(|m| m.start);
    mappings
}

pub fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|m| m.start <= address);
    mappings.get(after.checked_sub(1)?).filter(|m| address < m.end)
}

fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    if !rights.contains('x') {
        return None;
    }
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let part = |text| u32::from_str_radix(text, 16).ok();
    let path = path.trim_start();
    let source = path.starts_with('/').then(|| {
        let (path, deleted) = match path.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let device = (part(major).unwrap_or(0), part(minor).unwrap_or(0));
        Source { path: path.into(), device, inode: inode.parse().unwrap_or(0), deleted }
    });
    let name = if source.is_some() { String::new() } else { path.to_owned() };
    Some(Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, source, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let file =
            "7f1c00251000-7f1c00fa3000 r-xp 00251000 fe:01 77 /opt/my jdk/lib/server/libjvm.so";
        let mapping = parse(file).unwrap();
        assert_eq!((mapping.start, mapping.offset), (0x7f1c_0025_1000, 0x25_1000));
        let source = mapping.source.unwrap();
        assert_eq!(source.path.to_str(), Some("/opt/my jdk/lib/server/libjvm.so"));
        assert_eq!((source.device, source.inode, source.deleted), ((0xfe, 1), 77, false));
        let gone = parse("1000-2000 r-xp 0 00:22 5 /tmp/x.so (deleted)").unwrap().source.unwrap();
        assert_eq!((gone.path.to_str(), gone.deleted), (Some("/tmp/x.so"), true));
        let made = parse("7f1c10000000-7f1c10270000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!((made.label(), made.source.is_none()), ("[generated code]", true));
        let vdso =
            parse("7ffd1000-7ffd2000 r-xp 00000000 00:00 0                  [vdso]").unwrap();
        assert_eq!(vdso.label(), "[vdso]");
        for other in ["", "1000-2000 rw-p 0 00:00 0", "x-y r-xp 0 00:00 0", "1000 r-xp", "- - - -"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn addresses_are_found_in_their_ranges() {
        let text = ["1000-2000 r-xp 0 00:00 0", "3000-4000 r-xp 0 00:00 0"];
        let mappings: Vec<_> = text.into_iter().filter_map(parse).collect();
        let start = |address| find(&mappings, address).map(|m| m.start);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x3000].map(start),
            [None, Some(0x1000), Some(0x1000), None, Some(0x3000)]
        );
    }
}
