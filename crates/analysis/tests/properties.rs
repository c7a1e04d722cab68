//! Laws that hold for every profile, tried on many made by a seeded generator.

use std::collections::BTreeMap;
use tare_analysis::{
    Diff, DiffOptions, Filter, Grouping, NodeId, Tree, by_thread, hot_list, narrow, neighbours,
};
use tare_java_names::Pattern;
use tare_profile::{
    ContextId, Event, EventKind, FieldType, FieldValue, Frame, FrameId, Method, MethodKind,
    Profile, Row, SeriesId, SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind,
};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const CLASSES: [&str; 6] =
    ["com.acme.A", "com.acme.A$B", "com.acme.db.C", "java.util.D", "jdk.internal.E", "F"];

fn profile(seed: u64) -> Profile {
    let random = &mut Random(seed);
    let mut profile = Profile::new();
    let mut frames = vec![profile.special("[dropped]")];
    for n in 0..random.below(30) + 2 {
        let class = profile.strings.intern(CLASSES[random.below(6) as usize]);
        let name = profile.strings.intern(&format!("m{}", n % 7));
        let descriptor = profile.strings.intern(if n % 5 == 0 { "(I)V" } else { "()V" });
        let loader = profile.strings.intern(["", "app", "boot"][random.below(3) as usize]);
        let method = Method { class, name, descriptor, loader, ..Method::default() };
        let method = profile.methods.intern(method);
        for line in 0..random.below(3) as u32 + 1 {
            frames.push(profile.frames.intern(Frame { line: Some(line), ..Frame::of(method) }));
        }
    }
    let name = profile.strings.intern("worker");
    let threads: Vec<_> =
        (0..4).map(|_| profile.threads.push(Thread { name, ..Thread::default() })).collect();
    let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let series = profile.add_series(info);
    let calls = profile.add_series(SeriesInfo::new("cpu", ValueKind::Invocations));
    for time in 0..random.below(300) + 1 {
        let depth = random.below(12);
        let stack: Vec<_> =
            (0..depth).map(|_| frames[random.below(frames.len() as u64) as usize]).collect();
        let context = profile.contexts.stack(stack);
        let thread = threads[random.below(4) as usize];
        let value = random.below(50) as i64;
        profile.series_mut(series).push(Row::new(context, thread, value).at(time));
        profile.series_mut(calls).push(Row::new(context, thread, 1));
    }
    // Somebody held a lock where somebody else was just sampled.
    let locks = profile.events_of(&EventKind::new("lock", &[("holder", FieldType::Context)]));
    let stacks: Vec<Row> = profile.series(series).rows().collect();
    for (waiter, holder) in stacks.iter().zip(stacks.iter().skip(1)) {
        let Row { context, thread, time, .. } = *waiter;
        let event = Event { time, duration: 0, thread, context };
        profile.events_mut(locks).push(event, &[FieldValue::Context(holder.context)]);
    }
    profile
}

/// When each lock was waited for, and where it was held.
fn holders(profile: &Profile) -> Vec<(u64, Vec<FrameId>)> {
    let (_, locks) = profile.all_events().next().unwrap();
    let holder = |row| match locks.field(row, 0) {
        Some(FieldValue::Context(context)) => profile.contexts.frames(context).collect(),
        other => panic!("{other:?} is no stack"),
    };
    locks.events().enumerate().map(|(row, event)| (event.time, holder(row))).collect()
}

const CPU: SeriesId = SeriesId::new(0);
const CALLS: SeriesId = SeriesId::new(1);

fn filters() -> Vec<Filter> {
    let none = Filter::default();
    let mut filters = vec![
        none.clone(),
        Filter { fold_recursion: true, ..none.clone() },
        Filter { hide_jdk: true, ..none.clone() },
        Filter { hide_jdk: true, fold_recursion: true, min_share: 0.05, ..none.clone() },
        Filter { hide: vec![Pattern::to_search("java")], ..none.clone() },
        Filter { min_share: 0.02, ..none.clone() },
        Filter { min_share: 1.1, ..none.clone() },
    ];
    for group in
        [Grouping::Line, Grouping::Class, Grouping::Package, Grouping::Module, Grouping::Loader]
    {
        filters.push(Filter { group, ..none.clone() });
        filters.push(Filter { group, hide_jdk: true, fold_recursion: true, ..none.clone() });
    }
    filters
}

/// Every total is its own value and its children's totals; the sum of own values is the root's.
fn assert_sums(tree: &Tree, expected: i64, what: &str) {
    assert_eq!(tree.sum(0), expected, "{what}");
    for metric in 0..tree.metrics() {
        let mut totals: Vec<i64> = tree.nodes().map(|node| tree.own(metric, node)).collect();
        assert_eq!(totals.iter().sum::<i64>(), tree.sum(metric), "{what}");
        for node in tree.nodes().rev() {
            assert_eq!(totals[node.index()], tree.total(metric, node), "{what}");
            if let Some(parent) = tree.parent(node) {
                assert!(parent < node, "{what}");
                totals[parent.index()] += totals[node.index()];
            }
        }
    }
}

