//! Which jar or directory of the class path a class comes from.
//!
//! The agent does not know: asking the JVM would run Java code. The class path of the command line
//! tells for what the application's own loader loads; the jars' directories are read from outside.
//! What other loaders bring stays without an origin.
//!
//! The paths are the JVM's owner's: they may lead to pipes, devices, endless files, or a file system
//! that does not answer, while the program is woven. So a thread of its own reads them, within bounds,
//! and is left behind if it takes too long.

mod jar;

use jar::{LARGEST_CLASS, list_of, member, names};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_profile::{LossKind, RunInfo};
use tare_symbols::open_regular;

/// More jars than this are not looked into: it would hold up the recording.
const MOST_JARS: usize = 2_000;
/// Of all jars together.
const MOST_CLASSES: usize = 2_000_000;
/// Jars whose manifests are read.
const MOST_MANIFESTS: usize = 50;
/// Packages within packages, in a directory.
const DEEPEST: usize = 50;
/// Entries that could not be read and are named one by one.
const MOST_NAMED: usize = 20;

/// How long a sign of life is waited for, and an answer.
const QUIET: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct Origins {
    reader: Option<Reader>,
    /// The reader takes too long, and is asked no more.
    given_up: Cell<bool>,
}

/// The thread that knows the class path.
struct Reader {
    ask: Sender<Question>,
    answers: Receiver<Answer>,
    work: Arc<Work>,
    known: RefCell<HashMap<String, Option<Arc<str>>>>,
}

enum Question {
    /// Which entry a class is from.
    Origin(String),
    /// What classes there are.
    Names,
    /// The file of a class.
    File(String),
}

enum Answer {
    Origin(Option<Arc<str>>),
    Names(Option<Vec<String>>),
    File(Option<Vec<u8>>),
}

/// What the thread has done so far.
#[derive(Default)]
struct Work {
    steps: AtomicU64,
    /// Entries that were not read, and why.
    unread: Mutex<Vec<(String, String)>>,
}

impl Work {
    fn step(&self) {
        self.steps.fetch_add(1, Relaxed);
    }

    fn leave_out(&self, entry: &Path, why: &str) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let name = entry.file_name().unwrap_or(entry.as_os_str()).to_string_lossy();
        unread.push((name.into_owned(), why.to_owned()));
    }
}

impl Origins {
    pub fn of(jvm: &Jvm) -> Self {
        let process = PathBuf::from(format!("/proc/{}", jvm.pid));
        // A path in another root is reached through the process, for as long as it lives.
        let root = if jvm.same_mount_ns { PathBuf::from("/") } else { process.join("root") };
        let command_line = jvm.command_line.clone();
        Origins::by(move |work| {
            let directory = fs::read_link(process.join("cwd")).unwrap_or_default();
            let here = |path: &Path| {
                let whole = directory.join(path);
                root.join(whole.strip_prefix("/").unwrap_or(&whole))
            };
            let (entries, certain) = class_path(&command_line);
            let entries = entries.iter().flat_map(|entry| {
                work.step();
                expand(entry, &here)
            });
            (entries.take(MOST_JARS).collect(), certain)
        })
    }

    /// `find` says what the entries of the class path are, as seen from here, and whether they are all.
    fn by(find: impl FnOnce(&Work) -> (Vec<PathBuf>, bool) + Send + 'static) -> Self {
        let (ask, asked) = mpsc::channel::<Question>();
        let (answer, answers) = mpsc::channel();
        let work = Arc::new(Work::default());
        let theirs = Arc::clone(&work);
        let started = thread::Builder::new().name("class path".into()).spawn(move || {
            let (entries, certain) = find(&theirs);
            let class_path = ClassPath { entries, certain, ..ClassPath::default() };
            // Read when the first class is asked for.
            let Ok(first) = asked.recv() else { return };
            let class_path = class_path.read(&theirs);
            for question in [first].into_iter().chain(asked) {
                theirs.step();
                let told = match question {
                    Question::Origin(class) => Answer::Origin(class_path.origin(&class)),
                    Question::Names => Answer::Names(class_path.names(&theirs)),
                    Question::File(class) => Answer::File(class_path.file(&class)),
                };
                if answer.send(told).is_err() {
                    return;
                }
            }
        });
        let known = RefCell::default();
        let reader = started.is_ok().then_some(Reader { ask, answers, work, known });
        Origins { reader, given_up: Cell::new(false) }
    }

    /// The name of the jar or directory that holds a class, given as class files spell it.
    pub fn of_class(&self, class: &str) -> Option<Arc<str>> {
        let reader = self.reader.as_ref()?;
        if let Some(known) = reader.known.borrow().get(class) {
            return known.clone();
        }
        if self.given_up.get() {
            return None;
        }
        let question = Question::Origin(class.to_owned());
        let Some(Answer::Origin(origin)) = reader.ask(question, QUIET, LONGEST) else {
            self.given_up.set(true);
            return None;
        };
        reader.known.borrow_mut().insert(class.to_owned(), origin.clone());
        origin
    }

