//! A conversation with the agent in one JVM.
//!
//! Finding the socket and proving that the right process listens there is `tare-attach`'s job;
//! here are only the messages, each bounded in time.

use crate::error::{Error, Result};
use crate::words::several;
use crate::words::{self, plain};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recv, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_arena::layout::SLOT_BYTES;
use tare_arena::samples::layout::RING_SMALLEST;
use tare_attach::Jvm;
use tare_protocol::{
    Activity, BatchProgress, Decoder, EngineName, EnginePlan, ErrorCode, Greeting, Message,
    Request, Response, Status,
};

/// The most descriptors that are kept of what an agent sends.
const MOST_FILES: usize = 4;

/// A dump of threads is read whole.
const LARGEST_DUMP: u64 = 256 << 20;

/// What the agent takes when less is asked for.
const SMALLEST_ARENA: u64 = 8 << 20;

pub struct Agent {
    stream: UnixStream,
    decoder: Decoder,
    patience: Duration,
    /// Descriptors that came with what was received.
    files: Vec<File>,
    /// Answers that nobody waits for, which come before those to what was asked since.
    owed: usize,
    pub greeting: Greeting,
}

/// How often whoever watches gets a turn while nothing comes.
const TURN: Duration = Duration::from_millis(50);

/// Who watches while the agent does something long.
pub trait Watch {
    fn told(&mut self, progress: &BatchProgress);

    /// Called several times a second.
    fn turn(&mut self) -> Turn;

    /// What to say when nothing was heard for so long.
    fn given_up(&self, patience: Duration) -> String;
}

pub enum Turn {
    Wait,
    /// It is seen elsewhere that the agent goes on: the patience begins anew.
    Moves,
    /// It is not wanted any more.
    Stop,
    /// No more is waited for, whatever comes.
    GiveUp,
    /// The answer may come later, when other things are asked.
    Leave,
}

pub enum Answered {
    With(Response),
    /// It was ended before it was done; what it had begun is undone.
    Stopped,
    /// It goes on; nobody waits for it any more.
    Later,
}

/// What there is to talk to in a JVM.
pub enum Found {
    Ours(Agent),
    /// An agent of another build or protocol; all it can be asked is to leave.
    Other(Agent),
    None,
}

