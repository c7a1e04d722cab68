//! `cargo xtask weave-corpus`: weaves real classes in every mode and lets real verifiers judge.
//!
//! The weaving is done by the `tare` binary, as a user would; the judging by JVMs that link every
//! class without initialising it, and by ASM. This file reads the command line and walks over
//! subjects and modes; `subjects` finds the classes, `judge` asks the verifiers, `table` prints.

mod behaviour;
mod compiled;
mod driver;
mod judge;
mod mutated;
pub mod subjects;
mod table;

use anyhow::{Context, Result, bail};
use driver::Driver;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, time::Instant};
use subjects::{Kind, Subject};
use table::{Row, Table};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Weaves real classes in every mode and links them with full verification in real JVMs.

Usage: cargo xtask weave-corpus [OPTION…] [NAME…]

Subjects are the JDKs 17, 21 and 25 (jdk17, …; each judged by itself) and jars by many compilers
(scala, kotlin, r8, …; judged by all three), which mvn fetches into the cache. With NAMEs, only
these. Each is woven in each mode alone, in all together, and in all with huge methods too.

Options:
  --quick          java.base and java.logging only, modes entry and all, no jars
  --jdk N          only JDK N as subject and as judge; may be given several times
  --mode M         only this mode (see `tare class weave --help`); may be given several times
  --asm each|all|no  where ASM's CheckClassAdapter judges too: every mode, only the last one,
                   with everything (default), nowhere
  --behaviour      instead: run programs unwoven and woven, and compare what they say
  --compiled       instead: compare what HotSpot refuses to compile, unwoven and woven
  --mutated N      instead: N real classes with some bytes changed; what a JVM accepts of them
                   untouched it must accept woven
  --keep           leave the woven classes under the target directory
";

/// What was asked for.
struct Args {
    quick: bool,
    jdks: Vec<u32>,
    modes: Vec<String>,
    asm: Asm,
    names: Vec<String>,
    keep: bool,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asm {
    Each,
    All,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Link,
    Behaviour,
    Compiled,
    /// So many mutated classes.
    Mutated(u32),
}

/// Each kind of probe alone, then all together; the last weaves what HotSpot would not compile.
const MODES: [&str; 12] = [
    "entry",
    "entry-object",
    "count",
    "count-precise",
    "activation",
    "activation-blocks",
    "stack",
    "regions",
    "allocation",
    "calls",
    "all",
    HUGE,
];

/// All modes, and no method left out for its size.
const HUGE: &str = "all+huge";

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let mut args = Args {
            quick: false,
            jdks: Vec::new(),
            modes: Vec::new(),
            asm: Asm::All,
            names: Vec::new(),
            keep: false,
            what: What::Link,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => args.quick = true,
                "--keep" => args.keep = true,
                "--behaviour" => args.what = What::Behaviour,
                "--compiled" => args.what = What::Compiled,
                "--mutated" => {
                    let count = value()?.parse().context("--mutated needs a number")?;
                    args.what = What::Mutated(count);
                }
                "--jdk" => args.jdks.push(value()?.parse().context("--jdk needs a number")?),
                "--mode" => args.modes.push((*value()?).to_owned()),
                "--asm" => {
                    args.asm = match *value()? {
                        "each" => Asm::Each,
                        "all" => Asm::All,
                        "no" => Asm::No,
                        other => bail!("--asm {other}: write each, all or no"),
                    }
                }
                word if word.starts_with('-') => bail!("unknown option {word}\n\n{HELP}"),
                name => args.names.push(name.to_owned()),
            }
        }
        if args.modes.is_empty() {
            let all = if args.quick { &["entry", HUGE][..] } else { &MODES[..] };
            args.modes = all.iter().map(|&mode| mode.to_owned()).collect();
        }
        Ok(args)
    }

    fn wants_jdk(&self, major: u32) -> bool {
        self.jdks.is_empty() || self.jdks.contains(&major)
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|n| n == name)
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let args = Args::parse(words)?;
    let workspace = Workspace::open()?;
    let ready = setup::prepare()?;
    workspace.release()?;
    let work = workspace.target.join("weave-corpus");
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let driver = Driver::compile(&workspace, &ready.javac, &work)?;
    let tare = workspace.target.join("release/tare");
    let jdks: Vec<Jdk> = ready
        .runtimes
        .iter()
        .filter(|(major, _)| args.wants_jdk(*major))
        .filter_map(|(_, jdk)| jdk.as_ref().ok().cloned())
        .collect();

    let mut corpus = Corpus { args, work, driver, tare, jdks, stages: Stages::new() };
    for missing in ready.missing() {
        corpus.stages.note(format!("NOT COVERED: {missing}"));
    }
    match corpus.args.what {
        What::Link => corpus.link()?,
        What::Behaviour => behaviour::run(&mut corpus)?,
        What::Compiled => compiled::run(&mut corpus)?,
        What::Mutated(count) => mutated::run(&mut corpus, count)?,
    }
    corpus.stages.finish()
}

struct Corpus {
    args: Args,
    /// Where everything that is made goes.
    work: PathBuf,
    driver: Driver,
    tare: PathBuf,
    jdks: Vec<Jdk>,
    stages: Stages,
}

