//! What frames mean: what the near end (where the user is) and the far end (where the JVM is) say.

use crate::frame::{Channel, Frame};
use std::fmt;
use tare_protocol::{Decoder, Message, WireError};

/// Changes with every change that the other end must know of. Both ends are of one build, so this
/// only tells them apart from something else altogether.
pub const PROTOCOL: u32 = 2;

/// Words and bytes of a command line at most.
const MOST_ARGS: usize = 1000;
const MOST_ARG: usize = 128 << 10;
/// Of a text that is shown to a person.
const MOST_TEXT: usize = 64 << 10;

/// Columns and lines of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    pub columns: u16,
    pub lines: u16,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.columns, self.lines)
    }
}

impl std::str::FromStr for Size {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (columns, lines) = text.split_once('x').ok_or(())?;
        let number = |text: &str| text.parse::<u16>().map_err(|_| ());
        Ok(Size { columns: number(columns)?, lines: number(lines)? })
    }
}

/// A command line for the far end, and what it would find out here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Without the program's name.
    pub args: Vec<String>,
    /// The terminals that standard output and standard error are here, if they are.
    pub out: Option<Size>,
    pub err: Option<Size>,
    /// `TARE_TIMEOUT` and `TARE_GRACE`, as they are set here.
    pub timeout: Option<String>,
    pub grace: Option<String>,
    /// Bytes a second that may come back at most.
    pub rate: Option<u64>,
}

/// What the near end says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromNear {
    Hello {
        protocol: u32,
        id: String,
    },
    Run(Run),
    /// Ctrl-C.
    Interrupt,
    Beat,
    /// So many bytes have come here since the greeting.
    Taken(u64),
}

/// What the far end says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromFar {
    Hello {
        protocol: u32,
        id: String,
        arch: String,
    },
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// Takes the place of the line before; empty if there is none any more.
    Progress(String),
    /// A file begins; what it might be called, and the JVM that it is of, if it is of one.
    FileBegins {
        name: String,
        jvm: Option<String>,
        pid: Option<u32>,
    },
    File(Vec<u8>),
    /// The file is complete.
    FileEnds,
    /// A sentence about the file, without its name and its size.
    Told(String),
    /// The command has ended with this status.
    Exit(u8),
    /// The command could not be run.
    Failed(String),
    Beat,
}

/// Why a frame is no message of this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageError {
    /// Its text cannot be read.
    Wire(WireError),
    /// There is more or less than one message in the frame.
    NotOne,
    /// This end sends nothing on that channel.
    Misplaced(Channel),
    /// It is larger than anybody needs.
    TooMuch(&'static str),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Wire(error) => write!(f, "{error}"),
            MessageError::NotOne => write!(f, "a frame of messages does not hold one"),
            MessageError::Misplaced(channel) => {
                write!(f, "something came on a channel where nothing comes: {channel:?}")
            }
            MessageError::TooMuch(what) => write!(f, "{what} is longer than it can be"),
        }
    }
}

impl std::error::Error for MessageError {}

impl From<WireError> for MessageError {
    fn from(error: WireError) -> Self {
        MessageError::Wire(error)
    }
}

impl FromNear {
    pub fn to_frame(&self) -> Frame {
        let message = match self {
            FromNear::Hello { protocol, id } => {
                Message::new("hello").with("protocol", protocol).with("id", id)
            }
            FromNear::Run(run) => Message::new("run")
                .with_all("arg", &run.args)
                .with_some("out", run.out)
                .with_some("err", run.err)
                .with_some("timeout", run.timeout.as_ref())
                .with_some("grace", run.grace.as_ref())
                .with_some("rate", run.rate),
            FromNear::Interrupt => Message::new("interrupt"),
            FromNear::Beat => Message::new("beat"),
            FromNear::Taken(bytes) => Message::new("taken").with("bytes", bytes),
        };
        of(&message)
    }

    pub fn from_frame(frame: Frame) -> Result<Self, MessageError> {
        if frame.channel != Channel::Message {
            return Err(MessageError::Misplaced(frame.channel));
        }
        let message = one(&frame.bytes)?;
        Ok(match message.verb.as_str() {
            "hello" => FromNear::Hello {
                protocol: message.parse("protocol")?,
                id: short(message.text("id")?, "a build's name")?,
            },
            "run" => {
                let args = message.list("arg");
                let bytes: usize = args.iter().map(String::len).sum();
                if args.len() > MOST_ARGS || bytes > MOST_ARG {
                    return Err(MessageError::TooMuch("a command line"));
                }
                FromNear::Run(Run {
                    args,
                    out: optional(&message, "out")?,
                    err: optional(&message, "err")?,
                    timeout: message.get("timeout").map(str::to_owned),
                    grace: message.get("grace").map(str::to_owned),
                    rate: optional(&message, "rate")?,
                })
            }
            "interrupt" => FromNear::Interrupt,
            "beat" => FromNear::Beat,
            "taken" => FromNear::Taken(message.parse("bytes")?),
            other => return Err(WireError::UnknownVerb(other.to_owned()).into()),
        })
    }
}

impl FromFar {
    pub fn to_frame(&self) -> Frame {
        let message = match self {
            FromFar::Out(bytes) => return Frame::new(Channel::Out, bytes.clone()),
            FromFar::Err(bytes) => return Frame::new(Channel::Err, bytes.clone()),
            FromFar::File(bytes) => return Frame::new(Channel::File, bytes.clone()),
            FromFar::Progress(text) => return Frame::new(Channel::Progress, text.as_bytes()),
            FromFar::Hello { protocol, id, arch } => {
                Message::new("hello").with("protocol", protocol).with("id", id).with("arch", arch)
            }
            FromFar::FileBegins { name, jvm, pid } => Message::new("file")
                .with("name", name)
                .with_some("jvm", jvm.as_ref())
                .with_some("pid", *pid),
            FromFar::FileEnds => Message::new("file-end"),
            FromFar::Told(text) => Message::new("told").with("text", text),
            FromFar::Exit(code) => Message::new("exit").with("code", code),
            FromFar::Failed(text) => Message::new("failed").with("text", text),
            FromFar::Beat => Message::new("beat"),
        };
        of(&message)
    }

