//! The engines by name, and what is the same for all of them: starting, changing, telling.
//!
//! What one engine is asked to do and how it tells its state is its own file's job: `alloc`,
//! `classes`, `counters`, `exact`, `heap`, `hooks`, `jni_refs`, `locks`, `pauses`, `sampling`. A new
//! engine is such a file and an entry in each list here.

use crate::alloc::{AllocPlan, AllocStatus};
use crate::classes::{ClassPlan, ClassStatus};
use crate::counters::EventCounts;
use crate::exact::{ExactPlan, ExactStatus};
use crate::heap::{HeapPlan, HeapStatus};
use crate::hooks::{HookPlan, HookStatus};
use crate::jni_refs::{JniRefsPlan, JniRefsStatus};
use crate::locks::{LockPlan, LockStatus};
use crate::pauses::PausesStatus;
use crate::sampling::{SamplePlan, SampleStatus};
use crate::{Message, WireError};
use std::fmt;
use std::str::FromStr;

/// Something that the agent can measure, for as long as a connection wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineName {
    Counters,
    Exact,
    Sampling,
    Alloc,
    Heap,
    Locks,
    Classes,
    JniRefs,
    Hooks,
    Pauses,
}

impl EngineName {
    pub const ALL: [EngineName; 10] = [
        EngineName::Counters,
        EngineName::Exact,
        EngineName::Sampling,
        EngineName::Alloc,
        EngineName::Heap,
        EngineName::Locks,
        EngineName::Classes,
        EngineName::JniRefs,
        EngineName::Hooks,
        EngineName::Pauses,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineName::Counters => "counters",
            EngineName::Exact => "exact",
            EngineName::Sampling => "sampling",
            EngineName::Alloc => "alloc",
            EngineName::Heap => "heap",
            EngineName::Locks => "locks",
            EngineName::Classes => "classes",
            EngineName::JniRefs => "jni-refs",
            EngineName::Hooks => "hooks",
            EngineName::Pauses => "pauses",
        }
    }

    pub(crate) fn of(m: &Message) -> Result<Self, WireError> {
        let name = m.text("engine")?;
        name.parse().map_err(|()| WireError::UnknownEngine(name))
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|engine| engine.name() == text).ok_or(())
    }
}

/// An engine to start, and what it is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnginePlan {
    /// Event counters. No descriptors come with the answer.
    Counters,
    /// An exact recording. Answered with the descriptors of the arena and the log of names, of a
    /// trace also with its tails; before that by any number of [`crate::BatchProgress`].
    Exact(Box<ExactPlan>),
    /// A sampling session. Answered with the descriptors of the stream and of its tail.
    Sampling(Box<SamplePlan>),
    /// Sampled allocations. Answered with the descriptors of the stream and of its tail; with none
    /// when this connection has opened the stream before.
    Alloc(Box<AllocPlan>),
    /// A copy of the JVM, from which its heap is read. Answered with a socket to it.
    Heap(HeapPlan),
    /// Waits for locks. Answered like sampled allocations.
    Locks(Box<LockPlan>),
    /// Classes that are loaded and unloaded. Answered like sampled allocations.
    Classes(Box<ClassPlan>),
    /// Global and weak references of native code. Answered like sampled allocations.
    JniRefs(Box<JniRefsPlan>),
    /// Hooks in methods that are named later, by changes. Answered like sampled allocations.
    Hooks(HookPlan),
    /// Collections, safepoints and compilers, for recordings that have no stream. Answered with the
    /// descriptors of a stream of its own and of its tail.
    Pauses,
}