impl Corpus {
    fn link(&mut self) -> Result<()> {
        let subjects = self.subjects();
        if subjects.is_empty() {
            bail!("none of these subjects is here: {}", self.args.names.join(", "));
        }
        let asm = match self.args.asm {
            Asm::No => None,
            _ => subjects::asm(&mut self.stages),
        };
        let mut table = Table::default();
        for subject in &subjects {
            self.link_subject(subject, asm.as_deref(), &mut table);
        }
        print!("{table}");
        let problems = table.problems();
        self.stages.run("verdict", || {
            if !problems.is_empty() {
                bail!("{}", problems.join("; "));
            }
            Ok(())
        });
        Ok(())
    }

    fn subjects(&mut self) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for jdk in self.jdks.clone() {
            let name = format!("jdk{}", jdk.major);
            if self.args.wants(&name) {
                let dump = || subjects::jdk(&jdk, &self.driver, &self.work, self.args.quick);
                subjects.extend(self.stages.run(&format!("classes of {name}"), dump));
            }
        }
        if !self.args.quick {
            subjects.extend(subjects::jars(&mut self.stages, |name| self.args.wants(name)));
        }
        subjects
    }

    /// The JVMs that judge a subject: a JDK itself, jars all of them.
    fn judges(&self, subject: &Subject) -> Vec<Jdk> {
        match &subject.kind {
            Kind::Jdk(jdk) => vec![jdk.clone()],
            Kind::Jars | Kind::Files(_) => self.jdks.clone(),
        }
    }

    fn link_subject(&mut self, subject: &Subject, asm: Option<&[PathBuf]>, table: &mut Table) {
        let judges = self.judges(subject);
        let name = &subject.name;
        // The same run over the untouched classes is what each verdict is compared with.
        let mut baselines = Vec::new();
        for jdk in &judges {
            let link = || judge::link(&self.driver, jdk, subject, &subject.classes, &self.work);
            let stage = format!("{name} untouched on JDK {}", jdk.major);
            let Some(verdict) = self.stages.run(&stage, link) else { return };
            baselines.push(verdict);
        }
        let newest = judges.iter().max_by_key(|jdk| jdk.major).cloned();
        let mut asm_baseline = None;
        for mode in self.args.modes.clone() {
            let woven = self.work.join("woven").join(format!("{name}-{mode}"));
            let stage = format!("{name} woven with {mode}");
            let Some(mut row) = self.stages.run(&stage, || {
                let _ = fs::remove_dir_all(&woven);
                weave(&self.tare, subject, &mode, &woven)
            }) else {
                continue;
            };
            if row.is_empty() {
                // A stripped image has no line tables, for instance.
                let what =
                    format!("NOT COVERED: {name} with {mode}: there is nothing to weave in it");
                println!("{what}");
                self.stages.note(what);
                continue;
            }
            for (jdk, baseline) in judges.iter().zip(&baselines) {
                let stage = format!("{name} woven with {mode} on JDK {}", jdk.major);
                let link = || judge::link(&self.driver, jdk, subject, &woven, &self.work);
                if let Some(verdict) = self.stages.run(&stage, link) {
                    row.judged(jdk.major, verdict.against(baseline));
                }
            }
            let with_asm = self.args.asm == Asm::Each || mode == HUGE;
            if let (Some(asm), Some(jdk), true) = (asm, &newest, with_asm) {
                let stage = format!("{name} woven with {mode} before ASM");
                let faults = self.stages.run(&stage, || {
                    let judge = |classes: &Path| {
                        judge::asm(&self.driver, asm, jdk, subject, classes, &self.work)
                    };
                    if asm_baseline.is_none() {
                        asm_baseline = Some(judge(&subject.classes)?);
                    }
                    let verdict = judge(&woven)?;
                    let baseline = asm_baseline.as_ref().context("made above")?;
                    Ok((verdict.against(baseline), baseline.len()))
                });
                row.asm = faults;
            }
            if !self.args.keep {
                let _ = fs::remove_dir_all(&woven);
            }
            println!("{}", row.line(name));
            table.add(name, row);
        }
    }
}

/// Lets `tare class weave` do the work, and reads its report.
fn weave(tare: &Path, subject: &Subject, mode: &str, into: &Path) -> Result<Row> {
    fs::create_dir_all(into.parent().context("a directory below the target")?)?;
    let huge = mode == HUGE;
    let mut command = Command::new(tare);
    command.args(["class", "weave", "--json", "--mode", if huge { "all" } else { mode }]);
    if huge {
        command.arg("--allow-huge");
    }
    command.arg(&subject.classes).arg("-o").arg(into);
    let begun = Instant::now();
    let text = shell::output(command.stderr(std::process::Stdio::null()))?;
    let report = serde_json::from_str(&text).context("reading the report of tare class weave")?;
    Row::new(mode, &report, begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read() {
        let args = Args::parse(&["--jdk", "17", "--mode", "all", "h2", "--asm", "no"]).unwrap();
        assert!(args.wants_jdk(17) && !args.wants_jdk(25));
        assert!(args.wants("h2") && !args.wants("scala"));
        assert_eq!(args.modes, ["all"]);
        assert!(args.asm == Asm::No && args.what == What::Link);
        assert_eq!(Args::parse(&[]).unwrap().modes.len(), MODES.len());
        assert!(Args::parse(&["--mutated", "7"]).unwrap().what == What::Mutated(7));
        for wrong in [&["--jdk"][..], &["--jdk", "x"], &["--asm", "maybe"], &["--nothing"]] {
            assert!(Args::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
