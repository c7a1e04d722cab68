//! Texts that are there more than once, and arrays that hold nothing but zeros.

use super::visit::Look;
use crate::classes::{ClassId, Type};
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::{Bits, Node};
use crate::levels::{Level, Sum};
use crate::source::{Decoder, MOST_VALUES};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

#[derive(Clone, Debug, Default)]
pub struct Strings {
    /// Strings that are held, with their arrays; an array that several share counts once.
    pub all: Sum,
    /// Arrays that repeat what another one has, and their bytes.
    pub repeated: Sum,
    /// The texts whose repetitions take most, the largest first.
    pub rows: Vec<StringRow>,
    /// Arrays of at least [`SMALLEST`] elements that are all zero, by type.
    pub zeros: Vec<(Type, Sum)>,
}

#[derive(Clone, Debug)]
pub struct StringRow {
    /// An array with the text.
    pub node: Node,
    /// A string that has it.
    pub string: Node,
    pub arrays: u64,
    /// What all but one of them take.
    pub wasted: u64,
}

/// Shorter arrays of zeros are nothing to speak of.
pub const SMALLEST: u32 = 64;

/// Finds the arrays of strings.
struct Arrays {
    string: ClassId,
    value: u32,
    decoder: Decoder,
    /// Addresses of arrays, each with its string.
    found: Vec<(u64, Node)>,
    strings: u64,
}

impl Look for Arrays {
    fn instance(&mut self, node: Node, class: ClassId, bytes: &[u8]) {
        if class == self.string {
            self.strings += 1;
            let array = self.decoder.reference(bytes, self.value);
            if array != 0 {
                self.found.push((array, node));
            }
        }
    }
}

/// Compares what is in arrays by numbers that hardly two of them have in common.
struct Hashes<'a> {
    heap: &'a Heap,
    is_text: &'a Bits,
    found: Vec<(u64, Node)>,
    zeros: HashMap<u8, Sum>,
}

impl Look for Hashes<'_> {
    fn values(&mut self, node: Node, kind: Type, length: u32, bytes: &[u8]) {
        if self.heap.level(node) != Level::Strong {
            return;
        }
        if length >= SMALLEST && bytes.iter().all(|byte| *byte == 0) {
            let whole = length as usize * kind.size(0) as usize;
            if bytes.len() == whole {
                self.zeros.entry(kind as u8).or_default().add(self.heap.size(node));
            }
        }
        if self.is_text.has(node) && bytes.len() < MOST_VALUES {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(kind as u8);
            hasher.write(bytes);
            self.found.push((hasher.finish(), node));
        }
    }
}

impl Heap {
    /// At most so many texts.
    pub fn strings(&self, most: usize) -> Result<Strings> {
        let mut strings = Strings::default();
        let Some(string) = self.classes().named("java.lang.String") else { return Ok(strings) };
        let Some(value) = self.classes().field(string, "value").map(|field| field.offset) else {
            return Ok(strings);
        };
        let decoder = self.source.decoder();
        let make = || Arrays { string, value, decoder, found: Vec::new(), strings: 0 };
        let mut owners: Vec<(Node, Node)> = Vec::new();
        for part in self.look(false, make)? {
            let held = |(address, string): (u64, Node)| {
                let is_held = self.level(string) == Level::Strong;
                Some((self.find(address)?, string)).filter(|_| is_held)
            };
            owners.extend(part.found.into_iter().filter_map(held));
        }
        strings.all.objects = owners.len() as u64;
        strings.all.bytes = owners.iter().map(|(_, string)| self.size(*string)).sum();
        owners.sort_unstable();
        owners.dedup_by_key(|(array, _)| *array);
        strings.all.bytes += owners.iter().map(|(array, _)| self.size(*array)).sum::<u64>();
        let mut is_text = Bits::new(self.objects() as usize);
        owners.iter().for_each(|(array, _)| _ = is_text.set(*array));
        let make =
            || Hashes { heap: self, is_text: &is_text, found: Vec::new(), zeros: HashMap::new() };
        let mut found: Vec<(u64, Node)> = Vec::new();
        let mut zeros: HashMap<u8, Sum> = HashMap::new();
        for part in self.look(true, make)? {
            found.extend(part.found);
            for (kind, part) in part.zeros {
                let sum = zeros.entry(kind).or_default();
                sum.objects += part.objects;
                sum.bytes += part.bytes;
            }
        }
        strings.zeros = Type::PRIMITIVE
            .into_iter()
            .filter_map(|kind| Some((kind, *zeros.get(&(kind as u8))?)))
            .collect();
        strings.zeros.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
        found.sort_unstable();
        for same in found.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            let node = same[0].1;
            let (extra, size) = (same.len() as u64 - 1, self.size(node));
            strings.repeated.objects += extra;
            strings.repeated.bytes += extra * size;
            let at = owners.partition_point(|(array, _)| *array < node);
            let string = owners.get(at).map_or(node, |(_, string)| *string);
            let arrays = same.len() as u64;
            strings.rows.push(StringRow { node, string, arrays, wasted: extra * size });
        }
        strings.rows.sort_by_key(|row| (std::cmp::Reverse(row.wasted), row.node));
        strings.rows.truncate(most);
        Ok(strings)
    }
}
