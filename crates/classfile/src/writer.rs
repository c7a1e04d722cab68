//! Writing: a constant pool that grows at its end, and a class put together from ranges.
//!
//! The default is the identity. The pool of the original is copied as it stands and new entries
//! follow it, so every index in the bytes that were not touched stays right.

use crate::class::ClassFile;
use crate::pool::{ConstantPool, tag};
use std::ops::Range;

/// The constant pool has no room for another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull;

/// The pool of a class plus new entries. An entry that exists already is used again.
#[derive(Debug)]
pub struct PoolBuilder<'a> {
    file: &'a [u8],
    original: &'a [u8],
    /// Where each entry starts: in `file`, or in `added` behind the end of `file`.
    starts: Vec<u32>,
    added: Vec<u8>,
    /// Open addressing over entry bytes; 0 is empty. Built when first asked for.
    table: Vec<u16>,
}

impl<'a> PoolBuilder<'a> {
    pub fn new(class: &ClassFile<'a>) -> Self {
        let pool: &ConstantPool<'a> = &class.pool;
        Self {
            file: class.bytes,
            original: pool.bytes(),
            starts: pool.offsets().to_vec(),
            added: Vec::new(),
            table: Vec::new(),
        }
    }

    /// What `constant_pool_count` will be.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// How many bytes were added.
    pub fn added_len(&self) -> usize {
        self.added.len()
    }

    fn entry(&self, index: u16) -> &[u8] {
        let at = self.starts.get(usize::from(index)).copied().unwrap_or(0) as usize;
        let data = match at.checked_sub(self.file.len()) {
            Some(at) => self.added.get(at..),
            None => self.file.get(at..),
        };
        let data = data.unwrap_or(&[]);
        let len = match data {
            [tag::UTF8, hi, lo, ..] => 3 + usize::from(u16::from_be_bytes([*hi, *lo])),
            [tag::LONG | tag::DOUBLE, ..] => 9,
            [tag::CLASS | tag::STRING | tag::METHOD_TYPE | tag::MODULE | tag::PACKAGE, ..] => 3,
            [tag::METHOD_HANDLE, ..] => 4,
            _ => 5,
        };
        data.get(..len).unwrap_or(&[])
    }

    fn build_table(&mut self) {
        let size = (self.starts.len() * 2 + 64).next_power_of_two();
        self.table = vec![0; size];
        for index in 1..self.starts.len() {
            if self.starts.get(index).is_some_and(|&s| s != 0) {
                let index = index as u16;
                let slot = self.slot(self.entry(index));
                if let Some(free) = self.table.get_mut(slot)
                    && *free == 0
                {
                    *free = index;
                }
            }
        }
    }

    /// The slot that holds an entry with these bytes, or the empty one where it belongs.
    fn slot(&self, entry: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash(entry) as usize & mask;
        loop {
            match self.table.get(at) {
                Some(&index) if index != 0 && self.entry(index) != entry => at = (at + 1) & mask,
                _ => return at,
            }
        }
    }

    fn prepare(&mut self) {
        // At most half full, so that a probe always finds an empty slot.
        if self.table.len() < self.starts.len() * 2 {
            self.build_table();
        }
    }

    fn find(&mut self, entry: &[u8]) -> Option<u16> {
        self.prepare();
        self.table.get(self.slot(entry)).copied().filter(|&i| i != 0)
    }

    fn intern(&mut self, entry: &[u8]) -> Result<u16, PoolFull> {
        self.prepare();
        let slot = self.slot(entry);
        match self.table.get(slot) {
            Some(&index) if index != 0 => Ok(index),
            _ => {
                let index = self.starts.len();
                if index >= usize::from(u16::MAX) {
                    return Err(PoolFull);
                }
                self.starts.push((self.file.len() + self.added.len()) as u32);
                self.added.extend_from_slice(entry);
                if let Some(free) = self.table.get_mut(slot) {
                    *free = index as u16;
                }
                Ok(index as u16)
            }
        }
    }

    pub fn utf8(&mut self, bytes: &[u8]) -> Result<u16, PoolFull> {
        let Ok(len) = u16::try_from(bytes.len()) else {
            return Err(PoolFull);
        };
        let [hi, lo] = len.to_be_bytes();
        self.intern(&[&[tag::UTF8, hi, lo], bytes].concat())
    }

    fn one(&mut self, tag: u8, index: u16) -> Result<u16, PoolFull> {
        let [hi, lo] = index.to_be_bytes();
        self.intern(&[tag, hi, lo])
    }

    fn two(&mut self, tag: u8, a: u16, b: u16) -> Result<u16, PoolFull> {
        let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
        self.intern(&[tag, a, b, c, d])
    }

    /// A `Class` entry by internal name or array descriptor.
    pub fn class(&mut self, name: &[u8]) -> Result<u16, PoolFull> {
        let name = self.utf8(name)?;
        self.one(tag::CLASS, name)
    }

    /// The `Class` entry of that name if there is one already.
    pub fn find_class(&mut self, name: &[u8]) -> Option<u16> {
        let [hi, lo] = u16::try_from(name.len()).ok()?.to_be_bytes();
        let utf8 = self.find(&[&[tag::UTF8, hi, lo], name].concat())?;
        let [hi, lo] = utf8.to_be_bytes();
        self.find(&[tag::CLASS, hi, lo])
    }

