//! The page of a heap dump in a real browser: its figures are those of `tare heap`.

use super::page::{go, idle, is_clean, shot};
use super::support::{Directory, Served};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_browser::{Browser, Media};
use tare_heapdump::{ClassOut, RootKind, Type, Width, Writer};

/// A cache in a static field, that holds an array of ten sessions and their bytes.
fn dump(directory: &Directory) -> PathBuf {
    dump_of(directory, "app.hprof", 10)
}

fn dump_of(directory: &Directory, name: &str, sessions: u64) -> PathBuf {
    let path = directory.0.join(name);
    let mut writer = Writer::new(File::create(&path).unwrap(), Width::Eight, 1).unwrap();
    let classes = [
        (1, "java/lang/Object", 0x100),
        (2, "com/acme/Cache", 0x130),
        (3, "com/acme/Session", 0x140),
        (4, "[Lcom/acme/Session;", 0x150),
    ];
    for (id, name, address) in classes {
        writer.text(id.into(), name).unwrap();
        writer.load_class(id, address, id.into()).unwrap();
    }
    for (id, text) in [(5, "all"), (6, "data")] {
        writer.text(id, text).unwrap();
    }
    writer.class(&ClassOut { address: 0x100, ..ClassOut::default() }).unwrap();
    let below = |address| ClassOut { address, super_class: 0x100, ..ClassOut::default() };
    let fields = [(6, Type::Reference)];
    writer.class(&ClassOut { fields: &fields, ..below(0x140) }).unwrap();
    writer.class(&below(0x150)).unwrap();
    let statics = [(5, Type::Reference, 0x1000)];
    writer.class(&ClassOut { statics: &statics, ..below(0x130) }).unwrap();
    let sessions: Vec<u64> = (0..sessions).map(|n| 0x2000 + n * 0x100).collect();
    writer.array(0x1000, 0x150, sessions.len() as u32).unwrap();
    writer.elements(&sessions).unwrap();
    writer.array_end().unwrap();
    for (n, session) in (1_u32..).zip(&sessions) {
        let bytes = 0x10_0000 + u64::from(n) * 0x10_0000;
        writer.instance(*session, 0x140, &bytes.to_be_bytes()).unwrap();
        writer.values(bytes, Type::Byte, n * 10_000).unwrap();
        writer.bytes(&vec![7; n as usize * 10_000]);
        writer.array_end().unwrap();
    }
    writer.root(RootKind::SystemClass, 0x130, 0, 0).unwrap();
    writer.finish().unwrap();
    path
}

fn heap(file: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    let output = command.arg("heap").arg(file).args(words).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first columns of the page's rows, by name.
fn shown(browser: &mut Browser) -> Value {
    let script = "[...document.querySelectorAll('#main [data-name]')].map(row => [row.dataset.name, \
                  +row.querySelector('[data-col=retained]').dataset.value])";
    browser.eval(script).unwrap()
}

#[test]
fn a_heap_has_a_page() {
    let directory = Directory::new("heap");
    let file = dump(&directory);
    let served = Served::start(&file);
    if tare_browser::program().is_none() {
        eprintln!("NOT COVERED: the page of a heap: {}", tare_browser::REMEDY);
        return;
    }
    let mut browser = Browser::start(1280, 900).unwrap();
    browser.open(&served.link).unwrap();
    browser.wait("window.tare && document.body.dataset.page === 'heap'").unwrap();
    idle(&mut browser);
    let overview = heap(&file, &["suspects"]);
    let holders = "[...document.querySelectorAll('.holders > li')].map(one => [one.dataset.name, \
                   +one.dataset.value])";
    let told = overview.as_array().unwrap().iter();
    let told: Vec<Value> = told.map(|one| json!([one["holder"], one["retained"]])).collect();
    assert_eq!(browser.eval(holders).unwrap(), Value::from(told));
    // An area of the map leads into it.
    let areas = "document.querySelectorAll('.map > div').length";
    assert!(browser.eval(areas).unwrap().as_u64() >= Some(1));
    browser.eval("document.querySelector('.map > div:not(.rest)').click()").unwrap();
    browser.wait("document.querySelectorAll('.crumbs button').length === 2").unwrap();
    shot(&mut browser, "heap");

    go(&mut browser, "/heap?tab=histo");
    browser.wait("document.querySelector('#main [data-name]')").unwrap();
    let rows = heap(&file, &["histo"]);
    let told = rows.as_array().unwrap().iter();
    let told: Vec<Value> = told.map(|row| json!([row["name"], row["retained"]])).collect();
    assert_eq!(shown(&mut browser), Value::from(told));
    shot(&mut browser, "heap-classes");

    go(&mut browser, "/heap?tab=dominators");
    browser.wait("document.querySelector('#main [data-name]')").unwrap();
    let rows = heap(&file, &["dominators"]);
    let name = |row: &Value| {
        let of = |key: &str| row[key].as_str().unwrap().to_owned();
        json!([format!("{} @{}", of("class"), of("address")), row["retained"]])
    };
    let told: Vec<Value> = rows.as_array().unwrap().iter().map(name).collect();
    assert_eq!(shown(&mut browser), Value::from(told));

    go(&mut browser, "/heap?tab=path&what=com.acme.Session");
    browser.wait("document.querySelector('.chain')").unwrap();
    let chain = browser.eval("document.querySelector('.chain').innerText").unwrap();
    assert!(chain.as_str().unwrap().contains("com.acme.Session"), "{chain}");
    shot(&mut browser, "heap-ways");
    browser.media(&Media::Dark).unwrap();
    browser.size(420, 800).unwrap();
    for place in ["/heap", "/heap?tab=histo", "/heap?tab=path&what=com.acme.Session"] {
        go(&mut browser, place);
        let wide = browser.eval("document.documentElement.scrollWidth").unwrap();
        assert!(wide.as_u64() <= Some(420), "{place}: {wide}");
    }
    shot(&mut browser, "heap-420-dark");
    is_clean(&mut browser, &served);
}

#[test]
fn two_heaps_are_compared() {
    let directory = Directory::new("heaps");
    let (old, new) = (dump_of(&directory, "old.hprof", 4), dump_of(&directory, "new.hprof", 10));
    let served = Served::of(&[&old, &new]);
    if tare_browser::program().is_none() {
        eprintln!("NOT COVERED: two heaps: {}", tare_browser::REMEDY);
        return;
    }
    let mut browser = Browser::start(1280, 900).unwrap();
    browser.open(&served.link).unwrap();
    browser.wait("window.tare && document.body.dataset.page === 'heap'").unwrap();
    go(&mut browser, "/heap?tab=histo");
    let script = "[...document.querySelectorAll('#main [data-name]')].map(row => [row.dataset.name, \
                  ...['more_objects', 'more_bytes'].map(col => +row.querySelector(`[data-col=${col}]`).dataset.value)])";
    let shown = browser.eval(script).unwrap();
    let told = heap(&old, &["diff", &new.display().to_string()]);
    let classes = told["classes"].as_array().unwrap();
    assert!(classes.len() >= 2, "{told}");
    for one in classes {
        let more = |what: &str| {
            one[format!("new_{what}")].as_i64().unwrap()
                - one[format!("old_{what}")].as_i64().unwrap()
        };
        let row = json!([one["class"], more("objects"), more("bytes")]);
        assert!(shown.as_array().unwrap().contains(&row), "{row} is not in {shown}");
    }
    assert_eq!(shown[0][0], "byte[]", "what grew most is first: {shown}");
    shot(&mut browser, "heaps");
    is_clean(&mut browser, &served);
}
