//! Which threads are the JVM's own and what they are there for: nothing but their names tells.

/// What a thread that is none of the program's does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JvmThread {
    /// Compiles methods.
    Compiler,
    /// Collects garbage.
    Collector,
    /// Works for the JVM otherwise, never in Java: the thread of safepoints, timers.
    Internal,
    /// A thread of HotSpot's own that can run Java, and mostly does not.
    Service,
    /// Runs Java code of the JDK when there is something to do: cleaners, the flight recorder.
    Helper,
}

/// How the names begin. The kernel keeps 15 characters of a name, so none here is longer.
const NAMES: [(&str, JvmThread); 33] = [
    ("C1 CompilerThre", JvmThread::Compiler),
    ("C2 CompilerThre", JvmThread::Compiler),
    ("JVMCI", JvmThread::Compiler),
    ("GC Thread#", JvmThread::Collector),
    ("G1 ", JvmThread::Collector),
    ("Shenandoah", JvmThread::Collector),
    ("StringDedup", JvmThread::Collector),
    ("ZDirector", JvmThread::Collector),
    ("ZDriver", JvmThread::Collector),
    ("ZStat", JvmThread::Collector),
    ("ZWorker", JvmThread::Collector),
    ("ZUncommitter", JvmThread::Collector),
    ("ZUnmapper", JvmThread::Collector),
    ("ZRelocation", JvmThread::Collector),
    ("XDirector", JvmThread::Collector),
    ("XDriver", JvmThread::Collector),
    ("XStat", JvmThread::Collector),
    ("XWorker", JvmThread::Collector),
    ("VM Thread", JvmThread::Internal),
    ("VM Periodic Tas", JvmThread::Internal),
    ("Sweeper thread", JvmThread::Internal),
    ("Dcmd", JvmThread::Internal),
    ("Signal Dispatch", JvmThread::Service),
    ("Attach Listener", JvmThread::Service),
    ("Notification Th", JvmThread::Service),
    ("Service Thread", JvmThread::Service),
    ("Monitor Deflati", JvmThread::Service),
    ("Reference Handl", JvmThread::Helper),
    ("Finalizer", JvmThread::Helper),
    ("Common-Cleaner", JvmThread::Helper),
    ("Cleaner-", JvmThread::Helper),
    ("process reaper", JvmThread::Helper),
    ("JFR ", JvmThread::Helper),
];

/// What a thread of this name is there for, if it is none of the program's. The name is Java's or
/// what the kernel keeps of it.
#[must_use]
pub fn jvm_thread(name: &str) -> Option<JvmThread> {
    NAMES.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_by_java_and_by_the_kernel() {
        for (name, expected) in [
            ("C2 CompilerThread0", JvmThread::Compiler),
            ("C1 CompilerThre", JvmThread::Compiler),
            ("GC Thread#3", JvmThread::Collector),
            ("G1 Main Marker", JvmThread::Collector),
            ("VM Thread", JvmThread::Internal),
            ("VM Periodic Task Thread", JvmThread::Internal),
            ("Signal Dispatcher", JvmThread::Service),
            ("Monitor Deflati", JvmThread::Service),
            ("Reference Handler", JvmThread::Helper),
            ("JFR Recorder Thread", JvmThread::Helper),
        ] {
            assert_eq!(jvm_thread(name), Some(expected), "{name}");
        }
        for name in ["", "main", "java", "worker-1", "GC tuner", "c2", "Reference", "JFRunner"] {
            assert_eq!(jvm_thread(name), None, "{name}");
        }
    }

    #[test]
    fn the_kernel_could_keep_every_beginning() {
        for (beginning, _) in NAMES {
            assert!(beginning.len() <= 15, "{beginning}");
        }
    }
}
