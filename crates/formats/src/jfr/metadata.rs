//! The types of a chunk, from its metadata event, and the way over values of them.

use super::METADATA_EVENT;
use super::cursor::{Cursor, Text};
use super::hash::NumberMap;
use crate::error::ReadError;

/// Types inside types inside types; no honest file comes near.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Primitive {
    Boolean,
    Byte,
    Char,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
}

#[derive(Debug)]
pub struct Type {
    pub name: String,
    pub primitive: Option<Primitive>,
    pub fields: Vec<Field>,
    /// How many numbers a value is, if it is nothing else, as a frame is. They are of one form
    /// where numbers are compressed, and so are passed over quickly.
    numbers: Option<usize>,
}

impl Type {
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// The row of its type in [`Types`].
    pub kind: usize,
    /// Whether a key stands in place of the value.
    pub constant: bool,
    pub array: bool,
}

/// The value of a field, as far as it is worth decoding at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slot {
    Integer(i64),
    Real(f64),
    /// A text, which begins at that place of the chunk.
    Text(usize),
    /// The key of a constant of a type.
    Constant {
        kind: usize,
        key: i64,
    },
    /// A value of a type with fields, which begins at that place.
    Nested {
        kind: usize,
        at: usize,
    },
    /// Values of a type, the first of which begins at that place.
    Array {
        field_kind: usize,
        constant: bool,
        at: usize,
        count: usize,
    },
}

/// All types of a chunk.
#[derive(Debug, Default)]
pub struct Types {
    pub rows: Vec<Type>,
    by_id: NumberMap<usize>,
}

struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
}

impl Element {
    fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

impl Types {
    /// Reads the metadata event that begins at the cursor.
    pub fn read(mut cursor: Cursor<'_>) -> Result<Self, ReadError> {
        cursor.int()?;
        if cursor.long()? != METADATA_EVENT {
            return Err(cursor.problem("no metadata where the header points to"));
        }
        cursor.long()?;
        cursor.long()?;
        cursor.long()?;
        let count = cursor.count()?;
        let mut strings = Vec::new();
        for _ in 0..count {
            strings.push(match cursor.text()? {
                Text::Here(text) => text,
                Text::Null | Text::Constant(_) => String::new(),
            });
        }
        let root = element(&mut cursor, &strings, 0)?;
        let classes: Vec<&Element> =
            root.children("metadata").flat_map(|metadata| metadata.children("class")).collect();
        Types::of(&classes, &cursor)
    }

    fn of(classes: &[&Element], cursor: &Cursor<'_>) -> Result<Self, ReadError> {
        let mut types = Types::default();
        for class in classes {
            let id = class.attribute("id").and_then(|id| id.parse().ok());
            let Some(id) = id else { return Err(cursor.problem("a class without a number")) };
            let name = class.attribute("name").unwrap_or_default().to_owned();
            let primitive = primitive(&name);
            types.by_id.insert(id, types.rows.len());
            types.rows.push(Type { name, primitive, fields: Vec::new(), numbers: None });
        }
        for (row, class) in classes.iter().enumerate() {
            for field in class.children("field") {
                let kind = field.attribute("class").and_then(|id| id.parse::<i64>().ok());
                let kind = kind.and_then(|id| types.row(id));
                let Some(kind) = kind else {
                    return Err(cursor.problem("a field of a class that is not described"));
                };
                types.rows[row].fields.push(Field {
                    name: field.attribute("name").unwrap_or_default().to_owned(),
                    kind,
                    constant: field.attribute("constantPool") == Some("true"),
                    array: field.attribute("dimension").is_some_and(|n| n != "0"),
                });
            }
        }
        for row in 0..types.rows.len() {
            let number = |field: &Field| {
                let primitive = types.rows[field.kind].primitive;
                let number = matches!(
                    primitive,
                    Some(Primitive::Char | Primitive::Short | Primitive::Int | Primitive::Long)
                );
                !field.array && (field.constant || number)
            };
            let fields = &types.rows[row].fields;
            let all = !fields.is_empty() && fields.iter().all(number);
            types.rows[row].numbers = all.then_some(fields.len());
        }
        Ok(types)
    }

    pub fn row(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub fn named(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|kind| kind.name == name)
    }

    /// Reads one value of a type with fields: a slot per field. `fuel` bounds the steps that types
    /// without any bytes could ask for.
    pub fn record(
        &self,
        kind: usize,
        cursor: &mut Cursor<'_>,
        fuel: &mut u64,
        slots: &mut Vec<Slot>,
    ) -> Result<(), ReadError> {
        slots.clear();
        for field in &self.rows[kind].fields {
            let slot = if field.array {
                let count = cursor.count()?;
                let at = cursor.position();
                for _ in 0..count {
                    self.skip(field.kind, field.constant, cursor, fuel, 0)?;
                }
                Slot::Array { field_kind: field.kind, constant: field.constant, at, count }
            } else if field.constant {
                Slot::Constant { kind: field.kind, key: cursor.long()? }
            } else {
                match self.rows[field.kind].primitive {
                    Some(primitive) => primitive_slot(primitive, cursor)?,
                    None => {
                        let at = cursor.position();
                        self.skip(field.kind, false, cursor, fuel, 0)?;
                        Slot::Nested { kind: field.kind, at }
                    }
                }
            };
            slots.push(slot);
        }
        Ok(())
    }

