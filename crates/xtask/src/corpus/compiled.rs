//! What HotSpot compiled before still compiles woven: runs programs with every method compiled at
//! its first call, by each of the two compilers, and compares which methods they give up on.
//!
//! Unbalanced monitors, irreducible loops and sheer size make a compiler give up. Size is the one
//! reason that weaving may add, and the weaver's own limit is to prevent it.

use super::subjects::{self, Subject};
use super::{Corpus, judge, weave};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_toolbox::jars::jars_in;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// The compilers, by the options that leave only one of them.
const COMPILERS: [(&str, &str); 2] =
    [("C1", "-XX:TieredStopAtLevel=1"), ("C2", "-XX:-TieredCompilation")];

/// How many methods a compiler took, and the others with its reason.
struct Compiled {
    methods: usize,
    refused: BTreeMap<String, String>,
}

pub fn run(corpus: &mut Corpus) -> Result<()> {
    let jdks: Vec<Jdk> = corpus.jdks.iter().filter(|jdk| jdk.javac).cloned().collect();
    if jdks.is_empty() {
        bail!("a JDK with a compiler is needed");
    }
    let asked = &corpus.args.modes;
    let modes = if asked.len() > 2 {
        vec!["entry,count".to_owned(), "all".to_owned()]
    } else {
        asked.clone()
    };
    for jdk in &jdks {
        if corpus.args.wants("javac") {
            let dump = || subjects::jdk(jdk, &corpus.driver, &corpus.work, false);
            let name = format!("classes of JDK {}", jdk.major);
            if let Some(subject) = corpus.stages.run(&name, dump) {
                compare(corpus, jdk, &subject, &modes, "com.sun.tools.javac.*::*", javac);
            }
        }
        if corpus.args.wants("h2")
            && let Some(subject) = subjects::jars(&mut corpus.stages, |name| name == "h2").pop()
        {
            compare(corpus, jdk, &subject, &modes, "org.h2.*::*", h2);
        }
    }
    Ok(())
}

/// Puts the program on a command line: the driver's, the JDK's or jars' directory, and whether it
/// is woven.
type Program = fn(&mut Command, &Corpus, &Path, bool) -> Result<()>;

fn javac(command: &mut Command, corpus: &Corpus, classes: &Path, woven: bool) -> Result<()> {
    // Only the compiler itself is woven here: the rest of the JDK is not compiled in this run.
    let only = |jar: &PathBuf| {
        jar.file_stem().is_some_and(|name| name == "jdk.compiler" || name == "java.compiler")
    };
    let jars: Vec<PathBuf> = jars_in(classes)?.into_iter().filter(only).collect();
    command.args(judge::patches(&corpus.driver, &jars, woven));
    command.args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-proc:none", "-d"]);
    let out = corpus.work.join("compiled");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out)?;
    command.arg(out);
    let sources = shell::root().join("crates/jvm-tests/java/weave");
    for entry in fs::read_dir(&sources).context("Java sources to compile")? {
        let file = entry?.path();
        if file.extension().is_some_and(|e| e == "java") {
            command.arg(file);
        }
    }
    Ok(())
}

fn h2(command: &mut Command, corpus: &Corpus, classes: &Path, _woven: bool) -> Result<()> {
    command.args(judge::patches(&corpus.driver, &[], false)).arg("-cp");
    let mut path = OsString::from(&corpus.driver.classes);
    for jar in jars_in(classes)? {
        path.push(":");
        path.push(jar);
    }
    command.arg(path).args(["weave.H2Work", "300"]);
    Ok(())
}

fn compare(
    corpus: &mut Corpus,
    jdk: &Jdk,
    subject: &Subject,
    modes: &[String],
    methods: &str,
    program: Program,
) {
    for (compiler, option) in COMPILERS {
        let options = [option, "-Xcomp", "-XX:CompileCommand=quiet", "-XX:+PrintCompilation"];
        let command = |corpus: &Corpus, classes: &Path, woven: bool| -> Result<Compiled> {
            let mut command = Command::new(jdk.home.join("bin/java"));
            command.args(["-XX:+UseSerialGC", "-Xmx2g", "-XX:+UnlockDiagnosticVMOptions"]);
            command.args(options).arg(format!("-XX:CompileCommand=compileonly,{methods}"));
            program(&mut command, corpus, classes, woven)?;
            // The sources that javac compiles here need not be without notes.
            read(&shell::output(command.stderr(Stdio::null()))?)
        };
        let name = format!("{} compiled by {compiler} on JDK {}", subject.name, jdk.major);
        let result = command(corpus, &subject.classes, false);
        let Some(untouched) = corpus.stages.run(&name, || result) else { continue };
        for mode in modes {
            let stage = format!("{name}, woven with {mode}");
            let result = || -> Result<()> {
                let woven = corpus.work.join("woven").join(format!("{}-{mode}", subject.name));
                let _ = fs::remove_dir_all(&woven);
                weave(&corpus.tare, subject, mode, &woven)?;
                let compiled = command(corpus, &woven, true);
                let _ = fs::remove_dir_all(&woven);
                verdict(&untouched, &compiled?)
            }();
            corpus.stages.run(&stage, || result);
        }
    }
}

fn verdict(untouched: &Compiled, woven: &Compiled) -> Result<()> {
    println!(
        "  untouched: {} methods compiled, {} given up; woven: {} and {}",
        untouched.methods,
        untouched.refused.len(),
        woven.methods,
        woven.refused.len()
    );
    if untouched.methods < 500 || woven.methods < 500 {
        bail!("too few methods were compiled to say anything");
    }
    let new: Vec<String> = woven
        .refused
        .iter()
        .filter(|(method, _)| !untouched.refused.contains_key(*method))
        .map(|(method, reason)| format!("{method}: {reason}"))
        .collect();
    for line in &new {
        println!("  only woven: {line}");
    }
    if !new.is_empty() {
        bail!("{} methods no longer compile, as {}", new.len(), new[0]);
    }
    Ok(())
}

/// Reads what `-XX:+PrintCompilation` prints between the program's own lines.
fn read(text: &str) -> Result<Compiled> {
    let mut compiled = Compiled { methods: 0, refused: BTreeMap::new() };
    for line in text.lines() {
        let Some(method) = line.split_whitespace().find(|word| word.contains("::")) else {
            continue;
        };
        let refused = ["COMPILE SKIPPED", "made not compilable"];
        if let Some(at) = refused.iter().find_map(|mark| line.find(mark)) {
            compiled.refused.insert(method.to_owned(), line[at..].to_owned());
        } else if line.contains(" bytes)") {
            compiled.methods += 1;
        }
    }
    Ok(compiled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_compilations_is_read() {
        let text = "    66    1    b        org.h2.Driver::<clinit> (20 bytes)\n\
                    some output of the program\n\
                    70    2 %  b  4     a.B::c @ 3 (55 bytes)\n\
                    90    3    b        a.B::d (9000 bytes)   COMPILE SKIPPED: out of nodes (not retryable)\n\
                    made not compilable on level 4  a.B::e (7 bytes)   jsr/ret parse\n";
        let compiled = read(text).unwrap();
        assert_eq!(compiled.methods, 2);
        let refused: Vec<_> = compiled.refused.keys().map(String::as_str).collect();
        assert_eq!(refused, ["a.B::d", "a.B::e"]);
        assert!(compiled.refused["a.B::d"].contains("out of nodes"));
    }
}
