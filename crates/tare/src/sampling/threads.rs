//! Which threads are the JVM's own: nothing but their names tells.

/// How names of HotSpot's own threads begin. The kernel keeps 15 characters of a name.
const OF_JVM: &[&str] = &[
    "C1 CompilerThre",
    "C2 CompilerThre",
    "GC Thread#",
    "G1 ",
    "VM Thread",
    "VM Periodic Tas",
    "Monitor Deflati",
    "Service Thread",
    "Signal Dispatch",
    "Sweeper thread",
    "Shenandoah",
    "ZDirector",
    "ZDriver",
    "ZStat",
    "ZWorker",
    "ZUncommitter",
    "ZUnmapper",
    "ZRelocation",
    "XDirector",
    "XDriver",
    "XStat",
    "XWorker",
    "Cleaner-",
    "JFR ",
    "StringDedup",
    "Attach Listener",
    "Notification Th",
    "JVMCI",
    "Dcmd",
];

pub fn is_of_jvm(name: &str) -> bool {
    OF_JVM.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_and_collectors_are_of_the_jvm() {
        for name in ["C2 CompilerThre", "C1 CompilerThread0", "GC Thread#3", "G1 Main Marker"] {
            assert!(is_of_jvm(name), "{name}");
        }
        for name in ["", "main", "java", "worker-1", "GC tuner", "c2"] {
            assert!(!is_of_jvm(name), "{name}");
        }
    }
}
