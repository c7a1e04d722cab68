//! The page in a real browser. What it shows is what `tare report` says of the same view, it asks
//! nobody but its own server, and a name that looks like a program stays a name. Pictures of all
//! pages go to target/view, for a person to look at.

use super::support::{Directory, HOSTILE, Served, diff, report, shop, shop_with_more_walking};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tare_browser::{Browser, Key, Media};

/// A page that is logged in; `None`, loudly, where there is no browser.
pub fn page(served: &Served) -> Option<Browser> {
    if tare_browser::program().is_none() {
        eprintln!("NOT COVERED: the page of tare view: {}", tare_browser::REMEDY);
        return None;
    }
    let mut browser = Browser::start(1280, 900).unwrap();
    browser.open(&served.link).unwrap();
    browser.wait("window.tare && document.body.dataset.page === 'overview'").unwrap();
    idle(&mut browser);
    Some(browser)
}

pub fn idle(browser: &mut Browser) {
    browser.eval("tare.idle()").unwrap();
}

/// Goes to a deep link of the page that is open.
pub fn go(browser: &mut Browser, place: &str) {
    browser.eval(&format!("location.hash = {}", json!(format!("#{place}")))).unwrap();
    let page = place.trim_start_matches('/').split('?').next().unwrap();
    browser.wait(&format!("document.body.dataset.page === '{page}'")).unwrap();
    idle(browser);
}

/// Where pictures go: where cargo builds.
fn pictures() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_tare"));
    binary.ancestors().nth(2).unwrap().join("view")
}

pub fn shot(browser: &mut Browser, name: &str) {
    browser.shot(&pictures().join(format!("{name}.png"))).unwrap();
}

/// Rows of the page's table, by name: the exact figures of these columns.
fn rows(browser: &mut Browser, columns: &[&str]) -> Vec<Value> {
    let script = format!(
        "[...document.querySelectorAll('#main [data-name]')].map(row => [row.dataset.name, \
         ...{}.map(col => {{ const cell = row.querySelector(`[data-col=\"${{col}}\"]`); return cell \
         && cell.dataset.value !== undefined ? +cell.dataset.value : null; }})])",
        json!(columns)
    );
    let mut rows = browser.eval(&script).unwrap().as_array().unwrap().clone();
    rows.sort_by_key(Value::to_string);
    rows
}

/// The same of a report.
fn reported(report: &Value, list: &str, columns: &[&str]) -> Vec<Value> {
    let row = |row: &Value| {
        let figures = columns.iter().map(|column| row[*column].clone());
        std::iter::once(row["name"].clone()).chain(figures).collect::<Value>()
    };
    let mut rows: Vec<Value> = report[list].as_array().unwrap().iter().map(row).collect();
    rows.sort_by_key(Value::to_string);
    rows
}

fn total(browser: &mut Browser) -> Value {
    browser.eval("+document.querySelector('[data-figure=total]').dataset.value").unwrap()
}

/// Nothing was asked of anybody else, and nothing went wrong.
pub fn is_clean(browser: &mut Browser, served: &Served) {
    browser.eval("1").unwrap();
    assert_eq!(browser.complaints, Vec::<String>::new());
    let own = format!("http://127.0.0.1:{}/", served.port);
    let foreign = |url: &&String| {
        !(url.starts_with(&own) || url.starts_with("blob:") || url.starts_with("data:"))
    };
    let foreign: Vec<&String> = browser.requests.iter().filter(foreign).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_ne!(browser.eval("document.title").unwrap(), "owned");
}

const ALL: &str = "native=1&idle=1";
const AS_RECORDED: [&str; 2] = ["--native", "--idle"];

