//! What was said beside what is true: one cell for each method and case, the table of them, and how
//! many are within the goals.

use serde_json::{Value, json};
use std::collections::HashMap;

/// The ways to a time, by their columns.
pub const WAYS: [&str; 5] = ["raw", "calibrated", "sequences", "joined", "VisualVM"];
pub const CALIBRATED: usize = 1;
pub const JOINED: usize = 3;
pub const EACH: [usize; WAYS.len()] = [0, 1, 2, 3, 4];

/// Goals, as the issue of this benchmark has them.
const TOTAL_GOAL: f64 = 0.03;
const METHOD_GOAL: f64 = 0.1;
const LONG_NS: f64 = 100.0;
const SHARE_GOAL: f64 = 0.05;
const COVERED_GOAL: f64 = 0.95;
/// Methods below this share of their case are not judged one by one: a driver, mostly.
const JUDGED: f64 = 0.01;

/// One method in one case, or a whole case: nanoseconds per call, or per round of a case.
#[derive(Clone, Debug)]
pub struct Cell {
    pub run: String,
    pub case: String,
    /// `None` for the whole case.
    pub method: Option<String>,
    pub truth: f64,
    /// By the columns of [`WAYS`].
    pub ways: [f64; WAYS.len()],
    /// Of the calibrated estimate, and of the joined one.
    pub bounds: [(f64, f64); 2],
    pub share: f64,
    /// Differences of shares of the case, by the columns.
    pub share_errors: [f64; WAYS.len()],
}

impl Cell {
    pub fn is_judged(&self) -> bool {
        self.share >= JUDGED
    }

    pub fn covered(&self, which: usize) -> bool {
        let (low, high) = self.bounds[which];
        // The truth, too, was measured.
        low <= self.truth * 1.01 + 0.1 && self.truth * 0.99 - 0.1 <= high
    }

    pub fn error(&self, way: usize) -> f64 {
        self.ways[way] / self.truth - 1.0
    }

    pub fn json(&self) -> Value {
        json!({
            "run": self.run,
            "case": self.case,
            "method": self.method,
            "truth_ns": self.truth,
            "estimates_ns": WAYS.iter().zip(self.ways).collect::<HashMap<_, _>>(),
            "interval_ns": self.bounds[0],
            "joined_interval_ns": self.bounds[1],
            "covered": self.covered(0),
            "joined_covered": self.covered(1),
            "share": self.share,
        })
    }
}

pub fn table(cells: &[Cell]) -> String {
    let mut text = format!(
        "{:<26}{:>10}{:>10}{:>11}{:>11}{:>10}{:>10}  {:>19}  covers  {:>19}  covers\n",
        "ns per call",
        "truth",
        "raw",
        "calibrated",
        "sequences",
        "joined",
        "VisualVM",
        "interval",
        "joined interval",
    );
    for cell in cells.iter().filter(|cell| cell.is_judged()) {
        let name = match &cell.method {
            None => format!("{} {}", cell.run, cell.case),
            Some(method) => format!("    {}", method.replace("Cases.", "").replace("Cases$", "")),
        };
        let number = |value: f64| match value.abs() {
            _ if value.is_nan() => "–".to_owned(),
            1000.0.. => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        };
        let interval = |(low, high): (f64, f64)| format!("{} … {}", number(low), number(high));
        let covers = |which| if cell.covered(which) { "yes" } else { "NO" };
        text.push_str(&format!(
            "{name:<26}{:>10}{:>10}{:>11}{:>11}{:>10}{:>10}  {:>19}  {:<6}  {:>19}  {}\n",
            number(cell.truth),
            number(cell.ways[0]),
            number(cell.ways[1]),
            number(cell.ways[2]),
            number(cell.ways[3]),
            number(cell.ways[4]),
            interval(cell.bounds[0]),
            covers(0),
            interval(cell.bounds[1]),
            covers(1),
        ));
    }
    text
}