    /// Passes over one value.
    pub fn skip(
        &self,
        kind: usize,
        constant: bool,
        cursor: &mut Cursor<'_>,
        fuel: &mut u64,
        depth: usize,
    ) -> Result<(), ReadError> {
        if *fuel == 0 || depth > MAX_DEPTH {
            return Err(cursor.problem("values nested without end"));
        }
        *fuel -= 1;
        if constant {
            return cursor.long().map(drop);
        }
        if let Some(primitive) = self.rows[kind].primitive {
            return match primitive {
                Primitive::Text => cursor.skip_text(),
                other => primitive_slot(other, cursor).map(drop),
            };
        }
        for field in &self.rows[kind].fields {
            let count = if field.array { cursor.count()? } else { 1 };
            let numbers = self.rows[field.kind].numbers.filter(|_| !field.constant);
            // A count is no larger than the bytes that are left, and a type has few fields.
            if let Some(each) = numbers.filter(|_| cursor.is_compressed()) {
                cursor.skip_numbers(count.saturating_mul(each))?;
                continue;
            }
            for _ in 0..count {
                self.skip(field.kind, field.constant, cursor, fuel, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn primitive_slot(primitive: Primitive, cursor: &mut Cursor<'_>) -> Result<Slot, ReadError> {
    Ok(match primitive {
        Primitive::Boolean | Primitive::Byte => Slot::Integer(i64::from(cursor.byte()? as i8)),
        Primitive::Char => Slot::Integer(i64::from(cursor.char()?)),
        Primitive::Short => Slot::Integer(cursor.short()?),
        Primitive::Int => Slot::Integer(cursor.int()?),
        Primitive::Long => Slot::Integer(cursor.long()?),
        Primitive::Float => Slot::Real(cursor.float()?),
        Primitive::Double => Slot::Real(cursor.double()?),
        Primitive::Text => {
            let at = cursor.position();
            cursor.skip_text()?;
            Slot::Text(at)
        }
    })
}

fn primitive(name: &str) -> Option<Primitive> {
    Some(match name {
        "boolean" => Primitive::Boolean,
        "byte" => Primitive::Byte,
        "char" => Primitive::Char,
        "short" => Primitive::Short,
        "int" => Primitive::Int,
        "long" => Primitive::Long,
        "float" => Primitive::Float,
        "double" => Primitive::Double,
        "java.lang.String" => Primitive::Text,
        _ => return None,
    })
}

fn element(
    cursor: &mut Cursor<'_>,
    strings: &[String],
    depth: usize,
) -> Result<Element, ReadError> {
    if depth > MAX_DEPTH {
        return Err(cursor.problem("metadata nested without end"));
    }
    let text = |cursor: &mut Cursor<'_>| {
        let index = usize::try_from(cursor.int()?).ok();
        let text = index.and_then(|index| strings.get(index)).cloned();
        text.ok_or_else(|| cursor.problem("a text that is not in the metadata"))
    };
    let name = text(cursor)?;
    let mut attributes = Vec::new();
    for _ in 0..cursor.count()? {
        attributes.push((text(cursor)?, text(cursor)?));
    }
    let mut children = Vec::new();
    for _ in 0..cursor.count()? {
        children.push(element(cursor, strings, depth + 1)?);
    }
    Ok(Element { name, attributes, children })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types that each hold the next one twice: without a byte of data, 2³⁰ values.
    #[test]
    fn values_without_bytes_do_not_take_forever() {
        let field = |kind| Field { name: String::new(), kind, constant: false, array: false };
        let mut types = Types::default();
        for row in 1..=30 {
            let fields = vec![field(row), field(row)];
            types.rows.push(Type { name: String::new(), primitive: None, fields, numbers: None });
        }
        types.rows.push(Type {
            name: String::new(),
            primitive: None,
            fields: Vec::new(),
            numbers: None,
        });
        let mut fuel = 1_000_000;
        let outcome = types.skip(0, false, &mut Cursor::new(&[], 0, true), &mut fuel, 0);
        assert!(outcome.unwrap_err().to_string().contains("without end"));
    }

    #[test]
    fn a_type_inside_itself_is_refused() {
        let field = Field { name: String::new(), kind: 0, constant: false, array: false };
        let kind =
            Type { name: String::new(), primitive: None, fields: vec![field], numbers: None };
        let types = Types { rows: vec![kind], ..Types::default() };
        let mut fuel = 1_000_000;
        let outcome = types.skip(0, false, &mut Cursor::new(&[], 0, true), &mut fuel, 0);
        assert!(outcome.is_err() && fuel > 999_000);
    }
}
