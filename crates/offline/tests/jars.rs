//! Jars in, jars out: classes are woven, all else stays, signatures go, jars inside stay readable.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::str::FromStr;
use tare_classfile::ClassFile;
use tare_java_names::ClassChoice;
use tare_offline::{Batch, Blocks, FileError, Modes, Settings, classes_of, weave_path};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// `class NAME { static void m() { } }`, version 48.
fn class(name: &str) -> Vec<u8> {
    let utf8 = |text: &str| [&[1, 0, text.len() as u8], text.as_bytes()].concat();
    let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 48, 0, 8];
    for entry in [
        utf8(name),
        vec![7, 0, 1],
        utf8("java/lang/Object"),
        vec![7, 0, 3],
        utf8("m"),
        utf8("()V"),
        utf8("Code"),
    ] {
        bytes.extend(entry);
    }
    bytes.extend([0, 0x21, 0, 2, 0, 4, 0, 0, 0, 0, 0, 1]);
    bytes.extend([
        0, 9, 0, 5, 0, 6, 0, 1, 0, 7, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 1, 0xb1, 0, 0, 0, 0,
    ]);
    bytes.extend([0, 0]);
    bytes
}

fn jar(entries: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, method) in entries {
        let options = SimpleFileOptions::default().compression_method(*method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn entry(archive: &mut ZipArchive<Cursor<Vec<u8>>>, name: &str) -> (Vec<u8>, CompressionMethod) {
    let mut entry = archive.by_name(name).unwrap();
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).unwrap();
    (bytes, entry.compression())
}

/// A directory that goes with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tare-offline-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn batch() -> Batch {
    let mut batch = Batch::new(Settings::new(Modes::from_str("entry").unwrap())).unwrap();
    batch.keep_rows();
    batch
}

fn methods_of(bytes: &[u8]) -> usize {
    ClassFile::parse(bytes).unwrap().methods.len()
}

#[test]
fn classes_are_woven_and_the_rest_stays() {
    use CompressionMethod::{Deflated, Stored};
    let scratch = Scratch::new("rest");
    let (a, b, inner_class) = (class("p/A"), class("B"), class("C"));
    let inner = jar(&[("C.class", &inner_class, Deflated), ("x.txt", b"x", Deflated)]);
    let text = "text ".repeat(100);
    let runtime = class("java/lang/TareProbe");
    let input = scratch.file(
        "in.jar",
        &jar(&[
            ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n", Deflated),
            ("META-INF/KEY.SF", b"signed", Deflated),
            ("META-INF/KEY.RSA", b"signed", Deflated),
            ("META-INF/services/a.SF", b"no signature", Deflated),
            ("p/A.class", &a, Deflated),
            ("B.class", &b, Stored),
            ("java/lang/TareProbe.class", &runtime, Deflated),
            ("broken.class", b"not a class", Deflated),
            ("text.txt", text.as_bytes(), Deflated),
            ("BOOT-INF/lib/inner.jar", &inner, Stored),
        ]),
    );
    let output = scratch.0.join("out.jar");
    let mut batch = batch();
    weave_path(&mut batch, &input, &output, &[]).unwrap();

    let mut out = ZipArchive::new(Cursor::new(fs::read(&output).unwrap())).unwrap();
    let names: Vec<String> = out.file_names().map(|name| name.unwrap().into_owned()).collect();
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(!names.iter().any(|n| n.starts_with("META-INF/KEY")), "{names:?}");
    for (name, original, method) in [("p/A.class", &a, Deflated), ("B.class", &b, Stored)] {
        let (bytes, found) = entry(&mut out, name);
        assert!(bytes.len() > original.len() && methods_of(&bytes) == 1, "{name} is not woven");
        assert_eq!(found, method);
    }
    assert_eq!(entry(&mut out, "java/lang/TareProbe.class").0, runtime);
    assert_eq!(entry(&mut out, "broken.class").0, b"not a class");
    assert_eq!(entry(&mut out, "text.txt").0, text.as_bytes());
    let (nested, method) = entry(&mut out, "BOOT-INF/lib/inner.jar");
    assert_eq!(method, Stored);
    let mut nested = ZipArchive::new(Cursor::new(nested)).unwrap();
    assert!(entry(&mut nested, "C.class").0.len() > inner_class.len());
    assert_eq!(entry(&mut nested, "x.txt").0, b"x");

    assert_eq!((batch.totals.classes, batch.totals.changed, batch.totals.woven), (4, 3, 3));
    let ids: Vec<_> = batch.rows.iter().map(|r| (r.id, r.class.as_str(), r.outcome)).collect();
    assert_eq!(ids, [(0, "p/A", "woven"), (1, "B", "woven"), (2, "C", "woven")]);
}

