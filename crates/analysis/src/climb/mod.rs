//! Hot spots followed upwards: who calls whom, by hooks that count and time the calls of a few
//! methods, and by samples, which know all callers and no calls.
//!
//! Everything is made of a profile's rows ([`Climb::add`]): while a climb goes on of those that have
//! come, later of all that a recording has. Which method is hooked next is not decided here.

mod hooks;
mod samples;
mod stable;

pub use hooks::{Caller, Hook};
pub use samples::Samples;
pub use stable::{Stability, stability};

use std::collections::{BTreeMap, HashMap};
use tare_profile::{ContextId, EventKind, FieldType, FieldValue, MethodKind, Profile, Unit};

/// A method in the caller list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MethodKey(u32);

/// Methods by class, name and descriptor, `com.acme.Orders.place(I)V`, whatever loader they have.
#[derive(Clone, Debug, Default)]
pub struct Names {
    keys: HashMap<String, MethodKey>,
    texts: Vec<String>,
}

impl Names {
    pub fn key(&mut self, text: &str) -> MethodKey {
        if let Some(key) = self.keys.get(text) {
            return *key;
        }
        let key = MethodKey(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.keys.insert(text.to_owned(), key);
        self.texts.push(text.to_owned());
        key
    }

    pub fn text(&self, key: MethodKey) -> &str {
        self.texts.get(key.0 as usize).map_or("", String::as_str)
    }

    /// Without the descriptor.
    pub fn name(&self, key: MethodKey) -> &str {
        let text = self.text(key);
        text.split_once('(').map_or(text, |(name, _)| name)
    }

    /// As class files spell it: `com/acme/Orders.place(I)V`.
    pub fn wire(&self, key: MethodKey) -> String {
        let (name, descriptor) = self.text(key).split_once('(').unwrap_or((self.text(key), ""));
        let (class, method) = name.rsplit_once('.').unwrap_or(("", name));
        format!("{}.{method}({descriptor}", class.replace('.', "/"))
    }

    fn of_wire(&mut self, text: &str) -> MethodKey {
        let (name, descriptor) = text.split_once('(').unwrap_or((text, ""));
        self.key(&format!("{}({descriptor}", name.replace('/', ".")))
    }
}

/// What is known of a method while a climb goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has a hook now.
    Hooked,
    /// Measured until the estimate was stable.
    Stable,
    /// Measured for as long as there was time.
    Unstable,
    /// It has no hook, for a reason; what is known of it comes from samples.
    Sampled,
    /// It has one caller, by samples, so that a hook would tell nothing.
    Passed,
    /// Nobody called it while it had a hook: it was entered before.
    Entered,
    /// Nobody calls it: a thread begins with it.
    Root,
}

impl State {
    const ALL: [State; 7] = [
        State::Hooked,
        State::Stable,
        State::Unstable,
        State::Sampled,
        State::Passed,
        State::Entered,
        State::Root,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Hooked => "hooked",
            State::Stable => "stable",
            State::Unstable => "not stable",
            State::Sampled => "sampled",
            State::Passed => "passed",
            State::Entered => "entered before",
            State::Root => "root",
        }
    }
}

/// A method that a climb came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub method: MethodKey,
    /// From zero, for the hot methods.
    pub level: u32,
    pub state: State,
    pub why: String,
    /// In nanoseconds since the start of the run.
    pub since: u64,
}

/// All that is known of a climb.
#[derive(Clone, Debug, Default)]
pub struct Climb {
    pub names: Names,
    pub samples: Samples,
    /// By their numbers, in the order in which they were set.
    pub hooks: BTreeMap<u32, Hook>,
    /// In the order in which they were met; what was said last of each.
    pub nodes: Vec<Node>,
    /// What samples, hooks and the agent's threads took, and the program's processor time
    /// meanwhile, in nanoseconds.
    pub spent: (u64, u64),
    /// Each time that classes were loaded again.
    pub batches: Vec<Batch>,
}

/// Hooks were set or taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// In nanoseconds since the start of the run.
    pub time: u64,
    /// Those that are set from then on, also those that tell nothing yet, and the new ones.
    pub hooks: u64,
    pub new: u64,
    /// For how long the program stood still, in nanoseconds.
    pub pause: u64,
}

/// A caller as hooks and samples see it, by its share of what is spent in the method.
#[derive(Clone, PartialEq, Debug)]
pub struct Payer {
    /// None if nobody knows: a stack could not be walked.
    pub method: Option<MethodKey>,
    /// Estimated calls.
    pub calls: f64,
    /// By hooks; none if there was no hook.
    pub hooked: Option<f64>,
    pub sampled: Option<f64>,
}

