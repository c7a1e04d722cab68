//! Whether a copy of this JVM can be made, and would hurt nobody.

use crate::exact::headroom::Headroom;
use crate::vm_tables::{Tables, word};
use std::fs;

/// The addresses that objects may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapRange {
    pub start: u64,
    pub end: u64,
}

/// Why there will be no copy. Each text is followed by what can be done instead.
type Refusal = String;

/// What to do where no copy can be made at all.
pub const INSTEAD: &str =
    "HotSpot's own dump works there (`--fallback`), but stops the program while it is written";

pub fn ask(tables: &Tables) -> Result<HeapRange, Refusal> {
    if tables.flag("UseZGC") == Some(true) {
        return Err(format!(
            "the heap of a JVM with ZGC is memory that a copy would share, so it would change \
             while it is read; {INSTEAD}"
        ));
    }
    let heap = range(tables)?;
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if is_shared(&maps, heap) {
        return Err(format!(
            "this JVM's heap is shared memory (-XX:+UseSHM, or -XX:AllocateHeapAt), so a copy \
             would change while it is read; {INSTEAD}"
        ));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = kilobytes(&status, "VmRSS:").unwrap_or(0) << 10;
    if !Headroom::new().allows_for_a_moment(resident / 4) {
        return Err(format!(
            "the container has less memory left than a quarter of what the JVM holds ({} MiB). \
             Every page that the program writes while the copy is read is there twice, and the \
             kernel would kill in a container that is full; give it more memory for the moment, \
             or take HotSpot's own dump (`--fallback`), which stops the program while it is \
             written",
            resident >> 20
        ));
    }
    let accounted = kilobytes(&status, "VmData:").unwrap_or(0) << 10;
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    strict_accounting(&mode, &memory, accounted)?;
    Ok(heap)
}

fn range(tables: &Tables) -> Result<HeapRange, Refusal> {
    let found = || {
        let heap = tables.static_value("Universe", "_collectedHeap").ok()?;
        let reserved = heap + tables.field("CollectedHeap", "_reserved")?.offset;
        let start = reserved + tables.field("MemRegion", "_start")?.offset;
        let words = reserved + tables.field("MemRegion", "_word_size")?.offset;
        // SAFETY: fields of the heap's structure, which the JVM made at its start and keeps.
        let (start, words) = unsafe { (word(start), word(words)) };
        let end = start.checked_add(words.checked_mul(8)?)?;
        (start != 0 && end > start).then_some(HeapRange { start, end })
    };
    found().ok_or_else(|| format!("this JVM does not tell where its heap is; {INSTEAD}"))
}

/// Whether any mapping inside a range is shared with others.
fn is_shared(maps: &str, heap: HeapRange) -> bool {
    maps.lines().any(|line| {
        let mut parts = line.split(' ');
        let (place, rights) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let Some((start, end)) = place.split_once('-') else { return false };
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        number(start) < heap.end && number(end) > heap.start && rights.ends_with('s')
    })
}

/// Where the kernel promises no more memory than there is, a copy counts in full.
fn strict_accounting(mode: &str, memory: &str, needed: u64) -> Result<(), Refusal> {
    if mode.trim() != "2" {
        return Ok(());
    }
    let number = |key| kilobytes(memory, key).unwrap_or(0) << 10;
    let left = number("CommitLimit:").saturating_sub(number("Committed_AS:"));
    // The program must be able to get memory afterwards, too.
    if left >= needed.saturating_add(needed / 4) {
        return Ok(());
    }
    Err(format!(
        "this machine promises no more memory than it has (vm.overcommit_memory is 2), and of it \
         {} MiB are left, where a copy of the JVM counts {} MiB; {INSTEAD}",
        left >> 20,
        needed >> 20
    ))
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_in_the_heap_is_seen() {
        let maps = "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
                    7f0000200000-7f0000400000 rw-s 00000000 00:05 7 /memfd:java_heap (deleted)\n";
        let heap = |start, end| HeapRange { start, end };
        assert!(is_shared(maps, heap(0x7f00_0010_0000, 0x7f00_0030_0000)));
        assert!(!is_shared(maps, heap(0x7f00_0000_0000, 0x7f00_0020_0000)));
        assert!(!is_shared(maps, heap(0x7f00_0040_0000, 0x7f00_0050_0000)));
    }

    #[test]
    fn a_copy_counts_in_full_where_memory_is_promised_once() {
        let memory = "CommitLimit:     1000000 kB\nCommitted_AS:     600000 kB\n";
        let asked = |mode: &str, kilobytes: u64| strict_accounting(mode, memory, kilobytes << 10);
        // A quarter more than the copy has to be left.
        assert_eq!(asked("2\n", 320_000), Ok(()));
        let refusal = asked("2\n", 320_001).unwrap_err();
        assert!(
            refusal.contains("390 MiB are left") && refusal.contains("--fallback"),
            "{refusal}"
        );
        assert_eq!(asked("0\n", 1 << 40), Ok(()));
        assert_eq!(asked("1\n", 1 << 40), Ok(()));
        assert!(strict_accounting("2\n", "", 1).is_err(), "a kernel that tells nothing");
    }

    #[test]
    fn figures_of_the_kernel_are_kilobytes() {
        assert_eq!(kilobytes("VmPeak:\t 7 kB\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12));
        assert_eq!(kilobytes("VmPeak:\t 7 kB\n", "VmRSS:"), None);
    }
}
