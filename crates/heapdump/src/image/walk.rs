//! Objects of a snapshot: all of a part, or one by its address.

use super::{Found, Image, Stretch};
use crate::addresses::Addresses;
use crate::classes::{ClassId, Classes, Kind, Type};
use crate::error::{HeapError, Result};
use crate::layout::Layout;
use crate::par;
use crate::progress::Progress;
use crate::roots::{Root, Thread};
use crate::snapshot::{ClassKind, Run, Sample};
use crate::source::{About, Decoder, MOST_VALUES, Object, Part, Source, Visitor};
use crate::window::{PORTION, Window};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one piece of work.
const PART: u64 = 16 << 20;

/// Elements that are handed on at once.
const BATCH: usize = 8 << 10;

/// The largest object that is no array; a mirror with 65,535 static fields is smaller.
const LARGEST: u64 = 8 << 20;

/// What the header of an object says.
struct Header {
    class: ClassId,
    size: u64,
    /// Of an array.
    length: u32,
}

impl Image {
    /// The header of the object at which the window stands; `None` if it cannot be understood.
    fn header(&self, window: &mut Window<'_>) -> Result<Option<Header>> {
        let left = window.left();
        let bytes = window.peek(self.objects.least())?;
        let klass = self.objects.klass(bytes);
        let Some(class) = klass.and_then(|klass| self.by_klass.get(&klass)) else {
            return Ok(None);
        };
        let record = &self.snapshot.classes[*class as usize - 1];
        let size = self.objects.size_of(record, bytes).filter(|size| *size <= left);
        let is_array = !matches!(record.kind, ClassKind::Instance { .. });
        let length = if is_array { self.objects.array_length(bytes).unwrap_or(0) } else { 0 };
        let fits = |size: &u64| is_array || *size <= LARGEST;
        Ok(size.filter(fits).map(|size| Header { class: *class, size, length }))
    }

    /// Walks over all runs once, for the addresses of objects and where parts can begin.
    pub(super) fn find_objects(&mut self, progress: &dyn Progress) -> Result<Vec<Addresses>> {
        let done = AtomicU64::new(0);
        let all = self.snapshot.image_bytes();
        let runs = &self.snapshot.runs;
        let groups = groups(runs);
        let outcomes = par::each(groups.len(), |at| {
            let mut window = Window::new(self, PORTION);
            let mut found = (Addresses::default(), Vec::new(), Vec::new());
            for run in &runs[groups[at].clone()] {
                let (addresses, parts, notes) = &mut found;
                self.find_in_run(&mut window, run, addresses, parts, notes)?;
                let sum = done.fetch_add(run.length, Ordering::Relaxed) + run.length;
                progress.tell("reading objects", sum, all);
            }
            Ok(found)
        });
        let mut lists = Vec::new();
        for outcome in outcomes {
            let (addresses, parts, notes): (Addresses, Vec<Stretch>, Vec<String>) = outcome?;
            lists.push(addresses);
            self.parts.extend(parts);
            self.notes.extend(notes.into_iter().take(3));
        }
        Ok(lists)
    }

    fn find_in_run(
        &self,
        window: &mut Window<'_>,
        run: &Run,
        addresses: &mut Addresses,
        parts: &mut Vec<Stretch>,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let end = run.offset + run.length;
        window.go(run.offset, end);
        let empty =
            |address, begin| Stretch { address, begin, end: begin, most_edges: 0, objects: 0 };
        let mut part = empty(run.address, run.offset);
        while window.left() > 0 {
            let address = run.address + (window.offset() - run.offset);
            let Some(header) = self.header(window)? else {
                let left = window.left() >> 10;
                notes.push(format!("the object at @{address:x} is of no known class; {left} KiB behind it are left out"));
                break;
            };
            addresses.push(address);
            part.objects += 1;
            part.most_edges += self.most_edges(address, &header);
            window.skip(header.size);
            part.end = window.offset();
            if part.end - part.begin >= PART {
                parts.push(part);
                part = empty(address + header.size, part.end);
            }
        }
        if part.objects > 0 {
            parts.push(part);
        }
        Ok(())
    }

