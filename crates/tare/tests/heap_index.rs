//! `tare heap` with an index beside the dump, as a user runs it: the same answers, whatever happens
//! to the index.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tare_heapdump::{ClassOut, RootKind, Type, Width, Writer};

/// Larger than what is read without an index.
const FILLING: u32 = 20 << 20;

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Directory {
    /// With a dump: a class whose static field has a large array.
    fn new(test: &str) -> Directory {
        let name = format!("tare-heap-index-{test}-{}", std::process::id());
        let directory = Directory(std::env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        let file = fs::File::create(directory.dump()).unwrap();
        let mut writer = Writer::new(file, Width::Eight, 1).unwrap();
        for (id, text) in [(1, "java/lang/Object"), (2, "com/acme/Cache"), (3, "all")] {
            writer.text(id, text).unwrap();
        }
        writer.load_class(1, 0x100, 1).unwrap();
        writer.load_class(2, 0x130, 2).unwrap();
        writer.class(&ClassOut { address: 0x100, ..ClassOut::default() }).unwrap();
        let statics = [(3, Type::Reference, 0x1000)];
        let cache = ClassOut { address: 0x130, super_class: 0x100, ..ClassOut::default() };
        writer.class(&ClassOut { statics: &statics, ..cache }).unwrap();
        writer.values(0x1000, Type::Byte, FILLING).unwrap();
        writer.bytes(&vec![7; FILLING as usize]);
        writer.array_end().unwrap();
        writer.root(RootKind::SystemClass, 0x130, 0, 0).unwrap();
        writer.finish().unwrap();
        directory
    }

    fn dump(&self) -> PathBuf {
        self.0.join("app.hprof")
    }

    fn index(&self) -> PathBuf {
        self.0.join("app.hprof.tare-index")
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        let output = command.arg("heap").arg(self.dump()).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// What is answered, and what is said beside it.
    fn answer(&self, words: &[&str]) -> (String, String) {
        let output = self.ask(words);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }

    fn files(&self) -> Vec<String> {
        let all = fs::read_dir(&self.0).unwrap();
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn spoil(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_second_answer_is_the_first_one() {
    let directory = Directory::new("same");
    let plain = directory.answer(&["--no-index", "histo"]);
    assert!(plain.0.contains("byte[]"), "{plain:?}");
    assert_eq!(directory.files(), ["app.hprof"], "--no-index leaves none");
    assert_eq!(directory.answer(&["histo"]), plain);
    assert_eq!(directory.files().len(), 2, "an index is kept, and nothing else");
    assert_eq!(directory.answer(&["histo"]), plain);
    let index = fs::read(directory.index()).unwrap();
    let holders = directory.answer(&["suspects"]);
    assert!(holders.0.contains("static com.acme.Cache.all"), "{holders:?}");
    assert_eq!(directory.answer(&["--no-index", "suspects"]), holders);
    // It is used: one that is of this dump is not written again.
    assert_eq!(fs::read(directory.index()).unwrap(), index);
}

#[test]
fn a_damaged_index_is_noticed_and_does_no_harm() {
    let directory = Directory::new("damaged");
    let (plain, _) = directory.answer(&["histo"]);
    // A number of the first column.
    spoil(&directory.index(), 9);
    let (answer, said) = directory.answer(&["histo"]);
    assert_eq!(answer, plain);
    assert!(said.contains("was damaged, and was removed"), "{said}");
    assert_eq!(directory.files(), ["app.hprof"]);
    // No index at all.
    fs::write(directory.index(), "no index").unwrap();
    let (answer, said) = directory.answer(&["histo"]);
    assert_eq!(answer, plain);
    assert!(said.contains("written anew"), "{said}");
    let (answer, said) = directory.answer(&["histo"]);
    assert_eq!((answer, said.as_str()), (plain, ""));
}

#[test]
fn an_index_of_an_earlier_dump_is_not_used() {
    let directory = Directory::new("stale");
    let (plain, _) = directory.answer(&["histo"]);
    let index = fs::read(directory.index()).unwrap();
    // The same bytes, changed a microsecond later.
    let about = fs::metadata(directory.dump()).unwrap();
    let dump = fs::File::options().write(true).open(directory.dump()).unwrap();
    dump.set_modified(about.modified().unwrap() + std::time::Duration::from_nanos(1000)).unwrap();
    assert_eq!(directory.answer(&["histo"]), (plain, String::new()));
    assert_ne!(fs::read(directory.index()).unwrap(), index, "it was written anew");
}

#[test]
fn where_no_index_can_be_written_it_is_said() {
    let directory = Directory::new("unwritable");
    // Root may write everywhere, so a directory has the index's name.
    fs::create_dir(directory.index()).unwrap();
    let (answer, said) = directory.answer(&["histo"]);
    assert!(answer.contains("byte[]"), "{answer}");
    assert!(said.contains("no index is kept beside the dump"), "{said}");
}
