//! Which methods get hooks next: from the hot ones, which samples name, one branching level of
//! callers after the other to the roots.
//!
//! Only decisions are made here, of what a [`Climb`] knows; the engine carries them out. A method
//! whose calls come from several callers passes the walk on to each of them. One with a single
//! caller tells nothing of who pays, so the walk goes on to the next method above that has several.

mod words;

pub use words::short;

use crate::words::{count, interval, plain, several};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tare_analysis::climb::{
    Climb, ClimbMetric, MethodKey, Node, OFTEN, OFTEN_ALLOWED, Payer, Stability, State, stability,
};
use words::{told, well};

/// Hooks at a time, however many callers there are.
pub const MOST_HOOKS: usize = 16;

/// How long the program is sampled before the first hook, and how many samples that takes.
const SAMPLING: Duration = Duration::from_secs(2);
const SAMPLES: u64 = 100;
/// With few samples for so long, those must do.
const SAMPLING_AT_MOST: Duration = Duration::from_secs(10);

/// A method is measured for so long, stable or not, and given up sooner if nobody calls it.
const MEASURING: Duration = Duration::from_secs(10);
const UNCALLED: Duration = Duration::from_secs(3);

/// A rate is believed after this time.
pub const TRIAL: Duration = Duration::from_millis(300);

/// Callers are followed until they cover this share, and none that has less than the other.
const COVER: f64 = 0.9;
const LEAST: f64 = 0.03;
/// A caller with this share is the only one.
const ONLY: f64 = 0.97;

/// Levels at most: a walk that finds no root does not go on for ever.
const LEVELS: u32 = 50;

/// In the background, the time between two walks.
const REST: Duration = Duration::from_secs(30);

/// What the user may choose.
#[derive(Clone, Debug)]
pub struct Aims {
    pub metric: ClimbMetric,
    /// The hot methods to begin with, at most.
    pub top: usize,
    /// The share of all samples that makes a method hot.
    pub min_share: f64,
    /// What hooks may take of the program's processor time.
    pub overhead: f64,
    /// It goes on when it has come to the roots.
    pub again: bool,
    /// What comes first is no part of it: a program that starts is busy with starting.
    pub warm_up: Duration,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    Wait,
    /// Just these have hooks from now on.
    Hook(Vec<MethodKey>),
    /// It has come to the roots.
    Done,
}

enum Phase {
    Sampling,
    Measuring,
    Resting,
    Done,
}

/// One climb.
pub struct Climber {
    aims: Aims,
    phase: Phase,
    since: Instant,
    round: u32,
    level: u32,
    /// The methods of this level, hooked or not.
    current: Vec<MethodKey>,
    /// Those of this round that need no second look.
    met: HashSet<MethodKey>,
    /// What was decided and is not yet in the recording.
    decided: Vec<Node>,
    /// Sentences for the user.
    notes: Vec<String>,
    said_idle: bool,
    is_warm: bool,
    /// Those that are called very often, as was said.
    often: HashSet<MethodKey>,
}

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
    Measuring,
    Resting,
    Done,
}

