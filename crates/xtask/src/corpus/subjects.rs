//! What is woven: the classes of JDKs, and jars that Maven fetches by name into the cache.
//!
//! The jars are chosen for their compilers: each makes bytecode that javac does not. The old ones
//! come from compilers that made subroutines (`jsr`) of `finally`.

use super::driver::Driver;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use tare_toolbox::jars::{fetch, jars_in};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;
use tare_toolbox::stages::Stages;

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
    jars_in(&directory).ok()
}
