//! A whole heap as a `.hprof` file, which other tools read.

use super::record::Width;
use super::write::{ClassOut, Writer};
use crate::classes::{ClassId, Type};
use crate::error::{HeapError, Result};
use crate::heap::Heap;
use crate::progress::Progress;
use crate::roots::{Root, RootKind};
use crate::source::{Decoder, MOST_VALUES, Object, Visitor};
use std::collections::HashMap;
use std::io::{self, Write};

/// Ids of frames begin here; those of texts are small numbers.
const FRAMES: u64 = 1 << 40;

impl Heap {
    /// Writes all objects, also those that nothing holds.
    pub fn write_hprof<W: Write>(&self, out: W, progress: &dyn Progress) -> Result<W> {
        let writer = Writer::new(out, Width::Eight, self.about().taken);
        let mut export = Export {
            heap: self,
            decoder: self.source.decoder(),
            writer: writer.map_err(failed)?,
            texts: HashMap::new(),
            body: Vec::new(),
            rest: None,
            error: None,
        };
        export.names().map_err(failed)?;
        export.roots().map_err(failed)?;
        let parts = self.source.parts();
        let all: u64 = parts.iter().map(|part| part.bytes).sum();
        let mut done = 0;
        for (at, part) in parts.iter().enumerate() {
            self.source.walk(at, &mut export)?;
            if let Some(error) = export.error.take() {
                return Err(error);
            }
            done += part.bytes;
            progress.tell("writing", done, all);
        }
        export.writer.finish().map_err(failed)
    }
}

fn failed(error: io::Error) -> HeapError {
    HeapError::Io { doing: "the dump cannot be written", error }
}

struct Export<'a, W> {
    heap: &'a Heap,
    decoder: Decoder,
    writer: Writer<W>,
    texts: HashMap<String, u64>,
    body: Vec<u8>,
    /// A large array of values of which only the beginning was shown: its address, type, length,
    /// and how many elements are written.
    rest: Option<(u64, Type, u32, u32)>,
    error: Option<HeapError>,
}

impl<W: Write> Export<'_, W> {
    fn text(&mut self, text: &str) -> io::Result<u64> {
        if let Some(id) = self.texts.get(text) {
            return Ok(*id);
        }
        let id = self.texts.len() as u64 + 1;
        self.writer.text(id, text)?;
        self.texts.insert(text.to_owned(), id);
        Ok(id)
    }

    /// The id of a class: its own object, or a number that no object has.
    fn id_of(&self, class: ClassId) -> u64 {
        match self.heap.classes().get(class).address {
            0 => u64::from(class) + 1,
            address => address,
        }
    }

    /// Names of classes and fields, and frames of threads.
    fn names(&mut self) -> io::Result<()> {
        let heap = self.heap;
        let mut serials: HashMap<&str, u32> = HashMap::new();
        for (id, class) in heap.classes().iter().skip(1) {
            let name = self.text(&internal_name(&class.name))?;
            self.writer.load_class(id, self.id_of(id), name)?;
            serials.entry(&class.name).or_insert(id);
            let fields = class.fields.iter().map(|field| &field.name);
            for name in fields.chain(class.statics.iter().map(|field| &field.name)) {
                self.text(name)?;
            }
        }
        let mut next = FRAMES;
        for (number, thread) in (1..).zip(heap.threads()) {
            let mut frames = Vec::new();
            for text in &thread.frames {
                let (class, method, source, line) = parts_of(text);
                let (method, source) = (self.text(method)?, self.text(source)?);
                let serial = serials.get(class).copied().unwrap_or(0);
                self.writer.frame(next, method, source, serial, line)?;
                frames.push(next);
                next += 1;
            }
            self.writer.trace(number, number, &frames)?;
        }
        Ok(())
    }

    fn roots(&mut self) -> io::Result<()> {
        // VisualVM fails at a root that is no object of the dump.
        let is_there = |root: &&Root| self.heap.find(root.object).is_some();
        for root in self.heap.source.roots().iter().filter(is_there) {
            let thread = root.thread.map_or(0, |thread| thread + 1);
            let frame = match root.kind {
                RootKind::Thread => thread,
                _ => root.frame.unwrap_or(u32::MAX),
            };
            self.writer.root(root.kind, root.object, thread, frame)?;
        }
        Ok(())
    }

    fn keep(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.error.get_or_insert(failed(error));
        }
    }

    fn write_class(&mut self, address: u64, id: ClassId) -> io::Result<()> {
        let heap = self.heap;
        let class = heap.classes().get(id);
        let mut statics = Vec::new();
        for field in &class.statics {
            statics.push((self.text(&field.name)?, field.kind, field.value));
        }
        let mut fields = Vec::new();
        for field in &class.fields {
            fields.push((self.text(&field.name)?, field.kind));
        }
        let all = heap.classes().fields(id);
        let size = all.map(|placed| placed.field.kind.size(8)).sum();
        let super_class = class.super_class.map_or(0, |above| self.id_of(above));
        let (statics, fields) = (&statics, &fields);
        let loader = class.loader;
        self.writer.class(&ClassOut { address, super_class, loader, size, statics, fields })
    }

    fn write_instance(&mut self, address: u64, id: ClassId, bytes: &[u8]) -> io::Result<()> {
        self.body.clear();
        for placed in self.heap.classes().fields(id) {
            let kind = placed.field.kind;
            let bits = self.decoder.value(bytes, placed.offset, kind);
            Writer::<W>::put(Width::Eight, &mut self.body, kind, bits);
        }
        self.writer.instance(address, self.id_of(id), &self.body)
    }

    /// Values in the order of the file.
    fn put_values(&mut self, kind: Type, bytes: &[u8]) {
        let size = kind.size(0) as usize;
        match self.decoder {
            Decoder::Big(_) => self.writer.bytes(bytes),
            _ if size == 1 => self.writer.bytes(bytes),
            _ => {
                let mut turned = bytes.to_vec();
                turned.chunks_exact_mut(size).for_each(<[u8]>::reverse);
                self.writer.bytes(&turned);
            }
        }
    }

    fn write_values(
        &mut self,
        address: u64,
        kind: Type,
        length: u32,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.writer.values(address, kind, length)?;
        self.put_values(kind, bytes);
        let shown = bytes.len() as u32 / kind.size(0);
        if shown < length {
            self.rest = Some((address, kind, length, shown));
        }
        Ok(())
    }

    /// The elements of a large array behind those that were shown; zeros if they are missing.
    fn write_rest(&mut self) -> Result<()> {
        let Some((address, kind, length, mut shown)) = self.rest.take() else { return Ok(()) };
        let most = MOST_VALUES as u32 / kind.size(0);
        while shown < length {
            let object = self.heap.source.object(address, shown, most)?;
            let count = match object {
                Some(Object::Values { bytes, .. }) if !bytes.is_empty() => {
                    self.put_values(kind, &bytes);
                    bytes.len() as u32 / kind.size(0)
                }
                _ => {
                    let count = (length - shown).min(most);
                    self.writer.bytes(&vec![0; (count * kind.size(0)) as usize]);
                    count
                }
            };
            shown += count;
        }
        Ok(())
    }
}

