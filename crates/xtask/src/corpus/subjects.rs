//! What is woven: the classes of JDKs, and jars that Maven fetches by name into the cache.
//!
//! The jars are chosen for their compilers: each makes bytecode that javac does not. The old ones
//! come from compilers that made subroutines (`jsr`) of `finally`.

use super::driver::Driver;
use crate::jdks::Jdk;
use crate::runtimes::cache_dir;
use crate::shell::{self, which};
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub enum Kind {
    /// The classes of this JDK, one jar per module.
    Jdk(Jdk),
    Jars,
    /// Single class files, each for itself, with jars that they refer to.
    Files(Vec<PathBuf>),
}

pub struct Subject {
    pub name: String,
    pub kind: Kind,
    /// A directory of jars.
    pub classes: PathBuf,
    /// Some modules of a JDK only.
    pub modules: Option<&'static [&'static str]>,
}

impl Subject {
    /// The jars of a directory, this subject's or its woven counterpart's.
    pub fn jars(directory: &Path) -> Result<Vec<PathBuf>> {
        let mut jars: Vec<PathBuf> = fs::read_dir(directory)
            .with_context(|| format!("reading {}", directory.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "jar"))
            .collect();
        jars.sort();
        Ok(jars)
    }
}

/// Modules of a quick run: one that everything needs, and one of another loader's making.
const QUICK: &[&str] = &["java.base", "java.logging"];

/// Writes the classes of a JDK into jars.
pub fn jdk(jdk: &Jdk, driver: &Driver, work: &Path, quick: bool) -> Result<Subject> {
    let name = format!("jdk{}", jdk.major);
    let classes = work.join(if quick { format!("{name}-quick") } else { name.clone() });
    let _ = fs::remove_dir_all(&classes);
    let mut command = driver.java(jdk);
    command.arg("-cp").arg(&driver.classes).arg("weave.Dump").arg(&classes);
    if quick {
        command.args(QUICK);
    }
    shell::run(&mut command)?;
    Ok(Subject { name, kind: Kind::Jdk(jdk.clone()), classes, modules: quick.then_some(QUICK) })
}

/// Names of jar subjects, and their artifacts; Maven adds what these depend on.
const GROUPS: &[(&str, &[&str])] = &[
    ("scala", &["org.scala-lang:scala-compiler:2.13.16"]),
    ("kotlin", &["org.jetbrains.kotlin:kotlin-compiler-embeddable:2.1.20"]),
    ("groovy", &["org.apache.groovy:groovy:4.0.26"]),
    ("clojure", &["org.clojure:clojure:1.12.0"]),
    ("jruby", &["org.jruby:jruby-complete:9.4.12.0"]),
    ("jython", &["org.python:jython-standalone:2.7.4"]),
    ("aspectj", &["org.aspectj:aspectjweaver:1.9.24"]),
    ("spring-boot", &["org.springframework.boot:spring-boot-starter-web:3.4.5"]),
    ("bouncycastle", &["org.bouncycastle:bcprov-jdk18on:1.80"]),
    ("h2", &["com.h2database:h2:2.3.232"]),
    ("guava", &["com.google.guava:guava:33.4.8-jre"]),
    ("lucene", &["org.apache.lucene:lucene-core:9.12.1"]),
    // R8 writes these two; its constructors branch before `super()` and reuse the local of `this`.
    ("r8", &["com.android.tools:r8:9.5.28"]),
    ("builder", &["com.android.tools.build:builder:9.4.1"]),
    (
        "old",
        &[
            "xerces:xerces:1.4.4",
            "xalan:xalan:2.5.1",
            "log4j:log4j:1.1.3",
            "commons-collections:commons-collections:2.1",
            "jdom:jdom:b8",
            "bsh:bsh:1.3.0",
            "rhino:js:1.5R4.1",
            "ant:ant:1.5",
            "hsqldb:hsqldb:1.7.1",
            "velocity:velocity:1.3",
            "antlr:antlr:2.7.2",
            "jython:jython:2.1",
            "tomcat:catalina:4.0.4",
        ],
    ),
];

