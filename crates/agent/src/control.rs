//! The control thread: one thread, one poll loop, a few connections, nothing that can block it
//! but the JVM itself.
//!
//! What a front end switches on belongs to its connection. When the connection ends, by a
//! goodbye, a crash or `kill -9`, it is switched off again; that is the only place where it is.

mod meanwhile;

use crate::counters;
use crate::doing;
use crate::events;
use crate::exact;
use crate::fits;
use crate::gate;
use crate::jvm::{Jni, Jvmti, Vm, capability_names};
use crate::lifecycle::Session;
use crate::sampling;
use crate::socket;
pub use meanwhile::note;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};
use tare_protocol::{
    Decoder, EngineChange, EngineName, EnginePlan, EngineStatus, ErrorCode, Greeting, Message,
    Request, Response, Status, WireError,
};

/// Front ends at a time. A person has two or three; the bound keeps a runaway script from taking
/// the program's descriptors.
const MAX_CONNECTIONS: usize = 16;

/// Bytes waiting for a front end that does not read; past that it is cut off.
const MAX_BACKLOG: usize = 4 << 20;

/// How often the recording is looked after: its clock, and memory ahead of the probes.
const TICK: Duration = Duration::from_millis(20);

/// Why the loop ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// A front end asked, and its stream waits for the answer that all is done; or none was
    /// connected for as long as the agent is to stay alone.
    Detach,
    /// The JVM ends; it must not be called any more.
    VmDeath,
}

struct Connection {
    stream: UnixStream,
    decoder: Decoder,
    backlog: Vec<u8>,
    /// To be sent with the next byte of the backlog.
    files: Vec<File>,
    greeted: bool,
    counters: bool,
    /// This front end has begun the exact recording; it ends with the connection.
    exact: bool,
    /// This front end has begun the sampling session; it ends with the connection.
    samples: bool,
    /// That session ends when another front end wants one.
    yields: bool,
    /// What came while the thread was busy.
    waiting: VecDeque<Message>,
    /// The other end is gone; what it asked before is still served.
    ended: bool,
    open: bool,
}

pub struct Control<'a> {
    session: &'a Session,
    vm: Vm,
    jvmti: Jvmti,
    jni: Jni,
    connections: Vec<Connection>,
    listener: Option<&'a UnixListener>,
    /// Since when nobody has been connected.
    alone: Instant,
    refused: u64,
}

impl<'a> Control<'a> {
    pub fn new(session: &'a Session, vm: Vm, jvmti: Jvmti, jni: Jni) -> Self {
        let (connections, alone) = (Vec::new(), Instant::now());
        Control { session, vm, jvmti, jni, connections, listener: None, alone, refused: 0 }
    }