impl Payer {
    /// The share that counts.
    pub fn share(&self) -> f64 {
        self.hooked.or(self.sampled).unwrap_or(0.0)
    }

    /// Whether hooks and samples are further apart than chance and probes would have them.
    pub fn is_disputed(&self) -> bool {
        const POINTS: f64 = 0.10;
        self.hooked.zip(self.sampled).is_some_and(|(a, b)| (a - b).abs() > POINTS)
    }
}

/// What is measured of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClimbMetric {
    #[default]
    Cpu,
    Wall,
    Calls,
}

impl ClimbMetric {
    pub fn name(self) -> &'static str {
        match self {
            ClimbMetric::Cpu => "cpu",
            ClimbMetric::Wall => "wall",
            ClimbMetric::Calls => "calls",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        [ClimbMetric::Cpu, ClimbMetric::Wall, ClimbMetric::Calls]
            .into_iter()
            .find(|metric| metric.name() == name)
    }
}

/// A method that is called more often than this in a second has a dearer hook, however few of its
/// calls are counted; such a hook may take this part of the program's processor time.
pub const OFTEN: f64 = 5e6;
pub const OFTEN_ALLOWED: f64 = 0.05;

/// The name of the events by which a climb tells what it decides.
pub const NODE: &str = "climb";

/// `climb`: what is decided of a method. The state is the name of a [`State`].
pub fn node_kind() -> EventKind {
    let level = ("level", FieldType::Integer(Unit::Count));
    let texts = [("method", FieldType::Text), ("state", FieldType::Text), ("why", FieldType::Text)];
    EventKind::new(NODE, &[&texts[..], &[level]].concat())
}

impl Climb {
    /// Whether a profile is of a climb.
    pub fn is_in(profile: &Profile) -> bool {
        profile.all_events().any(|(_, table)| table.kind().name == NODE)
    }

    /// All of a recording; `None` if it is of no climb.
    pub fn of(profile: &Profile) -> Option<Self> {
        Self::is_in(profile).then(|| {
            let mut climb = Climb::default();
            climb.add(profile);
            climb
        })
    }

    /// Takes what the rows of a profile tell, of which each is to be told once. Contexts and methods
    /// are those of earlier calls.
    pub fn add(&mut self, profile: &Profile) {
        self.samples.add(profile, &mut self.names);
        for (_, table) in profile.all_events() {
            let rows = Rows { profile, table };
            match table.kind().name.as_str() {
                "hook-batch" => rows.each(|row| {
                    self.batches.push(Batch {
                        time: row.time,
                        hooks: row.count("hooks"),
                        new: row.count("new"),
                        pause: row.count("pause"),
                    });
                }),
                "hook" => rows.each(|row| self.add_hook(&row)),
                "hook-calls" => rows.each(|row| {
                    let (number, time) = (row.number("number"), row.time);
                    self.hook(number).count(
                        time,
                        row.duration,
                        row.count("calls"),
                        row.count("told"),
                    );
                }),
                "hook-caller" => rows.each(|row| {
                    let caller = self.caller(profile, row.context);
                    let number = row.number("number");
                    let sums = hooks::Sums {
                        entered: row.count("calls"),
                        ended: row.count("ended"),
                        wall: row.count("wall"),
                        cpu: row.count("cpu"),
                        with_cpu: row.count("with-cpu"),
                    };
                    self.hook(number).caller(row.time, caller, sums);
                }),
                "hook-times" => rows.each(|row| {
                    let stretch = (row.count("from"), row.count("to"));
                    let count = row.count("count");
                    *self.hook(row.number("number")).times.entry(stretch).or_default() += count;
                }),
                "hook-cost" => rows.each(|row| {
                    self.spent.0 += row.count("spent");
                    self.spent.1 += row.count("cpu");
                }),
                NODE => rows.each(|row| {
                    let state = row.text("state");
                    let known = State::ALL.into_iter().find(|known| known.name() == state);
                    let Some(state) = known else { return };
                    let method = self.names.key(row.text("method"));
                    let level = row.number("level");
                    let why = row.text("why").to_owned();
                    self.tell(Node { method, level, state, why, since: row.time });
                }),
                _ => {}
            }
        }
    }

    fn hook(&mut self, number: u32) -> &mut Hook {
        self.hooks.entry(number).or_default()
    }

    fn add_hook(&mut self, row: &Row<'_>) {
        let method = self.names.of_wire(row.text("method"));
        let hook = self.hook(row.number("number"));
        hook.method = Some(method);
        match row.count("on") {
            0 => hook.off = Some(row.time),
            _ => hook.on = row.time,
        }
    }

