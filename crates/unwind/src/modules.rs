//! Which ELF modules are loaded, where, and the unwind tables made from them.
//!
//! The loader is asked (`dl_iterate_phdr`), not /proc: it is cheap enough to ask every second
//! whether anything changed. Its lock is held only while program headers are copied. The modules'
//! bytes are read afterwards, by system call, so that one that is unloaded meanwhile costs its
//! table and not the process.

use crate::cfi::Section;
use crate::elf;
use crate::memory::read_self;
use crate::table::{Table, TableFault};
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

/// Why a module has no table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoTable {
    /// It carries no call-frame information, or none that can be found.
    NoFrames,
    /// It could not be read, or not understood.
    Unreadable,
    /// It is larger than tables are made for.
    TooLarge,
    /// The tables of the other modules used up the memory.
    BudgetUsed,
}

impl NoTable {
    pub fn name(self) -> &'static str {
        match self {
            NoTable::NoFrames => "no call-frame information",
            NoTable::Unreadable => "unreadable call-frame information",
            NoTable::TooLarge => "too large",
            NoTable::BudgetUsed => "memory for unwind tables is used up",
        }
    }
}

pub struct Module {
    /// As the loader knows it: a path, or nothing for the program itself.
    pub path: Box<[u8]>,
    /// What is added to addresses in the file.
    pub bias: u64,
    /// From the first to the last byte of executable segments.
    pub start: u64,
    pub end: u64,
    pub build_id: Box<[u8]>,
    pub table: Result<Table, NoTable>,
}

/// How much memory tables may take.
#[derive(Clone, Copy)]
pub struct Budget {
    /// All of them together.
    pub bytes: usize,
    /// The largest `.eh_frame` that is read; a copy of it is made for the moment.
    pub section: usize,
    /// More modules than that are not looked at.
    pub modules: usize,
}

impl Default for Budget {
    /// HotSpot's library needs 2 to 3 MB.
    fn default() -> Self {
        Self { bytes: 24 << 20, section: 16 << 20, modules: 2_000 }
    }
}

/// Changes whenever a module comes or goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation {
    loaded: u64,
    unloaded: u64,
}

impl Generation {
    /// Of this moment. Takes the loader's lock for an instant.
    pub fn now() -> Self {
        let mut generation = Generation::default();
        each_module(&mut |info| {
            generation = generation_of(info);
            false
        });
        generation
    }
}

/// The modules of a moment, sorted by address.
#[derive(Default)]
pub struct Modules {
    sorted: Vec<Arc<Module>>,
    pub generation: Generation,
    /// Modules beyond the budget's number.
    pub left_out: u64,
}

impl Modules {
    /// Reads all modules and makes their tables, except those that `before` already has.
    /// Allocates and takes the loader's lock: not for handlers.
    pub fn read(pid: i32, before: Option<&Modules>, budget: Budget) -> Self {
        let mut headers = Vec::new();
        let mut modules = Modules::default();
        each_module(&mut |info| {
            modules.generation = generation_of(info);
            if headers.len() < budget.modules {
                headers.extend(Headers::copy(info));
            } else {
                modules.left_out += 1;
            }
            true
        });
        // The JVM's library before all others, should memory run out.
        headers.sort_by_key(|h| !h.path.ends_with(b"/libjvm.so"));
        let mut left = budget.bytes;
        for headers in headers {
            let build_id = headers.build_id(pid);
            let known = before.and_then(|before| before.same(&headers, &build_id));
            let module = known.unwrap_or_else(|| {
                let table = headers.table(pid, budget, left);
                Arc::new(Module {
                    bias: headers.bias,
                    start: headers.text.start,
                    end: headers.text.end,
                    path: headers.path,
                    build_id,
                    table,
                })
            });
            left = left.saturating_sub(module.table.as_ref().map_or(0, Table::bytes));
            modules.sorted.push(module);
        }
        modules.sorted.sort_by_key(|m| m.start);
        modules
    }

    fn same(&self, headers: &Headers, build_id: &[u8]) -> Option<Arc<Module>> {
        let index = self.sorted.binary_search_by_key(&headers.text.start, |m| m.start).ok()?;
        let module = self.sorted.get(index)?;
        // A module for which there was no memory gets another chance.
        let same = module.path == headers.path
            && module.end == headers.text.end
            && *module.build_id == *build_id
            && !matches!(module.table, Err(NoTable::BudgetUsed | NoTable::Unreadable));
        same.then(|| module.clone())
    }

