//! The methods of a class as instructions beside the lines of source that they are of, for who shows
//! figures of lines and has no source.

use super::code::print_insn;
use super::constants::utf8;
use crate::attributes::LineNumber;
use crate::class::{ClassFile, Member};
use crate::code::Code;
use std::collections::BTreeMap;

/// A row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub text: String,
    /// The line of source that begins here.
    pub line: Option<u32>,
    /// The method whose head this is: its name and descriptor.
    pub begins: Option<(String, String)>,
}

/// All methods that have code.
pub fn listing(class: &ClassFile<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for member in class.methods.iter() {
        let Some(code) = code_of(class, member) else { continue };
        let name = utf8(&class.pool, member.name_index);
        let descriptor = utf8(&class.pool, member.descriptor_index);
        if !rows.is_empty() {
            rows.push(Row { text: String::new(), line: None, begins: None });
        }
        let text = format!("{name}{descriptor}");
        rows.push(Row { text, line: None, begins: Some((name, descriptor)) });
        let lines = lines_of(class, &code);
        for insn in code.insns() {
            let mut text = String::new();
            // What is malformed ends the method.
            let Ok(insn) = insn else { break };
            let offset = insn.offset;
            if print_insn(&class.pool, &insn, &mut text).is_err() {
                break;
            }
            let mut line = u16::try_from(offset).ok().and_then(|at| lines.get(&at)).copied();
            for text in text.lines() {
                rows.push(Row { text: text.to_owned(), line: line.take(), begins: None });
            }
        }
    }
    rows
}

fn code_of<'a>(class: &ClassFile<'a>, member: &Member<'a>) -> Option<Code<'a>> {
    Code::parse(&member.attributes.find(&class.pool, "Code")?).ok()
}

/// By offset, the line that begins there.
fn lines_of(class: &ClassFile<'_>, code: &Code<'_>) -> BTreeMap<u16, u32> {
    let table = code.attributes.find(&class.pool, "LineNumberTable");
    let rows = table.and_then(|table| table.rows::<4>().ok()).unwrap_or_default();
    let lines = rows.iter().map(|row| LineNumber::from_row(*row));
    lines.map(|line| (line.start, u32::from(line.line))).collect()
}