    /// The classes of the class path, as class files spell them. `None` if these are not all, or cannot be
    /// had soon: jars within jars are not read, and what is not on the command line is not known.
    pub fn names(&self) -> Option<Vec<String>> {
        let reader = self.reader.as_ref().filter(|_| !self.given_up.get())?;
        match reader.ask(Question::Names, QUIET, LONGEST) {
            Some(Answer::Names(names)) => names,
            _ => {
                self.given_up.set(true);
                None
            }
        }
    }

    /// The class file of a class of the class path.
    pub fn class_file(&self, class: &str) -> Option<Vec<u8>> {
        let reader = self.reader.as_ref().filter(|_| !self.given_up.get())?;
        match reader.ask(Question::File(class.to_owned()), QUIET, LONGEST) {
            Some(Answer::File(file)) => file,
            _ => {
                self.given_up.set(true);
                None
            }
        }
    }

    /// Notes what was not read.
    pub fn account(&self, run: &mut RunInfo) {
        let Some(reader) = &self.reader else { return };
        if self.given_up.get() {
            let reason =
                "its files did not answer in time; classes go without the jars they are from";
            run.lose(LossKind::Skipped, "class path", 1, reason);
        }
        let unread = reader.work.unread.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, why) in unread.iter().take(MOST_NAMED) {
            run.lose(LossKind::Skipped, &format!("class path entry {name}"), 1, why);
        }
        if let Some(more @ 1..) = unread.len().checked_sub(MOST_NAMED) {
            run.lose(LossKind::Skipped, "class path entries", more as u64, "not regular files");
        }
    }
}

impl Reader {
    /// `None` if nothing happens for `quiet`, or there is no answer for `longest`.
    fn ask(&self, question: Question, quiet: Duration, longest: Duration) -> Option<Answer> {
        self.ask.send(question).ok()?;
        let began = Instant::now();
        loop {
            let steps = self.work.steps.load(Relaxed);
            match self.answers.recv_timeout(quiet.min(longest)) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    let idle = self.work.steps.load(Relaxed) == steps;
                    if idle || began.elapsed() >= longest {
                        return None;
                    }
                }
            }
        }
    }
}

/// The class path, and what is in its jars.
#[derive(Default)]
struct ClassPath {
    entries: Vec<PathBuf>,
    /// Those that are directories.
    directories: Vec<usize>,
    /// For each class of a jar (`com/acme/Orders`) the entry.
    classes: HashMap<String, usize>,
    /// Whether there are no other classes.
    certain: bool,
}

