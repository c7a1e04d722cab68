//! Dumps that are made for the purpose: their sizes, chains and roots are known, and then they are
//! cut, packed and spoiled.

use super::record::Width;
use super::write::{ClassOut, Writer};
use crate::classes::Type;
use crate::error::HeapError;
use crate::heap::{Heap, Options};
use crate::input::Input;
use crate::levels::Level;
use crate::path::By;
use crate::progress::Silent;
use crate::roots::RootKind;
use crate::values::Value;
use std::os::unix::fs::FileExt;

const OBJECT: u64 = 0x100;
const STRING: u64 = 0x110;
const CLASS: u64 = 0x120;
const NODE: u64 = 0x130;
const REFERENCE: u64 = 0x140;
const WEAK: u64 = 0x150;
const ARRAY: u64 = 0x160;
const THREAD: u64 = 0x170;
const FIRST: u64 = 0x1000;

/// A chain of three nodes behind a static field, an array that a thread's variable holds, and a
/// weak reference to a node that nothing else holds.
fn dump(width: Width) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), width, 1_700_000_000_000).unwrap();
    let names = [
        (1, "java/lang/Object"),
        (2, "java/lang/String"),
        (3, "java/lang/Class"),
        (4, "com/acme/Node"),
        (5, "java/lang/ref/Reference"),
        (6, "java/lang/ref/WeakReference"),
        (7, "[Ljava/lang/Object;"),
        (8, "java/lang/Thread"),
        (9, "next"),
        (10, "referent"),
        (11, "head"),
        (12, "value"),
        (13, "run"),
        (14, "Main.java"),
    ];
    for (id, text) in names {
        writer.text(id, text).unwrap();
    }
    let classes = [OBJECT, STRING, CLASS, NODE, REFERENCE, WEAK, ARRAY, THREAD];
    for (serial, class) in (1..).zip(classes) {
        writer.load_class(serial, class, serial.into()).unwrap();
    }
    writer.frame(500, 13, 14, 4, 17).unwrap();
    writer.trace(1, 1, &[500]).unwrap();
    let plain = |address, super_class| ClassOut { address, super_class, ..ClassOut::default() };
    writer.class(&plain(OBJECT, 0)).unwrap();
    writer.class(&plain(STRING, OBJECT)).unwrap();
    writer.class(&plain(CLASS, OBJECT)).unwrap();
    let statics = [(11, Type::Reference, FIRST)];
    let fields = [(9, Type::Reference), (12, Type::Int)];
    let node = ClassOut { statics: &statics, fields: &fields, ..plain(NODE, OBJECT) };
    writer.class(&node).unwrap();
    let fields = [(10, Type::Reference)];
    writer.class(&ClassOut { fields: &fields, ..plain(REFERENCE, OBJECT) }).unwrap();
    writer.class(&plain(WEAK, REFERENCE)).unwrap();
    writer.class(&plain(ARRAY, OBJECT)).unwrap();
    writer.class(&plain(THREAD, OBJECT)).unwrap();
    let body = |values: &[(Type, u64)]| {
        let mut bytes = Vec::new();
        for (kind, bits) in values {
            Writer::<Vec<u8>>::put(width, &mut bytes, *kind, *bits);
        }
        bytes
    };
    for (at, next) in [(0, FIRST + 0x18), (1, FIRST + 0x30), (2, 0), (3, 0)] {
        let bytes = body(&[(Type::Reference, next), (Type::Int, 7 + at)]);
        writer.instance(FIRST + at * 0x18, NODE, &bytes).unwrap();
    }
    let weak = body(&[(Type::Reference, FIRST + 3 * 0x18)]);
    writer.instance(0x2000, WEAK, &weak).unwrap();
    writer.instance(0x2010, THREAD, &[]).unwrap();
    writer.array(0x2020, ARRAY, 3).unwrap();
    writer.elements(&[0, 0x2000, 0x2040]).unwrap();
    writer.array_end().unwrap();
    writer.values(0x2040, Type::Byte, 5).unwrap();
    writer.bytes(b"hallo");
    writer.array_end().unwrap();
    writer.root(RootKind::SystemClass, NODE, 0, 0).unwrap();
    writer.root(RootKind::Thread, 0x2010, 1, 1).unwrap();
    writer.root(RootKind::Local, 0x2020, 1, 0).unwrap();
    // Of an object that is not there.
    writer.root(RootKind::JniGlobal, 0x9000, 0, 0).unwrap();
    writer.finish().unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Heap, HeapError> {
    Heap::of_input(Input::of_bytes(bytes), &Options::default(), &Silent)
}

