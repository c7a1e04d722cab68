//! Heap snapshots: what is in them is what was in the JVM, on every version and collector.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tare_jvm_tests::{
    HeapFile, Jdk, Object, Scratch, Tare, Target, TargetBuilder, class_histogram, modern_classes,
    on_each_jdk, skip,
};

/// The collectors whose heap can be copied.
pub const COLLECTORS: [&str; 4] = ["Serial", "G1", "Parallel", "Shenandoah"];

const LEAVES: usize = 3000;
const STACK_LOCAL: u32 = 24;

pub fn shapes(jdk: &Jdk, collector: &str) -> TargetBuilder {
    let collector = format!("-XX:+Use{collector}GC");
    Target::java(jdk).vm("-Xmx256m").vm("-Xms64m").vm(collector).main("HeapShapes")
}

/// Takes a snapshot; the file goes with the directory.
#[track_caller]
pub fn take(target: &Target, options: &[&str]) -> (HeapFile, PathBuf, Scratch) {
    let scratch = Scratch::new();
    let path = scratch.join("x.tareheap");
    let name = target.name();
    let words = [&["heap", &name, "-o", path.to_str().expect("a path")][..], options].concat();
    Tare::this().run(&words).ok();
    (HeapFile::open(&path), path, scratch)
}

/// Every value of every kind.
fn check_values(heap: &HeapFile) {
    let leaves = heap.of_class("HeapShapes$Leaf");
    assert_eq!(leaves.len(), LEAVES);
    let mut seen = vec![false; LEAVES];
    for leaf in &leaves {
        let number = leaf.int("number");
        let at = usize::try_from(number).expect("from 0 on");
        assert!(!std::mem::replace(&mut seen[at], true), "{number} twice");
        assert_eq!(leaf.reference("name").expect("a name").text(), format!("leaf {number}"));
        assert_eq!(leaf.value("odd"), [u8::from(number % 2 == 1)]);
        assert_eq!(leaf.value("tiny"), (number as i8).to_le_bytes());
        assert_eq!(leaf.value("small"), (-number as i16).to_le_bytes());
        assert_eq!(leaf.value("letter"), (u16::from(b'a') + at as u16 % 26).to_le_bytes());
        assert_eq!(leaf.value("third"), (number as f32 / 3.0).to_le_bytes());
        assert_eq!(leaf.value("half"), (f64::from(number) / 2.0).to_le_bytes());
        assert_eq!(leaf.long("base"), 77, "of the class above");
    }
    let table = heap.static_reference("HeapShapes", "leaves").expect("the table");
    let expected: Vec<i32> = (0..LEAVES as i32).collect();
    let numbers = |item: u64| heap.object(item).expect("a leaf").int("number");
    assert_eq!(table.items().into_iter().map(numbers).collect::<Vec<_>>(), expected);
    let mut node = heap.static_reference("HeapShapes", "first");
    let mut length = 0;
    while let Some(one) = node {
        length += 1;
        let number = one.reference("leaf").expect("a leaf").int("number");
        assert_eq!(number, (LEAVES - length) as i32);
        node = one.reference("next");
    }
    assert_eq!(length, LEAVES);
    let matrix = heap.static_reference("HeapShapes", "matrix").expect("a matrix");
    let row = |item: u64| heap.object(item).expect("a row").elements::<4>().concat();
    let rows: Vec<_> = matrix.items().into_iter().map(row).collect();
    assert_eq!(rows[1], [3_i32, 4, 5].map(i32::to_le_bytes).concat());
}

