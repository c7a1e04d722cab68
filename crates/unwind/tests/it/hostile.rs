//! Damaged call-frame information: less of it, never a panic or a hang.

use super::hand_written::{section, section_with};
use tare_unwind::cfi::{self, Section};
use tare_unwind::elf;
use tare_unwind::table::Table;

fn read(bytes: &[u8]) -> usize {
    let section = Section { bytes, address: 0x7000 };
    let (functions, _) = cfi::functions(section, usize::MAX);
    for function in &functions {
        let _ = cfi::rows(section, *function, |_, _| {});
    }
    let _ = Table::build(section, 0..0x10_0000, usize::MAX, 1 << 16);
    let _ = elf::frame_header(bytes, 0x7000);
    let _ = elf::build_id(bytes);
    functions.len()
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn truncated_and_altered_sections_are_survived() {
    let code: Vec<u8> = [
        &[0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6, 0x0b][..],
        &[0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0x00],
        &[0x11, 6, 0x7e, 0x12, 7, 0x7e, 0x13, 0x7e, 0x14, 6, 2, 0x15, 6, 2, 0x16, 6, 1, 0x50],
        &[0x2e, 8, 0x05, 6, 2, 0x06, 6, 0x07, 16, 0x08, 6, 0x09, 6, 3, 0x02, 1, 0x04, 1, 0, 0, 0],
    ]
    .concat();
    let good = section_with(
        b"zPLRS\0",
        &[8, 0x03, 1, 2, 3, 4, 0x1b, 0x00, 0],
        &[(0x1000, 0x1100, &code), (0x2000, 0x2001, &code)],
    );
    assert_eq!(read(&good), 2, "the undamaged one is read");
    for length in 0..good.len() {
        read(&good[..length]);
    }
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + numbers.next() % 4 {
            let at = numbers.next() as usize % bytes.len();
            bytes[at] = match numbers.next() % 3 {
                0 => 0xff,
                1 => 0,
                _ => numbers.next() as u8,
            };
        }
        read(&bytes);
    }
}

#[test]
fn entries_that_refer_to_themselves_or_each_other_end() {
    let mut bytes = section(&[(0x1000, 0x1010, &[])]);
    // The function's reference points at itself, then in front of the section.
    let at = 4 + u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize + 4;
    for reference in [4_u32, 0xffff_fffe] {
        bytes[at..at + 4].copy_from_slice(&reference.to_le_bytes());
        assert_eq!(read(&bytes), 0);
    }
    // A code unit of zero and of 2^63: time stands still or jumps.
    assert_eq!(read(&[0xff; 64]), 0);
}
