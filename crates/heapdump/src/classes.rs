//! Classes of a dump: names, fields and where they are, and which references do not keep alive.

use crate::conventions::Conventions;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub type ClassId = u32;

/// Of objects whose class the dump does not have; the first of every table.
pub const UNKNOWN: ClassId = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Type {
    Reference,
    Boolean,
    Char,
    Float,
    Double,
    Byte,
    Short,
    Int,
    Long,
}

impl Type {
    pub const PRIMITIVE: [Type; 8] = [
        Type::Boolean,
        Type::Char,
        Type::Float,
        Type::Double,
        Type::Byte,
        Type::Short,
        Type::Int,
        Type::Long,
    ];

    /// Bytes of a value, where references have so many.
    pub fn size(self, reference: u32) -> u32 {
        match self {
            Type::Reference => reference,
            Type::Boolean | Type::Byte => 1,
            Type::Char | Type::Short => 2,
            Type::Float | Type::Int => 4,
            Type::Double | Type::Long => 8,
        }
    }

    /// By the first character of a descriptor.
    pub fn of_descriptor(character: u8) -> Option<Type> {
        Some(match character {
            b'L' | b'[' => Type::Reference,
            b'Z' => Type::Boolean,
            b'C' => Type::Char,
            b'F' => Type::Float,
            b'D' => Type::Double,
            b'B' => Type::Byte,
            b'S' => Type::Short,
            b'I' => Type::Int,
            b'J' => Type::Long,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Type::Reference => "Object",
            Type::Boolean => "boolean",
            Type::Char => "char",
            Type::Float => "float",
            Type::Double => "double",
            Type::Byte => "byte",
            Type::Short => "short",
            Type::Int => "int",
            Type::Long => "long",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Instance,
    ObjectArray,
    PrimitiveArray(Type),
}

/// What a reference does for the object that it refers to. The order is from strong to weak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strength {
    Strong,
    Soft,
    Weak,
    Final,
    Phantom,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: Box<str>,
    pub kind: Type,
    /// Where it is in the bytes of an instance, from where those of its class begin.
    pub offset: u32,
}

#[derive(Clone, Debug)]
pub struct StaticField {
    pub name: Box<str>,
    pub kind: Type,
    /// An address, or the bits of a primitive value.
    pub value: u64,
}

#[derive(Clone, Debug)]
pub struct Class {
    /// As in Java's source: `java.lang.String`, `byte[]`, `com.acme.A$B`.
    pub name: String,
    /// The object of `java.lang.Class`; 0 if there is none.
    pub address: u64,
    pub super_class: Option<ClassId>,
    /// The loader's object; 0 is the JVM's own.
    pub loader: u64,
    pub kind: Kind,
    /// Those that it declares itself.
    pub fields: Vec<Field>,
    /// The bytes that they take in a `.hprof` file, where those of the class above follow. 0 where
    /// offsets count from the beginning of the object.
    pub body: u32,
    pub statics: Vec<StaticField>,
    /// Not strong for kinds of `java.lang.ref.Reference`.
    pub strength: Strength,
    /// Made at run time, for a lambda for instance; it may go although its loader stays.
    pub is_hidden: bool,
    /// Bytes of an instance in the JVM.
    pub size: u32,
    /// Bytes of this class' own object.
    pub own_size: u32,
    /// Where references are in the bytes of an instance: those that keep alive, with inherited
    /// ones; and the one that may not.
    pub references: Vec<u32>,
    pub referent: Option<u32>,
}

impl Class {
    pub fn new(name: String, address: u64, kind: Kind) -> Class {
        Class {
            name,
            address,
            super_class: None,
            loader: 0,
            kind,
            fields: Vec::new(),
            body: 0,
            statics: Vec::new(),
            strength: Strength::Strong,
            is_hidden: false,
            size: 0,
            own_size: 0,
            references: Vec::new(),
            referent: None,
        }
    }

    pub fn is_array(&self) -> bool {
        self.kind != Kind::Instance
    }

    /// The package, without arrays and the class itself; empty for the unnamed one and `int[]`.
    pub fn package(&self) -> &str {
        let name = self.name.trim_end_matches("[]");
        name.rsplit_once('.').map_or("", |(package, _)| package)
    }
}

/// All classes of a dump.
pub struct Classes {
    all: Vec<Class>,
    by_address: IdMap<ClassId>,
    by_name: HashMap<String, ClassId>,
    /// Arrays by the type of their elements, as in [`Type::PRIMITIVE`].
    primitive_arrays: [ClassId; 8],
}

impl Classes {
    /// The first of the list must stand for what is unknown. Arrays of primitives that the dump has
    /// no class for are added.
    pub fn new(mut all: Vec<Class>) -> Classes {
        let mut by_name = HashMap::with_capacity(all.len());
        for (id, class) in (0..).zip(&all) {
            // Classes of the JVM itself come before others' of the same name.
            let place = by_name.entry(class.name.clone()).or_insert(id);
            if class.loader == 0 && all[*place as usize].loader != 0 {
                *place = id;
            }
        }
        let primitive_arrays = Type::PRIMITIVE.map(|kind| {
            let name = format!("{}[]", kind.name());
            *by_name.entry(name.clone()).or_insert_with(|| {
                all.push(Class::new(name, 0, Kind::PrimitiveArray(kind)));
                all.len() as ClassId - 1
            })
        });
        let mut by_address = IdMap::with_capacity_and_hasher(all.len(), BuildHasherDefault::new());
        for (id, class) in (0..).zip(&all).filter(|(_, class)| class.address != 0) {
            by_address.entry(class.address).or_insert(id);
        }
        Classes { all, by_address, by_name, primitive_arrays }
    }

    pub fn get(&self, id: ClassId) -> &Class {
        &self.all[id as usize]
    }

    pub fn get_mut(&mut self, id: ClassId) -> &mut Class {
        &mut self.all[id as usize]
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        (0..).zip(&self.all)
    }

    /// By the address of its own object.
    #[inline]
    pub fn at(&self, address: u64) -> Option<ClassId> {
        self.by_address.get(&address).copied()
    }

    /// By name; of several, the one of the JVM's own loader, else the first.
    pub fn named(&self, name: &str) -> Option<ClassId> {
        self.by_name.get(name).copied()
    }

    pub fn array_of(&self, kind: Type) -> ClassId {
        let at = Type::PRIMITIVE.iter().position(|other| *other == kind);
        at.map_or(UNKNOWN, |at| self.primitive_arrays[at])
    }

    /// A class and what it extends, up to `java.lang.Object`. A dump may pretend that a class
    /// extends itself, so there is an end.
    pub fn lineage(&self, id: ClassId) -> impl Iterator<Item = ClassId> {
        const DEEPEST: usize = 1000;
        std::iter::successors(Some(id), |id| self.get(*id).super_class).take(DEEPEST)
    }

    pub fn is_a(&self, id: ClassId, ancestor: ClassId) -> bool {
        self.lineage(id).any(|class| class == ancestor)
    }

    /// All fields of an instance, the class' own first, each with who declares it and where it is
    /// in the bytes of an instance.
    pub fn fields(&self, id: ClassId) -> impl Iterator<Item = Placed<'_>> {
        let mut begin = 0_u32;
        self.lineage(id).flat_map(move |owner| {
            let (class, base) = (self.get(owner), begin);
            begin = begin.saturating_add(class.body);
            let place = move |field| Placed { owner, field, offset: place(base, field) };
            class.fields.iter().map(place)
        })
    }

    /// A field by its name, wherever it is declared.
    pub fn field(&self, id: ClassId, name: &str) -> Option<Placed<'_>> {
        self.fields(id).find(|placed| &*placed.field.name == name)
    }

