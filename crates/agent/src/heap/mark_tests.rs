//! Marking in a small heap that the test lays out itself.

use super::*;
use tare_protocol::heap::wire::{Block, INSTANCE, KLASS_WIDE, KlassRecord, MarkHead, MarkPlan};

const NODE: u64 = 0x1000;
const NODES: u64 = 0x2000;
const BYTES: u64 = 0x3000;
const CLASS: u64 = 0x4000;

/// A heap of some words at an address of its own.
struct Heap {
    start: u64,
    words: &'static mut [u64],
}

impl Heap {
    fn new() -> Self {
        Heap::of(4096)
    }

    fn of(words: usize) -> Self {
        let words = memory::area::<u64>(words).unwrap();
        Heap { start: words.as_ptr() as u64, words }
    }

    fn at(&self, word: usize) -> u64 {
        self.start + 8 * word as u64
    }

    /// An object: its first word, its class, and its contents.
    fn put(&mut self, word: usize, klass: u64, contents: &[u64]) -> u64 {
        self.words[word..word + 2].copy_from_slice(&[1, klass]);
        self.words[word + 2..word + 2 + contents.len()].copy_from_slice(contents);
        self.at(word)
    }

    fn marker(&self, forwarded: bool) -> Marker {
        self.marker_of(forwarded, 1)
    }

    fn marker_of(&self, forwarded: bool, threads: usize) -> Marker {
        let plan = MarkPlan {
            head: MarkHead {
                alignment_shift: 3,
                reference_bytes: 8,
                klass_place: KLASS_WIDE,
                klass_offset: 8,
                array_length_offset: 16,
                mirror_size_offset: 16,
                mirror_klass_offset: 24,
                mirror_count_offset: 32,
                mirror_statics: 40,
                forwarded: u64::from(forwarded),
                ..MarkHead::default()
            },
            klasses: vec![
                KlassRecord {
                    klass: NODE,
                    kind: INSTANCE,
                    size: 40,
                    blocks: 1,
                    mirror: self.at(1000),
                    objects: 1,
                    ..KlassRecord::default()
                },
                record(NODES, OBJECT_ARRAY, 24, 3),
                record(BYTES, PRIMITIVE_ARRAY, 24, 0),
                record(CLASS, MIRROR, 40, 0),
            ],
            blocks: vec![Block { offset: 16, count: 2 }],
            objects: vec![self.at(2000)],
        };
        let bytes = plan.encode();
        let kept = memory::area::<u8>(bytes.len()).unwrap();
        kept.copy_from_slice(&bytes);
        let end = self.start + 8 * self.words.len() as u64;
        Marker::new(kept, self.start, end, threads).unwrap_or_else(|e| panic!("{e}"))
    }
}

fn record(klass: u64, kind: u64, size: u64, element_shift: u64) -> KlassRecord {
    KlassRecord { klass, kind, size, element_shift, ..KlassRecord::default() }
}

fn found(marker: &Marker) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    marker.objects.each(|object, _, size| {
        all.push((object, size));
        true
    });
    all
}

#[test]
fn everything_that_is_reachable_is_marked_once() {
    let mut heap = Heap::new();
    let [a, b, c, lost] = [0, 10, 20, 30].map(|word| heap.at(word));
    // a and b refer to each other, b also to an array with c; nobody refers to the last one.
    let array = heap.at(100);
    heap.put(0, NODE, &[b, 0, 7]);
    heap.put(10, NODE, &[a, array, 7]);
    heap.put(20, NODE, &[0, 0, 7]);
    heap.put(30, NODE, &[a, 0, 7]);
    heap.put(100, NODES, &[3, c, 0, c]);
    // The mirror: its size, its class, one static reference; and what it keeps beside it.
    let bytes = heap.put(200, BYTES, &[5]);
    let mirror = heap.put(1000, CLASS, &[6, NODE, 1, bytes]);
    let held = heap.put(2000, BYTES, &[0]);
    let mut marker = heap.marker(false);
    marker.mark([a, 0].into_iter());
    let expected = [(a, 40), (b, 40), (c, 40), (array, 48), (bytes, 32), (mirror, 48), (held, 24)];
    assert_eq!(found(&marker), expected);
    assert_eq!((marker.marked.objects, marker.marked.strange), (7, 0));
    assert_eq!(marker.marked.bytes, expected.iter().map(|(_, size)| size).sum());
    marker.mark([lost].into_iter());
    assert_eq!(marker.marked.objects, 8, "one more root");
}

