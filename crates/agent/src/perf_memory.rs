//! The counters that HotSpot keeps in memory for `jstat`: how long it has stood at safepoints, and
//! how often each of its collectors has run.
//!
//! They lie in a file that the JVM maps into its own memory, so reading one is a load. A JVM that
//! was told to keep none (`-XX:-UsePerfData`), or to keep them in private memory, has no such
//! mapping; then nothing is known.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: u32 = 0xcafe_c0c0;
const LITTLE_ENDIAN: u8 = 1;
const TYPE_LONG: u8 = b'J';
const TYPE_BYTE: u8 = b'B';

/// A counter that lives as long as the JVM.
#[derive(Clone, Copy)]
struct Counter(&'static AtomicU64);

/// A part of the JVM that collects garbage, as its counters name it.
pub struct Collector {
    pub name: String,
    runs: Counter,
}

impl Collector {
    /// How often it has run, or begun to.
    pub fn runs(&self) -> u64 {
        self.runs.0.load(Ordering::Relaxed)
    }
}

/// No JVM has more of them.
pub const COLLECTORS_MOST: usize = 4;

static COLLECTORS: OnceLock<Vec<Collector>> = OnceLock::new();

/// The collectors of this JVM.
pub fn collectors() -> &'static [Collector] {
    COLLECTORS.get_or_init(|| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let Some(memory) = mapping(&maps) else { return Vec::new() };
        let collector = |number: usize| {
            let key = |what: &str| CString::new(format!("sun.gc.collector.{number}.{what}")).ok();
            let name = text(memory, &key("name")?)?;
            Some(Collector { name, runs: find(memory, &key("invocations")?)? })
        };
        (0..COLLECTORS_MOST).map_while(collector).collect()
    })
}

/// The same where nothing may be allocated: none until [`collectors`] was asked.
pub fn known_collectors() -> &'static [Collector] {
    COLLECTORS.get().map_or(&[], Vec::as_slice)
}

/// How long all threads have stood at safepoints in this JVM's life, once they were there.
pub fn safepoint_ns() -> Option<u64> {
    static COUNTER: OnceLock<Option<Counter>> = OnceLock::new();
    COUNTER
        .get_or_init(|| {
            let memory = mapping(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
            // HotSpot counts in units of its fastest clock, which is one of nanoseconds on Linux.
            let frequency = find(memory, c"sun.os.hrt.frequency")?.0.load(Ordering::Relaxed);
            find(memory, c"sun.rt.safepointTime").filter(|_| frequency == 1_000_000_000)
        })
        .map(|counter| counter.0.load(Ordering::Relaxed))
}

/// The addresses of the mapping, from the kernel's list.
fn addresses(maps: &str) -> Option<(usize, usize)> {
    let name = format!("/{}", std::process::id());
    let line = maps.lines().find(|line| line.contains("/hsperfdata_") && line.ends_with(&name))?;
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    Some((hex(from)?, hex(to)?))
}

fn mapping(maps: &str) -> Option<&'static [u8]> {
    let (from, to) = addresses(maps)?;
    // SAFETY: the kernel says that the range is mapped, and HotSpot keeps it for its whole life.
    // The names and places in it do not change after they were written; the values are only
    // reached through atomics.
    Some(unsafe { std::slice::from_raw_parts(from as *const u8, to.checked_sub(from)?) })
}

/// The counter of a name.
fn find(memory: &'static [u8], name: &CStr) -> Option<Counter> {
    let at = offset_of(memory, name)?;
    let value = memory.get(at..at + 8)?.as_ptr().cast::<AtomicU64>();
    // SAFETY: eight bytes inside the mapping, on a multiple of eight, read atomically.
    value.is_aligned().then(|| Counter(unsafe { &*value }))
}

