//! Every class that the JVM has, read from its own structures, and the plan by which the copy
//! marks objects.

use super::copy::Copy;
use super::fields;
use super::hotspot::Hotspot;
use super::symbols;
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tare_heapdump::snapshot::{Class, ClassKind, Edge, ReferenceKind};
use tare_protocol::heap::wire::{
    Block, CHUNK, INSTANCE, KlassRecord, MIRROR, MarkPlan, OBJECT_ARRAY, PRIMITIVE_ARRAY,
};

/// More classes than any program has; a chain of them that goes on is broken.
const MOST: usize = 4 << 20;

const INTERFACE: u16 = 0x0200;

/// All classes, and what keeps what alive beside fields.
pub struct Classes {
    pub all: Vec<Class>,
    /// By the address of the JVM's structure, the place in `all`.
    pub by_klass: HashMap<u64, usize>,
    extra: Vec<Extra>,
}

/// What the snapshot does not have of a class.
struct Extra {
    /// Blocks of references in instances.
    blocks: Vec<Block>,
    interfaces: Vec<u64>,
    /// An array of what constants were resolved to; zero if there is none.
    resolved: u64,
}

impl Classes {
    pub fn read(copy: &mut Copy, hotspot: &Hotspot) -> Result<Self> {
        let mut classes = Classes { all: Vec::new(), by_klass: HashMap::new(), extra: Vec::new() };
        let mut loaders = HashSet::new();
        let mut loader_data = copy.u64_at(hotspot.loader_graph)?;
        while loader_data != 0 && loaders.insert(loader_data) {
            let handle = copy.u64_at(loader_data + hotspot.loader_object)?;
            let loader = if handle == 0 { 0 } else { copy.u64_at(handle)? };
            let mut klass = copy.u64_at(loader_data + hotspot.loader_klasses)?;
            while klass != 0 && !classes.by_klass.contains_key(&klass) {
                if classes.all.len() == MOST {
                    return Err(Error::Confused("the JVM's list of classes has no end".into()));
                }
                classes.read_one(copy, hotspot, klass, loader)?;
                klass = copy.u64_at(klass + hotspot.klass_next)?;
            }
            loader_data = copy.u64_at(loader_data + hotspot.loader_next)?;
        }
        classes.find_references();
        Ok(classes)
    }

    fn read_one(
        &mut self,
        copy: &mut Copy,
        hotspot: &Hotspot,
        klass: u64,
        loader: u64,
    ) -> Result<()> {
        let symbol = copy.u64_at(klass + hotspot.klass_name)?;
        let internal = symbols::at(copy, hotspot, symbol)?;
        let helper = copy.i32_at(klass + hotspot.klass_layout)?;
        let handle = copy.u64_at(klass + hotspot.klass_mirror)?;
        let mirror = if handle == 0 { 0 } else { copy.u64_at(handle)? };
        let kind = kind(helper);
        let (mut fields, mut extra) =
            (Vec::new(), Extra { blocks: Vec::new(), interfaces: Vec::new(), resolved: 0 });
        if let ClassKind::Instance { .. } = kind {
            fields = fields::read(copy, hotspot, klass)?;
            extra.blocks = blocks(copy, hotspot, klass)?;
            extra.interfaces = interfaces(copy, hotspot, klass)?;
            extra.resolved = resolved(copy, hotspot, klass)?;
        }
        self.by_klass.insert(klass, self.all.len());
        self.extra.push(extra);
        self.all.push(Class {
            klass,
            mirror,
            loader,
            super_klass: copy.u64_at(klass + hotspot.klass_super)?,
            kind,
            reference: ReferenceKind::Strong,
            is_hidden: internal.contains('+'),
            is_interface: copy.u16_at(klass + hotspot.klass_access)? & INTERFACE != 0,
            is_mirror_class: loader == 0 && internal == "java/lang/Class",
            is_stack_chunk: loader == 0 && internal == "jdk/internal/vm/StackChunk",
            name: Arc::from(symbols::class_name(&internal)),
            fields,
        });
        Ok(())
    }

    /// The JDK's own class of a name.
    pub fn of_jdk(&self, name: &str) -> Option<&Class> {
        self.all.iter().find(|class| class.loader == 0 && &*class.name == name)
    }

    /// Where a field of a class of the JDK is.
    pub fn field_offset(&self, class: &str, field: &str) -> Option<u32> {
        let fields = &self.of_jdk(class)?.fields;
        fields.iter().find(|one| &*one.name == field && !one.is_static).map(|one| one.offset)
    }

    /// Whether a class is another one or below it.
    pub fn is_a(&self, klass: u64, ancestor: u64) -> bool {
        self.ancestors(klass).any(|class| class.klass == ancestor)
    }

