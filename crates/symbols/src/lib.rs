//! Names for addresses: functions of the JVM's library, of native libraries and of the kernel.
//!
//! [`Symbols`] belongs to one process. It reads which files are mapped into it (`/proc/PID/maps`),
//! opens them through the process's own root, so that containers need no entering, and takes
//! functions from their symbol tables. What has no symbol is named by module and offset, the
//! offset of the function's beginning where call-frame information tells it, so that one function
//! stays one name. Files are trusted no more than any input: damaged ones give fewer names, and so
//! do those that are larger, slower or of another kind than files of code are.
#![forbid(unsafe_code)]

mod demangle;
mod file;
mod foreign;
mod kernel;
mod maps;

pub use demangle::demangle;
#[doc(hidden)]
pub use file::untrusted_names;
pub use foreign::{Patience, open_regular};
pub use kernel::Ahead;

use file::{Allowance, FileSymbols};
use kernel::KernelSymbols;
use maps::{Mapping, Source};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Files that are kept open until the first of their names is asked for.
const MOST_OPEN: usize = 256;
/// Bytes that are read of all files of a process together.
const MOST_READ: u64 = 2 << 30;
/// Bytes of names that are kept of all files of a process together.
const MOST_NAMED: u64 = 512 << 20;
/// How long a file is waited for, and all of them together.
const FOR_A_FILE: Duration = Duration::from_secs(20);
const FOR_ALL: Duration = Duration::from_secs(30);

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// A function's name, demangled and without parameters; or `module+0x1f00`.
    pub name: Rc<str>,
    /// The file's name without its directory, or what the kernel calls the mapping.
    pub module: Rc<str>,
}

/// What the files of a process may take together.
struct Shared {
    patience: RefCell<Patience>,
    allowance: Arc<Allowance>,
    /// Files that did not answer in time.
    unread: RefCell<Vec<String>>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            patience: RefCell::new(Patience::new(FOR_A_FILE, FOR_ALL)),
            allowance: Arc::new(Allowance::new(MOST_READ, MOST_NAMED)),
            unread: RefCell::default(),
        }
    }
}

impl Shared {
    /// Asks something of a file, as long as there is patience.
    fn ask<T: Send + 'static>(
        &self,
        file: &str,
        what: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Option<T> {
        let answer = self.patience.borrow_mut().wait(what);
        let mut unread = self.unread.borrow_mut();
        if answer.is_none() && !unread.iter().any(|known| known == file) {
            unread.push(file.to_owned());
        }
        answer
    }
}

/// The names of one process's addresses. Everything that was found is kept, so the process may end
/// meanwhile.
pub struct Symbols {
    pid: u32,
    mappings: Vec<Mapping>,
    /// By path, device and inode: what a file says is read once.
    files: HashMap<Source, FileSymbols>,
    shared: Rc<Shared>,
    kernel: Option<KernelSymbols>,
    kernel_ahead: Option<Ahead>,
    known: HashMap<u64, Symbol>,
    kernel_known: HashMap<u64, Symbol>,
}

impl Symbols {
    /// Of a process, by its pid here.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let mut symbols = Symbols {
            pid,
            mappings: Vec::new(),
            files: HashMap::new(),
            shared: Rc::default(),
            kernel: None,
            kernel_ahead: None,
            known: HashMap::new(),
            kernel_known: HashMap::new(),
        };
        symbols.refresh();
        symbols
    }

    /// The kernel's names are being read already.
    #[must_use]
    pub fn with_kernel(mut self, ahead: Option<Ahead>) -> Self {
        self.kernel_ahead = ahead;
        self
    }

    /// Looks again at what is mapped: libraries come and go. What a process that has ended had
    /// mapped stays known.
    pub fn refresh(&mut self) {
        let mappings = maps::read(self.pid);
        if !mappings.is_empty() {
            self.mappings = mappings;
        }
    }

    /// Whether an address lies in anything that was mapped at the last look.
    #[must_use]
    pub fn covers(&self, address: u64) -> bool {
        maps::find(&self.mappings, address).is_some()
    }

    /// The name of an address of the process: of an instruction, not of the byte behind a call.
    pub fn native(&mut self, address: u64) -> Symbol {
        if let Some(symbol) = self.known.get(&address) {
            return symbol.clone();
        }
        let symbol = self.look_up(address);
        self.known.insert(address, symbol.clone());
        symbol
    }

    fn look_up(&mut self, address: u64) -> Symbol {
        let Some(mapping) = maps::find(&self.mappings, address) else {
            return Symbol { name: "[unmapped]".into(), module: "".into() };
        };
        let Some(source) = &mapping.source else {
            return Symbol { name: mapping.label().into(), module: "".into() };
        };
        let offset = address - mapping.start + mapping.offset;
        file(self.pid, &mut self.files, mapping, source, &self.shared).name(offset)
    }

    /// Opens all files that are mapped, while they can still be found: a process may end before the
    /// first of its addresses is asked for. They are read when that happens.
    pub fn open_all(&mut self) {
        for mapping in &self.mappings {
            if let Some(source) = mapping.source.as_ref().filter(|_| self.files.len() < MOST_OPEN) {
                file(self.pid, &mut self.files, mapping, source, &self.shared);
            }
        }
    }

    /// Files that gave no names because they did not answer in time, as on a file system that
    /// hangs.
    #[must_use]
    pub fn unread(&self) -> Vec<String> {
        self.shared.unread.borrow().clone()
    }

    /// The name of an address of the kernel.
    pub fn kernel(&mut self, address: u64) -> Symbol {
        let kernel = kernel(&mut self.kernel, &mut self.kernel_ahead);
        let symbol = self.kernel_known.entry(address).or_insert_with(|| kernel.name(address));
        symbol.clone()
    }

    /// Whether the kernel tells the names of its functions.
    pub fn kernel_is_open(&mut self) -> bool {
        !kernel(&mut self.kernel, &mut self.kernel_ahead).is_empty()
    }
}

/// The kernel's names, read when they are first asked for if not before.
fn kernel<'a>(
    names: &'a mut Option<KernelSymbols>,
    ahead: &mut Option<Ahead>,
) -> &'a KernelSymbols {
    names.get_or_insert_with(|| ahead.take().map_or_else(KernelSymbols::read, Ahead::finish))
}

/// What the file behind a mapping says, opened when it is first asked for.
fn file<'a>(
    pid: u32,
    files: &'a mut HashMap<Source, FileSymbols>,
    mapping: &Mapping,
    source: &Source,
    shared: &Rc<Shared>,
) -> &'a FileSymbols {
    files.entry(source.clone()).or_insert_with(|| FileSymbols::open(pid, mapping, source, shared))
}
