//! Attributes of classes, fields and methods as text.
//!
//! The ones that people look for are spelled out; of the others the bytes are shown.

use super::constants::{class_name, describe, utf8};
use super::escape;
use crate::attributes::{Attribute, Attributes};
use crate::class::ClassFile;
use crate::reader::Reader;
use std::fmt::Write;

/// Records contain attributes, which may be records again in a hostile file.
const MAX_DEPTH: usize = 8;

/// Prints one attribute, each line after `indent`.
pub(super) fn print_attribute(
    class: &ClassFile<'_>,
    a: &Attribute<'_>,
    indent: &str,
    out: &mut dyn Write,
) -> std::fmt::Result {
    let name = utf8(&class.pool, a.name_index);
    match content(class, a, indent) {
        Some(text) => writeln!(out, "{indent}{name}:{text}"),
        None => {
            write!(out, "{indent}{name}: length = 0x{:X}", a.data.len())?;
            for line in a.data.chunks(16).take(64) {
                write!(out, "\n{indent}  ")?;
                for byte in line {
                    write!(out, " {byte:02X}")?;
                }
            }
            writeln!(out)
        }
    }
}

fn content(class: &ClassFile<'_>, a: &Attribute<'_>, indent: &str) -> Option<String> {
    let pool = &class.pool;
    let mut r = a.reader();
    let mut text = String::new();
    match pool.utf8(a.name_index).ok()? {
        b"ConstantValue" => text = format!(" {}", describe(pool, r.u2().ok()?)),
        b"Signature" => {
            let index = r.u2().ok()?;
            text = format!(" #{index:<28} // {}", utf8(pool, index));
        }
        b"SourceFile" => text = format!(" \"{}\"", utf8(pool, r.u2().ok()?)),
        b"NestHost" => text = format!(" class {}", class_name(pool, r.u2().ok()?)),
        b"Deprecated" | b"Synthetic" => text = " true".into(),
        b"SourceDebugExtension" => text = format!(" {}", escape(r.bytes(r.remaining()).ok()?)),
        b"Exceptions" => {
            let names = list(&mut r, |i| class_name(pool, i))?;
            text = format!("\n{indent}  throws {}", names.join(", "));
        }
        b"NestMembers" | b"PermittedSubclasses" => {
            for name in list(&mut r, |i| class_name(pool, i))? {
                text += &format!("\n{indent}  {name}");
            }
        }
        b"InnerClasses" => {
            for _ in 0..r.u2().ok()? {
                let (inner, outer) = (r.u2().ok()?, r.u2().ok()?);
                let (name, flags) = (r.u2().ok()?, r.u2().ok()?);
                text += &format!("\n{indent}  (0x{flags:04x}) {}", class_name(pool, inner));
                if name != 0 {
                    text += &format!(" = {}", utf8(pool, name));
                }
                if outer != 0 {
                    text += &format!(" of {}", class_name(pool, outer));
                }
            }
        }
        b"EnclosingMethod" => {
            let (owner, method) = (r.u2().ok()?, r.u2().ok()?);
            text = format!(" {}", class_name(pool, owner));
            if method != 0 {
                text += &format!(".{}", describe(pool, method));
            }
        }
        b"BootstrapMethods" => {
            for i in 0..r.u2().ok()? {
                let method = r.u2().ok()?;
                text += &format!("\n{indent}  {i}: #{method} {}", describe(pool, method));
                text += &format!("\n{indent}    Method arguments:");
                for argument in list(&mut r, |i| format!("#{i} {}", describe(pool, i)))? {
                    text += &format!("\n{indent}      {argument}");
                }
            }
        }
        b"MethodParameters" => {
            for _ in 0..r.u1().ok()? {
                let (name, flags) = (r.u2().ok()?, r.u2().ok()?);
                let name = if name == 0 { "<no name>".into() } else { utf8(pool, name) };
                text += &format!("\n{indent}  {name} (0x{flags:04x})");
            }
        }
        b"Record" if indent.len() < 2 * MAX_DEPTH => {
            for _ in 0..r.u2().ok()? {
                let (name, ty) = (r.u2().ok()?, r.u2().ok()?);
                text += &format!("\n{indent}  {} {};", utf8(pool, ty), utf8(pool, name));
                let mut inner = String::new();
                for a in Attributes::parse(&mut r).ok()?.iter() {
                    print_attribute(class, &a, &format!("{indent}    "), &mut inner).ok()?;
                }
                if !inner.is_empty() {
                    text += &format!("\n{}", inner.trim_end());
                }
            }
        }
        _ => return None,
    }
    r.finish().ok()?;
    Some(text)
}

/// A count and as many two-byte indexes.
fn list(r: &mut Reader<'_>, mut show: impl FnMut(u16) -> String) -> Option<Vec<String>> {
    let count = r.u2().ok()?;
    let mut out = Vec::new();
    for _ in 0..count {
        out.push(show(r.u2().ok()?));
    }
    Some(out)
}
