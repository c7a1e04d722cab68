//! What is recorded and looked at, as words for `tare`: every engine alone and several together.

/// Options of `tare record` that weave nothing, or only classes of the JDK.
pub const SAMPLED: &[&[&str]] = &[
    &["--cpu"],
    &["--interval", "1ms"],
    &["--wall"],
    &["--wall", "--interval", "1ms", "--threads"],
    &["--java-only"],
    &["--engine", "timer", "--interval", "500us"],
    &["--engine", "safepoint"],
    &["--keep", "1m"],
    &["--alloc"],
    &["--alloc", "--interval-bytes", "16K"],
    &["--alloc", "--no-live"],
    &["--lock"],
    &["--lock=full"],
    &["--lock=full", "--lock-threshold", "0"],
    &["--classes"],
    &["--jni-refs"],
    &["--cpu", "--alloc"],
    &["--wall", "--lock"],
    &["--cpu", "--alloc", "--lock", "--classes", "--jni-refs"],
    &["--wall", "--alloc", "--lock=full", "--classes", "--jni-refs"],
];

/// Options of `tare record` that weave classes of the program.
pub const WOVEN: &[&[&str]] = &[
    &["--exact", "--count"],
    &["--exact"],
    &["--exact", "--time-all"],
    &["--exact", "--time-some"],
    &["--exact", "--cpu-time"],
    &["--exact", "--counters"],
    &["--exact", "--count", "--fold-recursion"],
    &["--exact", "--count", "--memory", "16M"],
    &["--exact", "--count", "--include", "java.util.**", "--include", "Chaos*"],
    &["--exact", "--cpu", "--window", "1s"],
    &["--exact", "--overhead", "5%"],
    &["--exact", "--root", "ChaosHandsOver.round"],
    &["--exact", "--root", "ChaosLocks.round", "--follow-threads"],
    &["--exact", "--root", "ChaosReflects.round", "--scheme", "eager"],
    &["--exact", "--root", "ChaosComputes.round", "--follow", "1/4"],
    &["--exact", "--root", "ChaosSpins.round", "--count", "--scheme", "all"],
    &["--exact", "--root", "ChaosThrows.round", "--overhead", "5%"],
    &["--bytecodes"],
    &["--bytecodes", "--blocks", "precise", "--allocations"],
    &["--bytecodes", "--every", "10000"],
    &["--alloc-exact"],
    &["--alloc-exact", "--live", "ChaosGuest"],
    &["--trace", "--rate", "20000"],
    &["--trace", "--root", "ChaosSpins.round", "--ring", "64K"],
    &["--region", "ChaosComputes.numbers"],
    &["--region", "ChaosThrows.thrower", "--exact", "--count"],
];

/// Commands that record and are none of `tare record`.
pub const CLIMBS: &[&[&str]] =
    &[&["climb"], &["climb", "--metric", "wall"], &["climb", "--metric", "calls", "--top", "5"]];

/// Commands that look once; the JVM's pid is added.
pub const LOOKS: &[&[&str]] = &[
    &["status"],
    &["status", "--json"],
    &["threads"],
    &["threads", "--full"],
    &["threads", "--json"],
    &["heap", "-q"],
    &["heap", "-q", "--redact"],
    &["top", "-n", "2", "--every", "1s"],
    &["top", "-n", "1", "--every", "2s", "--wall", "--json"],
    &["doctor"],
    &["pause"],
    &["resume"],
    &["report"],
];
