//! A stored recording of every version of the format, and what is in it. A change that cannot read
//! them breaks somebody's files.
//!
//! They are kept as hexadecimal text, since the repository holds no binaries. `TARE_BLESS=1` stores
//! one of the version that is written now, if there is none yet.

use crate::made::{dump, made};
use crate::roundtrip::{read, written};
use std::fs;
use std::path::PathBuf;
use tare_recording::{LoadOptions, VERSION};

fn file(version: u16, extension: &str) -> PathBuf {
    let name = format!("samples/v{version}.{extension}");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(48).map(|bytes| line(bytes) + "\n").collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn recordings_of_every_version_are_read() {
    if std::env::var_os("TARE_BLESS").is_some() && !file(VERSION, "tare.hex").exists() {
        let bytes = written(&made(42, 150));
        fs::write(file(VERSION, "tare.hex"), to_hex(&bytes)).unwrap();
        let text = dump(&read(&bytes, &LoadOptions::default()).profile);
        fs::write(file(VERSION, "txt"), text).unwrap();
    }
    for version in 1..=VERSION {
        let stored = fs::read_to_string(file(version, "tare.hex")).unwrap();
        let loaded = read(&from_hex(&stored), &LoadOptions::default());
        assert_eq!(loaded.warnings, [], "version {version}");
        let expected = fs::read_to_string(file(version, "txt")).unwrap();
        assert_eq!(dump(&loaded.profile), expected, "version {version}");
    }
}
