//! A program whose stack overflows, also inside probes: its own `finally` blocks run as they do
//! without us, and what is counted is what ran.

use crate::recording::{counted, launched};
use tare_jvm_tests::{classes, on_each_jdk};

/// How often a `finally` was skipped, as the program tells.
fn skipped(text: &str) -> u64 {
    let numbers = text.lines().filter_map(|line| line.strip_prefix("skipped ")?.rsplit_once(' '));
    numbers.map(|(_, number)| number.parse::<u64>().expect("a number")).sum()
}

on_each_jdk! {
    fn nothing_is_skipped_and_all_is_counted(jdk) {
        for (vm, rounds) in [("-Xmixed", "32"), ("-Xint", "16")] {
            for mode in [&["--count"][..], &[], &["--time-some=3"], &["--bytecodes"]] {
                let (text, found) = launched(jdk, mode, classes(), &[vm, "Overflows", rounds]);
                assert_eq!(skipped(&text), 0, "{vm} {mode:?}: {text}");
                let truth = counted(&text);
                assert_eq!(truth.len(), 6, "{text}");
                for (method, n) in truth {
                    assert_eq!(found.get(&method), Some(&n), "{vm} {mode:?}: {method}");
                }
            }
        }
    }
}