#[test]
fn sizes_chains_and_roots_are_those_that_were_written() {
    for width in [Width::Four, Width::Eight] {
        let heap = open(dump(width)).unwrap();
        let find = |address| heap.find(address).unwrap();
        let (node, class) = (find(FIRST), find(NODE));
        // 12 bytes of header (8 of 32 bits), a reference and an int.
        let size = if width == Width::Eight { 24 } else { 16 };
        assert_eq!(heap.size(node), size);
        assert_eq!(heap.retained(node), 3 * size);
        assert_eq!(heap.retained(class), heap.size(class) + 3 * size);
        assert_eq!(heap.dominator(node), Some(class));
        assert_eq!(heap.class(node).name, "com.acme.Node");
        assert_eq!(heap.field(node, "value").unwrap(), Some(Value::Int(7)));
        let last = find(FIRST + 0x30);
        let path = heap.path(last).unwrap().unwrap();
        let way: Vec<By> = path.steps.iter().map(|step| step.by.clone()).collect();
        let next = || By::Field("next".to_owned());
        assert_eq!(way, [By::Root, By::Static("head".to_owned()), next(), next()]);
        assert_eq!(path.kind, Some(RootKind::SystemClass));
        let weakly = find(FIRST + 3 * 0x18);
        assert_eq!(heap.level(weakly), Level::Weak);
        assert!(heap.path(weakly).unwrap().is_none());
        let array = find(0x2020);
        assert_eq!(heap.dominator(array), Some(find(0x2010)));
        let frame = "com.acme.Node.run(Main.java:17)".to_owned();
        assert_eq!(heap.how(find(0x2010), array).unwrap(), By::Local(Some(frame)));
        assert_eq!(heap.how(array, find(0x2040)).unwrap(), By::Element(2));
        assert_eq!(heap.about().taken, 1_700_000_000_000);
        assert!(heap.about().notes.is_empty(), "{:?}", heap.about().notes);
    }
}

#[test]
fn what_a_reference_keeps_is_a_matter_of_the_question() {
    let keep = crate::classes::Strength::Weak;
    let options = Options { keep, ..Options::default() };
    let input = Input::of_bytes(dump(Width::Eight));
    let heap = Heap::of_input(input, &options, &Silent).unwrap();
    let weakly = heap.find(FIRST + 3 * 0x18).unwrap();
    assert_eq!(heap.level(weakly), Level::Strong);
    assert_eq!(heap.dominator(weakly), heap.find(0x2000));
}

