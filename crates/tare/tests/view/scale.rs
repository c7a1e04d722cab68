//! How a recording of five million contexts is opened, and how soon a page shows what happened in a
//! JVM: printed, and not judged by the clock. Asked for by name (`cargo xtask bench view`), since it
//! wants a release build and a quiet machine.

use super::support::{Directory, Served};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_browser::Browser;
use tare_profile::{
    Contexts, Frame, Method, Profile, Row, SeriesInfo, Thread, TimeAxis, ValueKind,
};

const METHODS: u32 = 20_000;
const CONTEXTS: usize = 5_000_000;

/// An exact recording of so many contexts: a few wide branches, and many that are narrow.
fn large() -> Profile {
    let mut profile = Profile::new();
    profile.run.main_class = "com.acme.Large".to_owned();
    let frames: Vec<_> = (0..METHODS)
        .map(|n| {
            let class = profile.strings.intern(&format!("com.acme.part{}.Class{}", n % 97, n / 7));
            let name = profile.strings.intern(&format!("method{n}"));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        })
        .collect();
    let name = profile.strings.intern("main");
    let thread = profile.threads.push(Thread { name, ..Thread::default() });
    let no_time = TimeAxis::None;
    let series = [ValueKind::WallTime, ValueKind::Invocations]
        .map(|kind| profile.add_series(SeriesInfo::new("exact", kind).with_time(no_time)));
    // A fixed generator: the same file in every run.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut contexts = Contexts::default();
    let mut path = vec![tare_profile::ContextId::ROOT];
    while contexts.len() <= CONTEXTS {
        // Up by a few and down by one: deep here, shallow there.
        let up = (random() % 4) as usize;
        let keep = path.len().saturating_sub(up).clamp(1, 60);
        path.truncate(keep);
        let frame = frames[(random() % u64::from(METHODS)) as usize];
        let context = contexts.child(path[path.len() - 1], frame);
        let calls = 1 + (random() % 1000) as i64;
        let rows = [calls * (random() % 5000) as i64, calls];
        for (series, value) in series.iter().zip(rows) {
            profile.series_mut(*series).push(Row::new(context, thread, value));
        }
        path.push(context);
    }
    profile.contexts = contexts;
    profile
}

fn resident(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0) / 1024
}

/// A figure that the benchmark puts on its page.
fn figure(name: &str, value: f64) {
    println!("figure {name} {value:.1}");
}

fn milliseconds(name: &str, since: Instant) {
    figure(name, since.elapsed().as_secs_f64() * 1000.0);
}

#[test]
#[ignore = "a benchmark: cargo xtask bench view"]
fn five_million_contexts() {
    let directory = Directory::new("scale");
    let file = directory.record("large.tare", &large());
    figure("file-mb", std::fs::metadata(&file).unwrap().len() as f64 / 1e6);
    for _ in 0..3 {
        opened(&file);
    }
    let served = Served::start(&file);
    let mut browser = Browser::start(1920, 1080).unwrap();
    browser.open(&format!("{}&/flame", served.link)).unwrap();
    browser.wait("window.tare && tare.flame() && tare.flame().count > 1").unwrap();
    browser.eval("tare.idle()").unwrap();
    // A whole window, the three that the page asks for when it is zoomed, and a search.
    let ask = "async q => { const began = performance.now(); const answer = await fetch('/api/flame?' + q, \
               { headers: { Authorization: 'Bearer ' + sessionStorage.getItem('tare-token') } }); const \
               size = (await answer.arrayBuffer()).byteLength; return [size, performance.now() - began]; }";
    for (name, query) in [
        ("window", "width=1920&rows=200"),
        ("zoomed", "width=5760&rows=200&from=0.4&to=0.7"),
        ("search", "width=1920&rows=200&q=method77"),
    ] {
        for _ in 0..9 {
            let answer = browser.eval(&format!("({ask})('{query}')")).unwrap();
            figure(&format!("{name}-kb"), answer[0].as_f64().unwrap() / 1e3);
            figure(&format!("{name}-ms"), answer[1].as_f64().unwrap());
        }
    }
    figure("server-mb", resident(served.pid(), "VmHWM") as f64);
    browser.size(3840, 2160).unwrap();
    panned(&mut browser);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// From the command to the painted graph. The browser runs already, as a user's does.
fn opened(file: &std::path::Path) {
    let mut browser = Browser::start(1920, 1080).unwrap();
    let began = Instant::now();
    let served = Served::start(file);
    milliseconds("link-ms", began);
    browser.open(&format!("{}&/flame", served.link)).unwrap();
    browser.wait("window.tare && tare.flame() && tare.flame().count > 1").unwrap();
    milliseconds("paint-ms", began);
}

/// The page's own flame graph with 230,000 frames in sight, while it is moved sideways.
fn panned(browser: &mut Browser) {
    let script = "(async () => {
        const { Flame } = await import('/assets/flame.js'), host = document.createElement('div');
        Object.assign(host.style, { position: 'fixed', inset: '0', zIndex: '99' });
        document.body.append(host);
        const rows = 108, each = 4259, count = rows * each + 1, of = (make) => Float64Array.from({ length: count }, make);
        const row = (i) => Math.ceil(i / each), at = (i) => (i - 1) % each, starts = [0];
        for (let r = 0; r <= rows; r++) starts.push(1 + r * each);
        const answer = { count, rows: starts, parent: Int32Array.from({ length: count }, (_, i) => (i > each ? i - each : 0)),
            label: Int32Array.from({ length: count }, (_, i) => 1 + i % 999), left: of((_, i) => (i ? at(i) : 0)),
            width: of((_, i) => (i ? 1 : each)), node: of((_, i) => i), hit: new Uint8Array(0), value: null, old: null, fresh: null,
            head: { labels: Array.from({ length: 1000 }, (_, i) => `com.acme.Class${i}.method`), kinds: 'r' + 'j'.repeat(999),
                tree: 'x', node: 0, path: '0', total: each, whole: each, width: each, from: 0, to: 1, crumbs: [] } };
        const flame = new Flame(host, { ask: async () => answer, label: 'many' });
        await flame.show({});
        const frames = [], paints = [];
        let last = 0;
        const paint = flame.paint.bind(flame);
        flame.paint = () => { const began = performance.now(); paint(); paints.push(performance.now() - began); };
        await new Promise((done) => { let n = 0; const step = (now) => {
            if (last) frames.push(now - last);
            last = now;
            flame.window(n / 1000, 0.5 + n / 1000);
            if (++n < 300) requestAnimationFrame(step); else done();
        }; requestAnimationFrame(step); });
        host.remove();
        const rank = (all, share) => [...all].sort((a, b) => a - b)[Math.floor(all.length * share)];
        return [rank(frames, 0.5), rank(frames, 0.95), rank(paints, 0.5), rank(paints, 0.95)];
    })()";
    let told = browser.eval(script).unwrap();
    let names = ["frame-ms", "frame-95-ms", "frame-script-ms", "frame-script-95-ms"];
    for (name, value) in names.iter().zip(told.as_array().unwrap()) {
        figure(name, value.as_f64().unwrap());
    }
}

