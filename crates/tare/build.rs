//! Puts the agent into the tool, so that the one file works wherever it is copied.
//!
//! Cargo has no stable way to depend on another package's library file, so release builds have
//! cargo build it here, in a target directory of its own. `TARE_EMBED_AGENT` names a library that
//! is there already. Debug builds carry none and look beside the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const GIVEN: &str = "TARE_EMBED_AGENT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={GIVEN}");
    println!("cargo:rustc-env=TARE_BUILD={}", build_id());
    println!("cargo:rustc-env=TARE_TOOL={:016x}", tool_id());
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let given = env::var(GIVEN).ok().filter(|path| !path.is_empty()).map(PathBuf::from);
    let wanted = env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && env::var_os("CARGO_FEATURE_EMBED").is_some();
    let code = match given.or_else(|| wanted.then(|| build(&out))) {
        None => "pub const AGENT: Option<&[u8]> = None;\n".to_owned(),
        Some(library) => {
            check(&library);
            println!("cargo:rerun-if-changed={}", library.display());
            format!(
                "pub const AGENT: Option<&[u8]> = Some(include_bytes!({:?}));\n",
                library.display().to_string()
            )
        }
    };
    fs::write(out.join("carried.rs"), code).expect("the output directory can be written");
}

fn build_id() -> String {
    env::var("DEP_TARE_PROTOCOL_BUILD_ID").expect("from tare-protocol's build script")
}

/// What tells the tool of one build from that of another, for two that talk to each other
/// (`tare --host`): a hash (FNV-1a) over the sources of all crates and the agent's build.
fn tool_id() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    add(build_id().as_bytes(), &mut hash);
    for folder in entries(Path::new("..")) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !NOT_IN_THE_TOOL.contains(&name.as_str()) {
            add_files(&folder.join("src"), &mut hash);
        }
    }
    hash
}

/// Crates for developers.
const NOT_IN_THE_TOOL: [&str; 7] =
    ["bench", "browser", "jvm-tests", "step-counter", "test-natives", "toolbox", "xtask"];

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
}

fn add_files(path: &Path, hash: &mut u64) {
    if path.is_dir() {
        println!("cargo:rerun-if-changed={}", path.display());
        entries(path).iter().for_each(|path| add_files(path, hash));
    } else if let Ok(bytes) = fs::read(path) {
        println!("cargo:rerun-if-changed={}", path.display());
        add(path.file_name().unwrap_or_default().as_encoded_bytes(), hash);
        add(&bytes, hash);
    }
}

fn add(bytes: &[u8], hash: &mut u64) {
    for byte in bytes.iter().chain(&[0xff]) {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

/// Builds the agent as it is shipped: without symbols, which are only names for crash reports.
fn build(out: &Path) -> PathBuf {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let target = env::var("TARGET").expect("set by cargo");
    // One agent serves JVMs on both C libraries, and it is the one that is built for glibc.
    let target = target.replace("-musl", "-gnu");
    let folder = out.join("agent");
    let mut cargo = Command::new(env::var_os("CARGO").expect("set by cargo"));
    cargo
        .args(["build", "--release", "--package", "tare-agent", "--target", &target])
        .arg("--manifest-path")
        .arg(manifest.join("../../Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    let status = cargo.status().expect("cargo can be started");
    assert!(
        status.success(),
        "the agent, which the tool carries, does not build; see above. `--no-default-features` \
         builds a tool without it"
    );
    folder.join(target).join("release/libtare_agent.so")
}

/// A tool with the agent of another build would load it and not understand it.
fn check(library: &Path) {
    let bytes = fs::read(library)
        .unwrap_or_else(|e| panic!("{GIVEN}: cannot read {}: {e}", library.display()));
    let build = build_id();
    let marker = format!("tare-build-id:{build};");
    assert!(
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes()),
        "{} is not the agent of this build ({build})",
        library.display()
    );
}
