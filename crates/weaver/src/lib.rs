//! From class bytes and a plan to woven bytes, or to a named refusal.
//!
//! A pure function: no files, no threads, no JVM. The plan says which methods get which probes;
//! what the probes call is part of the plan too ([`Probes`]), so that the agent, the offline tool
//! and the tests share one weaver. Refusals are per method: the rest of the class is woven, and a
//! method that cannot be woven rightly stays byte for byte as it was.
//!
//! The same bytes and the same plan give the same result, always: ids come from the plan, new
//! constants are appended in a fixed order and existing ones are used again.
#![forbid(unsafe_code)]

mod asm;
mod blocks;
mod body;
mod check;
#[cfg(test)]
#[path = "../tests/support/compiled.rs"]
mod compiled;
mod constructor;
mod frames;
mod method;
mod plan;
mod probes;
mod regions;
mod scan;
mod simulate;
mod sites;
mod tables;
mod types;
mod watched;
mod weave;

pub use blocks::{BlockAnalysis, Blocks};
pub use plan::{ClassError, Line, MethodInfo, MethodOutcome, MethodPlan, MethodReport};
pub use plan::{Options, Outcome, Refusal, RegionPlan, Report, Site, SiteKind};
pub use probes::{
    ActivationProbe, Arg, Call, CallProbe, CountProbe, FrameProbe, Placement, ProbeError, ProbeSet,
    Probes, RegionProbe,
};
pub use sites::{AllocationProbe, How, Maker, Makes, SiteInfo, WatchProbe};
pub use weave::Weaver;
