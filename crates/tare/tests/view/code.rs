//! The page of a method's source, in a real browser: figures of lines are those of `tare report`, and
//! nothing is read that no method of the recording is from. What `--redact` leaves out.

use super::page::{go, idle, is_clean, page, shot};
use super::support::{Directory, SECOND, Served, report, shop};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tare_browser::Media;
use tare_profile::{Frame, FrameId, Method, Profile, Row, SeriesInfo, Thread, TimeAxis, ValueKind};

const TEXT: &str = "package com.acme;\n\nclass Calc {\n    int add(int a) {\n        return more(a) + \
                    1; // </td><img src=x>\n    }\n\n    int more(int a) {\n        return a * 2;\n    \
                    }\n}\n";

/// A method that is on line 5 and calls one that is on line 9, and one whose file is a secret.
fn lined() -> Profile {
    let mut profile = Profile::new();
    profile.run.main_class = "com.acme.Calc".to_owned();
    profile.run.duration = SECOND;
    let mut frame = |class: &str, name: &str, file: &str, line: u32| -> FrameId {
        let [class, name, file] = [class, name, file].map(|text| profile.strings.intern(text));
        let method = Method { class, name, file, ..Method::default() };
        let method = profile.methods.intern(method);
        profile.frames.intern(Frame { line: Some(line), ..Frame::of(method) })
    };
    let add = frame("com.acme.Calc", "add", "Calc.java", 5);
    let more = frame("com.acme.Calc$Inner", "more", "Calc.java", 9);
    let evil = frame("com.acme.Evil", "run", "../../../Secret.java", 1);
    let name = profile.strings.intern("main");
    let thread = profile.threads.push(Thread { name, ..Thread::default() });
    let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
    let cpu = profile.add_series(info.with_period(10_000_000, ValueKind::CpuTime));
    for (stack, value) in [(vec![add], 30), (vec![add, more], 50), (vec![evil], 20)] {
        let context = profile.contexts.stack(stack);
        profile.series_mut(cpu).push(Row::new(context, thread, value * 1_000_000).at(5));
    }
    profile
}

#[test]
fn figures_stand_beside_the_lines_of_a_method() {
    let directory = Directory::new("code");
    let file = directory.record("calc.tare", &lined());
    let folder = directory.0.join("src/com/acme");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("Calc.java"), TEXT).unwrap();
    fs::write(directory.0.join("Secret.java"), "secret text\n").unwrap();
    let source = directory.0.join("src");
    let served = Served::of(&[Path::new("--source"), &source, &file]);
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, "/source?method=com.acme.Calc.add");
    let row = |line: u32| format!("document.querySelector('tr[data-line=\"{line}\"]')");
    browser.wait(&row(5)).unwrap();
    let lines = report(&file, &["--by", "line"]);
    for (line, name) in [(5, "com.acme.Calc.add:5"), (9, "com.acme.Calc$Inner.more:9")] {
        let told = lines["methods"].as_array().unwrap().iter().find(|row| row["name"] == name);
        let told = told.unwrap_or_else(|| panic!("{name} is not in {lines}"));
        let shown = browser
            .eval(&format!("(row => [+row.dataset.self, +row.dataset.total])({})", row(line)))
            .unwrap();
        assert_eq!(shown, json!([told["self"], told["total"]]), "{line}");
    }
    // What is on no stack has no figure, and a text is a text.
    assert_eq!(browser.eval(&format!("{}.dataset.self ?? null", row(4))).unwrap(), Value::Null);
    let text = browser.eval(&format!("{}.textContent", row(5))).unwrap();
    assert!(text.as_str().unwrap().contains("// </td><img src=x>"), "{text}");
    assert_eq!(browser.eval("document.querySelectorAll('img').length").unwrap(), 0);
    shot(&mut browser, "source");
    browser.media(&Media::Dark).unwrap();
    idle(&mut browser);
    shot(&mut browser, "source-dark");
    browser.size(420, 800).unwrap();
    idle(&mut browser);
    let wide = browser.eval("document.documentElement.scrollWidth").unwrap();
    assert!(wide.as_u64() <= Some(420), "{wide}");
    shot(&mut browser, "source-420");
    is_clean(&mut browser, &served);

    // A name in a recording leads nowhere else.
    let token = browser.eval("sessionStorage.getItem('tare-token')").unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", token.as_str().unwrap());
    let (status, text) = served.ask("GET /api/source?method=com.acme.Evil.run", &bearer);
    assert_eq!(status, 404, "{text}");
    assert!(text.contains("neither the source") && !text.contains("secret text"), "{text}");
    assert_eq!(served.ask("GET /api/source?method=none", &bearer).0, 404);
}

#[test]
fn what_is_redacted_is_on_no_page_and_in_no_file() {
    let directory = Directory::new("redact");
    let file = directory.record("shop.tare", &shop());
    let all = |served: &Served| {
        let bearer = format!("Authorization: Bearer {}\r\n", served.login());
        let (status, run) = served.ask("GET /api/run", &bearer);
        assert_eq!(status, 200, "{run}");
        let mut texts = vec![run];
        for question in
            ["overview", "export?format=html", "export?format=tare", "export?format=json"]
        {
            let (status, text) = served.ask(&format!("GET /api/{question}"), &bearer);
            if status == 200 {
                texts.push(text);
            }
        }
        assert!(texts.len() >= 3, "{}", texts.len());
        texts.concat()
    };
    let open = all(&Served::start(&file));
    assert!(open.contains("-Dpassword") && !open.contains("hunter2"));
    let redacted = all(&Served::of(&[Path::new("--redact"), &file]));
    assert!(!redacted.contains("-Dpassword") && !redacted.contains("hunter2"));
    assert!(redacted.contains("com.acme.Shop"));
}
