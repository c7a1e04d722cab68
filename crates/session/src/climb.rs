//! Which methods get hooks next: from the hot ones, which samples name, one branching level of
//! callers after the other to the roots.
//!
//! Only decisions are made here, of what a [`Climb`] knows; the engine carries them out. A method
//! whose calls come from several callers passes the walk on to each of them. One with a single
//! caller tells nothing of who pays, so the walk goes on to the next method above that has several.

mod progress;
mod spine;
mod up;
mod words;

pub use progress::{Doing, Progress};
pub use words::short;

use crate::words::{count, interval, plain, several};
use spine::{Weighted, ahead};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tare_analysis::climb::{
    Climb, ClimbMetric, MethodKey, Node, OFTEN, OFTEN_ALLOWED, State, stability,
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

/// Compilers that take less of a processor than this have settled, and after so long nobody waits
/// for them.
const SETTLED: f64 = 0.1;
const SETTLING: Duration = Duration::from_secs(8);

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
    Hook(Hooks),
    /// It has come to the roots.
    Done,
}

/// Which methods have hooks from now on, and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Those that tell.
    pub telling: Vec<MethodKey>,
    /// Those that are there for later levels: what sets one sets all, since the JVM compiles all
    /// code anew that has to do with a class that is loaded again.
    pub waiting: Vec<MethodKey>,
    /// What they told so far is forgotten.
    pub anew: bool,
}

