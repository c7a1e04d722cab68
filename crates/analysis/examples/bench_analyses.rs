//! Speed of the analyses: `cargo run --release -p tare-analysis --example bench_analyses
//! [MILLIONS]`.
//!
//! An exact profile of ten million contexts, as a compiler run makes them. The baseline is one
//! sweep over the contexts that sums subtrees, which no analysis can do without. Seconds are of the
//! processor, so that other work on the machine counts less.

#![forbid(unsafe_code)]

use tare_analysis::{Diff, DiffOptions, Filter, Grouping, Tree, hot_list};
use tare_profile::{
    ContextId, Frame, FrameId, Method, Profile, Row, SeriesInfo, ThreadId, ValueKind,
};

fn main() -> Result<(), tare_analysis::AnalysisError> {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_u64);
    let profile = make(millions * 1_000_000);
    let (series, _) = profile.all_series().next().expect("make adds a series");

    let start = cpu_seconds();
    let mut sums = vec![0_i64; profile.contexts.len()];
    for row in profile.series(series).rows() {
        sums[row.context.index()] += row.value;
    }
    for (id, parent, _) in profile.contexts.iter().rev() {
        sums[parent.index()] += sums[id.index()];
    }
    let baseline = cpu_seconds() - start;
    println!("{:<40} {:>8} {:>12} {:>10}", "", "seconds", "of baseline", "nodes");
    let report = |what: &str, start: f64, nodes: usize| {
        let time = cpu_seconds() - start;
        println!("{what:<40} {time:>8.2} {:>11.1}x {nodes:>10}", time / baseline);
    };
    println!("{:<40} {baseline:>8.2} {:>11.1}x {:>10}", "sum of subtrees", 1.0, sums.len());

    let none = Filter::default();
    let start = cpu_seconds();
    let tree = Tree::build(&profile, &[series], &none)?;
    report("tree", start, tree.len());
    assert_eq!(tree.sum(0), sums[0]);
    for (what, filter) in [
        ("tree, JDK hidden", Filter { hide_jdk: true, ..none.clone() }),
        ("tree, recursion folded", Filter { fold_recursion: true, ..none.clone() }),
        ("tree by package", Filter { group: Grouping::Package, ..none.clone() }),
    ] {
        let start = cpu_seconds();
        let tree = Tree::build(&profile, &[series], &filter)?;
        report(what, start, tree.len());
    }
    let start = cpu_seconds();
    report("hot list of the tree", start, hot_list(&tree).len());
    let start = cpu_seconds();
    report("small folded at 0.1 %", start, tree.fold_small(0.001).len());
    let start = cpu_seconds();
    report("upside down at 0.1 %", start, tree.bottom_up(0.001, 32).len());
    let start = cpu_seconds();
    let diff = Diff::build((&profile, series), (&profile, series), &DiffOptions::default())?;
    report("diff with itself", start, diff.tree.len());
    Ok(())
}

/// What this process has used of the processor, as Linux tells it, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // utime and stime are the fields 14 and 15, and the third follows the name.
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// A walk up and down, as a running program's stack does; common calls are more common than others.
fn make(count: u64) -> Profile {
    let mut profile = Profile::new();
    let frames: Vec<FrameId> = (0..20_000)
        .map(|n| {
            let package = if n % 3 == 0 { "java.util" } else { "com.acme" };
            let class = format!("{package}.part{}.Class{}", n % 97, n / 8);
            let class = profile.strings.intern(&class);
            let name = profile.strings.intern(&format!("method{}", n % 8));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        })
        .collect();
    let mut state = 1_u64;
    let mut random = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let (mut at, mut depth) = (ContextId::ROOT, 0);
    while (profile.contexts.len() as u64) < count {
        // The deeper, the likelier is a return: stacks of some fifty frames.
        let up = random(100) < depth;
        at = match profile.contexts.parent(at).filter(|_| up) {
            Some(parent) => {
                depth -= 1;
                parent
            }
            None => {
                depth += 1;
                let bound = random(frames.len() as u64) + 1;
                profile.contexts.child(at, frames[random(bound) as usize])
            }
        };
    }
    let series = profile.add_series(SeriesInfo::new("exact", ValueKind::WallTime));
    for row in 1..profile.contexts.len() as u32 {
        let value = random(10_000) as i64;
        profile.series_mut(series).push(Row::new(ContextId::new(row), ThreadId::UNKNOWN, value));
    }
    profile
}
