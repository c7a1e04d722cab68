//! How fast classes are read, written again and woven, per mode.
//!
//! `bench_weaving DIR [MODE...]` reads all classes below a directory into memory, then runs each
//! task over all of them on one thread, several times, and prints MB/s of class bytes and the times
//! per class, from the best round of each class. It stops if a class is not written back byte for
//! byte.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};
use tare_classfile::{ClassFile, writer};
use tare_weaver::{Options, Weaver};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((dir, modes)) = args.split_first() else {
        eprintln!("bench DIR [MODE...]; modes: {:?}", common::MODES);
        std::process::exit(2);
    };
    let files = common::class_files(Path::new(dir));
    let classes: Vec<Vec<u8>> =
        files.iter().map(|f| std::fs::read(f).expect("readable class")).collect();
    let bytes: usize = classes.iter().map(Vec::len).sum();
    println!("{} classes, {:.1} MB", classes.len(), bytes as f64 / 1e6);
    println!("{:<12} {:>8} {:>9} {:>9} {:>9}", "task", "MB/s", "p50 us", "p99 us", "max us");
    run("parse", &classes, bytes, |c| ClassFile::parse(c).map_or(0, |c| c.methods.len()));
    run("round trip", &classes, bytes, |c| {
        ClassFile::parse(c).map_or(0, |c| writer::write(&c).len())
    });
    for (c, f) in classes.iter().zip(&files) {
        let same = ClassFile::parse(c).is_ok_and(|class| writer::write(&class) == *c);
        assert!(same, "{} is not written back as it was", f.display());
    }
    let lines: Vec<_> = classes.iter().map(|c| common::method_lines(c)).collect();
    let wanted: Vec<&str> = match modes {
        [] => common::MODES.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    for mode in wanted {
        let Some(probes) = common::probes(mode) else {
            eprintln!("no mode {mode}; there are {:?}", common::MODES);
            std::process::exit(2);
        };
        let mut weaver = Weaver::new(Options::default());
        let mut id = 0;
        let mut at = 0;
        run(mode, &classes, bytes, |c| {
            let lines = &lines[at % lines.len()];
            at += 1;
            let outcome = weaver.weave(c, |info| {
                id += 1;
                common::plan(info, id, &probes, lines.get(info.index).copied().flatten())
            });
            usize::from(outcome.is_ok())
        });
    }
}

const ROUNDS: u32 = 5;

fn run(task: &str, classes: &[Vec<u8>], bytes: usize, mut work: impl FnMut(&[u8]) -> usize) {
    // The best of several rounds per class: other load on the machine only ever adds.
    let mut times = vec![Duration::MAX; classes.len()];
    for _ in 0..ROUNDS {
        for (c, best) in classes.iter().zip(&mut times) {
            let start = Instant::now();
            std::hint::black_box(work(c));
            *best = start.elapsed().min(*best);
        }
    }
    let total: Duration = times.iter().sum();
    times.sort();
    let us = |d: Duration| d.as_nanos() as f64 / 1e3;
    let quantile = |q: f64| us(times[((times.len() - 1) as f64 * q) as usize]);
    println!(
        "{task:<12} {:>8.0} {:>9.1} {:>9.1} {:>9.1}",
        bytes as f64 / 1e6 / total.as_secs_f64(),
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    );
}
