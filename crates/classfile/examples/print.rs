//! Prints class files in the manner of `javap -v -p`.

use tare_classfile::{ClassFile, print::print_class};

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).expect("readable file");
        match ClassFile::parse(&bytes) {
            Ok(class) => {
                let mut text = String::new();
                print_class(&class, &mut text).expect("a String takes everything");
                print!("{text}");
            }
            Err(e) => println!("{path}: {e}"),
        }
    }
}