impl<W: Write> Visitor for Export<'_, W> {
    fn wants_values(&self) -> bool {
        true
    }

    fn class(&mut self, address: u64, class: ClassId, _: &[u64]) {
        let outcome = self.write_class(address, class);
        self.keep(outcome);
    }

    fn instance(&mut self, address: u64, class: ClassId, bytes: &[u8]) {
        let outcome = self.write_instance(address, class, bytes);
        self.keep(outcome);
    }

    fn array(&mut self, address: u64, class: ClassId, length: u32) {
        let outcome = self.writer.array(address, self.id_of(class), length);
        self.keep(outcome);
    }

    fn elements(&mut self, elements: &[u64]) {
        let outcome = self.writer.elements(elements);
        self.keep(outcome);
    }

    fn array_end(&mut self) {
        let outcome = self.writer.array_end();
        self.keep(outcome);
    }

    fn values(&mut self, address: u64, kind: Type, length: u32, bytes: &[u8]) {
        let outcome = self.write_values(address, kind, length, bytes);
        self.keep(outcome);
        if let Err(error) = self.write_rest() {
            self.error.get_or_insert(error);
        }
        let outcome = self.writer.array_end();
        self.keep(outcome);
    }
}

/// `com.acme.A[][]` as `[[Lcom/acme/A;`.
fn internal_name(name: &str) -> String {
    let element = name.trim_end_matches("[]");
    let depth = (name.len() - element.len()) / 2;
    if depth == 0 {
        return element.replace('.', "/");
    }
    let primitive = Type::PRIMITIVE.into_iter().find(|kind| kind.name() == element);
    let letter = match primitive {
        Some(Type::Boolean) => "Z".to_owned(),
        Some(Type::Long) => "J".to_owned(),
        Some(kind) => kind.name()[..1].to_uppercase(),
        None => format!("L{};", element.replace('.', "/")),
    };
    "[".repeat(depth) + &letter
}

/// Class, method, file and line of `com.acme.A.run(A.java:17)`.
fn parts_of(frame: &str) -> (&str, &str, &str, i32) {
    let (path, place) = frame.split_once('(').unwrap_or((frame, ""));
    let (class, method) = path.rsplit_once('.').unwrap_or(("", path));
    let place = place.trim_end_matches(')');
    let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
    if file == "native" {
        (class, method, "", -3)
    } else {
        (class, method, file, line.parse().unwrap_or(-1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_class_files_have_them() {
        for (name, internal) in [
            ("java.lang.String", "java/lang/String"),
            ("long[]", "[J"),
            ("boolean[][]", "[[Z"),
            ("char[]", "[C"),
            ("a.B$C[]", "[La/B$C;"),
        ] {
            assert_eq!(internal_name(name), internal);
            assert_eq!(crate::classes::source_name(internal), name);
        }
        assert_eq!(parts_of("a.B.run(B.java:17)"), ("a.B", "run", "B.java", 17));
        assert_eq!(parts_of("a.B.run(native)"), ("a.B", "run", "", -3));
        assert_eq!(parts_of("a.B.run"), ("a.B", "run", "", -1));
    }
}
