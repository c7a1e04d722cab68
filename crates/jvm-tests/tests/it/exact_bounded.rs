//! More contexts than memory: what matters least is pruned, or recursion is folded, and the sums
//! stay true.

use crate::recording::{Recorded, counted, java, record};
use std::collections::HashMap;
use tare_jvm_tests::{Jdk, Scratch, Tare, classes, on_each_jdk};
use tare_profile::ValueKind;

const PATHS: &str = "Contexts$Paths.";

fn run(jdk: &Jdk, words: &[&str], options: &[&str]) -> (String, Recorded) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let options = [options, &["--include", "Contexts$Paths"]].concat();
    let mut command = record(&options, &file);
    command.extend(java(jdk, classes(), &[&["Contexts"], words].concat()));
    let text = Tare::this().run(&command).ok().to_owned();
    (text, Recorded::open(&file))
}

/// All calls of the program, and what was recorded of them, by kind.
fn assert_true_sums(text: &str, recorded: &Recorded) {
    let truth = counted(text);
    let counts = recorded.counts();
    assert_eq!(counts.values().sum::<i64>(), truth.values().sum::<i64>(), "{counts:?}");
    let steady: i64 =
        ["steady", "often"].map(|name| counts[&format!("{PATHS}{name}")]).iter().sum();
    assert_eq!(steady, truth["steady"], "what is called all the time keeps its contexts");
}

on_each_jdk! {
    fn what_matters_least_is_pruned(jdk) {
        for mode in [&["--count"][..], &[]] {
            let (text, recorded) = run(jdk, &["600000"], &[mode, &["--memory", "8M"]].concat());
            assert_true_sums(&text, &recorded);
            assert!(recorded.counts()[".[pruned]"] > 0, "{:?}", recorded.losses());
            assert!(recorded.losses().iter().any(|l| l.starts_with("pruned ") && l.contains(" contexts: ")), "{text}");
            let mut sums = HashMap::new();
            let series = recorded.profile.all_series().map(|(_, series)| series);
            let calls = series.filter(|series| series.info().kind == ValueKind::Invocations);
            for row in calls.flat_map(|series| series.rows()) {
                *sums.entry(row.context).or_insert(0) += row.value;
            }
            assert!(sums.values().all(|sum| *sum >= 0), "nothing is less than nothing");
        }
    }

    fn contexts_that_come_faster_than_the_agent_looks_find_room(jdk) {
        let options = ["--count", "--memory", "512M"];
        let (text, recorded) = run(jdk, &["tree", "20"], &options);
        assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
        assert_eq!(recorded.counts().values().sum::<i64>(), counted(&text)["wandering"]);
        assert_eq!(recorded.profile.contexts.len(), 1 << 21, "one for each path, and the root");
    }

    /// The file is complete when the command returns, however much there was to write at the end.
    fn hundreds_of_thousands_of_contexts_are_there_when_the_command_returns(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let options = ["--count", "-q", "--memory", "512M", "--include", "Contexts$Drawn"];
        let mut command = record(&options, &file);
        command.extend(java(jdk, classes(), &["Contexts", "drawn", "25000"]));
        let text = Tare::this().run(&command).ok().to_owned();
        let recorded = Recorded::open(&file);
        assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
        assert_eq!(recorded.counts().values().sum::<i64>(), counted(&text)["wandering"]);
        let contexts = recorded.profile.contexts.len();
        assert!(contexts > 200_000, "{contexts} contexts");
    }

    fn recursion_is_folded(jdk) {
        let options = ["--count", "--fold-recursion", "--memory", "8M"];
        let (text, recorded) = run(jdk, &["50000"], &options);
        assert_true_sums(&text, &recorded);
        assert!(recorded.losses().is_empty(), "{:?}", recorded.losses());
        let counts = recorded.counts();
        let step = counts[&format!("{PATHS}step")];
        let others: i64 = ["a", "b", "c"].map(|name| counts[&format!("{PATHS}{name}")]).iter().sum();
        // Each path begins with a step, and each step but the last of a path calls one of them.
        assert_eq!(step, others + 50_000);
        assert!(recorded.profile.contexts.len() < 50, "{}", recorded.profile.contexts.len());
    }
}
