//! Variables of libjvm that it does not export: by the symbol table of its file, where that was not
//! stripped away.
//!
//! The file is read once, as far as names and places go. What it says is believed only if it says
//! the same of an exported variable as the loader does, and only for places inside what the loader
//! has mapped of libjvm.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A symbol table or its names longer than this are not read.
const MOST_BYTES: u64 = 64 << 20;

/// What the loader exports and the table has, too.
const KNOWN: &str = "gHotSpotVMStructs";

const SECTION: usize = 64;
const SYMBOL: usize = 24;
const TYPE_SYMTAB: u32 = 2;

/// Where libjvm is.
pub struct Module {
    path: PathBuf,
    base: u64,
    segments: Vec<Range<u64>>,
}

/// A variable: where it is in memory, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    pub at: u64,
    pub size: u64,
}

impl Module {
    /// The module that an address is in.
    pub fn containing(inside: *const c_void) -> Option<Self> {
        struct Search {
            inside: u64,
            found: Option<Module>,
        }
        unsafe extern "C" fn look(
            info: *mut libc::dl_phdr_info,
            _: usize,
            search: *mut c_void,
        ) -> c_int {
            // SAFETY: the loader passes its own description, and what we passed to it.
            let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
            if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
                return 0;
            }
            // SAFETY: so many headers, as the loader says.
            let headers =
                unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
            let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
            let segments: Vec<Range<u64>> = loaded
                .map(|header| info.dlpi_addr.wrapping_add(header.p_vaddr)..header.p_memsz)
                .map(|part| part.start..part.start.saturating_add(part.end))
                .collect();
            if !segments.iter().any(|segment| segment.contains(&search.inside)) {
                return 0;
            }
            // SAFETY: a NUL-terminated name.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
            search.found = Some(Module { path, base: info.dlpi_addr, segments });
            1
        }
        let mut search = Search { inside: inside as u64, found: None };
        // SAFETY: the function above, and a value that outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.found
    }

    /// Whether so many bytes from an address on are the module's.
    pub fn has(&self, at: u64, size: u64) -> bool {
        let end = at.checked_add(size);
        let has = |part: &Range<u64>| part.contains(&at) && end.is_some_and(|end| end <= part.end);
        self.segments.iter().any(has)
    }

    /// The variables of these names, in their order; `None` if the file does not tell of any.
    pub fn variables(&self, names: &[&str]) -> Option<Vec<Option<Variable>>> {
        let file = File::open(&self.path).ok()?;
        let mut wanted = names.to_vec();
        wanted.push(KNOWN);
        let mut found = symbols(&file, &wanted)?;
        let place = |symbol: &(u64, u64)| {
            let at = self.base.wrapping_add(symbol.0);
            self.has(at, symbol.1).then_some(Variable { at, size: symbol.1 })
        };
        let known = found.pop()??;
        (exported(KNOWN) == Some(place(&known)?.at)).then_some(())?;
        Some(found.iter().map(|symbol| symbol.as_ref().and_then(place)).collect())
    }
}

/// Where an exported variable is.
fn exported(name: &str) -> Option<u64> {
    let name = CString::new(name).ok()?;
    // SAFETY: a NUL-terminated name; the handle that means every library that is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as u64)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn read(file: &File, at: u64, size: u64) -> Option<Vec<u8>> {
    if size > MOST_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// Address and size of the symbols of these names, from the file's own table of all symbols.
fn symbols(file: &File, names: &[&str]) -> Option<Vec<Option<(u64, u64)>>> {
    let head = read(file, 0, 64)?;
    // Of 64 bits and in this machine's order, as we are.
    let class = if cfg!(target_endian = "little") { [2, 1] } else { [2, 2] };
    if head.get(..4)? != b"\x7fELF" || head.get(4..6)? != class {
        return None;
    }
    let count = u64::from(u32_at(&head, 60)? & 0xffff);
    let sections = read(file, u64_at(&head, 40)?, count * SECTION as u64)?;
    let section = |number: usize| sections.get(number.checked_mul(SECTION)?..)?.get(..SECTION);
    let table = (0..sections.len() / SECTION)
        .filter_map(section)
        .find(|section| u32_at(section, 4) == Some(TYPE_SYMTAB))?;
    let strings = section(u32_at(table, 40)? as usize)?;
    let texts = read(file, u64_at(strings, 24)?, u64_at(strings, 32)?)?;
    let table = read(file, u64_at(table, 24)?, u64_at(table, 32)?)?;
    let mut found = vec![None; names.len()];
    for symbol in table.chunks_exact(SYMBOL) {
        let Some(text) = u32_at(symbol, 0).and_then(|at| texts.get(at as usize..)) else {
            continue;
        };
        let is =
            |name: &&str| text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0);
        if let Some(slot) = names.iter().position(is).and_then(|at| found.get_mut(at)) {
            *slot = u64_at(symbol, 8).zip(u64_at(symbol, 16));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    static TARE_TEST_VARIABLE: [u32; 5] = [7; 5];

    #[test]
    fn variables_of_this_program_are_found_where_they_are() {
        let address = (&raw const TARE_TEST_VARIABLE) as u64;
        let module = Module::containing(address as *const c_void).expect("this program");
        assert!(module.has(address, 20) && !module.has(8, 8) && !module.has(address, u64::MAX));
        let file = File::open("/proc/self/exe").expect("the program");
        let found = symbols(&file, &["TARE_TEST_VARIABLE", "no such variable"]).expect("a table");
        let (at, size) = found[0].expect("the variable");
        assert_eq!((module.base.wrapping_add(at), size), (address, 20));
        assert_eq!(found[1], None);
    }

    #[test]
    fn what_is_no_such_file_has_no_symbols() {
        let file = File::open("/proc/self/maps").expect("a file");
        assert_eq!(symbols(&file, &["x"]), None);
    }
}