impl Climber {
    pub fn new(aims: Aims) -> Self {
        let is_warm = aims.warm_up.is_zero();
        Climber {
            is_warm,
            aims,
            phase: Phase::Sampling,
            since: Instant::now(),
            round: 1,
            level: 0,
            current: Vec::new(),
            met: HashSet::new(),
            decided: Vec::new(),
            notes: Vec::new(),
            said_idle: false,
            often: HashSet::new(),
        }
    }

    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// What was decided since the last time.
    pub fn decided(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.decided)
    }

    fn decide(&mut self, climb: &mut Climb, method: MethodKey, state: State, why: String) {
        let known = climb.node(method).filter(|_| self.met.contains(&method));
        let level = known.map_or(self.level, |node| node.level);
        self.met.insert(method);
        let node = Node { method, level, state, why, since: 0 };
        climb.tell(node.clone());
        self.decided.push(node);
    }

    /// What is to be done, now that more is known. `cpu` is the program's processor time a second,
    /// and `pass_ns` what a call of a hooked method takes that is not even counted.
    pub fn turn(&mut self, climb: &mut Climb, cpu: f64, pass_ns: f64) -> Turn {
        match self.phase {
            Phase::Sampling => self.choose_leaves(climb),
            Phase::Measuring => self.measure(climb, cpu, pass_ns),
            Phase::Resting if self.since.elapsed() >= REST => {
                self.begin_again(climb);
                Turn::Wait
            }
            Phase::Resting => Turn::Wait,
            Phase::Done => Turn::Done,
        }
    }

    fn begin_again(&mut self, climb: &mut Climb) {
        climb.samples.begin_again();
        self.round += 1;
        self.level = 0;
        self.met.clear();
        self.enter(Phase::Sampling);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }

    fn choose_leaves(&mut self, climb: &mut Climb) -> Turn {
        if !self.is_warm {
            if self.since.elapsed() < self.aims.warm_up {
                return Turn::Wait;
            }
            self.is_warm = true;
            climb.samples.begin_again();
            self.enter(Phase::Sampling);
        }
        let passed = self.since.elapsed();
        let (total, enough) = (climb.samples.count, climb.samples.count >= SAMPLES);
        let hot = climb.samples.hot();
        if passed < SAMPLING || (!enough && passed < SAMPLING_AT_MOST) || hot.is_empty() {
            if passed >= SAMPLING_AT_MOST && hot.is_empty() && !self.said_idle {
                self.said_idle = true;
                let word = "no Java method was met by a sample so far; the climb begins when the program \
                            works";
                self.notes.push(word.to_owned());
            }
            return Turn::Wait;
        }
        let share = |own: u64| climb.samples.share(own);
        let above = hot.iter().filter(|(_, own)| share(*own) >= self.aims.min_share).count();
        let few = if above > 0 { above.min(self.aims.top) } else { self.aims.top };
        let leaves: Vec<(MethodKey, u64)> = hot.iter().take(few).copied().collect();
        let listed = leaves.iter().map(|(method, own)| {
            let name = short(climb.names.name(*method));
            format!("{name} {:.0} %", share(*own) * 100.0)
        });
        let listed: Vec<String> = listed.collect();
        let rule = match above {
            0 => format!("none has {:.0} %, so the first", self.aims.min_share * 100.0),
            n if n > few => format!("the first of {n} with {:.0} %", self.aims.min_share * 100.0),
            _ => format!("at least {:.0} %", self.aims.min_share * 100.0),
        };
        self.notes.push(format!(
            "hot, of {}: {} ({rule})",
            several(total, "sample"),
            listed.join(", ")
        ));
        self.current = leaves.into_iter().map(|(method, _)| method).collect();
        for method in self.current.clone() {
            self.decide(climb, method, State::Hooked, String::new());
        }
        self.enter(Phase::Measuring);
        Turn::Hook(self.current.clone())
    }

    /// What became of hooks that were asked for: those that there are, and why others are not.
    pub fn hooked(
        &mut self,
        climb: &mut Climb,
        asked: &[MethodKey],
        refused: &HashMap<MethodKey, String>,
        pause: u64,
    ) {
        // Weaving is not a part of measuring.
        self.since = Instant::now();
        let set = asked.iter().filter(|method| !refused.contains_key(method)).count();
        if set > 0 {
            let stood = match pause {
                0 => String::new(),
                pause => format!(", the program stood still for {}", interval(pause)),
            };
            self.notes.push(format!("level {}: {}{stood}", self.level, several(set, "hook")));
        }
        for (method, why) in refused {
            if self.current.contains(method) {
                let name = short(climb.names.name(*method));
                self.notes.push(format!("{name} has no hook: {}", plain(why)));
                self.decide(climb, *method, State::Sampled, why.clone());
            }
        }
    }

    /// What a hook may take of the program's processor time, of a method with so many calls a
    /// second.
    fn allowed(&self, rate: f64) -> f64 {
        if rate > OFTEN { self.aims.overhead.max(OFTEN_ALLOWED) } else { self.aims.overhead }
    }

    fn is_open(climb: &Climb, method: MethodKey) -> bool {
        climb.node(method).is_some_and(|node| node.state == State::Hooked)
    }

    fn measure(&mut self, climb: &mut Climb, cpu: f64, pass_ns: f64) -> Turn {
        let passed = self.since.elapsed();
        let open: Vec<MethodKey> =
            self.current.iter().copied().filter(|m| Self::is_open(climb, *m)).collect();
        let mut too_many = Vec::new();
        for method in &open {
            let hook = climb.measured(*method).filter(|hook| hook.off.is_none());
            let calls = hook.map_or(0, |hook| hook.calls);
            let known = hook.map(|hook| stability(hook, self.aims.metric)).unwrap_or_default();
            let rate = hook.map_or(0.0, |hook| hook.calls_per_second());
            let allowed = self.allowed(rate);
            if passed >= TRIAL && rate > OFTEN && self.often.insert(*method) {
                let name = short(climb.names.name(*method));
                self.notes.push(format!(
                    "{name}: {} calls a second are counted for a part of the time; hooks of such \
                     methods may take {:.0} %",
                    count(rate as u64),
                    allowed * 100.0
                ));
            }
            if passed >= TRIAL && rate * pass_ns > cpu * allowed {
                too_many.push((*method, rate, allowed));
            } else if known.is_stable() {
                self.decide(climb, *method, State::Stable, well(&known));
                self.notes.push(told(climb, *method, self.aims.metric, &known));
            } else if calls == 0 && passed >= UNCALLED {
                let why = "nobody called it while it had a hook; it was entered before";
                self.decide(climb, *method, State::Entered, why.to_owned());
                let name = short(climb.names.name(*method));
                self.notes.push(format!("{name}: {why}"));
            } else if passed >= MEASURING {
                let why = format!("{} after {} s", well(&known), MEASURING.as_secs());
                self.decide(climb, *method, State::Unstable, why);
                self.notes.push(told(climb, *method, self.aims.metric, &known));
            }
        }
        for (method, rate, allowed) in &too_many {
            let why = format!(
                "{} calls a second are too many for a hook within {:.0} %; its callers are those of \
                 a short time",
                count(*rate as u64),
                allowed * 100.0
            );
            let name = short(climb.names.name(*method)).to_owned();
            self.decide(climb, *method, State::Sampled, why.clone());
            self.notes.push(format!("{name}: {why}"));
        }
        let still: Vec<MethodKey> =
            open.iter().copied().filter(|method| Self::is_open(climb, *method)).collect();
        match still.is_empty() {
            true => self.climb_up(climb),
            // Those that cost too much go at once.
            false if !too_many.is_empty() => {
                let all = self.current.iter().copied();
                let kept = all.filter(|method| {
                    let state = climb.node(*method).map(|node| node.state);
                    !matches!(state, Some(State::Sampled) | None)
                });
                Turn::Hook(kept.collect())
            }
            false => Turn::Wait,
        }
    }

    /// The level is known: its callers are next.
    fn climb_up(&mut self, climb: &mut Climb) -> Turn {
        self.level += 1;
        let mut next: Vec<MethodKey> = Vec::new();
        let mut chains: Vec<MethodKey> = Vec::new();
        for method in std::mem::take(&mut self.current) {
            let payers = payers(climb, method, self.aims.metric);
            match payers[..] {
                [] => {
                    let measured = climb.measured(method).is_some_and(|hook| hook.told > 0);
                    if measured || is_root(climb, method) {
                        let why = "a thread begins with it".to_owned();
                        self.decide(climb, method, State::Root, why);
                    }
                }
                // What could not be measured has its only caller measured instead.
                [only] if !is_known(climb, method) => next.push(only),
                [only] => chains.push(only),
                _ => next.extend(payers),
            }
        }
        // What gets a hook in any case is not passed by.
        for only in chains {
            let above = self.above(climb, only, &next);
            next.extend(above);
        }
        let mut seen = HashSet::new();
        next.retain(|method| seen.insert(*method) && !self.met.contains(method));
        next.sort_by_key(|method| std::cmp::Reverse(climb.samples.within(*method)));
        for method in next.split_off(next.len().min(MOST_HOOKS)) {
            let why = format!("it would have been more than {MOST_HOOKS} hooks at once");
            self.decide(climb, method, State::Sampled, why);
        }
        if next.is_empty() || self.level > LEVELS {
            let levels = several(self.level, "level");
            self.notes.push(format!("{levels} climbed, to the roots"));
            self.enter(if self.aims.again { Phase::Resting } else { Phase::Done });
            return if self.aims.again { Turn::Hook(Vec::new()) } else { Turn::Done };
        }
        self.current = next;
        for method in self.current.clone() {
            self.decide(climb, method, State::Hooked, String::new());
        }
        self.enter(Phase::Measuring);
        Turn::Hook(self.current.clone())
    }

    /// From the only caller of a method on, the first that has several callers, by samples; none if
    /// there is a root instead.
    fn above(
        &mut self,
        climb: &mut Climb,
        from: MethodKey,
        next: &[MethodKey],
    ) -> Option<MethodKey> {
        let mut method = from;
        loop {
            if self.met.contains(&method) || next.contains(&method) {
                return None;
            }
            let callers = climb.samples.callers(method);
            let within = climb.samples.within(method) as f64;
            match callers.first() {
                Some((first, weight)) if *weight as f64 >= within * ONLY => match first {
                    None => {
                        let why = "a thread begins with it".to_owned();
                        self.decide(climb, method, State::Root, why);
                        return None;
                    }
                    Some(caller) => {
                        let name = short(climb.names.name(*caller)).to_owned();
                        let why = format!("samples know one caller, {name}");
                        self.decide(climb, method, State::Passed, why);
                        method = *caller;
                    }
                },
                _ => return Some(method),
            }
        }
    }

    /// The hooks that are left when it ends before its time.
    pub fn leave(&mut self, climb: &mut Climb) {
        for method in self.current.clone() {
            if Self::is_open(climb, method) {
                let hook = climb.measured(method);
                let known = hook.map(|hook| stability(hook, self.aims.metric)).unwrap_or_default();
                let why = format!("{}, when the climb ended", well(&known));
                self.decide(climb, method, State::Unstable, why);
            }
        }
    }

    pub fn progress(&self, climb: &Climb) -> Progress {
        let of = |method: &MethodKey| climb.measured(*method).filter(|hook| hook.off.is_none());
        let hooks: Vec<_> = self.current.iter().filter_map(of).collect();
        let known: Vec<Stability> =
            hooks.iter().map(|hook| stability(hook, self.aims.metric)).collect();
        Progress {
            doing: match self.phase {
                Phase::Sampling => Doing::Sampling,
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

/// The callers that matter: together they pay for most of a method.
fn payers(climb: &Climb, method: MethodKey, metric: ClimbMetric) -> Vec<MethodKey> {
    let mut covered = 0.0;
    let mut followed = Vec::new();
    for payer in climb.payers(method, metric) {
        let Payer { method: Some(caller), .. } = payer else { continue };
        if covered >= COVER || payer.share() < LEAST || caller == method {
            continue;
        }
        covered += payer.share();
        followed.push(caller);
    }
    followed
}

/// Whether hooks have told of a method for as long as it took.
fn is_known(climb: &Climb, method: MethodKey) -> bool {
    let state = climb.node(method).map(|node| node.state);
    matches!(state, Some(State::Stable | State::Unstable))
}

fn is_root(climb: &Climb, method: MethodKey) -> bool {
    climb.samples.callers(method).first().is_some_and(|(caller, _)| caller.is_none())
}

#[cfg(test)]
mod tests;
