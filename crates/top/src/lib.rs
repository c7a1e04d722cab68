//! What `tare top` shows of a recording that grows, without a terminal, a file or a JVM.
//!
//! [`Model`] takes the rows of each second and keeps what the last ones were; it makes a
//! [`Snapshot`] of them: tables of methods, threads, collections, locks and classes, and lines over
//! time. [`App`] is what a person made of that: a page, an order, a filter, a row. A key changes it,
//! and may ask whoever runs it for something ([`Action`]). [`draw`] paints it. Keys out of bytes and
//! escape sequences out of cells are here as well ([`Keys`], [`Ansi`]), since they are computations,
//! too.

#![forbid(unsafe_code)]

mod ansi;
mod app;
mod draw;
mod history;
mod keys;
mod model;
mod pages;
mod table;
mod window;

pub use ansi::Ansi;
pub use app::{Action, App, Header, Paint, Standing, Weighed, Weighing};
pub use draw::draw;
pub use history::{Gauge, Gauges, History};
pub use keys::{Key, Keys};
pub use model::{Machine, Model, Snapshot, Wanted};
pub use pages::{Callable, Detail, Page};
pub use table::{Column, Row, Table, Value};
