//! The messages themselves, as types.
//!
//! Frozen for all versions: [`Greeting`], `hello`, `detach`, `ok` and `error`. With them any
//! version of the tool can tell that it meets another version, say so, and send it away.

use crate::alloc::AllocStatus;
use crate::classes::ClassStatus;
use crate::counters::EventCounts;
use crate::engine::{EngineChange, EngineName, EnginePlan, EngineStatus};
use crate::exact::ExactStatus;
use crate::explain::{self, Explanations};
use crate::fits::{self, Fit};
use crate::heap::HeapStatus;
use crate::jni_refs::JniRefsStatus;
use crate::locks::LockStatus;
use crate::progress::BatchProgress;
use crate::sampling::SampleStatus;
use crate::threads::ThreadsPlan;
use crate::{
    BUILD_ID, Message, MethodPattern, PROTOCOL, Pattern, PausesStatus, VERSION, WireError,
};
use std::borrow::Borrow;
use std::fmt;

/// What the agent says first on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub protocol: u32,
    pub version: String,
    pub build: String,
}

impl Greeting {
    #[must_use]
    pub fn ours() -> Self {
        Greeting { protocol: PROTOCOL, version: VERSION.into(), build: BUILD_ID.into() }
    }

    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::new("tare")
            .with("protocol", self.protocol)
            .with("version", &self.version)
            .with("build", &self.build)
    }

    pub fn from_message(m: &Message) -> Result<Self, WireError> {
        expect(m, "tare")?;
        Ok(Greeting {
            protocol: m.parse("protocol")?,
            version: m.text("version")?,
            build: m.text("build")?,
        })
    }
}

/// What a front end asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Must come first; the agent refuses another protocol or build.
    Hello {
        protocol: u32,
        build: String,
    },
    Status,
    /// Starts an engine, which ends with this connection at the latest. Answered by `ok`, with the
    /// descriptors of what it writes, if it writes anything.
    Start(EnginePlan),
    /// Changes an engine that this connection has started.
    Change(EngineChange),
    /// Ends what this connection has started: the program runs as before, and all that was measured
    /// can be read. It also ends a start, a change or a stop that is under way, between two steps.
    Stop(EngineName),
    /// The descriptors of what an engine writes that another front end has started.
    Open(EngineName),
    /// What is known of the methods that fit, in a recording of what roots reach.
    Explain(MethodPattern),
    /// Which of these patterns fit anything that is loaded, and what may be meant by the others.
    Fits {
        classes: Vec<Pattern>,
        methods: Vec<MethodPattern>,
    },
    /// A dump of all threads. Answered by `ok`, with a descriptor of its text.
    Threads(ThreadsPlan),
    /// Removes the agent; allowed before `hello` and across versions.
    Detach,
    /// The same, unless other front ends are connected: then it is answered by an error of the
    /// code [`ErrorCode::Others`], and the agent stays with them.
    Leave,
}

impl Request {
    #[must_use]
    pub fn hello() -> Self {
        Request::Hello { protocol: PROTOCOL, build: BUILD_ID.into() }
    }

    #[must_use]
    pub fn to_message(&self) -> Message {
        match self {
            Request::Hello { protocol, build } => {
                Message::new("hello").with("protocol", protocol).with("build", build)
            }
            Request::Status => Message::new("status"),
            Request::Start(plan) => plan.to_message(),
            Request::Change(change) => change.to_message(),
            Request::Stop(engine) => Message::new("stop").with("engine", engine),
            Request::Open(engine) => Message::new("open").with("engine", engine),
            Request::Explain(pattern) => Message::new("explain").with("method", pattern),
            Request::Fits { classes, methods } => {
                Message::new("fits").with_all("class", classes).with_all("method", methods)
            }
            Request::Threads(plan) => plan.to_message(),
            Request::Detach => Message::new("detach"),
            Request::Leave => Message::new("leave"),
        }
    }

    pub fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(match m.verb.as_str() {
            "hello" => Request::Hello { protocol: m.parse("protocol")?, build: m.text("build")? },
            "status" => Request::Status,
            "start" => Request::Start(EnginePlan::from_message(m)?),
            "change" => Request::Change(EngineChange::from_message(m)?),
            "stop" => Request::Stop(EngineName::of(m)?),
            "open" => Request::Open(EngineName::of(m)?),
            "explain" => Request::Explain(m.parse("method")?),
            "fits" => {
                Request::Fits { classes: m.parse_all("class")?, methods: m.parse_all("method")? }
            }
            "threads" => Request::Threads(ThreadsPlan::from_message(m)?),
            "detach" => Request::Detach,
            "leave" => Request::Leave,
            other => return Err(WireError::UnknownVerb(other.to_owned())),
        })
    }
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Ok,
    Status(Box<Status>),
    Explained(Explanations),
    /// Of each pattern, in the order in which they were asked for: classes, then methods.
    Fitted(Vec<Fit>),
    /// No answer yet: how far the agent is with what was asked.
    Progress(BatchProgress),
    Error {
        code: ErrorCode,
        message: String,
    },
}

