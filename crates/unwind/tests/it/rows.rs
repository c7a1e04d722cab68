//! Every row of real libraries against what gimli reads from the same bytes.

use gimli::{BaseAddresses, CfaRule, EhFrame, RegisterRule, UnwindContext, UnwindSection};
use std::ffi::CString;
use std::path::Path;
use tare_unwind::cfi::{self, Section};
use tare_unwind::elf::frame_header;
use tare_unwind::{Base, Budget, Cfa, Modules, Place, Rule, read_self};

/// What gimli says about a row, in our words.
fn theirs(row: &gimli::UnwindTableRow<usize>, code: &[u8], signal: bool) -> Rule {
    let expression = |e: &gimli::UnwindExpression<usize>| &code[e.offset..e.offset + e.length];
    let base = |register| match register {
        gimli::X86_64::RSP => Some(Base::Sp),
        gimli::X86_64::RBP => Some(Base::Fp),
        _ => None,
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => base(*register)
            .map_or(Cfa::Unsupported, |base| Cfa::At(base, i32::try_from(*offset).unwrap())),
        CfaRule::Expression(e) => match expression(e) {
            [0x77, 8, 0x80, 0, 0x3f, 0x1a, n, 0x2a, 0x33, 0x24, 0x22] => Cfa::Plt(n - 0x30),
            // DW_OP_breg7 160, DW_OP_deref: the caller's stack pointer in a signal frame.
            [0x77, 0xa0, 0x01, 0x06] => Cfa::StoredAt(Base::Sp, 160),
            // DW_OP_breg6 n, DW_OP_deref: realigned stacks.
            [0x76, n @ 0x40..=0x7f, 0x06] => Cfa::StoredAt(Base::Fp, i32::from(*n) - 0x80),
            _ => Cfa::Unsupported,
        },
    };
    let place = |register, signal_offset| match row.register(register) {
        None => Place::Same,
        Some(RegisterRule::SameValue) => Place::Same,
        Some(RegisterRule::Undefined) => Place::Lost,
        Some(RegisterRule::Offset(offset)) => Place::AtCfa(i32::try_from(offset).unwrap()),
        Some(RegisterRule::Expression(e)) if signal && expression(&e)[0] == 0x77 => {
            Place::At(Base::Sp, signal_offset)
        }
        Some(RegisterRule::Expression(_) | RegisterRule::Register(_)) => Place::Unsupported,
        other => panic!("{other:?}"),
    };
    Rule { cfa, fp: place(gimli::X86_64::RBP, 120), ra: place(gimli::X86_64::RA, 168), signal }
}

/// Compares a loaded module's table with gimli; returns how many rows were compared.
fn compare(modules: &Modules, name: &str) -> usize {
    let module = modules.iter().find(|m| m.path.ends_with(name.as_bytes()));
    let module = module.unwrap_or_else(|| panic!("{name} is not loaded"));
    let table = module.table.as_ref().unwrap_or_else(|e| panic!("{name}: {}", e.name()));
    assert_eq!(table.unreadable, 0, "{name}");
    let (bytes, address) = frames_of(&String::from_utf8_lossy(&module.path), module.bias);
    let section = EhFrame::new(&bytes, gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut entries = section.entries(&bases);
    let mut context = UnwindContext::new();
    let mut rows = 0;
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut unwound = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = unwound.next_row().unwrap() {
            let expected = theirs(row, &bytes, fde.is_signal_trampoline());
            let (start, end) = (row.start_address(), row.end_address().min(fde.end_address()));
            if start >= end {
                continue;
            }
            for at in [start, end - 1] {
                assert_eq!(table.find(at), Some(&expected), "{name} at {:#x}", at - module.bias);
            }
            rows += 1;
        }
    }
    eprintln!(
        "{name}: {rows} rows agree; {} rows and {} rules in {} KiB",
        table.rows(),
        table.rules(),
        table.bytes() / 1024
    );
    // All of the section was read, not just what both sides could read.
    let all = Section { bytes: &bytes, address };
    assert!(cfi::functions(all, usize::MAX).0.len() > 10);
    rows
}

/// The loaded `.eh_frame` of a module: found by gimli's peer of our reader, the file's sections.
fn frames_of(path: &str, bias: u64) -> (Vec<u8>, u64) {
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let half = |at: usize| usize::from(u16::from_le_bytes(file[at..at + 2].try_into().unwrap()));
    let (table, count, names) = (word(0x28) as usize, half(0x3c), half(0x3e));
    let names = word(table + names * 64 + 0x18) as usize;
    for index in 0..count {
        let header = table + index * 64;
        let name =
            names + u32::from_le_bytes(file[header..header + 4].try_into().unwrap()) as usize;
        if file[name..].starts_with(b".eh_frame\0") {
            let address = bias + word(header + 0x10);
            let bytes = read_self(std::process::id() as i32, address, word(header + 0x20) as usize);
            return (bytes, address);
        }
    }
    panic!("{path} has no .eh_frame");
}

pub fn load(path: &Path) -> bool {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: HotSpot's library does nothing when it is merely loaded.
    !unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }.is_null()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_row_of_the_c_library_is_as_gimli_reads_it() {
    let modules = Modules::read(std::process::id() as i32, None, Budget::default());
    assert!(compare(&modules, "/libc.so.6") > 1_000);
    assert!(compare(&modules, "/libgcc_s.so.1") > 100);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_row_of_hotspots_library_is_as_gimli_reads_it() {
    for home in super::jvm::homes() {
        let library = home.join("lib/server/libjvm.so");
        if !load(&library) {
            eprintln!("SKIPPED: {} cannot be loaded", library.display());
            continue;
        }
        let modules = Modules::read(std::process::id() as i32, None, Budget::default());
        let name = format!("{}", library.display());
        assert!(compare(&modules, &name) > 100_000);
        assert!(modules.bytes() < 24 << 20);
    }
}

#[test]
fn a_header_that_is_loaded_leads_to_the_section_in_the_file() {
    let pid = std::process::id() as i32;
    let modules = Modules::read(pid, None, Budget::default());
    let libc = modules.iter().find(|m| m.path.ends_with(b"/libc.so.6")).unwrap();
    let (bytes, address) = frames_of(&String::from_utf8_lossy(&libc.path), libc.bias);
    assert!(!bytes.is_empty());
    // An address that is not mapped is an answer, not a fault.
    assert!(read_self(pid, 8, 16).is_empty());
    assert!(frame_header(&read_self(pid, address, 16), address).is_err());
}

#[test]
fn tables_are_kept_while_their_modules_stay() {
    let pid = std::process::id() as i32;
    let first = Modules::read(pid, None, Budget::default());
    let second = Modules::read(pid, Some(&first), Budget::default());
    let kept = |name: &str| {
        let at = |m: &Modules| {
            let module = m.iter().find(|m| m.path.ends_with(name.as_bytes())).unwrap();
            std::ptr::from_ref(module)
        };
        at(&first) == at(&second)
    };
    assert!(kept("/libc.so.6"));
    // With no memory for tables the walk is told so, and gets another chance with more.
    let none = Modules::read(pid, None, Budget { bytes: 100, ..Budget::default() });
    assert!(none.iter().all(|m| m.table.is_err()));
    let again = Modules::read(pid, Some(&none), Budget::default());
    assert!(again.iter().any(|m| m.table.is_ok()));
}
