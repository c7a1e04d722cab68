//! `cargo xtask bench whole`: every table there is, one after the other. Meant to take less than an hour.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

const HELP: &str = "\
Runs every benchmark once, each with a few launches; meant to take less than an hour.

Usage: cargo xtask bench whole [--write-docs] [PART…]

With --write-docs the pages in docs/ are written anew. PARTs are words of the list that is shown at the end;
with them only these are run.
";

struct Part {
    name: &'static str,
    words: &'static [&'static str],
    /// Whether it makes a page.
    page: bool,
}

const fn part(name: &'static str, words: &'static [&'static str], page: bool) -> Part {
    Part { name, words, page }
}

/// Those first whose figures are quoted most.
const PARTS: [Part; 11] = [
    part("modes", &["--launches", "3", "--minutes", "9"], true),
    part("suite", &["suite", "--launches", "1"], true),
    part("peers", &["peers", "--launches", "1"], true),
    part("bytecodes", &["bytecodes", "--launches", "2", "--minutes", "3"], true),
    part("sampling", &["sampling", "--rounds", "2", "javac", "h2", "lucene", "crowd"], true),
    part("accuracy", &["accuracy", "--quick"], false),
    part("scale", &["scale", "--quick"], true),
    part("self", &["self"], true),
    part("trace", &["trace"], false),
    part("subgraph", &["subgraph", "--quick"], true),
    part("server", &["server", "--seconds", "5"], true),
];

pub fn run(words: &[&str]) -> Result<()> {
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        print!("{HELP}");
        return Ok(());
    }
    let write_docs = words.contains(&"--write-docs");
    let named: Vec<&&str> = words.iter().filter(|word| **word != "--write-docs").collect();
    if let Some(unknown) = named.iter().find(|name| PARTS.iter().all(|part| part.name != ***name)) {
        bail!("there is no part {unknown}\n\n{HELP}");
    }
    let chosen = PARTS.iter().filter(|part| named.is_empty() || named.contains(&&part.name));
    let began = Instant::now();
    let mut done: Vec<(&str, Duration, Result<()>)> = Vec::new();
    for part in chosen {
        println!("\n=== {} ({} min so far)", part.name, began.elapsed().as_secs() / 60);
        let began = Instant::now();
        let pages = (write_docs && part.page).then_some("--write-docs");
        let words: Vec<&str> = part.words.iter().copied().chain(pages).collect();
        let outcome = super::run(&words);
        done.push((part.name, began.elapsed(), outcome));
    }
    println!();
    for (name, took, outcome) in &done {
        let outcome = outcome.as_ref().map_or_else(|error| format!("{error:#}"), |()| "ok".into());
        println!("{name:<10} {:>5} s  {outcome}", took.as_secs());
    }
    println!("{:<10} {:>5} s", "in all", began.elapsed().as_secs());
    let failed: Vec<&str> = done.iter().filter(|part| part.2.is_err()).map(|part| part.0).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
