//! HotSpot's attach protocol on a connected socket: one request, one answer.
//!
//! The request is a version, a command and three arguments, each ended by a zero byte; the answer
//! is a line with a number and then text until the JVM closes. How the socket came to be is left
//! to `attach_socket`.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The limit of an argument in protocol version 1, which every JDK speaks.
pub(crate) const LONGEST_ARGUMENT: usize = 1024;

/// Answers are a few kilobytes; properties and thread dumps may be a few megabytes.
const LARGEST_ANSWER: usize = 256 << 20;

/// What the JVM said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub code: i32,
    pub text: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Silence {
    TimedOut,
    /// Closed without a word: what the JVM does when it does not accept our user.
    Closed,
    Nonsense(String),
    Io(io::Error),
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Sends one command and reads its answer to the end.
pub(crate) fn converse(
    socket: OwnedFd,
    command: &str,
    arguments: [&str; 3],
    deadline: Instant,
) -> Result<Answer, Silence> {
    let mut stream = UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    let mut request = Vec::new();
    for part in [&["1", command][..], &arguments[..]].concat() {
        request.extend_from_slice(part.as_bytes());
        request.push(0);
    }
    let mut rest = request.as_slice();
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(error) => wait_after(&error, &stream, PollFlags::OUT, deadline)
                .unwrap_or(Err(error.into()))?,
        }
    }
    let mut answer = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while answer.len() < LARGEST_ANSWER {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            // The JVM shuts down the connection when it has said all; a reset after words of its
            // own is the same end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => {
                break;
            }
            Err(error) => {
                wait_after(&error, &stream, PollFlags::IN, deadline).unwrap_or(Err(error.into()))?
            }
        }
    }
    parse_answer(&answer)
}

/// Waits until the stream is ready when `error` says that it was not; `None` for other errors.
fn wait_after(
    error: &io::Error,
    stream: &UnixStream,
    flags: PollFlags,
    deadline: Instant,
) -> Option<Result<(), Silence>> {
    match error.kind() {
        io::ErrorKind::Interrupted => Some(Ok(())),
        io::ErrorKind::WouldBlock => {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Err(Silence::TimedOut));
            }
            let left = Timespec::try_from(left).ok();
            Some(match poll(&mut [PollFd::new(stream, flags)], left.as_ref()) {
                Ok(0) => Err(Silence::TimedOut),
                Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
                Err(error) => Err(Silence::Io(error.into())),
            })
        }
        _ => None,
    }
}

pub(crate) fn parse_answer(bytes: &[u8]) -> Result<Answer, Silence> {
    if bytes.is_empty() {
        return Err(Silence::Closed);
    }
    let text = String::from_utf8_lossy(bytes);
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    match line.trim().parse() {
        Ok(code) => Ok(Answer { code, text: rest.to_owned() }),
        Err(_) => Err(Silence::Nonsense(text.chars().take(200).collect())),
    }
}

/// How a `load` went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Loaded,
    /// `Agent_OnAttach` gave this code.
    AgentFailed(i32),
    DynamicLoadingDisabled,
    /// The JVM has not started up yet.
    TooEarly,
    NoExec(String),
    /// The version of glibc that the library needs.
    OldGlibc(String),
    Musl,
    Rejected(String),
}

/// Reads the answer to `load`, which differs between JDKs: since 9 the agent's own result follows
/// `return code: `; in 8 it stands alone; when the library cannot be opened, 17 gives a code with
/// the text and 21 only the text.
pub(crate) fn judge_load(answer: &Answer) -> Verdict {
    let text = answer.text.trim();
    for line in text.lines() {
        let number = line.trim().strip_prefix("return code:").unwrap_or(line).trim();
        match number.parse() {
            Ok(0) => return Verdict::Loaded,
            Ok(code) => return Verdict::AgentFailed(code),
            Err(_) => {}
        }
    }
    if text.contains("Dynamic agent loading is not enabled") {
        return Verdict::DynamicLoadingDisabled;
    }
    if text.contains("only permitted in the live phase") {
        return Verdict::TooEarly;
    }
    if let Some(version) = text.split("version `GLIBC_").nth(1) {
        return Verdict::OldGlibc(version.split('\'').next().unwrap_or("?").to_owned());
    }
    if text.contains("failed to map segment") || text.contains("Operation not permitted") {
        return Verdict::NoExec(one_line(text));
    }
    if text.contains("Error relocating") || text.contains("Error loading shared library") {
        return Verdict::Musl;
    }
    match (answer.code, text.is_empty()) {
        (0, true) => Verdict::Loaded,
        (code, true) => Verdict::AgentFailed(code),
        _ => Verdict::Rejected(one_line(text)),
    }
}

/// The text of a failure as one line of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    words.join(" ").chars().take(500).collect()
}

/// The version in the text that every glibc carries, as in `stable release version 2.36.`
pub(crate) fn glibc_version(library: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"release version ";
    let at = library.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let tail = library.get(at..)?;
    let digits = tail.iter().take(12).take_while(|b| b.is_ascii_digit() || **b == b'.');
    let version: String = digits.map(|&b| b as char).collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(code: i32, text: &str) -> Verdict {
        judge_load(&Answer { code, text: text.to_owned() })
    }

    #[test]
    fn answers_of_every_jdk_are_understood() {
        assert_eq!(judge(0, "return code: 0\n"), Verdict::Loaded);
        assert_eq!(judge(0, "0\n"), Verdict::Loaded);
        assert_eq!(judge(0, ""), Verdict::Loaded);
        assert_eq!(judge(0, "return code: 7\n"), Verdict::AgentFailed(7));
        assert_eq!(judge(0, "return code: -1\n"), Verdict::AgentFailed(-1));
        let disabled = "Dynamic agent loading is not enabled. Use …";
        assert_eq!(judge(0, disabled), Verdict::DynamicLoadingDisabled);
        let early = "Dynamic agent loading is only permitted in the live phase\n";
        assert_eq!(judge(0, early), Verdict::TooEarly);
    }

    #[test]
    fn reasons_of_the_loader_are_told_apart() {
        let mapping = "/tmp/l.so was not loaded.\n/tmp/l.so: failed to map segment from shared \
                       object: Operation not permitted\n";
        assert!(matches!(judge(0, mapping), Verdict::NoExec(_)));
        let old = "l.so was not loaded.\n/lib/libc.so.6: version `GLIBC_2.34' not found (required \
                   by l.so)\n";
        assert_eq!(judge(-1, old), Verdict::OldGlibc("2.34".to_owned()));
        let other = "l.so was not loaded.\nl.so: file too short\n";
        let text = "l.so was not loaded. l.so: file too short".to_owned();
        assert_eq!(judge(0, other), Verdict::Rejected(text));
        assert_eq!(judge(-1, ""), Verdict::AgentFailed(-1));
    }

    #[test]
    fn an_answer_is_a_number_and_text() {
        let answer = parse_answer(b"0\nline\nline").unwrap();
        assert_eq!((answer.code, answer.text.as_str()), (0, "line\nline"));
        assert_eq!(parse_answer(b"101").unwrap().code, 101);
        assert!(matches!(parse_answer(b""), Err(Silence::Closed)));
        assert!(matches!(parse_answer(b"\xff\xff"), Err(Silence::Nonsense(_))));
    }

    #[test]
    fn glibc_tells_its_version() {
        let text = b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopy";
        assert_eq!(glibc_version(text).as_deref(), Some("2.36"));
        assert_eq!(glibc_version(b"release version "), None);
        assert_eq!(glibc_version(b""), None);
    }
}
