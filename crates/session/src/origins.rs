//! Which jar or directory of the class path a class comes from.
//!
//! The agent does not know: asking the JVM would run Java code. The class path of the command line
//! tells for what the application's own loader loads; the jars' directories are read from outside.
//! What other loaders bring stays without an origin.
//!
//! The paths are the JVM's owner's: they may lead to pipes, devices, endless files, or a file
//! system that does not answer, while the program is woven. So a thread of its own reads them,
//! within bounds, and is left behind if it takes too long.

mod class_path;
mod jar;
mod texts;

pub use texts::in_archive;

use class_path::{ClassPath, class_path, expand};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_profile::{LossKind, RunInfo};

/// More jars than this are not looked into: it would hold up the recording.
const MOST_JARS: usize = 2_000;
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
    /// The text of a class, by its name in an archive of sources.
    Text(String, String),
}

enum Answer {
    Origin(Option<Arc<str>>),
    Names(Option<Vec<String>>),
    File(Option<Vec<u8>>),
    Text(Option<(PathBuf, Vec<u8>)>),
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

    /// Of a run that is over: what its command line names is looked for from where we are.
    pub fn of_run(command_line: &[String]) -> Self {
        let command_line = command_line.to_vec();
        Origins::by(move |work| {
            let here = std::env::current_dir().unwrap_or_default();
            let (entries, certain) = class_path(&command_line);
            let entries = entries.iter().flat_map(|entry| {
                work.step();
                expand(entry, &|path| here.join(path))
            });
            (entries.take(MOST_JARS).collect(), certain)
        })
    }

    /// `find` says what the entries of the class path are, as seen from here, and whether they are
    /// all.
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
                    Question::Text(class, name) => {
                        Answer::Text(class_path.text_beside(&class, &name))
                    }
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

    /// The classes of the class path, as class files spell them. `None` if these are not all, or
    /// cannot be had soon: jars within jars are not read, and what is not on the command line is
    /// not known.
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

    /// A source text from beside the jar that a class is from, and where it was.
    pub fn text_beside(&self, class: &str, name: &str) -> Option<(PathBuf, Vec<u8>)> {
        let reader = self.reader.as_ref().filter(|_| !self.given_up.get())?;
        let question = Question::Text(class.to_owned(), name.to_owned());
        match reader.ask(question, QUIET, LONGEST) {
            Some(Answer::Text(text)) => text,
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

#[cfg(test)]
mod tests {
    use super::*;
    use class_path::leads_on;
    use jar::{LARGEST_LIST, member};
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

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