#[test]
fn long_arrays_are_looked_at_in_slices() {
    let mut heap = Heap::new();
    heap.put(1000, CLASS, &[5, 0, 0]);
    heap.put(2000, BYTES, &[0]);
    let last = heap.put(0, NODE, &[0, 0]);
    let mut elements = vec![SLICE];
    elements.resize(SLICE as usize, 0);
    elements.push(last);
    elements[0] = SLICE;
    let array = heap.put(2010, NODES, &elements);
    let mut marker = heap.marker(false);
    marker.mark([array].into_iter());
    assert!(found(&marker).contains(&(last, 40)));
}

#[test]
fn what_is_no_object_is_passed_over_and_counted() {
    let mut heap = Heap::new();
    heap.put(1000, CLASS, &[5, 0, 0]);
    heap.put(2000, BYTES, &[0]);
    let end = heap.at(4096);
    let [a, b] = [heap.at(0), heap.at(10)];
    heap.put(0, NODE, &[b, end]);
    // No class of the plan; an array that would leave the heap; an odd address; one far away.
    heap.put(10, 0x9999, &[0, 0]);
    let long = heap.put(300, BYTES, &[1 << 20]);
    let mut marker = heap.marker(false);
    marker.mark([a, long, a + 4, 8].into_iter());
    assert!(!found(&marker).iter().any(|(object, _)| [b, long].contains(object)));
    assert_eq!(marker.marked.strange, 5);
}

#[test]
fn objects_that_have_moved_are_found_where_they_are() {
    let mut heap = Heap::new();
    heap.put(1000, CLASS, &[5, 0, 0]);
    heap.put(2000, BYTES, &[0]);
    let [a, old, new] = [0, 10, 20].map(|word| heap.at(word));
    heap.put(0, NODE, &[old, new]);
    heap.put(20, NODE, &[0, 0]);
    heap.words[10] = new | 3;
    let mut marker = heap.marker(true);
    marker.mark([a].into_iter());
    let objects: Vec<u64> = found(&marker).iter().map(|(object, _)| *object).collect();
    assert!(objects.contains(&new) && !objects.contains(&old));
    assert_eq!(marker.marked.moved, 1);
    assert_eq!(marker.objects.settled_reference(a + 16), new);
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let heap = Heap::new();
    let kept = memory::area::<u8>(10).unwrap();
    assert!(Marker::new(kept, heap.start, heap.start + 4096, 1).is_err());
    let plan = MarkPlan { klasses: vec![record(1, 9, 1, 0)], ..MarkPlan::default() }.encode();
    let kept = memory::area::<u8>(plan.len()).unwrap();
    kept.copy_from_slice(&plan);
    assert!(Marker::new(kept, heap.start, heap.start + 4096, 1).is_err());
}

#[test]
fn several_threads_find_what_one_finds() {
    const NODE_WORDS: usize = 5;
    const COUNT: usize = 200_000;
    let mut heap = Heap::of(COUNT * NODE_WORDS + 8192);
    heap.put(1000, CLASS, &[5, 0, 0]);
    heap.put(2000, BYTES, &[0]);
    let place = |number: usize| 8192 + number * NODE_WORDS;
    // Some lead to two others at random, and some nowhere, so that not all are reachable.
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize
    };
    for number in 0..COUNT {
        let mut other = || match next() % 3 {
            0 => 0,
            _ => heap.at(place(next() % COUNT)),
        };
        let references = [other(), other()];
        heap.put(place(number), NODE, &references);
    }
    let roots: Vec<u64> = (0..50).map(|number| heap.at(place(number))).collect();
    let mut one = heap.marker_of(false, 1);
    one.mark(roots.iter().copied());
    assert!(one.marked.objects > 1000, "{:?}", one.marked);
    for threads in [2, 5, MOST_THREADS] {
        let mut several = heap.marker_of(false, threads);
        several.mark(roots.iter().copied());
        assert_eq!(several.marked.objects, one.marked.objects, "{threads} threads");
        assert_eq!(several.marked.bytes, one.marked.bytes);
        assert_eq!(found(&several), found(&one));
        let rest = roots.iter().map(|root| root + 8 * NODE_WORDS as u64 * 1000);
        several.mark(rest.clone());
        let mut both = heap.marker_of(false, 1);
        both.mark(roots.iter().copied().chain(rest));
        assert_eq!(found(&several), found(&both), "marked in two steps");
    }
}
