//! What is computed from a profile: trees, lists, comparisons, findings. Pure: no files, no JVMs,
//! no terminal.
//!
//! Everything starts with [`Tree::build`], which applies a [`Filter`] to one or several series of a
//! profile. From a tree come the tree with the small folded ([`Tree::fold_small`]), the tree upside
//! down ([`Tree::bottom_up`]), hot lists ([`hot_list`]) and the neighbours of a method
//! ([`neighbours`]). Two trees make a [`Diff`].
//!
//! One law holds for each of them: the sum of all own values is the total of the root. Nothing is
//! lost by hiding, folding or grouping; it only moves to where the label says.

#![forbid(unsafe_code)]

mod around;
mod aside;
mod both;
mod bounds;
mod calibration;
mod calls;
mod classes;
pub mod climb;
mod collections;
mod comings;
mod compensate;
mod diff;
mod drawn;
mod filter;
mod findings;
mod hash;
mod hot;
mod idle;
mod jni_refs;
mod join;
mod labels;
mod lengths;
mod locks;
mod memory;
mod method_type;
mod metrics;
mod moment;
mod narrow;
mod noise;
mod pairs;
mod pauses;
mod probes;
mod regions;
mod runs;
mod sandwich;
mod select;
mod sequences;
mod slowest;
mod target;
mod threads;
mod tree;
mod unstable;
mod upside;
mod waits;
mod workers;

pub use around::{Around, EventRef, NoEvent};
pub use aside::{
    Aside, Asides, Idle, NATIVE_THREADS, NO_JAVA, OF_JVM, OF_NATIVE, set_aside, set_aside_of_series,
};
pub use bounds::Bounds;
pub use calibration::{Bounded, Calibration};
pub use calls::{ELAPSED, figures_of_calls};
pub use classes::{
    ClassCheck, ClassCosts, Classes, Duplicate, LoadSum, LoadedClass, LoaderSum, StartUp,
    is_of_classes,
};
pub use collections::Collections;
pub use comings::{Coming, Comings, Lives};
pub use compensate::{
    CALLING, CALLS_VARIANCE, Compensation, TIME_VARIANCE, TIMED_CALLS, TOTAL_VARIANCE, UNTIMED,
    bounds_of, compensate,
};
pub use diff::{Change, Diff, DiffNode, DiffOptions, Doubt, Growth};
pub use drawn::Drawn;
pub use filter::{AnalysisError, Filter, Grouping};
pub use findings::{
    Finding, FindingKind, blocked_samples, costliest, findings, held_up, is_of_locks,
    lock_findings, memory_findings, nobody_waited, pause_findings, slow_calls, tells_who_ran,
    who_allocated, who_held_up,
};
pub use hot::{Hot, Neighbours, hot_list, neighbours, passing_on};
pub use jni_refs::{JniRefs, JniSite};
pub use join::{JOINED, Joined, JoinedSums, join};
pub use labels::{Label, LabelKind};
pub use lengths::{CallLengths, Lengths};
pub use locks::{
    Doing, Executor, Holder, Idle as IdleWaits, Lock, Locks, OWNERS, POINTS, Pair, Place, Queue,
    Sum, add_owners,
};
pub use memory::{
    Ages, Amount, LiveGrowth, Memory, Site, SiteBy, SiteName, cut_to_sites, is_level, is_memory,
};
pub use method_type::MethodType;
pub use metrics::{default_metrics, find_metric};
pub use moment::{Moment, Ran, site_in_words};
pub use narrow::narrow;
pub use noise::Noise;
pub use pauses::{Compilers, PauseSum, Pauses, overlap};
pub use probes::PROBE_TIME;
pub use regions::{Passages, Region, regions};
pub use runs::fold_path;
pub use sequences::{Calls, PARTS, Sequence, Sequences, Transition};
pub use slowest::{Difference, KeptCall, Slowest, mean_of};
pub use target::{TARGET_TIME, TargetError};
pub use threads::{ThreadShare, by_thread};
pub use tree::{Children, LabelId, NodeId, Tree};
pub use unstable::{is_service, is_unstable};
pub use waits::{Circle, Waiter, Waiting, Waits, waits};
