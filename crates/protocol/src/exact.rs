//! What an exact recording is asked to do, and how it is doing.

use crate::{Message, MethodPattern, Pattern, Region, WireError};
use std::fmt;
use std::str::FromStr;

/// Which of the methods that may be woven are, when roots are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// What a method calls is woven when it first runs.
    #[default]
    Lazy,
    /// All that can be reached is woven, as far as it is loaded, and what is loaded later.
    Eager,
    /// Everything; the roots only decide what is counted.
    All,
}

impl Scheme {
    pub const ALL: [Scheme; 3] = [Scheme::Lazy, Scheme::Eager, Scheme::All];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Lazy => "lazy",
            Scheme::Eager => "eager",
            Scheme::All => "all",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of lazy, eager, all"))
    }
}

/// How executed bytecodes are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAnalysis {
    /// A block that an exception leaves half way is counted as a whole.
    #[default]
    Default,
    /// Whatever can throw ends a block: exact under exceptions, too.
    Precise,
}

impl BlockAnalysis {
    pub const ALL: [BlockAnalysis; 2] = [BlockAnalysis::Default, BlockAnalysis::Precise];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlockAnalysis::Default => "default",
            BlockAnalysis::Precise => "precise",
        }
    }
}

impl fmt::Display for BlockAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlockAnalysis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = BlockAnalysis::ALL.into_iter().find(|blocks| blocks.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of default, precise"))
    }
}

/// What costs of bytecodes are counted in, in picoseconds.
pub const COST_PS: u64 = 10;

/// Which methods are woven, and what is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactPlan {
    /// Invocations and times, or invocations alone.
    pub timed: bool,
    /// Executed bytecodes beside the invocations; not together with times.
    pub bytecodes: Option<BlockAnalysis>,
    /// With bytecodes: what one counts for, by its kind (`tare_classfile::kinds`), in [`COST_PS`]; none
    /// means one each.
    pub costs: Vec<u32>,
    /// Only a sample whenever a thread has executed so many bytecodes; without roots.
    pub every: Option<u32>,
    /// With samples: their distance is so on average only; the seed of what is random in it.
    pub random: Option<u64>,
    /// With bytecodes: the jar of an agent written in Java, as the JVM finds it.
    pub agent_jar: Option<String>,
    /// Objects and bytes that are allocated, beside the bytecodes.
    pub allocations: bool,
    /// Classes; none means every class that is not the JDK's.
    pub include: Vec<Pattern>,
    /// Classes besides, whatever `include` says; `exclude` does not touch them.
    pub also: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
    /// Methods where the subgraph begins; none means that every woven method may begin it.
    pub roots: Vec<MethodPattern>,
    /// With roots: how what they reach is found.
    pub scheme: Scheme,
    /// Leave methods as they are that are empty or only hand out or store a field.
    pub skip_trivial: bool,
    /// With roots: threads that are started below them are below them, too, and so are tasks.
    pub follow_threads: bool,
    /// Methods and lines whose every passage is timed, whatever else is recorded.
    pub regions: Vec<Region>,
    /// No trees, only regions.
    pub regions_only: bool,
    /// Methods that are counted but not timed.
    pub count_only: Vec<MethodPattern>,
    /// Time even methods that are over sooner than a clock can be read, which are else counted.
    pub time_all: bool,
    /// Time that threads spent on a processor, instead of time that passed.
    pub cpu_time: bool,
    /// A method that is called while it is under way counts in its outer context; only when not
    /// timed.
    pub fold: bool,
    /// Contexts deeper than this are summed up in their ancestor's rest; zero means no limit.
    pub depth: u32,
    /// Bytes that the trees may take.
    pub memory: u64,
    /// Weave methods that pass 8,000 bytes by it, which HotSpot does not compile.
    pub allow_huge: bool,
    /// Every entry and exit instead of trees, in rings of so many bytes; zero means trees.
    pub trace: u64,
    /// In a trace: milliseconds, a second at most, that a thread waits for room in its ring before it drops
    /// events; zero means never.
    pub wait: u64,
}