#[test]
fn a_jar_without_entries_is_a_jar() {
    let scratch = Scratch::new("empty");
    let input = scratch.file("in.jar", &jar(&[]));
    let output = scratch.0.join("out.jar");
    tare_offline::weave_path(&mut batch(), &input, &output, &[]).unwrap();
    for jar in [input, output] {
        tare_offline::classes_of(&jar, &|_| true, &mut |_, _| panic!("no class")).unwrap();
    }
}

#[test]
fn a_directory_is_woven_into_a_directory() {
    let scratch = Scratch::new("directory");
    fs::create_dir_all(scratch.0.join("in/p")).unwrap();
    fs::write(scratch.0.join("in/p/A.class"), class("p/A")).unwrap();
    fs::write(scratch.0.join("in/note.txt"), "note").unwrap();
    let mut batch = batch();
    weave_path(&mut batch, &scratch.0.join("in"), &scratch.0.join("out"), &[]).unwrap();
    assert!(fs::read(scratch.0.join("out/p/A.class")).unwrap().len() > class("p/A").len());
    assert_eq!(fs::read(scratch.0.join("out/note.txt")).unwrap(), b"note");
    let mut found = Vec::new();
    classes_of(&scratch.0.join("out"), &|_| true, &mut |name, _| found.push(name.to_owned()))
        .unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("p/A"), "{found:?}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let scratch = Scratch::new("errors");
    let text = scratch.file("a.txt", b"text");
    let one = scratch.file("A.class", &class("A"));
    let torn = scratch
        .file("torn.jar", &jar(&[("A.class", &class("A"), CompressionMethod::Stored)])[..60]);
    let out = scratch.0.join("out");
    let weave = |from: &PathBuf, to: &PathBuf| weave_path(&mut batch(), from, to, &[]).unwrap_err();
    assert!(matches!(weave(&text, &out), FileError::NotKnown(_)));
    assert!(matches!(weave(&one, &one), FileError::SameFile(_)));
    assert!(matches!(weave(&torn, &out), FileError::Zip(..)));
    assert!(matches!(weave(&scratch.0.join("none"), &out), FileError::Io(..)));
    assert!(!out.exists(), "half a result was left");
}

#[test]
fn a_directory_that_fails_leaves_what_was_there() {
    let scratch = Scratch::new("whole");
    fs::create_dir_all(scratch.0.join("in")).unwrap();
    fs::create_dir_all(scratch.0.join("out/mine")).unwrap();
    fs::write(scratch.0.join("in/A.class"), class("A")).unwrap();
    fs::write(scratch.0.join("in/torn.jar"), b"PK\x03\x04 but not a jar").unwrap();
    let weave = |output: &str| {
        weave_path(&mut batch(), &scratch.0.join("in"), &scratch.0.join(output), &[])
    };
    let names = |directory: &str| {
        let list = fs::read_dir(scratch.0.join(directory)).unwrap();
        let mut names: Vec<String> =
            list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert!(matches!(weave("out"), Err(FileError::Zip(..))));
    assert!(matches!(weave("fresh"), Err(FileError::Zip(..))));
    assert_eq!((names("out"), names(".")), (vec!["mine".into()], vec!["in".into(), "out".into()]));
    // Once it succeeds, files arrive beside what is there.
    fs::remove_file(scratch.0.join("in/torn.jar")).unwrap();
    weave("out").unwrap();
    assert_eq!(names("out"), ["A.class", "mine"]);
}

#[test]
fn classes_are_chosen_as_for_a_recording() {
    let everything = ["**".parse().unwrap()];
    let wanted =
        move |class: &str| ClassChoice { include: &everything, exclude: &[], also: &[] }.of(class);
    let mut batch = Batch::portable(Blocks::Default, false, Box::new(wanted)).unwrap();
    let woven = ["p/A", "java/util/X", "java/lang/Object", "jdk/internal/misc/Unsafe"]
        .map(|name| batch.weave(&class(name)).is_some());
    assert_eq!(woven, [true, true, false, false]);
    assert_eq!(batch.weave(&class("tare/runtime/Trees")), None);
    let reasons: Vec<&str> = batch.totals.failed.keys().map(String::as_str).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.contains(&"the probes themselves call it"), "{reasons:?}");
    assert_eq!(batch.totals.left_out, 1);
}
