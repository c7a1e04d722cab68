//! The data model of everything that Tare measures: what ran, where, in which thread, how much.
//!
//! A [`Profile`] is a handful of tables. Small ones (methods, threads) hold rows; those that grow
//! to millions (contexts, values) are columns of numbers. Tables name each other's rows by typed
//! handles of 32 bits, so that a method cannot be looked up with a frame's number.
//!
//! ```text
//! strings ◄── methods ◄── frames ◄── contexts ◄── series (value of a context, thread, time)
//!    ▲                                  ▲
//!    └────── threads                    └──────── events (at a time, in a thread and context)
//! ```
//!
//! This crate knows nothing of files, of JVMs, or of what is computed from a profile: `recording`
//! stores it, `analysis` makes trees and lists of it, `formats` translates it.
//!
//! ```
//! use tare_profile::{Frame, Method, Profile, Row, SeriesInfo, ThreadId, ValueKind};
//!
//! let mut profile = Profile::new();
//! let (class, name) = (profile.strings.intern("com.acme.Orders"), profile.strings.intern("place"));
//! let method = profile.methods.intern(Method { class, name, ..Method::default() });
//! let frame = profile.frames.intern(Frame::of(method));
//! let context = profile.contexts.stack([frame]);
//! let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
//! profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, 3));
//! assert_eq!(profile.series(series).total(), 3);
//! assert_eq!(profile.method_name(method), "com.acme.Orders.place");
//! ```

#![forbid(unsafe_code)]

mod column;
mod contexts;
mod events;
pub mod facts;
mod followed;
mod frames;
mod handle;
mod index;
mod merge;
mod methods;
mod packed;
mod pauses;
mod profile;
mod run;
mod series;
mod strings;
mod threads;
mod values;
mod wait;

pub use column::Column;
pub use contexts::Contexts;
pub use events::{
    Event, EventKind, EventTable, FieldColumn, FieldInfo, FieldType, FieldValue, LockFields,
};
pub use facts::{Fact, Facts};
pub use frames::{Execution, Frame, Frames};
pub use handle::{ContextId, EventTableId, FrameId, MethodId, SeriesId, StringId, ThreadId};
pub use merge::Merger;
pub use methods::{Method, MethodKind, Methods};
pub use packed::Packed;
pub use pauses::{
    Collection, Compiled, Safepoint, Traps, collections, compiled, safepoints, traps,
};
pub use profile::{Invalid, Profile};
pub use run::{Loss, LossKind, RunInfo};
pub use series::{Row, Rows, Series, SeriesInfo, TimeAxis};
pub use strings::Strings;
pub use threads::{Thread, ThreadKind, Threads};
pub use values::{Estimate, JniReferences, Unit, ValueKind};
pub use wait::Wait;
