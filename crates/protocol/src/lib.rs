//! What the agent inside a JVM and the tool outside agree on: names, options and messages.
//!
//! This crate knows nothing of sockets or threads; it turns values into bytes and back. The wire
//! format is described in PROTOCOL.md beside this crate. Neither end trusts the other: every
//! decoder here is total, bounded, and never panics.
#![forbid(unsafe_code)]

mod alloc;
mod classes;
mod counters;
mod engine;
mod exact;
mod explain;
mod fields;
mod fits;
pub mod heap;
mod hooks;
mod jni_refs;
mod locks;
mod message;
mod names;
mod nearest;
mod options;
mod pauses;
mod progress;
mod region;
mod requests;
mod sampling;
mod threads;

pub use alloc::{AllocPlan, AllocStatus, Unwatched};
pub use classes::{ClassCost, ClassPlan, ClassStatus};
pub use counters::EventCounts;
pub use engine::{EngineChange, EngineName, EnginePlan, EngineStatus};
pub use exact::{
    BlockAnalysis, BytecodeSamples, COST_PS, Counted, ExactPlan, ExactStatus, Figures, Follow,
    Measure, Refusal, Roots, Scheme, SomeTimes, SubgraphStatus, TracePlan, TreePlan, TreeRoots,
};
pub use explain::{Explained, Explanations};
pub use fits::{Fit, Found};
pub use heap::{HeapPlan, HeapStatus};
pub use hooks::{HookPlan, HookStatus};
pub use jni_refs::{JniRefsPlan, JniRefsStatus};
pub use locks::{LockPlan, LockStatus, LockWait};
pub use message::{Decoder, MAX_FRAME, Message, WireError};
pub use names::{
    BUILD_ID, BUILD_MARKER, CHECK_PREFIX, COMMAND_SOCKET, CONTROL_SOCKET, MEETING_SOCKET, PROTOCOL,
    VERSION, command_dir_name, control_dir_name, library_name, meeting_dir_name, parse_command_dir,
    parse_control_dir, socket_in,
};
pub use nearest::{Nearest, nearest};
pub use options::{AgentOptions, GRACE, OptionError};
pub use pauses::PausesStatus;
pub use progress::{Activity, BatchProgress, PROGRESS_BYTES, PROGRESS_MEMORY};
pub use region::{REGIONS_MAX, Region};
pub use requests::{ErrorCode, Greeting, LoadedBy, Request, Response, Started, Status};
pub use sampling::{SamplePlan, SampleStatus, SampleTrigger};
pub use tare_java_names::{MethodPattern, MethodPatternError, Pattern, PatternError, TypePattern};
pub use threads::{
    DumpError, DumpedFrame, DumpedStack, DumpedThread, Held, How, Os, Stalled, State, ThreadDump,
    ThreadsPlan, Wait,
};
