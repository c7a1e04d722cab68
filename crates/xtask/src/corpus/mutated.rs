//! Weave, then load: real classes with some bytes changed. Whatever a JVM accepts of them
//! untouched, it must accept woven; and no bytes may stop the weaver.

use super::subjects::{self, Kind, Subject};
use super::{Corpus, HUGE, judge, weave};
use anyhow::{Result, bail};
use std::fs;
use tare_toolbox::jars::jars_in;

/// The jars whose classes are changed: modern code, and old code with subroutines.
const GROUPS: [&str; 2] = ["h2", "old"];

/// Another seed for each call would find more and repeat nothing; this one can be told to others.
const SEED: &str = "4711";

pub fn run(corpus: &mut Corpus, count: u32) -> Result<()> {
    let chosen = subjects::jars(&mut corpus.stages, |name| GROUPS.contains(&name));
    let mut jars = Vec::new();
    for subject in &chosen {
        jars.extend(jars_in(&subject.classes)?);
    }
    if jars.is_empty() {
        bail!("there are no jars to take classes from");
    }
    let classes = corpus.work.join("mutated");
    let jdks = corpus.jdks.clone();
    let Some(first) = jdks.first() else { bail!("there is no JVM to judge") };
    let made = corpus.stages.run("changing classes", || {
        let _ = fs::remove_dir_all(&classes);
        let mut command = corpus.driver.java(first);
        command.arg("-cp").arg(&corpus.driver.classes).arg("weave.Mutate").arg(&classes);
        tare_toolbox::shell::run(command.args([SEED, &count.to_string()]).args(&jars))
    });
    if made.is_none() {
        return Ok(());
    }
    let asked = &corpus.args.modes;
    let modes =
        if asked.len() > 2 { vec!["entry".to_owned(), HUGE.to_owned()] } else { asked.clone() };
    let subject =
        Subject { name: "mutated".to_owned(), kind: Kind::Files(jars), classes, modules: None };
    for jdk in corpus.judges(&subject) {
        for mode in &modes {
            let stage = format!("mutated classes woven with {mode} on JDK {}", jdk.major);
            let (work, driver, tare) = (&corpus.work, &corpus.driver, &corpus.tare);
            corpus.stages.run(&stage, || {
                let woven = work.join("woven").join("mutated");
                let _ = fs::remove_dir_all(&woven);
                weave(tare, &subject, mode, &woven)?;
                let untouched = judge::link(driver, &jdk, &subject, &subject.classes, work)?;
                let verdict = judge::link(driver, &jdk, &subject, &woven, work)?;
                println!(
                    "  untouched the JVM accepts {} of {}, woven {}",
                    untouched.linked, untouched.seen, verdict.linked
                );
                if untouched.linked < untouched.seen / 20 {
                    bail!("hardly any changed class is accepted; this shows nothing");
                }
                let new = verdict.only_woven(&untouched);
                for line in new.iter().take(20) {
                    println!("  only woven: {line}");
                }
                if !new.is_empty() {
                    bail!("{} classes are rejected only when woven", new.len());
                }
                Ok(())
            });
        }
    }
    Ok(())
}
