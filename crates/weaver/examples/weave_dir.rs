//! Weaves every class of a directory tree into another one and prints what became of the methods.
//!
//! `weave_dir MODE IN OUT [--allow-huge] [--major N]`. With `--major`, classes get that version
//! when nothing in them forbids it: a way to meet the JVM's old verifier with today's classes.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tare_classfile::{ClassFile, Constant};
use tare_weaver::{MethodOutcome, Options, Outcome, Weaver};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, input, output, flags @ ..] = args.as_slice() else {
        eprintln!("weave_dir MODE IN OUT [--allow-huge] [--major N]; modes: {:?}", common::MODES);
        std::process::exit(2);
    };
    let Some(probes) = common::probes(mode) else {
        eprintln!("no mode {mode}; there are {:?}", common::MODES);
        std::process::exit(2);
    };
    let allow_huge = flags.iter().any(|f| f == "--allow-huge");
    let major = flags.iter().position(|f| f == "--major").and_then(|at| flags.get(at + 1));
    let major: Option<u16> = major.and_then(|m| m.parse().ok());
    let mut weaver = Weaver::new(Options { allow_huge });
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut id = 0;
    let root = PathBuf::from(input);
    for path in common::class_files(&root) {
        let mut bytes = fs::read(&path).expect("readable class");
        let relative = path.strip_prefix(&root).expect("inside of the root");
        if major.is_some_and(|major| !downgrade(&mut bytes, major)) {
            continue;
        }
        *counts.entry("classes".into()).or_default() += 1;
        *counts.entry("bytes".into()).or_default() += bytes.len() as u64;
        let lines = common::method_lines(&bytes);
        let outcome = weaver.weave(&bytes, |info| {
            id += 1;
            common::plan(info, id, &probes, lines.get(info.index).copied().flatten())
        });
        match outcome {
            Ok(outcome) => {
                for m in &outcome.report().methods {
                    let key = match &m.outcome {
                        MethodOutcome::Woven { .. } => "methods woven".to_owned(),
                        MethodOutcome::NoCode => "methods without code".to_owned(),
                        MethodOutcome::NothingToDo => "methods with nothing to do".to_owned(),
                        MethodOutcome::Refused(r) => {
                            if r.name() != "huge" {
                                println!("refused: {} method {}: {r}", relative.display(), m.index);
                            }
                            format!("refused: {}", r.name())
                        }
                    };
                    *counts.entry(key).or_default() += 1;
                }
                let result = match outcome {
                    Outcome::Woven { bytes, .. } => bytes,
                    Outcome::Unchanged(_) => bytes,
                };
                *counts.entry("bytes out".into()).or_default() += result.len() as u64;
                let to = Path::new(output).join(relative);
                fs::create_dir_all(to.parent().expect("has a parent")).expect("a directory");
                fs::write(&to, result).expect("writable");
            }
            Err(e) => {
                println!("class error: {}: {e}", relative.display());
                *counts.entry("class errors".into()).or_default() += 1;
            }
        }
    }
    for (key, n) in counts {
        println!("{key}: {n}");
    }
}

/// Sets an older version when nothing in the class needs the newer one.
fn downgrade(bytes: &mut [u8], major: u16) -> bool {
    let Ok(class) = ClassFile::parse(bytes) else { return false };
    let modern = class.pool.iter().any(|(_, c)| {
        matches!(
            c,
            Constant::MethodHandle { .. }
                | Constant::MethodType { .. }
                | Constant::Dynamic { .. }
                | Constant::InvokeDynamic { .. }
                | Constant::Module { .. }
                | Constant::Package { .. }
        )
    });
    let interface = class.access_flags & tare_classfile::access::INTERFACE != 0;
    if modern || interface || class.major < major {
        return false;
    }
    if let Some(to) = bytes.get_mut(4..8) {
        to.copy_from_slice(&[0, 0, (major >> 8) as u8, major as u8]);
    }
    true
}
