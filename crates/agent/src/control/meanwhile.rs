//! What the control thread does between two steps of an engine that is busy: it tells how far it
//! is, answers who asks how it goes, and hears who wants it to stop.
//!
//! Everything else that front ends ask waits, as it would in the socket, until the thread is free.

use super::Control;
use super::connection::Connection;
use crate::doing;
use crate::engines::Step;
use crate::gate;
use crate::socket;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tare_protocol::{BatchProgress, EngineName, Request, Response};

/// Messages that wait on one connection; of more, nothing is read from it.
const MOST_WAITING: usize = 16;

impl Control<'_> {
    /// To be called before each call into the JVM that may take long. Whether the one who asked for
    /// it, by the place of its connection, still wants it of the engine, and nobody has sent the
    /// agent away.
    pub(super) fn meanwhile(&mut self, owner: Option<usize>, busy: EngineName, step: Step) -> bool {
        if let Some(connection) = owner.and_then(|owner| self.connections.get_mut(owner)) {
            let told = connection.answer(&Response::Progress(progress(step)).to_message());
            connection.ended |= !told;
        }
        self.unasked(owner, busy, step)
    }

    /// The same where the owner waits for no answer, so that nothing is said to it.
    pub(super) fn unasked(&mut self, owner: Option<usize>, busy: EngineName, step: Step) -> bool {
        note(step);
        // The one that is busy looks after itself.
        let mut idle = self.wanted();
        idle.remove(busy);
        self.tick(idle);
        self.hear();
        if let Some(listener) = self.listener {
            self.accept(listener);
        }
        let unwanted = |connection: &Connection| {
            connection.ended || connection.has_asked(&Request::Stop(busy))
        };
        let left_alone = owner.and_then(|owner| self.connections.get(owner)).is_some_and(unwanted);
        let sent_away = self.connections.iter().any(|c| c.has_asked(&Request::Detach));
        !(left_alone || sent_away || self.stay.vm_is_dead())
    }

    /// Takes in what has come, and answers what can be answered at any moment.
    pub(super) fn hear(&mut self) {
        let interest: Vec<_> = self
            .connections
            .iter()
            .map(|c| (c.stream.as_raw_fd(), !c.backlog.is_empty()))
            .collect();
        let ready = socket::wait(&interest, Some(Duration::ZERO));
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            gate::enter((), || self.hear_one(index));
        }
    }

    fn hear_one(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if connection.waiting.len() >= MOST_WAITING {
            return;
        }
        connection.ended |= !connection.flush() || !connection.fill();
        // What cannot be understood is left to whoever serves the connection.
        while let Some(message) = self.connections[index].decoder.next_message().ok().flatten() {
            let answer = match Request::from_message(&message) {
                Ok(request @ (Request::Hello { .. } | Request::Status))
                    if self.connections[index].waiting.is_empty() =>
                {
                    Some(self.respond(index, &request))
                }
                _ => None,
            };
            let connection = &mut self.connections[index];
            match answer {
                Some(answer) => connection.ended |= !connection.answer(&answer.to_message()),
                None => connection.waiting.push_back(message),
            }
        }
    }
}

/// Notes what begins now, where the tool can see it.
pub fn note(step: Step) {
    doing::note(&progress(step));
}

fn progress(step: Step) -> BatchProgress {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    BatchProgress {
        activity: step.activity,
        done: step.done as u64,
        now: step.now as u64,
        all: step.all as u64,
        methods: step.methods,
        since_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
    }
}
