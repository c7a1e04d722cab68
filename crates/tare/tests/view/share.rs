//! What leaves the page and comes back: a file of the present view, a brushed part of the run, and a
//! server that ends and is started again.

use super::page::{go, idle, is_clean, page};
use super::support::{Directory, Served, report, shop, shop_with_more_walking};
use serde_json::{Value, json};
use std::path::Path;
use tare_browser::Browser;

/// Saves what the page would save, and opens it.
fn saved(browser: &mut Browser, directory: &Directory, query: &str) -> Value {
    let script = format!(
        "fetch('/api/export?format=html&{query}', {{ headers: {{ Authorization: 'Bearer ' + \
         sessionStorage.getItem('tare-token') }} }}).then(answer => answer.text())"
    );
    let text = browser.eval(&script).unwrap();
    let file = directory.0.join("saved.html");
    std::fs::write(&file, text.as_str().unwrap()).unwrap();
    let mut other = Browser::start(1280, 900).unwrap();
    other.open(&format!("file://{}", file.display())).unwrap();
    other.wait("document.getElementById('graph')?.dataset.frames").unwrap();
    assert_eq!(other.complaints, Vec::<String>::new());
    let script = "({ zoom: graph.dataset.zoom, status: document.getElementById('status').textContent, \
                  found: matched.textContent, colours: diff.hidden })";
    other.eval(script).unwrap()
}

#[test]
fn a_file_shows_what_the_page_showed() {
    let directory = Directory::new("saved");
    let old = directory.record("old.tare", &shop());
    let new = directory.record("new.tare", &shop_with_more_walking());
    let served = Served::of(&[&old, &new]);
    let Some(mut browser) = page(&served) else { return };
    let find = "(() => { const f = tare.flame(); return f.rect([...Array(f.count).keys()].find(i => f.text(i) \
                === 'com.acme.Shop.sell')); })()";
    go(&mut browser, "/flame");
    let rect = browser.eval(find).unwrap();
    let of = |key: &str| rect[key].as_f64().unwrap();
    browser.click(of("x") + of("width") / 2.0, of("y") + of("height") / 2.0).unwrap();
    browser.wait("location.hash.includes('path=')").unwrap();
    idle(&mut browser);
    let path =
        browser.eval("new URLSearchParams(location.hash.split('?')[1]).get('path')").unwrap();
    let path = path.as_str().unwrap();
    let seen = saved(&mut browser, &directory, &format!("path={path}&q=HashMap"));
    assert_eq!(seen["zoom"], "com.acme.Shop.sell", "{seen}");
    assert!(seen["status"].as_str().unwrap().contains("700 ms"), "{seen}");
    assert!(seen["found"].as_str().unwrap().contains("matched"), "{seen}");
    // The kernel's time is its caller's there, too; with native frames it is not.
    let all = saved(&mut browser, &directory, "q=do_syscall_64");
    assert_eq!(all["found"], "no match", "{all}");
    let all = saved(&mut browser, &directory, "q=do_syscall_64&native=1");
    assert!(all["found"].as_str().unwrap().contains("matched"), "{all}");
    // Both runs, of the page of differences.
    let both = saved(&mut browser, &directory, "against=file");
    assert_eq!((&both["colours"], &all["colours"]), (&json!(false), &json!(true)), "{both}");
    assert!(both["status"].as_str().unwrap().contains("baseline"), "{both}");
    is_clean(&mut browser, &served);
}

#[test]
fn a_part_of_the_run_is_brushed() {
    let directory = Directory::new("brush");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, "/methods");
    let strip = browser
        .eval("(box => [box.left, box.top + 20, box.width])(document.querySelector('.strip-box').getBoundingClientRect())")
        .unwrap();
    let of = |at: usize| strip[at].as_f64().unwrap();
    let at = |share: f64| (of(0) + of(2) * share, of(1));
    browser.drag(at(0.25), at(0.5)).unwrap();
    browser.wait("location.hash.includes('time=')").unwrap();
    idle(&mut browser);
    let time =
        browser.eval("new URLSearchParams(location.hash.split('?')[1]).get('time')").unwrap();
    let option = format!("--time={}", time.as_str().unwrap());
    let told = report(&file, &["--native", "--idle", &option]);
    go(&mut browser, &format!("/methods?native=1&idle=1&time={}", time.as_str().unwrap()));
    let shown = browser
        .eval("[...document.querySelectorAll('#main [data-name]')].map(row => [row.dataset.name, +row.querySelector('[data-col=self]').dataset.value])")
        .unwrap();
    let sums = |rows: Vec<(Value, Value)>| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        rows
    };
    let list = |value: &Value, a: &dyn Fn(&Value) -> (Value, Value)| {
        sums(value.as_array().unwrap().iter().map(a).collect())
    };
    let shown = list(&shown, &|row| (row[0].clone(), row[1].clone()));
    let told = list(&told["methods"], &|row| (row["name"].clone(), row["self"].clone()));
    assert!(!told.is_empty());
    assert_eq!(shown, told);
    is_clean(&mut browser, &served);
}

#[test]
fn a_server_that_ends_and_another_in_its_place_are_told_apart() {
    let directory = Directory::new("restart");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let port = served.port.to_string();
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, "/methods");
    drop(served);
    let says =
        |text: &str| format!("document.getElementById('say').textContent.includes('{text}')");
    browser.wait(&says("Tare has not answered since")).unwrap();
    let _again = Served::of(&[Path::new("--port"), Path::new(&port), &file]);
    browser.wait(&says("This server was started again")).unwrap();
    // What was there can still be read.
    let rows = browser.eval("document.querySelectorAll('#main [data-name]').length").unwrap();
    assert!(rows.as_u64() > Some(3), "{rows}");
}
