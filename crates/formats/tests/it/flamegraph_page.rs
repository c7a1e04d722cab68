//! The flame graph in a real browser without a window: the page is opened with a state in its
//! address, as a link that somebody sent would be, and what it then shows is read from its
//! elements.

use crate::support::{export, scratch, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_formats::{Format, Opening, Options, Scatter, open_bytes};
use tare_profile::{SeriesId, SeriesInfo, ValueKind};

const STACKS: &str = "\
[main tid=1];app.Main.run;app.Order.price 60
[main tid=1];app.Main.run;app.Order.print;java.lang.String.format 20
[worker tid=2];app.Work.loop;app.Order.price 15
[worker tid=2];app.Work.loop 5
";

struct Browser {
    program: String,
    directory: PathBuf,
    page: PathBuf,
}

impl Browser {
    fn new(test: &str, page: &[u8]) -> Option<Browser> {
        let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
        let names = names.map(str::to_owned);
        let program = tool("the flame graph in Chromium", &names)?;
        let directory = scratch(test);
        let path = directory.join("page.html");
        std::fs::write(&path, page).unwrap();
        Some(Browser { program, directory, page: path })
    }

    fn run(&self, state: &str, arguments: &[&str]) -> String {
        let profile = format!("--user-data-dir={}", self.directory.join("profile").display());
        let mut all = vec!["--headless", "--no-sandbox", "--disable-gpu", &profile];
        all.extend(["--disable-background-networking", "--window-size=1200,700"]);
        all.extend(arguments);
        let address = format!("file://{}#{state}", self.page.display());
        let output = Command::new(&self.program).args(&all).arg(&address).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn open(&self, state: &str) -> Dom {
        Dom(self.run(state, &["--dump-dom"]))
    }
}

struct Dom(String);

impl Dom {
    /// The text of an element.
    fn text(&self, id: &str) -> &str {
        let (_, rest) = self.0.split_once(&format!("id=\"{id}\"")).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        rest.split_once("</").unwrap().0
    }

    fn canvas(&self, attribute: &str) -> &str {
        let (_, rest) = self.0.split_once("id=\"graph\"").unwrap();
        let tag = rest.split_once('>').unwrap().0;
        let (_, value) = tag.split_once(&format!("data-{attribute}=\"")).unwrap();
        value.split_once('"').unwrap().0
    }
}

fn page(options: Options<'_>) -> Vec<u8> {
    export(&open_bytes(STACKS.as_bytes()).unwrap(), Format::Html, options)
}

#[test]
fn search_zoom_threads_and_views_work() {
    let title = Options { title: "the <title> & more", ..Options::default() };
    let Some(browser) = Browser::new("page", &page(title)) else { return };
    let plain = browser.open("");
    assert_eq!(plain.canvas("frames"), "7", "{}", plain.0);
    assert_eq!((plain.canvas("zoom"), plain.canvas("view")), ("all", "top-down"));
    assert!(plain.text("status").starts_with("all — 100 samples"), "{}", plain.text("status"));
    assert_eq!(plain.text("title"), "the &lt;title&gt; &amp; more");

    // Nested matches count once, text and patterns are both understood, and so is a broken pattern.
    assert_eq!(browser.open("search=Order").text("matched"), "95.0 % matched");
    assert_eq!(browser.open("search=app").text("matched"), "100.0 % matched");
    assert_eq!(browser.open("search=price%7Cformat").text("matched"), "95.0 % matched");
    assert_eq!(browser.open("search=price(").text("matched"), "no match");

    let worker = browser.open("thread=worker");
    assert_eq!(worker.canvas("frames"), "3");
    assert!(worker.text("status").contains("20 samples"), "{}", worker.text("status"));

    // Four methods with a cost of their own, and their callers.
    let bottom_up = browser.open("view=bottom-up");
    assert_eq!((bottom_up.canvas("frames"), bottom_up.canvas("view")), ("8", "bottom-up"));

    // The way to a frame is a row of labels; the first is app.Main.run, the second app.Order.price.
    let zoomed = browser.open("zoom=0.1&root=bottom&theme=dark");
    assert_eq!((zoomed.canvas("zoom"), zoomed.canvas("frames")), ("app.Order.price", "1"));
    assert!(zoomed.text("status").contains("60 samples · 60.0 % of all"));
    assert!(zoomed.0.contains("data-theme=\"dark\""));
}

/// A file of a view that was zoomed, searched and turned round opens so; an address says otherwise.
#[test]
fn a_page_opens_as_it_was_seen() {
    let zoom = ["app.Main.run", "app.Order.print"].map(str::to_owned);
    let opens = Opening { zoom: &zoom, state: "root=bottom&search=format" };
    let Some(browser) = Browser::new("opens", &page(Options { opens, ..Options::default() }))
    else {
        return;
    };
    let seen = browser.open("");
    assert_eq!((seen.canvas("zoom"), seen.canvas("frames")), ("app.Order.print", "2"));
    assert_eq!(seen.text("matched"), "20.0 % matched");
    assert!(pressed(&seen, "flip"), "{}", seen.0);
    assert_eq!(browser.open("thread=worker").canvas("zoom"), "all");
}

/// The buttons say what is shown, and stand where the menu of series would.
#[test]
fn a_switch_leads_from_allocated_to_live() {
    let page = export(&crate::memory::memory(), Format::Html, Options::default());
    let Some(browser) = Browser::new("memory", &page) else { return };
    let ids = ["allocated", "live", "bytes", "objects"];
    let plain = browser.open("");
    assert_eq!(plain.text("path"), "alloc:allocated-bytes · 31.46 MB");
    assert_eq!(ids.map(|id| pressed(&plain, id)), [true, false, true, false]);
    let live = browser.open("series=live%3Alive-objects");
    assert_eq!(live.text("path"), "live:live-objects · 81,920 objects");
    assert_eq!(ids.map(|id| pressed(&live, id)), [false, true, false, true]);
    assert!(plain.0.contains("id=\"series-box\" hidden"), "the buttons are enough");
}

#[test]
fn buttons_choose_between_waiters_and_owners() {
    let mut profile = open_bytes(STACKS.as_bytes()).unwrap();
    let rows: Vec<_> = profile.series(SeriesId::new(0)).rows().collect();
    for name in ["lock", "owners"] {
        let series = profile.add_series(SeriesInfo::new(name, ValueKind::BlockedTime));
        rows.iter().for_each(|row| profile.series_mut(series).push(*row));
    }
    let options = Options { series: Some(SeriesId::new(1)), ..Options::default() };
    let Some(browser) = Browser::new("locks", &export(&profile, Format::Html, options)) else {
        return;
    };
    let ids = ["waiters", "owners"];
    let plain = browser.open("");
    assert_eq!(ids.map(|id| pressed(&plain, id)), [true, false]);
    let owners = browser.open("series=owners%3Ablocked-time");
    assert_eq!(ids.map(|id| pressed(&owners, id)), [false, true]);
    assert!(!plain.0.contains("aria-label=\"Waiters or owners\" hidden"), "{}", plain.0);
}

fn pressed(dom: &Dom, id: &str) -> bool {
    let (before, _) = dom.0.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, rest) = dom.0.split_at(before.rfind('<').unwrap());
    rest.split_once('>').unwrap().0.contains("aria-pressed=\"true\"")
}

#[test]
fn a_baseline_shows_what_changed() {
    let before = STACKS.replace("price 60", "price 20");
    let before = open_bytes(before.as_bytes()).unwrap();
    let options = Options { baseline: Some(&before), ..Options::default() };
    let Some(browser) = Browser::new("diff", &page(options)) else { return };
    let dom = browser.open("zoom=0.1");
    // 60 of 100 now, 20 of 60 then.
    let status = dom.text("status");
    assert!(status.contains("baseline 33.3 %, change +26.67 points"), "{status}");
    assert!(!status.contains("noise"), "{status}");
}

#[test]
fn what_may_be_chance_is_said_to_be() {
    let before = STACKS.replace("price 60", "price 20");
    let before = open_bytes(before.as_bytes()).unwrap();
    let status = |variance: f64| {
        let scatter = Some(Scatter { variances: [variance; 2], deviations: 3.0 });
        let options = Options { baseline: Some(&before), scatter, ..Options::default() };
        let page = page(options);
        let text = String::from_utf8_lossy(&page).into_owned();
        assert!(text.contains(&format!("\"scatter\":[{variance:e},{variance:e},3]")), "{text}");
        let browser = Browser::new(&format!("noise-{variance}"), &page)?;
        Some(browser.open("zoom=0.1").text("status").to_owned())
    };
    // 20 of 60 samples are off by 0.07 of the whole, 60 of 100 by 0.08, one deviation each.
    let Some(alone) = status(1.0) else { return };
    assert!(alone.ends_with("within noise"), "{alone}");
    let thrice = status(0.1).unwrap();
    assert!(thrice.contains("+26.67 points") && !thrice.contains("noise"), "{thrice}");
}

#[test]
fn the_page_is_drawn_and_loads_nothing() {
    let page = page(Options::default());
    // The name of a format is no address that is asked.
    let text = String::from_utf8_lossy(&page).replace("http://www.w3.org/2000/svg", "");
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("src="));
    let Some(browser) = Browser::new("picture", &page) else { return };
    let picture = browser.directory.join("page.png");
    browser.run("theme=light", &[&format!("--screenshot={}", picture.display())]);
    assert!(is_colourful(&picture), "{} is blank", picture.display());
}

/// A blank page of this size packs to a few kilobytes; bars with text do not.
fn is_colourful(picture: &Path) -> bool {
    std::fs::metadata(picture).is_ok_and(|file| file.len() > 12_000)
}