    /// A class and those above it.
    fn ancestors(&self, klass: u64) -> impl Iterator<Item = &Class> {
        // No class has more above it, and a circle ends.
        const DEEPEST: usize = 1000;
        let find = |klass: u64| self.by_klass.get(&klass).map(|at| &self.all[*at]);
        std::iter::successors(find(klass), move |class| find(class.super_klass)).take(DEEPEST)
    }

    /// Which classes refer weakly. The JVM's own lists of references lack two fields of those.
    fn find_references(&mut self) {
        let Some(reference) = self.of_jdk("java.lang.ref.Reference").map(|class| class.klass)
        else {
            return;
        };
        let fields = ["referent", "discovered"]
            .map(|name| self.field_offset("java.lang.ref.Reference", name));
        let kinds = [
            ("java.lang.ref.SoftReference", ReferenceKind::Soft),
            ("java.lang.ref.WeakReference", ReferenceKind::Weak),
            ("java.lang.ref.FinalReference", ReferenceKind::Final),
            ("java.lang.ref.PhantomReference", ReferenceKind::Phantom),
        ]
        .map(|(name, kind)| (self.of_jdk(name).map(|class| class.klass), kind));
        let found: Vec<_> = (0..self.all.len())
            .filter(|at| self.is_a(self.all[*at].klass, reference))
            .map(|at| {
                let kind = self
                    .ancestors(self.all[at].klass)
                    .find_map(|class| kinds.iter().find(|(klass, _)| *klass == Some(class.klass)));
                (at, kind.map_or(ReferenceKind::Strong, |(_, kind)| *kind))
            })
            .collect();
        for (at, kind) in found {
            self.all[at].reference = kind;
            let blocks = &mut self.extra[at].blocks;
            for offset in fields.into_iter().flatten() {
                let known = |block: &Block| {
                    offset >= block.offset && (offset - block.offset) / 4 < block.count
                };
                if !blocks.iter().any(known) {
                    blocks.push(Block { offset, count: 1 });
                }
            }
        }
    }

    /// The plan by which the copy marks.
    pub fn plan(&self, hotspot: &Hotspot) -> Result<MarkPlan> {
        let mirror_class = self.of_jdk("java.lang.Class");
        let ClassKind::Instance { size: statics } = mirror_class
            .ok_or_else(|| Error::Confused("the JVM has no class java.lang.Class".to_owned()))?
            .kind
        else {
            return Err(Error::Confused("java.lang.Class is an array".to_owned()));
        };
        let mut head = hotspot.mark;
        head.mirror_statics = u64::from(statics);
        head.chunk_size_offset = u64::from(self.chunk_size_offset());
        let mut plan = MarkPlan { head, ..MarkPlan::default() };
        for (class, extra) in self.all.iter().zip(&self.extra) {
            let (kind, size, element) = match class.kind {
                ClassKind::Instance { size } if class.is_mirror_class => (MIRROR, size, 1),
                ClassKind::Instance { size } if class.is_stack_chunk => (CHUNK, size, 1),
                ClassKind::Instance { size } => (INSTANCE, size, 1),
                ClassKind::ObjectArray { first, element } => (OBJECT_ARRAY, first, element),
                ClassKind::PrimitiveArray { first, element, .. } => {
                    (PRIMITIVE_ARRAY, first, element)
                }
            };
            let (first_block, first_object) = (plan.blocks.len(), plan.objects.len());
            plan.blocks.extend(&extra.blocks);
            plan.objects.extend(self.held(class, extra).filter(|object| *object != 0));
            plan.klasses.push(KlassRecord {
                klass: class.klass,
                kind,
                size: u64::from(size),
                element_shift: u64::from(element.trailing_zeros()),
                first_block: first_block as u64,
                blocks: extra.blocks.len() as u64,
                mirror: class.mirror,
                first_object: first_object as u64,
                objects: (plan.objects.len() - first_object) as u64,
            });
        }
        Ok(plan)
    }

