//! The JVM's heap dumps, as far as a test needs them: which objects JNI references keep alive.
//!
//! Weak references are not in a dump: they keep nothing.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// What strong global references of JNI refer to: names of classes, and how many references.
pub type Globals = BTreeMap<String, usize>;

/// Records of the file.
const STRING: u8 = 0x01;
const LOAD_CLASS: u8 = 0x02;
const HEAP_DUMP: u8 = 0x0c;
const HEAP_DUMP_SEGMENT: u8 = 0x1c;

/// Of a file that no JVM has written, or one cut short, it panics: it is a test that asks.
pub fn jni_globals(file: &Path) -> Globals {
    let bytes = fs::read(file).unwrap_or_else(|e| panic!("reading {}: {e}", file.display()));
    globals(&bytes)
}

fn globals(bytes: &[u8]) -> Globals {
    let mut dump = Dump::default();
    let end = bytes.iter().position(|b| *b == 0).expect("the version is a text with an end");
    assert!(bytes.starts_with(b"JAVA PROFILE 1.0."), "not a heap dump");
    let mut reader = Reader { bytes: &bytes[end + 1..], wide: true };
    let size = reader.u4();
    assert!(size == 4 || size == 8, "identifiers of {size} bytes");
    reader.wide = size == 8;
    reader.skip(8);
    while !reader.bytes.is_empty() {
        let tag = reader.u1();
        reader.skip(4);
        let length = reader.u4();
        let body = Reader { bytes: reader.take(length), wide: reader.wide };
        dump.record(tag, body);
    }
    let name = |id: &u64| dump.describe(*id);
    let mut globals = Globals::new();
    for object in dump.globals.iter().map(name) {
        *globals.entry(object).or_default() += 1;
    }
    globals
}

#[derive(Default)]
struct Dump {
    strings: HashMap<u64, String>,
    /// By class object, the name.
    classes: HashMap<u64, u64>,
    /// By object, its class.
    objects: HashMap<u64, u64>,
    globals: Vec<u64>,
}

impl Dump {
    fn describe(&self, object: u64) -> String {
        let name = |class: u64| {
            let name = self.classes.get(&class).and_then(|name| self.strings.get(name));
            name.map_or_else(
                || "an array of a primitive type".to_owned(),
                |name| name.replace('/', "."),
            )
        };
        if self.classes.contains_key(&object) {
            return format!("class {}", name(object));
        }
        self.objects.get(&object).map_or_else(|| "unknown".to_owned(), |class| name(*class))
    }

    fn record(&mut self, tag: u8, mut body: Reader<'_>) {
        match tag {
            STRING => {
                let id = body.id();
                self.strings.insert(id, String::from_utf8_lossy(body.bytes).into_owned());
            }
            LOAD_CLASS => {
                body.skip(4);
                let class = body.id();
                body.skip(4);
                self.classes.insert(class, body.id());
            }
            HEAP_DUMP | HEAP_DUMP_SEGMENT => {
                while !body.bytes.is_empty() {
                    self.part(&mut body);
                }
            }
            _ => {}
        }
    }

    /// A root, a class or an object.
    fn part(&mut self, body: &mut Reader<'_>) {
        match body.u1() {
            0x01 => {
                let object = body.id();
                body.id();
                self.globals.push(object);
            }
            // Roots that need only be stepped over: unknown, classes, monitors …
            0xff | 0x05 | 0x07 => _ = body.id(),
            // … native stacks and blocked threads …
            0x04 | 0x06 => {
                body.id();
                body.skip(4);
            }
            // … locals of JNI and of Java, and threads.
            0x02 | 0x03 | 0x08 => {
                body.id();
                body.skip(8);
            }
            0x20 => class_dump(body),
            0x21 => {
                let object = body.id();
                body.skip(4);
                self.objects.insert(object, body.id());
                let length = body.u4();
                body.skip(length);
            }
            0x22 => {
                let object = body.id();
                body.skip(4);
                let length = body.u4();
                self.objects.insert(object, body.id());
                for _ in 0..length {
                    body.id();
                }
            }
            0x23 => {
                let object = body.id();
                body.skip(4);
                let length = body.u4();
                let each = body.size_of_type();
                body.skip(length * each);
                self.objects.insert(object, 0);
            }
            other => panic!("part {other:#x} of a heap dump is not known"),
        }
    }
}

fn class_dump(body: &mut Reader<'_>) {
    body.id();
    body.skip(4);
    // The class above it, loader, signers, protection domain and two that are kept free.
    for _ in 0..6 {
        body.id();
    }
    body.skip(4);
    for _ in 0..body.u2() {
        body.skip(2);
        let size = body.size_of_type();
        body.skip(size);
    }
    for _ in 0..body.u2() {
        body.id();
        let size = body.size_of_type();
        body.skip(size);
    }
    for _ in 0..body.u2() {
        body.id();
        body.u1();
    }
}

/// Big-endian, as all of it is.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Whether identifiers have eight bytes.
    wide: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        assert!(length <= self.bytes.len(), "the heap dump is cut short");
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        taken
    }

    fn skip(&mut self, length: usize) {
        self.take(length);
    }

    fn number(&mut self, length: usize) -> u64 {
        self.take(length).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn id(&mut self) -> u64 {
        self.number(if self.wide { 8 } else { 4 })
    }

    fn u1(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u2(&mut self) -> usize {
        self.number(2) as usize
    }

    fn u4(&mut self) -> usize {
        self.number(4) as usize
    }

    /// Of a value of the type whose number comes next.
    fn size_of_type(&mut self) -> usize {
        match self.u1() {
            2 if self.wide => 8,
            4 | 8 => 1,
            5 | 9 => 2,
            2 | 6 | 10 => 4,
            7 | 11 => 8,
            other => panic!("type {other} of a heap dump is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut all = vec![tag, 0, 0, 0, 0];
        all.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        all.extend(body);
        all
    }

    #[test]
    fn references_are_named_by_what_they_refer_to() {
        let mut file = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        file.extend(record(STRING, b"\0\0\0\x01a/Order"));
        file.extend(record(LOAD_CLASS, &[0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1]));
        let mut heap = vec![0x07, 0, 0, 0, 5];
        // An object with three bytes of fields, an array of two longs, and references to them.
        heap.extend([0x21, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 1, 2, 3]);
        heap.extend([0x23, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 2, 11]);
        heap.extend([0; 16]);
        for object in [5, 5, 6, 9, 7] {
            heap.extend([0x01, 0, 0, 0, object, 0, 0, 0, 1]);
        }
        file.extend(record(HEAP_DUMP_SEGMENT, &heap));
        file.extend(record(0x2c, &[]));
        let expected = [
            ("a.Order", 2),
            ("an array of a primitive type", 1),
            ("class a.Order", 1),
            ("unknown", 1),
        ];
        let expected: Globals = expected.map(|(name, n)| (name.to_owned(), n)).into();
        assert_eq!(globals(&file), expected);
    }

    #[test]
    #[should_panic(expected = "cut short")]
    fn half_a_dump_is_none() {
        globals(b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0\x1c\0\0\0\0\0\0\0\x09\x01");
    }
}
