//! Reading and printing any bytes as a class file: no panic, no hang, no unbounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_classfile::print::print_class;
use tare_classfile::{ClassFile, Code};

fuzz_target!(|data: &[u8]| {
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
});