/// What the agent and the JVM tell, beside calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// The program's processor time a second, in nanoseconds.
    pub cpu: f64,
    /// What a call of a hooked method takes that is not even counted, in nanoseconds.
    pub pass_ns: f64,
    /// How much of a processor the JVM's compilers take.
    pub compiling: f64,
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
    current: Weighted,
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
    /// Those that have hooks, and those that are to have none.
    woven: Vec<MethodKey>,
    refused: HashMap<MethodKey, String>,
    /// Those that have lost a hook before, because somebody else changed their class.
    taken: HashSet<MethodKey>,
    /// Code that was woven is being compiled: what hooks tell is of no use yet.
    is_settling: bool,
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
            woven: Vec::new(),
            refused: HashMap::new(),
            taken: HashSet::new(),
            is_settling: false,
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

    /// What is to be done, now that more is known.
    pub fn turn(&mut self, climb: &mut Climb, load: Load) -> Turn {
        match self.phase {
            Phase::Sampling => self.choose_leaves(climb),
            Phase::Measuring => self.measure(climb, load),
            Phase::Resting if self.since.elapsed() >= REST => {
                self.begin_again(climb);
                Turn::Wait
            }
            Phase::Resting => Turn::Wait,
            Phase::Done => Turn::Done,
        }
    }

    /// It looks for what is hot, for which it has nothing but samples.
    pub fn is_sampling(&self) -> bool {
        matches!(self.phase, Phase::Sampling)
    }

    /// It has come to the roots, and does not go on, or not yet.
    pub fn is_at_the_roots(&self) -> bool {
        matches!(self.phase, Phase::Resting | Phase::Done)
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
        let all: u64 = leaves.iter().map(|(_, own)| own).sum();
        let weight = |own: u64| own as f64 / all.max(1) as f64;
        self.current = leaves.into_iter().map(|(method, own)| (method, weight(own))).collect();
        self.hook_level(climb)
    }

    /// The methods of a level get hooks, or those that wait there tell.
    fn hook_level(&mut self, climb: &mut Climb) -> Turn {
        self.enter(Phase::Measuring);
        for method in self.methods() {
            match self.refused.get(&method).cloned() {
                Some(why) => self.decide(climb, method, State::Sampled, why),
                None => self.decide(climb, method, State::Hooked, String::new()),
            }
        }
        let telling = self.open(climb);
        let is_woven = |method: &MethodKey| self.woven.contains(method);
        let waiting = match telling.iter().all(is_woven) {
            true => self.woven.clone(),
            false => self.ahead(climb, telling.len()),
        };
        Turn::Hook(self.hooks(telling, waiting))
    }

    /// What later levels will need, beside so many hooks.
    fn ahead(&self, climb: &Climb, taken: usize) -> Vec<MethodKey> {
        let without: HashSet<MethodKey> = self.refused.keys().copied().collect();
        let most = MOST_HOOKS.saturating_sub(taken);
        ahead(climb, self.current.clone(), self.aims.metric, &without, most)
    }

    fn hooks(&self, telling: Vec<MethodKey>, mut waiting: Vec<MethodKey>) -> Hooks {
        let is_new = |method: &MethodKey| !telling.contains(method);
        waiting.retain(|method| is_new(method) && !self.refused.contains_key(method));
        waiting.truncate(MOST_HOOKS.saturating_sub(telling.len()));
        Hooks { telling, waiting, anew: false }
    }

    /// What became of hooks that were asked for: why some are not there, and how long the program
    /// stood still. `is_batch` if classes were loaded again.
    pub fn hooked(
        &mut self,
        climb: &mut Climb,
        asked: &Hooks,
        refused: &HashMap<MethodKey, String>,
        is_batch: bool,
        pause: u64,
    ) {
        // Weaving is not a part of measuring.
        self.since = Instant::now();
        let all = asked.telling.iter().chain(&asked.waiting).copied();
        self.woven = all.filter(|method| !refused.contains_key(method)).collect();
        let is_set = |method: &&MethodKey| !refused.contains_key(method);
        let set = asked.telling.iter().filter(is_set).count();
        self.is_settling = is_batch && set > 0;
        if set > 0 && !asked.anew {
            let later = match asked.waiting.iter().filter(is_set).count() {
                later if is_batch && later > 0 => format!(", and {later} for later"),
                _ => String::new(),
            };
            let stood = match pause {
                0 => String::new(),
                pause => format!(", the program stood still for {}", interval(pause)),
            };
            let hooks = several(set, "hook");
            self.notes.push(format!("level {}: {hooks}{later}{stood}", self.level));
        }
        for (method, why) in refused {
            self.refused.insert(*method, why.clone());
            if asked.telling.contains(method) {
                let name = short(climb.names.name(*method));
                self.notes.push(format!("{name} has no hook: {}", plain(why)));
                self.decide(climb, *method, State::Sampled, why.clone());
            }
        }
    }

    /// Those that have hooks, as far as is known.
    pub fn woven(&self) -> &[MethodKey] {
        &self.woven
    }

    /// Hooks that went because somebody else had their classes changed. Those that tell are set
    /// again, once; the others when it is their turn.
    pub fn taken(&mut self, climb: &mut Climb, methods: &[MethodKey]) -> Turn {
        self.woven.retain(|method| !methods.contains(method));
        let told = self.open(climb);
        let told: Vec<MethodKey> = told.into_iter().filter(|m| methods.contains(m)).collect();
        for method in methods {
            let name = short(climb.names.name(*method)).to_owned();
            if self.taken.insert(*method) {
                self.notes
                    .push(format!("{name}: another agent changed its class; its hook is gone"));
                continue;
            }
            let why = "another agent changes its class again and again".to_owned();
            self.notes.push(format!("{name} has no hook any more: {why}"));
            if told.contains(method) {
                self.decide(climb, *method, State::Sampled, why.clone());
            }
            self.refused.insert(*method, why);
        }
        let telling = self.open(climb);
        if !told.iter().any(|method| telling.contains(method)) {
            return Turn::Wait;
        }
        let waiting = [&self.woven[..], methods].concat();
        Turn::Hook(self.hooks(telling, waiting))
    }

    /// What a hook may take of the program's processor time, of a method with so many calls a
    /// second.
    fn allowed(&self, rate: f64) -> f64 {
        if rate > OFTEN { self.aims.overhead.max(OFTEN_ALLOWED) } else { self.aims.overhead }
    }

    /// The methods of this level.
    fn methods(&self) -> Vec<MethodKey> {
        self.current.iter().map(|(method, _)| *method).collect()
    }

    /// Those whose hooks tell.
    fn open(&self, climb: &Climb) -> Vec<MethodKey> {
        self.methods().into_iter().filter(|method| Self::is_open(climb, *method)).collect()
    }

    fn is_open(climb: &Climb, method: MethodKey) -> bool {
        climb.node(method).is_some_and(|node| node.state == State::Hooked)
    }

    fn measure(&mut self, climb: &mut Climb, load: Load) -> Turn {
        let passed = self.since.elapsed();
        let open = self.open(climb);
        let mut too_many = Vec::new();
        for method in &open {
            let hook = climb.measured(*method).filter(|hook| hook.off.is_none());
            let calls = hook.map_or(0, |hook| hook.calls);
            let known = hook.map(|hook| stability(hook, self.aims.metric)).unwrap_or_default();
            let rate = hook.map_or(0.0, |hook| hook.calls_per_second());
            let allowed = self.allowed(rate);
            let is_trusted = passed >= TRIAL && !self.is_settling;
            if is_trusted && rate > OFTEN && self.often.insert(*method) {
                let name = short(climb.names.name(*method));
                self.notes.push(format!(
                    "{name}: {} calls a second are counted for a part of the time; hooks of such \
                     methods may take {:.0} %",
                    count(rate as u64),
                    allowed * 100.0
                ));
            }
            if passed >= TRIAL && rate * load.pass_ns > load.cpu * allowed {
                too_many.push((*method, rate, allowed));
            } else if self.is_settling {
                // Not yet what a call takes.
                continue;
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
            self.refused.insert(*method, why);
        }
        let still: Vec<MethodKey> =
            open.iter().copied().filter(|method| Self::is_open(climb, *method)).collect();
        if still.is_empty() {
            return self.climb_up(climb);
        }
        // Those that cost too much go at once, and what will be next comes with it.
        if !too_many.is_empty() {
            let waiting = self.ahead(climb, still.len());
            return Turn::Hook(self.hooks(still, waiting));
        }
        let is_quiet = load.compiling < SETTLED || passed >= SETTLING;
        if self.is_settling && passed >= TRIAL && is_quiet {
            let hooks = self.hooks(still, self.woven.clone());
            return Turn::Hook(Hooks { anew: true, ..hooks });
        }
        Turn::Wait
    }

    /// The hooks that are left when it ends before its time.
    pub fn leave(&mut self, climb: &mut Climb) {
        for method in self.open(climb) {
            let hook = climb.measured(method);
            let known = hook.map(|hook| stability(hook, self.aims.metric)).unwrap_or_default();
            let why = format!("{}, when the climb ended", well(&known));
            self.decide(climb, method, State::Unstable, why);
        }
    }
}

#[cfg(test)]
mod tests;
