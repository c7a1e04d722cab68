//! Libraries of a JVM: its own, and those of the program, which nobody has looked at before.

use tare_unwind::cfi::{self, Section};
use tare_unwind::elf;
use tare_unwind::table::Table;

/// Whether it may be loaded, what its functions are called, and what is at some addresses.
pub fn library(data: &[u8]) {
    tare_attach::untrusted::library(data);
    for name in tare_symbols::untrusted_names(data, &[0, 64, 0x1000, 0x1010, 1 << 40, u64::MAX]) {
        assert!(name.len() <= 64 << 10, "a name of {} bytes", name.len());
    }
}

/// Any bytes as call-frame information: a table stays within its limit.
pub fn frames(data: &[u8]) {
    let section = Section { bytes: data, address: 0x1000 };
    let (functions, _) = cfi::functions(section, usize::MAX);
    // An entry has a length, a reference and two pointers of two bytes at least.
    assert!(functions.len() * 12 <= data.len());
    for function in &functions {
        let mut last = None;
        let _ = cfi::rows(section, *function, |at, _| {
            assert!(last.is_none_or(|last| last < at), "rows ascend");
            last = Some(at);
        });
    }
    const LIMIT: usize = 1 << 16;
    if let Ok(table) = Table::build(section, 0..1 << 22, usize::MAX, LIMIT) {
        assert!(table.bytes() <= LIMIT + 64);
        for at in (0..1 << 22).step_by(997) {
            let _ = table.find(at);
        }
    }
    let _ = elf::frame_header(data, 0x1000);
    let _ = elf::build_id(data);
}
