//! A heap that comes from an index is the one that was computed, whatever happened to the index;
//! and one that somebody has forged does no harm.

use super::column::{BLOCK, Cell, pack};
use super::{Directory, Key, Place, TAIL, Unusable, sum};
use crate::analyses::histogram::By;
use crate::analyses::suspects::{FEW, MANY};
use crate::classes::Type;
use crate::heap::{Heap, Options};
use crate::hprof::{ClassOut, Width, Writer};
use crate::progress::Silent;
use crate::roots::RootKind;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const OBJECT: u64 = 0x100;
const NODE: u64 = 0x130;
const FIRST: u64 = 0x10_0000;

/// Several blocks.
const COUNT: u64 = 5 * BLOCK as u64 + 20;

/// Numbers that look random and are the same in every run.
pub(super) struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) % limit
    }
}

/// Nodes that refer to two others each; `apart` is the distance of their addresses.
fn dump(apart: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Width::Eight, 1).unwrap();
    for (id, text) in [(1, "java/lang/Object"), (2, "com/acme/Node"), (3, "left"), (4, "right")] {
        writer.text(id, text).unwrap();
    }
    writer.load_class(1, OBJECT, 1).unwrap();
    writer.load_class(2, NODE, 2).unwrap();
    let plain = |address, super_class| ClassOut { address, super_class, ..ClassOut::default() };
    writer.class(&plain(OBJECT, 0)).unwrap();
    let fields = [(3, Type::Reference), (4, Type::Reference)];
    writer.class(&ClassOut { fields: &fields, ..plain(NODE, OBJECT) }).unwrap();
    let mut chance = Chance(5);
    let address = |node: u64| FIRST + node * apart;
    for node in 0..COUNT {
        let mut body = Vec::new();
        // Mostly a few steps further, so that there is a tree with depth.
        for to in [node + 1 + chance.below(3), chance.below(COUNT)] {
            let to = if to < COUNT { address(to) } else { 0 };
            Writer::<Vec<u8>>::put(Width::Eight, &mut body, Type::Reference, to);
        }
        writer.instance(address(node), NODE, &body).unwrap();
    }
    for node in [0, 7, COUNT / 2] {
        writer.root(RootKind::JniGlobal, address(node), 0, 0).unwrap();
    }
    writer.finish().unwrap()
}

/// A dump and its index in a directory of their own.
pub(super) struct Pair {
    directory: PathBuf,
    heap: Heap,
    pub index: Vec<u8>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Pair {
    pub fn new(apart: u64) -> Pair {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tare-index-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("dump"), dump(apart)).unwrap();
        let file = File::open(directory.join("dump")).unwrap();
        let key = Key::of(&file).unwrap();
        let heap = Heap::of_file(file, &Options::default(), &Silent).unwrap();
        let mut index = Vec::new();
        heap.write_index(&key, &mut index, &Silent).unwrap();
        Pair { directory, heap, index }
    }

    /// Opens the dump with this index.
    pub fn open(&self, index: &[u8]) -> Result<Heap, Unusable> {
        fs::write(self.directory.join("index"), index).unwrap();
        let file = |name| File::open(self.directory.join(name)).unwrap();
        Heap::of_index(file("dump"), file("index"), &Options::default(), &Silent).unwrap()
    }

    pub fn directory(&self) -> (Directory, usize) {
        let tail = self.index.len() - TAIL;
        let begin = u64::get(&self.index[tail..]) as usize;
        (serde_json::from_slice(&self.index[begin..tail]).unwrap(), begin)
    }
}

fn check_same(one: &Heap, other: &Heap, step: usize) {
    assert_eq!(one.objects(), other.objects());
    for level in crate::levels::Level::ALL {
        assert_eq!(one.sum(level), other.sum(level));
    }
    for node in one.nodes().step_by(step) {
        let said = |heap: &Heap| {
            (
                (heap.address(node), heap.class_id(node), heap.size(node)),
                (heap.retained(node), heap.dominator(node), heap.level(node)),
                heap.referrers(node),
                heap.is_root(node),
            )
        };
        assert_eq!(said(one), said(other), "{node}");
        assert_eq!(other.find(one.address(node)), Some(node));
        assert_eq!(other.find(one.address(node) + 1), None);
    }
    let rows = |heap: &Heap| {
        let rows = heap.histogram(By::Class).into_iter();
        rows.map(|row| (row.name, row.held, row.retained)).collect::<Vec<_>>()
    };
    assert_eq!(rows(one), rows(other));
    let path = |heap: &Heap| {
        let path = heap.path(COUNT as u32 / 3).unwrap();
        path.map(|path| path.steps.iter().map(|step| step.node).collect::<Vec<_>>())
    };
    assert_eq!(path(one), path(other));
}

#[test]
fn a_heap_from_an_index_is_the_one_that_was_computed() {
    // The second one is so sparse that addresses are sorted instead of mapped.
    for apart in [24, 1 << 40] {
        let pair = Pair::new(apart);
        let heap = pair.open(&pair.index).unwrap();
        check_same(&pair.heap, &heap, 1);
        assert_eq!((heap.index(), pair.heap.index()), (Some(false), None));
    }
}