impl Agent {
    fn of(stream: UnixStream, patience: Duration) -> Result<Self> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let nobody = Greeting { protocol: 0, version: String::new(), build: String::new() };
        let (decoder, files) = (Decoder::default(), Vec::new());
        Ok(Agent { stream, decoder, patience, files, owed: 0, greeting: nobody })
    }

    /// `None` if the agent goes away before it has greeted us: it was about to leave when we came.
    fn open(stream: UnixStream, patience: Duration) -> Result<Option<Self>> {
        let mut agent = Agent::of(stream, patience)?;
        let Some(first) = agent.next()? else { return Ok(None) };
        if let Ok(Response::Error { message, .. }) = Response::from_message(&first) {
            return Err(Error::Agent(format!(
                "the agent refused the connection: {}",
                plain(&message)
            )));
        }
        agent.greeting = Greeting::from_message(&first)?;
        Ok(Some(agent))
    }

    /// Sends a request and waits for the answer to it.
    pub fn ask(&mut self, request: &Request) -> Result<Response> {
        self.send(request)?;
        loop {
            let message = self.receive()?;
            match Response::from_message(&message)? {
                Response::Progress(_) => {}
                answer if self.is_owed(&answer) => {}
                answer => return Ok(answer),
            }
        }
    }

    /// Whether this is an answer that nobody waits for. A status is told at any time, before what
    /// is under way has its answer, which is never one.
    fn is_owed(&mut self, answer: &Response) -> bool {
        let owed = self.owed > 0 && !matches!(answer, Response::Status(_));
        self.owed -= usize::from(owed);
        owed
    }

    /// The same for what may take long: somebody watches meanwhile, and may have it ended.
    pub fn ask_watched(&mut self, request: &Request, watch: &mut dyn Watch) -> Result<Answered> {
        self.files.clear();
        self.send(request)?;
        let _ = self.stream.set_read_timeout(Some(TURN));
        let answered = self.answer_watched(watch);
        self.set_patience(self.patience);
        answered
    }

    fn answer_watched(&mut self, watch: &mut dyn Watch) -> Result<Answered> {
        let (mut stops, mut answer) = (false, None);
        let mut heard = Instant::now();
        loop {
            while let Some(message) = self.decoder.next_message()? {
                heard = Instant::now();
                match Response::from_message(&message)? {
                    Response::Progress(progress) => watch.told(&progress),
                    answer if self.is_owed(&answer) => {}
                    // What was stopped has two answers: its own, and that of the request to stop.
                    first if stops && answer.is_none() => answer = Some(first),
                    _ if stops => return Ok(Answered::Stopped),
                    only => return Ok(Answered::With(only)),
                }
            }
            match watch.turn() {
                Turn::Wait => {}
                Turn::Moves => heard = Instant::now(),
                // What has been answered already is over: it is not stopped any more.
                Turn::Stop if !stops && !self.has_come() => {
                    stops = true;
                    self.send(&Request::Stop(EngineName::Exact))?;
                }
                Turn::Stop => {}
                Turn::GiveUp => return Err(Error::Silent(watch.given_up(self.patience))),
                Turn::Leave => {
                    self.owed += 1;
                    return Ok(Answered::Later);
                }
            }
            let mut portion = [0; 8192];
            match self.take(&mut portion) {
                Ok(0) => return Err(Error::Gone(None)),
                Ok(n) => self.decoder.push(&portion[..n]),
                Err(Errno::AGAIN | Errno::INTR) if heard.elapsed() < self.patience => {}
                Err(Errno::AGAIN | Errno::INTR) => {
                    return Err(Error::Silent(watch.given_up(self.patience)));
                }
                Err(e) => return Err(broke(e)),
            }
        }
    }

    /// Whether something of the agent's waits to be read.
    fn has_come(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.stream, &mut [0_u8; 1], flags).is_ok_and(|(got, _)| got > 0)
    }

    fn send(&mut self, request: &Request) -> Result<()> {
        if let Err(e) = self.stream.write_all(&request.to_message().encode()) {
            return Err(Error::Gone(Some(e)));
        }
        Ok(())
    }

    /// Asks for something whose only good answer is "ok".
    pub fn tell(&mut self, request: &Request) -> Result<()> {
        match self.ask(request)? {
            Response::Ok => Ok(()),
            Response::Error { message, .. } => Err(Error::Agent(plain(&message).into_owned())),
            _ => Err(Error::another_question()),
        }
    }

    /// Asks for something that is answered by "ok" and `N` descriptors.
    pub fn tell_for_files<const N: usize>(&mut self, request: &Request) -> Result<[File; N]> {
        self.files.clear();
        self.tell(request)?;
        self.files_for(request)
    }

    /// The descriptors that came with the answer to a request: memory that was asked for, and no
    /// larger.
    pub fn files_for<const N: usize>(&mut self, request: &Request) -> Result<[File; N]> {
        let files = self.take_files()?;
        if let Some(most) = largest(request) {
            files.iter().try_for_each(|file| check_size(file, most))?;
        }
        Ok(files)
    }

    fn take_files<const N: usize>(&mut self) -> Result<[File; N]> {
        let files = std::mem::take(&mut self.files);
        let lacks = "the agent's answer lacks its descriptors";
        files.try_into().map_err(|_| Error::Confused(lacks.to_owned()))
    }

    /// Lets answers take longer for a while, for what takes a healthy JVM long on a busy machine.
    pub fn patiently<R>(&mut self, at_least: Duration, body: impl FnOnce(&mut Self) -> R) -> R {
        let usual = self.patience;
        self.set_patience(usual.max(at_least));
        let result = body(self);
        self.set_patience(usual);
        result
    }

    fn set_patience(&mut self, patience: Duration) {
        // Fails for no length but zero; then the older one stays.
        let _ = self.stream.set_read_timeout(Some(patience));
        self.patience = patience;
    }

    pub fn status(&mut self) -> Result<Status> {
        match self.ask(&Request::Status)? {
            Response::Status(status) => Ok(*status),
            Response::Error { message, .. } => Err(Error::Agent(plain(&message).into_owned())),
            _ => Err(Error::another_question()),
        }
    }

    /// Whether the other end has closed the connection, as a JVM that ends does. Costs the JVM
    /// nothing.
    pub fn has_gone(&self) -> bool {
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.stream, &mut [0; 1], look), Ok((0, _)) | Err(Errno::CONNRESET))
    }

    fn receive(&mut self) -> Result<Message> {
        match self.next()? {
            Some(message) => Ok(message),
            None => Err(Error::Gone(None)),
        }
    }

    /// The next message; `None` when the other end has closed the connection.
    fn next(&mut self) -> Result<Option<Message>> {
        let deadline = Instant::now() + self.patience;
        let mut portion = [0; 8192];
        loop {
            if let Some(message) = self.decoder.next_message()? {
                return Ok(Some(message));
            }
            let overdue = Instant::now() >= deadline;
            match self.take(&mut portion) {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(None),
                Ok(n) => self.decoder.push(&portion[..n]),
                Err(Errno::INTR) if !overdue => {}
                Err(Errno::AGAIN | Errno::INTR) => {
                    return Err(Error::Silent(unanswered(self.patience)));
                }
                Err(e) => return Err(broke(e)),
            }
        }
    }

    /// Receives some bytes, and keeps the descriptors that come with them.
    fn take(&mut self, portion: &mut [u8]) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut extra = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(portion)];
        let got = recvmsg(&self.stream, &mut parts, &mut extra, RecvFlags::CMSG_CLOEXEC)?;
        for message in extra.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                // No message has more than two; what is too much is closed here.
                let room = MOST_FILES.saturating_sub(self.files.len());
                self.files.extend(descriptors.map(File::from).take(room));
            }
        }
        Ok(got.bytes)
    }
}

