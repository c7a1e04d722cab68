//! `tare report` and `tare diff` as a user runs them, on recordings made here.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tare_profile::facts::keys;
use tare_profile::{
    ContextId, Event, EventKind, Frame, FrameId, LockFields, LossKind, Method, MethodKind, Profile,
    Row, SeriesId, SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind,
};
use tare_recording::{LoadOptions, Recording, Writer};

const SECOND: u64 = 1_000_000_000;

/// A directory of its own for each test, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("tare-profiles-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn record(&self, name: &str, profile: &Profile) -> PathBuf {
        let path = self.0.join(name);
        Writer::create(&path).unwrap().finish(profile).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tare")).args(arguments).output().unwrap()
}

/// Standard output of a run that must succeed.
fn ok(arguments: &[&str]) -> String {
    let output = tare(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

fn frame(profile: &mut Profile, class: &str, name: &str, line: u32) -> FrameId {
    let file = class.rsplit('.').next().unwrap_or_default().to_owned() + ".java";
    let module = if class.starts_with("java.") { "java.base" } else { "shop.jar" };
    let mut text = |text: &str| profile.strings.intern(text);
    let (class, name, file, module) = (text(class), text(name), text(&file), text(module));
    let method = Method { class, name, file, module, ..Method::default() };
    let method = profile.methods.intern(method);
    profile.frames.intern(Frame { line: Some(line), ..Frame::of(method) })
}

/// A shop with two threads: 100 samples in ten seconds, allocations, one lock, one loss.
fn shop(hash: i64) -> Profile {
    let mut profile = Profile::new();
    profile.run.main_class = "com.acme.Shop".to_owned();
    profile.run.jdk = "25.0.3".to_owned();
    profile.run.started = Some(907_760_290 * 1_000_000_000);
    profile.run.duration = 10 * SECOND;
    profile.run.lose(LossKind::Failed, "stacks", 7, "in a prologue");
    let main = frame(&mut profile, "com.acme.Shop", "main", 10);
    let sell = frame(&mut profile, "com.acme.Shop", "sell", 20);
    let get = frame(&mut profile, "java.util.HashMap", "get", 500);
    let key = frame(&mut profile, "com.acme.Key", "hashCode", 5);
    let log = frame(&mut profile, "com.acme.log.Log", "print", 7);
    let mut thread = |name: &str| {
        let name = profile.strings.intern(name);
        profile.threads.push(Thread { name, ..Thread::default() })
    };
    let (worker, logger) = (thread("worker-1"), thread("logger"));
    let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let cpu = profile.add_series(info.with_period(10_000_000, ValueKind::CpuTime));
    let mut add = |stack: &[FrameId], thread: ThreadId, value: i64, time: u64| {
        let context = profile.contexts.stack(stack.iter().copied());
        profile.series_mut(cpu).push(Row::new(context, thread, value).at(time));
        context
    };
    let hashing = add(&[main, sell, get, key], worker, hash, SECOND);
    add(&[main, sell, get], worker, 10, 2 * SECOND);
    add(&[main, log], logger, 30, 8 * SECOND);
    let kind = MethodKind::Class;
    let class = profile.strings.intern("byte[]");
    let class = profile.methods.intern(Method { kind, class, ..Method::default() });
    let class = profile.frames.intern(Frame::of(class));
    let bytes = profile.add_series(SeriesInfo::new("alloc", ValueKind::AllocatedBytes));
    let allocation = profile.contexts.child(hashing, class);
    profile.series_mut(bytes).push(Row::new(allocation, worker, 4096));
    lock(&mut profile, hashing, worker);
    profile
}

fn lock(profile: &mut Profile, context: ContextId, thread: ThreadId) {
    let locks = profile.events_of(&EventKind::lock());
    let class = profile.strings.intern("java.lang.Object");
    let event = Event { time: 5, duration: 20_000_000, thread, context };
    let fields = LockFields { class, owner: thread, ..LockFields::default() };
    profile.events_mut(locks).push(event, &fields.values());
}

#[test]
fn the_page_has_findings_lists_and_the_tree() {
    let directory = Directory::new("page");
    let file = directory.record("shop.tare", &shop(60));
    let page = ok(&["report", text(&file)]);
    assert_has(
        &page,
        &[
            "com.acme.Shop, JDK 25.0.3, measured for 10 s",
            "100 of cpu samples, one per 10.0 ms",
            "▸ com.acme.Key.hashCode itself takes 60.0 %",
            "− failed 7 × stacks: in a prologue",
            "± only 100 samples",
            "  60.0 %   60.0 %          60  com.acme.Key.hashCode",
            "   0.0 %  100.0 %         100  com.acme.Shop.main",
            "  70.0 %    0.0 %         70  ├─com.acme.Shop.sell",
            "  70.0 %   10.0 %         70  │ java.util.HashMap.get",
        ],
    );
    assert!(!page.contains('\u{1b}'), "no colour in pipes");
    let order = ["Findings", "takes itself\n", "takes with all it called\n", "Call tree"];
    let places: Vec<usize> = order.iter().map(|part| page.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?} in\n{page}");
}

#[test]
fn views_and_filters() {
    let directory = Directory::new("views");
    let file = directory.record("shop.tare", &shop(60));
    let report = |more: &[&str]| ok(&[&["report", text(&file)], more].concat());
    assert_has(
        &report(&["--method", "HashMap.get"]),
        &[
            "java.util.HashMap.get\n",
            "Called by\n   70.0 %",
            "com.acme.Shop.sell",
            "Calls\n   60.0 %",
        ],
    );
    assert_has(
        &report(&["--threads"]),
        &["   70.0 %          70  worker-1", "85.7 % in com.acme.Key"],
    );
    assert_has(
        &report(&["--by", "package"]),
        &["Packages, by", "60.0 %  100.0 %         100  com.acme\n"],
    );
    assert_has(&report(&["--by", "jar"]), &["shop.jar", "java.base"]);
    assert_has(&report(&["--by", "line"]), &["com.acme.Key.hashCode:5"]);
    assert_has(&report(&["--by", "loader"]), &["[unknown loader]"]);
    assert_has(&report(&["--time", "5s..9s"]), &["30 of cpu samples", "com.acme.log.Log.print"]);
    assert_has(&report(&["--thread", "work*"]), &["70 of cpu samples"]);
    assert_has(&report(&["--root", "Shop.sell"]), &["70 of cpu samples"]);
    assert_has(&report(&["--metric", "alloc"]), &["allocated 409 B/s (4.10 kB)", "byte[]"]);
    assert_has(&report(&["--bottom-up"]), &["Callers, from the hot methods up"]);
    assert!(!report(&["--hide-jdk"]).contains("HashMap"));
    assert_has(&report(&["--min-share", "20%"]), &["what is below 20.0 % is folded"]);
    assert_has(&report(&["--min-share", "50%", "--full"]), &["[1 smaller]"]);
    assert!(!report(&["--min-share", "50%"]).contains("smaller"), "30 % is below 50");
}

#[test]
fn exact_profiles_show_calls_beside_times() {
    let directory = Directory::new("exact");
    let mut profile = Profile::new();
    let outer = frame(&mut profile, "com.acme.Shop", "sell", 1);
    let inner = frame(&mut profile, "com.acme.Key", "hashCode", 1);
    let times = profile.add_series(SeriesInfo::new("exact", ValueKind::WallTime));
    let calls = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
    for (stack, time, count) in
        [(&[outer][..], 250_000_000, 10), (&[outer, inner], 750_000_000, 12_345)]
    {
        let context = profile.contexts.stack(stack.iter().copied());
        profile.series_mut(times).push(Row::new(context, ThreadId::UNKNOWN, time));
        profile.series_mut(calls).push(Row::new(context, ThreadId::UNKNOWN, count));
    }
    let file = directory.record("exact.tare", &profile);
    assert_has(
        &ok(&["report", text(&file)]),
        &[
            "1.00 s of exact wall-time",
            "   itself    total       value       calls  per call\n",
            "  75.0 %   75.0 %      750 ms      12,345   60.8 µs  com.acme.Key.hashCode\n",
            "  25.0 %  100.0 %      250 ms          10   25.0 ms  com.acme.Shop.sell\n",
            "    total   itself      value       calls\n",
            "  75.0 %   75.0 %     750 ms      12,345  └─com.acme.Key.hashCode\n",
            "include the probes' own cost",
        ],
    );
    let json = ok(&["report", text(&file), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["methods"][0]["invocations"], 12_345);
    let listing = ok(&["report", text(&file), "--format", "hprof-text"]);
    assert_has(
        &listing,
        &[
            "CPU TIME (ms) BEGIN (total = 1000)",
            "   1 75.00% 75.00%   12345 300000 com.acme.Key.hashCode",
        ],
    );
}

#[test]
fn json_is_for_scripts() {
    let directory = Directory::new("json");
    let file = directory.record("shop.tare", &shop(60));
    let json = ok(&["report", text(&file), "--format", "json", "--method", "get"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["total"], 100);
    assert_eq!(json["methods"][0]["name"], "com.acme.Key.hashCode");
    assert_eq!(json["methods"][0]["self_share"], 0.6);
    assert_eq!(json["around"][0]["callers"][0]["name"], "com.acme.Shop.sell");
    assert_eq!(json["threads"][0]["name"], "worker-1");
    assert_eq!(json["run"]["losses"][0]["count"], 7);
    let own: i64 =
        json["tree"].as_array().unwrap().iter().map(|n| n["self"].as_i64().unwrap()).sum();
    assert_eq!(own, 100);
}

#[test]
fn hprofs_listing_has_its_sections() {
    let directory = Directory::new("hprof");
    let file = directory.record("shop.tare", &shop(60));
    let listing = ok(&["report", text(&file), "--format", "hprof-text"]);
    assert_has(
        &listing,
        &[
            "JAVA PROFILE 1.0.1, created Wed Oct  7 11:38:10 1998",
            "THREAD START (id = 200001, name=\"worker-1\")",
            "TRACE 300000:\n\tcom.acme.Key.hashCode(Key.java:5)\n\tjava.util.HashMap.get(HashMap.java:500)\n",
            "SITES BEGIN (ordered by allocated bytes) Wed Oct  7 11:38:10 1998",
            "   1 100.00% 100.00%         0       0      4096       0 300000 byte[]\nSITES END",
            "CPU SAMPLES BEGIN (total = 100) Wed Oct  7 11:38:10 1998",
            "rank   self  accum   count trace method",
            "   1 60.00% 60.00%      60 300000 com.acme.Key.hashCode",
            "   2 30.00% 90.00%      30 300001 com.acme.log.Log.print",
            "CPU SAMPLES END",
            "MONITOR TIME BEGIN (total = 20 ms)",
            "   1 100.00% 100.00%       1 300000 java.lang.Object (Java)\nMONITOR TIME END",
        ],
    );
}

#[test]
fn stacks_that_are_cut_to_the_same_trace_are_one_line() {
    let directory = Directory::new("cut");
    let file = directory.record("shop.tare", &shop(60));
    let listing = ok(&["report", text(&file), "--format", "hprof-text", "--depth", "1"]);
    assert_has(&listing, &["TRACE 300000:\n\tcom.acme.Key.hashCode(Key.java:5)\nTRACE 300001:"]);
    let mut deep = shop(60);
    let frame = frame(&mut deep, "com.acme.Key", "hashCode", 5);
    let context = deep.contexts.stack([frame, frame]);
    deep.series_mut(tare_profile::SeriesId::new(0))
        .push(Row::new(context, ThreadId::UNKNOWN, 40).at(1));
    let file = directory.record("deep.tare", &deep);
    let listing = ok(&["report", text(&file), "--format", "hprof-text", "--depth", "1"]);
    assert_has(&listing, &["   1 71.43% 71.43%     100 300000 com.acme.Key.hashCode\n"]);
}

/// Many samples of the shop, each at a moment of its own, as a sampler takes them.
fn busy_shop(hash: usize) -> Profile {
    let mut profile = shop(0);
    let contexts: Vec<ContextId> = {
        let rows = profile.series(SeriesId::new(0)).rows();
        rows.map(|row| row.context).collect()
    };
    let kind = ValueKind::CpuTime;
    let info = SeriesInfo::new("cpu", kind.clone()).with_time(TimeAxis::Exact);
    let cpu = profile.add_series(info.with_period(1_000_000, kind));
    for (context, count) in contexts.into_iter().zip([hash, 400, 1200]) {
        for number in 0..count {
            // By the golden ratio, so that they are spread evenly.
            let time = (number as f64 * 0.618_033_988_75).fract() * 10.0 * SECOND as f64;
            let row = Row::new(context, ThreadId::UNKNOWN, 1_000_000).at(time as u64);
            profile.series_mut(cpu).push(row);
        }
    }
    profile
}

#[test]
fn diffs_tell_growth_and_end_by_it() {
    let directory = Directory::new("diff");
    let old = directory.record("old.tare", &busy_shop(2400));
    let new = directory.record("new.tare", &busy_shop(3600));
    let (old, new) = (text(&old), text(&new));
    let page = ok(&["diff", old, new]);
    assert_has(
        &page,
        &[
            "5.20 s  +30.0 %\n",
            "Regressions\n",
            "+30.0 %",
            "+50.0 %  com.acme.Key.hashCode\n",
            "overlap 90.8 %",
        ],
    );
    assert_has(&page, &["Improvements\n  none worth a line"]);
    assert_has(&ok(&["diff", new, old]), &["Regressions\n  none worth a line", "-33.3 %"]);
    let status = |more: &[&str]| tare(&[&["diff", old, new], more].concat()).status.code();
    assert_eq!(status(&["--threshold", "20%"]), Some(3));
    // It is less than what it surely is.
    assert_eq!(status(&["--threshold", "28%"]), Some(0));
    assert_has(&ok(&["diff", old, new, "--threshold", "28%"]), &["is within noise of it"]);
    assert_eq!(status(&["--threshold", "30%"]), Some(0));
    // Of equal wholes, hashing has 69.2 % instead of 60.
    assert_eq!(status(&["--threshold", "10%", "--normalise"]), Some(0));
    assert_eq!(status(&["--threshold", "5%", "--normalise"]), Some(3));
    let output = tare(&["diff", old, new, "--format", "json", "--threshold", "5%"]);
    assert_eq!(output.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (json["exceeded"].as_bool(), json["new"].as_i64()),
        (Some(true), Some(5_200_000_000))
    );
    let first = &json["methods"][0];
    assert_eq!(first["name"], "com.acme.Key.hashCode");
    assert_eq!(first["self"]["new"], 3_600_000_000_i64);
    assert_eq!((&first["may_be_chance"], &json["noise"]), (&false.into(), &"samples".into()));
    let within = |at: usize| first["self_change_within"][at].as_f64().unwrap();
    assert!(within(0) > 0.2 && within(0) < 0.3 && within(1) > 0.3, "{first}");
    let log =
        json["methods"].as_array().unwrap().iter().find(|m| m["name"] == "com.acme.log.Log.print");
    assert_eq!(log.unwrap()["may_be_chance"], true);
}

/// A hundred samples more or less tell nothing, though a third more of them were hashing.
#[test]
fn chance_exceeds_no_threshold() {
    let directory = Directory::new("chance");
    let old = directory.record("old.tare", &busy_shop(60));
    let new = directory.record("new.tare", &busy_shop(80));
    let (old, new) = (text(&old), text(&new));
    let page = ok(&["diff", old, new, "--threshold", "1%"]);
    assert_has(
        &page,
        &["+1.2 %, within noise", "+33.3 % ≈com.acme.Key.hashCode", "≈ within the samples'"],
    );
    let json = ok(&["diff", old, new, "--threshold", "1%", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["exceeded"], &json["may_be_chance"]), (&false.into(), &true.into()));
    assert_eq!(json["methods"][0]["may_be_chance"], true);
    // The flame graph knows how much is chance.
    let html = directory.0.join("x.html");
    let output = tare(&["export", new, "--baseline", old, "-o", text(&html)]);
    assert!(output.status.success());
    assert_has(&std::fs::read_to_string(html).unwrap(), &["\"scatter\":["]);
}

/// Bytecodes do not scatter, so the first context that differs is named, and what it may come from.
#[test]
fn counts_that_differ_are_traced_to_a_context() {
    let directory = Directory::new("first");
    let record = |name: &str, inner: i64, jdk: &str| {
        let mut profile = Profile::new();
        profile.run.jdk = jdk.to_owned();
        // Where the agent lies is no difference of the programs.
        let agent = format!("-agentpath:/tmp/{name}/libtare_agent.so");
        profile.run.command_line = ["java", &agent, "Shop"].map(str::to_owned).to_vec();
        let main = frame(&mut profile, "com.acme.Shop", "main", 1);
        let sell = frame(&mut profile, "com.acme.Shop", "sell", 1);
        let init = frame(&mut profile, "com.acme.Key", "<clinit>", 1);
        let key = frame(&mut profile, "com.acme.Key", "hashCode", 1);
        let codes = profile.add_series(SeriesInfo::new("exact", ValueKind::Bytecodes));
        let calls = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
        for (stack, bytecodes, count) in [
            (&[main][..], 100, 1),
            (&[main, sell], 200, 10),
            (&[main, sell, init], inner, 1),
            (&[main, sell, init, key], inner * 2, inner),
        ] {
            let context = profile.contexts.stack(stack.iter().copied());
            profile.series_mut(codes).push(Row::new(context, ThreadId::UNKNOWN, bytecodes));
            profile.series_mut(calls).push(Row::new(context, ThreadId::UNKNOWN, count));
        }
        directory.record(name, &profile)
    };
    let old = record("old.tare", 30, "17.0.1");
    let new = record("new.tare", 33, "17.0.1");
    let other = record("other.tare", 33, "25");
    assert_has(
        &ok(&["diff", text(&old), text(&new)]),
        &[
            "The first context that differs, of 2 among 4, from the outside inwards\n",
            "  com.acme.Shop.main › com.acme.Shop.sell › com.acme.Key.<clinit>\n",
            "  bytecodes 30 → 33, calls 1 → 1\n",
            "a static initialiser runs in whichever context comes first; --stable leaves it out",
        ],
    );
    let page = ok(&["diff", text(&old), text(&new)]);
    assert!(!page.contains("command lines differ"), "{page}");
    let same = ok(&["diff", text(&old), text(&old)]);
    assert_has(&same, &["All 4 contexts have the same bytecodes"]);
    let page = ok(&["diff", text(&old), text(&other)]);
    assert_has(&page, &["the JVMs differ", "identity hash codes and seeds"]);
    // A script's JVM has no flag of ours on its command line; the recording says it.
    let fixed = |name: &str, inner: i64| {
        let path = record(name, inner, "17.0.1");
        let mut profile =
            Recording::open(&path).unwrap().load(&LoadOptions::default()).unwrap().profile;
        profile.run.facts.set(keys::CHANCE_FIXED, &true);
        directory.record(name, &profile)
    };
    let (old_fixed, new_fixed) = (fixed("old-fixed.tare", 30), fixed("new-fixed.tare", 33));
    let page = ok(&["diff", text(&old_fixed), text(&new_fixed)]);
    assert!(page.contains("first context") && !page.contains("hash codes"), "{page}");
    let json = ok(&["diff", text(&old), text(&new), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let first = &json["first_difference"];
    assert_eq!((&first["differ"], &first["path"][2]), (&2.into(), &"com.acme.Key.<clinit>".into()));
    assert_eq!(
        (&json["noise"], &first["old"], &first["new"]),
        (&"none".into(), &30.into(), &33.into())
    );
}

#[test]
fn errors_name_the_cause_and_the_remedy() {
    let directory = Directory::new("errors");
    let file = directory.record("shop.tare", &shop(60));
    let file = text(&file);
    let other = directory.0.join("other.txt");
    std::fs::write(&other, "no recording").unwrap();
    for (arguments, code, part) in [
        (&["report", "4711"][..], 1, "there is no file 4711"),
        (&["report", "nowhere.tare"], 1, "there is no file nowhere.tare"),
        (&["report", text(&other)], 1, "is neither a recording of Tare nor"),
        (&["report", file, "--metric", "wall"], 1, "it has cpu:samples, alloc:allocated-bytes"),
        (&["report", file, "--method", "HASHCODE"], 1, "did you mean com.acme.Key.hashCode?"),
        (&["report", file, "--thread", "nobody"], 1, "no thread has a name like"),
        (&["report", file, "--package", "org.none"], 1, "nothing in the profile is"),
        (&["report", file, "--metric", "alloc", "--time", "1s..2s"], 1, "recorded without times"),
        (&["report", file, "--time", "5s"], 2, "write 10s..20s"),
        (&["report"], 2, "<FILE"),
        (&["diff", file], 2, "<NEW>"),
        (&["diff", file, file, "--threshold", "x"], 2, "write 5% or 0.05"),
    ] {
        let output = tare(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(part), "{arguments:?}: {part:?} is not in {errors}");
    }
}

#[test]
fn a_damaged_recording_is_shown_with_a_warning() {
    let directory = Directory::new("damaged");
    let file = directory.record("shop.tare", &shop(60));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 40]).unwrap();
    let output = tare(&["report", text(&file)]);
    assert_eq!(output.status.code(), Some(0));
    assert_has(&String::from_utf8_lossy(&output.stderr), &["the recording has no end"]);
    assert_has(&String::from_utf8_lossy(&output.stdout), &["100 of cpu samples"]);
}

#[test]
fn a_recording_without_an_end_says_so_to_people_and_scripts() {
    let directory = Directory::new("no-end");
    let path = directory.record("cut.tare", &shop(1));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    for words in [&["report"][..], &["report", "--format", "json"]] {
        let output = tare(&[words, &[text(&path)]].concat());
        assert_eq!(output.status.code(), Some(0));
        let said = String::from_utf8(output.stdout).unwrap();
        assert_has(&said, &["end of the recording", "still being written"]);
    }
}

#[test]
fn profiles_of_other_tools_are_read_too() {
    let directory = Directory::new("foreign");
    let file = directory.0.join("stacks.collapsed");
    std::fs::write(&file, "main;com/acme/Shop.sell;com/acme/Key.hashCode 7\nmain 3\n").unwrap();
    assert_has(&ok(&["report", text(&file)]), &["10 of", "70.0 %", "com.acme.Key.hashCode"]);
    assert_has(&ok(&["diff", text(&file), text(&file)]), &["overlap 100.0 %"]);
}

#[test]
fn a_recording_of_nothing_says_so() {
    let directory = Directory::new("nothing");
    let mut profile = Profile::new();
    let empty = directory.record("empty.tare", &profile);
    let output = tare(&["report", text(&empty)]);
    assert_eq!(output.status.code(), Some(1));
    assert_has(&String::from_utf8_lossy(&output.stderr), &["holds no values"]);
    profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
    let stopped = directory.record("stopped.tare", &profile);
    assert_has(&ok(&["report", text(&stopped)]), &["nothing was measured"]);
    assert_has(&ok(&["diff", text(&stopped), text(&stopped)]), &["overlap 0.0 %"]);
}

#[test]
fn one_of_a_kind_is_singular() {
    let directory = Directory::new("singular");
    let mut profile = shop(1);
    let facts = &mut profile.run.facts;
    facts.set(keys::ENGINE, &"timer".to_owned());
    facts.set(keys::INTERVAL, &Duration::from_millis(10));
    facts.set(keys::SAMPLES, &1);
    facts.set(keys::OVERRUNS, &1);
    let file = directory.record("x.tare", &profile);
    assert_has(&ok(&["report", text(&file)]), &["timer every 10 ms: 1 sample, 1 overrun"]);
    let json = ok(&["report", text(&file), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["run"]["facts"]["sampling-interval"], 10_000_000);
}
