//! Code, its tables and its frames as text.

use super::attributes::print_attribute;
use super::constants::{class_name, describe, utf8};
use crate::access;
use crate::attributes::{LineNumber, LocalVariable};
use crate::class::{ClassFile, Member};
use crate::code::Code;
use crate::descriptor::MethodDescriptor;
use crate::insn::Insn;
use crate::opcode::Format;
use crate::stackmap::{FrameKind, Frames, Types, VerificationType};
use crate::{Attribute, ConstantPool};
use std::fmt::{Result, Write};

/// Slots of a method's arguments, `this` included.
pub(super) fn argument_slots(class: &ClassFile<'_>, member: &Member<'_>) -> usize {
    let descriptor = class.pool.utf8(member.descriptor_index).unwrap_or(b"");
    let receiver = usize::from(member.access_flags & access::STATIC == 0);
    receiver + MethodDescriptor::parse(descriptor).map_or(0, |d| d.parameter_slots())
}

pub fn print_code(
    class: &ClassFile<'_>,
    code: &Code<'_>,
    args: usize,
    out: &mut dyn Write,
) -> Result {
    writeln!(out, "    Code:")?;
    writeln!(out, "      stack={}, locals={}, args_size={args}", code.max_stack, code.max_locals)?;
    for insn in code.insns() {
        match insn {
            Ok(insn) => print_insn(&class.pool, &insn, out)?,
            Err(e) => writeln!(out, "      {}", code.in_file(e))?,
        }
    }
    if code.exceptions().len() > 0 {
        writeln!(out, "      Exception table:")?;
        writeln!(out, "         from    to  target type")?;
        for e in code.exceptions() {
            let ty = match e.catch_type {
                0 => "any".to_owned(),
                c => format!("Class {}", class_name(&class.pool, c)),
            };
            writeln!(out, "         {:>5} {:>5} {:>5}   {ty}", e.start, e.end, e.handler)?;
        }
    }
    for a in code.attributes.iter() {
        let done = match class.pool.utf8(a.name_index) {
            Ok(b"LineNumberTable") => lines(&a, out)?,
            Ok(b"LocalVariableTable" | b"LocalVariableTypeTable") => variables(class, &a, out)?,
            Ok(b"StackMapTable") => match Frames::parse(a.reader()) {
                Ok(frames) => {
                    print_frames(&class.pool, frames, out)?;
                    true
                }
                Err(_) => false,
            },
            _ => false,
        };
        if !done {
            print_attribute(class, &a, "      ", out)?;
        }
    }
    Ok(())
}

pub(super) fn print_insn(pool: &ConstantPool<'_>, insn: &Insn<'_>, out: &mut dyn Write) -> Result {
    let row = insn.info();
    let mnemonic = match insn.wide {
        true => format!("{}_w", row.mnemonic),
        false => row.mnemonic.to_owned(),
    };
    write!(out, "{:>10}: ", insn.offset)?;
    if let Some(switch) = insn.switch() {
        writeln!(out, "{mnemonic:<13} {{")?;
        for (key, target) in switch.cases() {
            writeln!(out, "{key:>24}: {target}")?;
        }
        writeln!(out, "{:>24}: {}", "default", switch.default_target())?;
        return writeln!(out, "{:>13}", "}");
    }
    let operand = match row.format {
        Format::Local => insn.local().map(|l| l.to_string()),
        Format::Iinc => insn.local().zip(insn.number()).map(|(l, n)| format!("{l}, {n}")),
        Format::Byte | Format::Short => insn.number().map(|n| n.to_string()),
        Format::ArrayType => insn.number().map(array_type),
        Format::Branch2 | Format::Branch4 => insn.target().map(|t| t.to_string()),
        Format::InvokeInterface | Format::MultiNewArray => {
            insn.constant().zip(insn.number()).map(|(c, n)| format!("#{c},  {n}"))
        }
        Format::InvokeDynamic => insn.constant().map(|c| format!("#{c},  0")),
        _ => insn.constant().map(|c| format!("#{c}")),
    };
    match (operand, insn.constant()) {
        (None, _) => writeln!(out, "{mnemonic}"),
        (Some(operand), None) => writeln!(out, "{mnemonic:<13} {operand}"),
        (Some(operand), Some(c)) => {
            writeln!(out, "{mnemonic:<13} {operand:<18} // {}", describe(pool, c))
        }
    }
}