    /// The most references of an object, with one for its class and one for the list's length.
    fn most_edges(&self, address: u64, header: &Header) -> u64 {
        let class = self.classes.get(header.class);
        let own = class.references.len() as u64 + u64::from(class.referent.is_some());
        let more = match self.by_mirror.get(&address) {
            Some(id) => {
                let edges = self.edges.get(&address).map_or(0, Vec::len);
                self.classes.get(*id).statics.len() + edges + 2
            }
            None => 0,
        };
        own + u64::from(header.length) + more as u64 + 2
    }

    /// The whole bytes of an object that is no array.
    pub(super) fn bytes_of(&self, address: u64) -> Result<Option<Vec<u8>>> {
        let mut window = Window::new(self, 4096);
        let Some((begin, left)) = self.offset(address) else { return Ok(None) };
        window.go(begin, begin + left);
        let Some(header) = self.header(&mut window)? else { return Ok(None) };
        if self.classes.get(header.class).is_array() {
            return Ok(None);
        }
        Ok(window.take(header.size as usize)?.map(<[u8]>::to_vec))
    }

    /// What a class' own object refers to.
    fn references_of_class(&self, id: ClassId, of: ClassId, bytes: &[u8], into: &mut Vec<u64>) {
        let decoder = self.decoder();
        let class = self.classes.get(id);
        into.clear();
        let fields = self.classes.get(of).references.iter();
        into.extend(fields.map(|offset| decoder.reference(bytes, *offset)));
        let statics = class.statics.iter().filter(|field| field.kind == Type::Reference);
        into.extend(statics.map(|field| field.value));
        into.push(class.loader);
        into.extend(class.super_class.map(|above| self.classes.get(above).address));
        into.extend(self.edges.get(&class.address).into_iter().flatten());
    }

    /// Shows the object at which the window stands, and goes behind it.
    fn show(
        &self,
        window: &mut Window<'_>,
        address: u64,
        header: &Header,
        batch: &mut Vec<u64>,
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        let begin = window.offset();
        let cut = || HeapError::damaged(begin, "an object is cut off");
        match self.snapshot.classes[header.class as usize - 1].kind {
            ClassKind::Instance { .. } => {
                let mirrored = self.by_mirror.get(&address);
                let bytes = window.take(header.size as usize)?.ok_or_else(cut)?;
                match mirrored {
                    Some(id) => {
                        self.references_of_class(*id, header.class, bytes, batch);
                        visitor.class(address, *id, batch);
                    }
                    None => visitor.instance(address, header.class, bytes),
                }
            }
            ClassKind::ObjectArray { first, element } => {
                visitor.array(address, header.class, header.length);
                window.skip(first.into());
                let mut show = |some: &[u64]| visitor.elements(some);
                self.elements(window, header.length, element, batch, &mut show)?;
                visitor.array_end();
            }
            ClassKind::PrimitiveArray { first, element, .. } => {
                let kind = match self.classes.get(header.class).kind {
                    Kind::PrimitiveArray(kind) => kind,
                    _ => Type::Byte,
                };
                window.skip(first.into());
                let all = u64::from(header.length) * u64::from(element);
                let wanted = if visitor.wants_values() { all.min(MOST_VALUES as u64) } else { 0 };
                let bytes = window.take(wanted as usize)?.ok_or_else(cut)?;
                visitor.values(address, kind, header.length, bytes);
            }
        }
        let shown = window.offset() - begin;
        window.skip(header.size.saturating_sub(shown));
        Ok(())
    }

    fn elements(
        &self,
        window: &mut Window<'_>,
        length: u32,
        element: u32,
        batch: &mut Vec<u64>,
        show: &mut dyn FnMut(&[u64]),
    ) -> Result<()> {
        let decoder = self.decoder();
        let size = element.max(1) as usize;
        let mut left = length as usize;
        while left > 0 {
            let count = left.min(BATCH);
            let Some(bytes) = window.take(count * size)? else { return Ok(()) };
            batch.clear();
            batch.extend(bytes.chunks_exact(size).map(|bytes| decoder.reference(bytes, 0)));
            show(batch);
            left -= count;
        }
        Ok(())
    }
}

