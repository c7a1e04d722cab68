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
    /// With a dump: a class whose static fields have a large array, and a soft reference to one.
    fn new(test: &str) -> Directory {
        let name = format!("tare-heap-index-{test}-{}", std::process::id());
        let directory = Directory(std::env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        let file = fs::File::create(directory.dump()).unwrap();
        let mut writer = Writer::new(file, Width::Eight, 1).unwrap();
        let classes = [
            (1, "java/lang/Object", 0x100),
            (2, "com/acme/Cache", 0x130),
            (3, "java/lang/ref/Reference", 0x140),
            (4, "java/lang/ref/SoftReference", 0x150),
        ];
        for (id, name, address) in classes {
            writer.text(id.into(), name).unwrap();
            writer.load_class(id, address, id.into()).unwrap();
        }
        for (id, text) in [(5, "all"), (6, "soft"), (7, "referent")] {
            writer.text(id, text).unwrap();
        }
        writer.class(&ClassOut { address: 0x100, ..ClassOut::default() }).unwrap();
        let fields = [(7, Type::Reference)];
        let reference = ClassOut { address: 0x140, super_class: 0x100, ..ClassOut::default() };
        writer.class(&ClassOut { fields: &fields, ..reference }).unwrap();
        let soft = ClassOut { address: 0x150, super_class: 0x140, ..ClassOut::default() };
        writer.class(&soft).unwrap();
        writer.instance(0x800, 0x150, &0x200_0000_u64.to_be_bytes()).unwrap();
        let statics = [(5, Type::Reference, 0x1000), (6, Type::Reference, 0x800)];
        let cache = ClassOut { address: 0x130, super_class: 0x100, ..ClassOut::default() };
        writer.class(&ClassOut { statics: &statics, ..cache }).unwrap();
        for (address, length) in [(0x1000, FILLING), (0x200_0000, FILLING / 2)] {
            writer.values(address, Type::Byte, length).unwrap();
            writer.bytes(&vec![7; length as usize]);
            writer.array_end().unwrap();
        }
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
    // Whatever is asked after the index was written, and whatever it has an answer to.
    for words in [&[][..], &["--json"], &["-n", "1", "--json"], &["suspects", "--least", "3"]] {
        let usual = directory.answer(words);
        assert!(usual.0.contains("com.acme.Cache"), "{usual:?}");
        let apart = directory.answer(&[&["--no-index"], words].concat());
        assert_eq!(usual, apart, "{words:?}");
        assert_eq!(directory.answer(words), apart, "{words:?}");
    }
    let soft = directory.answer(&["--keep", "soft"]);
    assert!(soft.0.contains("static com.acme.Cache.soft"), "{soft:?}");
    let holders = directory.answer(&["suspects"]);
    assert!(holders.0.contains("static com.acme.Cache.all"), "{holders:?}");
    assert_eq!(directory.answer(&["--no-index", "suspects"]), holders);
    // It is used: one that is of this dump is not written again.
    assert_eq!(fs::read(directory.index()).unwrap(), index);
}

#[test]
fn a_damaged_index_is_noticed_and_does_no_harm() {
    let directory = Directory::new("damaged");
    let by_package = ["histo", "--by", "package"];
    let (plain, _) = directory.answer(&by_package);
    // A number of the first column.
    spoil(&directory.index(), 9);
    let (answer, said) = directory.answer(&by_package);
    assert_eq!(answer, plain);
    assert!(said.contains("was damaged, and was removed"), "{said}");
    assert_eq!(directory.files(), ["app.hprof"]);
    // No index at all.
    let (plain, _) = directory.answer(&["--no-index", "histo"]);
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

#[test]
fn what_does_not_fit_is_refused_before_it_is_taken() {
    let directory = Directory::new("memory");
    let refused = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        let output = command.arg("heap").arg(directory.dump()).args(words).output().unwrap();
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    };
    let said = refused(&["--memory", "1M"]).expect("a megabyte is not enough");
    assert!(said.contains("7 objects"), "{said}");
    assert!(said.contains("`--memory 17M` takes it all the same"), "{said}");
    assert_eq!(directory.files(), ["app.hprof"]);
    assert_eq!(refused(&["--memory", "17M"]), None);
    // With the index nothing is computed.
    assert_eq!(refused(&["--memory", "1M"]), None);
}
