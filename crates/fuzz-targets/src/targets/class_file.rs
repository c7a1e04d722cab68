//! Class files: read, printed, written again and woven.

use std::str::FromStr;
use tare_classfile::print::print_class;
use tare_classfile::writer::write;
use tare_classfile::{ClassFile, Code};
use tare_offline::{Batch, Modes, Settings};

/// No panic, no hang, no unbounded memory.
pub fn parse(data: &[u8]) {
    let Ok(class) = ClassFile::parse(data) else { return };
    for method in &class.methods {
        if let Some(code) = method.attributes.find(&class.pool, "Code")
            && let Ok(code) = Code::parse(&code)
        {
            let instructions = code.insns().take_while(Result::is_ok).count();
            assert!(instructions <= code.code.len());
        }
    }
    // The printer meets every attribute, also those that are malformed inside.
    let mut text = String::new();
    let _ = print_class(&class, &mut text);
}

/// What can be read is written back byte for byte.
pub fn round_trip(data: &[u8]) {
    if let Ok(class) = ClassFile::parse(data) {
        assert!(write(&class) == data, "a class is not written as it was read");
    }
}

const MODES: [&str; 8] = [
    "all",
    "entry",
    "entry-object,count",
    "count-precise,stack",
    "activation,allocation",
    "activation-blocks,calls",
    "regions",
    "entry,count,regions,calls",
];

/// In any mode what comes out can be read, has the same members, keeps every refused method as it
/// was, and comes out the same a second time.
pub fn weave(data: &[u8]) {
    // The last byte chooses the mode, so that the corpus stays a set of class files.
    let Some(&choice) = data.last() else { return };
    let mode = MODES[usize::from(choice) % MODES.len()];
    let weave = || {
        let mut settings = Settings::new(Modes::from_str(mode).expect("a mode"));
        settings.allow_huge = choice & 0x80 != 0;
        let mut batch = Batch::new(settings).expect("probes that fit");
        batch.keep_rows();
        let woven = batch.weave(data);
        (woven, batch.rows)
    };
    let (Some(woven), rows) = weave() else { return };
    assert!(weave().0.as_ref() == Some(&woven), "weaving is not repeatable");
    let before = ClassFile::parse(data).expect("it was woven");
    let after = ClassFile::parse(&woven).expect("woven bytes can be read");
    assert!(before.methods.len() == after.methods.len());
    assert!(woven.len() <= data.len() * 64 + (1 << 20), "the class grew without bound");
    let refused = rows.iter().filter(|row| row.reason.is_some()).count();
    let kept = before.methods.iter().zip(&after.methods).filter(|(a, b)| a.raw == b.raw).count();
    assert!(kept >= refused, "a refused method was changed");
}
