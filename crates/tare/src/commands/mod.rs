//! One file per verb.

pub mod class;
pub mod detach;
pub mod list;
pub mod record;
pub mod run;
pub mod status;
