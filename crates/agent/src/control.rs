//! The control thread: one thread, one poll loop, a few connections, nothing that can block it
//! but the JVM itself.
//!
//! What a front end switches on belongs to its connection. When the connection ends, by a goodbye,
//! a crash or `kill -9`, it is switched off again; that is the only place where it is. What goes
//! off is the difference between what was wanted before and what is wanted now; what that takes is
//! each engine's.

pub mod connection;
mod meanwhile;
mod requests;

use crate::doing;
use crate::engines::{Engine, EngineSet, Jvm};
use crate::gate;
use crate::lifecycle::Stay;
use crate::socket;
use connection::Connection;
pub use meanwhile::note;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};
use tare_protocol::{ErrorCode, Greeting, Request, Response};

/// Front ends at a time. A person has two or three; the bound keeps a runaway script from taking
/// the program's descriptors.
const MAX_CONNECTIONS: usize = 16;

/// Why the loop ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// A front end asked, and its stream waits for the answer that all is done; or none was
    /// connected for as long as the agent is to stay alone.
    Detach,
    /// The JVM ends; it must not be called any more.
    VmDeath,
}

pub struct Control<'a> {
    stay: &'a Stay,
    jvm: Jvm,
    connections: Vec<Connection>,
    listener: Option<&'a UnixListener>,
    /// Since when nobody has been connected.
    alone: Instant,
    refused: u64,
}

impl<'a> Control<'a> {
    pub fn new(stay: &'a Stay, jvm: Jvm) -> Self {
        let (connections, alone) = (Vec::new(), Instant::now());
        Control { stay, jvm, connections, listener: None, alone, refused: 0 }
    }

    /// Serves until somebody says detach, the JVM ends, or nobody has come for long enough. After a
    /// detach the stream of the one who asked comes back, unanswered; switching off what is on is
    /// then the caller's first duty.
    pub fn run(mut self, listener: &'a UnixListener) -> (End, Option<UnixStream>) {
        self.listener = Some(listener);
        loop {
            let mut interest =
                vec![(listener.as_raw_fd(), false), (self.stay.wake.as_raw_fd(), false)];
            interest.extend(
                self.connections.iter().map(|c| (c.stream.as_raw_fd(), !c.backlog.is_empty())),
            );
            let wanted = self.wanted();
            let bells: Vec<_> =
                wanted.engines().filter_map(|engine| Some((engine, engine.bell()?))).collect();
            interest.extend(bells.iter().map(|(_, bell)| (*bell, false)));
            let pause = if self.connections.iter().any(Connection::is_pending) {
                Some(Duration::ZERO)
            } else {
                wanted.engines().filter_map(Engine::tick_every).min().or_else(|| self.patience())
            };
            let ready = socket::wait(&interest, pause);
            if self.stay.vm_is_dead() {
                return (End::VmDeath, None);
            }
            self.tick(wanted);
            let mut leaver = None;
            for (ready, (engine, _)) in ready.iter().skip(2 + self.connections.len()).zip(bells) {
                if *ready {
                    gate::enter((), || self.answer_bell(engine));
                }
            }
            // Who comes in while one of them is served was not asked for yet.
            for index in 0..self.connections.len() {
                if ready.get(2 + index) != Some(&true) && !self.connections[index].is_pending() {
                    continue;
                }
                // A panic costs the connection it happened on, not the thread.
                match gate::enter(Served::Close, || self.serve(index)) {
                    Served::Stay => {}
                    Served::Close => self.connections[index].open = false,
                    Served::Detach => leaver = Some(index),
                }
            }
            if let Some(index) = leaver {
                return (End::Detach, Some(self.connections.swap_remove(index).stream));
            }
            let before = self.wanted();
            let connected = !self.connections.is_empty();
            self.connections.retain(|c| c.open);
            self.switch_off(before, None);
            if ready[0] {
                self.accept(listener);
            }
            if connected || !self.connections.is_empty() {
                self.alone = Instant::now();
            } else if !ready[0] && self.patience() == Some(Duration::ZERO) {
                return (End::Detach, None);
            }
        }
    }

