//! Methods, and what else can stand in a stack as if it were one.

use crate::handle::{MethodId, StringId};
use std::collections::HashMap;

/// What a row of [`Methods`] stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MethodKind {
    /// A Java method, `native` ones included.
    #[default]
    Java,
    /// A function of a shared library or of the JVM itself; `module` names the library.
    Native,
    /// A function of the kernel.
    Kernel,
    /// The class of an object: the leaf of an allocation's or a lock's stack. `class` names it.
    Class,
    /// Not code but an account of what could not be told: `name` is `[dropped]`, `[folded]`,
    /// `[unknown: reason]` or the like, with the brackets.
    Special,
}

/// A method. Every text may be [`StringId::EMPTY`], which means that it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Method {
    pub kind: MethodKind,
    /// As in source, with dots: `com.acme.Orders$Line`.
    pub class: StringId,
    pub name: StringId,
    /// As in the class file: `(ILjava/lang/String;)V`.
    pub descriptor: StringId,
    /// The source file's name, without a directory for Java.
    pub file: StringId,
    /// The line where the method begins.
    pub line: Option<u32>,
    /// The class loader's name.
    pub loader: StringId,
    /// The module, the jar, or the native library that the code came from.
    pub module: StringId,
}

/// All methods of a profile, each once.
#[derive(Clone, Debug, Default)]
pub struct Methods {
    rows: Vec<Method>,
    /// Made when it is first needed: a profile that is only read does without.
    index: Option<HashMap<Method, MethodId>>,
}

impl Methods {
    /// The handle of a method, which is added if no row is equal to it in every field.
    ///
    /// # Panics
    /// If there would be more than 2³²−1 methods.
    pub fn intern(&mut self, method: Method) -> MethodId {
        let rows = &self.rows;
        let index = self.index.get_or_insert_with(|| {
            (0_u32..).zip(rows).map(|(row, method)| (*method, MethodId::new(row))).collect()
        });
        *index.entry(method).or_insert_with(|| {
            let row = u32::try_from(self.rows.len()).expect("more than 2³²−1 methods");
            self.rows.push(method);
            MethodId::new(row)
        })
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn get(&self, id: MethodId) -> &Method {
        &self.rows[id.index()]
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (MethodId, &Method)> {
        (0..).zip(&self.rows).map(|(row, method)| (MethodId::new(row), method))
    }

    /// Appends a row without looking for an equal one. For readers of files that hold a table
    /// whole.
    pub fn push(&mut self, method: Method) -> MethodId {
        let id = MethodId::new(u32::try_from(self.rows.len()).expect("more than 2³²−1 methods"));
        self.rows.push(method);
        self.index = None;
        id
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let index = self.index.as_ref().map_or(0, HashMap::capacity);
        self.rows.capacity() * size_of::<Method>() + index * (size_of::<Method>() + 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_differ_in_one_field_are_two() {
        let mut methods = Methods::default();
        let plain = Method { name: StringId::new(1), ..Method::default() };
        let a = methods.intern(plain);
        assert_eq!(methods.intern(plain), a);
        let others = [
            Method { kind: MethodKind::Native, ..plain },
            Method { class: StringId::new(2), ..plain },
            Method { descriptor: StringId::new(2), ..plain },
            Method { line: Some(3), ..plain },
            Method { loader: StringId::new(2), ..plain },
        ];
        for other in others {
            assert_ne!(methods.intern(other), a);
        }
        assert_eq!(methods.len(), 6);
    }

    #[test]
    fn interning_finds_rows_that_were_pushed() {
        let mut methods = Methods::default();
        methods.intern(Method::default());
        let method = Method { name: StringId::new(1), ..Method::default() };
        let pushed = methods.push(method);
        assert_eq!(methods.intern(method), pushed);
    }
}
