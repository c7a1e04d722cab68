//! Tables of call-frame information that was written by hand.

use tare_unwind::cfi::Section;
use tare_unwind::table::Table;
use tare_unwind::{Cfa, Place};

/// `.eh_frame` of one common entry and functions, at address 0: pointers are absolute.
pub fn section(functions: &[(u64, u64, &[u8])]) -> Vec<u8> {
    section_with(b"\0", &[], functions)
}

pub fn section_with(augmentation: &[u8], data: &[u8], functions: &[(u64, u64, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |body: &[u8]| {
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
    };
    let mut common = vec![0, 0, 0, 0, 1];
    common.extend(augmentation);
    // Code unit 1, data unit -8, return address in register 16.
    common.extend([1, 0x78, 16]);
    common.extend(data);
    // CFA = rsp + 8, return address at CFA - 8.
    common.extend([0x0c, 7, 8, 0x90, 1]);
    push(&common);
    let mut at = 4 + common.len() as u32;
    for (start, end, code) in functions {
        let mut body = (at + 4).to_le_bytes().to_vec();
        body.extend(start.to_le_bytes());
        body.extend((end - start).to_le_bytes());
        if !data.is_empty() {
            body.push(0);
        }
        body.extend(*code);
        at += 4 + body.len() as u32;
        push(&body);
    }
    bytes.extend([0; 4]);
    bytes
}

pub fn table(bytes: &[u8], text: std::ops::Range<u64>) -> Table {
    let section = Section { bytes, address: 0 };
    Table::build(section, text, usize::MAX, 1 << 20).unwrap()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn rows_begin_and_end_where_the_instructions_say() {
    // push rbp (1 byte), mov rbp, rsp (3), …, pop rbp at +0x2000.
    let code = [
        0x41, 0x0e, 16, 0x86, 2, // advance 1; CFA = rsp + 16; rbp at CFA - 16
        0x43, 0x0d, 6, // advance 3; CFA = rbp + 16
        0x03, 0xfc, 0x1f, // advance 0x1ffc
        0x0c, 7, 8, 0xc6, // CFA = rsp + 8; rbp restored
    ];
    let bytes = section(&[(0x1000, 0x3001, &code), (0x5000, 0x5010, &[])]);
    let table = table(&bytes, 0x1000..0x6000);
    let cfa = |at| table.find(at).map(|rule| (rule.cfa, rule.fp));
    use tare_unwind::Base::{Fp, Sp};
    for (at, expected) in [
        (0x0fff, None),
        (0x1000, Some((Cfa::At(Sp, 8), Place::Same))),
        (0x1001, Some((Cfa::At(Sp, 16), Place::AtCfa(-16)))),
        (0x1003, Some((Cfa::At(Sp, 16), Place::AtCfa(-16)))),
        (0x1004, Some((Cfa::At(Fp, 16), Place::AtCfa(-16)))),
        // On later pages the rule is still known.
        (0x2000, Some((Cfa::At(Fp, 16), Place::AtCfa(-16)))),
        (0x2fff, Some((Cfa::At(Fp, 16), Place::AtCfa(-16)))),
        (0x3000, Some((Cfa::At(Sp, 8), Place::Same))),
        (0x3001, None),
        (0x4fff, None),
        (0x5000, Some((Cfa::At(Sp, 8), Place::Same))),
        (0x500f, Some((Cfa::At(Sp, 8), Place::Same))),
        (0x5010, None),
        (0x5fff, None),
        (0x6000, None),
        (u64::MAX, None),
    ] {
        assert_eq!(cfa(at), expected, "at {at:#x}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_function_says_wrongly_is_not_believed() {
    let bytes = section(&[
        (0x1000, 0x1010, &[0x41, 0x0e, 16]),
        // A state is restored that nobody remembered.
        (0x1010, 0x1020, &[0x41, 0x0e, 16, 0x0b]),
        (0x1020, 0x1030, &[0x41, 0x0e, 24]),
    ]);
    let table = table(&bytes, 0x1000..0x2000);
    assert_eq!(table.unreadable, 1);
    assert!(table.find(0x100f).is_some());
    assert!(table.find(0x1010).is_none() && table.find(0x101f).is_none());
    assert!(table.find(0x1025).is_some());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn overlapping_functions_do_not_disturb_each_other() {
    let bytes = section(&[
        (0x1020, 0x1040, &[0x0e, 32]),
        (0x1000, 0x1030, &[0x0e, 16]),
        (0x1020, 0x1028, &[0x0e, 64]),
    ]);
    let table = table(&bytes, 0x1000..0x2000);
    let at = |at| table.find(at).map(|rule| rule.cfa);
    use tare_unwind::Base::Sp;
    assert_eq!(at(0x101f), Some(Cfa::At(Sp, 16)));
    assert_eq!(at(0x1020), Some(Cfa::At(Sp, 64)), "the shorter of two that begin together");
    assert!(at(0x1040).is_none());
}

#[test]
fn a_table_that_would_be_too_large_is_none() {
    let code: Vec<u8> = (0..200_u8).flat_map(|n| [0x41, 0x0e, n % 100 + 8]).collect();
    let bytes = section(&[(0x1000, 0x2000, &code)]);
    let section = Section { bytes: &bytes, address: 0 };
    assert!(Table::build(section, 0x1000..0x2000, usize::MAX, 400).is_err());
    assert!(Table::build(section, 0..u64::MAX, usize::MAX, 1 << 20).is_err());
}
