//! Fills the corpus of each fuzz target with real classes: `cargo run --bin seed -- JAR…` in this
//! directory, with any class files, jars or directories. Small classes first: a fuzzer gets further
//! with them.

use std::path::Path;
use std::{env, fs};

/// So many per target; more only slows the fuzzer down.
const MOST: usize = 2000;

/// Longer files are not mutated in a useful way.
const LONGEST: usize = 8 << 10;

fn main() {
    let inputs: Vec<String> = env::args().skip(1).collect();
    assert!(!inputs.is_empty(), "name class files, jars or directories to take classes from");
    let mut classes: Vec<Vec<u8>> = Vec::new();
    for input in &inputs {
        let mut found = |_: &str, bytes: &[u8]| {
            if bytes.len() <= LONGEST {
                classes.push(bytes.to_vec());
            }
        };
        if let Err(error) = tare_offline::classes_of(Path::new(input), &|_| true, &mut found) {
            panic!("{error}");
        }
    }
    classes.sort_by_key(Vec::len);
    classes.dedup();
    let step = (classes.len() / MOST).max(1);
    for target in ["parse", "round_trip", "weave"] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&corpus).expect("a directory for the corpus");
        for (number, class) in classes.iter().step_by(step).take(MOST).enumerate() {
            fs::write(corpus.join(format!("seed-{number:04}")), class).expect("a seed");
        }
    }
    println!("{} classes, {} of them as seeds", classes.len(), classes.len().min(MOST));
}
