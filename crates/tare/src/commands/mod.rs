//! One file per verb.

pub mod detach;
pub mod list;
pub mod run;
pub mod status;