    /// Serves until somebody says detach, the JVM ends, or nobody has come for long enough. After a detach the stream of the one
    /// who asked comes back, unanswered; switching off what is on is then the caller's first duty.
    pub fn run(mut self, listener: &'a UnixListener) -> (End, Option<UnixStream>) {
        self.listener = Some(listener);
        loop {
            let mut interest =
                vec![(listener.as_raw_fd(), false), (self.session.wake.as_raw_fd(), false)];
            interest.extend(
                self.connections.iter().map(|c| (c.stream.as_raw_fd(), !c.backlog.is_empty())),
            );
            interest.extend(exact::bell().map(|bell| (bell, false)));
            let pause = match self.records() || self.samples() {
                _ if self.connections.iter().any(Connection::is_pending) => Some(Duration::ZERO),
                true => Some(TICK),
                false => self.patience(),
            };
            let ready = socket::wait(&interest, pause);
            if self.session.vm_is_dead() {
                return (End::VmDeath, None);
            }
            gate::enter((), || exact::tick(self.jni));
            gate::enter((), || sampling::tick(self.jvmti, self.jni));
            let mut leaver = None;
            if ready.get(2 + self.connections.len()) == Some(&true) {
                gate::enter((), || self.weave_found());
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
            self.settle(before, None);
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
        let grace = self.session.grace.filter(|_| self.connections.is_empty())?;
        Some(grace.saturating_sub(self.alone.elapsed()))
    }

    fn wants_counters(&self) -> bool {
        self.connections.iter().any(|c| c.counters)
    }

    fn records(&self) -> bool {
        self.connections.iter().any(|c| c.exact)
    }

    fn samples(&self) -> bool {
        self.connections.iter().any(|c| c.samples)
    }

    /// What is on because somebody wants it: counters, exact recording, sampling.
    fn wanted(&self) -> (bool, bool, bool) {
        (self.wants_counters(), self.records(), self.samples())
    }

    /// Switches off what was wanted before and is not any more. Who asked for it, if somebody did, is
    /// told how far it is.
    fn settle(&mut self, before: (bool, bool, bool), asker: Option<usize>) {
        if before.0 && !self.wants_counters() {
            counters::off(self.jvmti);
        }
        if before.1 && !self.records() {
            let (jvmti, jni) = (self.jvmti, self.jni);
            exact::stop(jvmti, jni, &mut |step| self.meanwhile(asker, step));
            doing::done();
        }
        if before.2 && !self.samples() {
            sampling::stop(self.jvmti, self.jni);
        }
    }

    /// Weaves what a recording with roots has found since, which nobody has asked for just now.
    fn weave_found(&mut self) {
        let (jni, owner) = (self.jni, self.connections.iter().position(|c| c.exact));
        exact::work(jni, &mut |step| self.unasked(owner, step));
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
            let mut connection = Connection {
                stream,
                decoder: Decoder::default(),
                backlog: Vec::new(),
                files: Vec::new(),
                greeted: false,
                counters: false,
                exact: false,
                samples: false,
                yields: false,
                waiting: VecDeque::new(),
                ended: false,
                open: true,
            };
            connection.open = connection.answer(&Greeting::ours().to_message());
            self.connections.push(connection);
        }
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
                        Ok(request) => self.respond(index, &request),
                        Err(e) => Response::error(ErrorCode::Request, e),
                    };
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

    fn respond(&mut self, index: usize, request: &Request) -> Response {
        let ours = Greeting::ours();
        match request {
            Request::Hello { protocol, build } => {
                if (*protocol, build) != (ours.protocol, &ours.build) {
                    return Response::error(
                        ErrorCode::Version,
                        format!(
                            "this JVM holds the agent of tare {} (build {}, protocol {}), \
                             the front end is of build {build}, protocol {protocol}",
                            ours.version, ours.build, ours.protocol
                        ),
                    );
                }
                self.connections[index].greeted = true;
                Response::Ok
            }
            _ if !self.connections[index].greeted => {
                Response::error(ErrorCode::Request, "say hello first")
            }
            Request::Status => self.status(),
            Request::Start(EnginePlan::Counters) => self.switch_counters(index, true),
            Request::Start(EnginePlan::Exact(plan)) => {
                let (jvmti, jni, plan) = (self.jvmti, self.jni, (**plan).clone());
                let mut between = |step| self.meanwhile(Some(index), step);
                let started = exact::start(jvmti, jni, plan, &mut between);
                doing::done();
                match started {
                    Ok(()) => {
                        self.connections[index].exact = true;
                        self.hand_over(index, true)
                    }
                    Err(e) => Response::error(ErrorCode::Request, e),
                }
            }
            Request::Start(EnginePlan::Sampling(plan)) => {
                self.end_what_yields();
                match sampling::start(self.vm, self.jvmti, self.jni, (**plan).clone()) {
                    Ok(files) => {
                        self.connections[index].samples = true;
                        self.connections[index].yields = plan.yields;
                        self.connections[index].files = files.into();
                        Response::Ok
                    }
                    Err(e) => Response::error(ErrorCode::Request, e),
                }
            }
            Request::Change(change) if !self.connections[index].has(change.engine()) => {
                not_started(change.engine())
            }
            Request::Change(EngineChange::Exact { demote }) => {
                let jni = self.jni;
                let mut between = |step| self.meanwhile(Some(index), step);
                let demoted = exact::demote(jni, demote, &mut between);
                doing::done();
                match demoted {
                    Ok(()) => Response::Ok,
                    Err(e) => Response::error(ErrorCode::Internal, e),
                }
            }
            Request::Change(EngineChange::Sampling { interval_ns, paused }) => {
                sampling::change(*interval_ns, *paused);
                Response::Ok
            }
            Request::Stop(engine) if !self.connections[index].has(*engine) => not_started(*engine),
            Request::Stop(EngineName::Counters) => self.switch_counters(index, false),
            Request::Stop(EngineName::Exact) => {
                let before = self.wanted();
                self.connections[index].exact = false;
                self.settle(before, Some(index));
                Response::Ok
            }
            Request::Stop(EngineName::Sampling) => {
                let before = self.wanted();
                self.connections[index].samples = false;
                self.connections[index].yields = false;
                self.settle(before, Some(index));
                Response::Ok
            }
            Request::Open(EngineName::Exact) => self.hand_over(index, false),
            Request::Open(engine) => Response::error(
                ErrorCode::Request,
                format!("engine {engine} writes nothing that a second front end could read"),
            ),
            Request::Explain(pattern) => match exact::explain(pattern) {
                Some(all) => Response::Explained(all),
                None => Response::error(
                    ErrorCode::Request,
                    "no recording is under way that looks for what roots reach; begin one with \
                     `tare record --exact --root METHOD`",
                ),
            },
            Request::Fits { classes, methods } => {
                match fits::fits(self.jvmti, self.jni, classes, methods) {
                    Ok(all) => Response::Fitted(all),
                    Err(failure) => internal(&failure),
                }
            }
            Request::Detach => Response::error(ErrorCode::Internal, "handled before"),
        }
    }

    /// Ends a sampling session that is to make room for any other.
    fn end_what_yields(&mut self) {
        let before = self.wanted();
        for connection in self.connections.iter_mut().filter(|c| c.yields) {
            (connection.samples, connection.yields) = (false, false);
        }
        self.settle(before, None);
    }

    /// Queues the descriptors of the recording, to go with the answer. The one who has begun a trace
    /// drains it, and gets what it needs for that.
    fn hand_over(&mut self, index: usize, drains: bool) -> Response {
        match exact::files(drains) {
            Some(Ok(files)) => {
                self.connections[index].files = files;
                Response::Ok
            }
            Some(Err(e)) => Response::error(ErrorCode::Internal, e),
            None => Response::error(ErrorCode::Request, "no exact recording is under way"),
        }
    }

    fn switch_counters(&mut self, index: usize, on: bool) -> Response {
        let before = self.wanted();
        if on
            && !before.0
            && let Err(failure) = counters::on(self.jvmti)
        {
            return Response::error(ErrorCode::Internal, failure);
        }
        self.connections[index].counters = on;
        self.settle(before, Some(index));
        Response::Ok
    }

    /// What is on, and how it is doing.
    fn engines(&self) -> Vec<EngineStatus> {
        let counters = self.wants_counters().then(|| EngineStatus::Counters(counters::read()));
        let exact = exact::status().map(|status| EngineStatus::Exact(Box::new(status)));
        let sampling = sampling::status().map(|status| EngineStatus::Sampling(Box::new(status)));
        [counters, exact, sampling].into_iter().flatten().collect()
    }

    fn status(&self) -> Response {
        let jvmti = self.jvmti;
        let property = |key| jvmti.system_property(key).unwrap_or_default();
        let counts = self.jni.frame(|| Ok((jvmti.thread_count()?, jvmti.class_count()?)));
        let (threads, classes) = match counts {
            Some(Ok(counts)) => counts,
            Some(Err(failure)) => return internal(&failure),
            None => return Response::error(ErrorCode::Internal, "the JVM is out of memory"),
        };
        let capabilities = match (jvmti.potential_capabilities(), jvmti.capabilities()) {
            (Ok(potential), Ok(held)) => (capability_names(&potential), capability_names(&held)),
            (Err(failure), _) | (_, Err(failure)) => return internal(&failure),
        };
        let ours = Greeting::ours();
        let remembered = exact::remembered(self.jni);
        Response::Status(Box::new(Status {
            pid: std::process::id(),
            version: ours.version,
            build: ours.build,
            loaded_by: Some(self.session.loaded_by),
            agent_ms: u64::try_from(self.session.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            vm_name: property("java.vm.name"),
            vm_version: property("java.vm.version"),
            java_version: jvmti.java_version().unwrap_or_default(),
            command: property("sun.java.command"),
            threads,
            classes,
            capabilities: capabilities.0,
            capabilities_held: capabilities.1,
            front_ends: u32::try_from(self.connections.len()).unwrap_or(u32::MAX),
            engines: self.engines(),
            events: events::callbacks::told(),
            methods_kept: remembered.methods,
            methods_kept_bytes: remembered.bytes,
            panics: gate::panics(),
            refused: self.refused,
        }))
    }
}

fn not_started(engine: EngineName) -> Response {
    Response::error(ErrorCode::Request, format!("this front end has not started engine {engine}"))
}

fn internal(failure: &crate::jvm::Failure) -> Response {
    Response::error(ErrorCode::Internal, failure)
}

/// What became of a connection after it was served.
enum Served {
    Stay,
    Close,
    Detach,
}

impl Connection {
    /// Whether this front end has started an engine that is still on.
    fn has(&self, engine: EngineName) -> bool {
        match engine {
            EngineName::Counters => self.counters,
            EngineName::Exact => self.exact,
            EngineName::Sampling => self.samples,
        }
    }

    /// What is to be served next: what waits, before what has come since.
    fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        match self.waiting.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.decoder.next_message(),
        }
    }

    /// Takes in what has arrived; false when the other end is gone.
    fn fill(&mut self) -> bool {
        let mut portion = [0; 4096];
        loop {
            match self.stream.read(&mut portion) {
                Ok(0) => return false,
                Ok(n) => {
                    self.decoder.push(&portion[..n]);
                    // One portion at a time keeps the buffer bounded by a frame and a bit: the
                    // caller decodes before more is read.
                    return true;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Queues a message and sends what the socket takes now; false when the other end is gone or
    /// reads too slowly.
    fn answer(&mut self, message: &Message) -> bool {
        self.backlog.extend_from_slice(&message.encode());
        self.flush() && self.backlog.len() <= MAX_BACKLOG
    }

    fn flush(&mut self) -> bool {
        while !self.backlog.is_empty() {
            match socket::send_with(&self.stream, &self.backlog, &self.files) {
                Ok(sent) => {
                    self.files.clear();
                    self.backlog.drain(..sent);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}