    /// The module that an address lies in. Async-signal-safe.
    pub fn find(&self, address: u64) -> Option<&Module> {
        let behind = self.sorted.partition_point(|m| m.start <= address);
        let module = self.sorted.get(behind.checked_sub(1)?)?;
        (address < module.end).then_some(&**module)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Module> {
        self.sorted.iter().map(|m| &**m)
    }

    /// The memory that all tables take.
    pub fn bytes(&self) -> usize {
        self.iter().filter_map(|m| m.table.as_ref().ok()).map(Table::bytes).sum()
    }
}

/// A module's program headers, copied while the loader's lock was held.
struct Headers {
    path: Box<[u8]>,
    bias: u64,
    /// The executable segments, from the first to the last.
    text: std::ops::Range<u64>,
    /// The readable segments.
    loaded: Vec<std::ops::Range<u64>>,
    frame_header: Option<std::ops::Range<u64>>,
    notes: Vec<std::ops::Range<u64>>,
}

/// Note segments are tens of bytes; a build id behind more is not looked for.
const NOTES_LIMIT: u64 = 4096;

impl Headers {
    /// `None` for a module without code.
    fn copy(info: &libc::dl_phdr_info) -> Option<Self> {
        let path = if info.dlpi_name.is_null() {
            Box::default()
        } else {
            // SAFETY: the loader's own name of the module, valid during the callback.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().into()
        };
        let mut headers = Headers {
            path,
            bias: info.dlpi_addr,
            text: 0..0,
            loaded: Vec::new(),
            frame_header: None,
            notes: Vec::new(),
        };
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the loader's array of that many headers, valid during the callback.
        let table =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        for header in table {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            let range = start..start.saturating_add(header.p_memsz);
            match header.p_type {
                libc::PT_LOAD => {
                    if header.p_flags & libc::PF_X != 0 {
                        let first = headers.text.is_empty();
                        let start = if first { range.start } else { headers.text.start };
                        headers.text = start.min(range.start)..headers.text.end.max(range.end);
                    }
                    headers.loaded.push(range);
                }
                libc::PT_GNU_EH_FRAME => headers.frame_header = Some(range),
                libc::PT_NOTE => headers.notes.push(range),
                _ => {}
            }
        }
        (!headers.text.is_empty()).then_some(headers)
    }

    fn build_id(&self, pid: i32) -> Box<[u8]> {
        let ids = self.notes.iter().filter_map(|notes| {
            let length = (notes.end - notes.start).min(NOTES_LIMIT) as usize;
            let notes = read_self(pid, notes.start, length);
            elf::build_id(&notes).map(Box::from)
        });
        ids.into_iter().next().unwrap_or_default()
    }

    fn table(&self, pid: i32, budget: Budget, left: usize) -> Result<Table, NoTable> {
        const HEADER: usize = 32;
        let header = self.frame_header.clone().ok_or(NoTable::NoFrames)?;
        let header = elf::frame_header(&read_self(pid, header.start, HEADER), header.start)
            .map_err(|_| NoTable::Unreadable)?;
        // The section has no length of its own: it ends with its terminator, at the latest with
        // the segment that it lies in.
        let segment = self.loaded.iter().find(|s| s.contains(&header.frames));
        let length = segment.ok_or(NoTable::NoFrames)?.end - header.frames;
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(budget.section);
        let bytes = read_self(pid, header.frames, length);
        let section = Section { bytes: &bytes, address: header.frames };
        let functions = header.functions.map_or(usize::MAX, |n| n as usize);
        let table = Table::build(section, self.text.clone(), functions, left);
        let table = table.map_err(|fault| match fault {
            TableFault::TextTooLong => NoTable::TooLarge,
            TableFault::TooLarge => NoTable::BudgetUsed,
        })?;
        if table.rules() == 0 { Err(NoTable::NoFrames) } else { Ok(table) }
    }
}

fn generation_of(info: &libc::dl_phdr_info) -> Generation {
    Generation { loaded: info.dlpi_adds, unloaded: info.dlpi_subs }
}

/// Calls `each` with every module until it returns false.
fn each_module(each: &mut dyn FnMut(&libc::dl_phdr_info) -> bool) {
    type Each<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool;

    unsafe extern "C" fn callback(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the reference below, which outlives the iteration.
        let each = unsafe { &mut *data.cast::<Each<'_>>() };
        // SAFETY: the loader's description of a module, valid during the callback. A panic would
        // end the process at this function's border; `each` copies and counts, and allocates.
        c_int::from(!each(unsafe { &*info }))
    }

    let mut each: Each<'_> = each;
    // SAFETY: the callback has the right type and gets a pointer to a live reference.
    unsafe { libc::dl_iterate_phdr(Some(callback), (&raw mut each).cast()) };
}
