//! Engines that tell by the stream, have one session at a time and weave nothing by themselves:
//! what they share of being an engine. What a session does, it knows itself.

use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::Subscriber;
use std::fs::File;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tare_protocol::{EngineChange, EngineName, EnginePlan, EngineStatus};

/// A recording of one engine, from its start to its end.
pub trait Session: Sized + Send + 'static {
    const NAME: EngineName;
    /// How often it is looked after.
    const TICK: Duration;
    type Plan;
    type Error: Into<EngineError>;

    /// Where the session is that is on.
    fn place() -> &'static Mutex<Option<Self>>;

    fn subscriber() -> &'static Subscriber {
        static NONE: Subscriber = Subscriber::NONE;
        &NONE
    }

    /// The plan, if it is one for this engine.
    fn plan(plan: &EnginePlan) -> Option<&Self::Plan>;

    /// For a second front end.
    fn already_on() -> Self::Error;

    fn start(jvm: Jvm, plan: &Self::Plan) -> Result<(Self, Vec<File>), Self::Error>;

    /// `None` for a change that is meant for another engine.
    fn change(&mut self, jvm: Jvm, change: &EngineChange) -> Option<Result<(), Self::Error>>;

    fn end(&mut self, jvm: Jvm);

    fn status(&self) -> EngineStatus;

    fn tick(&mut self, jvm: Jvm);
}

/// The session that is on, if one is.
pub fn on<S: Session>() -> MutexGuard<'static, Option<S>> {
    S::place().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engine of such sessions.
pub struct Of<S>(PhantomData<fn() -> S>);

impl<S> Of<S> {
    pub const ENGINE: Self = Of(PhantomData);
}

impl<S: Session> Engine for Of<S> {
    fn name(&self) -> EngineName {
        S::NAME
    }

    fn subscriber(&self) -> &'static Subscriber {
        S::subscriber()
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let plan = S::plan(plan).ok_or_else(|| EngineError::misdirected(S::NAME))?;
        let mut session = on::<S>();
        if session.is_some() {
            return Err(S::already_on().into());
        }
        let (new, files) = S::start(jvm, plan).map_err(Into::into)?;
        *session = Some(new);
        Ok(files)
    }

    fn change(
        &self,
        jvm: Jvm,
        change: &EngineChange,
        _: &mut Between<'_>,
    ) -> Result<(), EngineError> {
        let Some(session) = &mut *on::<S>() else { return Ok(()) };
        let changed = session.change(jvm, change);
        changed.ok_or_else(|| EngineError::misdirected(S::NAME))?.map_err(Into::into)
    }

    fn stop(&self, jvm: Jvm, _: &mut Between<'_>) {
        let session = on::<S>().take();
        if let Some(mut session) = session {
            session.end(jvm);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        on::<S>().as_ref().map(S::status)
    }

    fn uses_stream(&self) -> bool {
        true
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(S::TICK)
    }

    fn tick(&self, jvm: Jvm) {
        if let Some(session) = on::<S>().as_mut() {
            session.tick(jvm);
        }
    }
}