#[test]
fn wherever_it_is_cut_the_rest_is_used_or_refused_with_a_reason() {
    let whole = dump(Width::Eight);
    let mut used = 0;
    for end in 0..whole.len() {
        match open(whole[..end].to_vec()) {
            Ok(heap) => {
                used += 1;
                assert!(!heap.about().notes.is_empty(), "nothing is said of a cut at {end}");
                heap.suspects(0.01, 10).unwrap();
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(used > 100, "only {used} of {} were used", whole.len());
}

#[test]
fn spoiled_bytes_do_no_harm() {
    let whole = dump(Width::Eight);
    for at in 0..whole.len() {
        for value in [0, 0xff, whole[at] ^ 1] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(heap) = open(bytes) {
                heap.suspects(0.01, 10).unwrap();
                for node in heap.nodes() {
                    heap.label(node).unwrap();
                    heap.path(node).unwrap();
                }
            }
        }
    }
}

#[test]
fn lengths_that_have_overflowed_are_found_by_what_follows() {
    // As one segment whose length was not known.
    let whole = dump(Width::Eight);
    let at = whole.windows(9).position(|bytes| bytes[..5] == [0x1c, 0, 0, 0, 0]).unwrap();
    let mut open_ended = whole.clone();
    open_ended[at] = 0x0c;
    open_ended[at + 5..at + 9].fill(0);
    let heap = open(open_ended).unwrap();
    let expected = open(whole).unwrap();
    assert_eq!(heap.objects(), expected.objects());
    assert_eq!(heap.sum(Level::Strong), expected.sum(Level::Strong));
}

/// Records that are in a segment of their own, before the first one of a dump.
fn with_segment(whole: &[u8], size: u64, body: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let at = whole.windows(5).position(|bytes| bytes == [0x1c, 0, 0, 0, 0]).unwrap();
    let mut before = whole[..at].to_vec();
    before.extend([0x1c, 0, 0, 0, 0]);
    before.extend((size as u32).to_be_bytes());
    before.extend(body);
    (before, whole[at..].to_vec())
}

#[test]
fn every_version_is_read_and_what_android_adds_too() {
    let expected = open(dump(Width::Eight)).unwrap();
    let digit = "JAVA PROFILE 1.0.".len();
    for version in [b'1', b'2', b'3'] {
        let mut bytes = dump(Width::Eight);
        bytes[digit] = version;
        let heap = open(bytes).unwrap();
        assert_eq!(heap.objects(), expected.objects());
        assert_eq!(heap.sum(Level::Strong), expected.sum(Level::Strong));
    }
    // The name of a heap, an array without its numbers, and a root that holds it.
    let address = 0x3000_u64.to_be_bytes();
    let mut body = vec![0xfe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
    body.extend([&[0xc3][..], &address, &[0, 0, 0, 0, 0, 0, 0, 9, 10], &[0x89], &address].concat());
    let (mut bytes, rest) = with_segment(&dump(Width::Eight), body.len() as u64, &body);
    bytes.extend(rest);
    bytes[digit] = b'3';
    let heap = open(bytes).unwrap();
    assert_eq!(heap.objects(), expected.objects() + 1);
    let array = heap.find(0x3000).unwrap();
    assert_eq!((heap.class(array).name.as_ref(), heap.level(array)), ("int[]", Level::Strong));
    assert!(heap.about().notes.is_empty(), "{:?}", heap.about().notes);
}

/// A file with holes: the array takes no room on the disk, and is not read.
#[test]
fn a_segment_of_more_than_four_gigabytes_is_whole() {
    const LENGTH: u64 = 640_000_000;
    let address = 0x3000_u64.to_be_bytes();
    let root = [&[0xff][..], &address].concat();
    let long = 11;
    let array = [&[0x23][..], &address, &[0; 4], &(LENGTH as u32).to_be_bytes(), &[long]].concat();
    let body = [root, array].concat();
    let size = body.len() as u64 + 8 * LENGTH;
    assert!(size > 1 << 32);
    let whole = dump(Width::Eight);
    let (before, rest) = with_segment(&whole, size, &body);
    let path = std::env::temp_dir().join(format!("tare-holes-{}.hprof", std::process::id()));
    let file = std::fs::File::create_new(&path).unwrap();
    let written = file.write_all_at(&before, 0);
    let written = written.and_then(|()| file.write_all_at(&rest, before.len() as u64 + 8 * LENGTH));
    let heap = Heap::open(&path, &Options::default(), &Silent);
    std::fs::remove_file(&path).unwrap();
    written.unwrap();
    let heap = heap.unwrap();
    assert!(heap.about().notes.is_empty(), "{:?}", heap.about().notes);
    let array = heap.find(0x3000).unwrap();
    assert_eq!((heap.size(array), heap.retained(array)), (16 + 8 * LENGTH, 16 + 8 * LENGTH));
    assert_eq!(heap.objects(), open(whole).unwrap().objects() + 1);
}

#[test]
fn what_is_no_dump_is_refused() {
    for (bytes, reason) in [
        (&b"PK\x03\x04"[..], "neither"),
        (b"", "neither"),
        (b"JAVA PROFILE 1.0.9\0\0\0\0\x08\0\0\0\0\0\0\0\0", "1.0.9"),
        (b"JAVA PROFILE 1.0.2\0\0\0\0\x07\0\0\0\0\0\0\0\0", "7 bytes"),
        (b"JAVA PROFILE 1.0.2\0\0\0", "ends in its header"),
        (b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0", "no objects"),
    ] {
        let error = open(bytes.to_vec()).err().expect("an error").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_is_written_again_is_the_same_heap() {
    let heap = open(dump(Width::Four)).unwrap();
    let written = heap.write_hprof(Vec::new(), &Silent).unwrap();
    let again = open(written).unwrap();
    assert!(again.about().notes.is_empty(), "{:?}", again.about().notes);
    assert_eq!(again.objects(), heap.objects());
    let is_there = |heap: &Heap| heap.source.roots().iter().all(|r| heap.find(r.object).is_some());
    assert!(is_there(&again) && !is_there(&heap));
    for node in heap.nodes() {
        let other = again.find(heap.address(node)).unwrap();
        assert_eq!(again.class(other).name, heap.class(node).name);
        assert_eq!(again.label(other).unwrap(), heap.label(node).unwrap());
        assert_eq!(again.level(other), heap.level(node));
        let above = |heap: &Heap, node| heap.dominator(node).map(|above| heap.address(above));
        assert_eq!(above(&again, other), above(&heap, node));
    }
    let local = again.find(0x2020).unwrap();
    let frame = "com.acme.Node.run(Main.java:17)".to_owned();
    let thread = again.find(0x2010).unwrap();
    assert_eq!(again.how(thread, local).unwrap(), By::Local(Some(frame)));
}