/// A text that does not change.
fn text(memory: &[u8], name: &CStr) -> Option<String> {
    let (at, length) = entry_of(memory, name, TYPE_BYTE)?;
    let text = memory.get(at..at.checked_add(length)?)?;
    let text = text.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Where the value of a counter is.
fn offset_of(memory: &[u8], name: &CStr) -> Option<usize> {
    entry_of(memory, name, TYPE_LONG).filter(|(_, length)| *length == 0).map(|(at, _)| at)
}

/// Where a value of a type is, and of how many of that type it is made; zero if it is one alone.
fn entry_of(memory: &[u8], name: &CStr, of: u8) -> Option<(usize, usize)> {
    let u32_at = |at: usize| memory.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b));
    let magic = memory.first_chunk().map(|b| u32::from_be_bytes(*b));
    if magic != Some(MAGIC) || memory.get(4) != Some(&LITTLE_ENDIAN) {
        return None;
    }
    let mut at = u32_at(24)? as usize;
    for _ in 0..u32_at(28)? {
        let (length, name_at) = (u32_at(at)? as usize, u32_at(at + 4)? as usize);
        let text = memory.get(at + name_at..)?;
        if memory.get(at + 12) == Some(&of) && text.starts_with(name.to_bytes_with_nul()) {
            return Some((at + u32_at(at + 16)? as usize, u32_at(at + 8)? as usize));
        }
        if length == 0 {
            return None;
        }
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two counters and a text in the form that HotSpot writes.
    fn sample() -> Vec<u8> {
        let mut memory = Vec::new();
        memory.extend_from_slice(&MAGIC.to_be_bytes());
        memory.extend_from_slice(&[LITTLE_ENDIAN, 2, 0, 1]);
        memory.resize(24, 0);
        memory.extend_from_slice(&32_u32.to_le_bytes());
        memory.extend_from_slice(&3_u32.to_le_bytes());
        for (name, value) in [("sun.a", 7_u64), ("sun.rt.b", 9)] {
            let start = memory.len();
            for field in [48_u32, 20, 0] {
                memory.extend_from_slice(&field.to_le_bytes());
            }
            memory.extend_from_slice(&[TYPE_LONG, 0, 1, 1]);
            memory.extend_from_slice(&40_u32.to_le_bytes());
            memory.extend_from_slice(name.as_bytes());
            memory.resize(start + 40, 0);
            memory.extend_from_slice(&value.to_le_bytes());
        }
        let start = memory.len();
        for field in [64_u32, 20, 16] {
            memory.extend_from_slice(&field.to_le_bytes());
        }
        memory.extend_from_slice(&[TYPE_BYTE, 0, 5, 1]);
        memory.extend_from_slice(&48_u32.to_le_bytes());
        memory.extend_from_slice(b"sun.gc.collector.0.name");
        memory.resize(start + 48, 0);
        memory.extend_from_slice(b"Copy\0\0\0\0\0\0\0\0\0\0\0\0");
        memory
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let memory = sample();
        assert_eq!(offset_of(&memory, c"sun.rt.b"), Some(80 + 40));
        assert_eq!(offset_of(&memory, c"sun.rt"), None);
        assert_eq!(offset_of(&memory[..60], c"sun.rt.b"), None);
        assert_eq!(offset_of(b"no", c"sun.a"), None);
        assert_eq!(text(&memory, c"sun.gc.collector.0.name").as_deref(), Some("Copy"));
        assert_eq!(text(&memory, c"sun.a"), None);
        assert_eq!(text(&memory[..memory.len() - 1], c"sun.gc.collector.0.name"), None);
    }

    #[test]
    fn the_mapping_is_the_one_of_this_process() {
        let pid = std::process::id();
        let maps = format!(
            "7f0-7f8 r--p 0 0:0 1 /lib/x\n\
             1000-9000 rw-s 0 0:0 1 /tmp/hsperfdata_me/{pid}1\n\
             2000-a000 rw-s 0 0:0 1 /tmp/hsperfdata_me/{pid}\n"
        );
        assert_eq!(addresses(&maps), Some((0x2000, 0xa000)));
        assert_eq!(addresses(""), None);
    }
}
