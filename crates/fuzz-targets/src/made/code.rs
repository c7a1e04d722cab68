//! Jars, libraries and call-frame information.

use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Jars of a few classes each, packed and plain, signed, and one inside another.
pub fn jars(classes: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut jars: Vec<Vec<u8>> = classes
        .chunks(2)
        .enumerate()
        .take(24)
        .map(|(number, classes)| {
            let names = (0..).map(|at| format!("a/C{number}x{at}.class"));
            let entries: Vec<(String, &[u8])> =
                names.zip(classes).map(|(name, class)| (name, class.as_slice())).collect();
            jar(&entries, number % 2 == 0)
        })
        .collect();
    if let Some(inner) = jars.first().cloned() {
        jars.push(jar(&[("lib/inner.jar".to_owned(), &inner)], false));
    }
    jars
}

fn jar(entries: &[(String, &[u8])], packed: bool) -> Vec<u8> {
    let method = if packed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let manifest = b"Manifest-Version: 1.0\r\nMain-Class: a.Main\r\nClass-Path: b.jar c/\r\n\r\n";
    let fixed = [
        ("META-INF/MANIFEST.MF".to_owned(), &manifest[..]),
        ("META-INF/X.SF".to_owned(), b"signed"),
        ("x.txt".to_owned(), b"text"),
    ];
    for (name, bytes) in fixed.iter().chain(entries) {
        writer.start_file(name.as_str(), options).expect("memory");
        writer.write_all(bytes).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

/// A library with symbols, and one that is stripped: a dynamic table, and call-frame information.
pub fn elf_files() -> Vec<Vec<u8>> {
    let [frames] = frames().try_into().expect("one");
    let names = b"\0_ZN1x3runEv\0Java_a_B_c\0_RNvC1a4main\0";
    let sections = b"\0.eh_frame\0.dynsym\0";
    let symbols: Vec<u8> = [0, 1, 12, 23].iter().flat_map(|name| symbol(*name)).collect();
    // Symbol tables have kind 2, dynamic ones 11.
    [2, 11].map(|kind| elf(kind, &symbols, names, sections, &frames)).into()
}

fn symbol(name: u32) -> Vec<u8> {
    let mut bytes = name.to_le_bytes().to_vec();
    bytes.extend([0x12, 0, 1, 0]);
    bytes.extend((0x1000 + u64::from(name) * 16).to_le_bytes());
    bytes.extend(16_u64.to_le_bytes());
    if name == 0 { vec![0; 24] } else { bytes }
}

fn elf(kind: u32, symbols: &[u8], names: &[u8], sections: &[u8], frames: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // A library for x86-64, version 1.
    file[16..21].copy_from_slice(&[3, 0, 62, 0, 1]);
    // One segment, all of the file.
    let segment = file.len();
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    [0_u64, 0, 0, 0x2000, 0x2000, 0x1000].iter().for_each(|word| file.extend(word.to_le_bytes()));
    let mut place = |bytes: &[u8]| {
        let at = file.len() as u64;
        file.extend(bytes);
        file.resize(file.len().next_multiple_of(8), 0);
        (at, bytes.len() as u64)
    };
    let places = [place(symbols), place(names), place(sections), place(frames)];
    let table = file.len() as u64;
    file.extend([0; 64]);
    for ((offset, size), (name, kind, link)) in
        places.into_iter().zip([(11_u32, kind, 2_u32), (0, 3, 0), (0, 3, 0), (1, 1, 0)])
    {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        [2, offset, offset, size].iter().for_each(|word| file.extend(word.to_le_bytes()));
        [link, 1].iter().for_each(|word| file.extend(word.to_le_bytes()));
        [8_u64, 24].iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file[32..40].copy_from_slice(&(segment as u64).to_le_bytes());
    file[40..48].copy_from_slice(&table.to_le_bytes());
    // Sizes and numbers of headers; the names of sections are in the third.
    for (at, value) in [(52, 64_u16), (54, 56), (56, 1), (58, 64), (60, 5), (62, 3)] {
        file[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    file
}

/// A common entry with augmentation, as compilers write it, and functions that push and call.
pub fn frames() -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut entry = |content: &[u8]| {
        let padded = content.len().next_multiple_of(8) + 4;
        bytes.extend((padded as u32).to_le_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len() + padded - content.len(), 0);
    };
    // Version 1, "zR", alignment of code 1 and data -8, return address 16, pointers relative in
    // four bytes; the frame's address is rsp + 8, the return address lies at it - 8.
    entry(b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01");
    for number in 0..4_u32 {
        // Distance to the common entry, beginning, length, no augmentation; then: advance by 1,
        // offset 16, rbp saved, advance by 3, by rbp, remember, offset 64, restore, an expression.
        let back = 4 + 24 + number * 40;
        let mut content = (back + 4).to_le_bytes().to_vec();
        content.extend((0x1000 + number * 64).to_le_bytes());
        content.extend(64_u32.to_le_bytes());
        content.extend(b"\0\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x0e\x40\x0b\x0f\x03\x77\x08\x06");
        entry(&content);
    }
    bytes.extend([0; 4]);
    vec![bytes]
}
