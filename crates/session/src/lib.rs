//! Recording sessions: what stands between a front end and the agent in a JVM.

pub mod agents;
pub mod client;
pub mod command_socket;
pub mod completion;
mod demotion;
pub mod engines;
mod error;
pub mod exact;
pub mod files;
mod last_minutes;
pub mod launch;
pub mod library;
mod observer;
mod origins;
mod patterns;
pub mod perf;
mod plan;
mod recorder;
mod recording;
mod reference_methods;
mod regions;
pub mod rescuer;
pub mod sampling;
mod steering;
mod thread_counters;
mod trace;
mod weaving;
mod window;
pub mod words;

pub use engines::{Figures, Finished, Outcome, What};
pub use error::{Error, Result};
pub use observer::{Happening, Note, Observer, Progress, Weaving};
pub use plan::{Output, Place, Plan};
pub use recorder::{Recorded, has_no_room};
pub use recording::{Begun, End, Recording, State, begin};
pub use reference_methods::is_woven;
