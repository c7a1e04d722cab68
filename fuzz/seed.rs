//! Fills the corpus of each fuzz target: `cargo run --bin seed -- JAR…` in this directory. The
//! readers of recordings, foreign files, arenas and messages get what `made.rs` makes; the targets
//! for class files get real classes of the class files, jars or directories that are named, and
//! nothing if none is. Small classes first: a fuzzer gets further with them.

mod made;

use std::path::Path;
use std::{env, fs};

/// So many per target; more only slows the fuzzer down.
const MOST: usize = 2000;

/// Longer files are not mutated in a useful way.
const LONGEST: usize = 8 << 10;

fn main() {
    let made = [
        ("recording", made::recordings()),
        ("formats", made::foreign_files()),
        ("arena", made::arenas()),
        ("protocol", made::messages()),
        ("heapdump", made::heap_dumps()),
        ("heap_index", made::heap_indexes()),
    ];
    for (target, seeds) in made {
        store(target, seeds.iter());
        println!("{target}: {} seeds", seeds.len());
    }
    let inputs: Vec<String> = env::args().skip(1).collect();
    if inputs.is_empty() {
        println!("class files: none; name class files, jars or directories to take them from");
        return;
    }
    let classes = classes_of(&inputs);
    let step = (classes.len() / MOST).max(1);
    for target in ["parse", "round_trip", "weave"] {
        store(target, classes.iter().step_by(step).take(MOST));
    }
    println!("{} classes, {} of them as seeds", classes.len(), classes.len().min(MOST));
}

fn classes_of(inputs: &[String]) -> Vec<Vec<u8>> {
    let mut classes: Vec<Vec<u8>> = Vec::new();
    for input in inputs {
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
    classes
}

fn store<'a>(target: &str, seeds: impl Iterator<Item = &'a Vec<u8>>) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&corpus).expect("a directory for the corpus");
    for (number, seed) in seeds.enumerate() {
        fs::write(corpus.join(format!("seed-{number:04}")), seed).expect("a seed");
    }
}
