//! The counters that HotSpot keeps in memory for `jstat`: how long it has stood at safepoints, how
//! often each of its collectors has run, why it collects, and what loading classes has cost.
//!
//! They lie in a file that the JVM maps into its own memory, so reading one is a load. A JVM that
//! was told to keep none (`-XX:-UsePerfData`), or to keep them in private memory, has no such
//! mapping; then nothing is known.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use tare_protocol::ClassCost;

const MAGIC: u32 = 0xcafe_c0c0;
const LITTLE_ENDIAN: u8 = 1;
const TYPE_LONG: u8 = b'J';
const TYPE_BYTE: u8 = b'B';

/// A counter that lives as long as the JVM.
#[derive(Clone, Copy)]
pub struct Counter(&'static AtomicU64);

impl Counter {
    pub fn get(self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters by their names; `None` if one is missing.
pub fn counters<const N: usize>(names: [&CStr; N]) -> Option<[Counter; N]> {
    let memory = mapping(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
    let found: Option<Vec<Counter>> = names.iter().map(|name| find(memory, name)).collect();
    found?.try_into().ok()
}

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
        // ZGC has the third place, and the first two are empty.
        (0..COLLECTORS_MOST).filter_map(collector).collect()
    })
}

/// The same where nothing may be allocated: none until [`collectors`] was asked.
pub fn known_collectors() -> &'static [Collector] {
    COLLECTORS.get().map_or(&[], Vec::as_slice)
}

/// How long the JVM has stood at safepoints in its life, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safepoints {
    /// From asking for them until all threads were there.
    pub reach: u64,
    /// And from then on.
    pub inside: u64,
}

impl Safepoints {
    pub fn since(self, before: Self) -> Self {
        let reach = self.reach.saturating_sub(before.reach);
        Safepoints { reach, inside: self.inside.saturating_sub(before.inside) }
    }
}

pub fn safepoints() -> Option<Safepoints> {
    static COUNTERS: OnceLock<Option<[Counter; 2]>> = OnceLock::new();
    let counters = COUNTERS.get_or_init(|| {
        let memory = mapping(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
        // HotSpot counts in units of its fastest clock, which is one of nanoseconds on Linux. It
        // says so only once it has begun to run the program.
        let frequency = find(memory, c"sun.os.hrt.frequency");
        let is_nanos =
            frequency.is_none_or(|hertz| hertz.0.load(Ordering::Relaxed) == 1_000_000_000);
        let (reach, inside) = (c"sun.rt.safepointSyncTime", c"sun.rt.safepointTime");
        let both = [find(memory, reach)?, find(memory, inside)?];
        is_nanos.then_some(both)
    });
    counters.map(|counters| {
        let [reach, inside] = counters.map(|counter| counter.0.load(Ordering::Relaxed));
        Safepoints { reach, inside }
    })
}

/// How long all threads have stood at safepoints in this JVM's life, once they were there.
pub fn safepoint_ns() -> Option<u64> {
    safepoints().map(|sums| sums.inside)
}

/// A text that the JVM changes.
pub struct ChangingText(&'static [AtomicU8]);

impl ChangingText {
    /// Its bytes now, as many as there is room for. Allocates nothing.
    pub fn read<'a>(&self, room: &'a mut [u8; 64]) -> &'a [u8] {
        let mut length = 0;
        for (to, from) in room.iter_mut().zip(self.0) {
            *to = from.load(Ordering::Relaxed);
            if *to == 0 {
                break;
            }
            length += 1;
        }
        room.get(..length).unwrap_or(&[])
    }
}

/// Why the JVM collects now, and why it did last.
pub struct Causes {
    pub now: ChangingText,
    pub last: ChangingText,
}

static CAUSES: OnceLock<Option<Causes>> = OnceLock::new();

/// To be called once before [`known_causes`].
pub fn causes() -> Option<&'static Causes> {
    let find = || {
        let memory = mapping(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
        Some(Causes {
            now: changing(memory, c"sun.gc.cause")?,
            last: changing(memory, c"sun.gc.lastCause")?,
        })
    };
    CAUSES.get_or_init(find).as_ref()
}

/// The same where nothing may be allocated.
pub fn known_causes() -> Option<&'static Causes> {
    CAUSES.get()?.as_ref()
}

/// Whether they were looked for and are not there.
pub fn has_no_causes() -> bool {
    CAUSES.get().is_some_and(Option::is_none)
}

/// A text that changes.
fn changing(memory: &'static [u8], name: &CStr) -> Option<ChangingText> {
    let (at, length) = entry_of(memory, name, TYPE_BYTE)?;
    let text = memory.get(at..at.checked_add(length)?)?;
    // SAFETY: bytes inside the mapping, read atomically.
    Some(ChangingText(unsafe { std::slice::from_raw_parts(text.as_ptr().cast(), text.len()) }))
}

/// What the JVM counts of its classes.
pub struct ClassCounters {
    /// Classes loaded from files and from an archive; unloaded ones of both.
    counts: [Counter; 4],
    /// In the order of [`ClassCost`].
    times: [Counter; ClassCost::ALL.len()],
}

impl ClassCounters {
    pub fn loaded(&self) -> u64 {
        self.counts[0].get() + self.counts[1].get()
    }

    pub fn unloaded(&self) -> u64 {
        self.counts[2].get() + self.counts[3].get()
    }

    /// Nanoseconds by [`ClassCost`], since the JVM was started.
    pub fn times(&self) -> [u64; ClassCost::ALL.len()] {
        self.times.map(Counter::get)
    }
}

/// What this JVM counts of its classes; `None` if it keeps no counters that can be read.
pub fn classes() -> Option<&'static ClassCounters> {
    static COUNTERS: OnceLock<Option<ClassCounters>> = OnceLock::new();
    let counters = COUNTERS.get_or_init(|| {
        let memory = mapping(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
        let counter = |name: &CStr| find(memory, name);
        // Not there yet while the JVM starts; on Linux it is always this.
        let frequency = counter(c"sun.os.hrt.frequency").map_or(1_000_000_000, Counter::get);
        if frequency != 1_000_000_000 {
            return None;
        }
        Some(ClassCounters {
            counts: [
                counter(c"java.cls.loadedClasses")?,
                counter(c"java.cls.sharedLoadedClasses")?,
                counter(c"java.cls.unloadedClasses")?,
                counter(c"java.cls.sharedUnloadedClasses")?,
            ],
            times: [
                counter(c"sun.cls.appClassLoadTime.self")?,
                counter(c"sun.cls.defineAppClassTime.self")?,
                counter(c"sun.cls.sysClassLoadTime")?,
                counter(c"sun.cls.sharedClassLoadTime")?,
                counter(c"sun.cls.classLinkedTime.self")?,
                counter(c"sun.cls.classVerifyTime.self")?,
            ],
        })
    });
    counters.as_ref()
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
