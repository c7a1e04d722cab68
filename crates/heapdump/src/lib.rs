//! Heap dumps: what is in them, and who holds it.
//!
//! A dump (`hprof`) is a [`Source`] of objects. `graph` numbers them in the order of addresses and
//! keeps who refers to whom; `dominators` finds what each object keeps alive alone. A [`Heap`] is
//! both, and what the analyses ask.
//!
//! Dumps are files of others: whatever is wrong with one costs bounded memory and ends in an error
//! or in a note.
#![forbid(unsafe_code)]

mod addresses;
pub mod analyses;
mod classes;
mod conventions;
mod dominators;
mod error;
mod graph;
mod heap;
mod hprof;
mod ids;
mod image;
pub mod index;
mod input;
mod known;
mod layout;
mod levels;
mod needs;
mod par;
mod path;
mod progress;
mod roots;
pub mod snapshot;
mod source;
mod unpack;
mod values;
mod window;

pub use classes::{Class, ClassId, Classes, Field, Kind, StaticField, Strength, Type};
pub use conventions::Conventions;
pub use error::{HeapError, Result};
pub use graph::Losses;
pub use heap::{Heap, Options};
pub use hprof::{ClassOut, Width, Writer};
pub use ids::Node;
pub use input::Input;
pub use levels::{Level, Sum};
pub use path::{By, Path, Step};
pub use progress::{Progress, Silent};
pub use roots::{Root, RootKind, Thread};
pub use source::{About, Decoder};
pub use values::{FieldValue, Inside, Value};
