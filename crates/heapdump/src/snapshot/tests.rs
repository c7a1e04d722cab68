//! What is written is read again; what is cut off, broken or hostile has its own error.

use super::*;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;

fn contents() -> Contents {
    let text = |text: &str| Arc::<str>::from(text);
    let field = |name: &str, descriptor: &str, offset, is_static| Field {
        name: text(name),
        descriptor: text(descriptor),
        offset,
        is_static,
    };
    Contents {
        head: Head {
            java: "21.0.8".into(),
            object_alignment: 8,
            narrow_oop: Some(Narrow { base: 0, shift: 3 }),
            narrow_klass: Some(Narrow { base: 0x8_0000_0000, shift: 0 }),
            klass_offset: 8,
            array_length_offset: 12,
            mirror_size_offset: 40,
            complete: true,
            notes: vec!["None.".into()],
            ..Head::default()
        },
        classes: vec![
            Class {
                klass: 0x8_0000_1000,
                mirror: 0x1000,
                loader: 0,
                super_klass: 0,
                name: text("com.acme.A"),
                kind: ClassKind::Instance { size: 24 },
                reference: ReferenceKind::Weak,
                is_hidden: true,
                is_interface: false,
                is_mirror_class: false,
                is_stack_chunk: false,
                fields: vec![
                    field("next", "Lcom/acme/A;", 12, false),
                    field("all", "[I", 96, true),
                ],
            },
            Class {
                klass: 0x8_0000_2000,
                mirror: 0x1100,
                loader: 0,
                super_klass: 0x8_0000_1000,
                name: text("int[]"),
                kind: ClassKind::PrimitiveArray { first: 16, element: 4, descriptor: b'I' },
                reference: ReferenceKind::Strong,
                is_hidden: false,
                is_interface: true,
                is_mirror_class: true,
                is_stack_chunk: true,
                fields: Vec::new(),
            },
        ],
        roots: vec![
            Root {
                object: 8,
                kind: 24,
                thread: 1,
                depth: 3,
                slot: 2,
                method: Some(text("A.b(A)")),
            },
            Root { object: 16, kind: 22, thread: 0, depth: 0, slot: -1, method: None },
        ],
        threads: vec![Thread {
            object: 24,
            number: 1,
            name: text("main"),
            is_virtual: true,
            frames: vec![Some(text("A.b(A)")), None],
        }],
        edges: vec![Edge { from: 8, to: 16, name: text("<resolved_references>") }],
        samples: vec![Sample { object: 8, number: 77 }],
    }
}

fn written(contents: &Contents) -> File {
    let mut file = memory_file();
    let mut writer = Writer::new(&mut file).unwrap();
    writer.append(0x1000, &[1; 24]).unwrap();
    writer.append(0x1018, &[2; 40]).unwrap();
    writer.append(0x2000, &[3; 13]).unwrap();
    assert_eq!(writer.image_bytes(), 77);
    writer.finish(contents).unwrap();
    file
}

fn memory_file() -> File {
    let path = std::env::temp_dir();
    let number = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let name = format!("tare-{}-{}-{:?}", std::process::id(), number.as_nanos(), thread_id());
    let path = path.join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn thread_id() -> std::thread::ThreadId {
    std::thread::current().id()
}

fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Snapshot, ReadError> {
    let mut file = memory_file();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Snapshot::read(file)
}

#[test]
fn what_is_written_is_read_again() {
    let wrote = contents();
    let snapshot = Snapshot::read(written(&wrote)).unwrap();
    assert_eq!(snapshot.head, wrote.head);
    assert_eq!(snapshot.classes, wrote.classes);
    assert_eq!(snapshot.roots, wrote.roots);
    assert_eq!(snapshot.threads, wrote.threads);
    assert_eq!(snapshot.edges, wrote.edges);
    assert_eq!(snapshot.samples, wrote.samples);
    let runs = [
        Run { address: 0x1000, length: 64, offset: 0 },
        Run { address: 0x2000, length: 13, offset: 64 },
    ];
    assert_eq!(snapshot.runs, runs);
    let mut part = [0; 4];
    snapshot.read_at(22, &mut part).unwrap();
    assert_eq!(part, [1, 1, 2, 2]);
    assert!(snapshot.read_at(74, &mut part).is_err(), "past the image");
    assert!(snapshot.read_at(u64::MAX, &mut part).is_err());
}

#[test]
fn every_cut_off_file_is_refused() {
    let whole = bytes(&written(&contents()));
    assert!(read(&whole).is_ok());
    for length in 0..whole.len() {
        match read(&whole[..length]) {
            Err(ReadError::NotASnapshot) if length < 16 => {}
            Err(ReadError::CutOff { bytes }) => assert_eq!(bytes, length as u64),
            other => panic!("cut to {length} bytes: {other:?}"),
        }
    }
}

#[test]
fn broken_lengths_take_no_memory_and_never_panic() {
    let whole = bytes(&written(&contents()));
    for at in (16 + 77)..whole.len() - 8 {
        for value in [0, 0x7f, 0xff] {
            let mut broken = whole.clone();
            broken[at..(at + 4).min(whole.len() - 8)].fill(value);
            let _ = read(&broken);
        }
    }
    let mut other = whole.clone();
    other[8] = 9;
    assert!(matches!(read(&other), Err(ReadError::Version(9))));
    other[0] = b'X';
    assert!(matches!(read(&other), Err(ReadError::NotASnapshot)));
}

#[test]
fn objects_come_in_the_order_of_their_addresses() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.append(0x1000, &[0; 16]).unwrap();
    assert!(writer.append(0x1008, &[0; 16]).is_err());
}

#[test]
fn sizes_are_told_by_class_and_bytes() {
    let mut wrote = contents();
    let layout = Layout::of(&wrote.head);
    let mut object = [0; 48];
    object[8..12].copy_from_slice(&0x2000_u32.to_le_bytes());
    object[12..16].copy_from_slice(&7_u32.to_le_bytes());
    object[40..44].copy_from_slice(&9_u32.to_le_bytes());
    assert_eq!(layout.klass(&object), Some(0x8_0000_2000));
    assert_eq!(layout.size_of(&wrote.classes[0], &object), Some(24));
    wrote.classes[1].is_mirror_class = false;
    assert_eq!(layout.size_of(&wrote.classes[1], &object), Some(48), "16 + 7 * 4, aligned");
    wrote.classes[0].is_mirror_class = true;
    assert_eq!(layout.size_of(&wrote.classes[0], &object), Some(72), "9 words");
    assert_eq!(layout.reference(&object, 12), Some(56));
    assert_eq!(layout.size_of(&wrote.classes[1], &object[..12]), None, "no length there");
    wrote.head.stack_chunk_size_offset = 12;
    let layout = Layout::of(&wrote.head);
    wrote.classes[0].is_mirror_class = false;
    wrote.classes[0].is_stack_chunk = true;
    assert_eq!(layout.size_of(&wrote.classes[0], &object), Some(24 + 56 + 8));
}

#[test]
fn compact_headers_have_the_class_in_their_first_word() {
    let head = Head {
        compact_headers: Some(CompactHeaders { klass_shift: 42 }),
        narrow_klass: Some(Narrow { base: 0x1000, shift: 10 }),
        ..Head::default()
    };
    let object = (3_u64 << 42 | 0x1ff).to_le_bytes();
    assert_eq!(Layout::of(&head).klass(&object), Some(0x1000 + (3 << 10)));
}