/// An object that only a local variable holds, with the thread, the frame and the variable.
fn check_local(heap: &HeapFile, names: bool) {
    let [local]: [Object<'_>; 1] =
        heap.of_class("HeapShapes$OnlyOnAStack").try_into().ok().expect("one");
    let roots = heap.roots_of(local.address);
    let root = roots.iter().find(|root| root.kind == STACK_LOCAL).expect("a local variable");
    let method = root.method.as_deref().expect("its method");
    assert!(method.starts_with("HeapShapes.hold(HeapShapes.java:"), "{method}");
    assert_eq!(root.slot, 1, "the parameter comes first");
    let thread = heap.snapshot.threads.iter().find(|thread| thread.number == root.thread);
    let thread = thread.expect("its thread");
    let frame = thread.frames[root.depth as usize].as_deref();
    assert_eq!(frame, Some(method));
    if names {
        assert_eq!(&*thread.name, "the-holder");
        assert_eq!(
            heap.object(thread.object).expect("its object").class_name(),
            "java.lang.Thread"
        );
    }
}

/// What HotSpot counts before and after with the same result is in the snapshot as often. Fillers
/// are the collector's and reachable for nobody.
fn check_counts(
    collector: &str,
    ours: &BTreeMap<String, (u64, u64)>,
    before: &BTreeMap<String, (u64, u64)>,
    after: &BTreeMap<String, (u64, u64)>,
) {
    for (name, count) in before.iter().filter(|(name, _)| name.starts_with("HeapShapes")) {
        assert_eq!(ours.get(name), Some(count), "{collector}: {name}");
    }
    let steady = before.iter().filter(|(name, count)| {
        // Before JDK 19 fillers are arrays of numbers.
        after.get(*name) == Some(count) && !name.contains("Filler") && *name != "int[]"
    });
    let (mut compared, mut different) = (0, Vec::new());
    for (name, count) in steady {
        compared += count.0;
        let here = ours.get(name).copied().unwrap_or_default();
        if here != *count {
            different.push((here.0.abs_diff(count.0), format!("{name}: {here:?} {count:?}")));
        }
    }
    // Between HotSpot's two looks the agent came, whose traces are garbage at the second one.
    let strange: u64 = different.iter().map(|(by, _)| by).sum();
    assert!(compared > 10_000, "{collector}: only {compared} objects to compare");
    assert!(strange * 200 < compared, "{collector}: of {compared} objects: {different:#?}");
}

on_each_jdk! {
    /// Objects and bytes of each class, values, references, roots.
    fn a_snapshot_is_what_the_jvm_had(jdk) {
        for collector in COLLECTORS {
            let mut target = shapes(jdk, collector).start();
            let before = class_histogram(target.pid());
            let (heap, ..) = take(&target, &[]);
            let after = class_histogram(target.pid());
            check_counts(collector, &heap.counts(), &before, &after);
            check_values(&heap);
            check_local(&heap, true);
            heap.check_references();
            let head = &heap.snapshot.head;
            assert_eq!((head.collector.as_str(), head.complete), (collector, true), "{head:?}");
            assert!(head.notes.is_empty(), "{head:?}");
            target.check_works();
            target.finish();
        }
    }

    /// Large heaps have addresses of eight bytes, and some versions other headers.
    fn other_layouts_of_objects(jdk) {
        let mut layouts = vec![vec!["-XX:-UseCompressedOops"], vec!["-XX:ObjectAlignmentInBytes=16"]];
        if jdk.major == 17 {
            layouts.push(vec!["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]);
        }
        if jdk.major >= 25 {
            layouts.push(vec!["-XX:+UseCompactObjectHeaders"]);
        }
        for layout in layouts {
            let target = layout.iter().fold(shapes(jdk, "G1"), |target, option| target.vm(option));
            let target = target.start();
            let before = class_histogram(target.pid());
            let (heap, ..) = take(&target, &[]);
            check_counts(&layout.join(" "), &heap.counts(), &before, &class_histogram(target.pid()));
            check_values(&heap);
            heap.check_references();
            target.finish();
        }
    }

    /// No content leaves the JVM, and everything else is as it is without.
    fn a_redacted_snapshot_has_no_contents(jdk) {
        for collector in ["G1", "Shenandoah"] {
            let mut target = shapes(jdk, collector).start();
            let before = class_histogram(target.pid());
            let (heap, path, _scratch) = take(&target, &["--redact"]);
            let after = class_histogram(target.pid());
            assert!(heap.snapshot.head.redacted);
            check_counts(collector, &heap.counts(), &before, &after);
            check_local(&heap, false);
            heap.check_references();
            let bytes = fs::read(&path).expect("the file");
            let wide: Vec<u8> = "PASS-WORD-OF-NOBODY".bytes().flat_map(|byte| [byte, 0]).collect();
            for secret in [&b"word-of-nobody"[..], &wide, b"leaf 27", b"the-holder"] {
                let found = bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!found, "{:?} is in the file", String::from_utf8_lossy(secret));
            }
            let zero = |leaf: &Object<'_>| leaf.int("number") == 0 && leaf.long("base") == 0;
            assert!(heap.of_class("HeapShapes$Leaf").iter().all(zero));
            // The same words are there if nobody asks for them to be left out.
            let (_, path, _scratch) = take(&target, &[]);
            let bytes = fs::read(&path).expect("the file");
            assert!(bytes.windows(14).any(|window| window == b"word-of-nobody"));
            target.check_works();
            target.finish();
        }
    }

    /// What stacks of virtual threads hold that no carrier runs.
    fn unmounted_virtual_threads_hold_what_they_hold(jdk) {
        let Some(classes) = modern_classes().filter(|_| jdk.major >= 21) else {
            skip("virtual threads in a snapshot", "no such threads here, or no compiler for them");
            return;
        };
        const COUNT: usize = 60;
        for collector in COLLECTORS {
            let target = shapes(jdk, collector).class_path(classes).main("HeapVirtual");
            let target = target.arg(COUNT.to_string()).start();
            let (heap, ..) = take(&target, &[]);
            let held = heap.of_class("HeapVirtual$Held");
            assert_eq!(held.len(), COUNT, "{collector}");
            for one in held {
                let roots = heap.roots_of(one.address);
                let root = roots.iter().find(|root| root.kind == STACK_LOCAL).expect("a local");
                let method = root.method.as_deref().expect("its method");
                assert!(method.starts_with("HeapVirtual.hold("), "{method}");
                assert_eq!(root.slot, 2, "two parameters come first");
                let thread = heap.snapshot.threads.iter().find(|thread| thread.number == root.thread);
                let thread = thread.expect("its thread");
                assert_eq!(&*thread.name, format!("virtual-{}", one.int("number")));
                assert!(thread.is_virtual && thread.object != 0, "{thread:?}");
            }
            heap.check_references();
            target.finish();
        }
    }
}