    pub fn from_frame(frame: Frame) -> Result<Self, MessageError> {
        match frame.channel {
            Channel::Message => {}
            Channel::Out => return Ok(FromFar::Out(frame.bytes)),
            Channel::Err => return Ok(FromFar::Err(frame.bytes)),
            Channel::File => return Ok(FromFar::File(frame.bytes)),
            Channel::Progress => {
                let text = String::from_utf8(frame.bytes).map_err(|_| WireError::NotText)?;
                return Ok(FromFar::Progress(short(text, "a line of progress")?));
            }
        }
        let message = one(&frame.bytes)?;
        Ok(match message.verb.as_str() {
            "hello" => FromFar::Hello {
                protocol: message.parse("protocol")?,
                id: short(message.text("id")?, "a build's name")?,
                arch: short(message.text("arch")?, "the name of a processor")?,
            },
            "file" => FromFar::FileBegins {
                name: short(message.text("name")?, "a file's name")?,
                jvm: message
                    .get("jvm")
                    .map(|name| short(name.to_owned(), "a JVM's name"))
                    .transpose()?,
                pid: optional(&message, "pid")?,
            },
            "file-end" => FromFar::FileEnds,
            "told" => FromFar::Told(short(message.text("text")?, "a sentence")?),
            "exit" => FromFar::Exit(message.parse("code")?),
            "failed" => FromFar::Failed(short(message.text("text")?, "a sentence")?),
            "beat" => FromFar::Beat,
            other => return Err(WireError::UnknownVerb(other.to_owned()).into()),
        })
    }
}

fn of(message: &Message) -> Frame {
    Frame::new(Channel::Message, message.encode())
}

/// The one message that a frame holds.
fn one(bytes: &[u8]) -> Result<Message, MessageError> {
    let length = bytes.first_chunk::<4>().map(|head| u32::from_le_bytes(*head) as usize);
    if length != bytes.len().checked_sub(4) {
        return Err(MessageError::NotOne);
    }
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    decoder.next_message()?.ok_or(MessageError::NotOne)
}

/// A field that may be missing, but not be nonsense.
fn optional<T: std::str::FromStr>(
    message: &Message,
    key: &'static str,
) -> Result<Option<T>, WireError> {
    message.get(key).map(|_| message.parse(key)).transpose()
}

fn short(text: String, what: &'static str) -> Result<String, MessageError> {
    if text.len() > MOST_TEXT { Err(MessageError::TooMuch(what)) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let size = Size { columns: 80, lines: 24 };
        let run = Run {
            args: vec!["record".into(), "a b\n'\"\\".into(), String::new()],
            out: Some(size),
            err: None,
            timeout: Some("10s".into()),
            grace: None,
            rate: Some(1 << 20),
        };
        for said in [
            FromNear::Hello { protocol: 1, id: "0.1.0 abc".into() },
            FromNear::Run(run),
            FromNear::Interrupt,
            FromNear::Beat,
            FromNear::Taken(u64::MAX),
        ] {
            assert_eq!(FromNear::from_frame(said.to_frame()), Ok(said));
        }
        for said in [
            FromFar::Hello { protocol: 1, id: "x".into(), arch: "x86_64".into() },
            FromFar::Out(vec![0, 255]),
            FromFar::Err(Vec::new()),
            FromFar::Progress("1 s".into()),
            FromFar::FileBegins { name: "a.tare".into(), jvm: Some("Main".into()), pid: Some(7) },
            FromFar::FileBegins { name: "a".into(), jvm: None, pid: None },
            FromFar::File(vec![1]),
            FromFar::FileEnds,
            FromFar::Told("12 samples".into()),
            FromFar::Exit(130),
            FromFar::Failed("no".into()),
            FromFar::Beat,
        ] {
            assert_eq!(FromFar::from_frame(said.to_frame()), Ok(said));
        }
    }

    #[test]
    fn nonsense_is_named() {
        let near = |bytes: &[u8]| FromNear::from_frame(Frame::new(Channel::Message, bytes));
        assert_eq!(near(b""), Err(MessageError::NotOne));
        assert_eq!(near(&[9, 0, 0, 0, b'x']), Err(MessageError::NotOne));
        let unknown = FromNear::from_frame(of(&Message::new("fly")));
        assert!(matches!(unknown, Err(MessageError::Wire(WireError::UnknownVerb(_)))));
        let misplaced = FromNear::from_frame(Frame::new(Channel::File, "x"));
        assert_eq!(misplaced, Err(MessageError::Misplaced(Channel::File)));
        let many = vec![String::new(); MOST_ARGS + 1];
        let run = FromNear::Run(Run { args: many, ..Run::default() });
        assert!(matches!(
            FromNear::from_frame(run.to_frame()),
            Err(MessageError::TooMuch("a command line"))
        ));
        let status = FromFar::from_frame(of(&Message::new("exit").with("code", 256)));
        assert!(status.is_err(), "no process ends with that");
        let long = FromFar::Told("x".repeat(MOST_TEXT + 1));
        assert!(FromFar::from_frame(long.to_frame()).is_err());
    }
}