#[test]
fn only_what_is_asked_for_is_read() {
    let pair = Pair::new(24);
    let heap = pair.open(&pair.index).unwrap();
    assert!(heap.retained(3) > 0);
    let (directory, _) = pair.directory();
    // Nobody has asked for classes, so what is wrong there is not noticed.
    let class = directory.columns.iter().find(|place| place.name == "class").unwrap();
    let mut index = pair.index.clone();
    index[class.begin as usize] ^= 1;
    let heap = pair.open(&index).unwrap();
    assert_eq!(heap.retained(3), pair.heap.retained(3));
    assert_eq!(heap.index(), Some(false));
    assert_eq!(heap.class_id(3), pair.heap.class_id(3));
    assert_eq!(heap.index(), Some(true));
}

#[test]
fn a_damaged_block_is_computed_anew() {
    let pair = Pair::new(24);
    let (directory, _) = pair.directory();
    for place in directory.columns.iter().filter(|place| place.count > 0) {
        let mut index = pair.index.clone();
        let last = place.end() - 1;
        index[last as usize] ^= 0x40;
        let heap = pair.open(&index).unwrap();
        check_same(&pair.heap, &heap, 1);
        assert_eq!(heap.index(), Some(true), "{}", place.name);
    }
}

#[test]
fn what_is_no_index_of_this_dump_is_not_used() {
    let pair = Pair::new(24);
    let end = pair.index.len();
    for cut in [0, 1, TAIL - 1, TAIL, end / 2, end - TAIL, end - 1] {
        assert_eq!(pair.open(&pair.index[..cut]).err(), Some(Unusable::Damaged), "{cut}");
    }
    let mut other = pair.index.clone();
    other[end - 12] ^= 1;
    assert_eq!(pair.open(&other).err(), Some(Unusable::OtherVersion));
    let (_, begin) = pair.directory();
    for at in [begin, (begin + end - TAIL) / 2, end - TAIL, end - 20, end - 1] {
        let mut spoiled = pair.index.clone();
        spoiled[at] ^= 0x10;
        assert_eq!(pair.open(&spoiled).err(), Some(Unusable::Damaged), "{at}");
    }
    // The same length and the same ends, and another time.
    let dump = File::options().write(true).open(pair.directory.join("dump")).unwrap();
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    dump.set_modified(earlier).unwrap();
    assert_eq!(pair.open(&pair.index).err(), Some(Unusable::Stale));
}

/// An index whose checksums are right, and nothing else.
fn forged(pair: &Pair, chance: &mut Chance, which: u64) -> Vec<u8> {
    let (mut directory, begin) = pair.directory();
    let mut bytes = pair.index[..begin].to_vec();
    for (number, place) in (0..).zip(&mut directory.columns) {
        if which != number {
            continue;
        }
        let all: Vec<u64> = match chance.below(3) {
            0 => vec![u64::MAX; place.count as usize],
            1 => (0..place.count).map(|_| chance.below(1 << 31) << chance.below(33)).collect(),
            _ => vec![1; place.count as usize],
        };
        put_column(&mut bytes, place, &all);
    }
    if which == 100 {
        directory.ids.count = u32::MAX;
        directory.columns.iter_mut().for_each(|place| place.count = u64::from(u32::MAX));
    }
    finished(pair, bytes, &directory)
}

/// Other numbers in a column, with checksums that are right.
pub(super) fn put_column(bytes: &mut Vec<u8>, place: &mut Place, all: &[u64]) {
    place.begin = bytes.len() as u64;
    (place.lengths, place.sums) = (Vec::new(), Vec::new());
    for block in all.chunks(BLOCK) {
        let begin = bytes.len();
        pack(block.iter().copied(), bytes);
        place.lengths.push((bytes.len() - begin) as u32);
        place.sums.push(sum(&bytes[begin..]));
    }
}

impl Place {
    fn end(&self) -> u64 {
        self.begin + self.lengths.iter().map(|length| u64::from(*length)).sum::<u64>()
    }
}

/// An index of these bytes and this directory.
pub(super) fn finished(pair: &Pair, mut bytes: Vec<u8>, directory: &Directory) -> Vec<u8> {
    let text = serde_json::to_vec(directory).unwrap();
    let begin = bytes.len() as u64;
    bytes.extend(&text);
    begin.put(&mut bytes);
    (text.len() as u64).put(&mut bytes);
    sum(&text).put(&mut bytes);
    bytes.extend(&pair.index[pair.index.len() - 12..]);
    bytes
}