#[test]
fn sums_survive_every_transformation_that_leaves_nothing_out() {
    for seed in 0..60 {
        let profile = profile(seed);
        let sum = profile.series(CPU).total();
        for filter in filters() {
            let what = format!("seed {seed}, {filter:?}");
            let tree = Tree::build(&profile, &[CPU, CALLS], &filter).unwrap();
            assert_sums(&tree, sum, &what);
            assert_eq!(tree.sum(1), profile.series(CALLS).total(), "{what}");
            for (share, depth) in [(0.0, usize::MAX), (0.03, 4), (0.5, 1)] {
                assert_sums(&tree.fold_small(share), sum, &what);
                assert_sums(&tree.bottom_up(share, depth), sum, &what);
            }
            let hot = hot_list(&tree);
            let at_root = tree.own(0, NodeId::ROOT);
            assert_eq!(hot.iter().map(|hot| hot.own[0]).sum::<i64>() + at_root, sum, "{what}");
            assert!(hot.iter().all(|hot| hot.own[0] <= hot.total[0] && hot.total[0] <= sum));
            let threads = by_thread(&profile, CPU, &filter).unwrap();
            assert_eq!(threads.iter().map(|share| share.value).sum::<i64>(), sum, "{what}");
        }
    }
}

#[test]
fn filters_let_through_what_they_say_and_nothing_else() {
    for seed in 0..60 {
        let profile = profile(seed);
        let passes = |context: ContextId, text: &str| {
            profile.contexts.frames(context).any(|frame| {
                let name = profile.method_name(profile.frames.get(frame).method);
                Pattern::to_search(text).is_found_in(&name)
            })
        };
        let sum = |wanted: &dyn Fn(&Row) -> bool| {
            let rows = profile.series(CPU).rows();
            rows.filter(|row| wanted(row)).map(|row| row.value).sum::<i64>()
        };
        let tree = |filter: Filter| Tree::build(&profile, &[CPU], &filter).ok();
        let none = Filter::default();
        if let Some(tree) =
            tree(Filter { packages: vec![Pattern::to_search("com.acme")], ..none.clone() })
        {
            assert_sums(&tree, sum(&|row| passes(row.context, "com.acme")), "package");
        }
        if let Some(tree) =
            tree(Filter { roots: vec![Pattern::to_search("java.util.D")], ..none.clone() })
        {
            assert_sums(&tree, sum(&|row| passes(row.context, "java.util.D")), "root");
            for child in tree.children().of(NodeId::ROOT) {
                assert!(tree.label_of(*child).text.starts_with("java.util.D."));
            }
        }
        let time = tree(Filter { time: Some(10..40), ..none.clone() }).unwrap();
        assert_sums(&time, sum(&|row| (10..40).contains(&row.time)), "time");
        let hidden = tree(Filter { hide_jdk: true, ..none.clone() }).unwrap();
        for node in hidden.nodes() {
            let text = &hidden.label_of(node).text;
            assert!(!text.starts_with("java.") && !text.starts_with("jdk."), "{text}");
        }
        let folded = tree(Filter { fold_recursion: true, ..none }).unwrap();
        for node in folded.nodes() {
            let mut above = std::iter::successors(folded.parent(node), |at| folded.parent(*at));
            assert!(above.all(|at| folded.label_id(at) != folded.label_id(node)));
        }
    }
}

/// The own values of every path of a tree, as text.
fn paths(tree: &Tree) -> BTreeMap<String, [i64; 2]> {
    let mut texts = vec![String::new(); tree.len()];
    let mut found = BTreeMap::new();
    for node in tree.nodes() {
        if let Some(parent) = tree.parent(node) {
            texts[node.index()] = format!("{};{}", texts[parent.index()], tree.label_of(node).text);
        }
        let own = [tree.own(0, node), tree.own(1, node)];
        if own != [0, 0] {
            found.insert(texts[node.index()].clone(), own);
        }
    }
    found
}

