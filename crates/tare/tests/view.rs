//! `tare view` as a browser and as somebody hostile meet it, on a recording made here. The page's
//! figures are those of `tare report`.

#![forbid(unsafe_code)]

mod view {
    pub mod code;
    pub mod heap;
    pub mod locks;
    pub mod look;
    pub mod page;
    pub mod scale;
    pub mod share;
    pub mod support;
    pub mod times;
}
