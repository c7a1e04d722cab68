//! What the program measured of itself, and what reports say of it.

use super::judge::{CALIBRATED, Cell, EACH, JOINED, WAYS};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tare_toolbox::shell;

/// When something was, in the time of a recording.
pub fn since_start(tare: &Path, recording: &Path, when: SystemTime) -> Result<Duration> {
    let value = report(tare, recording, &["--time", "0s..1s"])?;
    let nanos = value["run"]["started_unix_ns"].as_u64().context("a start")?;
    Ok(when.duration_since(UNIX_EPOCH)?.saturating_sub(Duration::from_nanos(nanos)))
}

fn report(tare: &Path, recording: &Path, more: &[&str]) -> Result<Value> {
    let mut report = Command::new(tare);
    report.arg("report").arg(recording).args(["--format", "json"]).args(more);
    // Only the list of methods is of interest, not the tree.
    report.args(["--min-share", "1.0"]).stderr(Stdio::null());
    Ok(serde_json::from_str(&shell::output(&mut report)?)?)
}

/// What a report says of each method.
pub fn said(tare: &Path, recording: &Path, more: &[&str]) -> Result<HashMap<String, Said>> {
    let value = report(tare, recording, more)?;
    let methods = value["methods"].as_array().context("a report without methods")?;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let said = methods.iter().map(|method| {
        let own = number(&method["self"]);
        let range = |at: usize| method["self_calibration_range"][at].as_f64();
        let bound = |key: &str, at| method[key].as_f64().or_else(|| range(at)).unwrap_or(own);
        let said = Said {
            own,
            bounds: (bound("self_lower", 0), bound("self_upper", 1)),
            calls: number(&method["invocations"]),
        };
        (method["name"].as_str().unwrap_or_default().to_owned(), said)
    });
    Ok(said.collect())
}

/// What a report says of a method, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub struct Said {
    pub own: f64,
    pub bounds: (f64, f64),
    pub calls: f64,
}

impl Said {
    /// Of a way that was not taken.
    pub const UNKNOWN: Said = Said { own: f64::NAN, bounds: (f64::NAN, f64::NAN), calls: f64::NAN };
}

/// What the program measured of itself.
pub struct Truth {
    pub cases: Vec<Case>,
}

pub struct Case {
    pub name: String,
    pub total: f64,
    pub methods: Vec<Method>,
}

pub struct Method {
    pub name: String,
    /// Per call; per round of the case if it has no calls of its own to count.
    pub nanos: f64,
    pub calls: f64,
}

impl Method {
    /// How often its nanoseconds pass in a round of the case.
    fn per_round(&self) -> f64 {
        if self.calls > 0.0 { self.calls } else { 1.0 }
    }
}

