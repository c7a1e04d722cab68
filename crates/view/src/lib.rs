//! The live page of `tare view`: a server on loopback, what its page asks, and the page.
//!
//! Everything is computed here, beside the data; the page draws. It is served from memory to
//! whoever has the link. Where the figures come from is a [`Source`], which the front end brings:
//! this crate knows no files, no JVM and no flags. API.md has what is asked and answered.

#![forbid(unsafe_code)]

mod access;
mod flame;
mod graph;
mod http;
mod prepared;
mod queries;
mod server;
mod source;
mod view;

#[doc(hidden)]
pub use access::untrusted_request;
pub use queries::SECTIONS;
pub use server::{Handle, Server};
pub use source::{
    Against, Code, CodeOf, Export, Kind, Loaded, Problem, Shown, Source, State, Wish,
};
pub use view::View;
