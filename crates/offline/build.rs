//! Compiles the portable runtime, which programs that were woven offline call.
//!
//! For Java 8, so that old programs can be woven too; its module descriptor is of Java 9, and older
//! JVMs do not look at it.

#[path = "../agent/build/javac.rs"]
mod javac;

use std::path::{Path, PathBuf};
use std::{env, fs};

const PACKAGE: &str = "tare/runtime";

fn main() {
    let runtime = Path::new("../../runtime-portable");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed={}", runtime.display());
    println!("cargo:rerun-if-changed=../agent/build/javac.rs");
    let classes = out.join("classes");
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes).expect("a directory for the classes");
    javac::compile(&["--release", "8"], &classes, &javac::sources(&runtime.join(PACKAGE)));
    javac::compile(&["--release", "9"], &classes, &javac::sources(runtime));

    let files = fs::read_dir(classes.join(PACKAGE)).expect("javac wrote classes");
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    files.insert(0, classes.join("module-info.class"));
    let mut code = "const CLASSES: &[(&str, &[u8])] = &[\n".to_owned();
    for file in files {
        let entry = file.strip_prefix(&classes).expect("written there").display().to_string();
        code += &format!("    ({entry:?}, include_bytes!({:?})),\n", file.display());
    }
    code += "];\n";
    fs::write(out.join("classes.rs"), code).expect("the table can be written");
}
