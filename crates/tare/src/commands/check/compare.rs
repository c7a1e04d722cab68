//! What became of each case since its baseline, and the report of it.

use super::baseline::{Baseline, Case, Own, Whole};
use crate::figures::{grouped, several};
use crate::term::{BAD, BOLD, DIM, GOOD, WARN};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What grows by fewer than this is nobody's regression, however small it was before.
const LEAST: u64 = 10;

/// The methods of all cases, as one more thing that is compared.
pub const TOGETHER: &str = "all cases together";

/// Methods to name below a figure.
const NAMED: usize = 5;

/// What differs, as text, and whether that is a failure.
#[derive(Default)]
pub struct Verdict {
    pub text: String,
    /// Every case of the baseline that was to run, with what is wrong with it.
    pub cases: Vec<(String, Option<String>)>,
    /// What grew over all cases together.
    pub whole: Option<String>,
    /// Cases that grew, and cases that were not there.
    pub failures: usize,
    /// Methods that grew over all cases together.
    pub methods: usize,
}

impl Verdict {
    pub fn is_good(&self) -> bool {
        self.failures + self.methods == 0
    }
}

/// `new` is as it was measured. `partial` says that cases may be missing, because only some were
/// run.
pub fn compare(old: &Baseline, new: &Baseline, tolerance: f64, partial: bool) -> Verdict {
    let mut verdict = Verdict::default();
    let mut notes = String::new();
    for (name, before) in &old.cases {
        let Some(after) = new.cases.get(name) else {
            if !partial {
                let missing = format!(
                    "  {BAD}did not run{BAD:#}; --update takes it out of the baseline, --partial \
                     lets cases be missing\n"
                );
                verdict.fail(name, missing);
            }
            continue;
        };
        let grown = grown(before, after, tolerance);
        if grown.is_empty() {
            note_gain(name, before, after, tolerance, &mut notes);
            verdict.cases.push((name.clone(), None));
            continue;
        }
        let mut lines = grown.concat();
        if before.calls != after.calls {
            let _ = writeln!(lines, "  it was called {} → {} times", before.calls, after.calls);
        }
        verdict.fail(name, lines);
    }
    if let Some(whole) = &old.whole {
        let missing = old.cases.keys().filter(|name| !new.cases.contains_key(*name)).count();
        if missing == 0 {
            let sums = new.sums(|case| old.cases.contains_key(case));
            verdict.heed_whole(whole, &sums, tolerance);
        } else {
            let _ = writeln!(
                notes,
                "{DIM}methods over all cases were not compared, because {missing} did not run{DIM:#}"
            );
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

impl Verdict {
    fn fail(&mut self, name: &str, lines: String) {
        self.failures += 1;
        let _ = write!(self.text, "{BOLD}{name}{BOLD:#}\n{lines}");
        self.cases.push((name.to_owned(), Some(lines)));
    }

    /// Compares the methods of all cases together. Those without a line of their own are one.
    fn heed_whole(&mut self, old: &Whole, sums: &BTreeMap<&str, Own>, tolerance: f64) {
        let mut rest = Own::default();
        for (_, own) in sums.iter().filter(|(name, _)| !old.methods.contains_key(**name)) {
            rest.add(*own);
        }
        let named = old.methods.iter().map(|(name, own)| (&**name, *own, sums.get(&**name)));
        let mut grown: Vec<(&str, Own, Own)> = named
            .filter_map(|(name, old, new)| Some((name, old, *new?)))
            .chain([("all other methods", old.rest, rest)])
            .filter(|(_, old, new)| grew(old.bytecodes, new.bytecodes, tolerance))
            .collect();
        if grown.is_empty() {
            return;
        }
        self.methods = grown.len();
        grown.sort_by_key(|(_, old, new)| Reverse(new.bytecodes - old.bytecodes));
        let mut lines = String::new();
        for (name, old, new) in grown.iter().take(NAMED) {
            lines.push_str(&method_line("  ", name, *old, *new));
        }
        if grown.len() > NAMED {
            let more = several(grown.len() - NAMED, "more method");
            let _ = writeln!(lines, "  and {more}");
        }
        let _ = write!(self.text, "{BOLD}{TOGETHER}{BOLD:#}\n{lines}");
        self.whole = Some(lines);
    }
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
    methods.sort_by_key(|(_, old, new)| Reverse(new.bytecodes - old.bytecodes));
    for (name, old, new) in methods.iter().take(NAMED) {
        lines.push(method_line("    ", name, *old, *new));
    }
    lines
}

fn method_line(indent: &str, name: &str, old: Own, new: Own) -> String {
    let what = format!("{name} itself, bytecodes");
    let mut text = line(indent, &what, old.bytecodes, new.bytecodes);
    if old.calls != new.calls {
        let (old, new) = (grouped_u(old.calls), grouped_u(new.calls));
        text.insert_str(text.len() - 1, &format!("  in {old} → {new} calls"));
    }
    text
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
        let cases = [("a.BTest.works".to_owned(), case)].into();
        Baseline { java: "17".into(), cases, whole: None }
    }

    fn check(old: &Baseline, new: &Baseline, failures: usize, expected: &[&str]) {
        let verdict = compare(&old.folded(), new, 0.01, false);
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
        let verdict = compare(&old.folded(), &none, 0.01, true);
        assert!(verdict.is_good() && verdict.text.contains("1 did not run"), "{}", verdict.text);
        let newer = Baseline { java: "25".into(), ..old.clone() };
        check(&old, &newer, 0, &["Java 17", "Java 25"]);
    }

    /// A method too small for a line in any case is found in the sum of all, and the rest as one.
    #[test]
    fn small_parts_are_compared_together() {
        let many = |hot: u64, cold: u64| {
            let mut all = Baseline { java: "17".into(), ..Baseline::default() };
            for test in 0..1000 {
                let own = |bytecodes| Own { bytecodes, calls: 1 };
                let methods =
                    [("a.B.hot", hot), ("a.B.body", 900)].map(|m| (m.0.to_owned(), own(m.1)));
                let mut methods: BTreeMap<_, _> = methods.into();
                methods.insert(format!("a.Test.t{test}"), own(cold));
                let case =
                    Case { calls: 1, bytecodes: hot + 900 + cold, methods, ..Case::default() };
                all.cases.insert(format!("a.Test.t{test}"), case);
            }
            all
        };
        let old = many(100, 100);
        let verdict = |new: &Baseline| {
            let verdict = compare(&old.folded(), new, 0.01, false);
            (
                verdict.failures,
                verdict.methods,
                anstream::adapter::strip_str(&verdict.text).to_string(),
            )
        };
        assert_eq!(verdict(&old), (0, 0, String::new()));
        let (cases, methods, text) = verdict(&many(103, 100));
        assert_eq!((cases, methods), (0, 1), "{text}");
        assert!(text.contains("a.B.hot itself, bytecodes 100,000 → 103,000  +3.0 %"), "{text}");
        let (cases, methods, text) = verdict(&many(100, 103));
        assert_eq!((cases, methods), (0, 1), "{text}");
        assert!(text.contains("all other methods"), "{text}");
        // A case that is new does not count as growth of what it calls.
        let mut more = many(100, 100);
        let twin = more.cases["a.Test.t1"].clone();
        more.cases.insert("a.Test.new".to_owned(), twin);
        assert_eq!((verdict(&more).0, verdict(&more).1), (0, 0));
    }
}