#[test]
fn figures_are_those_of_the_report() {
    let directory = Directory::new("figures");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    let whole = report(&file, &AS_RECORDED);
    assert_eq!(total(&mut browser), whole["total"]);
    let findings = browser
        .eval("[...document.querySelectorAll('[data-finding]')].map(one => one.textContent)")
        .unwrap();
    let shown = findings.as_array().unwrap();
    for finding in whole["findings"].as_array().unwrap() {
        let text = finding["text"].as_str().unwrap();
        let is_there = shown.iter().any(|one| one.as_str().unwrap().contains(text));
        assert!(is_there, "{text} is not in {findings}");
    }
    shot(&mut browser, "overview");

    go(&mut browser, &format!("/methods?{ALL}"));
    let methods = rows(&mut browser, &["self", "total"]);
    assert_eq!(methods, reported(&whole, "methods", &["self", "total"]));
    shot(&mut browser, "methods");

    // For people, the JVM itself is one line, and the kernel counts for who called it.
    go(&mut browser, "/methods");
    let methods = rows(&mut browser, &["self", "total"]);
    assert!(methods.contains(&json!(["[JVM itself]", 70_000_000, 70_000_000])), "{methods:?}");
    let get = json!(["java.util.HashMap.get", 450_000_000, 450_000_000]);
    assert!(methods.contains(&get), "{methods:?}");

    // A part of the run, a thread, a package: the same restrictions by the same names.
    for view in [
        "time=2s..4s",
        "thread=logger",
        "package=com.acme.Walk",
        "by=class",
        "hide=com.acme.Shop.sell",
    ] {
        let (key, value) = view.split_once('=').unwrap();
        let option = format!("--{key}={value}");
        let part = report(&file, &[AS_RECORDED[0], AS_RECORDED[1], &option]);
        go(&mut browser, &format!("/methods?{ALL}&{view}"));
        let methods = rows(&mut browser, &["self", "total"]);
        assert_eq!(methods, reported(&part, "methods", &["self", "total"]), "{view}");
    }
    // What was hidden last counts for who called it: 250 ms of 30 + 250.
    let main = json!(["com.acme.Shop.main", 280_000_000, 930_000_000]);
    let methods = rows(&mut browser, &["self", "total"]);
    assert!(methods.contains(&main), "{methods:?}");
    assert!(!methods.iter().any(|row| row[0] == "com.acme.Shop.sell"), "{methods:?}");

    go(&mut browser, &format!("/threads?{ALL}"));
    let threads = rows(&mut browser, &["value"]);
    assert_eq!(threads, reported(&whole, "threads", &["value"]));
    shot(&mut browser, "threads");

    go(&mut browser, &format!("/flame?{ALL}"));
    let frames = browser
        .eval("(() => { const f = tare.flame(); return [...Array(f.count).keys()].map(i => [f.text(i), f.total(i)]); })()")
        .unwrap();
    let mut frames: Vec<Value> = frames.as_array().unwrap().clone();
    let nodes = whole["tree"].as_array().unwrap().iter();
    let mut nodes: Vec<Value> = nodes.map(|node| json!([node["name"], node["total"]])).collect();
    frames.sort_by_key(Value::to_string);
    nodes.sort_by_key(Value::to_string);
    assert_eq!(frames, nodes);
    shot(&mut browser, "flame");

    go(&mut browser, &format!("/sandwich?{ALL}&method=java.util.HashMap.get"));
    let around =
        report(&file, &[AS_RECORDED[0], AS_RECORDED[1], "--method", "java.util.HashMap.get"]);
    let text = browser.eval("document.getElementById('main').innerText").unwrap().to_string();
    for caller in around["around"][0]["callers"].as_array().unwrap() {
        assert!(text.contains(caller["name"].as_str().unwrap()), "{caller} is not in {text}");
    }
    shot(&mut browser, "sandwich");

    for place in ["tree", "timeline", "locks", "memory", "classes"] {
        go(&mut browser, &format!("/{place}"));
        shot(&mut browser, place);
    }
    is_clean(&mut browser, &served);
}

