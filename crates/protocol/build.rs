//! Gives every build of the agent a name of its own.
//!
//! The id is a hash over the sources that end up inside the profiled JVM, so that the command-line
//! tool and the agent agree when, and only when, they were built from the same tree. Library and
//! class names carry it: a JVM that an older Tare visited can take a newer one beside it.
//! `TARE_BUILD_ID` overrides it (the tests build a "next version" that way).

use std::path::Path;
use std::{env, fs};

/// What the agent library is made of, relative to the workspace. `cargo xtask tidy` checks it
/// against the agent's dependencies.
const AGENT_SOURCES: &[&str] = &[
    "crates/agent",
    "crates/arena",
    "crates/callgraph",
    "crates/classfile",
    "crates/java-names",
    "crates/perf-events",
    "crates/protocol",
    "crates/unwind",
    "crates/weaver",
    "runtime",
    "Cargo.lock",
];

fn main() {
    println!("cargo:rerun-if-env-changed=TARE_BUILD_ID");
    println!("cargo:rerun-if-changed=build.rs");
    let id = match env::var("TARE_BUILD_ID") {
        Ok(id) => {
            assert!(
                id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()),
                "TARE_BUILD_ID must be 16 hexadecimal digits, not {id:?}"
            );
            id.to_lowercase()
        }
        Err(_) => format!("{:016x}", hash_sources()),
    };
    println!("cargo:rustc-env=TARE_BUILD_ID={id}");
    // For the build scripts of our dependents, as DEP_TARE_PROTOCOL_BUILD_ID.
    println!("cargo:build_id={id}");
}

fn hash_sources() -> u64 {
    // From the package's directory, where cargo runs this: a target directory that is copied with
    // its tree must not look at the tree where it was made.
    let root = Path::new("../..");
    let mut hash = Fnv::new();
    // Not the whole target: a tool on musl brings the agent of glibc, which serves both.
    for key in ["CARGO_PKG_VERSION", "PROFILE", "CARGO_CFG_TARGET_ARCH"] {
        hash.add(env::var(key).unwrap_or_default().as_bytes());
    }
    for source in AGENT_SOURCES {
        let path = root.join(source);
        println!("cargo:rerun-if-changed={}", path.display());
        hash_path(&path, &mut hash);
    }
    hash.0
}

/// Adds a file, or a directory's files in the order of their names. Tests of the crates do not
/// reach the library, but leaving them in keeps the rule simple.
fn hash_path(path: &Path, hash: &mut Fnv) {
    if path.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path)
            .unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
            .map(|e| e.expect("directory entry").path())
            .collect();
        entries.sort();
        for entry in entries {
            hash_path(&entry, hash);
        }
    } else if let Ok(bytes) = fs::read(path) {
        hash.add(path.file_name().unwrap_or_default().as_encoded_bytes());
        hash.add(&bytes);
    }
}

/// FNV-1a: names need to differ, not to resist an attacker.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &b in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
