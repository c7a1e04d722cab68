//! Times that were estimated for another JVM, from bytecodes, and how far they are off.

use tare_profile::facts::keys;
use tare_profile::{Profile, SeriesInfo};

/// The kind of a series of such times.
pub const TARGET_TIME: &str = "target-time";

/// By which factors estimates were too low on real programs, at least and at most: the extremes of
/// docs/measured/other-jvm.md. Below one they were too high.
const INTERPRETER: [f64; 2] = [1.03, 1.45];
const COMPILERS: [f64; 2] = [2.1, 11.0];
/// And on the (geometric) average.
const TYPICAL_OF_INTERPRETER: f64 = 1.2;
const TYPICAL_OF_COMPILERS: f64 = 4.5;

/// What is known of the times of a target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetError {
    /// The JVM, in its own words.
    pub jvm: String,
    pub has_compilers: bool,
    /// By which factors such estimates were too low, on programs that were measured there.
    pub too_low: [f64; 2],
    /// On the average of those programs. An estimate multiplied by it was nearer to the truth, also
    /// on programs that had no part in it.
    pub typical: f64,
}

impl TargetError {
    /// Of a series of a profile; `None` if it is of no target.
    pub fn of(profile: &Profile, info: &SeriesInfo) -> Option<Self> {
        if info.kind.name() != TARGET_TIME {
            return None;
        }
        let jvm = profile.run.facts.get(keys::TARGET);
        let jvm = jvm.unwrap_or_else(|| "another JVM".to_owned());
        let has_compilers = !jvm.contains("interpreted mode");
        let (too_low, typical) = match has_compilers {
            true => (COMPILERS, TYPICAL_OF_COMPILERS),
            false => (INTERPRETER, TYPICAL_OF_INTERPRETER),
        };
        Some(TargetError { jvm, has_compilers, too_low, typical })
    }

    /// In a few words, beside a figure.
    pub fn told(&self) -> String {
        let [least, most] = self.too_low;
        if self.has_compilers {
            let typical = self.typical;
            return format!(
                "too low, by a factor of {least} to {most}, {typical} on average, on programs that \
                 were measured"
            );
        }
        let percent = (1.0 / least - 1.0).abs().max((1.0 / most - 1.0).abs()) * 100.0;
        format!("off by up to {percent:.0} % on programs that were measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is generated, so this fails when it says something else than reports do.
    #[test]
    fn factors_are_those_of_the_docs() {
        let page = include_str!("../../../docs/measured/other-jvm.md");
        for (target, told, typical) in [
            ("interpreter", INTERPRETER, TYPICAL_OF_INTERPRETER),
            ("compilers", COMPILERS, TYPICAL_OF_COMPILERS),
        ] {
            let mean = format!("; the factor of all programs is {typical:.1}");
            let is_mean =
                |line: &str| line.starts_with(&format!("- {target}: by ")) && line.ends_with(&mean);
            assert!(page.lines().any(is_mean), "{target}: {mean}");
            let row = |line: &str| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                let off = cells.get(3)?.strip_suffix('%')?.trim().parse::<f64>().ok()?;
                (cells.get(2) == Some(&target)).then_some(100.0 / (100.0 + off))
            };
            let factors: Vec<f64> = page.lines().filter_map(row).collect();
            assert!(factors.len() > 2, "{target}: {factors:?}");
            let found = [
                factors.iter().copied().fold(f64::INFINITY, f64::min),
                factors.iter().copied().fold(0.0, f64::max),
            ];
            for (found, told) in found.into_iter().zip(told) {
                assert!((found / told - 1.0).abs() < 0.03, "{target}: {found}, not {told}");
            }
        }
    }
}
