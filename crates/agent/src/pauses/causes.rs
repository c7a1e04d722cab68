//! Why the JVM collects, in its own words (`GCCause::to_string` of JDK 17 to 25). The list is here
//! because a collection must not send texts while the world stands still; only their numbers.

/// What [`CAUSES`] does not have.
pub const OTHER: &str = "another cause";

/// What the JVM says while it does not collect.
pub const NONE: &[u8] = b"No GC";

pub const CAUSES: [&str; 38] = [
    OTHER,
    "Allocation Failure",
    "Allocation Failure During Evacuation",
    "Allocation Profiler",
    "Allocation Rate",
    "Allocation Stall",
    "CodeCache GC Aggressive",
    "CodeCache GC Threshold",
    "Concurrent GC",
    "Diagnostic Command",
    "Ergonomics",
    "Full GC for -Xshare:dump",
    "FullGCAlot",
    "G1 Compaction Pause",
    "G1 Evacuation Pause",
    "G1 Humongous Allocation",
    "G1 Periodic Collection",
    "G1 Preventive Collection",
    "GCLocker Initiated GC",
    "Heap Dump Initiated GC",
    "Heap Inspection Initiated GC",
    "High Usage",
    "JvmtiEnv ForceGarbageCollection",
    "Metadata GC Clear Soft References",
    "Metadata GC Threshold",
    "Old Generation Expanded On Last Scavenge",
    "Old Generation Too Full To Scavenge",
    "Proactive",
    "ScavengeAlot",
    "Stopping VM",
    "System.gc()",
    "Tenured Generation Full",
    "Timer",
    "Upgrade To Full GC",
    "Warmup",
    "WhiteBox Initiated Concurrent Mark",
    "WhiteBox Initiated Full GC",
    "WhiteBox Initiated Young GC",
];

/// The number of a cause in [`CAUSES`]; `None` for what is none.
pub fn number_of(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text == NONE {
        return None;
    }
    Some(CAUSES.iter().position(|cause| cause.as_bytes() == text).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_numbers_and_none_is_none() {
        assert_eq!(number_of(b"System.gc()").map(|at| CAUSES[at]), Some("System.gc()"));
        assert_eq!(number_of(b"Something New").map(|at| CAUSES[at]), Some(OTHER));
        assert_eq!((number_of(b"No GC"), number_of(b"")), (None, None));
    }
}
