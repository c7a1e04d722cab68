//! What an engine is, and all there are.
//!
//! An engine measures one thing while some connection wants it. Which connections do, the control
//! thread knows (`control`); what it takes to begin, go on and end, the engine. A new one is a file
//! of its own and an entry in [`ALL`]; its name, plan and status are in `tare_protocol::engine`.
//!
//! All but the functions of an engine's subscriber are called on the control thread, which serves
//! nobody meanwhile. So whatever takes longer than some milliseconds tells so before each part
//! ([`Between`]) and gives up when it is not wanted any more.

use crate::alloc;
use crate::classes;
use crate::counters;
use crate::events::Subscriber;
use crate::exact;
use crate::heap;
use crate::hooks;
use crate::jni_refs;
use crate::jvm::{Failure, Jni, Jvmti, Vm};
use crate::locks;
use crate::pauses;
use crate::sampling;
use std::fmt;
use std::fs::File;
use std::os::fd::RawFd;
use std::time::Duration;
use tare_protocol::{Activity, EngineChange, EngineName, EnginePlan, EngineStatus};

/// Every engine. Those further down are switched off first.
pub static ALL: [&dyn Engine; 10] = [
    &counters::Counters,
    &exact::Exact,
    &sampling::Sampling,
    &alloc::Alloc::ENGINE,
    &heap::Heap,
    &locks::Locks::ENGINE,
    &classes::Classes::ENGINE,
    &jni_refs::JniRefs::ENGINE,
    &hooks::Hooks,
    &pauses::Pauses,
];

/// The JVM, as the control thread talks to it.
#[derive(Clone, Copy)]
pub struct Jvm {
    pub vm: Vm,
    pub jvmti: Jvmti,
    pub jni: Jni,
}

/// What is about to be done.
#[derive(Clone, Copy)]
pub struct Step {
    pub activity: Activity,
    /// Classes: done, in this batch, all.
    pub done: usize,
    pub now: usize,
    pub all: usize,
    /// Methods that are woven so far.
    pub methods: u64,
}

/// To be called before each step; false means that no more are wanted. Meanwhile every engine may
/// be asked for its status, so no lock is held across it.
pub type Between<'a> = dyn FnMut(Step) -> bool + 'a;

/// Something that can be measured, switched on and off any number of times. Its state is in statics
/// of its own file: the JVM's callbacks and signal handlers find it there.
pub trait Engine: Sync {
    fn name(&self) -> EngineName;

    /// What is called for the JVM's events that it switches on.
    fn subscriber(&self) -> &'static Subscriber {
        static NONE: Subscriber = Subscriber::NONE;
        &NONE
    }

    /// Begins; what the front end is to read. After an error everything is as it was, also when it
    /// was on already.
    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        between: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError>;

    /// Goes on in another way. Only while it is on.
    fn change(
        &self,
        _: Jvm,
        change: &EngineChange,
        _: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        Err(EngineError::misdirected(change.engine()))
    }

    /// Ends, if it is on: the program runs as before, and what was measured can be read. Goes on
    /// past failures.
    fn stop(&self, jvm: Jvm, between: &mut Between<'_>);

    /// How it is doing; nothing while it is off.
    fn status(&self) -> Option<EngineStatus>;

    /// Whether several connections can have it on at once. It is started for the first of them.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether it writes to the stream, which belongs to one front end.
    fn uses_stream(&self) -> bool {
        false
    }

    /// Whether it ends when another front end wants to start it.
    fn yields(&self) -> bool {
        false
    }

    /// What a second front end can read while it is on.
    fn open(&self) -> Result<Vec<File>, EngineError> {
        let nothing = "writes nothing that a second front end could read";
        Err(EngineError::Refused(format!("engine {} {nothing}", self.name())))
    }

    /// How often it wants to be looked after while it is on.
    fn tick_every(&self) -> Option<Duration> {
        None
    }

    /// To be called that often, and perhaps more.
    fn tick(&self, _: Jvm) {}

    /// Readable when there is work to do that nobody has asked for.
    fn bell(&self) -> Option<RawFd> {
        None
    }

    /// Does that work.
    fn answer_bell(&self, _: Jvm, _: &mut Between<'_>) {}
}

/// The engine of a name.
pub fn named(name: EngineName) -> Option<&'static dyn Engine> {
    ALL.into_iter().find(|engine| engine.name() == name)
}

/// Why an engine did not do what it was asked.
#[derive(Debug)]
pub enum EngineError {
    /// That cannot be done, or not now.
    Refused(String),
    /// The JVM did not do its part.
    Jvm(Failure),
    /// There is no descriptor for what is to be read.
    Files(std::io::Error),
}

impl EngineError {
    /// For an engine that is asked for what only another does.
    pub fn misdirected(engine: EngineName) -> Self {
        EngineError::Refused(format!("engine {engine} cannot be asked for that"))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Refused(why) => write!(f, "{why}"),
            EngineError::Jvm(failure) => write!(f, "{failure}"),
            EngineError::Files(e) => write!(f, "{e}"),
        }
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        EngineError::Jvm(failure)
    }
}

/// Some of the engines.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineSet(u32);

impl EngineSet {
    fn bit(name: EngineName) -> u32 {
        let at = ALL.iter().position(|engine| engine.name() == name);
        at.map_or(0, |at| 1 << at)
    }

    pub fn insert(&mut self, name: EngineName) {
        self.0 |= Self::bit(name);
    }

    pub fn remove(&mut self, name: EngineName) {
        self.0 &= !Self::bit(name);
    }

    pub fn contains(self, name: EngineName) -> bool {
        self.0 & Self::bit(name) != 0
    }

    pub fn and(self, other: EngineSet) -> EngineSet {
        EngineSet(self.0 | other.0)
    }

    pub fn without(self, other: EngineSet) -> EngineSet {
        EngineSet(self.0 & !other.0)
    }

    /// In the order of [`ALL`].
    pub fn engines(self) -> impl DoubleEndedIterator<Item = &'static dyn Engine> {
        let with_places = ALL.into_iter().enumerate();
        with_places.filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, engine)| engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_protocol_has_one_engine() {
        for name in EngineName::ALL {
            let engines = ALL.iter().filter(|engine| engine.name() == name);
            assert_eq!(engines.count(), 1, "{name}");
        }
        assert_eq!(ALL.len(), EngineName::ALL.len());
    }

    #[test]
    fn what_goes_off_is_what_nobody_wants_any_more() {
        let set = |names: &[EngineName]| {
            let mut set = EngineSet::default();
            names.iter().for_each(|name| set.insert(*name));
            set
        };
        let names = |set: EngineSet| set.engines().map(Engine::name).collect::<Vec<_>>();
        let mut one = set(&[EngineName::Counters, EngineName::Exact]);
        let other = set(&[EngineName::Counters, EngineName::Sampling]);
        let before = one.and(other);
        one.remove(EngineName::Exact);
        assert!(one.contains(EngineName::Counters) && !one.contains(EngineName::Exact));
        assert_eq!(names(before.without(one.and(other))), [EngineName::Exact]);
        let after = set(&[EngineName::Counters]);
        assert_eq!(names(before.without(after)), [EngineName::Exact, EngineName::Sampling]);
    }
}