impl ExactPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        let bytecodes = self.bytecodes.map_or("no", BlockAnalysis::name);
        message
            .with("timed", self.timed)
            .with("bytecodes", bytecodes)
            .with_all("cost", &self.costs)
            .with_all("every", &Vec::from_iter(self.every))
            .with_all("random", &Vec::from_iter(self.random))
            .with_all("agent-jar", &Vec::from_iter(self.agent_jar.as_ref()))
            .with("allocations", self.allocations)
            .with_all("include", &self.include)
            .with_all("also", &self.also)
            .with_all("exclude", &self.exclude)
            .with_all("root", &self.roots)
            .with("scheme", self.scheme)
            .with("skip-trivial", self.skip_trivial)
            .with("follow-threads", self.follow_threads)
            .with_all("region", &self.regions)
            .with("regions-only", self.regions_only)
            .with_all("count-only", &self.count_only)
            .with("time-all", self.time_all)
            .with("cpu-time", self.cpu_time)
            .with("fold", self.fold)
            .with("depth", self.depth)
            .with("memory", self.memory)
            .with("allow-huge", self.allow_huge)
            .with("trace", self.trace)
            .with("wait", self.wait)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        let bytecodes: String = m.parse("bytecodes")?;
        Ok(ExactPlan {
            timed: m.parse("timed")?,
            bytecodes: if bytecodes == "no" { None } else { Some(m.parse("bytecodes")?) },
            costs: all(m, "cost")?,
            every: all(m, "every")?.pop(),
            random: all(m, "random")?.pop(),
            agent_jar: all(m, "agent-jar")?.pop(),
            allocations: m.parse("allocations")?,
            include: all(m, "include")?,
            also: all(m, "also")?,
            exclude: all(m, "exclude")?,
            roots: all(m, "root")?,
            scheme: m.parse("scheme")?,
            skip_trivial: m.parse("skip-trivial")?,
            follow_threads: m.parse("follow-threads")?,
            regions: all(m, "region")?,
            regions_only: m.parse("regions-only")?,
            count_only: all(m, "count-only")?,
            time_all: m.parse("time-all")?,
            cpu_time: m.parse("cpu-time")?,
            fold: m.parse("fold")?,
            depth: m.parse("depth")?,
            memory: m.parse("memory")?,
            allow_huge: m.parse("allow-huge")?,
            trace: m.parse("trace")?,
            wait: m.parse("wait")?,
        })
    }
}

/// Every value of a field that may repeat.
pub(crate) fn all<T: FromStr>(m: &Message, key: &'static str) -> Result<Vec<T>, WireError> {
    let bad = |_| WireError::BadField { verb: m.verb.clone(), key };
    m.list(key).iter().map(|text| text.parse().map_err(bad)).collect()
}

/// What was not woven, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// A class, a method, or `others` with the same reason.
    pub what: String,
    pub count: u64,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.count, self.what, self.reason)
    }
}

impl FromStr for Refusal {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (count, rest) = text.split_once(' ').ok_or(())?;
        let (what, reason) = rest.split_once(": ").ok_or(())?;
        let count = count.parse().map_err(|_| ())?;
        Ok(Refusal { what: what.to_owned(), count, reason: reason.to_owned() })
    }
}

/// An exact recording under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub timed: bool,
    /// Whether what is counted are costs of bytecodes, in [`COST_PS`], and not their number.
    pub costs: bool,
    /// Classes and methods woven.
    pub classes: u64,
    pub methods: u64,
    pub refused: Vec<Refusal>,
    /// Time spent weaving, on whatever thread.
    pub weaving_ns: u64,
    /// Calls that made the JVM load classes again, and how long they held it up.
    pub pauses: u64,
    pub pause_ns: u64,
    pub longest_pause_ns: u64,
    /// Bytes of the trees, and of the names of methods.
    pub used: u64,
    pub names: u64,
    pub budget: u64,
    pub elapsed_ns: u64,
    /// What one call costs at least in probes, measured in this JVM when the recording began.
    pub probe_ps: u64,
    /// What probes cost around work of several lengths, as it was last measured; PROTOCOL.md has
    /// the form of the lines.
    pub calibration: Vec<String>,
    /// When what roots reach is found while the program runs.
    pub subgraph: Option<SubgraphStatus>,
    /// The regions, in the order of their numbers.
    pub regions: Vec<Region>,
}

/// How the search for what roots reach is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubgraphStatus {
    /// Methods with code that are reachable as far as is known.
    pub reachable: u64,
    /// How often a thread waited for what it was about to call to be woven, and how long.
    pub waits: u64,
    pub wait_ns: u64,
    pub longest_wait_ns: u64,
    /// Threads that did not wait because they were loading classes.
    pub hurried: u64,
    /// Threads whose patience ended.
    pub gave_up: u64,
    /// Classes that the program began to use outside the subgraph, and that were found to be in use only then.
    pub late: u64,
}

impl SubgraphStatus {
    fn add_to(self, message: Message) -> Message {
        message
            .with("reachable", self.reachable)
            .with("waits", self.waits)
            .with("wait-ns", self.wait_ns)
            .with("longest-wait-ns", self.longest_wait_ns)
            .with("hurried", self.hurried)
            .with("gave-up", self.gave_up)
            .with("late", self.late)
    }

