//! What a sampling session is asked to do, and how it is doing.

use crate::fields::fields;
use crate::{Message, WireError};
use std::fmt;
use std::str::FromStr;

/// What makes a thread tell where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleTrigger {
    /// A hardware counter of the processor's cycles, by `perf_event_open`.
    PerfCycles,
    /// The kernel's software clock, by `perf_event_open`: any interval.
    PerfClock,
    /// A timer on each thread's processor clock: works everywhere, ticks with the kernel.
    Timer,
    /// The JVM's own stacks at safepoints, of the threads whose processor clock moved: the last
    /// resort, where no signals are to be had.
    Safepoint,
}

impl SampleTrigger {
    pub const ALL: [SampleTrigger; 4] = [
        SampleTrigger::PerfCycles,
        SampleTrigger::PerfClock,
        SampleTrigger::Timer,
        SampleTrigger::Safepoint,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SampleTrigger::PerfCycles => "perf-cycles",
            SampleTrigger::PerfClock => "perf-clock",
            SampleTrigger::Timer => "timer",
            SampleTrigger::Safepoint => "safepoint",
        }
    }
}

impl fmt::Display for SampleTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SampleTrigger {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|trigger| trigger.name() == s).ok_or(())
    }
}

/// What to sample, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplePlan {
    /// `None` takes the best that works here; a named one that does not work is an error.
    pub trigger: Option<SampleTrigger>,
    /// All threads by the clock on the wall, instead of those on a processor by theirs. The
    /// engine is then `Timer` (signals) or `Safepoint`.
    pub wall: bool,
    /// Nanoseconds of processor time between two samples of a thread; in wall-clock mode of time.
    pub interval_ns: u64,
    /// The most frames of a stack.
    pub depth: u32,
    /// Native frames above the Java frames; kernel frames too, where the kernel permits it.
    pub native: bool,
    pub kernel: bool,
    /// Bytes of the ring; rounded up to a power of two.
    pub memory: u64,
    /// The session ends as soon as another front end wants the stream, with all that its own front
    /// end has there: somebody looks, and nobody would miss it.
    pub yields: bool,
}

impl Default for SamplePlan {
    fn default() -> Self {
        SamplePlan {
            trigger: None,
            wall: false,
            interval_ns: 10_000_000,
            depth: 4096,
            native: true,
            kernel: true,
            memory: 32 << 20,
            yields: false,
        }
    }
}

fields!(SamplePlan {
    trigger: "sample-engine",
    wall: "wall",
    interval_ns: "interval-ns",
    depth: "depth",
    native: "native",
    kernel: "kernel",
    memory: "memory",
    yields: "yields",
});

/// A sampling session under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleStatus {
    /// The session's number in this JVM's life.
    pub session: u32,
    pub trigger: Option<SampleTrigger>,
    pub wall: bool,
    pub paused: bool,
    /// The interval asked for, and the one got: the weight of the samples by their number.
    pub interval_ns: u64,
    pub got_ns: u64,
    pub samples: u64,
    pub weight_ns: u64,
    /// Expiries of a timer that were told together with a later one.
    pub overruns: u64,
    /// Samples without a whole stack: a number and the name of the frame that stands there.
    pub failures: Vec<String>,
    /// Samples that were not kept: a number and the reason.
    pub lost: Vec<String>,
    pub threads: u64,
    pub threads_seen: u64,
    /// Timers or descriptors in use, and how many of them we allow ourselves.
    pub resources: u64,
    pub resources_most: u64,
    /// Whether kernel frames are recorded.
    pub kernel: bool,
    /// Classes whose methods were given ids before the session began, and the time that it took.
    pub prepared_classes: u64,
    pub preparing_ns: u64,
    pub elapsed_ns: u64,
    /// What is less than it could be, and why: other engines that did not work, frames that
    /// cannot be had. Whole sentences for a person.
    pub notes: Vec<String>,
}

impl SampleStatus {
    pub(crate) fn to_message(&self) -> Message {
        Message::new("status")
            .with("session", self.session)
            .with_some("sample-engine", self.trigger)
            .with("wall", self.wall)
            .with("paused", self.paused)
            .with("interval-ns", self.interval_ns)
            .with("got-ns", self.got_ns)
            .with("samples", self.samples)
            .with("weight-ns", self.weight_ns)
            .with("overruns", self.overruns)
            .with_all("failure", &self.failures)
            .with_all("lost", &self.lost)
            .with("threads", self.threads)
            .with("threads-seen", self.threads_seen)
            .with("resources", self.resources)
            .with("resources-most", self.resources_most)
            .with("kernel", self.kernel)
            .with("prepared-classes", self.prepared_classes)
            .with("preparing-ns", self.preparing_ns)
            .with("elapsed-ns", self.elapsed_ns)
            .with_all("note", &self.notes)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(SampleStatus {
            session: m.parse("session")?,
            trigger: m.get("sample-engine").and_then(|name| name.parse().ok()),
            wall: m.parse("wall")?,
            paused: m.parse("paused")?,
            interval_ns: m.parse("interval-ns")?,
            got_ns: m.parse("got-ns")?,
            samples: m.parse("samples")?,
            weight_ns: m.parse("weight-ns")?,
            overruns: m.parse("overruns")?,
            failures: m.list("failure"),
            lost: m.list("lost"),
            threads: m.parse("threads")?,
            threads_seen: m.parse("threads-seen")?,
            resources: m.parse("resources")?,
            resources_most: m.parse("resources-most")?,
            kernel: m.parse("kernel")?,
            prepared_classes: m.parse("prepared-classes")?,
            preparing_ns: m.parse("preparing-ns")?,
            elapsed_ns: m.parse("elapsed-ns")?,
            notes: m.list("note"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_states_come_back_as_they_were_sent() {
        for trigger in SampleTrigger::ALL.into_iter().map(Some).chain([None]) {
            let plan = SamplePlan { trigger, wall: true, yields: true, ..SamplePlan::default() };
            let message = plan.add_to(Message::new("start"));
            assert_eq!(SamplePlan::from_message(&message), Ok(plan));
        }
        let bad = Message::new("start").with("sample-engine", "steam");
        let bad = SamplePlan::default().add_to(bad);
        assert!(SamplePlan::from_message(&bad).is_err());
        let status = SampleStatus {
            session: 2,
            trigger: Some(SampleTrigger::PerfClock),
            failures: vec!["3 [unknown_Java]".into()],
            notes: vec!["No.".into(), "Nor that.".into()],
            ..SampleStatus::default()
        };
        assert_eq!(SampleStatus::from_message(&status.to_message()), Ok(status));
        assert!(SampleStatus::from_message(&Message::new("status")).is_err());
    }
}