    /// Whether a class is never unloaded: those of the JVM's own loaders, of which the class is
    /// given, unless they are hidden.
    pub fn stays(&self, id: ClassId, loader: Option<ClassId>, conventions: Conventions) -> bool {
        const OF_THE_JVM: [&str; 5] = [
            "jdk.internal.loader.ClassLoaders$AppClassLoader",
            "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
            "jdk.internal.loader.ClassLoaders$BootClassLoader",
            "sun.misc.Launcher$AppClassLoader",
            "sun.misc.Launcher$ExtClassLoader",
        ];
        let class = self.get(id);
        let is_loader = |id| OF_THE_JVM.contains(&self.get(id).name.as_str());
        match conventions {
            Conventions::Ours => {
                !class.is_hidden && (class.loader == 0 || loader.is_some_and(is_loader))
            }
            Conventions::Mat => class.loader == 0 && class.kind == Kind::Instance,
        }
    }

    /// Tells the kinds of `java.lang.ref.Reference` apart by what classes extend.
    pub fn find_strengths(&mut self) {
        const KINDS: [(&str, Strength); 4] = [
            ("java.lang.ref.SoftReference", Strength::Soft),
            ("java.lang.ref.WeakReference", Strength::Weak),
            ("java.lang.ref.FinalReference", Strength::Final),
            ("java.lang.ref.PhantomReference", Strength::Phantom),
        ];
        let kinds = KINDS.map(|(name, strength)| (self.named(name), strength));
        for id in 0..self.all.len() as ClassId {
            let of = |class| kinds.iter().find(|(kind, _)| *kind == Some(class));
            let found = self.lineage(id).find_map(of);
            self.all[id as usize].strength = found.map_or(Strength::Strong, |found| found.1);
        }
    }

