//! Compiles the target programs at test time, each set of sources once.
//!
//! Classes are kept under a name made from the sources and the compiler, so that a second run
//! finds them and a changed source never meets old classes.

use crate::env::{Env, env};
use crate::machine::Scratch;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, process};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The targets of these tests, for Java 17 and later.
pub fn classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        compile(
            env(),
            "targets",
            17,
            &workspace().join("crates/jvm-tests/java/targets"),
            &env().dir,
        )
    })
}

/// Small programs that do the same in every run: package `programs`, begun by `programs.All`.
pub fn program_classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let source = workspace().join("crates/jvm-tests/java/programs");
        compile(env(), "programs", 17, &source, &env().dir)
    })
}

/// The demo program.
pub fn demo_classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| compile(env(), "demo", 17, &workspace().join("demo/src"), &env().dir))
}

/// Targets whose source needs Java 21; `None` if no compiler here understands it.
pub fn modern_classes() -> Option<&'static Path> {
    static CLASSES: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compiled = CLASSES.get_or_init(|| {
        let source = workspace().join("crates/jvm-tests/java/targets21");
        (env().javac.major >= 21).then(|| compile(env(), "targets21", 21, &source, &env().dir))
    });
    compiled.as_deref()
}

/// Compiles one source text into a directory of its own, for targets with a name that a test
/// makes up.
pub fn classes_in(directory: &Path, class: &str, source: &str) {
    let file = directory.join(format!("{class}.java"));
    fs::write(&file, source).unwrap_or_else(|e| panic!("writing {}: {e}", file.display()));
    javac(env(), 17, directory, &[file]);
}

/// Compiles source texts, by the paths of their files, into a directory.
pub fn compiled(directory: &Path, sources: &[(&str, &str)]) {
    let from = directory.with_extension("src");
    let mut files = Vec::new();
    for (name, text) in sources {
        let file = from.join(name);
        fs::create_dir_all(file.parent().expect("a file")).expect("our own directory");
        fs::write(&file, text).expect("our own directory");
        files.push(file);
    }
    javac(env(), 17, directory, &files);
}

/// Runs a tool of the JDK that compiles, such as `jar`, to a good end.
pub fn jdk_tool<S: AsRef<std::ffi::OsStr>>(name: &str, words: &[S]) {
    let output = Command::new(env().javac.home.join("bin").join(name)).args(words).output();
    let output = output.unwrap_or_else(|e| panic!("{name} cannot be started: {e}"));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&said));
}

/// The option for a Java agent of ours, a class among the targets, which the program's own class
/// path must hold: the jar names it and has no classes.
pub fn java_agent(class: &str, scratch: &Scratch, options: &str) -> String {
    let manifest = scratch.join("agent.mf");
    let jar = scratch.join(&format!("{class}.jar"));
    let text = format!(
        "Premain-Class: {class}\nCan-Redefine-Classes: true\nCan-Retransform-Classes: true\n"
    );
    fs::write(&manifest, text).expect("our own directory");
    let mut tool = Command::new(env().javac.home.join("bin/jar"));
    let made = tool.arg("cfm").args([&jar, &manifest]).status().expect("jar can be started");
    assert!(made.success(), "no {}", jar.display());
    let options = if options.is_empty() { String::new() } else { format!("={options}") };
    format!("-javaagent:{}{options}", jar.display())
}

/// The jar of an agent for `--agent-jar`, with the API in it: one of the examples, or a class of
/// the given source.
pub fn agent_jar(scratch: &Scratch, class: &str, source: Option<&str>) -> PathBuf {
    let classes = scratch.join("agent");
    fs::create_dir(&classes).expect("our own directory");
    let mut files = java_files(&workspace().join("api"));
    if let Some(source) = source {
        let file = classes.join(format!("{class}.java"));
        fs::write(&file, source).expect("our own directory");
        files.push(file);
    }
    javac(env(), 17, &classes, &files);
    let (manifest, jar) = (scratch.join("agent.mf"), scratch.join("agent.jar"));
    fs::write(&manifest, format!("Tare-Agent: {class}\n")).expect("our own directory");
    let mut tool = Command::new(env().javac.home.join("bin/jar"));
    tool.arg("cfm").args([&jar, &manifest]).arg("-C").arg(&classes).arg(".");
    assert!(tool.status().expect("jar can be started").success(), "no {}", jar.display());
    jar
}

fn compile(env: &Env, name: &str, release: u32, source: &Path, into: &Path) -> PathBuf {
    let files = java_files(source);
    assert!(!files.is_empty(), "no Java sources in {}", source.display());
    let mut hash = DefaultHasher::new();
    (env.javac.home.as_path(), release).hash(&mut hash);
    for file in &files {
        let text = fs::read(file).unwrap_or_else(|e| panic!("reading {}: {e}", file.display()));
        (file, text).hash(&mut hash);
    }
    let place = into.join(format!("{name}-{:016x}", hash.finish()));
    if place.is_dir() {
        return place;
    }
    // Whoever is first wins; the classes of the others are the same.
    let work = into.join(format!("{name}-{}.tmp", process::id()));
    fs::create_dir_all(&work).unwrap_or_else(|e| panic!("creating {}: {e}", work.display()));
    javac(env, release, &work, &files);
    if fs::rename(&work, &place).is_err() {
        let _ = fs::remove_dir_all(&work);
    }
    assert!(place.is_dir(), "cannot make {}", place.display());
    place
}

fn javac(env: &Env, release: u32, into: &Path, files: &[PathBuf]) {
    let output = Command::new(env.javac.home.join("bin/javac"))
        .args(["--release", &release.to_string(), "-g", "-nowarn", "-d"])
        .arg(into)
        .args(files)
        .output()
        .expect("javac can be started");
    assert!(
        output.status.success(),
        "javac failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The sources in a directory and below it.
fn java_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries = fs::read_dir(&directory)
            .unwrap_or_else(|e| panic!("reading {}: {e}", directory.display()));
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|e| e == "java") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