    /// How much longer the agent stays although nobody is connected; `None` while somebody is, and
    /// when it came with the program, whose user wants it there.
    fn patience(&self) -> Option<Duration> {
        let grace = self.stay.grace.filter(|_| self.connections.is_empty())?;
        Some(grace.saturating_sub(self.alone.elapsed()))
    }

    /// What is on because somebody wants it.
    fn wanted(&self) -> EngineSet {
        self.connections.iter().fold(EngineSet::default(), |all, c| all.and(c.engines))
    }

    /// Switches off what was wanted before and is not any more. Who asked for it, if somebody did,
    /// is told how far it is.
    fn switch_off(&mut self, before: EngineSet, asker: Option<usize>) {
        for engine in before.without(self.wanted()).engines().rev() {
            let jvm = self.jvm;
            gate::enter((), || {
                engine.stop(jvm, &mut |step| self.meanwhile(asker, engine.name(), step));
            });
            doing::done();
        }
    }

    fn tick(&self, engines: EngineSet) {
        engines.engines().for_each(|engine| gate::enter((), || engine.tick(self.jvm)));
    }

    /// Has an engine do what it has found to do, which nobody has asked for just now.
    fn answer_bell(&mut self, engine: &'static dyn Engine) {
        let (jvm, name) = (self.jvm, engine.name());
        let owner = self.connections.iter().position(|c| c.engines.contains(name));
        engine.answer_bell(jvm, &mut |step| self.unasked(owner, name, step));
        doing::done();
    }

    /// Lets in who waits, a few at a time: a crowd that comes faster than it is let in must not
    /// keep those inside from being served.
    fn accept(&mut self, listener: &UnixListener) {
        for _ in 0..MAX_CONNECTIONS {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Most likely the program is out of descriptors. The caller still knocks, so
                    // the next wait would return at once: without a pause this would spin.
                    std::thread::sleep(Duration::from_millis(50));
                    return;
                }
            };
            let full = self.connections.len() >= MAX_CONNECTIONS;
            if full || !socket::peer_allowed(&stream) || stream.set_nonblocking(true).is_err() {
                self.refused += 1;
                let reason = if full {
                    "too many front ends are connected; close one"
                } else {
                    "only the JVM's own user and root may connect, and from no other container"
                };
                let refusal = Response::error(ErrorCode::Request, reason).to_message();
                let _ = socket::send(&stream, &refusal.encode());
                continue;
            }
            let mut connection = Connection::new(stream);
            connection.open = connection.answer(&Greeting::ours().to_message());
            self.connections.push(connection);
        }
    }

    /// Whether nobody but this front end is connected. One that has just gone may not be noticed
    /// yet.
    fn is_alone(&mut self, index: usize) -> bool {
        self.hear();
        let others = self.connections.iter().enumerate().filter(|(other, _)| *other != index);
        self.connections[index].greeted && others.into_iter().all(|(_, c)| c.ended || !c.open)
    }

    /// Reads what there is on one connection and answers it.
    fn serve(&mut self, index: usize) -> Served {
        if !self.connections[index].flush() {
            return Served::Close;
        }
        let gone = !self.connections[index].fill();
        self.connections[index].ended |= gone;
        loop {
            match self.connections[index].next_message() {
                Ok(Some(message)) => {
                    let response = match Request::from_message(&message) {
                        Ok(Request::Detach) => return Served::Detach,
                        Ok(Request::Leave) if self.is_alone(index) => return Served::Detach,
                        Ok(request) => self.respond(index, &request),
                        Err(e) => Response::error(ErrorCode::Request, e),
                    };
                    if std::mem::take(&mut self.connections[index].answered) {
                        continue;
                    }
                    if !self.connections[index].answer(&response.to_message()) {
                        return Served::Close;
                    }
                }
                Ok(None) if self.connections[index].ended => return Served::Close,
                Ok(None) => return Served::Stay,
                Err(e) => {
                    let response = Response::error(ErrorCode::Request, e);
                    self.connections[index].answer(&response.to_message());
                    return Served::Close;
                }
            }
        }
    }
}

/// What became of a connection after it was served.
enum Served {
    Stay,
    Close,
    Detach,
}