/// How the goals are met, in each run and by each way.
pub struct Summary {
    pub lines: Vec<Line>,
    /// Covered cells, by the calibrated interval and the joined one.
    pub covered: Vec<(String, [Tally; 2])>,
}

/// How many of how many.
pub type Tally = (usize, usize);

/// One run by one way.
pub struct Line {
    pub run: String,
    pub way: &'static str,
    /// Totals, methods of 100 ns and more, shorter ones.
    pub within: [Tally; 3],
    /// The largest error of a whole case.
    pub worst: f64,
}

impl Summary {
    pub fn of(cells: &[Cell]) -> Summary {
        let mut runs: Vec<&str> = cells.iter().map(|cell| cell.run.as_str()).collect();
        runs.dedup();
        let (mut lines, mut covered) = (Vec::new(), Vec::new());
        for run in runs {
            let of_run = || cells.iter().filter(move |c| c.run == run && c.is_judged());
            for (way, name) in WAYS.into_iter().enumerate() {
                if of_run().all(|cell| cell.ways[way].is_nan()) {
                    continue;
                }
                let tally = |wanted: &dyn Fn(&Cell) -> bool, good: &dyn Fn(&Cell) -> bool| {
                    let all: Vec<&Cell> = of_run().filter(|cell| wanted(cell)).collect();
                    (all.iter().filter(|cell| good(cell)).count(), all.len())
                };
                let is_method = |cell: &Cell| cell.method.is_some();
                let totals = tally(&|c| !is_method(c), &|c| c.error(way).abs() <= TOTAL_GOAL);
                let long = tally(&|c| is_method(c) && c.truth >= LONG_NS * 0.95, &|c| {
                    c.error(way).abs() <= METHOD_GOAL
                });
                let short = tally(&|c| is_method(c) && c.truth < LONG_NS * 0.95, &|c| {
                    c.share_errors[way].abs() <= SHARE_GOAL
                });
                let whole = of_run().filter(|c| c.method.is_none());
                let worst = whole.map(|c| c.error(way).abs()).fold(0.0, f64::max);
                let within = [totals, long, short];
                lines.push(Line { run: run.to_owned(), way: name, within, worst });
            }
            let all = of_run().count();
            let by = [0, 1].map(|which| (of_run().filter(|c| c.covered(which)).count(), all));
            covered.push((run.to_owned(), by));
        }
        Summary { lines, covered }
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "\n{:<18}{:<12}{:>18}{:>22}{:>24}{:>14}\n",
            "", "", "totals ≤ 3 %", "≥ 100 ns ≤ 10 %", "shorter ≤ 5 points", "worst total"
        );
        for Line { run, way, within, worst } in &self.lines {
            let [a, b, c] = within.map(|(good, all)| format!("{good} of {all}"));
            text.push_str(&format!(
                "{run:<18}{way:<12}{a:>17}{b:>21}{c:>23}{:>12.1} %\n",
                worst * 100.0
            ));
        }
        for (run, covered) in &self.covered {
            let [a, b] = covered.map(|(good, all)| {
                let share = good as f64 / all.max(1) as f64;
                let verdict = if share >= COVERED_GOAL { "" } else { " (goal: 95 %)" };
                format!("{good} of {all}{verdict}")
            });
            text.push_str(&format!("{run}: the range covers {a}, the joined interval {b}\n"));
        }
        text
    }

    pub fn json(&self) -> Value {
        let lines =
            self.lines.iter().map(|Line { run, way, within: [totals, long, short], worst }| {
                json!({
                    "run": run, "way": way, "totals": totals, "long": long, "short": short,
                    "worst_total": worst,
                })
            });
        let covered = self.covered.iter().map(|(run, [interval, joined])| {
            json!({ "run": run, "interval": interval, "joined": joined })
        });
        json!({ "ways": lines.collect::<Value>(), "covered": covered.collect::<Value>() })
    }
}
