//! The engines, one file each, and the list of them.
//!
//! An engine is a type that can begin ([`Engine`]) and one that is under way ([`Running`]). What is
//! the same for all of them, who may command them and when they are over, is [`crate::Recording`]'s
//! business. An entry in the list below makes the engine's `Plan`, `Figures` and `Outcome` known to
//! front ends.

pub mod climb;
pub mod counters;
pub mod exact;
pub mod stream;
pub mod trace;

use crate::client::Agent;
use crate::command_socket::Command;
use crate::error::{Error, Result, refuse};
use crate::launch::Settings;
use crate::observer::Observer;
use crate::plan::{Place, Plan};
use crate::recorder::Recorded;
use std::time::Duration;
use tare_attach::Jvm;
use tare_protocol::{BatchProgress, EngineName};

/// How long a wish to end may go unheard.
pub(crate) const STEP: Duration = Duration::from_millis(20);

macro_rules! engines {
    ($($(#[$doc:meta])* $name:ident: $module:ident),* $(,)?) => {
        /// What is to be recorded, and how.
        #[derive(Clone, Debug)]
        pub enum What { $($(#[$doc])* $name($module::Plan)),* }

        /// What has been measured so far, in a few numbers.
        #[derive(Clone, Debug)]
        pub enum Figures { $($(#[$doc])* $name($module::Figures)),* }

        /// What came of a recording, for who reports it.
        #[derive(Clone, Debug)]
        pub enum Outcome { $($(#[$doc])* $name(Box<$module::Outcome>)),* }

        impl What {
            pub(crate) fn engine(&self) -> &dyn Engine {
                match self { $(What::$name(plan) => plan),* }
            }

            /// A word for it, as it stands in the names of files.
            #[must_use]
            pub fn name(&self) -> String {
                self.engine().name()
            }

            /// What a JVM that is started for it gets.
            #[must_use]
            pub fn settings(&self) -> Settings {
                self.engine().settings()
            }
        }
    };
}

engines! {
    /// Where threads are by a clock, what they allocate, or both.
    Stream: stream,
    /// Every call, bytecode or passage, by weaving.
    Exact: exact,
    /// Every entry and exit, with its time.
    Trace: trace,
    /// Hot spots followed upwards, by hooks in a few methods at a time.
    Climb: climb,
    /// Events of the whole JVM, which go into no file.
    Counters: counters,
}

/// Something that can be recorded; the plan of it.
pub trait Engine {
    /// A word for it, as it stands in the names of files.
    fn name(&self) -> String;

    /// What a JVM that is started for it gets.
    fn settings(&self) -> Settings;

    /// Whether it makes a recording, which others may want to command.
    fn makes_recording(&self) -> bool {
        true
    }

    /// Blocks until it is under way. [`Observer::wants_end`] ends that, too.
    fn begin(&self, beginning: Beginning<'_>) -> Result<Begun>;
}

/// All that an engine needs to begin.
pub struct Beginning<'a> {
    pub agent: &'a mut Agent,
    pub jvm: &'a Jvm,
    pub plan: &'a Plan,
    /// To be called once, when nothing but the JVM can refuse any more.
    pub place: &'a mut dyn FnMut() -> Place,
    pub observer: &'a mut dyn Observer,
}

/// How it began.
pub enum Begun {
    Running(Box<dyn Running>),
    /// The observer wanted it to end before; everything is as it was. How far it had come.
    Stopped(Option<BatchProgress>),
}

/// An engine under way.
pub trait Running {
    /// Does what is due, and waits for a moment. An error means that nothing more can be kept.
    fn step(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> Result<Step>;

    /// Carries out what somebody asks for; a sentence for them. `Stop` never comes here.
    fn command(&mut self, agent: &mut Agent, command: Command) -> Result<String>;

    /// Switches a part of it on or off.
    fn switch(&mut self, _agent: &mut Agent, _part: Part, _on: bool) -> Result<()> {
        refuse!("this recording has no parts: it is on until it ends")
    }

    /// Its parts, and whether each is on.
    fn parts(&self) -> Vec<(Part, bool)> {
        Vec::new()
    }

    /// Has the JVM put back as it was. Whether it still lives.
    fn end(&mut self, agent: &mut Agent, observer: &mut dyn Observer) -> bool;

    /// Completes what is recorded, also after a step has failed.
    fn finish(self: Box<Self>, failed: Option<Error>) -> Result<Finished>;
}

/// A part of a recording of the stream, which can be switched on and off while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where threads are; only if the recording began with it.
    Samples,
    Alloc,
    Locks,
    Classes,
    JniRefs,
}

impl Part {
    pub const ALL: [Part; 5] =
        [Part::Samples, Part::Alloc, Part::Locks, Part::Classes, Part::JniRefs];

    pub(crate) fn engine(self) -> EngineName {
        match self {
            Part::Samples => EngineName::Sampling,
            Part::Alloc => EngineName::Alloc,
            Part::Locks => EngineName::Locks,
            Part::Classes => EngineName::Classes,
            Part::JniRefs => EngineName::JniRefs,
        }
    }
}

/// What came of a step.
pub enum Step {
    Going,
    /// The figures of another second.
    Told(Figures, Duration),
    /// There is no more to come.
    Over,
}

/// A recording that is complete.
pub struct Finished {
    /// The file, unless what was recorded went elsewhere.
    pub recorded: Option<Recorded>,
    /// Why nothing was recorded, and what to do about it, if so.
    pub nothing: Option<String>,
    pub outcome: Outcome,
}
