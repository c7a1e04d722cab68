//! The agent inside this program (`build.rs` puts it there); none in debug builds.

include!(concat!(env!("OUT_DIR"), "/carried.rs"));
