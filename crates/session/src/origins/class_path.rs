//! The class path of a command line, and which of its entries has a class.

use super::jar::{LARGEST_CLASS, list_of, member, names};
use super::{MOST_JARS, Work};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tare_symbols::open_regular;

/// Of all jars together.
const MOST_CLASSES: usize = 2_000_000;
/// Jars whose manifests are read.
const MOST_MANIFESTS: usize = 50;
/// Packages within packages, in a directory.
const DEEPEST: usize = 50;

/// The class path, and what is in its jars.
#[derive(Default)]
pub(super) struct ClassPath {
    pub(super) entries: Vec<PathBuf>,
    /// Those that are directories.
    pub(super) directories: Vec<usize>,
    /// For each class of a jar (`com/acme/Orders`) the entry.
    pub(super) classes: HashMap<String, usize>,
    /// Whether there are no other classes.
    pub(super) certain: bool,
}

impl ClassPath {
    pub(super) fn read(mut self, work: &Work) -> Self {
        for (at, entry) in self.entries.iter().enumerate() {
            work.step();
            let Ok(metadata) = fs::metadata(entry) else { continue };
            if metadata.is_dir() {
                self.directories.push(at);
                continue;
            }
            if self.classes.len() >= MOST_CLASSES {
                work.leave_out(entry, "there are more classes than are looked at");
                self.certain = false;
                continue;
            }
            let list = match open_regular(entry).and_then(|file| list_of(&file)) {
                Ok(list) => list,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => {
                    work.leave_out(entry, &e.to_string());
                    self.certain = false;
                    continue;
                }
            };
            for name in names(&list.records) {
                self.certain &= !name.ends_with(b".jar");
                let class = name.strip_suffix(b".class").and_then(|n| std::str::from_utf8(n).ok());
                if let Some(class) = class {
                    self.classes.entry(class.to_owned()).or_insert(at);
                }
            }
        }
        self
    }