impl EnginePlan {
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self {
            EnginePlan::Counters => EngineName::Counters,
            EnginePlan::Exact(_) => EngineName::Exact,
            EnginePlan::Sampling(_) => EngineName::Sampling,
            EnginePlan::Alloc(_) => EngineName::Alloc,
            EnginePlan::Heap(_) => EngineName::Heap,
            EnginePlan::Locks(_) => EngineName::Locks,
            EnginePlan::Classes(_) => EngineName::Classes,
            EnginePlan::JniRefs(_) => EngineName::JniRefs,
            EnginePlan::Hooks(_) => EngineName::Hooks,
            EnginePlan::Pauses => EngineName::Pauses,
        }
    }

    pub(crate) fn to_message(&self) -> Message {
        let message = Message::new("start").with("engine", self.engine());
        match self {
            EnginePlan::Counters | EnginePlan::Pauses => message,
            EnginePlan::Exact(plan) => plan.add_to(message),
            EnginePlan::Sampling(plan) => plan.add_to(message),
            EnginePlan::Alloc(plan) => plan.add_to(message),
            EnginePlan::Heap(plan) => plan.add_to(message),
            EnginePlan::Locks(plan) => plan.add_to(message),
            EnginePlan::Classes(plan) => plan.add_to(message),
            EnginePlan::JniRefs(plan) => plan.add_to(message),
            EnginePlan::Hooks(plan) => plan.add_to(message),
        }
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(match EngineName::of(m)? {
            EngineName::Counters => EnginePlan::Counters,
            EngineName::Exact => EnginePlan::Exact(Box::new(ExactPlan::from_message(m)?)),
            EngineName::Sampling => EnginePlan::Sampling(Box::new(SamplePlan::from_message(m)?)),
            EngineName::Alloc => EnginePlan::Alloc(Box::new(AllocPlan::from_message(m)?)),
            EngineName::Heap => EnginePlan::Heap(HeapPlan::from_message(m)?),
            EngineName::Locks => EnginePlan::Locks(Box::new(LockPlan::from_message(m)?)),
            EngineName::Classes => EnginePlan::Classes(Box::new(ClassPlan::from_message(m)?)),
            EngineName::JniRefs => EnginePlan::JniRefs(Box::new(JniRefsPlan::from_message(m)?)),
            EngineName::Hooks => EnginePlan::Hooks(HookPlan::from_message(m)?),
            EngineName::Pauses => EnginePlan::Pauses,
        })
    }
}

/// What can be changed while an engine runs, by the front end that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineChange {
    Exact {
        /// Of the methods of a timed recording just these, by the ids of the log of names, are only
        /// counted from now on. Their calls appear under ids of their own, logged with the same
        /// names.
        demote: Vec<u32>,
    },
    /// Of an exact recording that follows some calls of roots: one in so many from now on.
    Follow {
        one_in: u32,
    },
    Sampling {
        interval_ns: Option<u64>,
        paused: Option<bool>,
    },
    Alloc {
        interval_bytes: Option<u64>,
        paused: Option<bool>,
    },
    Locks {
        threshold_ns: Option<u64>,
        paused: Option<bool>,
    },
    Classes {
        paused: bool,
    },
    JniRefs {
        paused: bool,
    },
    Hooks {
        /// Just these methods have hooks from now on, by class, name and descriptor:
        /// `com/acme/Orders.place(I)V`. Classes that gain hooks and that lose them are loaded again
        /// in one batch.
        methods: Vec<String>,
        /// These have hooks as well, which tell nothing until a later change says so; then no class
        /// needs to be loaded again.
        waiting: Vec<String>,
    },
}

