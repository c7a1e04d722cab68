//! Files of later versions: what they add is passed over, what they change is refused by name. The
//! blocks are made here by the description in FORMAT.md, without this crate's writer.

use crate::roundtrip::read;
use std::io::Cursor;
use tare_profile::facts::{Datum, Fact, keys};
use tare_profile::{FieldValue, StringId, Unit};
use tare_recording::{LoadOptions, ReadError, Recording, Warning};

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(28, 0);
    let sum = crc(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

pub fn header(version: u16) -> Vec<u8> {
    let mut bytes = b"\x89TARE\r\n\x1a".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend([0, 0, 7, 0, 0, 0]);
    sealed(bytes)
}

pub fn block(kind: u8, number: u16, content: &[u8]) -> Vec<u8> {
    let mut head = b"\xf5TBk".to_vec();
    head.extend([kind, 0]);
    head.extend(number.to_le_bytes());
    let length = content.len() as u32;
    for word in [0, length, length, crc(content), 7] {
        head.extend(word.to_le_bytes());
    }
    [sealed(head), content.to_vec()].concat()
}

/// A column of texts or of numbers below 128.
fn column(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend(name.as_bytes());
    out.extend([kind, 0, data.len() as u8]);
    out.extend(data);
    out
}

fn chunk(first_row: u8, rows: u8, columns: &[Vec<u8>]) -> Vec<u8> {
    [vec![first_row, rows, columns.len() as u8], columns.concat()].concat()
}

fn file() -> Vec<u8> {
    [
        header(2),
        block(
            3,
            0,
            &chunk(1, 2, &[column("text", 4, b"\x01A\x01f"), column("colour", 1, &[1, 2])]),
        ),
        block(200, 0, b"a table that nobody knows yet"),
        // Only class and name: the other columns are taken as absent.
        block(4, 0, &chunk(0, 1, &[column("class", 1, &[1]), column("name", 1, &[2])])),
        block(5, 0, &chunk(0, 1, &[column("method", 1, &[0])])),
        block(6, 0, &chunk(1, 1, &[column("parent", 1, &[0]), column("frame", 1, &[0])])),
        block(
            8,
            0,
            &chunk(0, 1, &[column("name", 4, b"\x03cpu"), column("kind", 4, b"\x07samples")]),
        ),
        block(9, 0, &chunk(0, 2, &[column("context", 1, &[1, 1]), column("value", 2, &[2, 5])])),
        block(
            1,
            0,
            &chunk(0, 1, &[column("key", 4, b"\x04mood"), column("value", 4, b"\x04fine")]),
        ),
    ]
    .concat()
}

#[test]
fn a_file_made_by_the_description_is_read_and_what_is_new_in_it_passed_over() {
    let loaded = read(&file(), &LoadOptions::default());
    assert_eq!(loaded.warnings, [Warning::NoEnd, Warning::Unknown { blocks: 1 }]);
    let profile = loaded.profile;
    let (_, series) = profile.all_series().next().unwrap();
    // Signed numbers are zigzag: 2 is 1 and 5 is −3.
    let values: Vec<i64> = series.rows().map(|row| row.value).collect();
    assert_eq!(values, [1, -3]);
    let context = series.row(0).unwrap().context;
    let frame = profile.contexts.frame(context).unwrap();
    assert_eq!(profile.method_name(profile.frames.get(frame).method), "A.f");
}

/// A field of a type that does not exist yet costs that field, and neither its events nor the
/// others.
#[test]
fn a_field_of_an_unknown_type_is_skipped_and_told() {
    let kinds = [column("kind", 1, &[0, 0, 0]), column("type", 1, &[99, 17, 1])];
    let names = column("name", 4, b"\x05shape\x05cause\x04held");
    // The column of the first is of a type that a column cannot have either.
    let fields = [column("field:shape", 77, b"??"), column("field:cause", 1, &[2, 1])];
    let held = column("field:held", 2, &[8, 4]);
    let times = column("time", 1, &[3, 5]);
    let rest = [
        block(10, 0, &chunk(0, 1, &[column("name", 4, b"\x05pause")])),
        block(11, 0, &chunk(0, 3, &[&kinds[..], &[names]].concat())),
        block(12, 0, &chunk(0, 2, &[&fields[..], &[held, times]].concat())),
    ];
    let loaded = read(&[file(), rest.concat()].concat(), &LoadOptions::default());
    let (event, field) = ("pause".to_owned(), "shape".to_owned());
    let skipped = Warning::UnknownField { event, field };
    let unknown = Warning::Unknown { blocks: 1 };
    assert_eq!(loaded.warnings, [Warning::NoEnd, skipped, unknown]);
    assert!(loaded.profile.run.losses.is_empty(), "nothing is damaged");
    let (_, table) = loaded.profile.all_events().next().unwrap();
    let known: Vec<&str> = table.kind().fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(known, ["cause", "held"]);
    assert_eq!(table.times().iter().collect::<Vec<_>>(), [3, 5]);
    let (cause, held) = (table.field(0, 0), table.field(1, 1));
    assert_eq!(cause, Some(FieldValue::Text(StringId::new(2))));
    assert_eq!(held, Some(FieldValue::Integer(2)));
}

#[test]
fn a_version_that_changed_everything_is_refused_by_name() {
    let mut bytes = file();
    bytes.splice(..32, header(3));
    let refused = Recording::new(Cursor::new(&bytes)).err().unwrap();
    assert!(matches!(refused, ReadError::TooNew { version: 3 }));
    assert!(refused.to_string().contains("use a newer tare"));
}

/// Facts of keys and types that do not exist yet: what can be read of them is kept, whatever it
/// means.
#[test]
fn facts_of_later_versions_are_kept_as_far_as_they_can_be_read() {
    let texts = |all: &[&str]| -> Vec<u8> {
        let text = |text: &&str| [&[text.len() as u8][..], text.as_bytes()].concat();
        all.iter().flat_map(text).collect()
    };
    let columns = [
        column("key", 4, &texts(&["mood", "shape", "samples", "moons", "moons", "moons"])),
        column("row", 1, &[0, 0, 0, 0, 0, 7]),
        column("field", 4, &texts(&["", "", "", "name", "shape", "name"])),
        column("type", 1, &[17, 99, 0, 17, 99, 17]),
        column("integer", 2, &[0, 0, 8, 0, 0, 0]),
        column("text", 4, &texts(&["fine", "", "", "Io", "round", "Ganymede"])),
    ];
    let bytes = [file(), block(14, 0, &chunk(0, 6, &columns))].concat();
    let facts = read(&bytes, &LoadOptions::default()).profile.run.facts;
    let text = |text: &str| Datum::Text(text.to_owned());
    let moon = |name: &str| vec![("name".to_owned(), text(name))];
    let found: Vec<(&str, &Fact)> = facts.iter().collect();
    let expected = [
        ("mood", Fact::One(text("fine"))),
        ("moons", Fact::Rows(vec![moon("Io"), moon("Ganymede")])),
        ("samples", Fact::One(Datum::Integer(4, Unit::Count))),
    ];
    assert_eq!(found, expected.iter().map(|(key, fact)| (*key, fact)).collect::<Vec<_>>());
    assert_eq!(facts.get(keys::SAMPLES), Some(4));
}

/// A few bytes that claim to be a lot.
#[test]
fn bombs_are_bounded() {
    // 131,072 rows of which every column is one repeated value: 20 bytes for megabytes of rows.
    let same = |name: &str, kind: u8| {
        let mut column = column(name, kind, &[0]);
        column[1 + name.len() + 1] = 1;
        column
    };
    let mut content = vec![0, 0x80, 0x80, 0x08, 2];
    content.extend([same("context", 1), same("value", 2)].concat());
    let mut bytes = file();
    for _ in 0..1000 {
        bytes.extend(block(9, 0, &content));
    }
    for merge in [false, true] {
        let limit = 100_000_000;
        let options = LoadOptions { memory_limit: Some(limit), merge, ..LoadOptions::default() };
        let loaded = read(&bytes, &options);
        assert!(loaded.warnings.contains(&Warning::TooLarge { limit }));
        assert!(loaded.profile.memory() < 2 * limit as usize);
    }
}