    /// All classes, those in directories included, if it is sure that there are no others.
    pub(super) fn names(&self, work: &Work) -> Option<Vec<String>> {
        if !self.certain || self.entries.iter().take(MOST_MANIFESTS).any(|jar| leads_on(jar)) {
            return None;
        }
        let mut names: Vec<String> = self.classes.keys().cloned().collect();
        for root in self.directories.iter().filter_map(|at| self.entries.get(*at)) {
            let mut folders = vec![(root.clone(), String::new(), 0)];
            while let Some((folder, package, depth)) = folders.pop() {
                work.step();
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    let file_name = entry.file_name();
                    let Some(name) = file_name.to_str() else { continue };
                    // Links are not followed: they may lead in circles.
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth < DEEPEST {
                        folders.push((entry.path(), format!("{package}{name}/"), depth + 1));
                    } else if let Some(class) = name.strip_suffix(".class") {
                        names.push(format!("{package}{class}"));
                    }
                }
                if names.len() >= MOST_CLASSES || folders.len() >= MOST_CLASSES {
                    return None;
                }
            }
        }
        Some(names)
    }

    pub(super) fn origin(&self, class: &str) -> Option<Arc<str>> {
        Some(self.entry(class)?.file_name()?.to_str()?.into())
    }

    /// The entry that the JVM would take a class from.
    pub(super) fn entry(&self, class: &str) -> Option<&Path> {
        let in_jar = self.classes.get(class).copied();
        // Entries before the jar win, as they do in the JVM.
        let before = self.directories.iter().take_while(|at| in_jar.is_none_or(|jar| **at < jar));
        let mut directories = before.filter_map(|at| self.entries.get(*at));
        let found = directories.find(|entry| entry.join(format!("{class}.class")).is_file());
        found.or_else(|| self.entries.get(in_jar?)).map(PathBuf::as_path)
    }

    pub(super) fn file(&self, class: &str) -> Option<Vec<u8>> {
        let (entry, name) = (self.entry(class)?, format!("{class}.class"));
        if !entry.is_dir() {
            return member(&open_regular(entry).ok()?, &name);
        }
        let mut bytes = Vec::new();
        open_regular(&entry.join(name)).ok()?.take(LARGEST_CLASS).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Whether the manifest of a jar names others that belong to the class path.
pub(super) fn leads_on(jar: &Path) -> bool {
    let manifest = || member(&open_regular(jar).ok()?, "META-INF/MANIFEST.MF");
    let names_others = |text: Vec<u8>| {
        String::from_utf8_lossy(&text).lines().any(|l| l.starts_with("Class-Path:"))
    };
    is_jar(jar) && manifest().is_some_and(names_others)
}

/// The entries of the class path that a command line names, and whether there can be no others: a
/// variable may name some, a file of arguments, and a path of modules.
pub(super) fn class_path(command_line: &[String]) -> (Vec<String>, bool) {
    let mut words = command_line.iter().skip(1);
    let mut path = None;
    let mut certain = true;
    while let Some(word) = words.next() {
        match word.as_str() {
            "-cp" | "-classpath" | "--class-path" => path = words.next().cloned(),
            "-jar" => {
                path = words.next().cloned();
                break;
            }
            word if word.starts_with("--class-path=") => {
                path = word.split_once('=').map(|(_, path)| path.to_owned());
            }
            // Options that take a word of their own.
            "-p" | "--module-path" => {
                certain = false;
                words.next();
            }
            "--add-modules"
            | "--add-opens"
            | "--add-exports"
            | "--add-reads"
            | "--patch-module"
            | "--limit-modules"
            | "--upgrade-module-path" => {
                words.next();
            }
            "-m" | "--module" => {
                certain = false;
                break;
            }
            word if word.starts_with(['-', '@']) => {
                certain &= !word.starts_with('@') && !word.starts_with("--module");
            }
            // The main class; what follows is the program's.
            _ => break,
        }
    }
    certain &= path.is_some();
    let path = path.unwrap_or_else(|| ".".to_owned());
    (path.split(':').filter(|entry| !entry.is_empty()).map(str::to_owned).collect(), certain)
}

/// An entry as a path from here; `lib/*` means every jar in `lib`.
pub(super) fn expand(entry: &str, here: &impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
    let Some(directory) = entry.strip_suffix('*') else { return vec![here(Path::new(entry))] };
    let listed = fs::read_dir(here(Path::new(directory))).into_iter().flatten().flatten();
    let jars = listed.map(|file| file.path()).filter(|path| is_jar(path)).take(MOST_JARS);
    let mut jars: Vec<PathBuf> = jars.collect();
    jars.sort();
    jars
}

fn is_jar(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("jar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(words: &str) -> Vec<String> {
        class_path(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).0
    }

    #[test]
    fn what_may_not_be_all_is_known() {
        let certain =
            |words: &str| class_path(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).1;
        for words in
            ["java -cp a Main", "java -Xint -jar a.jar -p x", "java --class-path=a Main @x"]
        {
            assert!(certain(words), "{words}");
        }
        for words in ["java Main", "java @options -cp a Main", "java -cp a -p mods Main"] {
            assert!(!certain(words), "{words}");
        }
        for words in ["java -p mods -m a/b.C", "java --module-path=mods -cp a Main"] {
            assert!(!certain(words), "{words}");
        }
    }

    #[test]
    fn the_class_path_of_a_command_line() {
        assert_eq!(path_of("java -Xmx1g -cp a.jar:b Main -cp c"), ["a.jar", "b"]);
        assert_eq!(path_of("java --class-path=a:b Main"), ["a", "b"]);
        assert_eq!(path_of("java -cp x -jar app.jar -jar other.jar"), ["app.jar"]);
        assert_eq!(path_of("java Main"), ["."]);
        assert_eq!(path_of("java -p mods -m a/b.C -cp no"), ["."]);
    }
}
