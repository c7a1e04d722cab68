//! Any bytes as a heap dump: no panic, no hang, bounded memory, and answers to every question.

use tare_heapdump::analyses::diff::{self, Ways};
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::{Heap, Input, Options, Silent, Strength};

/// Objects of which all is asked; there may be many.
const ASKED: usize = 64;

pub fn run(data: &[u8]) {
    // The last byte says what references hold.
    let keep = match data.last() {
        Some(byte) if byte & 1 == 1 => Strength::Phantom,
        _ => Strength::Strong,
    };
    let options = Options { keep, ..Options::default() };
    let Ok(heap) = Heap::of_input(Input::of_bytes(data.to_vec()), &options, &Silent) else {
        return;
    };
    for by in [By::Class, By::Loader, By::Package] {
        heap.histogram(by);
    }
    let _ = heap.suspects(0.01, 20);
    let _ = heap.strings(10);
    let _ = heap.collection_rows();
    let _ = heap.boxed_rows();
    heap.thread_rows();
    heap.loader_rows();
    if let Ok(ways) = Ways::new(&heap) {
        assert!(diff::paths(&ways, &ways).is_empty());
    }
    for node in heap.nodes().take(ASKED) {
        assert!(heap.retained(node) >= heap.size(node));
        let _ = heap.label(node);
        let _ = heap.inside(node, 0, 10);
        let _ = heap.path(node);
    }
    let written = heap.write_hprof(Vec::new(), &Silent).expect("memory can be written");
    let again = Heap::of_input(Input::of_bytes(written), &options, &Silent);
    assert!(again.is_ok(), "what was written cannot be read");
}