fn array_type(n: i32) -> String {
    match n {
        4 => "boolean".into(),
        5 => "char".into(),
        6 => "float".into(),
        7 => "double".into(),
        8 => "byte".into(),
        9 => "short".into(),
        10 => "int".into(),
        11 => "long".into(),
        n => n.to_string(),
    }
}

fn lines(a: &Attribute<'_>, out: &mut dyn Write) -> std::result::Result<bool, std::fmt::Error> {
    let Ok(rows) = a.rows::<4>() else { return Ok(false) };
    writeln!(out, "      LineNumberTable:")?;
    for row in rows {
        let l = LineNumber::from_row(*row);
        writeln!(out, "        line {}: {}", l.line, l.start)?;
    }
    Ok(true)
}

fn variables(
    class: &ClassFile<'_>,
    a: &Attribute<'_>,
    out: &mut dyn Write,
) -> std::result::Result<bool, std::fmt::Error> {
    let Ok(rows) = a.rows::<10>() else { return Ok(false) };
    writeln!(out, "      {}:", utf8(&class.pool, a.name_index))?;
    writeln!(out, "        Start  Length  Slot  Name   Signature")?;
    for row in rows {
        let v = LocalVariable::from_row(*row);
        let (name, ty) = (utf8(&class.pool, v.name), utf8(&class.pool, v.ty));
        writeln!(out, "        {:>5} {:>7} {:>5} {name:>5}   {ty}", v.start, v.len, v.local)?;
    }
    Ok(true)
}

/// Prints the frames of a stack map.
pub fn print_frames(
    pool: &ConstantPool<'_>,
    mut frames: Frames<'_>,
    out: &mut dyn Write,
) -> Result {
    let count = frames.remaining();
    writeln!(out, "      StackMapTable: number_of_entries = {count}")?;
    loop {
        let frame = match frames.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(e) => return writeln!(out, "        {e}"),
        };
        let name = match frame.tag {
            0..=63 => "same",
            64..=127 => "same_locals_1_stack_item",
            247 => "same_locals_1_stack_item_frame_extended",
            248..=250 => "chop",
            251 => "same_frame_extended",
            252..=254 => "append",
            _ => "full_frame",
        };
        writeln!(out, "        frame_type = {} /* {name} */ @{}", frame.tag, frame.offset)?;
        let list = |types: Types<'_>| {
            let text: Vec<String> = types.iter().map(|t| type_name(pool, t)).collect();
            text.join(", ")
        };
        match frame.kind {
            FrameKind::Same | FrameKind::Chop(_) => {}
            FrameKind::SameStack1(t) => {
                writeln!(out, "          stack = [ {} ]", type_name(pool, t))?;
            }
            FrameKind::Append(types) => writeln!(out, "          locals = [ {} ]", list(types))?,
            FrameKind::Full { locals, stack } => {
                writeln!(out, "          locals = [ {} ]", list(locals))?;
                writeln!(out, "          stack = [ {} ]", list(stack))?;
            }
        }
    }
}

fn type_name(pool: &ConstantPool<'_>, ty: VerificationType) -> String {
    match ty {
        VerificationType::Top => "top".into(),
        VerificationType::Integer => "int".into(),
        VerificationType::Float => "float".into(),
        VerificationType::Double => "double".into(),
        VerificationType::Long => "long".into(),
        VerificationType::Null => "null".into(),
        VerificationType::UninitializedThis => "this".into(),
        VerificationType::Object(c) => format!("class {}", class_name(pool, c)),
        VerificationType::Uninitialized(offset) => format!("uninitialized {offset}"),
    }
}
