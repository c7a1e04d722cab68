//! What bytecodes cost on some JVM: from measured kernels to nanoseconds for each kind, and the
//! small text file that has them.

use crate::files;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tare_classfile::kinds::Kind;
use tare_offline::{Mix, portable};
use tare_protocol::COST_PS;

const HEAD: &str = "# tare target 1: nanoseconds by kind of bytecode";

/// Bytes of a file of costs, and of what the kernels say: each has some dozens of lines.
pub const LARGEST: u64 = 1 << 20;

/// Rounds of the fit; it comes to rest long before.
const ROUNDS: usize = 20_000;

/// How much each kind is drawn towards the mean of all, against the error of one kernel: so little
/// that it only decides what the kernels leave open.
const DRAW: f64 = 1e-8;

/// The costs of a JVM.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetCosts {
    /// The JVM, in its own words.
    pub jvm: String,
    /// How far the kernels are from what the costs make of them, on average: 0.1 for a tenth.
    pub fit: f64,
    /// Nanoseconds, by the kind's number.
    pub costs: Mix,
}

impl TargetCosts {
    /// From what `tare.runtime.Target` printed.
    pub fn measured(text: &str) -> Result<Self> {
        let mut jvm = String::new();
        let mut times: BTreeMap<&str, f64> = BTreeMap::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("jvm ") {
                name.clone_into(&mut jvm);
            } else if let Some((name, time)) =
                line.strip_prefix("kernel ").and_then(|rest| rest.split_once(' '))
            {
                let time: f64 =
                    time.parse().ok().filter(|time| *time > 0.0).with_context(|| {
                        format!(
                            "{time:?} is no time; the whole output of {} is needed",
                            portable::TARGET
                        )
                    })?;
                times.insert(name, time);
            }
        }
        let kernels = portable::kernels().context("the kernels cannot be read")?;
        let rows: Vec<(Mix, f64)> = kernels
            .iter()
            .filter_map(|(name, mix)| Some((*mix, *times.get(name.as_str())?)))
            .collect();
        if rows.len() < kernels.len() {
            bail!(
                "{} of {} kernels were measured; the whole output of {} is needed, of this version",
                rows.len(),
                kernels.len(),
                portable::TARGET
            );
        }
        let costs = fit(&rows);
        let off = rows.iter().map(|(mix, time)| (of(mix, &costs) / time - 1.0).abs()).sum::<f64>();
        Ok(TargetCosts { jvm, fit: off / rows.len() as f64, costs })
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_text(path, LARGEST)?;
        Self::parse(&text).with_context(|| {
            format!("{} is no target; `tare calibrate-target` makes one", path.display())
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            bail!("it does not begin with {HEAD:?}");
        }
        let mut target = TargetCosts { jvm: String::new(), fit: 0.0, costs: Mix::default() };
        let mut known = 0;
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(' ').context("a line without a value")?;
            if key == "jvm" {
                value.clone_into(&mut target.jvm);
                continue;
            }
            let number: f64 = value
                .parse()
                .ok()
                .filter(|n| (0.0..1e6).contains(n))
                .with_context(|| format!("{value:?} of {key} is no number of nanoseconds"))?;
            match Kind::EACH.into_iter().find(|kind| kind.name() == key) {
                Some(kind) => {
                    target.costs[kind as usize] = number;
                    known += 1;
                }
                None if key == "fit" => target.fit = number,
                None => bail!("there is no kind of bytecode called {key}"),
            }
        }
        if known < Kind::EACH.len() {
            bail!("it has costs of {known} kinds, and there are {}", Kind::EACH.len());
        }
        Ok(target)
    }

    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\njvm {}\nfit {:.3}\n", self.jvm, self.fit);
        for kind in Kind::EACH {
            let _ = writeln!(text, "{} {:.3}", kind.name(), self.costs[kind as usize]);
        }
        text
    }

    /// The costs as woven code counts them.
    pub fn units(&self) -> Vec<u32> {
        self.costs.iter().map(|ns| (ns * 1000.0 / COST_PS as f64).round() as u32).collect()
    }
}

fn of(mix: &Mix, costs: &Mix) -> f64 {
    mix.iter().zip(costs).map(|(count, cost)| count * cost).sum()
}

/// Costs, none below zero, with the least sum of squared relative errors: one cost after another is
/// set to its best while the others stay, round after round.
fn fit(rows: &[(Mix, f64)]) -> Mix {
    // Each row by its own time, so that cheap kernels count as much as dear ones.
    let rows: Vec<Mix> = rows.iter().map(|(mix, time)| mix.map(|count| count / time)).collect();
    let per_bytecode: f64 = rows.iter().map(|row| 1.0 / row.iter().sum::<f64>()).sum();
    let mean = per_bytecode / rows.len().max(1) as f64;
    let mut costs = [mean; Kind::EACH.len()];
    for _ in 0..ROUNDS {
        let mut moved = 0.0_f64;
        for at in 0..costs.len() {
            // In units of the mean, so that the draw means the same on every machine.
            let draw = DRAW / (mean * mean);
            let (mut above, mut below) = (draw * mean, draw);
            for row in &rows {
                let others = of(row, &costs) - row[at] * costs[at];
                above += row[at] * (1.0 - others);
                below += row[at] * row[at];
            }
            let best = (above / below).max(0.0);
            moved = moved.max((best - costs[at]).abs() / mean);
            costs[at] = best;
        }
        if moved < 1e-9 {
            break;
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured times that are exactly what some costs make of the kernels.
    fn ideal(costs: &Mix) -> String {
        let mut text = "jvm Ideal 1\n".to_owned();
        for (name, mix) in portable::kernels().unwrap() {
            let _ = writeln!(text, "kernel {name} {}", of(&mix, costs));
        }
        text
    }

    #[test]
    fn costs_are_found_again() {
        let mut costs = [1.0; 16];
        costs[Kind::Call as usize] = 30.0;
        costs[Kind::Object as usize] = 55.0;
        costs[Kind::Product as usize] = 2.5;
        let target = TargetCosts::measured(&ideal(&costs)).unwrap();
        assert_eq!(target.jvm, "Ideal 1");
        assert!(target.fit < 0.01, "{target:?}");
        for kind in Kind::EACH {
            let (found, truth) = (target.costs[kind as usize], costs[kind as usize]);
            assert!((found - truth).abs() < 0.1 * truth, "{}: {found}, not {truth}", kind.name());
        }
    }

    #[test]
    fn files_are_read_as_they_were_written() {
        let target = TargetCosts { jvm: "a b".into(), fit: 0.125, costs: [0.5; 16] };
        assert_eq!(TargetCosts::parse(&target.text()).unwrap(), target);
        assert_eq!(target.units(), [50; 16]);
        let fails = |text: &str| TargetCosts::parse(text).unwrap_err().to_string();
        assert!(fails("").contains("does not begin"));
        assert!(fails(&target.text().replace("call 0.5", "call x")).contains("no number"));
        assert!(fails(&target.text().replace("move", "more")).contains("no kind"));
        assert!(fails(HEAD).contains("costs of 0 kinds"));
        assert!(
            TargetCosts::measured("kernel plain 1.0").unwrap_err().to_string().contains("1 of")
        );
    }
}
