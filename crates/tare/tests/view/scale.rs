//! How a recording of five million contexts is opened: printed, and not judged by the clock. Asked
//! for by name (`cargo xtask bench view`), since it wants a release build and a quiet machine.

use super::support::{Directory, Served};
use serde_json::Value;
use std::time::Instant;
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

#[test]
#[ignore = "a benchmark: cargo xtask bench view"]
fn five_million_contexts() {
    let directory = Directory::new("scale");
    let file = directory.record("large.tare", &large());
    let size = std::fs::metadata(&file).unwrap().len();
    println!("file: {} MB, {CONTEXTS} contexts, {METHODS} methods", size >> 20);

    let mut browser = Browser::start(1920, 1080).unwrap();
    let began = Instant::now();
    let served = Served::start(&file);
    let ready = began.elapsed();
    let link = format!("{}&/flame", served.link);
    browser.open(&link).unwrap();
    browser.wait("window.tare && tare.flame() && tare.flame().count > 1").unwrap();
    let painted = began.elapsed();
    println!(
        "command to link: {} ms; to the flame graph: {} ms",
        ready.as_millis(),
        painted.as_millis()
    );
    browser.eval("tare.idle()").unwrap();
    let pid = served.pid();
    println!(
        "server: {} MB resident, {} MB at most",
        resident(pid, "VmRSS"),
        resident(pid, "VmHWM")
    );

    // A whole window, and one that is zoomed in by a step.
    let ask = "async q => { const began = performance.now(); const answer = await fetch('/api/flame?' + q, \
               { headers: { Authorization: 'Bearer ' + sessionStorage.getItem('tare-token') } }); const \
               size = (await answer.arrayBuffer()).byteLength; return [size, performance.now() - began]; }";
    for query in ["width=1920&rows=200", "width=5760&rows=200", "width=1920&rows=200&q=method77"] {
        let mut times = Vec::new();
        let mut size = Value::Null;
        for _ in 0..9 {
            let answer = browser.eval(&format!("({ask})('{query}')")).unwrap();
            size = answer[0].clone();
            times.push(answer[1].as_f64().unwrap());
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{query}: {} KB in {:.1} ms (median of 9)",
            size.as_u64().unwrap() >> 10,
            times[4]
        );
    }
    // Panning: how long a frame takes while the window moves.
    let frames = browser
        .eval(
            "new Promise(done => { const all = []; let last = performance.now(), n = 0; const target = \
             document.querySelector('canvas'); const box = target.getBoundingClientRect(); const step = \
             now => { all.push(now - last); last = now; target.dispatchEvent(new WheelEvent('wheel', { \
             deltaY: n < 60 ? -40 : 0, deltaX: n < 60 ? 0 : 12, ctrlKey: n < 60, clientX: box.left + \
             box.width / 2, clientY: box.top + 100, bubbles: true, cancelable: true })); if (++n < 240) \
             requestAnimationFrame(step); else { all.sort((a, b) => a - b); done([all[120], all[228], \
             tare.flame().count]); } }; requestAnimationFrame(step); })",
        )
        .unwrap();
    println!(
        "frames while zooming and panning: median {} ms, 95 % below {} ms, {} nodes",
        frames[0], frames[1], frames[2]
    );
    println!(
        "server: {} MB resident, {} MB at most",
        resident(pid, "VmRSS"),
        resident(pid, "VmHWM")
    );
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