/// One thread that computes for a part of the time; a line has the heap collected.
const PROGRAM: &str = "public class Ticker { static volatile long sum; public static void main(String[] words) throws Exception { \
    Thread busy = new Thread(() -> { while (true) { long until = System.nanoTime() + 3_000_000; while (System.nanoTime() < until) sum++; \
    try { Thread.sleep(7); } catch (InterruptedException ended) { return; } } }, \"busy\"); busy.setDaemon(true); busy.start(); \
    System.out.println(\"ready\"); while (System.in.read() == '\\n') System.gc(); } }";

/// From a collection in the program to its bar on the time line; `TARE_BENCH_JAVA` is a JDK's `java`.
#[test]
#[ignore = "a benchmark: cargo xtask bench view"]
fn from_event_to_pixel() {
    let java = std::env::var_os("TARE_BENCH_JAVA").expect("the benchmark names a JDK");
    let directory = Directory::new("pixel");
    let program = directory.0.join("Ticker.java");
    std::fs::write(&program, PROGRAM).unwrap();
    let mut jvm = Command::new(java)
        .args(["-XX:+UseSerialGC", "-Xmx64m"])
        .arg(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(jvm.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let served = Served::of(&[std::path::Path::new(&jvm.id().to_string())]);
    let mut browser = Browser::start(1280, 900).unwrap();
    browser.open(&format!("{}&/timeline", served.link)).unwrap();
    browser.wait("window.tare && document.querySelectorAll('.lane-name').length > 0").unwrap();
    let collect = |jvm: &mut Child| jvm.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    collect(&mut jvm);
    let seen = "[...document.querySelectorAll('.lane-name')].filter(one => one.textContent.startsWith('Collections')).map(one => \
                +one.querySelector('small').textContent)[0] || 0";
    browser.wait(&format!("({seen}) > 0")).unwrap();
    let pids = [jvm.id(), served.pid()];
    let (before, began) = (pids.map(own_time), Instant::now());
    for round in 0..12 {
        let count = browser.eval(seen).unwrap().as_f64().unwrap();
        // At another place between two ticks each time.
        std::thread::sleep(Duration::from_millis(700 + round * 83));
        let began = Instant::now();
        collect(&mut jvm);
        browser.wait(&format!("({seen}) > {count}")).unwrap();
        milliseconds("pixel-ms", began);
    }
    let passed = began.elapsed().as_secs_f64();
    let after = pids.map(own_time);
    figure("agent-percent", (after[0] - before[0]) / passed * 100.0);
    figure("server-percent", (after[1] - before[1]) / passed * 100.0);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    let _ = jvm.kill();
    let _ = jvm.wait();
}

/// Seconds of processor time of threads of ours in a process.
fn own_time(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |path: &std::path::Path| {
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let told = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let nanos = told.split(' ').next().and_then(|word| word.parse::<f64>().ok());
        nanos.filter(|_| name.starts_with("tare")).unwrap_or(0.0) / 1e9
    };
    threads.map(|thread| of(&thread.path())).sum()
}