    /// The name of a `Class` entry, also of one that was added.
    pub fn class_name(&self, index: u16) -> Option<&[u8]> {
        match self.entry(index) {
            &[tag::CLASS, hi, lo] => match self.entry(u16::from_be_bytes([hi, lo])) {
                [tag::UTF8, _, _, name @ ..] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The tag of an entry, also of one that was added.
    pub fn tag(&self, index: u16) -> Option<u8> {
        self.entry(index).first().copied()
    }

    /// Name and descriptor of a field, a method or a dynamic constant, also of one that was added.
    pub fn name_and_type(&self, index: u16) -> Option<(&[u8], &[u8])> {
        let &[
            tag::FIELDREF
            | tag::METHODREF
            | tag::INTERFACE_METHODREF
            | tag::DYNAMIC
            | tag::INVOKE_DYNAMIC,
            _,
            _,
            hi,
            lo,
        ] = self.entry(index)
        else {
            return None;
        };
        let &[tag::NAME_AND_TYPE, a, b, c, d] = self.entry(u16::from_be_bytes([hi, lo])) else {
            return None;
        };
        match (self.entry(u16::from_be_bytes([a, b])), self.entry(u16::from_be_bytes([c, d]))) {
            ([tag::UTF8, _, _, name @ ..], [tag::UTF8, _, _, descriptor @ ..]) => {
                Some((name, descriptor))
            }
            _ => None,
        }
    }

    /// A `String` constant, in the class file's own form of UTF-8.
    pub fn string(&mut self, text: &[u8]) -> Result<u16, PoolFull> {
        let text = self.utf8(text)?;
        self.one(tag::STRING, text)
    }

    /// A `Module` entry by name.
    pub fn module(&mut self, name: &[u8]) -> Result<u16, PoolFull> {
        let name = self.utf8(name)?;
        self.one(tag::MODULE, name)
    }

    pub fn integer(&mut self, value: i32) -> Result<u16, PoolFull> {
        let [a, b, c, d] = value.to_be_bytes();
        self.intern(&[tag::INTEGER, a, b, c, d])
    }

    /// A `Methodref` or `InterfaceMethodref`.
    pub fn method(
        &mut self,
        owner: &[u8],
        name: &[u8],
        descriptor: &[u8],
        interface: bool,
    ) -> Result<u16, PoolFull> {
        let class = self.class(owner)?;
        let name = self.utf8(name)?;
        let descriptor = self.utf8(descriptor)?;
        let name_and_type = self.two(tag::NAME_AND_TYPE, name, descriptor)?;
        let tag = if interface { tag::INTERFACE_METHODREF } else { tag::METHODREF };
        self.two(tag, class, name_and_type)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.starts.len() as u16).to_be_bytes());
        out.extend_from_slice(self.original);
        out.extend_from_slice(&self.added);
    }
}

/// A multiplicative hash over eight bytes at a time; quality matters little, speed does.
fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0x517c_c1b7_2722_0a95;
    let mut h = bytes.len() as u64;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for c in chunks {
        h = (h.rotate_left(5) ^ u64::from_le_bytes(*c)).wrapping_mul(K);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    h = (h.rotate_left(5) ^ u64::from_le_bytes(last)).wrapping_mul(K);
    h ^ h >> 29
}

/// A method's new bytes: its index in the class, and where they stand in a buffer.
#[derive(Clone, Debug)]
pub struct Replaced {
    pub method: usize,
    pub range: Range<usize>,
}

/// Puts a class together: the pool with what was added, replaced methods, all else as it was.
///
/// `replaced` is in the order of the methods; its ranges point into `methods`.
pub fn assemble(
    class: &ClassFile<'_>,
    pool: &PoolBuilder<'_>,
    replaced: &[Replaced],
    methods: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(class.bytes.len() + pool.added.len() + methods.len());
    out.extend_from_slice(&crate::class::MAGIC.to_be_bytes());
    out.extend_from_slice(&class.minor.to_be_bytes());
    out.extend_from_slice(&class.major.to_be_bytes());
    pool.write(&mut out);
    out.extend_from_slice(class.before_methods);
    out.extend_from_slice(&(class.methods.len() as u16).to_be_bytes());
    let mut next = replaced.iter().peekable();
    for (index, method) in class.methods.iter().enumerate() {
        match next.next_if(|r| r.method == index) {
            Some(r) => out.extend_from_slice(methods.get(r.range.clone()).unwrap_or(&[])),
            None => out.extend_from_slice(method.raw),
        }
    }
    out.extend_from_slice(class.after_methods);
    out
}

/// A class with other attributes of its own, each with name and length; members stay as they were.
pub fn assemble_with(
    class: &ClassFile<'_>,
    pool: &PoolBuilder<'_>,
    attributes: &[Vec<u8>],
) -> Vec<u8> {
    let mut out = assemble(class, pool, &[], &[]);
    out.truncate(out.len() - class.after_methods.len());
    out.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
    out.extend(attributes.iter().flatten());
    out
}

/// Writes a class again from what was read: the identity, and a check of the reader.
pub fn write(class: &ClassFile<'_>) -> Vec<u8> {
    assemble(class, &PoolBuilder::new(class), &[], &[])
}
