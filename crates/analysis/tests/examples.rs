//! Small profiles as text, and what the analyses say of them.

use std::time::Duration;
use tare_analysis::{
    AnalysisError, Diff, DiffOptions, Filter, FindingKind, Grouping, NodeId, Tree, by_thread,
    findings, hot_list,
};
use tare_java_names::Pattern;
use tare_profile::facts::keys;
use tare_profile::{
    Event, EventKind, FieldValue, Frame, LossKind, Method, MethodKind, Profile, Row, SeriesId,
    SeriesInfo, StringId, ThreadId, ValueKind,
};

const FIRST: SeriesId = SeriesId::new(0);

/// A profile from lines of `frame;frame;frame value`, outermost first. A name with a dot is Java's.
fn profile(text: &str) -> Profile {
    let mut profile = Profile::new();
    let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (stack, value) = line.rsplit_once(' ').unwrap();
        let frames: Vec<_> = stack
            .split(';')
            .map(|name| {
                let (class, name) = name.rsplit_once('.').unwrap_or(("", name));
                let special = name.starts_with('[');
                let kind = if special { MethodKind::Special } else { MethodKind::Java };
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let method =
                    profile.methods.intern(Method { kind, class, name, ..Method::default() });
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        let context = profile.contexts.stack(frames);
        let row = Row::new(context, ThreadId::UNKNOWN, value.parse().unwrap());
        profile.series_mut(series).push(row);
    }
    profile
}

/// `name own/total` per node, two blanks per level.
fn show(tree: &Tree) -> String {
    let children = tree.children();
    let mut out = String::new();
    let mut stack = vec![(NodeId::ROOT, 0)];
    while let Some((node, depth)) = stack.pop() {
        let (own, total) = (tree.own(0, node), tree.total(0, node));
        let folded = match tree.folded(node) {
            0 => String::new(),
            count => format!(" ×{count}"),
        };
        let text = &tree.label_of(node).text;
        out.push_str(&format!("{}{text}{folded} {own}/{total}\n", "  ".repeat(depth)));
        stack.extend(children.of(node).iter().rev().map(|child| (*child, depth + 1)));
    }
    out
}

fn check(text: &str, filter: Filter, expected: &str) {
    let tree = Tree::build(&profile(text), &[FIRST], &filter).unwrap();
    assert_eq!(show(&tree).trim(), expected.trim());
}

const SHOP: &str = "
    a.Main.run;a.Shop.sell;java.util.Map.get;a.Key.hash 30
    a.Main.run;a.Shop.sell;java.util.Map.get 10
    a.Main.run;a.Shop.sell;a.Tax.rate 3
    a.Main.run;a.Shop.sell;a.Tax.round 2
    a.Main.run;b.Log.print 5
    java.lang.Thread.idle 50";

#[test]
fn a_tree_sorts_children_by_total() {
    check(
        SHOP,
        Filter::default(),
        "[all] 0/100
  a.Main.run 0/50
    a.Shop.sell 0/45
      java.util.Map.get 10/40
        a.Key.hash 30/30
      a.Tax.rate 3/3
      a.Tax.round 2/2
    b.Log.print 5/5
  java.lang.Thread.idle 50/50",
    );
}

#[test]
fn hidden_frames_give_their_values_to_their_callers() {
    check(
        SHOP,
        Filter { hide_jdk: true, ..Filter::default() },
        "[all] 0/100
  a.Main.run 0/50
    a.Shop.sell 10/45
      a.Key.hash 30/30
      a.Tax.rate 3/3
      a.Tax.round 2/2
    b.Log.print 5/5
  [hidden] 50/50",
    );
}

#[test]
fn small_siblings_fold_into_one() {
    check(
        SHOP,
        Filter { min_share: 0.05, ..Filter::default() },
        "[all] 0/100
  a.Main.run 0/50
    a.Shop.sell 0/45
      java.util.Map.get 10/40
        a.Key.hash 30/30
      [smaller] ×2 5/5
    b.Log.print 5/5
  java.lang.Thread.idle 50/50",
    );
}

#[test]
fn packages_join_their_neighbours() {
    let group = Grouping::Package;
    check(
        SHOP,
        Filter { group, ..Filter::default() },
        "[all] 0/100
  a 5/50
    java.util 10/40
      a 30/30
    b 5/5
  java.lang 50/50",
    );
}

#[test]
fn a_root_cuts_the_stack_and_recursion_folds() {
    let text = "m;f;g;f;g;h 4\nm;f 1\nm;h 7";
    let roots = vec![Pattern::to_search("f")];
    check(
        text,
        Filter { roots, ..Filter::default() },
        "[all] 0/5
  f 1/5
    g 0/4
      f 0/4
        g 0/4
          h 4/4",
    );
    let folded = Filter { fold_recursion: true, ..Filter::default() };
    check(
        text,
        folded,
        "[all] 0/12
  m 0/12
    h 7/7
    f 1/5
      g 0/4
        h 4/4",
    );
}

#[test]
fn upside_down_the_callers_are_below() {
    let tree = Tree::build(&profile("a;x 3\nb;x 2\nx;y 1"), &[FIRST], &Filter::default()).unwrap();
    let expected = "[all] 0/6\n  x 0/5\n    a 3/3\n    b 2/2\n  y 0/1\n    x 1/1\n";
    assert_eq!(show(&tree.bottom_up(0.0, usize::MAX)), expected);
    let shallow = "[all] 0/6\n  x 5/5\n  y 1/1\n";
    assert_eq!(show(&tree.bottom_up(0.0, 1)), shallow);
    let folded = "[all] 0/6\n  x 0/5\n    a 3/3\n    [smaller] ×1 2/2\n  [smaller] ×1 1/1\n";
    assert_eq!(show(&tree.bottom_up(0.4, usize::MAX)), folded);
}

#[test]
fn what_cannot_be_selected_is_said() {
    let shop = profile(SHOP);
    let problem = |filter: Filter| Tree::build(&shop, &[FIRST], &filter).unwrap_err();
    let none = Filter::default();
    let time = problem(Filter { time: Some(0..1), ..none.clone() });
    assert_eq!(time, AnalysisError::NoTimes { series: "cpu samples".into() });
    let thread = problem(Filter { threads: vec!["w*".into()], ..none.clone() });
    assert_eq!(thread, AnalysisError::NoThread { wanted: "w*".into() });
    let package = problem(Filter { packages: vec![Pattern::to_search("c.d")], ..none.clone() });
    assert_eq!(package, AnalysisError::NoMatch { wanted: "c.d".into() });
    assert_eq!(Tree::build(&shop, &[], &none).unwrap_err(), AnalysisError::NoSeries);
}

#[test]
fn diffs_are_sorted_by_growth_and_overlap_by_context() {
    let (old, new) = (profile("m;f 60\nm;g 40"), profile("m;f 30\nm;g 50\nm;h 20\nn;f 100"));
    let diff = Diff::build((&old, FIRST), (&new, FIRST), &DiffOptions::default()).unwrap();
    let rows: Vec<String> = diff
        .methods
        .iter()
        .map(|c| format!("{} {:?} {:?} {:+}", c.label, c.own, c.total, diff.delta(c.own)))
        .collect();
    assert_eq!(
        rows,
        [
            "f [60, 130] [60, 130] +70",
            "h [0, 20] [0, 20] +20",
            "g [40, 50] [40, 50] +10",
            "n [0, 0] [0, 100] +0",
            "m [0, 0] [100, 100] +0",
        ]
    );
    // f: min(0.60, 0.15), g: min(0.40, 0.25); h and n;f are in one only.
    assert!((diff.overlap - 0.40).abs() < 1e-9, "{}", diff.overlap);
    // Without times samples are taken to come in fours.
    assert_eq!(diff.may_be_chance(diff.methods[2].own, diff.methods[2].doubt.own), Some(true));
    // f by method: min(0.60, 0.65).
    assert!((diff.label_overlap - 0.85).abs() < 1e-9, "{}", diff.label_overlap);
    assert!((diff.largest() - 1.0).abs() < 1e-9, "the whole doubled: {}", diff.largest());
    assert!(diff.worst().at_least < 0.2, "a hundred samples tell little: {:?}", diff.worst());
    let options = DiffOptions { normalise: true, ..DiffOptions::default() };
    let diff = Diff::build((&old, FIRST), (&new, FIRST), &options).unwrap();
    assert!((diff.largest() - 0.10).abs() < 1e-9, "h took 10 % of the new: {}", diff.largest());
}

#[test]
fn made_up_class_names_meet_in_a_diff() {
    let (old, new) = (profile("a.B$$Lambda/0x01.run 5"), profile("a.B$$Lambda/0xfe.run 5"));
    let diff = Diff::build((&old, FIRST), (&new, FIRST), &DiffOptions::default()).unwrap();
    assert_eq!(diff.methods.len(), 1);
    assert!((diff.overlap - 1.0).abs() < 1e-9);
    assert_eq!(diff.path(1), ["a.B$$Lambda.run"]);
}

#[test]
fn findings_tell_what_dominates_what_is_lost_and_what_to_trust() {
    let mut shop = profile(&SHOP.replace("java.lang.Thread.idle 50", "[dropped] 5"));
    shop.run.duration = 1_000_000;
    for name in ["a.B.c", "a.B.d", "a.B.e", "a.B.f", "a.B.g", "a.B.h"] {
        shop.run.lose(LossKind::Refused, name, 1, "the method is too large");
    }
    let gc = shop.events_of(&EventKind::gc());
    let event = Event { duration: 100_000, ..Event::default() };
    let text = FieldValue::Text(StringId::EMPTY);
    let fields = [text, text, FieldValue::Integer(0), FieldValue::Integer(0)];
    shop.events_mut(gc).push(event, &fields);
    let filter = Filter::default();
    let tree = Tree::build(&shop, &[FIRST], &filter).unwrap();
    let threads = by_thread(&shop, FIRST, &filter).unwrap();
    let found = findings(&shop, FIRST, &tree, &hot_list(&tree), &threads, None);
    let of = |kind| {
        let texts = found.iter().filter(|f| f.kind == kind).map(|f| f.text.as_str());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        of(FindingKind::Dominates),
        [
            "a.Key.hash itself takes 54.5 %",
            "72.7 % passes through java.util.Map.get",
            "1 pause for garbage collection stopped the program for 10.0 % of the run",
        ]
    );
    assert_eq!(
        of(FindingKind::Lost),
        [
            "9.1 % of the whole is accounted as [dropped]",
            "refused 6 × a.B.c, a.B.d, a.B.e, a.B.f and 2 others: the method is too large",
        ]
    );
    let trust = of(FindingKind::Trust).join("\n");
    assert!(trust.starts_with("only 55 samples: the first line of the list is right to ± 13.2"));
}

#[test]
fn what_sampling_itself_took_is_told_where_it_is_much() {
    let filter = Filter::default();
    let told = |own_ms: u64| {
        let mut shop = profile(SHOP);
        shop.run.facts.set(keys::SAMPLER_TIME, &Duration::from_millis(own_ms));
        shop.run.facts.set(keys::PROCESS_CPU_TIME, &Duration::from_secs(10));
        let tree = Tree::build(&shop, &[FIRST], &filter).unwrap();
        let threads = by_thread(&shop, FIRST, &filter).unwrap();
        let found = findings(&shop, FIRST, &tree, &hot_list(&tree), &threads, None);
        found.into_iter().map(|f| f.text).find(|text| text.starts_with("taking samples took"))
    };
    assert_eq!(told(1_900), None);
    assert!(told(4_200).expect("a finding").contains("about 42 % of the processor time"));
    // An estimate may be more than there was.
    assert!(told(12_000).expect("a finding").contains("about 99 %"));
}

/// `name ×calls own/total` of a tree whose runs are folded.
fn show_runs(text: &str) -> Vec<String> {
    let tree = Tree::build(&profile(text), &[FIRST], &Filter::default()).unwrap();
    let folded = tree.fold_runs();
    assert_eq!(folded.sum(0), tree.sum(0));
    let line = |node| {
        let text = &folded.label_of(node).text;
        let (own, total) = (folded.own(0, node), folded.total(0, node));
        format!("{text} ×{} {own}/{total}", folded.times(node))
    };
    folded.nodes().skip(1).map(line).collect()
}

/// A stack of `circle` many times over, at every depth of which a sample was taken.
fn recursion(circle: &str, times: usize) -> String {
    (1..=times).map(|n| format!("a.Main.main;{} 1\n", vec![circle; n].join(";"))).collect()
}

#[test]
fn a_deep_recursion_is_one_node_that_says_how_deep() {
    let text = recursion("a.B.walk", 500);
    // What it calls, at whichever depth, is one.
    let walks = |n: usize| vec!["a.B.walk"; n].join(";");
    let text = format!(
        "{text}a.Main.main;{};c.D.work 5\na.Main.main;{};c.D.work 7\na.Main.main;x.Y.z 2\n",
        walks(20),
        walks(450)
    );
    let expected =
        ["a.Main.main ×1 0/514", "a.B.walk ×500 500/512", "c.D.work ×1 12/12", "x.Y.z ×1 2/2"];
    let mut found = show_runs(&text);
    found.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn circles_of_up_to_eight_calls_are_folded_and_longer_ones_are_not() {
    for length in [2, 3, 8, 9] {
        let circle: Vec<String> = (0..length).map(|n| format!("a.B.m{n}")).collect();
        let found = show_runs(&recursion(&circle.join(";"), 100));
        if length == 9 {
            assert_eq!(found.len(), 1 + 9 * 100);
        } else {
            assert_eq!(found.len(), 1 + length, "{found:?}");
            assert_eq!(found[1], "a.B.m0 ×100 0/100");
            assert_eq!(found[length], format!("a.B.m{} ×100 100/100", length - 1));
        }
    }
}

#[test]
fn a_short_recursion_is_shown_as_it_is() {
    let found = show_runs(&recursion("a.B.walk", 15));
    assert_eq!(found.len(), 16);
    assert!(found.iter().all(|line| line.contains("×1 ")), "{found:?}");
}
