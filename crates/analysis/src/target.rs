//! Times that were estimated for another JVM, from bytecodes, and how far they are off.

use tare_profile::{Profile, SeriesInfo};

/// The kind of a series of such times.
pub const TARGET_TIME: &str = "target-time";

/// The option of a run that names the JVM.
const TARGET: &str = "target";

/// By which factors estimates were too low on real programs, at least and at most: the extremes of
/// docs/target-error.md.
const INTERPRETER: [f64; 2] = [1.2, 1.25];
const COMPILERS: [f64; 2] = [2.5, 10.0];

/// What is known of the times of a target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetError {
    /// The JVM, in its own words.
    pub jvm: String,
    pub has_compilers: bool,
    /// By which factors such estimates were too low, on programs that were measured there.
    pub too_low: [f64; 2],
}

impl TargetError {
    /// Of a series of a profile; `None` if it is of no target.
    pub fn of(profile: &Profile, info: &SeriesInfo) -> Option<Self> {
        if info.kind.name() != TARGET_TIME {
            return None;
        }
        let jvm = profile.run.options.iter().find(|(name, _)| name == TARGET);
        let jvm = jvm.map_or("another JVM", |(_, jvm)| jvm).to_owned();
        let has_compilers = !jvm.contains("interpreted mode");
        let too_low = if has_compilers { COMPILERS } else { INTERPRETER };
        Some(TargetError { jvm, has_compilers, too_low })
    }

    /// In a few words, beside a figure.
    pub fn told(&self) -> String {
        let [least, most] = self.too_low;
        let more = if self.has_compilers { " or more" } else { "" };
        format!("too low, by a factor of {least} to {most}{more} on programs that were measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is generated, so this fails when it says something else than reports do.
    #[test]
    fn factors_are_those_of_the_docs() {
        let page = include_str!("../../../docs/target-error.md");
        for (target, told) in [("interpreter", INTERPRETER), ("compilers", COMPILERS)] {
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
