//! Small heap dumps, and the same with their indexes.

use crate::dice::Dice;
use tare_heapdump::index::Key;
use tare_heapdump::{ClassOut, Heap, RootKind, Silent, Type, Width, Writer as DumpWriter};

/// Small heaps of chance: some classes, objects that refer to each other, arrays, roots.
pub fn heap_dumps() -> Vec<Vec<u8>> {
    (1..=20).map(|seed| heap_dump(&mut Dice(seed))).collect()
}

/// Dumps with their indexes: four bytes with the length of a dump, the dump, the index.
pub fn heap_indexes() -> Vec<Vec<u8>> {
    heap_dumps().iter().map(|dump| with_index(dump)).collect()
}

fn with_index(dump: &[u8]) -> Vec<u8> {
    let file = crate::targets::file(dump, 0);
    let key = Key::of(&file).expect("a file can be read");
    let heap = Heap::of_file(file, &Default::default(), &Silent).expect("a dump of ours");
    let mut seed = (dump.len() as u32).to_le_bytes().to_vec();
    seed.extend(dump);
    heap.write_index(&key, &mut seed, &Silent).expect("memory");
    seed
}

fn heap_dump(dice: &mut Dice) -> Vec<u8> {
    const CLASSES: [&str; 6] = [
        "java/lang/Object",
        "java/lang/Class",
        "java/lang/ref/Reference",
        "java/lang/ref/WeakReference",
        "[Ljava/lang/Object;",
        "a/Node",
    ];
    let width = if dice.below(2) == 0 { Width::Four } else { Width::Eight };
    let mut writer = DumpWriter::new(Vec::new(), width, 0).expect("memory");
    let class = |number: u64| 0x100 + number * 16;
    for (number, name) in (1..).zip(CLASSES) {
        writer.text(number, name).expect("memory");
        writer.load_class(number as u32, class(number), number).expect("memory");
    }
    writer.text(50, "referent").expect("memory");
    let count = dice.below(20) + 2;
    let object = |number: u64| 0x1000 + number * 32;
    for number in 1..=CLASSES.len() as u64 {
        let fields = [(50, Type::Reference), (1, Type::Int)];
        let statics = [(2, Type::Reference, object(dice.below(count)))];
        let has_fields = [3, 6].contains(&number);
        let made = ClassOut {
            address: class(number),
            super_class: if number == 4 { class(3) } else { class(1) },
            fields: if has_fields { &fields } else { &[] },
            statics: if number == 6 { &statics } else { &[] },
            ..ClassOut::default()
        };
        writer.class(&made).expect("memory");
    }
    for number in 0..count {
        let address = object(number);
        match dice.below(3) {
            0 => {
                let mut body = Vec::new();
                let next = object(dice.below(count));
                DumpWriter::<Vec<u8>>::put(width, &mut body, Type::Reference, next);
                DumpWriter::<Vec<u8>>::put(width, &mut body, Type::Int, number);
                let of = if dice.below(4) == 0 { 4 } else { 6 };
                writer.instance(address, class(of), &body).expect("memory");
            }
            1 => {
                writer.array(address, class(5), 2).expect("memory");
                writer.elements(&[object(dice.below(count)), 0]).expect("memory");
                writer.array_end().expect("memory");
            }
            _ => {
                writer.values(address, Type::Byte, 3).expect("memory");
                writer.bytes(b"abc");
                writer.array_end().expect("memory");
            }
        }
    }
    let kinds = [RootKind::JniGlobal, RootKind::Thread, RootKind::Local, RootKind::Other];
    for kind in kinds {
        writer.root(kind, object(dice.below(count)), 1, 0).expect("memory");
    }
    writer.finish().expect("memory")
}