fn broke(error: Errno) -> Error {
    Error::from(error).during("the connection to the agent failed")
}

/// What to say of an agent that nothing more is known of.
pub fn unanswered(patience: Duration) -> String {
    format!(
        "the agent did not answer within {:.1} s; the JVM may be stopped (SIGSTOP), or cannot reach a \
         safepoint (`--timeout` waits longer)",
        patience.as_secs_f64()
    )
}

/// The memory that an agent may hand over in answer to a request, in bytes. It rounds up what is
/// asked for, and puts a header before a ring.
fn largest(request: &Request) -> Option<u64> {
    match request {
        Request::Start(EnginePlan::Exact(plan)) => Some(plan.memory.max(SMALLEST_ARENA)),
        Request::Start(EnginePlan::Sampling(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::Alloc(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::Locks(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::Classes(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::JniRefs(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::Hooks(plan)) => Some(ring(plan.memory)),
        Request::Start(EnginePlan::Pauses) => Some(ring(RING_SMALLEST)),
        // Whoever began it knows; a session has no more than this.
        Request::Open(EngineName::Exact) => Some(SLOT_BYTES),
        Request::Threads(_) => Some(LARGEST_DUMP),
        _ => None,
    }
}

/// The largest memory of a ring of so many bytes.
fn ring(memory: u64) -> u64 {
    memory.max(RING_SMALLEST).saturating_mul(2).saturating_add(RING_SMALLEST)
}

fn check_size(file: &File, most: u64) -> Result<()> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(Error::Confused(format!(
            "the JVM handed over {} MiB of memory where at most {} MiB were asked for; \
             it cannot be trusted, and none of it was read",
            length.div_ceil(1 << 20),
            most >> 20
        )));
    }
    Ok(())
}

/// What the tool tells a rescuer of its own: the agent's status, and the memory of a recording.
pub fn hear_status(stream: &UnixStream, patience: Duration) -> Result<(Status, [File; 2])> {
    let mut teller = Agent::of(stream.try_clone()?, patience)?;
    match Response::from_message(&teller.receive()?)? {
        Response::Status(status) => Ok((*status, teller.take_files()?)),
        _ => Err(Error::Confused("a rescuer has to be told of a status".to_owned())),
    }
}

/// Every agent in the JVM that answers, without attaching.
pub fn agents(jvm: &Jvm, patience: Duration) -> Result<Vec<Agent>> {
    let mut agents = Vec::new();
    for control in tare_attach::connect(jvm, patience).map_err(|e| busy(jvm, e.into()))? {
        agents.extend(Agent::open(control.stream, patience).map_err(|e| busy(jvm, e))?);
    }
    Ok(agents)
}

/// Why an agent does not answer, if that can be seen.
fn busy(jvm: &Jvm, error: Error) -> Error {
    match tare_attach::progress(jvm.pid) {
        Some(progress) => error.during(format!(
            "the agent in JVM {} ({}) is busy and answers nobody: {}",
            jvm.pid,
            jvm.name(),
            inside(&progress)
        )),
        None => error,
    }
}

/// What the agent is inside the JVM for, and for how long.
pub fn inside(progress: &BatchProgress) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = now.saturating_sub(Duration::from_millis(progress.since_ms));
    format!(
        "it has spent {} in a call into the JVM that cannot be interrupted ({})",
        words::time(since),
        what(progress)
    )
}

/// What is done, and how far.
pub fn what(progress: &BatchProgress) -> String {
    let BatchProgress { activity, done, now, all, .. } = *progress;
    let doing = match activity {
        Activity::Weaving => "weaving",
        Activity::Renewing => "reloading callers of intrinsic methods,",
        Activity::Restoring => "restoring",
    };
    format!("{doing} {now} of {}, {done} done", several(all, "class"))
}

/// Looks for an agent that we can talk to. Meeting another version is an answer, not an error.
pub fn find(jvm: &Jvm, patience: Duration) -> Result<Found> {
    let mut other = None;
    for mut agent in agents(jvm, patience)? {
        match agent.ask(&Request::hello())? {
            Response::Ok => return Ok(Found::Ours(agent)),
            Response::Error { code: ErrorCode::Version, .. } => other = Some(agent),
            Response::Error { message, .. } => {
                return Err(Error::Agent(format!("the agent refused: {}", plain(&message))));
            }
            _ => return Err(Error::another_question()),
        }
    }
    Ok(other.map_or(Found::None, Found::Other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use tare_protocol::{EngineChange, ExactPlan, SamplePlan};

    #[test]
    fn an_answer_that_nobody_waited_for_is_not_taken_for_another() {
        /// Stops to wait at once.
        struct Impatient;

        impl Watch for Impatient {
            fn told(&mut self, _: &BatchProgress) {}

            fn turn(&mut self) -> Turn {
                Turn::Leave
            }

            fn given_up(&self, _: Duration) -> String {
                String::new()
            }
        }

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut agent = Agent::of(ours, Duration::from_secs(60)).unwrap();
        let demote = Request::Change(EngineChange::Exact { demote: vec![1] });
        let left = agent.ask_watched(&demote, &mut Impatient).unwrap();
        assert!(matches!(left, Answered::Later));
        let mut say = |response: Response| {
            theirs.write_all(&response.to_message().encode()).unwrap();
        };
        // A status comes in between; the answer to what was left comes before the next one.
        say(Response::Progress(BatchProgress::default()));
        say(Response::Status(Box::default()));
        agent.status().unwrap();
        say(Response::error(ErrorCode::Internal, "too late"));
        say(Response::Ok);
        agent.tell(&Request::Stop(EngineName::Exact)).unwrap();
        say(Response::error(ErrorCode::Internal, "not now"));
        assert!(agent.tell(&Request::Stop(EngineName::Exact)).is_err(), "nothing is owed any more");
    }

    #[test]
    fn memory_larger_than_was_asked_for_is_refused() {
        let memory = 64 << 20;
        let exact = Request::Start(EnginePlan::Exact(Box::new(ExactPlan {
            memory,
            ..ExactPlan::default()
        })));
        let samples = Request::Start(EnginePlan::Sampling(Box::new(SamplePlan {
            memory,
            ..SamplePlan::default()
        })));
        for request in [exact, samples] {
            let most = largest(&request).unwrap();
            assert!((memory..=3 * memory).contains(&most), "{most}");
            let file = File::from(memfd_create("tare-test", MemfdFlags::CLOEXEC).unwrap());
            file.set_len(memory).unwrap();
            check_size(&file, most).unwrap();
            file.set_len(1 << 42).unwrap();
            let error = check_size(&file, most).unwrap_err().to_string();
            assert!(error.contains("4194304 MiB"), "{error}");
        }
        assert!(largest(&Request::Status).is_none());
    }
}
