//! Indexes that somebody has changed by chance, with checksums that are right: whatever they say,
//! every question has an answer or an error, in bounded memory. `fuzz/fuzz_targets/heap_index.rs`
//! does the same with more patience.

use super::column::{BLOCK, unpack};
use super::tests::{Chance, Pair, finished, put_column};
use super::{Directory, Place, sum};
use crate::analyses::diff::Ways;
use crate::analyses::histogram::By;
use crate::analyses::suspects::{FEW, MANY};
use crate::heap::Heap;
use serde_json::{Value, json};

/// Everything that can be asked, of some objects.
fn ask(heap: &Heap, chance: &mut Chance) {
    for by in [By::Class, By::Loader, By::Package] {
        heap.histogram(by);
    }
    for (least, most) in [FEW, MANY, (0.001, 10)] {
        let _ = heap.suspects(least, most);
    }
    let _ = heap.strings(10);
    let _ = heap.collection_rows();
    let _ = heap.boxed_rows();
    let _ = heap.outline(0.01, 10);
    let _ = Ways::new(heap);
    heap.thread_rows();
    heap.loader_rows();
    heap.dominated(None);
    let count = heap.objects().min(u64::from(u32::MAX));
    for node in (0..8).map(|_| chance.below(count) as u32) {
        let _ = (heap.label(node), heap.inside(node, 0, 10), heap.path(node));
        let _ = (heap.retained(node), heap.dominator(node), heap.roots(node).count());
        let _ = (heap.referrers(node).len(), heap.find(heap.address(node)), heap.level(node));
    }
}

/// Puts something else in the place of one value of a text.
fn change(value: &mut Value, chance: &mut Chance) {
    let below = match value {
        Value::Array(all) if !all.is_empty() => {
            let at = chance.below(all.len() as u64) as usize;
            all.get_mut(at)
        }
        Value::Object(all) if !all.is_empty() => {
            let at = chance.below(all.len() as u64) as usize;
            all.values_mut().nth(at)
        }
        _ => None,
    };
    match below {
        // Now and then a whole part.
        Some(below) if chance.below(12) != 0 => change(below, chance),
        _ => {
            let near = value.as_u64().map_or(Value::Null, |n| json!(n.wrapping_add(1)));
            let others = [
                near,
                json!(0),
                json!(1),
                json!(7_000),
                json!(u32::MAX),
                json!(1_u64 << 40),
                json!(u64::MAX),
                json!(-1),
                json!([]),
                json!(""),
                Value::Null,
            ];
            *value = others[chance.below(others.len() as u64) as usize].clone();
        }
    }
}

/// An index with one thing changed.
fn mutated(pair: &Pair, chance: &mut Chance) -> Option<Vec<u8>> {
    let (mut directory, begin) = pair.directory();
    let mut bytes = pair.index[..begin].to_vec();
    match chance.below(4) {
        0 => {
            let mut value = serde_json::to_value(&directory).ok()?;
            let key = value["key"].clone();
            change(&mut value, chance);
            *value.get_mut("key")? = key;
            directory = serde_json::from_value(value).ok()?;
        }
        1 => {
            // A number of a column, or several of them.
            let at = chance.below(directory.columns.len() as u64) as usize;
            let place = &mut directory.columns[at];
            let mut all = numbers(&bytes, place)?;
            let first = chance.below(place.count.max(1));
            let count = (1 + chance.below(3) * chance.below(200)).min(place.count - first);
            let fill = [0, 1, u64::from(u32::MAX), u64::MAX][chance.below(4) as usize];
            all[first as usize..(first + count) as usize].fill(fill);
            put_column(&mut bytes, place, &all);
        }
        which => {
            let is_state = which == 2;
            let text = match is_state {
                true => Some(&mut directory.state),
                false => directory.answers.as_mut(),
            }?;
            let old = &bytes[text.begin as usize..][..text.length as usize];
            let mut value = serde_json::from_slice(old).ok()?;
            change(&mut value, chance);
            let new = serde_json::to_vec(&value).ok()?;
            (text.begin, text.length, text.sum) = (begin as u64, new.len() as u64, sum(&new));
            bytes.extend(new);
        }
    }
    seal(&bytes, &mut directory);
    Some(finished(pair, bytes, &directory))
}

/// The numbers of a column.
fn numbers(bytes: &[u8], place: &Place) -> Option<Vec<u64>> {
    let mut all: Vec<u64> = Vec::new();
    let mut begin = place.begin as usize;
    for length in &place.lengths {
        let block = &bytes[begin..begin + *length as usize];
        all.extend(unpack::<u64>(block, BLOCK.min(place.count as usize - all.len()))?);
        begin += block.len();
    }
    Some(all)
}

/// Makes the checksums of columns right, as far as these are in the file.
fn seal(bytes: &[u8], directory: &mut Directory) {
    for place in &mut directory.columns {
        let mut begin = place.begin;
        for (length, sum) in place.lengths.iter().zip(&mut place.sums) {
            let end = begin.saturating_add(u64::from(*length));
            let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
            if let Some(block) = range.and_then(|(begin, end)| bytes.get(begin..end)) {
                *sum = super::sum(block);
            }
            begin = end;
        }
    }
}

#[test]
fn changed_indexes_do_no_harm() {
    let mut chance = Chance(11);
    // Addresses in a bitmap, and sorted.
    for apart in [24, 1 << 40] {
        let pair = Pair::new(apart);
        let (mut used, mut refused) = (0, 0);
        for _ in 0..150 {
            let Some(index) = mutated(&pair, &mut chance) else { continue };
            match pair.open(&index) {
                Ok(heap) => {
                    ask(&heap, &mut chance);
                    used += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(used > 50 && refused > 10, "{used} were used, {refused} refused");
    }
}

#[test]
fn indexes_with_any_bytes_changed_do_no_harm() {
    let pair = Pair::new(24);
    let mut chance = Chance(13);
    for _ in 0..40 {
        let mut index = pair.index.clone();
        for _ in 0..=chance.below(4) {
            let at = chance.below(index.len() as u64) as usize;
            index[at] = chance.below(256) as u8;
        }
        index.truncate(index.len() - (chance.below(8) / 7 * chance.below(500)) as usize);
        if let Ok(heap) = pair.open(&index) {
            ask(&heap, &mut chance);
        }
    }
}

/// Of a damaged block the numbers come from the dump, which has fewer of them than an index may say.
#[test]
fn damaged_columns_that_claim_too_many_numbers_do_no_harm() {
    let pair = Pair::new(24);
    let mut chance = Chance(17);
    for names in [
        &["class", "size", "level", "place"][..],
        &["order", "parent", "dominator", "retained"],
        &["root.node", "root.number"],
        &["referrers"],
        &["chunks"],
        &["addresses", "before"],
    ] {
        let (mut directory, begin) = pair.directory();
        let mut bytes = pair.index[..begin].to_vec();
        directory.ids.count += u32::from(names[0] == "class");
        for place in directory.columns.iter_mut().filter(|p| names.contains(&p.name.as_str())) {
            let all = numbers(&bytes, place).expect("a column");
            put_column(&mut bytes, place, &all);
            // A number that does not end.
            bytes.push(0x80);
            *place.lengths.last_mut().expect("a block") += 1;
            place.count += 1;
        }
        seal(&bytes, &mut directory);
        let heap = pair.open(&finished(&pair, bytes, &directory));
        let heap = heap.unwrap_or_else(|why| panic!("{names:?}: {why:?}"));
        ask(&heap, &mut chance);
        assert_eq!(heap.index(), Some(true), "{names:?}");
    }
}
