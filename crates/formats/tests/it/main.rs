//! Formats as a user meets them: whole files, read and written through the crate's front door.

#![forbid(unsafe_code)]

mod deep;
mod flamegraph_page;
mod hostile;
mod memory;
mod one_total;
mod readers;
mod real_files;
mod round_trip;
mod support;
mod totals;
