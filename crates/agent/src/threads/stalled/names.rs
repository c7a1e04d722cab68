//! Names of methods, their files and lines, read from HotSpot's own structures: the JVM cannot be
//! asked, since every question waits for the safepoint that it does not reach.

use crate::stacks::hotspot::Layout;
use crate::stacks::memory::Memory;
use crate::threads::memory::ByKernel;
use crate::vm_tables::{Missing, Tables};
use std::collections::HashMap;

/// A longer name is cut; so is a table of lines.
const LONGEST_NAME: usize = 4096;
const LONGEST_TABLE: usize = 64 << 10;

/// What a line means in a native method, and where it is not known, as `StackTraceElement` has it.
const NATIVE: i32 = -2;
const UNKNOWN: i32 = -1;

/// Where things are that the walker does not need.
struct Places {
    symbol_length: u64,
    symbol_body: u64,
    class_name: u64,
    /// From a pool of constants to the first of them.
    constants: u64,
    source_file: u64,
    name_index: u64,
    flags: u64,
    has_lines: u64,
}

impl Places {
    fn new(tables: &Tables) -> Result<Self, Missing> {
        let at = |of: &str, name: &str| tables.offset(&[of], name);
        let has_lines = tables
            .constant("ConstMethodFlags::_misc_has_linenumber_table")
            .or_else(|_| tables.constant("ConstMethod::_has_linenumber_table"))?;
        Ok(Places {
            symbol_length: at("Symbol", "_length")?,
            symbol_body: at("Symbol", "_body")?,
            class_name: at("Klass", "_name")?,
            constants: tables.size("ConstantPool")?,
            source_file: at("ConstantPool", "_source_file_name_index")?,
            name_index: at("ConstMethod", "_name_index")?,
            flags: at("ConstMethod", "_flags._flags").or_else(|_| at("ConstMethod", "_flags"))?,
            has_lines: has_lines.cast_unsigned(),
        })
    }
}

/// What is known of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub class: String,
    pub method: String,
    pub file: String,
    native: bool,
    /// From which bytecode on which line is executed.
    lines: Vec<(i32, i32)>,
}

impl Named {
    pub fn line(&self, bci: i32) -> i32 {
        let begun = self.lines.iter().filter(|(from, _)| *from <= bci);
        match begun.max_by_key(|(from, _)| *from) {
            _ if self.native => NATIVE,
            Some((_, line)) => *line,
            None => UNKNOWN,
        }
    }
}

pub struct Names<'a> {
    memory: &'a ByKernel,
    layout: &'a Layout,
    at: Places,
    known: HashMap<u64, Option<Named>>,
}

impl<'a> Names<'a> {
    pub fn new(tables: &Tables, layout: &'a Layout, memory: &'a ByKernel) -> Result<Self, Missing> {
        Ok(Names { memory, layout, at: Places::new(tables)?, known: HashMap::new() })
    }

    /// `None` for what is no method.
    pub fn of(&mut self, method: u64) -> Option<&Named> {
        if !self.known.contains_key(&method) {
            let named = self.read(method);
            self.known.insert(method, named);
        }
        self.known.get(&method)?.as_ref()
    }

    fn read(&self, method: u64) -> Option<Named> {
        let (memory, at, l) = (self.memory, &self.at, self.layout);
        let constant = memory.field(method, l.method_const)?;
        let pool = memory.field(constant, l.const_pool)?;
        let holder = memory.field(pool, l.pool_holder)?;
        let class = self.symbol(memory.field(holder, at.class_name)?)?;
        let name = memory.short(constant.checked_add(at.name_index)?)?;
        let file = memory.short(pool.checked_add(at.source_file)?)?;
        let code = memory.short(constant.checked_add(l.const_code_size)?)?;
        let flags = memory.short(constant.checked_add(at.flags)?)?;
        let has_lines = u64::from(flags) & at.has_lines != 0;
        let table = constant.checked_add(l.const_size)?.checked_add(u64::from(code))?;
        let table = if has_lines { memory.bytes(table, LONGEST_TABLE) } else { Vec::new() };
        Some(Named {
            // A hidden class has a slash before its number.
            class: class.replace('/', ".").replace('+', "/"),
            method: self.constant(pool, name)?,
            file: self.constant(pool, file).filter(|_| file != 0).unwrap_or_default(),
            native: code == 0,
            lines: lines(&table, l.unsigned5_base),
        })
    }

    /// A constant that is a text.
    fn constant(&self, pool: u64, index: u16) -> Option<String> {
        let first = pool.checked_add(self.at.constants)?;
        self.symbol(self.memory.field(first, 8 * u64::from(index))?)
    }

    fn symbol(&self, symbol: u64) -> Option<String> {
        let length = self.memory.short(symbol.checked_add(self.at.symbol_length)?)?;
        let most = usize::from(length).min(LONGEST_NAME);
        let bytes = self.memory.bytes(symbol.checked_add(self.at.symbol_body)?, most);
        (bytes.len() == most && most > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// HotSpot's table of lines: a byte with both distances, or a mark and then both as numbers.
fn lines(table: &[u8], base: u32) -> Vec<(i32, i32)> {
    const MARK: u8 = 0xff;
    let mut lines = Vec::new();
    let (mut bci, mut line) = (0_i32, 0_i32);
    let mut bytes = table.iter().copied();
    while let Some(byte @ 1..) = bytes.next() {
        let steps = match byte {
            MARK => signed(&mut bytes, base).zip(signed(&mut bytes, base)),
            byte => Some((i32::from(byte >> 3), i32::from(byte & 7))),
        };
        let Some((of_bci, of_line)) = steps else { break };
        (bci, line) = (bci.wrapping_add(of_bci), line.wrapping_add(of_line));
        lines.push((bci, line));
    }
    lines
}

/// A compressed number, one to five bytes of base 64, with its sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>, base: u32) -> Option<i32> {
    let mut sum = 0_u32;
    for index in 0..5 {
        let byte = u32::from(bytes.next()?);
        sum = sum.wrapping_add(byte.wrapping_sub(base).wrapping_shl(6 * index));
        if byte < 192 {
            break;
        }
    }
    Some((sum >> 1).cast_signed() ^ -(sum & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_lines_are_read_in_both_forms() {
        // Line 10 from 0 on, 12 from 3 on, 11 from 7 on.
        for (base, table) in
            [(0, [0xff, 0, 20, 0x1a, 0xff, 8, 1]), (1, [0xff, 1, 21, 0x1a, 0xff, 9, 2])]
        {
            assert_eq!(lines(&table, base), [(0, 10), (3, 12), (7, 11)]);
        }
        assert_eq!(lines(&[0x1a, 0, 0x1a], 1), [(3, 2)], "a zero ends it");
        assert_eq!(lines(&[0xff, 200], 1), [], "it was cut");
        // Two bytes: 192 and more says that another follows.
        let mut bytes = [193, 2].into_iter();
        assert_eq!(signed(&mut bytes, 1), Some(128));
    }

    #[test]
    fn a_line_is_that_of_the_last_bytecode_before() {
        let named = Named { lines: vec![(0, 10), (7, 11), (3, 12)], ..Named::default() };
        assert_eq!(
            [0, 2, 3, 6, 7, 99, -1].map(|bci| named.line(bci)),
            [10, 10, 12, 12, 11, 11, -1]
        );
        let native = Named { native: true, ..named };
        assert_eq!(native.line(0), NATIVE);
    }
}
