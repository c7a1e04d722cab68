//! How far a climb is, for who watches it.

use super::{Climber, Phase};
use tare_analysis::climb::{Climb, MethodKey, Stability, stability};

/// How far a climb is, for who watches.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub doing: Doing,
    pub level: u32,
    pub round: u32,
    /// Calls that were counted and timed of the hooked methods.
    pub calls_per_second: f64,
    pub calls: u64,
    pub timed: u64,
    /// Of the method that is known worst.
    pub batches: usize,
    pub half_width: Option<f64>,
    /// Of those with hooks, how many are known well.
    pub stable: usize,
    pub hooked: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    #[default]
    Sampling,
    /// Woven code is being compiled.
    Settling,
    Measuring,
    Resting,
    Done,
}

impl Climber {
    pub fn progress(&self, climb: &Climb) -> Progress {
        let of = |method: &MethodKey| climb.measured(*method).filter(|hook| hook.off.is_none());
        let hooks: Vec<_> = self.methods().iter().filter_map(of).collect();
        let known: Vec<Stability> =
            hooks.iter().map(|hook| stability(hook, self.aims.metric)).collect();
        Progress {
            doing: match self.phase {
                Phase::Sampling => Doing::Sampling,
                Phase::Measuring if self.is_settling => Doing::Settling,
                Phase::Measuring => Doing::Measuring,
                Phase::Resting => Doing::Resting,
                Phase::Done => Doing::Done,
            },
            level: self.level,
            round: self.round,
            calls_per_second: hooks.iter().map(|hook| hook.calls_per_second()).sum(),
            calls: hooks.iter().map(|hook| hook.calls).sum(),
            timed: hooks.iter().map(|hook| hook.told).sum(),
            batches: known.iter().map(|known| known.batches).min().unwrap_or(0),
            half_width: known
                .iter()
                .map(|known| known.half_width)
                .filter(|width| width.is_finite())
                .reduce(f64::max),
            stable: known.iter().filter(|known| known.is_stable()).count(),
            hooked: hooks.len(),
        }
    }
}
