//! Constant-pool entries as text.

use super::escape;
use crate::class::ClassFile;
use crate::pool::{Constant, ConstantPool};
use std::fmt::{Result, Write};

pub(super) fn utf8(pool: &ConstantPool<'_>, index: u16) -> String {
    match pool.utf8(index) {
        Ok(bytes) => escape(bytes),
        Err(_) => format!("<bad #{index}>"),
    }
}

pub(super) fn class_name(pool: &ConstantPool<'_>, index: u16) -> String {
    match pool.class_name(index) {
        Ok(bytes) => quote_array(escape(bytes)),
        Err(_) => format!("<bad #{index}>"),
    }
}

/// Array names are quoted, as javap does.
fn quote_array(name: String) -> String {
    if name.starts_with('[') { format!("\"{name}\"") } else { name }
}

fn quote_init(name: String) -> String {
    if name.starts_with('<') { format!("\"{name}\"") } else { name }
}

fn name_and_type(pool: &ConstantPool<'_>, index: u16) -> String {
    match pool.name_and_type(index) {
        Ok((name, ty)) => format!("{}:{}", quote_init(escape(name)), escape(ty)),
        Err(_) => format!("<bad #{index}>"),
    }
}

/// What an entry means, for the comment behind its user: `Method a/B.c:()V`.
pub fn describe(pool: &ConstantPool<'_>, index: u16) -> String {
    let Ok(constant) = pool.get(index) else { return format!("<bad #{index}>") };
    let member = |class, nt| format!("{}.{}", class_name(pool, class), name_and_type(pool, nt));
    match constant {
        Constant::Utf8(bytes) => escape(bytes),
        Constant::Integer(v) => format!("int {v}"),
        Constant::Float(v) => format!("float {v}f"),
        Constant::Long(v) => format!("long {v}l"),
        Constant::Double(v) => format!("double {v}d"),
        Constant::Class { .. } => format!("class {}", class_name(pool, index)),
        Constant::String { utf8: i } => format!("String {}", utf8(pool, i)),
        Constant::Field { class, name_and_type } => {
            format!("Field {}", member(class, name_and_type))
        }
        Constant::Method { class, name_and_type } => {
            format!("Method {}", member(class, name_and_type))
        }
        Constant::InterfaceMethod { class, name_and_type } => {
            format!("InterfaceMethod {}", member(class, name_and_type))
        }
        Constant::NameAndType { .. } => name_and_type(pool, index),
        Constant::MethodHandle { kind, reference } => {
            format!("{} {}", handle_kind(kind), member_text(pool, reference))
        }
        Constant::MethodType { descriptor } => format!("MethodType {}", utf8(pool, descriptor)),
        Constant::Dynamic { bootstrap, name_and_type: nt } => {
            format!("Dynamic #{bootstrap}:{}", name_and_type(pool, nt))
        }
        Constant::InvokeDynamic { bootstrap, name_and_type: nt } => {
            format!("InvokeDynamic #{bootstrap}:{}", name_and_type(pool, nt))
        }
        Constant::Module { name } => utf8(pool, name),
        Constant::Package { name } => utf8(pool, name),
    }
}

/// Owner, name and type of a member; never follows more than one reference.
fn member_text(pool: &ConstantPool<'_>, index: u16) -> String {
    match pool.member(index) {
        Ok(m) => {
            format!("{}.{}:{}", escape(m.owner), quote_init(escape(m.name)), escape(m.descriptor))
        }
        Err(_) => format!("<bad #{index}>"),
    }
}

fn handle_kind(kind: u8) -> &'static str {
    match kind {
        1 => "REF_getField",
        2 => "REF_getStatic",
        3 => "REF_putField",
        4 => "REF_putStatic",
        5 => "REF_invokeVirtual",
        6 => "REF_invokeStatic",
        7 => "REF_invokeSpecial",
        8 => "REF_newInvokeSpecial",
        9 => "REF_invokeInterface",
        _ => "REF_unknown",
    }
}

pub(super) fn print_pool(class: &ClassFile<'_>, out: &mut dyn Write) -> Result {
    let pool = &class.pool;
    writeln!(out, "Constant pool:")?;
    for (index, constant) in pool.iter() {
        let (kind, operands) = match constant {
            Constant::Utf8(bytes) => ("Utf8", escape(bytes)),
            Constant::Integer(v) => ("Integer", v.to_string()),
            Constant::Float(v) => ("Float", format!("{v}f")),
            Constant::Long(v) => ("Long", format!("{v}l")),
            Constant::Double(v) => ("Double", format!("{v}d")),
            Constant::Class { name } => ("Class", format!("#{name}")),
            Constant::String { utf8 } => ("String", format!("#{utf8}")),
            Constant::Field { class, name_and_type } => {
                ("Fieldref", format!("#{class}.#{name_and_type}"))
            }
            Constant::Method { class, name_and_type } => {
                ("Methodref", format!("#{class}.#{name_and_type}"))
            }
            Constant::InterfaceMethod { class, name_and_type } => {
                ("InterfaceMethodref", format!("#{class}.#{name_and_type}"))
            }
            Constant::NameAndType { name, descriptor } => {
                ("NameAndType", format!("#{name}:#{descriptor}"))
            }
            Constant::MethodHandle { kind, reference } => {
                ("MethodHandle", format!("{kind}:#{reference}"))
            }
            Constant::MethodType { descriptor } => ("MethodType", format!("#{descriptor}")),
            Constant::Dynamic { bootstrap, name_and_type } => {
                ("Dynamic", format!("#{bootstrap}:#{name_and_type}"))
            }
            Constant::InvokeDynamic { bootstrap, name_and_type } => {
                ("InvokeDynamic", format!("#{bootstrap}:#{name_and_type}"))
            }
            Constant::Module { name } => ("Module", format!("#{name}")),
            Constant::Package { name } => ("Package", format!("#{name}")),
        };
        write!(out, "{:>5} = {kind:<18} ", format!("#{index}"))?;
        let plain = matches!(
            constant,
            Constant::Utf8(_)
                | Constant::Integer(_)
                | Constant::Float(_)
                | Constant::Long(_)
                | Constant::Double(_)
        );
        if plain {
            writeln!(out, "{operands}")?;
        } else {
            let text = describe(pool, index);
            // The kind stands in its own column already.
            let meaning = match constant {
                Constant::MethodHandle { .. } | Constant::NameAndType { .. } => text.as_str(),
                Constant::Module { .. } | Constant::Package { .. } => text.as_str(),
                _ => text.split_once(' ').map_or(text.as_str(), |(_, rest)| rest),
            };
            writeln!(out, "{operands:<14} // {meaning}")?;
        }
    }
    Ok(())
}
