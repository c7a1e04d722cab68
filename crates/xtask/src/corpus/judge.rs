//! Asks verifiers about classes: a JVM that links them, and ASM.
//!
//! A verdict means something only beside the verdict on the untouched classes: a jar may lack what
//! it needs, and ASM does not like every legal class. And only if broken classes are found out in
//! the very same run: each run has some, and fails if one of them passes.

use super::driver::{BROKEN, Driver};
use super::subjects::{Kind, Subject};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tare_toolbox::jars::jars_in;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// Which classes did not pass, and why.
#[derive(Default)]
pub struct Verdict {
    pub seen: u64,
    pub linked: u64,
    /// Class, then kind and reason.
    faults: BTreeMap<String, (String, String)>,
}

/// The difference of two verdicts.
pub struct Difference {
    pub seen: u64,
    pub linked: u64,
    /// Classes that passed untouched and do not woven, or fail in another way.
    pub errors: Vec<String>,
}

impl Verdict {
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// Classes that pass neither untouched nor woven must fail; those that pass untouched must pass
    /// woven. The other way round is allowed: weaving writes some tables anew.
    pub fn only_woven(&self, baseline: &Verdict) -> Vec<String> {
        let new = self.faults.iter().filter(|(class, _)| !baseline.faults.contains_key(*class));
        new.map(|(class, (kind, reason))| format!("{class}: {kind}: {reason}")).collect()
    }

    /// What is new against the untouched classes. Which of several missing classes is missed first
    /// may change; that one is missed, and in which class, may not.
    pub fn against(&self, baseline: &Verdict) -> Difference {
        let mut errors = Vec::new();
        for (class, (kind, reason)) in &self.faults {
            if baseline.faults.get(class).is_none_or(|(known, _)| known != kind) {
                errors.push(format!("{class}: {kind}: {reason}"));
            }
        }
        for class in baseline.faults.keys().filter(|class| !self.faults.contains_key(*class)) {
            errors.push(format!("{class}: passes only when woven"));
        }
        if self.seen != baseline.seen {
            errors.push(format!("{} classes instead of {}", self.seen, baseline.seen));
        }
        Difference { seen: self.seen, linked: self.linked, errors }
    }

    fn read(file: &Path) -> Result<Verdict> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("the judge left no {}", file.display()))?;
        let mut verdict = Verdict::default();
        let mut complete = false;
        for line in text.lines() {
            let mut parts = line.splitn(3, '\t');
            let (kind, class) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            match kind {
                "seen" => {
                    verdict.seen = class.parse()?;
                    complete = true;
                }
                "linked" => verdict.linked = class.parse()?,
                "activity" => {}
                _ => {
                    let reason = parts.next().unwrap_or("").to_owned();
                    verdict.faults.insert(class.to_owned(), (kind.to_owned(), reason));
                }
            }
        }
        if !complete {
            bail!("the judge did not finish: {} has no totals", file.display());
        }
        Ok(verdict)
    }
}

/// Links all classes of a directory of jars that belongs to a subject.
pub fn link(
    driver: &Driver,
    jdk: &Jdk,
    subject: &Subject,
    classes: &Path,
    work: &Path,
) -> Result<Verdict> {
    let out = work.join("verdict.txt");
    let log = work.join("verification.log");
    for file in [&out, &log] {
        let _ = fs::remove_file(file);
    }
    let mut command = driver.java(jdk);
    command
        .arg("-Xverify:all")
        // The old name of the option is the only one that all these versions have; they say so.
        .arg("-XX:-PrintWarnings")
        .arg("-Xlog:disable")
        .arg(format!("-Xlog:class+init=info:file={}:none:filecount=0", log.display()));
    let jars = jars_in(classes)?;
    let woven = classes != subject.classes;
    match &subject.kind {
        Kind::Jdk(_) => {
            command.args(patches(driver, &jars, woven));
            command.arg("--add-modules=ALL-SYSTEM").arg("-cp").arg(&driver.classes);
            command.arg("weave.Link").arg(&out).arg("modules");
            if let Some(only) = subject.modules {
                command.arg(format!("--only={}", only.join(",")));
            }
            command.args(BROKEN.map(|name| format!("java.base/java/lang/{name}")));
        }
        Kind::Jars => {
            command.arg(patch("java.base", std::slice::from_ref(&driver.patch)));
            command.arg("-cp").arg(&driver.classes).arg("weave.Link").arg(&out).arg("jars");
            command.args(&jars).arg(&driver.broken_jar);
        }
        Kind::Files(context) => {
            command.arg(patch("java.base", std::slice::from_ref(&driver.patch)));
            command.arg("-cp").arg(&driver.classes).arg("weave.Link").arg(&out).arg("files");
            command.arg(classes).args(context);
        }
    }
    let said = shell::output(&mut command)?;
    if !said.trim().is_empty() {
        println!("{}", said.trim());
    }
    let mut verdict = Verdict::read(&out)?;
    let text = fs::read_to_string(&log).context("the JVM wrote no log of its verifications")?;
    // A class of version 50 whose frames are wrong is verified again by inference, silently.
    let fell_back = "Fail over class verification to old verifier for: ";
    for class in text.lines().filter_map(|line| line.split(fell_back).nth(1)) {
        let found = ("frames".to_owned(), "the frames are wrong; inference was used".to_owned());
        verdict.faults.entry(class.trim().to_owned()).or_insert(found);
    }
    if let Kind::Files(_) = subject.kind {
        return Ok(verdict);
    }
    broken_ones_are_found(&mut verdict)?;
    if let Kind::Jdk(_) = subject.kind {
        // Boot classes are verified only when asked; four classes never are.
        let verified = text.lines().filter(|line| line.contains("End class verification")).count();
        if (verified as u64) + 4 < verdict.linked {
            bail!("only {verified} of {} classes were verified", verdict.linked);
        }
        let activity = activity(&out)?;
        if woven && activity == 0 {
            bail!("no probe was ever called: the JVM does not run the woven classes");
        }
    }
    Ok(verdict)
}