    /// What lives as long as a class does.
    fn held<'a>(&'a self, class: &'a Class, extra: &'a Extra) -> impl Iterator<Item = u64> + 'a {
        let mirror = |klass: &u64| self.by_klass.get(klass).map_or(0, |at| self.all[*at].mirror);
        let above = [mirror(&class.super_klass), class.loader, extra.resolved];
        above.into_iter().chain(extra.interfaces.iter().map(mirror))
    }

    /// Where a stack chunk has its size; zero where there are none.
    pub fn chunk_size_offset(&self) -> u32 {
        self.field_offset("jdk.internal.vm.StackChunk", "size").unwrap_or(0)
    }

    /// References that are in no field.
    pub fn edges(&self) -> Vec<Edge> {
        let (resolved, interface) = (Arc::from("<resolved_references>"), Arc::from("<interface>"));
        let mut edges = Vec::new();
        for (class, extra) in
            self.all.iter().zip(&self.extra).filter(|(class, _)| class.mirror != 0)
        {
            let mut add = |to: u64, name: &Arc<str>| {
                if to != 0 {
                    edges.push(Edge { from: class.mirror, to, name: name.clone() });
                }
            };
            add(extra.resolved, &resolved);
            for klass in &extra.interfaces {
                let mirror = self.by_klass.get(klass).map_or(0, |at| self.all[*at].mirror);
                add(mirror, &interface);
            }
        }
        edges
    }

    /// Every address of an object that is not in the image itself.
    pub fn addresses(&mut self) -> Vec<&mut u64> {
        let classes = self.all.iter_mut().flat_map(|class| [&mut class.mirror, &mut class.loader]);
        classes.chain(self.extra.iter_mut().map(|extra| &mut extra.resolved)).collect()
    }
}

/// What HotSpot's layout helper says.
fn kind(helper: i32) -> ClassKind {
    let bits = helper.cast_unsigned();
    let (first, descriptor, element) = (bits >> 16 & 0xff, bits >> 8 & 0xff, 1 << (bits & 3));
    match helper >> 30 {
        -2 => ClassKind::ObjectArray { first, element },
        -1 => {
            // HotSpot's numbers of primitive types, from 4 on.
            let descriptors = b"ZCFDBSIJ";
            let descriptor = descriptors.get((descriptor as usize).wrapping_sub(4));
            let descriptor = descriptor.copied().unwrap_or(b'?');
            ClassKind::PrimitiveArray { first, element, descriptor }
        }
        // The lowest bit says that instances are not made in the usual way.
        _ => ClassKind::Instance { size: bits & !7 },
    }
}

/// Where instances have references: behind the tables of virtual methods.
fn blocks(copy: &mut Copy, hotspot: &Hotspot, klass: u64) -> Result<Vec<Block>> {
    let vtable = u64::from(copy.u32_at(klass + hotspot.klass_vtable_len)?);
    let itable = u64::from(copy.u32_at(klass + hotspot.instance_itable_len)?);
    let count = copy.u32_at(klass + hotspot.instance_maps)?;
    if count > 0xffff || vtable > 1 << 24 || itable > 1 << 24 {
        return Err(Error::Confused("a class of the JVM's makes no sense".to_owned()));
    }
    let start = klass + hotspot.instance_size.next_multiple_of(8) + 8 * (vtable + itable);
    (0..u64::from(count))
        .map(|number| {
            let block = copy.u64_at(start + 8 * number)?;
            Ok(Block { offset: block as u32, count: (block >> 32) as u32 })
        })
        .collect()
}

fn interfaces(copy: &mut Copy, hotspot: &Hotspot, klass: u64) -> Result<Vec<u64>> {
    let array = copy.u64_at(klass + hotspot.instance_interfaces)?;
    if array == 0 {
        return Ok(Vec::new());
    }
    let count = u64::from(copy.u32_at(array)?).min(0xffff);
    (0..count).map(|number| copy.u64_at(array + hotspot.array_data + 8 * number)).collect()
}

/// The array of what constants of a class were resolved to: strings, call sites.
fn resolved(copy: &mut Copy, hotspot: &Hotspot, klass: u64) -> Result<u64> {
    let mut at = klass + hotspot.instance_constants;
    for next in [hotspot.pool_cache, hotspot.cache_references, 0] {
        let pointer = copy.u64_at(at)?;
        if pointer == 0 {
            return Ok(0);
        }
        at = pointer + next;
    }
    copy.u64_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_helpers_tell_the_kind_of_a_class() {
        assert_eq!(kind(24), ClassKind::Instance { size: 24 });
        assert_eq!(kind(25), ClassKind::Instance { size: 24 });
        // Tag, offset of the first element, type, size of an element as a shift.
        let array = |tag: u32, first: u32, kind: u32, shift: u32| {
            (tag << 30 | first << 16 | kind << 8 | shift).cast_signed()
        };
        let ints = ClassKind::PrimitiveArray { first: 16, element: 4, descriptor: b'I' };
        assert_eq!(kind(array(3, 16, 10, 2)), ints);
        let bytes = ClassKind::PrimitiveArray { first: 16, element: 1, descriptor: b'B' };
        assert_eq!(kind(array(3, 16, 8, 0)), bytes);
        let objects = ClassKind::ObjectArray { first: 16, element: 4 };
        assert_eq!(kind(array(2, 16, 12, 2)), objects);
    }
}