    fn from_message(m: &Message) -> Result<Option<Self>, WireError> {
        if m.get("reachable").is_none() {
            return Ok(None);
        }
        Ok(Some(SubgraphStatus {
            reachable: m.parse("reachable")?,
            waits: m.parse("waits")?,
            wait_ns: m.parse("wait-ns")?,
            longest_wait_ns: m.parse("longest-wait-ns")?,
            hurried: m.parse("hurried")?,
            gave_up: m.parse("gave-up")?,
            late: m.parse("late")?,
        }))
    }
}

impl ExactStatus {
    pub(crate) fn to_message(&self) -> Message {
        let message = Message::new("status")
            .with("session", self.session)
            .with("timed", self.timed)
            .with("costs", self.costs)
            .with("classes", self.classes)
            .with("methods", self.methods)
            .with_all("refused", &self.refused)
            .with("weaving-ns", self.weaving_ns)
            .with("pauses", self.pauses)
            .with("pause-ns", self.pause_ns)
            .with("longest-pause-ns", self.longest_pause_ns)
            .with("used", self.used)
            .with("names", self.names)
            .with("budget", self.budget)
            .with("elapsed-ns", self.elapsed_ns)
            .with("probe-ps", self.probe_ps)
            .with_all("region", &self.regions)
            .with_all("calibration", &self.calibration);
        match self.subgraph {
            Some(subgraph) => subgraph.add_to(message),
            None => message,
        }
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(ExactStatus {
            session: m.parse("session")?,
            timed: m.parse("timed")?,
            costs: m.parse("costs")?,
            classes: m.parse("classes")?,
            methods: m.parse("methods")?,
            refused: refusals(m)?,
            weaving_ns: m.parse("weaving-ns")?,
            pauses: m.parse("pauses")?,
            pause_ns: m.parse("pause-ns")?,
            longest_pause_ns: m.parse("longest-pause-ns")?,
            used: m.parse("used")?,
            names: m.parse("names")?,
            budget: m.parse("budget")?,
            elapsed_ns: m.parse("elapsed-ns")?,
            probe_ps: m.parse("probe-ps")?,
            calibration: m.list("calibration"),
            subgraph: SubgraphStatus::from_message(m)?,
            regions: all(m, "region")?,
        })
    }
}

fn refusals(m: &Message) -> Result<Vec<Refusal>, WireError> {
    let bad = |()| WireError::BadField { verb: m.verb.clone(), key: "refused" };
    m.list("refused").iter().map(|text| text.parse().map_err(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        let plan = ExactPlan {
            timed: true,
            bytecodes: Some(BlockAnalysis::Precise),
            costs: vec![0, 250],
            every: Some(10_000),
            random: Some(7),
            agent_jar: Some("/opt/an agent.jar".to_owned()),
            allocations: true,
            include: vec!["com.acme.**".parse().unwrap()],
            roots: vec!["com.acme.Orders.place".parse().unwrap(), "a.B.c(int,X)".parse().unwrap()],
            scheme: Scheme::Eager,
            skip_trivial: true,
            follow_threads: true,
            regions: vec!["a.B:7-9".parse().unwrap(), "a.B.c".parse().unwrap()],
            count_only: vec!["**.get*".parse().unwrap()],
            time_all: true,
            cpu_time: true,
            fold: true,
            depth: 50,
            memory: 1 << 28,
            ..ExactPlan::default()
        };
        let start = || Message::new("start");
        assert_eq!(ExactPlan::from_message(&plan.add_to(start())), Ok(plan));
        let status = ExactStatus {
            session: 3,
            refused: vec![Refusal {
                what: "com.acme.Orders.place".into(),
                count: 2,
                reason: "the code: too large".into(),
            }],
            longest_pause_ns: 7,
            probe_ps: 1_900,
            calibration: vec!["clock 5000".into(), "wide 0 9700 9500".into()],
            subgraph: Some(SubgraphStatus { reachable: 9, gave_up: 1, ..Default::default() }),
            regions: vec!["a.B:7-9".parse().unwrap()],
            ..ExactStatus::default()
        };
        assert_eq!(ExactStatus::from_message(&status.to_message()), Ok(status));
        let bad = ExactStatus::default().to_message().with("refused", "some");
        assert_eq!(
            ExactStatus::from_message(&bad),
            Err(WireError::BadField { verb: "status".into(), key: "refused" })
        );
        let bad = ExactPlan::default().add_to(start()).with("root", "a b");
        assert_eq!(
            ExactPlan::from_message(&bad),
            Err(WireError::BadField { verb: "start".into(), key: "root" })
        );
    }
}