/// Takes the deliberately broken classes out of a verdict, where each must be.
fn broken_ones_are_found(verdict: &mut Verdict) -> Result<()> {
    for name in BROKEN {
        let found: Vec<String> =
            verdict.faults.keys().filter(|class| class.ends_with(name)).cloned().collect();
        if found.is_empty() {
            bail!("the JVM accepted {name}, which is broken on purpose: it verifies nothing");
        }
        for class in found {
            verdict.faults.remove(&class);
        }
        verdict.seen -= 1;
    }
    // The one that inference accepts was linked.
    verdict.linked -= 1;
    Ok(())
}

fn activity(out: &Path) -> Result<i64> {
    let text = fs::read_to_string(out)?;
    let value = text.lines().find_map(|line| line.strip_prefix("activity\t"));
    Ok(value.context("the judge counted no probe calls")?.parse()?)
}

/// The options by which a JVM takes the classes of its own modules from jars.
pub fn patches(driver: &Driver, jars: &[PathBuf], woven: bool) -> Vec<OsString> {
    let mut options = Vec::new();
    let mut base = vec![driver.patch.clone()];
    for jar in jars.iter().filter(|_| woven) {
        let module = jar.file_stem().unwrap_or_default().to_string_lossy();
        if module == "java.base" {
            base.insert(0, jar.clone());
        } else {
            options.push(patch(&module, std::slice::from_ref(jar)));
        }
    }
    options.push(patch("java.base", &base));
    options
}

fn patch(module: &str, places: &[PathBuf]) -> OsString {
    let mut option = OsString::from(format!("--patch-module={module}="));
    for (index, place) in places.iter().enumerate() {
        if index > 0 {
            option.push(":");
        }
        option.push(place);
    }
    option
}

/// Lets ASM's CheckClassAdapter look at all classes of a directory of jars.
pub fn asm(
    driver: &Driver,
    asm: &[PathBuf],
    jdk: &Jdk,
    subject: &Subject,
    classes: &Path,
    work: &Path,
) -> Result<Verdict> {
    let out = work.join("asm.txt");
    let _ = fs::remove_file(&out);
    let mut path = OsString::from(&driver.classes);
    for jar in asm {
        path.push(":");
        path.push(jar);
    }
    let mut command = driver.java(jdk);
    // Compiled code pays here, unlike in a run that only links.
    command.args(["-XX:TieredStopAtLevel=4", "--add-modules=ALL-SYSTEM", "-cp"]).arg(path);
    command.arg(patch("java.base", std::slice::from_ref(&driver.patch)));
    command.arg("weave.AsmJudge").arg(&out).args(jars_in(classes)?);
    command.arg(&driver.broken_jar).arg("--");
    if let Kind::Jars = subject.kind {
        command.args(jars_in(&subject.classes)?);
    }
    shell::output(&mut command)?;
    let mut verdict = Verdict::read(&out)?;
    // ASM infers types and leaves frames to the JVM, so it finds the other two.
    for name in [BROKEN[0], BROKEN[2]] {
        let class = format!("tare.broken.{name}");
        if verdict.faults.remove(&class).is_none() {
            bail!("ASM accepted {name}, which is broken on purpose");
        }
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(faults: &[(&str, &str)]) -> Verdict {
        let fault = |(class, kind): &(&str, &str)| {
            ((*class).to_owned(), ((*kind).to_owned(), "because".to_owned()))
        };
        Verdict { seen: 10, linked: 8, faults: faults.iter().map(fault).collect() }
    }

    #[test]
    fn what_is_new_is_an_error_and_what_was_known_is_not() {
        let untouched = verdict(&[("A", "missing"), ("B", "missing")]);
        let errors = |woven: &[(&str, &str)]| verdict(woven).against(&untouched).errors;
        assert!(errors(&[("A", "missing"), ("B", "missing")]).is_empty());
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("A", "missing"), ("B", "missing"), ("C", "verify")], "C: verify: because"),
            (&[("A", "verify"), ("B", "missing")], "A: verify: because"),
            (&[("A", "missing")], "B: passes only when woven"),
        ];
        for (woven, expected) in cases {
            assert_eq!(errors(woven), [*expected]);
        }
        assert_eq!(verdict(&[("A", "verify")]).only_woven(&untouched).len(), 0);
        assert_eq!(verdict(&[("C", "verify")]).only_woven(&untouched).len(), 1);
    }

    #[test]
    fn a_judge_that_accepts_a_broken_class_is_no_judge() {
        let all = [("p.TareBroken49", "verify"), ("p.TareBroken50", "frames")];
        let accepted = broken_ones_are_found(&mut verdict(&all)).unwrap_err().to_string();
        assert!(accepted.contains("TareBroken52"), "{accepted}");
        let mut whole = verdict(&[all[0], all[1], ("p.TareBroken52", "verify"), ("A", "missing")]);
        broken_ones_are_found(&mut whole).unwrap();
        assert_eq!((whole.seen, whole.linked, whole.len()), (7, 7, 1));
    }
}
