//! One file per verb.

pub mod calibrate;
pub mod check;
pub mod class;
pub mod climb;
pub mod detach;
pub mod diff;
pub mod explain;
pub mod export;
pub mod heap;
pub mod instrument;
pub mod list;
pub mod record;
pub mod relay;
pub mod report;
pub mod run;
pub mod status;
pub mod threads;
pub mod top;
pub mod under_way;
pub mod view;
