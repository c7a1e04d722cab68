//! Links the agent so that one file loads into every JVM on Linux: with no library named as needed
//! and no symbol bound to a version.
//!
//! The JVM has a C library loaded already, an old glibc, a new one, or musl; the dynamic linker
//! finds our symbols in it. What the oldest of them lacks is in `src/old_libc.rs`, and `cargo xtask
//! test` compares what is left with a list. Unwinding, for panics that the gate catches, comes from
//! the compiler's static library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Says `cfg(any_libc)` to the sources if the library is linked so. Without the static unwinder it
/// is linked as any other: it then serves JVMs on C libraries as new as this machine's.
pub fn without_libc(out: &Path) {
    println!("cargo:rustc-check-cfg=cfg(any_libc)");
    println!("cargo:rerun-if-env-changed=CC");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|v| v == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    let (Some(unwinder), Some(helpers)) = (of_compiler("libgcc_eh.a"), of_compiler("libgcc.a"))
    else {
        println!(
            "cargo:warning=no static libgcc_eh.a beside the C compiler: this agent only loads \
             where the C library is as new as here"
        );
        return;
    };
    let folder = out.join("link");
    fs::create_dir_all(&folder).expect("a directory for the linker");
    // Found before the real ones, these leave every symbol of the C library undefined.
    for name in ["c", "m", "pthread", "dl", "rt", "util"] {
        fs::write(folder.join(format!("lib{name}.a")), "!<arch>\n").expect("an empty archive");
    }
    let script = format!("INPUT(\"{}\" \"{}\")\n", unwinder.display(), helpers.display());
    fs::write(folder.join("libgcc_s.so"), script).expect("a linker script");
    println!("cargo:rustc-link-arg-cdylib=-L{}", folder.display());
    println!("cargo:rustc-cfg=any_libc");
}

/// A library of the C compiler, which links for rustc.
fn of_compiler(name: &str) -> Option<PathBuf> {
    let linker = env::var("RUSTC_LINKER").or_else(|_| env::var("CC")).unwrap_or("cc".to_owned());
    let output = Command::new(linker).arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A compiler that does not have it answers with the bare name.
    path.is_absolute().then_some(path)
}