/// The jar subjects that `wanted` names, as far as they can be had.
pub fn jars(stages: &mut Stages, wanted: impl Fn(&str) -> bool) -> Vec<Subject> {
    let chosen: Vec<_> = GROUPS.iter().filter(|(name, _)| wanted(name)).collect();
    let mut subjects = Vec::new();
    for (name, artifacts) in chosen {
        if let Some(classes) = fetch(stages, name, artifacts) {
            let (name, kind) = ((*name).to_owned(), Kind::Jars);
            subjects.push(Subject { name, kind, classes, modules: None });
        }
    }
    subjects
}

/// ASM, the second judge.
pub fn asm(stages: &mut Stages) -> Option<Vec<PathBuf>> {
    let directory = fetch(stages, "asm", &["org.ow2.asm:asm-util:9.8"])?;
    Subject::jars(&directory).ok()
}

/// One group of jars by name; a group that cannot be had is said loudly, and the rest goes on.
pub fn fetch(stages: &mut Stages, name: &str, artifacts: &[&str]) -> Option<PathBuf> {
    match try_fetch(name, artifacts) {
        Ok(directory) => Some(directory),
        Err(error) => {
            println!("NOT COVERED: {name}: {error:#}");
            stages.note(format!("NOT COVERED: {name}: {error:#}"));
            None
        }
    }
}

/// Where these jars are, if they were fetched before.
pub fn fetched(name: &str, artifacts: &[&str]) -> Option<PathBuf> {
    let place = cache_dir().ok()?.join("weave-corpus").join(name);
    // The list is part of the place: another version is another list.
    let known = fs::read_to_string(place.join("list")).ok()?;
    (known == artifacts.join("\n")).then_some(place)
}

/// Where jars come from, only Maven's own settings know.
fn try_fetch(name: &str, artifacts: &[&str]) -> Result<PathBuf> {
    if let Some(place) = fetched(name, artifacts) {
        return Ok(place);
    }
    let cache = cache_dir()?.join("weave-corpus");
    let place = cache.join(name);
    let list = artifacts.join("\n");
    if which("mvn").is_none() {
        bail!("there is no mvn to fetch {}; install Maven", artifacts.join(", "));
    }
    let work = cache.join(format!(".fetching-{name}-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let outcome = fetch_into(&work, artifacts).and_then(|()| {
        fs::write(work.join("list"), &list)?;
        let _ = fs::remove_dir_all(&place);
        fs::rename(&work, &place).context("moving the jars to their place")
    });
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

fn fetch_into(work: &Path, artifacts: &[&str]) -> Result<()> {
    println!("fetching {} with Maven …", artifacts.join(", "));
    // One project per artifact: old jars depend on versions that exclude each other.
    for artifact in artifacts {
        let parts: Vec<&str> = artifact.split(':').collect();
        let more = match parts[..] {
            [_, _, _] => String::new(),
            // Sources have no dependencies of their own.
            [_, _, _, kind, classifier] => format!(
                "<type>{kind}</type><classifier>{classifier}</classifier><exclusions><exclusion>\
                 <groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
            ),
            _ => bail!("{artifact} is not group:artifact:version[:type:classifier]"),
        };
        let (group, id, version) = (parts[0], parts[1], parts[2]);
        let project = work.join("pom.xml");
        fs::write(
            &project,
            format!(
                "<project><modelVersion>4.0.0</modelVersion><groupId>tare</groupId>\
                 <artifactId>corpus</artifactId><version>1</version><dependencies><dependency>\
                 <groupId>{group}</groupId><artifactId>{id}</artifactId>\
                 <version>{version}</version>{more}</dependency></dependencies></project>"
            ),
        )?;
        let mut mvn = Command::new("mvn");
        mvn.args(["--batch-mode", "--quiet", "--file"]).arg(&project);
        mvn.arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies");
        mvn.arg(format!("-DoutputDirectory={}", work.display()));
        shell::output(&mut mvn).with_context(|| format!("Maven cannot bring {artifact}"))?;
    }
    fs::remove_file(work.join("pom.xml"))?;
    Ok(())
}