/// Runs in groups that are worth a turn.
fn groups(runs: &[Run]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut begin, mut sum) = (0, 0);
    for (at, run) in runs.iter().enumerate() {
        sum += run.length;
        if sum >= PART || at + 1 == runs.len() {
            groups.push(begin..at + 1);
            (begin, sum) = (at + 1, 0);
        }
    }
    groups
}

impl Source for Image {
    fn classes(&self) -> &Classes {
        &self.classes
    }

    fn roots(&self) -> &[Root] {
        &self.roots
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn decoder(&self) -> Decoder {
        match self.snapshot.head.narrow_oop {
            Some(narrow) => Decoder::Narrow { base: narrow.base, shift: narrow.shift & 63 },
            None => Decoder::Little,
        }
    }

    fn about(&self) -> About {
        let head = &self.snapshot.head;
        let origin =
            format!("JVM {} (JDK {}, {}), {}", head.pid, head.java, head.collector, head.taken);
        About { taken: 0, origin, notes: self.notes.clone(), is_redacted: head.redacted }
    }

    fn state(&self) -> std::result::Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Found { parts: self.parts.clone(), notes: self.notes.clone() })
    }

    fn is_snapshot(&self) -> bool {
        true
    }

    fn samples(&self) -> &[Sample] {
        &self.snapshot.samples
    }

    fn parts(&self) -> Vec<Part> {
        let part = |part: &Stretch| Part {
            most_edges: part.most_edges,
            objects: part.objects,
            bytes: part.end - part.begin,
        };
        self.parts.iter().map(part).collect()
    }

    fn walk(&self, part: usize, visitor: &mut dyn Visitor) -> Result<()> {
        let part = self.parts[part];
        let mut window = Window::new(self, PORTION);
        let mut batch = Vec::new();
        window.go(part.begin, part.end);
        while window.left() > 0 {
            let address = part.address + (window.offset() - part.begin);
            let Some(header) = self.header(&mut window)? else { break };
            self.show(&mut window, address, &header, &mut batch, visitor)?;
        }
        Ok(())
    }

    fn object(&self, address: u64, skip: u32, limit: u32) -> Result<Option<Object>> {
        if let Some(id) = self.by_mirror.get(&address) {
            return Ok(Some(Object::Class(*id)));
        }
        let Some((begin, left)) = self.offset(address) else { return Ok(None) };
        let mut window = Window::new(self, 4096);
        window.go(begin, begin + left);
        let Some(header) = self.header(&mut window)? else { return Ok(None) };
        let (class, length) = (header.class, header.length);
        let skip = skip.min(length);
        let count = (length - skip).min(limit);
        Ok(match self.snapshot.classes[class as usize - 1].kind {
            ClassKind::Instance { .. } => {
                let bytes = window.take(header.size as usize)?.unwrap_or_default().to_vec();
                Some(Object::Instance { class, bytes })
            }
            ClassKind::ObjectArray { first, element } => {
                window.skip(u64::from(first) + u64::from(skip) * u64::from(element));
                let (mut elements, mut batch) = (Vec::new(), Vec::new());
                let mut keep = |some: &[u64]| elements.extend_from_slice(some);
                self.elements(&mut window, count, element, &mut batch, &mut keep)?;
                Some(Object::Array { class, length, elements })
            }
            ClassKind::PrimitiveArray { first, element, .. } => {
                window.skip(u64::from(first) + u64::from(skip) * u64::from(element));
                let size = element.max(1) as usize;
                let most = (count as usize).min(MOST_VALUES / size);
                let bytes = window.take(most * size)?.unwrap_or_default().to_vec();
                let kind = match self.classes.get(class).kind {
                    Kind::PrimitiveArray(kind) => kind,
                    _ => Type::Byte,
                };
                Some(Object::Values { kind, length, bytes })
            }
        })
    }
}