#[test]
fn a_forged_index_does_no_harm() {
    let pair = Pair::new(24);
    let mut chance = Chance(3);
    for which in (0..16).chain([100]) {
        let Ok(heap) = pair.open(&forged(&pair, &mut chance, which)) else { continue };
        for node in (0..heap.objects() as u32).step_by(3) {
            let _ = (heap.address(node), heap.class(node), heap.retained(node), heap.level(node));
            let _ = (heap.referrers(node).len(), heap.roots(node).count(), heap.is_root(node));
            let mut above = Some(node);
            while let Some(node) = above {
                above = heap.dominator(node).filter(|other| *other != node);
                if chance.below(10) == 0 {
                    break;
                }
            }
        }
        let _ = heap.path(11).unwrap();
        let _ = heap.dominated(None).len();
        let _ = heap.histogram(By::Package).len();
    }
}

/// What is answered to the usual questions.
fn answers(heap: &Heap) -> String {
    let suspects = [FEW, MANY].map(|(least, most)| heap.suspects(least, most).unwrap());
    assert!(suspects.iter().all(|suspects| !suspects.is_empty()));
    format!("{suspects:?} {:?}", heap.histogram(By::Class))
}

#[test]
fn usual_questions_need_no_columns() {
    let pair = Pair::new(24);
    let (directory, _) = pair.directory();
    let mut index = pair.index.clone();
    for place in directory.columns.iter().filter(|place| !place.name.starts_with("root")) {
        index[place.begin as usize..place.end() as usize].fill(0x55);
    }
    let heap = pair.open(&index).unwrap();
    assert_eq!(answers(&heap), answers(&pair.heap));
    assert_eq!(heap.index(), Some(false), "no block was read");
    // Any other question is answered from the columns, so that these are found to be damaged.
    for (least, most) in [(FEW.0, FEW.1 + 1), (FEW.0 / 2.0, FEW.1)] {
        let heap = pair.open(&index).unwrap();
        let found = heap.suspects(least, most).unwrap();
        assert_eq!(heap.index(), Some(true));
        assert_eq!(format!("{found:?}"), format!("{:?}", pair.heap.suspects(least, most).unwrap()));
    }
    let heap = pair.open(&index).unwrap();
    let rows = |heap: &Heap| format!("{:?}", heap.histogram(By::Package));
    assert_eq!(rows(&heap), rows(&pair.heap));
    assert_eq!(heap.index(), Some(true));
}

/// The same index with other answers, whose checksum is right.
fn with_answers(pair: &Pair, change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let (mut directory, begin) = pair.directory();
    let text = directory.answers.as_mut().unwrap();
    let old = &pair.index[text.begin as usize..][..text.length as usize];
    let mut value = serde_json::from_slice(old).unwrap();
    change(&mut value);
    let new = serde_json::to_vec(&value).unwrap();
    let mut bytes = pair.index[..begin].to_vec();
    (text.begin, text.length, text.sum) = (begin as u64, new.len() as u64, sum(&new));
    bytes.extend(&new);
    finished(pair, bytes, &directory)
}

#[test]
fn answers_that_cannot_be_are_found_anew() {
    let pair = Pair::new(24);
    let expected = answers(&pair.heap);
    let heap = pair.open(&with_answers(&pair, |_| {})).unwrap();
    assert_eq!((answers(&heap), heap.index()), (expected.clone(), Some(false)));
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 8] = [
        |value| value["suspects"][0][0]["members"] = serde_json::json!([]),
        |value| value["suspects"][0][0]["members"] = serde_json::json!([u32::MAX]),
        |value| value["suspects"][1][0]["point"] = u32::MAX.into(),
        |value| value["suspects"][1][0]["path"]["steps"][0]["node"] = u32::MAX.into(),
        |value| value["suspects"][1][0]["fill"][0][0] = 77_777.into(),
        |value| value["suspects"][1] = serde_json::Value::Null,
        |value| value["classes"][0][0] = 77_777.into(),
        |value| _ = value["suspects"].as_array_mut().unwrap().pop(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let heap = pair.open(&with_answers(&pair, change)).unwrap();
        assert_eq!((answers(&heap), heap.index()), (expected.clone(), Some(true)), "{number}");
    }
    // A byte of them, and a place outside of the file.
    let (directory, begin) = pair.directory();
    let mut index = pair.index.clone();
    index[directory.answers.unwrap().begin as usize + 5] ^= 1;
    let heap = pair.open(&index).unwrap();
    assert_eq!((answers(&heap), heap.index()), (expected.clone(), Some(true)));
    for outside in [u64::MAX, pair.index.len() as u64 * 2] {
        let mut directory = pair.directory().0;
        directory.answers.as_mut().unwrap().length = outside;
        let heap = pair.open(&finished(&pair, pair.index[..begin].to_vec(), &directory)).unwrap();
        assert_eq!((answers(&heap), heap.index()), (expected.clone(), Some(true)));
    }
    // Without any, they are found, and nothing is wrong.
    let directory = Directory { answers: None, ..directory };
    let heap = pair.open(&finished(&pair, pair.index[..begin].to_vec(), &directory)).unwrap();
    assert_eq!((answers(&heap), heap.index()), (expected, Some(false)));
}
