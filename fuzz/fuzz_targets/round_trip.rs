//! What can be read is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_classfile::ClassFile;
use tare_classfile::writer::write;

fuzz_target!(|data: &[u8]| {
    if let Ok(class) = ClassFile::parse(data) {
        assert!(write(&class) == data, "a class is not written as it was read");
    }
});
