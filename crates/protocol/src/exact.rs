//! How an exact recording is doing; what it is asked to do is `plan`'s.

mod plan;
mod plan_message;

use crate::{Message, Region, WireError};
pub use plan::{
    BlockAnalysis, BytecodeSamples, COST_PS, Counted, ExactPlan, Figures, Follow, Measure, Roots,
    Scheme, SomeTimes, TracePlan, TreePlan, TreeRoots,
};
use std::fmt;
use std::str::FromStr;

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
    /// Calls that made the JVM load classes again, and how long the program stood still in them.
    pub pauses: u64,
    pub pause_ns: u64,
    pub longest_pause_ns: u64,
    /// The JVM does not tell how long its threads stood still: pauses are as long as the calls,
    /// which is many times too long.
    pub whole_calls: bool,
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
    /// Classes that the program began to use outside the subgraph, and that were found to be in use
    /// only then.
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
            .with("whole-calls", self.whole_calls)
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
            whole_calls: m.parse("whole-calls")?,
            used: m.parse("used")?,
            names: m.parse("names")?,
            budget: m.parse("budget")?,
            elapsed_ns: m.parse("elapsed-ns")?,
            probe_ps: m.parse("probe-ps")?,
            calibration: m.list("calibration"),
            subgraph: SubgraphStatus::from_message(m)?,
            regions: m.parse_all("region")?,
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
    fn states_come_back_as_they_were_sent() {
        let status = ExactStatus {
            session: 3,
            refused: vec![Refusal {
                what: "com.acme.Orders.place".into(),
                count: 2,
                reason: "the code: too large".into(),
            }],
            longest_pause_ns: 7,
            whole_calls: true,
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
    }
}