impl Truth {
    /// `case NAME NANOS`, then `method NAME NANOS CALLS` for each of its methods.
    pub fn parse(lines: &[String]) -> Result<Truth> {
        let mut cases: Vec<Case> = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<f64>().context("a number");
            match (words.as_slice(), cases.last_mut()) {
                (["case", name, total], _) => cases.push(Case {
                    name: (*name).to_owned(),
                    total: number(total)?,
                    methods: Vec::new(),
                }),
                (["method", name, nanos, calls], Some(case)) => case.methods.push(Method {
                    name: format!("bench.cost.{name}"),
                    nanos: number(nanos)?,
                    calls: number(calls)?,
                }),
                _ => bail!("the program says `{line}` of the truth"),
            }
        }
        if cases.is_empty() {
            bail!("the program knows no truth");
        }
        Ok(Truth { cases })
    }

    /// What a case takes in turns with the others, as it is recorded, is the truth; its methods
    /// have the same parts of it. An interpreter's jumps are foreseen less well then.
    pub fn take_turns(&mut self, worked: &Truth) {
        for case in &mut self.cases {
            let Some(same) = worked.cases.iter().find(|w| w.name == case.name) else { continue };
            let longer = same.total / case.total;
            case.total *= longer;
            case.methods.iter_mut().for_each(|method| method.nanos *= longer);
        }
    }

    /// The largest difference of a whole case.
    pub fn drift(&self, other: &Truth) -> Option<f64> {
        let pairs = self.cases.iter().zip(&other.cases);
        pairs.map(|(a, b)| (a.total / b.total - 1.0).abs()).max_by(f64::total_cmp)
    }

    pub fn cells(
        &self,
        run: &str,
        reports: &[HashMap<String, Said>; WAYS.len()],
    ) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for case in &self.cases {
            let said = |way: usize, method: &Method| match reports[way].get(&method.name) {
                _ if reports[way].is_empty() => Said::UNKNOWN,
                found => found.copied().unwrap_or_default(),
            };
            let first = case.methods.first().context("a case without methods")?;
            // VisualVM has seen a run of its own.
            let rounds = EACH.map(|way| said(way, first).calls / first.calls);
            if rounds[0] <= 0.0 {
                bail!("{} was never called", first.name);
            }
            let all = |way: usize, of: fn(&Said) -> f64| -> f64 {
                case.methods.iter().map(|method| of(&said(way, method))).sum()
            };
            let totals = EACH.map(|way| all(way, |said| said.own));
            let bounds = [CALIBRATED, JOINED].map(|way| {
                let low = all(way, |said| said.bounds.0) / rounds[way];
                (low, all(way, |said| said.bounds.1) / rounds[way])
            });
            let whole: f64 = case.methods.iter().map(|m| m.nanos * m.per_round()).sum();
            cells.push(Cell {
                run: run.to_owned(),
                case: case.name.clone(),
                method: None,
                truth: case.total,
                ways: EACH.map(|way| totals[way] / rounds[way]),
                bounds,
                share: 1.0,
                share_errors: [0.0; WAYS.len()],
            });
            for method in &case.methods {
                let calls = EACH.map(|way| rounds[way] * method.per_round());
                let share = method.nanos * method.per_round() / whole;
                let ways = EACH.map(|way| said(way, method).own / calls[way]);
                let share_errors =
                    EACH.map(|way| said(way, method).own / totals[way].max(1.0) - share);
                let bounds = [CALIBRATED, JOINED].map(|way| {
                    let (low, high) = said(way, method).bounds;
                    (low / calls[way], high / calls[way])
                });
                cells.push(Cell {
                    run: run.to_owned(),
                    case: case.name.clone(),
                    method: Some(method.name.replace("bench.cost.", "")),
                    truth: method.nanos,
                    ways,
                    bounds,
                    share,
                    share_errors,
                });
            }
        }
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Summary;
    use super::*;

    #[test]
    fn truth_and_reports_become_cells() {
        let lines = ["case fan 640", "method Cases.fan 400 1", "method Cases.leaf 12 20"];
        let truth = Truth::parse(&lines.map(str::to_owned)).unwrap();
        let said = |own: f64, calls: f64| Said { own, bounds: (own * 0.9, own * 1.1), calls };
        let report: HashMap<String, Said> = [
            ("bench.cost.Cases.fan".to_owned(), said(4_200.0, 10.0)),
            ("bench.cost.Cases.leaf".to_owned(), said(2_400.0, 200.0)),
        ]
        .into();
        let cells = truth.cells("x", &EACH.map(|_| report.clone())).unwrap();
        assert_eq!(cells.len(), 3);
        let [whole, fan, leaf] = &cells[..] else { panic!() };
        assert!((whole.ways[0] - 660.0).abs() < 1e-9 && whole.covered(0));
        assert!((fan.error(1) - 0.05).abs() < 1e-9 && fan.covered(0));
        assert!((leaf.ways[2] - 12.0).abs() < 1e-9);
        let summary = Summary::of(&cells);
        assert_eq!(summary.lines[0].within, [(0, 1), (1, 1), (1, 1)]);
        let mut truth = Truth::parse(&lines.map(str::to_owned)).unwrap();
        truth.take_turns(&Truth::parse(&["case fan 1280".to_owned()]).unwrap());
        assert!((truth.cases[0].methods[1].nanos - 24.0).abs() < 1e-9);
        assert!(Truth::parse(&["method x 1 1".to_owned()]).is_err());
        assert!(Truth::parse(&[]).is_err());
    }
}
