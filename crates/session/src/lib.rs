//! Recording sessions: what stands between a front end and the agent in a JVM.
//!
//! A front end (the command line, a web page, a terminal view) says what to record as a [`Plan`],
//! begins it, polls it until it is over, and finishes it. This crate brings the agent into the JVM
//! or starts the program, keeps the recording on disk while it grows, and puts the JVM back as it
//! was. It knows no flags, prints nothing, and its errors can be told apart ([`Error`]).
//!
//! ```no_run
//! use tare_session::engines::stream;
//! use tare_session::{Begun, Note, Observer, Place, Plan, State, What, agents};
//! use std::path::PathBuf;
//! use std::time::Duration;
//!
//! /// Hears what there is to say, and never wants a recording to end before its time.
//! struct Log;
//!
//! impl Observer for Log {
//!     fn note(&mut self, note: Note) {
//!         println!("{note:?}");
//!     }
//! }
//!
//! fn main() -> Result<(), tare_session::Error> {
//!     let jvm = tare_attach::find("4711")?;
//!     let mut agent = agents::enter(&jvm, Duration::from_secs(10), None)?;
//!     let plan = Plan {
//!         what: What::Stream(stream::Plan {
//!             samples: Some(stream::Samples::default()),
//!             ..stream::Plan::default()
//!         }),
//!         duration: Some(Duration::from_secs(30)),
//!         command: Vec::new(),
//!     };
//!     let mut place = || Place::from(PathBuf::from("shop.tare"));
//!     let begun = tare_session::begin(&mut agent, &jvm, &plan, &mut place, &mut Log)?;
//!     let Begun::Recording(mut recording) = begun else { return Ok(()) };
//!     loop {
//!         match recording.poll(&mut Log) {
//!             State::Going => {}
//!             State::Progress(progress) => println!("{:?}", progress.figures),
//!             State::Over => break,
//!         }
//!     }
//!     let end = recording.finish(&mut Log);
//!     println!("{:?}", end.finished?.outcome);
//!     end.waiting.answer();
//!     Ok(())
//! }
//! ```
//!
//! # The parts
//! - [`Plan`] and [`What`]: what is recorded. Each engine has a plan of its own, in [`engines`].
//! - [`begin`] blocks until the engine is under way; weaving a large program takes seconds. The
//!   [`Observer`] is told how far it is, and may end it.
//! - [`Recording::poll`] does what is due and waits for some milliseconds. Call it in a loop: what
//!   is measured waits in memory of limited size. [`Recording::command`] carries out a [`Command`].
//! - [`Recording::finish`] restores the program's code and completes the file. What came of it is
//!   an [`Outcome`].
//! - [`Output`]: a recording goes into a file, or to anything that can be written, also by a slow
//!   link. Nothing is sought.
//! - [`command_socket`]: every recording listens there, so that another process can dump or stop
//!   it.
//! - [`launch`]: starts a program, and hands over each of its JVMs before its `main` runs.
//! - [`agents`]: brings the agent into a JVM that runs, and has it leave.
//!
//! # What a front end must do
//! Call `tare_attach::run_if_child` and [`rescuer::run_if_rescuer`] first thing in `main`. The one is
//! needed to enter containers and JVMs of other users, the other to complete an exact recording whose
//! tool was killed. Without them such JVMs cannot be entered, and such recordings end at the last look.
//!
//! Sentences in notes and errors name flags and commands of `tare` where those are the remedy.

pub mod agents;
mod backlog;
pub mod client;
mod climb;
pub mod command_socket;
pub mod completion;
mod demotion;
pub mod engines;
mod error;
pub mod exact;
pub mod files;
mod following;
pub mod heap;
mod java_method;
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
mod roots;
pub mod sources;
mod steering;
mod stream;
mod thread_counters;
pub mod threads;
mod trace;
mod weaving;
mod window;
pub mod words;

pub use command_socket::Command;
pub use engines::{Figures, Finished, Outcome, Part, What};
pub use error::{Error, Result};
pub use observer::{Happening, Note, Observer, Progress, Weaving};
pub use plan::{Link, Output, Place, Plan};
pub use recorder::{Recorded, has_no_room};
pub use recording::{Begun, End, Recording, State, begin, begin_beside};
pub use reference_methods::is_woven;
#[doc(hidden)]
pub use stream::untrusted_profile;
