//! Pauses for recordings that have no stream: the same events, in a ring of their own. So a second
//! front end can have the stream meanwhile.

use super::{Listening, listen, untold};
use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::events::Subscriber;
use crate::kernel;
use crate::stream::Ring;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tare_arena::samples::Counter;
use tare_arena::samples::layout::{RING_SMALLEST, header};
use tare_protocol::{EngineName, EnginePlan, EngineStatus, PausesStatus};

/// How often what was read is freed. The ring holds a minute's worth of the busiest JVM.
const TICK: Duration = Duration::from_millis(500);

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

struct Session {
    ring: Arc<Ring>,
    listening: Listening,
    /// Up to where the ring was looked through.
    scanned: u64,
}

fn session() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Pauses;

impl Engine for Pauses {
    fn name(&self) -> EngineName {
        EngineName::Pauses
    }

    fn subscriber(&self) -> &'static Subscriber {
        &super::SUBSCRIBER
    }

    fn start(
        &self,
        jvm: Jvm,
        _: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let mut session = session();
        if session.is_some() {
            let why = "pauses of this JVM are being told to another front end already";
            return Err(EngineError::Refused(why.to_owned()));
        }
        let ring = Arc::new(Ring::new(RING_SMALLEST).map_err(EngineError::Files)?);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ring.put(header::STARTED, kernel::monotonic());
        ring.put(header::STARTED_UNIX, u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX));
        let files = ring.files().map_err(EngineError::Files)?;
        let listening = listen(&ring, false, jvm.jvmti)?;
        *session = Some(Session { ring, listening, scanned: 0 });
        Ok(files.into())
    }

    fn stop(&self, jvm: Jvm, _: &mut Between<'_>) {
        if let Some(Session { ring, listening, .. }) = session().take() {
            listening.end(jvm.jvmti);
            ring.put(header::SEEN, kernel::monotonic());
            ring.put(header::ENDED, 1);
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        session().as_ref().map(|Session { ring, .. }| {
            EngineStatus::Pauses(Box::new(PausesStatus {
                events: ring.count(Counter::Events),
                lost: ring.count(Counter::LostEvents),
                notes: untold(),
            }))
        })
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&self, _: Jvm) {
        if let Some(Session { ring, scanned, .. }) = &mut *session() {
            *scanned = ring.scan(*scanned, |_, _| {});
            ring.free(*scanned);
            ring.put(header::SEEN, kernel::monotonic());
        }
    }
}