#[test]
fn a_flame_graph_is_zoomed_searched_and_linked_to() {
    let directory = Directory::new("flame");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, "/flame");
    // The frame of a name: where it is, and what is there.
    let find = |name: &str| {
        format!(
            "(() => {{ const f = tare.flame(); const i = [...Array(f.count).keys()].find(i => \
             f.text(i) === {}); return f.rect(i); }})()",
            json!(name)
        )
    };
    let rect = browser.eval(&find("com.acme.Shop.sell")).unwrap();
    let middle = |rect: &Value| {
        let of = |key: &str| rect[key].as_f64().unwrap();
        (of("x") + of("width") / 2.0, of("y") + of("height") / 2.0)
    };
    let (x, y) = middle(&rect);
    let there = browser.eval(&format!("tare.at({x}, {y})")).unwrap();
    assert_eq!(there["text"], "com.acme.Shop.sell");
    assert_eq!(there["total"], 700_000_000);

    browser.click(x, y).unwrap();
    idle(&mut browser);
    browser.wait("location.hash.includes('path=')").unwrap();
    idle(&mut browser);
    let zoomed = browser.eval("location.hash").unwrap();
    let zoomed = zoomed.as_str().unwrap().trim_start_matches('#').to_owned();
    let wide = browser.eval(&find("com.acme.Shop.sell")).unwrap();
    assert!(wide["width"].as_f64() > rect["width"].as_f64(), "{wide} {rect}");
    shot(&mut browser, "flame-zoomed");

    // The link leads there again, on a page that was loaded anew.
    go(&mut browser, "/overview");
    go(&mut browser, &zoomed);
    assert_eq!(browser.eval(&find("com.acme.Shop.sell")).unwrap(), wide);

    // Hostile names are names, everywhere.
    go(&mut browser, "/methods");
    let text = browser.eval("document.getElementById('main').innerText").unwrap().to_string();
    let name = json!(HOSTILE).to_string();
    assert!(text.contains(name.trim_matches('"')), "{text}");
    assert_eq!(browser.eval("document.querySelectorAll('img').length").unwrap(), 0);

    // Keys: a search, and out of it.
    browser.key(&Key::Char('/')).unwrap();
    browser.wait("document.activeElement && document.activeElement.type === 'search'").unwrap();
    for letter in "walk".chars() {
        browser.key(&Key::Char(letter)).unwrap();
    }
    browser.wait("location.hash.includes('q=walk')").unwrap();
    idle(&mut browser);
    let found = rows(&mut browser, &["total"]);
    assert_eq!(found, [json!(["com.acme.Walk.down", 120_000_000])]);
    browser.key(&Key::Named("Escape")).unwrap();
    browser.wait("!location.hash.includes('q=')").unwrap();
    idle(&mut browser);
    is_clean(&mut browser, &served);
}

#[test]
fn everything_has_a_name_and_other_looks_work() {
    let directory = Directory::new("looks");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    let controls = ["button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab"];
    for place in ["overview", "flame", "methods", "tree", "threads", "timeline"] {
        go(&mut browser, &format!("/{place}"));
        let nameless: Vec<_> = browser
            .accessible()
            .unwrap()
            .into_iter()
            .filter(|(role, name)| controls.contains(&role.as_str()) && name.trim().is_empty())
            .collect();
        assert!(nameless.is_empty(), "{place}: {nameless:?}");
    }
    let background = "getComputedStyle(document.body).backgroundColor";
    go(&mut browser, "/flame");
    let light = browser.eval(background).unwrap();
    browser.media(&Media::Dark).unwrap();
    browser.wait(&format!("{background} !== {light}")).unwrap();
    idle(&mut browser);
    shot(&mut browser, "flame-dark");
    browser.media(&Media::Forced).unwrap();
    idle(&mut browser);
    shot(&mut browser, "flame-forced");
    browser.media(&Media::Print).unwrap();
    idle(&mut browser);
    shot(&mut browser, "flame-print");
    browser.media(&Media::Light).unwrap();
    for (width, height) in [(420, 800), (3840, 2160)] {
        browser.size(width, height).unwrap();
        for place in ["overview", "flame", "methods"] {
            go(&mut browser, &format!("/{place}"));
            // Nothing sticks out to the right.
            let wide = browser.eval("document.documentElement.scrollWidth").unwrap();
            assert!(wide.as_u64() <= Some(u64::from(width)), "{place} {width}: {wide}");
            shot(&mut browser, &format!("{place}-{width}"));
        }
    }
    is_clean(&mut browser, &served);
}

#[test]
fn two_parts_of_a_run_and_two_files_are_compared() {
    let directory = Directory::new("diff");
    let old = directory.record("old.tare", &shop());
    let new = directory.record("new.tare", &shop_with_more_walking());
    let served = Served::of(&[&old, &new]);
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, &format!("/diff?{ALL}&against=file"));
    let shown = rows(&mut browser, &["old", "new"]);
    let told = diff(&old, &new, &["--normalise", "--native", "--idle"]);
    let methods = told["methods"].as_array().unwrap().iter();
    let own = methods.map(|one| json!([one["name"], one["self"]["old"], one["self"]["new"]]));
    let mut own: Vec<Value> = own.filter(|row| row[1] != 0 || row[2] != 0).collect();
    own.sort_by_key(Value::to_string);
    assert_eq!(shown, own);
    assert!(shown.contains(&json!(["com.acme.Walk.down", 120_000_000, 520_000_000])), "{shown:?}");
    shot(&mut browser, "diff");

    // What was only in the first seconds has vanished in the last.
    go(&mut browser, "/diff?time=5s..&against=0s..5s");
    let shown = rows(&mut browser, &["old", "new"]);
    assert!(shown.contains(&json!(["java.util.HashMap.get", 450_000_000, 0])), "{shown:?}");
    is_clean(&mut browser, &served);
}
