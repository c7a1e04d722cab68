//! What `tare report`, `export` and `diff` tell of locks, as a user runs them, on a recording made
//! here: two workers wait for a pool that a refresher has, which waits for a socket.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tare_profile::facts::keys;
use tare_profile::{
    ContextId, Event, EventKind, Frame, FrameId, LockFields, Method, MethodKind, Profile, Row,
    SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind, Wait,
};
use tare_recording::Writer;

const MS: u64 = 1_000_000;

struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("tare-locks-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn record(&self, name: &str, profile: &Profile) -> String {
        let path = self.0.join(name);
        Writer::create(&path).unwrap().finish(profile).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Standard output of a run that must succeed.
fn ok(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tare")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// Outermost first, as `class.method`.
fn stack(profile: &mut Profile, names: &[&str]) -> ContextId {
    let frames: Vec<FrameId> = names
        .iter()
        .map(|name| {
            let (class, name) = name.rsplit_once('.').unwrap();
            let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        })
        .collect();
    profile.contexts.stack(frames)
}

fn thread(profile: &mut Profile, name: &str) -> ThreadId {
    let name = profile.strings.intern(name);
    profile.threads.push(Thread { name, ..Thread::default() })
}

/// As the engine records it: sums with all waits, events with those that are long enough.
fn blocked() -> Profile {
    let mut profile = Profile::new();
    profile.run.duration = 1_000 * MS;
    let socket = ["shop.Pool.refresh", "shop.Db.ask", "sun.nio.ch.NioSocketImpl.read"];
    let owner_context = stack(&mut profile, &socket);
    let waiter = stack(&mut profile, &["shop.Server.handle", "shop.Pool.take"]);
    let idle = stack(&mut profile, &["java.util.concurrent.ThreadPoolExecutor.getTask"]);
    let owner = thread(&mut profile, "refresher");
    let class = profile.strings.intern("shop.Pool");
    let method = Method { kind: MethodKind::Class, class, ..Method::default() };
    let method = profile.methods.intern(method);
    let frame = profile.frames.intern(Frame::of(method));
    let place = profile.contexts.child(waiter, frame);
    let shorter = profile.special("[shorter waits]");
    let shorter = profile.contexts.stack([shorter]);
    let [contentions, blocked, waiting] =
        [ValueKind::Contentions, ValueKind::BlockedTime, ValueKind::WaitingTime].map(|kind| {
            profile.add_series(SeriesInfo::new("lock", kind).with_time(TimeAxis::Exact))
        });
    let table = profile.events_of(&EventKind::lock());
    for name in ["worker-1", "worker-2"] {
        let thread = thread(&mut profile, name);
        for (wait, from, to, context) in [
            (Wait::MonitorEnter, 100, 500, waiter),
            (Wait::MonitorEnter, 550, 750, waiter),
            (Wait::Queue, 800, 1_000, idle),
        ] {
            let operation = profile.strings.intern(wait.name());
            let fields = match wait.is_contention() {
                true => LockFields {
                    class,
                    operation,
                    owner,
                    owner_context,
                    owner_held: true,
                    instance: 7,
                    queue: 2,
                },
                false => LockFields { operation, ..LockFields::default() },
            };
            let (time, duration) = (from * MS, (to - from) * MS);
            let event = Event { time, duration, thread, context };
            profile.events_mut(table).push(event, &fields.values());
            let row = Row::new(place, thread, duration as i64).at(time);
            if wait.is_contention() {
                profile.series_mut(blocked).push(row);
                profile.series_mut(contentions).push(Row { value: 1, ..row });
            } else {
                profile.series_mut(waiting).push(Row { context: idle, ..row });
            }
        }
    }
    let row = Row::new(shorter, ThreadId::UNKNOWN, 40);
    profile.series_mut(contentions).push(row);
    profile.series_mut(blocked).push(Row { value: 100_000, ..row });
    profile
}

#[test]
fn a_report_names_lock_owner_and_what_keeps_it() {
    let directory = Directory::new("report");
    let file = directory.record("x.tare", &blocked());
    let page = ok(&["report", &file, "--no-pager"]);
    assert_has(
        &page,
        &[
            "2 threads \"worker-#\" wait 75.0 % of their time for shop.Pool, held by \
             shop.Pool.refresh, which waits for a socket in shop.Db.ask",
            "4 waits by 2 threads, 1.20 s in all; 40 shorter ones without stacks, 100 µs in all",
            "waits in 100.0 %  shop.Pool.take",
            "held by 100.0 %  shop.Pool.refresh (refresher), waits for a socket",
            "at most 2, 2.0 on average",
            "something in a queue",
        ],
    );
    let page = ok(&["report", &file, "--no-pager", "--locks", "--thread", "worker-2"]);
    assert_has(&page, &["2 waits by 1 thread, 600 ms in all", "worker-# ← refresher"]);
    let json: serde_json::Value =
        serde_json::from_str(&ok(&["report", &file, "--format", "json"])).unwrap();
    let lock = &json["locks"]["locks"][0];
    assert_eq!((&lock["name"], &lock["instances"]), (&"shop.Pool".into(), &1.into()));
    assert_eq!(lock["owners"][0]["doing"], "socket");
    assert_eq!(json["locks"]["by_methods"][0]["owner"], "shop.Pool.refresh");
    assert_eq!(json["locks"]["shorter"]["waits"], 40);
    let listing = ok(&["report", &file, "--format", "hprof-text"]);
    assert_has(&listing, &["MONITOR TIME BEGIN (total = 1200 ms)", "4 300000 shop.Pool (Java)"]);
}

#[test]
fn exports_have_owners_below_waiters_and_keep_them_in_jfr() {
    let directory = Directory::new("export");
    let file = directory.record("x.tare", &blocked());
    let collapsed = directory.path("x.collapsed");
    ok(&["export", &file, "--metric", "owners", "-o", &collapsed]);
    let text = std::fs::read_to_string(&collapsed).unwrap();
    let line = "shop.Server.handle;shop.Pool.take;shop.Pool;shop.Pool.refresh;shop.Db.ask;\
                sun.nio.ch.NioSocketImpl.read 1200000000\n";
    assert_eq!(text, line);
    let html = directory.path("x.html");
    ok(&["export", &file, "-o", &html]);
    let text = std::fs::read_to_string(&html).unwrap();
    assert_has(&text, &["\"stands\":\"waiters\"", "\"stands\":\"owners\""]);
    let jfr = directory.path("x.jfr");
    ok(&["export", &file, "-o", &jfr]);
    let [before, after] = [&file, &jfr].map(|file| {
        let report: serde_json::Value =
            serde_json::from_str(&ok(&["report", file, "--format", "json"])).unwrap();
        let mut locks = report["locks"].clone();
        // A JFR file lasts until after its last event.
        locks["locks"][0]["share_of_waiters_time"] = serde_json::Value::Null;
        locks
    });
    assert_eq!(after["locks"], before["locks"]);
    assert_eq!(
        (&after["contended"], &after["shorter"]),
        (&before["contended"], &before["shorter"])
    );
}

#[test]
fn idle_workers_are_no_finding() {
    let directory = Directory::new("idle");
    let file = directory.record("x.tare", &blocked());
    let page = ok(&["report", &file, "--metric", "waiting-time"]);
    assert!(!page.contains("passes through"), "{page}");
    assert!(!page.contains("itself takes"), "{page}");
}

#[test]
fn a_comparison_is_by_lock() {
    let directory = Directory::new("diff");
    let old = directory.record("old.tare", &blocked());
    let page = ok(&["diff", &old, &old, "--no-pager"]);
    assert_has(&page, &["1.20 s of blocked time (lock)", "overlap 100.0 %"]);
}

#[test]
fn a_recording_without_waits_says_how_to_get_some() {
    let directory = Directory::new("none");
    let mut profile = Profile::new();
    let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
    let context = stack(&mut profile, &["shop.Main.main"]);
    profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, 1));
    let file = directory.record("x.tare", &profile);
    let output =
        Command::new(env!("CARGO_BIN_EXE_tare")).args(["report", &file, "--locks"]).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("record them with `tare record --lock`"), "{errors}");
}

