//! The keys of facts: the one list of their names and types. FORMAT.md has the same list; a test
//! compares the two.

use super::{Bytes, FactType, Key, Mark, ProbeCost, SequenceCost};
use std::time::Duration;

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $holds:ty = $name:literal;)+) => {
        $($(#[$doc])* pub const $key: Key<$holds> = Key::new($name);)+

        /// Every key: its name and its type, as FORMAT.md has them.
        pub const ALL: &[(&str, &str)] = &[$(($name, <$holds as FactType>::TYPE)),+];
    };
}

keys! {
    /// What interrupted threads: `timer`, `perf`, `safepoint`.
    ENGINE: String = "sampling-engine";
    /// `cpu` or `wall`.
    CLOCK: String = "sampling-clock";
    /// How far apart samples of a busy thread were meant to be.
    INTERVAL: Duration = "sampling-interval";
    /// How far apart they were.
    INTERVAL_GOT: Duration = "sampling-interval-got";
    /// How many samples were taken.
    SAMPLES: u64 = "samples";
    /// What all of them stand for.
    SAMPLED_TIME: Duration = "sampled-time";
    /// What of that the sampler took itself.
    SAMPLER_TIME: Duration = "sampler-time";
    /// Intervals that passed without a sample, because one was late.
    OVERRUNS: u64 = "sampling-overruns";
    /// How many threads were sampled.
    THREADS_SAMPLED: u64 = "threads-sampled";
    /// Samples of threads that had not run since the one before.
    IDLE_SAMPLES: u64 = "idle-samples";
    /// Samples in whose stacks no method fits the patterns.
    UNMATCHED_SAMPLES: u64 = "unmatched-samples";
    /// Processor time of the process while it was sampled.
    PROCESS_CPU_TIME: Duration = "process-cpu-time";
    /// What the agent had to say.
    NOTES: Vec<String> = "notes";
    /// Only this much of the end of the run was kept.
    KEPT: Duration = "kept";
    /// How much is allocated on average from one sampled object to the next.
    ALLOCATION_INTERVAL: Bytes = "allocation-interval";
    /// How many objects were sampled.
    ALLOCATION_SAMPLES: u64 = "allocation-samples";
    /// Every allocation of woven code was counted, and none sampled.
    ALLOCATION_EXACT: bool = "allocation-exact";
    /// Collections that ended during the recording. Ages of objects are counted in them.
    COLLECTIONS: u64 = "collections";
    /// Objects in the agent's table at the end; most at any time; and what the table takes.
    LIVE_TRACKED: u64 = "live-tracked";
    LIVE_TRACKED_MOST: u64 = "live-tracked-most";
    LIVE_TABLE_BYTES: Bytes = "live-table-bytes";
    /// Only objects of these classes were followed, and each of them.
    LIVE_CLASSES: Vec<String> = "live-classes";
    /// What sampled objects stand for that no collection has proven to live or to be dead.
    LIVE_UNPROVEN_OBJECTS: u64 = "live-unproven-objects";
    LIVE_UNPROVEN_BYTES: Bytes = "live-unproven-bytes";
    /// Waits of this length and longer ones were told one by one.
    LOCK_THRESHOLD: Duration = "lock-threshold";
    /// How many that were, of every kind.
    LOCK_TOLD: u64 = "lock-told";
    /// How many of those were for what somebody had; of these, the ones whose owner is known, and
    /// has told its stack.
    LOCK_WAITS: u64 = "lock-waits";
    LOCK_OWNERS: u64 = "lock-owners";
    LOCK_OWNER_STACKS: u64 = "lock-owner-stacks";
    /// Classes that were loaded before the recording; that were loaded, linked and unloaded in it.
    CLASSES_PRESENT: u64 = "classes-present";
    CLASSES_LOADED: u64 = "classes-loaded";
    CLASSES_LINKED: u64 = "classes-linked";
    CLASSES_UNLOADED: u64 = "classes-unloaded";
    /// Loads and unloads that the JVM itself has counted meanwhile.
    CLASSES_LOADED_BY_JVM: u64 = "classes-loaded-by-jvm";
    CLASSES_UNLOADED_BY_JVM: u64 = "classes-unloaded-by-jvm";
    /// What the JVM itself has measured of loading and linking; of that, what the recording took,
    /// and what the JVM has in two of its sums.
    CLASS_TIME_BY_JVM: Duration = "class-time-by-jvm";
    CLASS_TIME_OWN: Duration = "class-time-own";
    CLASS_TIME_TWICE: Duration = "class-time-twice";
    /// What of it belongs to classes; of that, what was told while several threads loaded classes,
    /// so that it may be another's.
    CLASS_TIME: Duration = "class-time";
    CLASS_TIME_SHARED: Duration = "class-time-shared";
    /// What the JVM had measured before the recording began.
    CLASS_TIME_BEFORE: Duration = "class-time-before";
    /// The program was started to be recorded: what is told begins with its own first class.
    CLASSES_FROM_START: bool = "classes-from-start";
    /// References of native code, global and weak ones: made and deleted in the recording; deleted
    /// in it and made before.
    JNI_MADE: u64 = "jni-made";
    JNI_DELETED: u64 = "jni-deleted";
    JNI_DELETED_OLDER: u64 = "jni-deleted-older";
    /// For how long the program was sampled before anything was woven.
    SAMPLED_BEFORE: Duration = "sampled-before";
    /// Calls of some methods while samples were taken.
    MARKS: Vec<Mark> = "marks";
    /// How long it took until all was woven that was to be woven at first.
    WOVEN_AFTER: Duration = "woven-after";
    /// What probes cost beside work of known length.
    CALIBRATION: Vec<ProbeCost> = "calibration";
    /// What probes cost between two events of a trace.
    SEQUENCES: Vec<SequenceCost> = "sequences";
    /// Entries and exits that a trace has.
    TRACE_EVENTS: u64 = "trace-events";
    /// How long threads waited for room in their rings.
    TRACE_WAITED: Duration = "trace-waited";
    /// Overhead that was allowed, as a share of the program's time; then what was measured: all of
    /// it, and the parts of counting and of timing.
    OVERHEAD_BUDGET: f64 = "overhead-budget";
    OVERHEAD: f64 = "overhead";
    OVERHEAD_OF_COUNTING: f64 = "overhead-of-counting";
    OVERHEAD_OF_TIMING: f64 = "overhead-of-timing";
    /// What told the overhead, in words.
    OVERHEAD_SOURCE: String = "overhead-source";
    /// Methods that the roots reach; how many were woven; how many of those ran below a root.
    METHODS_REACHED: u64 = "methods-reached";
    METHODS_WOVEN: u64 = "methods-woven";
    METHODS_RUN: u64 = "methods-run";
    /// Methods that are empty, or only read or store a field, were left alone.
    SKIPS_TRIVIAL: bool = "skips-trivial";
    /// Of each context's calls after the first ones, one in so many was timed.
    TIMED_ONE_IN: u64 = "timed-one-in";
    /// One call of a root in so many was followed; where a budget chose that, at last. Then also the
    /// least and the most that it was.
    FOLLOWED_ONE_IN: u64 = "followed-one-in";
    FOLLOWED_LEAST: u64 = "followed-one-in-least";
    FOLLOWED_MOST: u64 = "followed-one-in-most";
    /// Calls of roots, and how many of them were followed.
    ROOT_CALLS: u64 = "root-calls";
    FOLLOWED_CALLS: u64 = "followed-calls";
    /// Identity hash codes and seeds were the same as in any other such run.
    CHANCE_FIXED: bool = "chance-fixed";
    /// Bytecodes between two samples of them.
    BYTECODES_PER_SAMPLE: u64 = "bytecodes-per-sample";
    /// The JVM whose times were estimated, in its own words.
    TARGET: String = "target-jvm";
    /// Joined with samples: how many are in woven methods, as a share of all of them, and the
    /// nanoseconds that one stands for.
    JOINED_SAMPLES: u64 = "joined-samples";
    JOINED_SHARE: f64 = "joined-share";
    JOINED_SAMPLE: f64 = "joined-sample-ns";
    /// What samples were multiplied with, and half the width of its interval, as a share.
    JOINED_SCALE: f64 = "joined-scale";
    JOINED_DOUBT: f64 = "joined-doubt";
    /// How many marks told the scale; without any, whether only the recordings' lengths did.
    JOINED_MARKS: u64 = "joined-marks";
    JOINED_BY_LENGTH: bool = "joined-by-length";
}
