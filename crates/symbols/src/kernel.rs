//! Functions of the kernel, from `/proc/kallsyms`, which says zeros to those who may not know.

use crate::Symbol;
use crate::demangle::stem;
use std::fs;
use std::thread::{self, JoinHandle};

/// The kernel's names on their way: tens of milliseconds of work, better done while there is
/// nothing to be named yet.
pub struct Ahead(Option<JoinHandle<KernelSymbols>>);

impl Ahead {
    /// Begins to read, on a thread of its own.
    #[must_use]
    pub fn begin() -> Self {
        Ahead(thread::Builder::new().spawn(KernelSymbols::read).ok())
    }

    pub(crate) fn finish(self) -> KernelSymbols {
        let read = self.0.and_then(|thread| thread.join().ok());
        read.unwrap_or_else(KernelSymbols::read)
    }
}

pub struct KernelSymbols {
    /// Address, name, and the module if it is not the kernel itself.
    sorted: Vec<(u64, Box<str>, Option<Box<str>>)>,
}

impl KernelSymbols {
    pub fn read() -> Self {
        let text = fs::read("/proc/kallsyms").unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Self {
        let mut sorted: Vec<_> = text.lines().filter_map(parse_line).collect();
        sorted.sort_by_key(|(address, ..)| *address);
        KernelSymbols { sorted }
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub fn name(&self, address: u64) -> Symbol {
        let after = self.sorted.partition_point(|(start, ..)| *start <= address);
        let found = after.checked_sub(1).and_then(|index| self.sorted.get(index));
        let (name, module) = match found {
            Some((_, name, module)) => (stem(name), module.as_deref().unwrap_or("kernel")),
            // One name for all: addresses that nobody can look up are no use to anybody.
            None => ("[kernel]", "kernel"),
        };
        Symbol { name: name.into(), module: module.into() }
    }
}

fn parse_line(line: &str) -> Option<(u64, Box<str>, Option<Box<str>>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    // Functions: in the text, also weak ones.
    if !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = words.next()?.into();
    let module = words.next().map(|m| m.trim_matches(['[', ']']).into());
    Some((address, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_cover_up_to_the_next() {
        let symbols = KernelSymbols::parse(
            "ffffffff81000000 T _stext\nffffffff81000100 t do_one.isra.0\nffffffff81000180 D data\n\
             ffffffffc0000000 t read_it\t[nfs]\nnonsense\n",
        );
        let name = |address| {
            let symbol = symbols.name(address);
            format!("{} {}", symbol.name, symbol.module)
        };
        assert_eq!(name(0xffff_ffff_8100_00ff), "_stext kernel");
        assert_eq!(name(0xffff_ffff_8100_0190), "do_one kernel");
        assert_eq!(name(0xffff_ffff_c000_0010), "read_it nfs");
        assert_eq!(name(0x1000), "[kernel] kernel");
    }

    #[test]
    fn names_read_ahead_are_the_same() {
        let (ahead, now) = (Ahead::begin().finish(), KernelSymbols::read());
        assert_eq!(ahead.is_empty(), now.is_empty());
        let last = now.sorted.last().map_or(0, |(address, ..)| *address);
        assert_eq!(ahead.name(last), now.name(last));
    }

    #[test]
    fn zeros_are_no_names() {
        let symbols = KernelSymbols::parse("0000000000000000 T _stext\n0000000000000000 t x\n");
        assert!(symbols.is_empty());
        assert_eq!(&*symbols.name(0xffff_ffff_8100_0000).name, "[kernel]");
    }
}
