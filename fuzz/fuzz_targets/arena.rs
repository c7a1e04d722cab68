//! Any bytes as the memory that the agent shares: no panic, no hang; parents come before their
//! children, and there are no more nodes and names than bytes that they could come from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_arena::{Names, Snapshot};

fuzz_target!(|data: &[u8]| {
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
});