impl EngineChange {
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self {
            EngineChange::Exact { .. } | EngineChange::Follow { .. } => EngineName::Exact,
            EngineChange::Sampling { .. } => EngineName::Sampling,
            EngineChange::Alloc { .. } => EngineName::Alloc,
            EngineChange::Locks { .. } => EngineName::Locks,
            EngineChange::Classes { .. } => EngineName::Classes,
            EngineChange::JniRefs { .. } => EngineName::JniRefs,
            EngineChange::Hooks { .. } => EngineName::Hooks,
        }
    }

    pub(crate) fn to_message(&self) -> Message {
        let message = Message::new("change").with("engine", self.engine());
        match self {
            EngineChange::Exact { demote } => message.with_all("demote", demote),
            EngineChange::Follow { one_in } => message.with("follow", one_in),
            EngineChange::Sampling { interval_ns, paused } => {
                message.with_some("interval-ns", *interval_ns).with_some("paused", *paused)
            }
            EngineChange::Alloc { interval_bytes, paused } => {
                message.with_some("interval-bytes", *interval_bytes).with_some("paused", *paused)
            }
            EngineChange::Locks { threshold_ns, paused } => {
                message.with_some("threshold-ns", *threshold_ns).with_some("paused", *paused)
            }
            EngineChange::Classes { paused } | EngineChange::JniRefs { paused } => {
                message.with("paused", *paused)
            }
            EngineChange::Hooks { methods, waiting } => {
                message.with_all("method", methods).with_all("waiting", waiting)
            }
        }
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(match EngineName::of(m)? {
            EngineName::Exact if m.get("follow").is_some() => {
                EngineChange::Follow { one_in: m.parse("follow")? }
            }
            EngineName::Exact => EngineChange::Exact { demote: m.parse_all("demote")? },
            EngineName::Sampling => EngineChange::Sampling {
                interval_ns: m.get("interval-ns").map(|_| m.parse("interval-ns")).transpose()?,
                paused: m.get("paused").map(|_| m.parse("paused")).transpose()?,
            },
            EngineName::Alloc => EngineChange::Alloc {
                interval_bytes: m
                    .get("interval-bytes")
                    .map(|_| m.parse("interval-bytes"))
                    .transpose()?,
                paused: m.get("paused").map(|_| m.parse("paused")).transpose()?,
            },
            EngineName::Locks => EngineChange::Locks {
                threshold_ns: m.get("threshold-ns").map(|_| m.parse("threshold-ns")).transpose()?,
                paused: m.get("paused").map(|_| m.parse("paused")).transpose()?,
            },
            EngineName::Classes => EngineChange::Classes { paused: m.parse("paused")? },
            EngineName::JniRefs => EngineChange::JniRefs { paused: m.parse("paused")? },
            EngineName::Hooks => {
                EngineChange::Hooks { methods: m.list("method"), waiting: m.list("waiting") }
            }
            engine @ (EngineName::Counters | EngineName::Heap | EngineName::Pauses) => {
                return Err(WireError::Unchangeable(engine));
            }
        })
    }
}

/// An engine that is on, and how it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineStatus {
    Counters(EventCounts),
    Exact(Box<ExactStatus>),
    Sampling(Box<SampleStatus>),
    Alloc(Box<AllocStatus>),
    Heap(HeapStatus),
    Locks(Box<LockStatus>),
    Classes(Box<ClassStatus>),
    JniRefs(Box<JniRefsStatus>),
    Hooks(Box<HookStatus>),
    Pauses(Box<PausesStatus>),
}

