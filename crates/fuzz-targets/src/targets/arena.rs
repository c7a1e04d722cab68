//! The memory that the agent shares. The JVM writes to it while it is read, and another program may
//! be the JVM.

use super::file;
use tare_arena::trace::Rings;
use tare_arena::{Names, Snapshot};

/// Records of a trace that are taken at most, of rings that are holes for the most part.
const MOST: u64 = 1 << 16;

/// Parents come before their children, and there are no more nodes and names than bytes that they
/// could come from.
pub fn trees(data: &[u8]) {
    let names = Names::read(data);
    // A record has at least a length, three numbers and the lengths of four texts.
    assert!(names.len() * 24 <= data.len());
    let Ok(snapshot) = Snapshot::read(data) else { return };
    assert!(Snapshot::used(data) == Ok(snapshot.used));
    for tree in &snapshot.trees {
        assert!(tree.nodes.len() * 32 <= data.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            assert!(node.parent as usize <= at, "a parent comes after its child");
            let _ = snapshot.clock.nanos(node.total).checked_add(snapshot.clock.nanos(node.start));
            let _ = u32::try_from(node.method).map(|id| names.get(id));
        }
    }
}

/// What says how far the rings were read comes first: its length, then its bytes. Behind what is
/// given, the rings are holes, as the agent's are.
pub fn rings(data: &[u8]) {
    const LENGTH: usize = 1 << 20;
    let Some((&length, rest)) = data.split_first() else { return };
    let (tails, arena) = rest.split_at(usize::from(length).min(rest.len()));
    let Ok(mut rings) = Rings::new(file(arena, LENGTH), file(tails, LENGTH >> 9)) else { return };
    for _ in 0..3 {
        let mut bytes = 0;
        let drained = rings.drain(MOST, |portion| {
            bytes += portion.len() * 16;
            portion.records().for_each(drop);
        });
        assert!(bytes <= LENGTH, "more is read than there is");
        if drained.is_err() {
            return;
        }
        let _ = (rings.head(), rings.gaps(), rings.waited(), rings.agent());
    }
}