    /// Who called, of the stack of a hooked method and its caller.
    fn caller(&mut self, profile: &Profile, context: ContextId) -> Caller {
        let mut java = profile
            .contexts
            .frames(context)
            .filter(|frame| profile.method_of(*frame).kind == MethodKind::Java);
        match (java.next(), java.next()) {
            (None, _) => Caller::Unknown,
            (Some(_), None) => Caller::Nobody,
            (Some(_), Some(frame)) => {
                let id = profile.frames.get(frame).method;
                Caller::Method(self.samples.method(profile, &mut self.names, id))
            }
        }
    }

    /// Notes what is decided of a method.
    pub fn tell(&mut self, node: Node) {
        match self.nodes.iter_mut().find(|known| known.method == node.method) {
            Some(known) => *known = node,
            None => self.nodes.push(node),
        }
    }

    pub fn node(&self, method: MethodKey) -> Option<&Node> {
        self.nodes.iter().find(|node| node.method == method)
    }

    /// Hooks that are set, those that tell nothing as well.
    pub fn now(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.hooks)
    }

    /// The most that there were at once.
    pub fn most(&self) -> u64 {
        self.batches.iter().map(|batch| batch.hooks).max().unwrap_or(0)
    }

    /// Those that were ever set.
    pub fn ever(&self) -> u64 {
        self.batches.iter().map(|batch| batch.new).sum()
    }

    /// For how long the program stood still, in nanoseconds.
    pub fn stood_still(&self) -> u64 {
        self.batches.iter().map(|batch| batch.pause).sum()
    }

    /// Whether a method with a hook was called very often.
    pub fn has_often_called(&self) -> bool {
        self.hooks.values().any(|hook| hook.calls_per_second() > OFTEN)
    }

    /// What was measured of a method last.
    pub fn measured(&self, method: MethodKey) -> Option<&Hook> {
        let mut of_method = self.hooks.values().rev().filter(|hook| hook.method == Some(method));
        of_method.clone().find(|hook| hook.calls > 0).or_else(|| of_method.next())
    }

    /// Who pays for a method, the largest share first.
    pub fn payers(&self, method: MethodKey, metric: ClimbMetric) -> Vec<Payer> {
        let sampled = self.samples.callers(method);
        let all = self.samples.within(method).max(1) as f64;
        let by_samples = |caller| {
            let of = sampled.iter().find(|(known, _)| *known == Some(caller));
            of.map_or(0.0, |(_, weight)| *weight as f64 / all)
        };
        let has_samples = self.samples.count_within(method) >= samples::FEWEST;
        let mut payers: Vec<Payer> = Vec::new();
        if let Some(hook) = self.measured(method).filter(|hook| hook.told > 0) {
            let mut costs = hook.costs(metric);
            // A recursion is no caller: whoever began it is.
            costs.retain(|(caller, ..)| *caller != Caller::Method(method));
            let total: f64 = costs.iter().map(|(.., cost)| cost).sum();
            for (caller, calls, cost) in costs {
                let method = match caller {
                    Caller::Method(caller) => Some(caller),
                    Caller::Nobody => continue,
                    Caller::Unknown => None,
                };
                let hooked = Some(if total > 0.0 { cost / total } else { 0.0 });
                let sampled = method.filter(|_| has_samples).map(by_samples);
                payers.push(Payer { method, calls, hooked, sampled });
            }
        }
        let is_hooked = !payers.is_empty();
        for (caller, weight) in &sampled {
            let Some(caller) = *caller else { continue };
            if caller == method {
                continue;
            }
            if payers.iter().all(|payer| payer.method != Some(caller)) {
                let hooked = is_hooked.then_some(0.0);
                let sampled = Some(*weight as f64 / all);
                payers.push(Payer { method: Some(caller), calls: 0.0, hooked, sampled });
            }
        }
        payers.sort_by(|a, b| b.share().total_cmp(&a.share()));
        payers
    }
}

/// The rows of a table, by the names of their fields.
struct Rows<'a> {
    profile: &'a Profile,
    table: &'a tare_profile::EventTable,
}

struct Row<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    time: u64,
    duration: u64,
    context: ContextId,
}

impl Rows<'_> {
    fn each(&self, mut work: impl FnMut(Row<'_>)) {
        for (at, event) in self.table.events().enumerate() {
            let (time, duration, context) = (event.time, event.duration, event.context);
            work(Row { rows: self, at, time, duration, context });
        }
    }
}

impl Row<'_> {
    fn field(&self, name: &str) -> Option<FieldValue> {
        self.rows.table.field(self.at, self.rows.table.field_named(name)?)
    }

    fn count(&self, name: &str) -> u64 {
        match self.field(name) {
            Some(FieldValue::Integer(value)) => value.max(0).unsigned_abs(),
            _ => 0,
        }
    }

    fn number(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Some(FieldValue::Text(id)) => self.rows.profile.strings.get(id),
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests;
