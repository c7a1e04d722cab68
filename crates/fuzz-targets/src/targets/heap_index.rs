//! Any bytes as a small heap dump with an index beside it: no panic, no hang, bounded memory, and
//! answers to every question. `made.rs` tells how both are one input.

use super::file;
use flate2::Crc;
use serde_json::Value;
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::index::Key;
use tare_heapdump::{Heap, Options, Silent};

/// Bytes of the end of an index.
const TAIL: usize = 32;

/// Objects of which all is asked; there may be many.
const ASKED: u32 = 64;

pub fn run(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let Some((dump, index)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
        return;
    };
    let dump = file(dump, 0);
    let key = Key::of(&dump).expect("a file can be read");
    let key = serde_json::to_value(key).expect("a key is numbers");
    // A fuzzer finds neither checksums nor when the dump was changed.
    let index = sealed(index, &key).unwrap_or_else(|| index.to_vec());
    let index = file(&index, 0);
    let Ok(Ok(heap)) = Heap::of_index(dump, index, &Options::default(), &Silent) else { return };
    for by in [By::Class, By::Loader, By::Package] {
        heap.histogram(by);
    }
    for (least, most) in [(0.02, 5), (0.01, 25), (0.01, 20)] {
        let _ = heap.suspects(least, most);
    }
    let _ = heap.strings(10);
    let _ = heap.collection_rows();
    let _ = heap.boxed_rows();
    heap.thread_rows();
    heap.loader_rows();
    heap.dominated(None);
    for node in heap.nodes().take(ASKED as usize) {
        let _ = (heap.label(node), heap.inside(node, 0, 10), heap.path(node));
        let _ = (heap.retained(node), heap.dominator(node), heap.find(heap.address(node)));
    }
}

/// An index with the right key and the right checksums, as far as it can be understood.
fn sealed(index: &[u8], key: &Value) -> Option<Vec<u8>> {
    let (body, tail) = index.split_at_checked(index.len().checked_sub(TAIL)?)?;
    let begin = u64::from_le_bytes(*tail.first_chunk()?);
    let (columns, directory) = body.split_at_checked(usize::try_from(begin).ok()?)?;
    let mut directory: Value = serde_json::from_slice(directory).ok()?;
    *directory.get_mut("key")? = key.clone();
    for place in directory.get_mut("columns")?.as_array_mut()? {
        let mut begin = place.get("begin")?.as_u64()?;
        let lengths: Vec<Value> = place.get("lengths")?.as_array()?.clone();
        for (length, sum) in lengths.iter().zip(place.get_mut("sums")?.as_array_mut()?) {
            let length = length.as_u64()?;
            if let Some(block) = slice(columns, begin, length) {
                *sum = crc(block).into();
            }
            begin = begin.checked_add(length)?;
        }
    }
    for name in ["state", "answers"] {
        let Some(text) = directory.get_mut(name) else { continue };
        let number = |name: &str| text.get(name)?.as_u64();
        let part = number("begin").zip(number("length"));
        let part = part.and_then(|(begin, length)| slice(columns, begin, length));
        if let (Some(part), Some(sum)) = (part, text.get_mut("sum")) {
            *sum = crc(part).into();
        }
    }
    let directory = serde_json::to_vec(&directory).ok()?;
    let mut sealed = columns.to_vec();
    sealed.extend(&directory);
    sealed.extend(begin.to_le_bytes());
    sealed.extend((directory.len() as u64).to_le_bytes());
    sealed.extend(crc(&directory).to_le_bytes());
    sealed.extend(&tail[20..]);
    Some(sealed)
}

fn slice(bytes: &[u8], begin: u64, length: u64) -> Option<&[u8]> {
    let end = usize::try_from(begin.checked_add(length)?).ok()?;
    bytes.get(usize::try_from(begin).ok()?..end)
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