#[test]
fn a_narrowed_profile_has_the_tree_of_the_filter_and_keeps_threads_and_times() {
    let some = |text: &str| vec![Pattern::to_search(text)];
    let mut all = filters();
    for filter in filters() {
        all.push(Filter { packages: some("com.acme"), ..filter.clone() });
        all.push(Filter { roots: some("java.util.D"), ..filter.clone() });
        all.push(Filter { time: Some(10..60), threads: vec!["work*".to_owned()], ..filter });
    }
    for seed in 0..12 {
        let profile = profile(seed);
        for filter in &all {
            let what = format!("seed {seed}, {filter:?}");
            let Ok(tree) = Tree::build(&profile, &[CPU, CPU], filter) else { continue };
            let narrowed = narrow(profile.clone(), CPU, filter).unwrap();
            assert_eq!(narrowed.check(), Ok(()), "{what}");
            // Groups have become methods of their own; lines are still to be told apart.
            let group =
                if filter.group == Grouping::Line { Grouping::Line } else { Grouping::Method };
            let again = Filter { group, ..Filter::default() };
            let after = Tree::build(&narrowed, &[CPU, CPU], &again).unwrap();
            assert_eq!(paths(&after), paths(&tree), "{what}");
            let of = |profile: &Profile| -> Vec<(u64, ThreadId, i64)> {
                let rows = profile.series(CPU).rows();
                rows.map(|row| (row.time, row.thread, row.value)).collect()
            };
            let restricted = narrow(profile.clone(), CPU, &filter.restriction()).unwrap();
            assert_eq!(of(&narrowed), of(&restricted), "{what}");
            let timed = filter.time.is_some();
            let no_calls = timed || of(&narrowed).is_empty();
            assert_eq!(narrowed.series(CALLS).is_empty(), no_calls, "{what}");
            assert_eq!(narrowed.run.losses.len(), usize::from(timed), "{what}");
            // Events are filtered by where they were; who held the lock is told whole.
            let (before, after) = (holders(&profile), holders(&narrowed));
            assert_eq!(after, holders(&restricted), "{what}");
            assert!(after.iter().all(|holder| before.contains(holder)), "{what}");
        }
    }
}

#[test]
fn neighbours_add_up_to_the_hot_list() {
    for seed in 0..60 {
        let profile = profile(seed);
        let tree = Tree::build(&profile, &[CPU], &Filter::default()).unwrap();
        for hot in hot_list(&tree) {
            let around = neighbours(&tree, hot.label);
            let sum = |list: &[(_, i64)]| list.iter().map(|(_, value)| value).sum::<i64>();
            assert_eq!(around.total, hot.total[0]);
            assert_eq!(sum(&around.callers), around.total);
            assert_eq!(sum(&around.callees) + around.own, around.total);
            assert!(around.callees.iter().all(|(label, _)| *label != hot.label));
        }
    }
}

#[test]
fn a_recursion_counts_once_in_totals() {
    let mut profile = Profile::new();
    let mut frame = |name: &str| {
        let name = profile.strings.intern(name);
        let kind = MethodKind::Native;
        let method = profile.methods.intern(Method { kind, name, ..Method::default() });
        profile.frames.intern(Frame::of(method))
    };
    let (a, b) = (frame("a"), frame("b"));
    let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
    let context = profile.contexts.stack([a, b, a, a, b]);
    let row = Row::new(context, tare_profile::ThreadId::UNKNOWN, 10);
    profile.series_mut(series).push(row);
    let tree = Tree::build(&profile, &[series], &Filter::default()).unwrap();
    let hot = hot_list(&tree);
    let found: Vec<(&str, i64, i64)> = hot
        .iter()
        .map(|hot| (tree.label(hot.label).text.as_str(), hot.own[0], hot.total[0]))
        .collect();
    assert_eq!(found, [("b", 10, 10), ("a", 0, 10)]);
}

#[test]
fn diffs_keep_both_sums_and_overlap_is_a_share() {
    for seed in 0..8 {
        let (old, new) = (profile(seed), profile(seed + 1000));
        for normalise in [false, true] {
            for filter in filters() {
                let options = DiffOptions { normalise, filter };
                let diff = Diff::build((&old, CPU), (&new, CPU), &options).unwrap();
                for (which, profile) in [&old, &new].into_iter().enumerate() {
                    let sum = profile.series(CPU).total();
                    let own: i64 = diff.tree.iter().map(|node| node.own[which]).sum();
                    assert_eq!((diff.sums[which], own), (sum, sum));
                    assert_eq!(diff.tree[0].total[which], sum);
                    let methods: i64 = diff.methods.iter().map(|change| change.own[which]).sum();
                    assert_eq!(methods + diff.tree[0].own[which], sum);
                }
                assert!((0.0..=1.0 + 1e-9).contains(&diff.overlap), "{}", diff.overlap);
                assert!(
                    diff.label_overlap >= diff.overlap - 1e-9 && diff.label_overlap < 1.0 + 1e-9
                );
                let back = Diff::build((&new, CPU), (&old, CPU), &options).unwrap();
                assert!((diff.overlap - back.overlap).abs() < 1e-9);
            }
        }
        let same = Diff::build((&old, CPU), (&old, CPU), &DiffOptions::default()).unwrap();
        let expected = if old.series(CPU).total() == 0 { 0.0 } else { 1.0 };
        assert!((same.overlap - expected).abs() < 1e-9);
        assert!(same.largest().abs() < 1e-9 && same.worst().at_least <= 0.0);
    }
}
