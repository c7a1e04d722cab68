//! Recordings written and read back: whole, growing, cut short, damaged, hostile, old and new.

mod damage;
mod future;
mod growing;
mod made;
mod roundtrip;
mod samples;
