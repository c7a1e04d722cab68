//! From a snapshot's records to classes, threads and roots.

use super::Image;
use crate::classes::{Class, ClassId, Classes, Field, IdMap, Kind, StaticField, Strength, Type};
use crate::conventions::Conventions;
use crate::error::Result;
use crate::layout::Layout;
use crate::roots::{Root, RootKind, Thread};
use crate::snapshot::{self, ClassKind, ReferenceKind, Snapshot};
use crate::source::{Object, Source};
use std::collections::HashMap;

/// Each is looked up.
const MOST_LOADERS: usize = 100_000;

/// No thread is deeper; a snapshot may pretend anything.
const DEEPEST: u32 = 100_000;

pub fn image(snapshot: Snapshot) -> Result<Image> {
    let mut by_klass: IdMap<ClassId> = IdMap::default();
    let mut by_mirror: IdMap<ClassId> = IdMap::default();
    for (id, class) in (1..).zip(&snapshot.classes) {
        by_klass.entry(class.klass).or_insert(id);
        if class.mirror != 0 {
            by_mirror.entry(class.mirror).or_insert(id);
        }
    }
    let unknown = "(a class that the snapshot does not have)".to_owned();
    let mut all = vec![Class::new(unknown, 0, Kind::Instance)];
    all.extend(snapshot.classes.iter().map(|class| class_of(class, &by_klass)));
    let mut classes = Classes::new(all);
    classes.find_references();
    let mut edges: IdMap<Vec<u64>> = IdMap::default();
    for edge in &snapshot.edges {
        edges.entry(edge.from).or_default().push(edge.to);
    }
    Ok(Image {
        objects: snapshot::Layout::of(&snapshot.head),
        layout: layout_of(&snapshot),
        notes: snapshot.head.notes.clone(),
        snapshot,
        classes,
        by_klass,
        by_mirror,
        edges,
        roots: Vec::new(),
        threads: Vec::new(),
        parts: Vec::new(),
    })
}

fn class_of(class: &snapshot::Class, by_klass: &IdMap<ClassId>) -> Class {
    let (kind, size) = match class.kind {
        ClassKind::Instance { size } => (Kind::Instance, size),
        ClassKind::ObjectArray { .. } => (Kind::ObjectArray, 0),
        ClassKind::PrimitiveArray { descriptor, .. } => {
            let kind = Type::of_descriptor(descriptor);
            (kind.map_or(Kind::ObjectArray, Kind::PrimitiveArray), 0)
        }
    };
    let mut made = Class::new(class.name.to_string(), class.mirror, kind);
    made.size = size;
    made.super_class = by_klass.get(&class.super_klass).copied();
    made.loader = class.loader;
    made.is_hidden = class.is_hidden;
    made.strength = match class.reference {
        ReferenceKind::Strong => Strength::Strong,
        ReferenceKind::Soft => Strength::Soft,
        ReferenceKind::Weak => Strength::Weak,
        ReferenceKind::Final => Strength::Final,
        ReferenceKind::Phantom => Strength::Phantom,
    };
    for field in &class.fields {
        let first = field.descriptor.bytes().next().unwrap_or(0);
        let Some(kind) = Type::of_descriptor(first) else { continue };
        let name: Box<str> = (*field.name).into();
        if field.is_static {
            made.statics.push(StaticField { name, kind, value: field.offset.into() });
        } else {
            made.fields.push(Field { name, kind, offset: field.offset });
        }
    }
    made
}

fn layout_of(snapshot: &Snapshot) -> Layout {
    let head = &snapshot.head;
    let bytes = snapshot.classes.iter().find_map(|class| match class.kind {
        ClassKind::PrimitiveArray { first, descriptor: b'B', .. } => Some(first),
        _ => None,
    });
    let object = snapshot.classes.iter().find(|class| class.super_klass == 0);
    let header = object.and_then(|class| match class.kind {
        ClassKind::Instance { size } => Some(size),
        _ => None,
    });
    Layout {
        reference: if head.narrow_oop.is_some() { 4 } else { 8 },
        header: header.unwrap_or(16),
        array_header: bytes.unwrap_or(16),
        alignment: u64::from(head.object_alignment.max(8)).next_power_of_two(),
    }
}

impl Image {
    /// Static fields are in the classes' own objects, whose sizes are found on the way.
    pub(super) fn find_statics(&mut self) -> Result<()> {
        let decoder = self.decoder();
        for id in 0..self.classes.len() as ClassId {
            let mirror = self.classes.get(id).address;
            let bytes = if mirror == 0 { None } else { self.bytes_of(mirror)? };
            let bytes = bytes.unwrap_or_default();
            let class = self.classes.get_mut(id);
            class.own_size = bytes.len() as u32;
            for field in &mut class.statics {
                // Until now it has the offset.
                let offset = field.value as u32;
                field.value = decoder.value(&bytes, offset, field.kind);
            }
        }
        Ok(())
    }

    pub(super) fn find_roots(&mut self) -> Result<()> {
        let mut by_number: HashMap<u32, u32> = HashMap::new();
        let mut threads: Vec<Thread> = Vec::new();
        for thread in &self.snapshot.threads {
            by_number.entry(thread.number).or_insert(threads.len() as u32);
            let text = |frame: &Option<std::sync::Arc<str>>| {
                frame.as_deref().unwrap_or("(unknown)").to_owned()
            };
            threads.push(Thread {
                object: thread.object,
                name: Some(thread.name.to_string()),
                is_virtual: thread.is_virtual,
                frames: thread.frames.iter().map(text).collect(),
            });
        }
        for root in &self.snapshot.roots {
            let kind = match root.kind {
                21 => RootKind::JniGlobal,
                22 => RootKind::SystemClass,
                23 => RootKind::Monitor,
                24 => RootKind::Local,
                25 => RootKind::JniLocal,
                26 => RootKind::Thread,
                _ => RootKind::Other,
            };
            let thread = by_number.get(&root.thread).copied().filter(|_| root.thread != 0);
            let frame = Some(root.depth).filter(|depth| kind.is_of_stack() && *depth < DEEPEST);
            if let (Some(thread), Some(depth), Some(method)) = (thread, frame, &root.method) {
                let frames = &mut threads[thread as usize].frames;
                while frames.len() <= depth as usize {
                    frames.push("(unknown)".to_owned());
                }
                frames[depth as usize] = method.to_string();
            }
            self.roots.push(Root { object: root.object, kind, thread, frame });
        }
        self.threads = threads;
        Ok(())
    }

    /// Classes of the JVM's own loaders, which are never unloaded.
    pub fn add_lasting_classes(&mut self, conventions: Conventions) -> Result<()> {
        let mut loaders: IdMap<Option<ClassId>> = IdMap::default();
        for (_, class) in self.classes.iter().filter(|(_, class)| class.loader != 0) {
            if loaders.len() < MOST_LOADERS && !loaders.contains_key(&class.loader) {
                let of = match self.object(class.loader, 0, 0)? {
                    Some(Object::Instance { class, .. }) => Some(class),
                    _ => None,
                };
                loaders.insert(class.loader, of);
            }
        }
        for (id, class) in self.classes.iter().filter(|(_, class)| class.address != 0) {
            let loader = loaders.get(&class.loader).copied().flatten();
            if self.classes.stays(id, loader, conventions) {
                let (object, kind) = (class.address, RootKind::SystemClass);
                self.roots.push(Root { object, kind, thread: None, frame: None });
            }
        }
        Ok(())
    }
}
