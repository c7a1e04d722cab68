//! Which jar or directory of the class path a class comes from.
//!
//! The agent does not know: asking the JVM would run Java code. The class path of the command line
//! tells for what the application's own loader loads; the jars' directories are read from outside.
//! What other loaders bring stays without an origin.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tare_attach::Jvm;

/// More jars than this are not looked into: it would hold up the recording.
const MOST_JARS: usize = 2_000;

#[derive(Default)]
pub struct Origins {
    /// The entries of the class path, as seen from here.
    entries: Vec<PathBuf>,
    /// For each class of a jar (`com/acme/Orders`) the entry; made when it is first asked for.
    classes: OnceCell<HashMap<String, usize>>,
}

impl Origins {
    pub fn of(jvm: &Jvm) -> Self {
        let process = PathBuf::from(format!("/proc/{}", jvm.pid));
        let directory = fs::read_link(process.join("cwd")).unwrap_or_default();
        // A path in another root is reached through the process, for as long as it lives.
        let root = if jvm.same_mount_ns { PathBuf::from("/") } else { process.join("root") };
        let here = |path: &Path| {
            let whole = directory.join(path);
            root.join(whole.strip_prefix("/").unwrap_or(&whole))
        };
        let entries = class_path(&jvm.command_line);
        let entries = entries.iter().flat_map(|entry| expand(entry, &here)).take(MOST_JARS);
        Origins { entries: entries.collect(), classes: OnceCell::new() }
    }

    /// The name of the jar or directory that holds a class, given as class files spell it.
    pub fn of_class(&self, class: &str) -> Option<&str> {
        let classes = self.classes.get_or_init(|| index(&self.entries));
        let in_jar = classes.get(class).copied();
        // Entries before the jar win, as they do in the JVM.
        let directories = self.entries.iter().take(in_jar.unwrap_or(usize::MAX));
        let mut directories = directories.filter(|entry| entry.is_dir());
        let found = directories.find(|entry| entry.join(format!("{class}.class")).is_file());
        let entry = found.or_else(|| self.entries.get(in_jar?))?;
        entry.file_name()?.to_str()
    }
}

/// The entries of the class path that a command line names.
fn class_path(command_line: &[String]) -> Vec<String> {
    let mut words = command_line.iter().skip(1);
    let mut path = None;
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
            "-p"
            | "--module-path"
            | "--add-modules"
            | "--add-opens"
            | "--add-exports"
            | "--add-reads"
            | "--patch-module"
            | "--limit-modules"
            | "--upgrade-module-path" => {
                words.next();
            }
            "-m" | "--module" => break,
            word if word.starts_with('-') => {}
            // The main class; what follows is the program's.
            _ => break,
        }
    }
    let path = path.unwrap_or_else(|| ".".to_owned());
    path.split(':').filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// An entry as a path from here; `lib/*` means every jar in `lib`.
fn expand(entry: &str, here: &impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
    let Some(directory) = entry.strip_suffix('*') else { return vec![here(Path::new(entry))] };
    let listed = fs::read_dir(here(Path::new(directory))).into_iter().flatten().flatten();
    let mut jars: Vec<PathBuf> =
        listed.map(|file| file.path()).filter(|path| is_jar(path)).collect();
    jars.sort();
    jars
}

fn is_jar(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("jar"))
}

fn index(entries: &[PathBuf]) -> HashMap<String, usize> {
    let mut classes = HashMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_dir()) {
        let jar = File::open(entry).ok().and_then(|file| zip::ZipArchive::new(file).ok());
        for name in jar.iter().flat_map(|jar| jar.file_names()).flatten() {
            if let Some(class) = name.strip_suffix(".class") {
                classes.entry(class.to_owned()).or_insert(at);
            }
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn path_of(words: &str) -> Vec<String> {
        class_path(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_class_path_of_a_command_line() {
        assert_eq!(path_of("java -Xmx1g -cp a.jar:b Main -cp c"), ["a.jar", "b"]);
        assert_eq!(path_of("java --class-path=a:b Main"), ["a", "b"]);
        assert_eq!(path_of("java -cp x -jar app.jar -jar other.jar"), ["app.jar"]);
        assert_eq!(path_of("java Main"), ["."]);
        assert_eq!(path_of("java -p mods -m a/b.C -cp no"), ["."]);
    }

    #[test]
    fn the_first_entry_that_has_a_class_is_its_origin() {
        let name = format!("tare-origins-{}", std::process::id());
        let scratch = std::env::temp_dir().join(name);
        let jar = |name: &str, classes: &[&str]| {
            let path = scratch.join(name);
            let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
            for class in classes {
                zip.start_file(format!("{class}.class"), zip::write::SimpleFileOptions::default())
                    .unwrap();
                zip.write_all(b"x").unwrap();
            }
            zip.finish().unwrap();
            path
        };
        let classes = scratch.join("classes");
        fs::create_dir_all(classes.join("p")).unwrap();
        fs::write(classes.join("p/B.class"), b"x").unwrap();
        let first = jar("first.jar", &["p/A"]);
        let last = jar("last.jar", &["p/A", "p/B", "p/C"]);
        let broken = scratch.join("broken.jar");
        fs::write(&broken, b"no jar").unwrap();
        let entries = vec![broken, first, classes, last];
        let origins = Origins { entries, classes: OnceCell::new() };
        assert_eq!(origins.of_class("p/A"), Some("first.jar"));
        assert_eq!(origins.of_class("p/B"), Some("classes"));
        assert_eq!(origins.of_class("p/C"), Some("last.jar"));
        assert_eq!(origins.of_class("p/D"), None);
        let names: Vec<_> = expand("*", &|_| scratch.clone());
        assert_eq!(names.len(), 3, "{names:?}");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