    /// Sets where references are, from the fields and kinds of reference.
    pub fn find_references(&mut self) {
        let reference = self.named("java.lang.ref.Reference");
        for id in 0..self.all.len() as ClassId {
            let is_kind = self.get(id).strength != Strength::Strong;
            let (mut strong, mut referent) = (Vec::new(), None);
            let is_reference = |placed: &Placed<'_>| placed.field.kind == Type::Reference;
            for Placed { owner, field, offset } in self.fields(id).filter(is_reference) {
                if is_kind && Some(owner) == reference && &*field.name == "referent" {
                    referent = Some(offset);
                } else {
                    strong.push(offset);
                }
            }
            let class = self.get_mut(id);
            (class.references, class.referent) = (strong, referent);
        }
    }
}

/// A field in the bytes of an instance.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    pub owner: ClassId,
    pub field: &'a Field,
    pub offset: u32,
}

fn place(base: u32, field: &Field) -> u32 {
    base.saturating_add(field.offset)
}

/// From an internal name, `java/lang/String`, `[[I`, `[Lcom/acme/A;`, to the one of Java's source.
pub fn source_name(internal: &str) -> String {
    let element = internal.trim_start_matches('[');
    let depth = internal.len() - element.len();
    if depth == 0 {
        return internal.replace('/', ".");
    }
    let primitive = match element.as_bytes() {
        [one] => Type::of_descriptor(*one).filter(|kind| *kind != Type::Reference),
        _ => None,
    };
    let mut name = match primitive {
        Some(kind) => kind.name().to_owned(),
        None => {
            let name = element.strip_prefix('L').unwrap_or(element);
            name.strip_suffix(';').unwrap_or(name).replace('/', ".")
        }
    };
    name.push_str(&"[]".repeat(depth.min(255)));
    name
}

pub type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Addresses are looked up for each object, so this takes a multiplication and no more.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte) ^ self.0.rotate_left(8));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(value ^ 0x5bd1_e995_9d1b_1a87) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (internal, name) in [
            ("java/lang/String", "java.lang.String"),
            ("[I", "int[]"),
            ("[[Ljava/lang/String;", "java.lang.String[][]"),
            ("[L", "[]"),
            ("[Q", "Q[]"),
            ("", ""),
        ] {
            assert_eq!(source_name(internal), name);
        }
        assert_eq!(Class::new("a.b.C$D[][]".to_owned(), 0, Kind::ObjectArray).package(), "a.b");
        assert_eq!(Class::new("int[]".to_owned(), 0, Kind::ObjectArray).package(), "");
    }

    #[test]
    fn a_class_that_extends_itself_has_an_end() {
        let mut class = Class::new("A".to_owned(), 8, Kind::Instance);
        class.super_class = Some(1);
        let unknown = Class::new(String::new(), 0, Kind::Instance);
        let classes = Classes::new(vec![unknown, class]);
        assert!(classes.lineage(1).count() <= 1000);
        assert_eq!(classes.at(8), Some(1));
        assert_eq!(classes.get(classes.array_of(Type::Int)).name, "int[]");
    }
}