impl EngineStatus {
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self {
            EngineStatus::Counters(_) => EngineName::Counters,
            EngineStatus::Exact(_) => EngineName::Exact,
            EngineStatus::Sampling(_) => EngineName::Sampling,
            EngineStatus::Alloc(_) => EngineName::Alloc,
            EngineStatus::Heap(_) => EngineName::Heap,
            EngineStatus::Locks(_) => EngineName::Locks,
            EngineStatus::Classes(_) => EngineName::Classes,
            EngineStatus::JniRefs(_) => EngineName::JniRefs,
            EngineStatus::Hooks(_) => EngineName::Hooks,
            EngineStatus::Pauses(_) => EngineName::Pauses,
        }
    }

    /// Adds `engine=NAME` and the engine's own fields, whose keys begin with its name.
    pub(crate) fn add_to(&self, message: Message) -> Message {
        let engine = self.engine();
        let part = match self {
            EngineStatus::Counters(counts) => counts.to_message(),
            EngineStatus::Exact(status) => status.to_message(),
            EngineStatus::Sampling(status) => status.to_message(),
            EngineStatus::Alloc(status) => status.add_to(Message::new("status")),
            EngineStatus::Heap(status) => status.to_message(),
            EngineStatus::Locks(status) => status.add_to(Message::new("status")),
            EngineStatus::Classes(status) => status.add_to(Message::new("status")),
            EngineStatus::JniRefs(status) => status.add_to(Message::new("status")),
            EngineStatus::Hooks(status) => status.add_to(Message::new("status")),
            EngineStatus::Pauses(status) => status.add_to(Message::new("status")),
        };
        message.with("engine", engine).with_part(engine.name(), &part)
    }

    /// Every engine that a status names. One that only another version knows is left out.
    pub(crate) fn all_of(m: &Message) -> Result<Vec<Self>, WireError> {
        let named = m.list("engine");
        let known = EngineName::ALL.into_iter().filter(|e| named.iter().any(|n| n == e.name()));
        known.map(|engine| Self::from_part(engine, &m.part(engine.name()))).collect()
    }

    fn from_part(engine: EngineName, part: &Message) -> Result<Self, WireError> {
        Ok(match engine {
            EngineName::Counters => EngineStatus::Counters(EventCounts::from_message(part)?),
            EngineName::Exact => EngineStatus::Exact(Box::new(ExactStatus::from_message(part)?)),
            EngineName::Sampling => {
                EngineStatus::Sampling(Box::new(SampleStatus::from_message(part)?))
            }
            EngineName::Alloc => EngineStatus::Alloc(Box::new(AllocStatus::from_message(part)?)),
            EngineName::Heap => EngineStatus::Heap(HeapStatus::from_message(part)?),
            EngineName::Locks => EngineStatus::Locks(Box::new(LockStatus::from_message(part)?)),
            EngineName::Classes => {
                EngineStatus::Classes(Box::new(ClassStatus::from_message(part)?))
            }
            EngineName::JniRefs => {
                EngineStatus::JniRefs(Box::new(JniRefsStatus::from_message(part)?))
            }
            EngineName::Hooks => EngineStatus::Hooks(Box::new(HookStatus::from_message(part)?)),
            EngineName::Pauses => EngineStatus::Pauses(Box::new(PausesStatus::from_message(part)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, Status};

    #[test]
    fn requests_to_engines_come_back_as_they_were_sent() {
        let plans = [
            EnginePlan::Counters,
            EnginePlan::Exact(Box::default()),
            EnginePlan::Sampling(Box::default()),
            EnginePlan::Alloc(Box::default()),
            EnginePlan::Heap(HeapPlan::default()),
            EnginePlan::Locks(Box::default()),
            EnginePlan::Classes(Box::default()),
            EnginePlan::JniRefs(Box::default()),
            EnginePlan::Hooks(HookPlan::default()),
            EnginePlan::Pauses,
        ];
        let changes = [
            EngineChange::Exact { demote: vec![3, 7] },
            EngineChange::Follow { one_in: 250 },
            EngineChange::Sampling { interval_ns: Some(7), paused: None },
            EngineChange::Sampling { interval_ns: None, paused: Some(true) },
            EngineChange::Alloc { interval_bytes: Some(7), paused: None },
            EngineChange::Alloc { interval_bytes: None, paused: Some(true) },
            EngineChange::Locks { threshold_ns: Some(7), paused: Some(false) },
            EngineChange::Classes { paused: true },
            EngineChange::JniRefs { paused: true },
            EngineChange::Hooks {
                methods: vec!["a/B.c(I)V".into(), "a/B.<init>()V".into()],
                waiting: vec!["a/D.e()V".into()],
            },
            EngineChange::Hooks { methods: Vec::new(), waiting: Vec::new() },
        ];
        let requests = plans
            .map(Request::Start)
            .into_iter()
            .chain(changes.map(Request::Change))
            .chain(EngineName::ALL.map(Request::Stop))
            .chain(EngineName::ALL.map(Request::Open));
        for request in requests {
            assert_eq!(Request::from_message(&request.to_message()), Ok(request));
        }
    }

    #[test]
    fn an_unknown_engine_is_told_what_there_is() {
        for verb in ["start", "change", "stop", "open"] {
            let asked = Message::new(verb).with("engine", "steam");
            let error = Request::from_message(&asked).unwrap_err().to_string();
            assert!(error.contains("\"steam\""), "{error}");
            assert!(
                error.contains(
                    "counters, exact, sampling, alloc, heap, locks, classes, jni-refs, hooks, pauses"
                ),
                "{error}"
            );
        }
        let still = Message::new("change").with("engine", "counters");
        let error = Request::from_message(&still).unwrap_err().to_string();
        assert!(error.contains("counters"), "{error}");
    }

    #[test]
    fn a_status_has_a_part_for_each_engine_that_is_on() {
        let sampling = SampleStatus { session: 3, ..SampleStatus::default() };
        let alloc = AllocStatus { session: 4, entries: 9, ..AllocStatus::default() };
        let exact = ExactStatus { session: 2, classes: 7, ..ExactStatus::default() };
        let heap = HeapStatus { copy: 5, ..HeapStatus::default() };
        let locks = LockStatus { session: 6, told: 8, ..LockStatus::default() };
        let classes = ClassStatus { session: 7, loads: 9, ..ClassStatus::default() };
        let jni_refs = JniRefsStatus { session: 8, made: 3, ..JniRefsStatus::default() };
        let hooks = HookStatus { session: 7, ever: 9, ..HookStatus::default() };
        let pauses = PausesStatus { events: 5, ..PausesStatus::default() };
        let engines = vec![
            EngineStatus::Counters(EventCounts { collections: 3, ..EventCounts::default() }),
            EngineStatus::Exact(Box::new(exact.clone())),
            EngineStatus::Sampling(Box::new(sampling.clone())),
            EngineStatus::Alloc(Box::new(alloc.clone())),
            EngineStatus::Heap(heap.clone()),
            EngineStatus::Locks(Box::new(locks.clone())),
            EngineStatus::Classes(Box::new(classes.clone())),
            EngineStatus::JniRefs(Box::new(jni_refs.clone())),
            EngineStatus::Hooks(Box::new(hooks.clone())),
            EngineStatus::Pauses(Box::new(pauses.clone())),
        ];
        let message = engines.iter().fold(Message::new("status"), |m, engine| engine.add_to(m));
        let later = message.with("engine", "steam").with("steam-pressure", 9);
        assert_eq!(EngineStatus::all_of(&later), Ok(engines.clone()));
        let status = Status { engines, ..Status::default() };
        assert_eq!(status.exact(), Some(&exact));
        assert_eq!(status.sampling(), Some(&sampling));
        assert_eq!(status.alloc(), Some(&alloc));
        assert_eq!(status.heap(), Some(&heap));
        assert_eq!(status.locks(), Some(&locks));
        assert_eq!(status.classes(), Some(&classes));
        assert_eq!(status.jni_refs(), Some(&jni_refs));
        assert_eq!(status.hooks(), Some(&hooks));
        assert_eq!(status.pauses(), Some(&pauses));
        assert_eq!(status.counters().map(|counts| counts.collections), Some(3));
        assert_eq!(Status::default().exact(), None);
    }

    #[test]
    fn a_part_that_lacks_a_field_says_so() {
        let lacking = Message::new("status").with("engine", "sampling");
        let error = EngineStatus::all_of(&lacking).unwrap_err().to_string();
        assert!(error.contains("status sampling") && error.contains("session"), "{error}");
    }
}