#[test]
fn that_nobody_waited_is_an_answer() {
    let directory = Directory::new("nobody");
    let mut profile = Profile::new();
    let contentions = SeriesInfo::new("lock", ValueKind::Contentions);
    profile.add_series(contentions.with_time(TimeAxis::Exact));
    let facts = &mut profile.run.facts;
    facts.set(keys::LOCK_THRESHOLD, &Duration::from_millis(1));
    facts.set(keys::LOCK_TOLD, &0);
    let alone = directory.record("x.tare", &profile);
    let cpu = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
    let context = stack(&mut profile, &["shop.Main.main"]);
    profile.series_mut(cpu).push(Row::new(context, ThreadId::UNKNOWN, 1));
    let beside = directory.record("y.tare", &profile);
    let answer = "no wait for a lock, park or sleep of 1 ms or longer was seen to begin while";
    let words: [&[&str]; 4] = [
        &["report", &alone],
        &["report", &alone, "--locks"],
        &["report", &alone, "--format", "json"],
        &["report", &beside, "--locks"],
    ];
    for words in words {
        let page = ok(words);
        assert!(page.contains(answer) && !page.contains("nothing was measured"), "{page}");
    }
    let page = ok(&["report", &beside]);
    assert!(!page.contains(answer), "{page}");
}