/// Errors that a front end may want to tell apart; the message says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// Protocol or build differ.
    Version,
    /// The request is malformed or comes too early.
    Request,
    /// The agent itself failed; the program goes on.
    Internal,
    /// Others are connected.
    Others,
    /// A code that a later version invented.
    Other,
}

impl ErrorCode {
    fn name(self) -> &'static str {
        match self {
            ErrorCode::Version => "version",
            ErrorCode::Request => "request",
            ErrorCode::Internal => "internal",
            ErrorCode::Others => "others",
            ErrorCode::Other => "other",
        }
    }

    fn from_name(name: &str) -> Self {
        [ErrorCode::Version, ErrorCode::Request, ErrorCode::Internal, ErrorCode::Others]
            .into_iter()
            .find(|code| code.name() == name)
            .unwrap_or(ErrorCode::Other)
    }
}

impl Response {
    #[must_use]
    pub fn error(code: ErrorCode, message: impl fmt::Display) -> Self {
        Response::Error { code, message: message.to_string() }
    }

    #[must_use]
    pub fn to_message(&self) -> Message {
        match self {
            Response::Ok => Message::new("ok"),
            Response::Status(status) => status.to_message(),
            Response::Explained(all) => explain::to_message(all),
            Response::Fitted(all) => fits::to_message(all),
            Response::Progress(progress) => progress.to_message(),
            Response::Error { code, message } => {
                Message::new("error").with("code", code.name()).with("message", message)
            }
        }
    }

    pub fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(match m.verb.as_str() {
            "ok" => Response::Ok,
            "status" => Response::Status(Box::new(Status::from_message(m)?)),
            "explained" => Response::Explained(explain::from_message(m)?),
            "fitted" => Response::Fitted(fits::from_message(m)?),
            "progress" => Response::Progress(BatchProgress::from_message(m)?),
            "error" => Response::Error {
                code: ErrorCode::from_name(&m.text("code")?),
                message: m.text("message")?,
            },
            other => return Err(WireError::UnknownVerb(other.to_owned())),
        })
    }
}

/// How the agent came into the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadedBy {
    /// `-agentpath`, before the program started.
    Launch,
    /// The attach protocol, into a running program.
    Attach,
}

impl fmt::Display for LoadedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadedBy::Launch => "launch",
            LoadedBy::Attach => "attach",
        })
    }
}

impl std::str::FromStr for LoadedBy {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        match s {
            "launch" => Ok(LoadedBy::Launch),
            "attach" => Ok(LoadedBy::Attach),
            _ => Err(()),
        }
    }
}

/// The state of the JVM and of the agent in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The JVM's pid as the JVM itself sees it.
    pub pid: u32,
    pub version: String,
    pub build: String,
    pub loaded_by: Option<LoadedBy>,
    /// Milliseconds since the agent became active.
    pub agent_ms: u64,
    pub vm_name: String,
    pub vm_version: String,
    pub java_version: String,
    pub command: String,
    pub threads: u32,
    pub classes: u32,
    /// JVMTI capabilities that this JVM would grant now, and those that we hold.
    pub capabilities: Vec<String>,
    pub capabilities_held: Vec<String>,
    /// Front ends connected, this one included.
    pub front_ends: u32,
    /// What is switched on; empty when the agent is idle.
    pub engines: Vec<EngineStatus>,
    /// Events that the JVM has told the agent of in its life. While nothing is on, none come.
    pub events: u64,
    /// Methods whose ids the agent remembers for recordings to come, and the bytes that it takes.
    pub methods_kept: u64,
    pub methods_kept_bytes: u64,
    /// Panics that the gate stopped; not zero means a bug of ours that did no harm.
    pub panics: u64,
    /// Connections refused for their credentials, or because there were too many.
    pub refused: u64,
}

/// What a status says of one engine.
macro_rules! part {
    ($status:ident, $engine:ident) => {
        $status.engines.iter().find_map(|engine| match engine {
            EngineStatus::$engine(status) => Some(status.borrow()),
            _ => None,
        })
    };
}

