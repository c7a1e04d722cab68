//! Objects in a copy that a recording of allocation has sampled, with the numbers by which it knows
//! them: the agent's table says where the JVM has the address of each.

use super::copy::Copy;
use crate::error::Result;
use tare_heapdump::snapshot::Sample;
use tare_protocol::heap::wire::Watched;

/// The agent's table is no larger.
const MOST: u64 = 1 << 24;

pub fn read(copy: &mut Copy) -> Result<Vec<Sample>> {
    let (at, count) = (copy.hello.watched, copy.hello.watched_count.min(MOST));
    let mut samples = Vec::new();
    for number in 0..count {
        let mut bytes = [0; Watched::BYTES];
        copy.bytes(at + number * Watched::BYTES as u64, &mut bytes)?;
        let Watched { slot, number } = Watched::decode(&bytes);
        // One that was collected has none.
        match copy.u64_at(slot) {
            Ok(object) if object != 0 => samples.push(Sample { object, number }),
            _ => {}
        }
    }
    Ok(samples)
}
