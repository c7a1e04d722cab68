//! Prints a class in the manner of `javap -v -p`.
//!
//! For bug reports and tests: it shows what stands in the file, not what the source looked like.
//! It prints whatever it can read; what is malformed is said in place.

mod attributes;
mod code;
mod constants;
mod listing;

use crate::class::{ClassFile, Member};
use crate::mutf8::decode_lossy;
use constants::{class_name, utf8};
use std::fmt::{Result, Write};

pub use code::{print_code, print_frames};
pub use constants::describe;
pub use listing::{Row, listing};

/// Prints all of a class.
pub fn print_class(class: &ClassFile<'_>, out: &mut dyn Write) -> Result {
    let name = class_name(&class.pool, class.this_class);
    writeln!(out, "class {}", name.replace('/', "."))?;
    writeln!(out, "  minor version: {}", class.minor)?;
    writeln!(out, "  major version: {}", class.major)?;
    writeln!(out, "  flags: {}", flags(class.access_flags, Place::Class))?;
    writeln!(out, "  this_class: {:<28}// {name}", format!("#{}", class.this_class))?;
    write!(out, "  super_class: {:<27}", format!("#{}", class.super_class))?;
    match class.super_class {
        0 => writeln!(out)?,
        index => writeln!(out, "// {}", class_name(&class.pool, index))?,
    }
    writeln!(
        out,
        "  interfaces: {}, fields: {}, methods: {}, attributes: {}",
        class.interfaces().count(),
        class.fields.len(),
        class.methods.len(),
        class.attributes.count()
    )?;
    for i in class.interfaces() {
        writeln!(out, "  implements {}", class_name(&class.pool, i))?;
    }
    constants::print_pool(class, out)?;
    writeln!(out, "{{")?;
    for (i, field) in class.fields.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        print_member(class, field, Place::Field, out)?;
    }
    for (i, method) in class.methods.iter().enumerate() {
        if i > 0 || !class.fields.is_empty() {
            writeln!(out)?;
        }
        print_member(class, method, Place::Method, out)?;
    }
    writeln!(out, "}}")?;
    for a in class.attributes.iter() {
        attributes::print_attribute(class, &a, "", out)?;
    }
    Ok(())
}

/// Prints one field or method.
fn print_member(
    class: &ClassFile<'_>,
    member: &Member<'_>,
    place: Place,
    out: &mut dyn Write,
) -> Result {
    let name = utf8(&class.pool, member.name_index);
    writeln!(out, "  {name};")?;
    writeln!(out, "    descriptor: {}", utf8(&class.pool, member.descriptor_index))?;
    writeln!(out, "    flags: {}", flags(member.access_flags, place))?;
    for a in member.attributes.iter() {
        match class.pool.utf8(a.name_index) {
            Ok(b"Code") => match crate::Code::parse(&a) {
                Ok(code) => {
                    let slots = code::argument_slots(class, member);
                    print_code(class, &code, slots, out)?;
                }
                Err(e) => writeln!(out, "    Code: {e}")?,
            },
            _ => attributes::print_attribute(class, &a, "    ", out)?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Class,
    Field,
    Method,
}

/// `(0x0021) ACC_PUBLIC, ACC_SUPER`
fn flags(bits: u16, place: Place) -> String {
    let names: [&str; 16] = match place {
        Place::Class => [
            "PUBLIC",
            "0x2",
            "0x4",
            "0x8",
            "FINAL",
            "SUPER",
            "0x40",
            "0x80",
            "0x100",
            "INTERFACE",
            "ABSTRACT",
            "0x800",
            "SYNTHETIC",
            "ANNOTATION",
            "ENUM",
            "MODULE",
        ],
        Place::Field => [
            "PUBLIC",
            "PRIVATE",
            "PROTECTED",
            "STATIC",
            "FINAL",
            "0x20",
            "VOLATILE",
            "TRANSIENT",
            "0x100",
            "0x200",
            "0x400",
            "0x800",
            "SYNTHETIC",
            "0x2000",
            "ENUM",
            "0x8000",
        ],
        Place::Method => [
            "PUBLIC",
            "PRIVATE",
            "PROTECTED",
            "STATIC",
            "FINAL",
            "SYNCHRONIZED",
            "BRIDGE",
            "VARARGS",
            "NATIVE",
            "0x200",
            "ABSTRACT",
            "STRICT",
            "SYNTHETIC",
            "0x2000",
            "0x4000",
            "0x8000",
        ],
    };
    let mut text = format!("(0x{bits:04x})");
    let mut separator = " ";
    for (bit, name) in names.iter().enumerate() {
        if bits & 1 << bit != 0 {
            text += separator;
            if !name.starts_with("0x") {
                text += "ACC_";
            }
            text += name;
            separator = ", ";
        }
    }
    text
}

/// A string as it would stand in source, so that no byte of a class can garble a terminal.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in decode_lossy(bytes).chars() {
        match c {
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