impl Status {
    /// The names of what is switched on.
    #[must_use]
    pub fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|engine| engine.engine().name()).collect()
    }

    /// What has been counted, if the counters are on.
    #[must_use]
    pub fn counters(&self) -> Option<&EventCounts> {
        part!(self, Counters)
    }

    /// The exact recording under way.
    #[must_use]
    pub fn exact(&self) -> Option<&ExactStatus> {
        part!(self, Exact)
    }

    /// The sampling session under way.
    #[must_use]
    pub fn sampling(&self) -> Option<&SampleStatus> {
        part!(self, Sampling)
    }

    /// The sampled allocations under way.
    #[must_use]
    pub fn alloc(&self) -> Option<&AllocStatus> {
        part!(self, Alloc)
    }

    /// The recording of locks under way.
    #[must_use]
    pub fn locks(&self) -> Option<&LockStatus> {
        part!(self, Locks)
    }

    /// The recording of classes under way.
    #[must_use]
    pub fn classes(&self) -> Option<&ClassStatus> {
        part!(self, Classes)
    }

    /// The recording of references of native code under way.
    #[must_use]
    pub fn jni_refs(&self) -> Option<&JniRefsStatus> {
        part!(self, JniRefs)
    }

    /// Pauses that are told alone.
    #[must_use]
    pub fn pauses(&self) -> Option<&PausesStatus> {
        part!(self, Pauses)
    }

    /// The copy of the JVM that this connection, or another, has made.
    #[must_use]
    pub fn heap(&self) -> Option<&HeapStatus> {
        part!(self, Heap)
    }

    fn to_message(&self) -> Message {
        let message = Message::new("status")
            .with("pid", self.pid)
            .with("version", &self.version)
            .with("build", &self.build)
            .with_some("loaded-by", self.loaded_by)
            .with("agent-ms", self.agent_ms)
            .with("vm-name", &self.vm_name)
            .with("vm-version", &self.vm_version)
            .with("java-version", &self.java_version)
            .with("command", &self.command)
            .with("threads", self.threads)
            .with("classes", self.classes)
            .with_all("capability", &self.capabilities)
            .with_all("capability-held", &self.capabilities_held)
            .with("front-ends", self.front_ends)
            .with("events", self.events)
            .with("methods-kept", self.methods_kept)
            .with("methods-kept-bytes", self.methods_kept_bytes)
            .with("panics", self.panics)
            .with("refused", self.refused);
        self.engines.iter().fold(message, |message, engine| engine.add_to(message))
    }

    fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(Status {
            pid: m.parse("pid")?,
            version: m.text("version")?,
            build: m.text("build")?,
            loaded_by: m.get("loaded-by").and_then(|v| v.parse().ok()),
            agent_ms: m.parse("agent-ms")?,
            vm_name: m.text("vm-name")?,
            vm_version: m.text("vm-version")?,
            java_version: m.text("java-version")?,
            command: m.text("command")?,
            threads: m.parse("threads")?,
            classes: m.parse("classes")?,
            capabilities: m.list("capability"),
            capabilities_held: m.list("capability-held"),
            front_ends: m.parse("front-ends")?,
            engines: EngineStatus::all_of(m)?,
            events: m.parse("events")?,
            methods_kept: m.parse("methods-kept")?,
            methods_kept_bytes: m.parse("methods-kept-bytes")?,
            panics: m.parse("panics")?,
            refused: m.parse("refused")?,
        })
    }
}

/// What a launched JVM tells the process that launched it, once, before its `main` runs. The
/// connection stays open; its end is the JVM's end (or the agent's).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub pid: u32,
    pub java_version: String,
    pub command: String,
    pub build: String,
}

impl Started {
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::new("started")
            .with("pid", self.pid)
            .with("java-version", &self.java_version)
            .with("command", &self.command)
            .with("build", &self.build)
    }

    pub fn from_message(m: &Message) -> Result<Self, WireError> {
        expect(m, "started")?;
        Ok(Started {
            pid: m.parse("pid")?,
            java_version: m.text("java-version")?,
            command: m.text("command")?,
            build: m.text("build")?,
        })
    }
}

fn expect(m: &Message, verb: &str) -> Result<(), WireError> {
    if m.verb == verb { Ok(()) } else { Err(WireError::UnknownVerb(m.verb.clone())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_back_as_it_was_sent() {
        for request in [
            Request::hello(),
            Request::Status,
            Request::Explain("com.acme.Orders.place".parse().unwrap()),
            Request::Threads(ThreadsPlan { virtuals: 7, ..ThreadsPlan::default() }),
            Request::Detach,
            Request::Leave,
        ] {
            assert_eq!(Request::from_message(&request.to_message()), Ok(request));
        }
        let status = Status {
            pid: 7,
            loaded_by: Some(LoadedBy::Attach),
            command: "Main --x\ny".into(),
            capabilities: vec!["can_tag_objects".into(), "can_suspend".into()],
            engines: vec![EngineStatus::Counters(EventCounts {
                collections: 3,
                ..EventCounts::default()
            })],
            ..Status::default()
        };
        for response in [
            Response::Ok,
            Response::Status(Box::new(status)),
            Response::Progress(BatchProgress { all: 7, ..BatchProgress::default() }),
            Response::error(ErrorCode::Version, "other"),
        ] {
            assert_eq!(Response::from_message(&response.to_message()), Ok(response));
        }
        let greeting = Greeting::ours();
        assert_eq!(Greeting::from_message(&greeting.to_message()), Ok(greeting));
    }

    #[test]
    fn a_later_version_may_add_fields_and_error_codes() {
        let m = Request::hello().to_message().with("new", "thing");
        assert_eq!(Request::from_message(&m), Ok(Request::hello()));
        let m = Message::new("error").with("code", "invented").with("message", "m");
        assert_eq!(Response::from_message(&m), Ok(Response::error(ErrorCode::Other, "m")));
    }

    #[test]
    fn missing_fields_are_named() {
        assert_eq!(
            Request::from_message(&Message::new("hello")),
            Err(WireError::BadField { verb: "hello".into(), key: "protocol" })
        );
    }
}
