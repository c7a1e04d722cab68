//! Speed and memory of the tables: `cargo run --release -p tare-profile --example bench_tables
//! [MILLIONS]`.

#![forbid(unsafe_code)]

use std::time::Instant;
use tare_profile::{
    ContextId, Frame, FrameId, Method, Profile, Row, SeriesInfo, ThreadId, ValueKind,
};

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_u32);
    let count = millions * 1_000_000;
    let mut profile = Profile::new();
    let frames: Vec<FrameId> = (0..50_000)
        .map(|n| {
            let class = profile.strings.intern(&format!("com.acme.part{}.Class{}", n % 97, n / 10));
            let name = profile.strings.intern(&format!("method{}", n % 10));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        })
        .collect();

    // A random walk up and down, as a running program's stack does.
    let mut random = 1_u64;
    let mut next = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % bound
    };
    let start = Instant::now();
    let mut at = ContextId::ROOT;
    let mut steps = 0_u64;
    while profile.contexts.len() < count as usize {
        steps += 1;
        let up = next(100) < 49;
        at = match profile.contexts.parent(at).filter(|_| up) {
            Some(parent) => parent,
            None => profile.contexts.child(at, frames[next(frames.len())]),
        };
    }
    report("contexts made", steps, start, profile.contexts.memory());

    let start = Instant::now();
    let mut again = 0;
    for row in 1..profile.contexts.len() as u32 {
        let id = ContextId::new(row);
        let (parent, frame) = (profile.contexts.parent(id), profile.contexts.frame(id));
        if let (Some(parent), Some(frame)) = (parent, frame) {
            again += u64::from(profile.contexts.child(parent, frame) == id);
        }
    }
    report("contexts found again", again, start, profile.contexts.memory());

    let start = Instant::now();
    let series = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
    let contexts = profile.contexts.len();
    for n in 0..i64::from(count) {
        let context = ContextId::new(next(contexts) as u32);
        profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, n));
    }
    report("values pushed", u64::from(count), start, profile.series(series).memory());

    let start = Instant::now();
    let mut sums = vec![0_i64; contexts];
    for row in profile.series(series).rows() {
        sums[row.context.index()] += row.value;
    }
    for (id, parent, _) in profile.contexts.iter().rev() {
        sums[parent.index()] += sums[id.index()];
    }
    report("values summed up the tree", u64::from(count), start, sums.capacity() * 8);
    assert_eq!(sums[0], profile.series(series).total());
    println!("whole profile: {} MB", profile.memory() / 1_000_000);
}

fn report(what: &str, count: u64, start: Instant, memory: usize) {
    let time = start.elapsed().as_secs_f64();
    println!(
        "{what:<26} {:>7.1} M  {time:>6.2} s  {:>6.1} M/s  {:>5} MB",
        count as f64 / 1e6,
        count as f64 / 1e6 / time,
        memory / 1_000_000
    );
}
