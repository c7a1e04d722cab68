//! Sizes of objects in the JVM: headers, references, and where fields go.
//!
//! Fields are placed as HotSpot places them since JDK 15: large primitive ones first, then small
//! ones, then references, each in the smallest gap that fits.

use crate::classes::{Class, ClassId, Classes, Type};

/// How the JVM laid objects out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub reference: u32,
    /// Before the first field, and before the first element of an array.
    pub header: u32,
    pub array_header: u32,
    pub alignment: u64,
}

impl Layout {
    pub fn array_size(&self, kind: Type, length: u32) -> u64 {
        let size = u64::from(kind.size(self.reference));
        let header = u64::from(self.array_header).next_multiple_of(size);
        (header + u64::from(length) * size).next_multiple_of(self.alignment)
    }

    /// Sets the sizes of instances and of the classes' own objects, where pointers of the JVM are
    /// of this type.
    pub fn set_sizes(&self, classes: &mut Classes, pointer: Type) {
        let mut placed: Vec<Option<Space>> = vec![None; classes.len()];
        for id in 0..classes.len() as ClassId {
            let lineage: Vec<ClassId> = classes.lineage(id).collect();
            let mut space = Space { end: self.header, gaps: Vec::new() };
            for class in lineage.into_iter().rev() {
                if let Some(known) = &placed[class as usize] {
                    space = known.clone();
                    continue;
                }
                let own = classes.get(class);
                let fields = own.fields.iter().map(|field| field.kind);
                space.place_all(fields.chain(injected(own, pointer)), self.reference);
                placed[class as usize] = Some(space.clone());
            }
            classes.get_mut(id).size = self.aligned(space.end);
        }
        let mirror = classes.named("java.lang.Class").map_or(0, |id| classes.get(id).size);
        for id in 0..classes.len() as ClassId {
            // Names in angle brackets are for what is not a field.
            let statics = &classes.get(id).statics;
            let statics = statics.iter().filter(|field| !field.name.starts_with('<'));
            let bytes: u32 = statics.map(|field| field.kind.size(self.reference)).sum();
            classes.get_mut(id).own_size = self.aligned(mirror + bytes);
        }
    }

    fn aligned(&self, bytes: u32) -> u32 {
        u64::from(bytes).next_multiple_of(self.alignment) as u32
    }
}

/// Fields that HotSpot adds to some classes, and that no dump lists.
fn injected(class: &Class, pointer: Type) -> Vec<Type> {
    let has = |name: &str| class.fields.iter().any(|field| &*field.name == name);
    // Some versions have it as a field of Java.
    let unless = |name: &str| if has(name) { None } else { Some(Type::Reference) };
    match class.name.as_str() {
        "java.lang.ClassLoader" | "java.lang.Module" | "java.lang.invoke.MemberName" => {
            vec![pointer]
        }
        "java.lang.invoke.ResolvedMethodName" => {
            std::iter::once(pointer).chain(unless("vmholder")).collect()
        }
        "java.lang.InternalError" => vec![Type::Boolean],
        "java.lang.Class" => {
            // Two classes, two counts, and the name of the source.
            let fields = [pointer, pointer, Type::Int, Type::Int, Type::Reference];
            let others = unless("protectionDomain").into_iter().chain(unless("signers"));
            fields.into_iter().chain(others).collect()
        }
        _ => Vec::new(),
    }
}

/// Where fields are already, and the holes between them.
#[derive(Clone)]
struct Space {
    end: u32,
    /// Begin and length, in the order of addresses.
    gaps: Vec<(u32, u32)>,
}

impl Space {
    fn place_all(&mut self, fields: impl Iterator<Item = Type>, reference: u32) {
        let mut counts = [0; 4];
        let mut references = 0;
        for kind in fields {
            match kind {
                Type::Reference => references += 1,
                _ => counts[kind.size(0).trailing_zeros() as usize] += 1,
            }
        }
        for (power, count) in counts.into_iter().enumerate().rev() {
            (0..count).for_each(|_| self.place(1 << power));
        }
        (0..references).for_each(|_| self.place(reference));
    }

    fn place(&mut self, size: u32) {
        let fits =
            |(begin, length): (u32, u32)| begin.next_multiple_of(size) + size <= begin + length;
        let candidates = self.gaps.iter().enumerate().rev().filter(|(_, gap)| fits(**gap));
        let Some((at, _)) = candidates.min_by_key(|(_, gap)| gap.1) else {
            let begin = self.end.next_multiple_of(size);
            if begin > self.end {
                self.gaps.push((self.end, begin - self.end));
            }
            self.end = begin + size;
            return;
        };
        let (begin, length) = self.gaps.remove(at);
        let place = begin.next_multiple_of(size);
        let behind = (place + size, begin + length - place - size);
        let before = (begin, place - begin);
        let left = [before, behind].into_iter().filter(|gap| gap.1 > 0);
        self.gaps.splice(at..at, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(header: u32, reference: u32, lineage: &[&[Type]]) -> u32 {
        let mut space = Space { end: header, gaps: Vec::new() };
        for fields in lineage {
            space.place_all(fields.iter().copied(), reference);
        }
        space.end.next_multiple_of(8)
    }

    #[test]
    fn fields_are_placed_as_hotspot_does() {
        use Type::{Boolean, Byte, Int, Long, Reference};
        assert_eq!(size(12, 4, &[]), 16);
        assert_eq!(size(8, 4, &[]), 8);
        // The int goes before the long.
        assert_eq!(size(12, 4, &[&[Long, Int]]), 24);
        assert_eq!(size(12, 4, &[&[Long, Reference, Byte]]), 32);
        // A gap of the class above is used.
        assert_eq!(size(12, 4, &[&[Long], &[Boolean, Byte, Byte, Byte]]), 24);
        assert_eq!(size(16, 8, &[&[Int], &[Reference, Int]]), 32);
        // java.lang.String: value, hash, coder, hashIsZero.
        assert_eq!(size(12, 4, &[&[Reference, Byte, Int, Boolean]]), 24);
    }
}