impl ClassPath {
    fn read(mut self, work: &Work) -> Self {
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
    fn names(&self, work: &Work) -> Option<Vec<String>> {
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

    fn origin(&self, class: &str) -> Option<Arc<str>> {
        Some(self.entry(class)?.file_name()?.to_str()?.into())
    }

    /// The entry that the JVM would take a class from.
    fn entry(&self, class: &str) -> Option<&Path> {
        let in_jar = self.classes.get(class).copied();
        // Entries before the jar win, as they do in the JVM.
        let before = self.directories.iter().take_while(|at| in_jar.is_none_or(|jar| **at < jar));
        let mut directories = before.filter_map(|at| self.entries.get(*at));
        let found = directories.find(|entry| entry.join(format!("{class}.class")).is_file());
        found.or_else(|| self.entries.get(in_jar?)).map(PathBuf::as_path)
    }

    fn file(&self, class: &str) -> Option<Vec<u8>> {
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
fn leads_on(jar: &Path) -> bool {
    let manifest = || member(&open_regular(jar).ok()?, "META-INF/MANIFEST.MF");
    let names_others = |text: Vec<u8>| {
        String::from_utf8_lossy(&text).lines().any(|l| l.starts_with("Class-Path:"))
    };
    is_jar(jar) && manifest().is_some_and(names_others)
}

/// The entries of the class path that a command line names, and whether there can be no others: a variable
/// may name some, a file of arguments, and a path of modules.
fn class_path(command_line: &[String]) -> (Vec<String>, bool) {
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
fn expand(entry: &str, here: &impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
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
    use jar::LARGEST_LIST;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

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
        let origins = Origins::by(move |_| (entries, true));
        let origin = |class: &str| origins.of_class(class).map(|origin| origin.to_string());
        assert_eq!(origin("p/A").as_deref(), Some("first.jar"));
        assert_eq!(origin("p/B").as_deref(), Some("classes"));
        assert_eq!(origin("p/C").as_deref(), Some("last.jar"));
        assert_eq!(origin("p/D"), None);
        let mut names = origins.names().expect("all of them");
        names.sort();
        assert_eq!(names, ["p/A", "p/B", "p/B", "p/C"]);
        for (class, file) in [("p/A", Some(&b"x"[..])), ("p/B", Some(b"x")), ("p/D", None)] {
            assert_eq!(origins.class_file(class).as_deref(), file, "{class}");
        }
        assert_eq!(losses(&origins), [""; 0], "nothing is left out");
        let names: Vec<_> = expand("*", &|_| scratch.clone());
        assert_eq!(names.len(), 3, "{names:?}");
        // A jar of jars has classes that are not read.
        let nested = jar("nested.jar", &["p/A", "lib/x.jar"]);
        fs::rename(&nested, scratch.join("n.jar")).unwrap();
        let mut zip = zip::ZipWriter::new(File::create(&nested).unwrap());
        zip.start_file("lib/x.jar", zip::write::SimpleFileOptions::default()).unwrap();
        zip.finish().unwrap();
        assert_eq!(Origins::by(move |_| (vec![nested], true)).names(), None);
        fs::remove_dir_all(&scratch).unwrap();
    }

    fn losses(origins: &Origins) -> Vec<String> {
        let mut run = RunInfo::default();
        origins.account(&mut run);
        run.losses.iter().map(|loss| format!("{}: {}", loss.name, loss.reason)).collect()
    }

    #[test]
    fn pipes_and_devices_are_left_out_and_named() {
        let scratch = std::env::temp_dir().join(format!("tare-pipe-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let pipe = scratch.join("pipe.jar");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let entries = vec![pipe, "/dev/zero".into(), scratch.join("missing.jar")];
        let origins = Origins::by(move |_| (entries, true));
        assert_eq!(origins.of_class("p/A"), None);
        let named = ["class path entry pipe.jar", "class path entry zero"];
        assert_eq!(losses(&origins), named.map(|name| format!("{name}: not a regular file")));
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn a_jar_whose_list_is_too_long_is_not_opened_at_all() {
        /// Of the manifest's text.
        const CRC: u32 = 0xe272_30e8;
        let scratch = std::env::temp_dir().join(format!("tare-long-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let jar = |name: &str, entries: u16| {
            let path = scratch.join(name);
            let file = File::create(&path).unwrap();
            let text = b"Class-Path: other.jar\n";
            let manifest = "META-INF/MANIFEST.MF";
            let (size, length) = (text.len() as u8, manifest.len() as u8);
            let mut at = 0;
            let mut put = |bytes: &[u8], hole: u64| {
                file.write_all_at(bytes, at).unwrap();
                at += bytes.len() as u64 + hole;
                at
            };
            let mut head = [0; 30];
            head[..4].copy_from_slice(b"PK\x03\x04");
            (head[18], head[22], head[26]) = (size, size, length);
            head[14..18].copy_from_slice(&CRC.to_le_bytes());
            let list_at = put(&[&head, manifest.as_bytes(), text].concat(), 0);
            let mut record = [0; 46];
            record[..4].copy_from_slice(b"PK\x01\x02");
            (record[20], record[24], record[28]) = (size, size, length);
            record[16..20].copy_from_slice(&CRC.to_le_bytes());
            put(&[&record, manifest.as_bytes()].concat(), 0);
            // The rest has names of zeros and comments of holes, which take no room on the disk.
            record[16..30].fill(0);
            record[28] = 1;
            record[32..34].fill(0xff);
            (1..entries).for_each(|_| _ = put(&record, 1 + 65_535));
            let list_size = put(&[], 0) - list_at;
            let entries = entries.to_le_bytes();
            let mut end = [b"PK\x05\x06\0\0\0\0".as_slice(), &entries, &entries].concat();
            end.extend(u32::try_from(list_size).unwrap().to_le_bytes());
            end.extend(u32::try_from(list_at).unwrap().to_le_bytes());
            end.extend([0; 2]);
            put(&end, 0);
            (path, list_size)
        };
        let (short, size) = jar("short.jar", 3);
        assert!(size < LARGEST_LIST && leads_on(&short));
        let (long, size) = jar("long.jar", 1100);
        assert!(size > LARGEST_LIST && !leads_on(&long));
        assert_eq!(member(&File::open(&long).unwrap(), "META-INF/MANIFEST.MF"), None);
        let origins = Origins::by(move |_| (vec![long], true));
        assert_eq!(origins.names(), None, "what is in it is not known");
        assert!(losses(&origins)[0].contains("larger than is read"), "{:?}", losses(&origins));
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn a_file_system_that_hangs_is_not_waited_for() {
        let (_held, for_ever) = mpsc::channel::<()>();
        let origins = Origins::by(move |_| {
            let _ = for_ever.recv();
            (Vec::new(), true)
        });
        let reader = origins.reader.as_ref().unwrap();
        let moment = Duration::from_millis(50);
        assert!(reader.ask(Question::Names, moment, moment).is_none());
        origins.given_up.set(true);
        assert_eq!(origins.of_class("p/B"), None, "it is not asked again");
        assert!(losses(&origins)[0].contains("did not answer in time"), "{:?}", losses(&origins));
    }
}
