//! A profile from a stream that anybody may have written, for fuzzers. No part of the interface.

use super::collect::{Addresses, Allocation, Classes, Clock, Collector, JniRefs, Locks, Samples};
use std::fs::File;
use tare_arena::samples::{Stream, StreamError};
use tare_profile::Profile;
use tare_symbols::Symbol;

/// Functions by their addresses alone: there is no process.
struct Bare;

impl Addresses for Bare {
    fn native(&mut self, address: u64) -> Symbol {
        Symbol { name: format!("{address:x}").into(), module: "native".into() }
    }

    fn kernel(&mut self, address: u64) -> Symbol {
        Symbol { name: format!("{address:x}").into(), module: "kernel".into() }
    }

    fn unread(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Everything that the stream tells, taken in two looks as a recording takes it.
pub fn untrusted_profile(files: [File; 2]) -> Result<Profile, StreamError> {
    let mut stream = Stream::new(files)?;
    let totals = stream.totals()?;
    let mut profile = Profile::new();
    let samples = Samples::new(Clock::Wall, totals.interval);
    let allocation = Allocation::new(1 << 19, true);
    let mut collector = Collector::new(Some(samples), Some(allocation), totals.started, Bare)
        .with_locks(Some(Locks::default()))
        .with_classes(Some(Classes::default()))
        .with_jni_refs(Some(JniRefs::default()));
    let mut records = Vec::new();
    let drained = stream.drain(|record| records.push(record));
    collector.add(&mut profile, records.drain(..), false);
    if drained.is_ok() {
        let _ = stream.drain_rest(|record| records.push(record));
    }
    collector.add(&mut profile, records, true);
    collector.account(&mut profile.run);
    Ok(profile)
}
