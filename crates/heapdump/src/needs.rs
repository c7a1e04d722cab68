//! How much memory reading a dump takes, told before it is taken: a machine that swaps helps nobody.
//!
//! Where the references lie is known after the first walk over a dump, how many of them are null is
//! not. So this is the most that it can be; a usual heap takes a fifth less.

use crate::error::{HeapError, Result};
use crate::ids::Ids;
use crate::source::Part;

/// Bytes for each object while the graph is searched: class, size, where its list begins, place,
/// and of each place node, parent and the number of referrers. The lists come on top.
const SEARCHED: u64 = 7 * 4;

/// The same when all is known, with what the first questions take on top: class, size, place and
/// level; node, parent, referrers, dominator and retained size; way, distance and owner.
const KNOWN: u64 = 37 + 9;

/// Each entry of a list.
const ENTRY: u64 = 4;

/// Of buffers and tables that are there in any case.
const BASE: u64 = 16 << 20;

/// The most bytes that it takes to compute a dump with these parts.
pub fn needed(ids: &Ids, parts: &[Part]) -> u64 {
    let objects: u64 = parts.iter().map(|part| part.objects).sum();
    let entries: u64 = parts.iter().map(|part| part.most_edges).sum();
    let lists = |entries: u64| entries.saturating_mul(ENTRY);
    // A list has its length before it, and one reference to each object is kept as its parent.
    let others = entries.saturating_sub(objects.saturating_mul(2));
    let searched = objects.saturating_mul(SEARCHED).saturating_add(lists(entries));
    let known = objects.saturating_mul(KNOWN).saturating_add(lists(others));
    searched.max(known).saturating_add(ids.bytes()).saturating_add(BASE)
}

/// Whether that is allowed.
pub fn check(ids: &Ids, parts: &[Part], allowed: u64) -> Result<()> {
    let needed = needed(ids, parts);
    if needed > allowed {
        return Err(HeapError::Memory { objects: ids.len() as u64, needed, allowed });
    }
    Ok(())
}
