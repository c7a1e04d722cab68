//! `tare report`, `tare diff` and `tare export` of allocation, as a user runs them, on recordings
//! made here: a shop that allocates much, keeps little, and leaks orders.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tare_profile::facts::{Bytes, keys};
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, Frame, Method, MethodKind, Profile, Row, SeriesId,
    SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind,
};
use tare_recording::Writer;

const SECOND: u64 = 1_000_000_000;
const INTERVAL: u64 = 512 << 10;

/// A directory of its own for each test, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("tare-memory-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn record(&self, name: &str, profile: &Profile) -> String {
        let path = self.0.join(name);
        Writer::create(&path).unwrap().finish(profile).unwrap();
        text(&path)
    }

    fn path(&self, name: &str) -> String {
        text(&self.0.join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn tare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tare")).args(arguments).output().unwrap()
}

fn ok(arguments: &[&str]) -> String {
    let output = tare(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(&[arguments, &["--format", "json"]].concat())).unwrap()
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

struct Shop {
    profile: Profile,
    /// Allocated bytes and objects, live bytes and objects.
    series: [SeriesId; 4],
    thread: ThreadId,
    seed: u64,
}

impl Shop {
    fn new(seed: u64) -> Self {
        let mut profile = Profile::new();
        profile.run.main_class = "com.acme.Shop".to_owned();
        profile.run.duration = 60 * SECOND;
        let facts = &mut profile.run.facts;
        facts.set(keys::ALLOCATION_INTERVAL, &Bytes(INTERVAL));
        facts.set(keys::COLLECTIONS, &59);
        facts.set(keys::LIVE_UNPROVEN_BYTES, &Bytes(2_000_000));
        let name = profile.strings.intern("worker-1");
        let thread = profile.threads.push(Thread { name, ..Thread::default() });
        let mut add = |name: &str, kind: ValueKind| {
            let info = SeriesInfo::new(name, kind).with_time(TimeAxis::Exact);
            profile.add_series(info.with_period(INTERVAL, ValueKind::AllocatedBytes))
        };
        let series = [
            add("alloc", ValueKind::AllocatedBytes),
            add("alloc", ValueKind::AllocatedObjects),
            add("live", ValueKind::LiveBytes),
            add("live", ValueKind::LiveObjects),
        ];
        Shop { profile, series, thread, seed }
    }

    fn stack(&mut self, methods: &[(&str, &str, u32)], class: &str) -> ContextId {
        let mut at = ContextId::ROOT;
        for (owner, name, line) in methods {
            let file = owner.rsplit('.').next().unwrap_or_default().to_owned() + ".java";
            let strings = &mut self.profile.strings;
            let (class, name, file) =
                (strings.intern(owner), strings.intern(name), strings.intern(&file));
            let method = Method { class, name, file, ..Method::default() };
            let method = self.profile.methods.intern(method);
            let frame = Frame { line: Some(*line), ..Frame::of(method) };
            let frame = self.profile.frames.intern(frame);
            at = self.profile.contexts.child(at, frame);
        }
        let class = self.profile.strings.intern(class);
        let method = Method { kind: MethodKind::Class, class, ..Method::default() };
        let method = self.profile.methods.intern(method);
        let frame = self.profile.frames.intern(Frame::of(method));
        self.profile.contexts.child(at, frame)
    }

    fn push(&mut self, which: usize, context: ContextId, time: u64, value: i64) {
        let row = Row::new(context, self.thread, value).at(time);
        self.profile.series_mut(self.series[which]).push(row);
    }

    /// So many samples of objects of one size, at random times.
    fn allocate(&mut self, context: ContextId, samples: u64, size: u64) {
        let (bytes, objects) = weights(size);
        for _ in 0..samples {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let time = (self.seed >> 33) % (60 * SECOND);
            self.push(0, context, time, bytes);
            self.push(1, context, time, objects);
        }
    }

    /// Objects that are found alive, one a second.
    fn keep(&mut self, context: ContextId, seconds: std::ops::Range<u64>, size: u64) {
        let (bytes, objects) = weights(size);
        let survivors = self.profile.events_of(&EventKind::survivor());
        for second in seconds {
            self.push(2, context, second * SECOND, bytes);
            self.push(3, context, second * SECOND, objects);
            let time = (second - 1) * SECOND;
            let event = Event { time, thread: self.thread, context, duration: 0 };
            let number = |value: u64| FieldValue::Integer(i64::try_from(value).unwrap());
            let objects = FieldValue::Real(objects as f64);
            let bytes = FieldValue::Integer(bytes);
            let fields = [number(size), bytes, objects, number(60 - second), number(0)];
            self.profile.events_mut(survivors).push(event, &fields);
        }
    }
}

/// What a sample of an object of a size stands for.
fn weights(size: u64) -> (i64, i64) {
    let chance = -(-(size as f64) / INTERVAL as f64).exp_m1();
    ((size as f64 / chance) as i64, (1.0 / chance) as i64)
}

const SELL: (&str, &str, u32) = ("com.acme.shop.orders.Shop", "sell", 20);

/// `buffers` is how many samples the largest site has.
fn shop(seed: u64, buffers: u64) -> Profile {
    let mut shop = Shop::new(seed);
    let render = ("com.acme.shop.orders.Invoice", "render", 77);
    let buffer = shop.stack(&[SELL, render, ("java.util.Arrays", "copyOf", 35)], "byte[]");
    let cache = ("com.acme.shop.orders.OrderCache", "remember", 42);
    let leak = shop.stack(&[SELL, cache], "com.acme.shop.orders.Order");
    let node =
        shop.stack(&[SELL, cache, ("java.util.HashMap", "newNode", 5)], "java.util.HashMap$Node");
    let sum = ("com.acme.shop.orders.Statistics", "add", 8);
    let boxes = shop.stack(&[SELL, sum, ("java.lang.Integer", "valueOf", 1)], "java.lang.Integer");
    let start = shop.stack(&[SELL, ("com.acme.shop.Config", "read", 5)], "char[]");
    shop.allocate(buffer, buffers, 2000);
    shop.allocate(boxes, 800, 16);
    shop.allocate(leak, 300, 64);
    shop.allocate(node, 100, 32);
    shop.allocate(start, 10, 4000);
    shop.keep(leak, 1..60, 64);
    shop.keep(node, 20..60, 32);
    shop.keep(start, 1..10, 4000);
    shop.profile
}

#[test]
fn the_first_screen_says_how_much_who_and_what_stays() {
    let directory = Directory::new("page");
    let file = directory.record("shop.tare", &shop(1, 2000));
    let page = ok(&["report", &file]);
    assert_has(
        &page,
        &[
            "allocated 28.1 MB/s, 513.9 k objects/s (1.69 GB; 3,210 samples, one per 512 KiB)",
            "alive 56.6 MB in 1.1 M objects after 59 collections, growing steadily 62.3 MB/min",
            "▸ likely a leak: com.acme.shop.orders.Order from",
            "▸ boxing: 24.9 % of what is allocated is numbers as objects",
            "± 3210 samples: the first line of what is allocated is right to ± 1.7 points",
            "share    bytes  objects  lives on  What is allocated\n",
            "   62.3 %  1.05 GB  524.0 k     0.0 %  byte[] in",
            "byte[] in com.acme.shop.orders.Invoice.render:77 by java.util.Arrays.copyOf",
            "share    bytes  objects  GCs old   per min  What stays\n",
            "   54.6 %  30.9 MB  483.3 k    30…59  +31.5 MB  com.acme.shop.orders.Order in",
            "com.acme.shop.orders.Order in com.acme.shop.orders.OrderCache.remember:42",
        ],
    );
    let first: Vec<&str> = page.lines().take(24).collect();
    let stays = first.iter().position(|line| line.ends_with("What stays")).expect("is there");
    assert!(first[stays + 1].contains("OrderCache.remember:42"), "{page}");
    assert!(!page.contains("takes itself"), "a class is no method\n{page}");
}

#[test]
fn lists_are_by_what_is_asked_for() {
    let directory = Directory::new("by");
    let file = directory.record("shop.tare", &shop(1, 2000));
    let names = |by: &str| {
        let report = json(&["report", &file, "--by", by]);
        let sites = report["memory"]["sites"].as_array().unwrap().clone();
        let text = |site: &Value| format!("{} {}", site["class"], site["place"]);
        sites.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(names("class")[0], "\"byte[]\" null");
    assert_eq!(names("line")[0], "null \"java.util.Arrays.copyOf:35\"");
    assert_eq!(names("method")[0], "null \"java.util.Arrays.copyOf\"");
    assert_eq!(names("site")[0], "\"byte[]\" \"com.acme.shop.orders.Invoice.render:77\"");
    let classes = ok(&["report", &file, "--by", "class", "--top", "1"]);
    assert_has(&classes, &["What is allocated, by class (first 1 of 5; --top N)", "  byte[]\n"]);
}

#[test]
fn a_part_of_the_run_has_what_lived_at_its_end() {
    let directory = Directory::new("time");
    let file = directory.record("shop.tare", &shop(1, 2000));
    let live = |time: &[&str]| {
        let report = json(&[&["report", &file, "--metric", "live"], time].concat());
        let memory = &report["memory"];
        assert_eq!(memory["live"]["bytes"], report["total"], "list and tree agree");
        (memory["live"]["bytes"].as_i64().unwrap(), memory["sites"].clone())
    };
    let (whole, sites) = live(&[]);
    let one = weights(64).0;
    let (half, then) = live(&["--time", "10s..19500ms"]);
    assert_eq!(half, 19 * one + 9 * weights(4000).0);
    assert_eq!(live(&["--time", "0..19500ms"]).0, half, "whenever it begins");
    assert_eq!(live(&["--time", "59s..60s"]).0, whole);
    let of = |sites: &Value| {
        let all = sites.as_array().unwrap();
        all.iter().find(|site| site["live_samples"].as_u64() > Some(10)).unwrap().clone()
    };
    assert_eq!(of(&sites)["age"]["oldest"], 59);
    assert_eq!(of(&then)["age"], Value::Null);
}

#[test]
fn a_method_or_a_class_has_callers() {
    let directory = Directory::new("around");
    let file = directory.record("shop.tare", &shop(1, 2000));
    let around = ok(&["report", &file, "--method", "byte[]"]);
    assert_has(&around, &["Called by", "java.util.Arrays.copyOf"]);
    let around = ok(&["report", &file, "--method", "OrderCache.remember"]);
    assert_has(&around, &["Calls", "com.acme.shop.orders.Order", "com.acme.shop.orders.Shop.sell"]);
}

#[test]
fn hprofs_sites_have_live_and_allocated_figures_and_traces() {
    let directory = Directory::new("hprof");
    let file = directory.record("shop.tare", &shop(1, 2000));
    let listing = ok(&["report", &file, "--format", "hprof-text"]);
    let site = listing.lines().find(|line| line.ends_with("com.acme.shop.orders.Order")).unwrap();
    let figures: Vec<&str> = site.split_whitespace().collect();
    let (bytes, objects) = weights(64);
    let expected = [59 * bytes, 59 * objects, 300 * bytes, 300 * objects];
    assert_eq!(figures[3..7], expected.map(|figure| figure.to_string()), "{site}");
    let trace = format!("TRACE {}:\n\tcom.acme.shop.orders.OrderCache.remember(", figures[7]);
    assert_has(&listing, &[&trace, "SITES BEGIN (ordered by live bytes)", "SITES END"]);
    assert!(!listing.contains("CPU SAMPLES"), "{listing}");
}

#[test]
fn a_comparison_tells_chance_from_growth() {
    let directory = Directory::new("diff");
    let old = directory.record("old.tare", &shop(1, 2000));
    let same = directory.record("same.tare", &shop(2, 2030));
    let more = directory.record("more.tare", &shop(3, 3000));
    let status = |new: &str, metric: &str| {
        let arguments = ["diff", &old, new, "--metric", metric, "--threshold", "1%"];
        tare(&arguments).status.code()
    };
    assert_eq!(status(&same, "allocated-bytes"), Some(0), "1.5 % is chance");
    assert_eq!(status(&more, "allocated-bytes"), Some(3));
    assert_eq!(status(&same, "live-bytes"), Some(0));
    let report = json(&["diff", &old, &more, "--metric", "allocated-bytes"]);
    assert_eq!((&report["noise"], &report["may_be_chance"]), (&"samples".into(), &false.into()));
    let page = ok(&["diff", &old, &more, "--metric", "allocated-bytes"]);
    assert_has(&page, &["com.acme.shop.orders.Invoice.render:77 › byte[]"]);
    let mut leak = Shop::new(4);
    let cache = ("com.acme.shop.orders.OrderCache", "remember", 42);
    let order = leak.stack(&[SELL, cache], "com.acme.shop.orders.Order");
    leak.allocate(order, 300, 64);
    (0..10).for_each(|_| leak.keep(order, 1..60, 64));
    let leak = directory.record("leak.tare", &leak.profile);
    assert_eq!(status(&leak, "live-bytes"), Some(3));
}

#[test]
fn exports_carry_all_of_it() {
    let directory = Directory::new("export");
    let profile = shop(1, 2000);
    let file = directory.record("shop.tare", &profile);
    for ending in ["pb.gz", "jfr"] {
        let out = directory.path(&format!("out.{ending}"));
        ok(&["export", &file, "-o", &out]);
        let [old, new] = [&file, &out].map(|file| json(&["report", file])["memory"].clone());
        for what in ["allocated", "live"] {
            assert_eq!(new[what], old[what], "{what} of {ending}");
        }
        assert_eq!(new["sites"][0]["class"], "byte[]", "{ending}");
    }
    for (metric, which) in [("allocated-bytes", 0), ("live-objects", 3)] {
        let out = directory.path("out.collapsed");
        ok(&["export", &file, "--metric", metric, "-o", &out]);
        let lines = std::fs::read_to_string(&out).unwrap();
        let sum = |line: &str| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap();
        let series = SeriesId::new(which);
        assert_eq!(lines.lines().map(sum).sum::<i64>(), profile.series(series).total(), "{metric}");
    }
}
