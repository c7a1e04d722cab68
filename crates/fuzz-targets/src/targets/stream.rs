//! The stream of an agent, drained and collected into a profile, as whoever records a JVM does it.

use super::file;
use tare_arena::samples::layout::{self, HEADER, POSITION, RING_SMALLEST, header};

/// The first byte says whether the bytes behind it begin in the header (odd) or in the ring.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let mut bytes = vec![0; HEADER];
    bytes[header::MAGIC..][..8].copy_from_slice(&layout::MAGIC.to_le_bytes());
    bytes[header::CAPACITY..][..8].copy_from_slice(&RING_SMALLEST.to_le_bytes());
    let (head, ring) = rest.split_at(rest.len().min(usize::from(choice & 1) * 128));
    bytes[header::HEAD..][..8].copy_from_slice(&(ring.len() as u64).to_le_bytes());
    // Format and size stay: others are refused at once.
    let from = header::HEAD;
    bytes[from..from + head.len()].copy_from_slice(head);
    bytes.extend(ring);
    let ring = file(&bytes, HEADER + RING_SMALLEST as usize);
    let Ok(profile) = tare_session::untrusted_profile([ring, file(&[], POSITION)]) else { return };
    profile.check().expect("a sound profile");
}
