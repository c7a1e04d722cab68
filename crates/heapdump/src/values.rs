//! What is inside an object: fields and elements, texts of strings, and a word or two that tell
//! one object from another.

use crate::classes::{ClassId, Kind, Type};
use crate::error::Result;
use crate::heap::Heap;
use crate::ids::Node;
use crate::source::Object;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Object(Node),
    /// An address at which the dump has no object.
    Missing(u64),
    Boolean(bool),
    Char(u16),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
}

impl Value {
    fn of_bits(bits: u64, kind: Type) -> Value {
        match kind {
            Type::Reference => Value::Missing(bits),
            Type::Boolean => Value::Boolean(bits != 0),
            Type::Char => Value::Char(bits as u16),
            Type::Byte => Value::Byte(bits as i8),
            Type::Short => Value::Short(bits as i16),
            Type::Int => Value::Int(bits as i32),
            Type::Long => Value::Long(bits as i64),
            Type::Float => Value::Float(f32::from_bits(bits as u32)),
            Type::Double => Value::Double(f64::from_bits(bits)),
        }
    }

    pub fn node(&self) -> Option<Node> {
        match self {
            Value::Object(node) => Some(*node),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match *self {
            Value::Boolean(value) => Some(value.into()),
            Value::Char(value) => Some(value.into()),
            Value::Byte(value) => Some(value.into()),
            Value::Short(value) => Some(value.into()),
            Value::Int(value) => Some(value.into()),
            Value::Long(value) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    /// Primitive values as in Java's source; references are for who knows the heap.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => write!(f, "null"),
            Value::Object(_) => write!(f, "an object"),
            Value::Missing(address) => write!(f, "@{address:x} (not in the dump)"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Char(value) => {
                let text: String = char::decode_utf16([*value]).map(|c| c.unwrap_or('?')).collect();
                write!(f, "'{}'", text.escape_default())
            }
            Value::Byte(value) => write!(f, "{value}"),
            Value::Short(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Long(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Double(value) => write!(f, "{value:?}"),
        }
    }
}

/// A field with what it holds.
#[derive(Clone, Debug)]
pub struct FieldValue {
    /// The class that declares it.
    pub owner: ClassId,
    pub name: String,
    pub kind: Type,
    pub is_static: bool,
    pub value: Value,
}

/// What is inside an object.
#[derive(Clone, Debug)]
pub enum Inside {
    Fields(Vec<FieldValue>),
    /// The first elements of so many.
    Elements(u32, Vec<Value>),
}

impl Heap {
    pub(crate) fn value(&self, bits: u64, kind: Type) -> Value {
        match (kind, bits) {
            (Type::Reference, 0) => Value::Null,
            (Type::Reference, _) => self.find(bits).map_or(Value::Missing(bits), Value::Object),
            _ => Value::of_bits(bits, kind),
        }
    }

    fn read(&self, node: Node, skip: u32, limit: u32) -> Result<Option<Object>> {
        self.source.object(self.address(node), skip, limit)
    }

    /// Fields, or no more than so many elements from one of them on.
    pub fn inside(&self, node: Node, skip: u32, limit: u32) -> Result<Inside> {
        let decoder = self.source.decoder();
        Ok(match self.read(node, skip, limit)? {
            None => Inside::Fields(Vec::new()),
            Some(Object::Class(id)) => Inside::Fields(self.statics(id)),
            Some(Object::Instance { class, bytes }) => {
                let fields = self.classes().fields(class).map(|placed| {
                    let kind = placed.field.kind;
                    FieldValue {
                        owner: placed.owner,
                        name: placed.field.name.to_string(),
                        kind,
                        is_static: false,
                        value: self.value(decoder.value(&bytes, placed.offset, kind), kind),
                    }
                });
                Inside::Fields(fields.collect())
            }
            Some(Object::Array { length, elements, .. }) => {
                let values = elements.iter().map(|bits| self.value(*bits, Type::Reference));
                Inside::Elements(length, values.collect())
            }
            Some(Object::Values { kind, length, bytes }) => {
                let size = kind.size(0);
                let count = bytes.len() as u32 / size;
                let value = |at| self.value(decoder.value(&bytes, at * size, kind), kind);
                Inside::Elements(length, (0..count).map(value).collect())
            }
        })
    }

    fn statics(&self, id: ClassId) -> Vec<FieldValue> {
        let of = |field: &crate::classes::StaticField| FieldValue {
            owner: id,
            name: field.name.to_string(),
            kind: field.kind,
            is_static: true,
            value: self.value(field.value, field.kind),
        };
        self.classes().get(id).statics.iter().map(of).collect()
    }

    /// A field of an instance by its name.
    pub fn field(&self, node: Node, name: &str) -> Result<Option<Value>> {
        let Some(placed) = self.classes().field(self.class_id(node), name) else {
            return Ok(None);
        };
        let Some(Object::Instance { bytes, .. }) = self.read(node, 0, 0)? else {
            return Ok(None);
        };
        let kind = placed.field.kind;
        let bits = self.source.decoder().value(&bytes, placed.offset, kind);
        Ok(Some(self.value(bits, kind)))
    }

    /// The class of which this is the object.
    pub fn as_class(&self, node: Node) -> Option<ClassId> {
        self.classes().at(self.address(node))
    }

    /// The first characters of a `java.lang.String`; `None` of anything else.
    pub fn string(&self, node: Node, limit: u32) -> Result<Option<String>> {
        if self.class(node).name != "java.lang.String" {
            return Ok(None);
        }
        let Some(array) = self.field(node, "value")?.and_then(|value| value.node()) else {
            return Ok(None);
        };
        let coder = self.field(node, "coder")?.and_then(|value| value.int());
        let Some(Object::Values { kind, bytes, .. }) =
            self.read(array, 0, limit.saturating_mul(2))?
        else {
            return Ok(None);
        };
        let decoder = self.source.decoder();
        let text = match (kind, coder) {
            (Type::Byte, Some(0)) => bytes.iter().map(|byte| char::from(*byte)).collect(),
            // Two bytes each, in the order of the machine.
            (Type::Byte, _) => {
                utf16(bytes.as_chunks().0.iter().map(|two| u16::from_le_bytes(*two)))
            }
            (Type::Char, _) => {
                let count = bytes.len() as u32 / 2;
                utf16((0..count).map(|at| decoder.value(&bytes, at * 2, Type::Char) as u16))
            }
            _ => return Ok(None),
        };
        Ok(Some(text.chars().take(limit as usize).collect()))
    }

    /// The name of a thread, from its object.
    pub fn thread_name(&self, node: Node) -> Result<Option<String>> {
        match self.field(node, "name")?.and_then(|value| value.node()) {
            Some(name) => self.string(name, 200),
            None => Ok(None),
        }
    }

    /// What tells an object from others of its class: the text of a string, the value of a number,
    /// the name of a thread, the length of an array, the entries of a collection.
    pub fn label(&self, node: Node) -> Result<Option<String>> {
        const LONGEST: u32 = 60;
        if let Some(id) = self.as_class(node) {
            return Ok(Some(self.classes().get(id).name.clone()));
        }
        let class = self.class(node);
        let name = class.name.as_str();
        if let Some(text) = self.string(node, LONGEST + 1)? {
            let is_cut = text.chars().count() > LONGEST as usize;
            let text: String = text.chars().take(LONGEST as usize).collect();
            let dots = if is_cut { "…" } else { "" };
            return Ok(Some(format!("\"{}{dots}\"", text.escape_debug())));
        }
        if class.kind != Kind::Instance {
            return Ok(match self.read(node, 0, 0)? {
                Some(Object::Array { length, .. } | Object::Values { length, .. }) => {
                    Some(format!("length {length}"))
                }
                _ => None,
            });
        }
        if is_boxed(name) {
            return Ok(self.field(node, "value")?.map(|value| value.to_string()));
        }
        let thread = self.classes().named("java.lang.Thread");
        if thread.is_some_and(|thread| self.classes().is_a(self.class_id(node), thread)) {
            return Ok(self.thread_name(node)?.map(|name| format!("\"{name}\"")));
        }
        Ok(self.entries(node)?.map(|count| format!("size {count}")))
    }
}

/// The classes that hold one primitive value.
pub fn is_boxed(name: &str) -> bool {
    const BOXED: [&str; 8] =
        ["Boolean", "Byte", "Character", "Short", "Integer", "Long", "Float", "Double"];
    name.strip_prefix("java.lang.").is_some_and(|name| BOXED.contains(&name))
}

fn utf16(units: impl Iterator<Item = u16>) -> String {
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
