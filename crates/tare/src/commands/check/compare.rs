//! What became of each case since its baseline, and the report of it.

use super::baseline::{Baseline, Case, Own};
use crate::figures::grouped;
use crate::term::{BAD, BOLD, DIM, GOOD, WARN};
use std::fmt::Write as _;

/// What grows by fewer than this is nobody's regression, however small it was before.
const LEAST: u64 = 10;

/// Methods to name below a figure.
const NAMED: usize = 5;

/// What differs, as text, and whether that is a failure.
#[derive(Default)]
pub struct Verdict {
    pub text: String,
    /// Cases that grew, and cases that were not there.
    pub failures: usize,
}

/// `partial` says that cases may be missing, because only some were run.
pub fn compare(old: &Baseline, new: &Baseline, tolerance: f64, partial: bool) -> Verdict {
    let mut verdict = Verdict::default();
    let mut notes = String::new();
    for (name, before) in &old.cases {
        let Some(after) = new.cases.get(name) else {
            if !partial {
                verdict.failures += 1;
                let _ = writeln!(
                    verdict.text,
                    "{BOLD}{name}{BOLD:#}\n  {BAD}did not run{BAD:#}; --update takes it out of the \
                     baseline, --partial lets cases be missing"
                );
            }
            continue;
        };
        let grown = grown(before, after, tolerance);
        if grown.is_empty() {
            note_gain(name, before, after, tolerance, &mut notes);
            continue;
        }
        verdict.failures += 1;
        let _ = writeln!(verdict.text, "{BOLD}{name}{BOLD:#}");
        grown.iter().for_each(|line| verdict.text.push_str(line));
        if before.calls != after.calls {
            let _ =
                writeln!(verdict.text, "  it was called {} → {} times", before.calls, after.calls);
        }
    }
    for name in new.cases.keys().filter(|name| !old.cases.contains_key(*name)) {
        let _ = writeln!(notes, "{DIM}{name} is not in the baseline; --update adds it{DIM:#}");
    }
    if old.java != new.java && !old.java.is_empty() {
        let (old, new) = (&old.java, &new.java);
        let _ = writeln!(
            notes,
            "{WARN}the baseline is of Java {old}, this run was of Java {new}; sizes of objects may differ{WARN:#}"
        );
    }
    verdict.text.push_str(&notes);
    verdict
}

/// The lines about what grew.
fn grown(before: &Case, after: &Case, tolerance: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for ((what, old), (_, new)) in before.figures().into_iter().zip(after.figures()) {
        if grew(old, new, tolerance) {
            lines.push(line("  ", what, old, new));
        }
    }
    let mut methods: Vec<(&String, Own, Own)> = before
        .methods
        .iter()
        .filter_map(|(name, old)| Some((name, *old, *after.methods.get(name)?)))
        .filter(|(_, old, new)| grew(old.bytecodes, new.bytecodes, tolerance))
        .collect();
    methods.sort_by_key(|(_, old, new)| std::cmp::Reverse(new.bytecodes - old.bytecodes));
    for (name, old, new) in methods.iter().take(NAMED) {
        let mut text =
            line("    ", &format!("{name} itself, bytecodes"), old.bytecodes, new.bytecodes);
        if old.calls != new.calls {
            let (old, new) = (grouped_u(old.calls), grouped_u(new.calls));
            text.insert_str(text.len() - 1, &format!("  in {old} → {new} calls"));
        }
        lines.push(text);
    }
    if !lines.is_empty() {
        for (name, own) in
            after.methods.iter().filter(|(n, _)| !before.methods.contains_key(*n)).take(NAMED)
        {
            let (bytecodes, calls) = (grouped_u(own.bytecodes), grouped_u(own.calls));
            lines.push(format!(
                "    {name} itself is new: {bytecodes} bytecodes in {calls} calls\n"
            ));
        }
    }
    lines
}

fn grew(old: u64, new: u64, tolerance: f64) -> bool {
    new > old && new - old >= LEAST && (new - old) as f64 > old as f64 * tolerance
}

fn note_gain(name: &str, before: &Case, after: &Case, tolerance: f64, notes: &mut String) {
    for ((what, old), (_, new)) in before.figures().into_iter().zip(after.figures()) {
        if grew(new, old, tolerance) {
            let change = line("", what, old, new);
            let _ = write!(notes, "{GOOD}{name} shrank{GOOD:#}: {change}");
        }
    }
}

fn line(indent: &str, what: &str, old: u64, new: u64) -> String {
    let change = match old {
        0 => "from nothing".to_owned(),
        _ => format!("{:+.1} %", (new as f64 / old as f64 - 1.0) * 100.0),
    };
    format!("{indent}{what} {} → {}  {change}\n", grouped_u(old), grouped_u(new))
}

fn grouped_u(value: u64) -> String {
    grouped(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(bytecodes: u64, own: u64, calls: u64) -> Baseline {
        let own = Own { bytecodes: own, calls };
        let case = Case {
            calls: 1,
            bytecodes,
            objects: 3,
            bytes: 72,
            methods: [("a.B.hot".to_owned(), own)].into(),
        };
        Baseline { java: "17".into(), cases: [("a.BTest.works".to_owned(), case)].into() }
    }

    fn check(old: &Baseline, new: &Baseline, failures: usize, expected: &[&str]) {
        let verdict = compare(old, new, 0.01, false);
        let text = anstream::adapter::strip_str(&verdict.text).to_string();
        assert_eq!(verdict.failures, failures, "{text}");
        for part in expected {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!expected.is_empty() || text.is_empty(), "{text}");
    }

    #[test]
    fn growth_beyond_the_tolerance_fails() {
        let old = baseline(100_000, 50_000, 10);
        check(&old, &old, 0, &[]);
        check(&old, &baseline(100_900, 50_400, 10), 0, &[]);
        check(
            &old,
            &baseline(103_000, 53_000, 10),
            1,
            &[
                "a.BTest.works",
                "bytecodes 100,000 → 103,000  +3.0 %",
                "a.B.hot itself, bytecodes 50,000 → 53,000  +6.0 %",
            ],
        );
        // One method's growth is seen in a large case, too.
        check(&old, &baseline(100_600, 50_600, 12), 1, &["+1.2 %  in 10 → 12 calls"]);
        check(&old, &baseline(90_000, 40_000, 10), 0, &["shrank: bytecodes 100,000 → 90,000"]);
        check(&baseline(5, 5, 1), &baseline(9, 9, 1), 0, &[]);
    }

    #[test]
    fn cases_come_and_go() {
        let old = baseline(100, 100, 1);
        let none = Baseline { java: "17".into(), ..Baseline::default() };
        check(&old, &none, 1, &["did not run", "--partial"]);
        check(&none, &old, 0, &["a.BTest.works is not in the baseline"]);
        assert_eq!(compare(&old, &none, 0.01, true).failures, 0);
        let newer = Baseline { java: "25".into(), ..old.clone() };
        check(&old, &newer, 0, &["Java 17", "Java 25"]);
    }
}
