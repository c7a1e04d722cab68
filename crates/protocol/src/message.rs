//! The frame: a length and a small text that a person can read in a dump of the socket.
//!
//! ```text
//! u32 little endian   number of bytes that follow, at most MAX_FRAME
//! verb \n
//! key=value \n        any number; in values `\` is written `\\`, a line feed `\n`
//! ```
//! Text, because messages are few and small and the two ends may be years apart; bulk data goes
//! through shared memory, never through here.

use crate::EngineName;
use std::fmt;

/// The longest frame either end accepts. The largest real message is a few kilobytes.
pub const MAX_FRAME: usize = 1 << 20;

/// A verb and its fields, in the order given. A key may repeat: that is how lists are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub verb: String,
    fields: Vec<(String, String)>,
}

/// Why bytes are not a message, or a message not the one expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A frame announces more than [`MAX_FRAME`] bytes.
    TooLong(usize),
    /// The payload is not UTF-8.
    NotText,
    /// A line has no `=`, or an escape that does not exist.
    BadLine(String),
    /// The frame is empty.
    NoVerb,
    /// The verb is none that this end knows here.
    UnknownVerb(String),
    /// The engine is none that this agent has.
    UnknownEngine(String),
    /// Nothing of this engine can be changed while it runs.
    Unchangeable(EngineName),
    /// A field is absent or does not have the form that its key asks for.
    BadField { verb: String, key: &'static str },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::TooLong(n) => {
                write!(f, "a message of {n} bytes is over the limit of {MAX_FRAME}")
            }
            WireError::NotText => write!(f, "a message is not UTF-8 text"),
            WireError::BadLine(line) => write!(f, "a message has the malformed line {line:?}"),
            WireError::NoVerb => write!(f, "a message has no verb"),
            WireError::UnknownVerb(verb) => write!(f, "unknown message {verb:?}"),
            WireError::UnknownEngine(name) => {
                let known = EngineName::ALL.map(EngineName::name).join(", ");
                write!(f, "there is no engine {name:?} here; this agent has {known}")
            }
            WireError::Unchangeable(engine) => {
                write!(f, "engine {engine} has nothing that can be changed while it runs")
            }
            WireError::BadField { verb, key } => {
                write!(f, "message {verb:?} has no usable field {key:?}")
            }
        }
    }
}

impl std::error::Error for WireError {}

impl Message {
    #[must_use]
    pub fn new(verb: &str) -> Self {
        Message { verb: verb.to_owned(), fields: Vec::new() }
    }

    /// Adds a field. Keys are ours and hold neither `=` nor a line feed.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        debug_assert!(!key.contains(['=', '\n']));
        self.fields.push((key.to_owned(), value.to_string()));
        self
    }

    /// Adds a field only if there is a value.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds one field per value, all with the same key.
    #[must_use]
    pub fn with_all(self, key: &str, values: &[impl fmt::Display]) -> Self {
        values.iter().fold(self, |message, value| message.with(key, value))
    }

    /// Adds the fields of another message, each key as `PREFIX-key`.
    #[must_use]
    pub(crate) fn with_part(mut self, prefix: &str, part: &Message) -> Self {
        let keyed = part.fields.iter().map(|(key, value)| (format!("{prefix}-{key}"), value));
        self.fields.extend(keyed.map(|(key, value)| (key, value.clone())));
        self
    }

    /// What [`Message::with_part`] added under a prefix, as a message of its own.
    pub(crate) fn part(&self, prefix: &str) -> Message {
        let mut part = Message::new(&format!("{} {prefix}", self.verb));
        let inside = |key: &str| key.strip_prefix(prefix)?.strip_prefix('-').map(str::to_owned);
        part.fields.extend(
            self.fields.iter().filter_map(|(key, value)| Some((inside(key)?, value.clone()))),
        );
        part
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The field as text, or an error that names it.
    pub fn text(&self, key: &'static str) -> Result<String, WireError> {
        self.get(key).map(str::to_owned).ok_or_else(|| self.bad(key))
    }

    /// The field as a number (or anything else that parses), or an error that names it.
    pub fn parse<T: std::str::FromStr>(&self, key: &'static str) -> Result<T, WireError> {
        self.get(key).and_then(|v| v.parse().ok()).ok_or_else(|| self.bad(key))
    }

    /// Every value of a key that may repeat.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<String> {
        self.fields.iter().filter(|(k, _)| k == key).map(|(_, v)| v.clone()).collect()
    }

    /// Every value of a key that may repeat, as a number or anything else that parses.
    pub fn parse_all<T: std::str::FromStr>(&self, key: &'static str) -> Result<Vec<T>, WireError> {
        self.list(key).iter().map(|v| v.parse().map_err(|_| self.bad(key))).collect()
    }

    fn bad(&self, key: &'static str) -> WireError {
        WireError::BadField { verb: self.verb.clone(), key }
    }

    /// The whole frame, length included.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(self.verb.as_bytes());
        out.push(b'\n');
        for (key, value) in &self.fields {
            out.extend_from_slice(key.as_bytes());
            out.push(b'=');
            for byte in value.bytes() {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    other => out.push(other),
                }
            }
            out.push(b'\n');
        }
        let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let text = std::str::from_utf8(payload).map_err(|_| WireError::NotText)?;
        // Not `lines`, which would take a carriage return off the end of a value.
        let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let verb = lines.next().filter(|v| !v.is_empty()).ok_or(WireError::NoVerb)?;
        let mut message = Message::new(verb);
        for line in lines {
            let (key, value) =
                line.split_once('=').ok_or_else(|| WireError::BadLine(line.to_owned()))?;
            message.fields.push((key.to_owned(), unescape(value)?));
        }
        Ok(message)
    }
}

fn unescape(value: &str) -> Result<String, WireError> {
    if !value.contains('\\') {
        return Ok(value.to_owned());
    }
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\\') => out.push('\\'),
                Some('n') => out.push('\n'),
                _ => return Err(WireError::BadLine(value.to_owned())),
            },
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Cuts a stream of bytes, arriving in any portions, into messages.
#[derive(Default, Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, `None` if more bytes are needed. After an error the stream is
    /// out of step and must be closed.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_FRAME {
            return Err(WireError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let message = Message::decode(payload);
        self.buffer.drain(..4 + length);
        message.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(bytes: &[u8], portion: usize) -> Result<Vec<Message>, WireError> {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for part in bytes.chunks(portion) {
            decoder.push(part);
            while let Some(message) = decoder.next_message()? {
                out.push(message);
            }
        }
        Ok(out)
    }

    #[test]
    fn messages_survive_any_cutting_of_the_stream() {
        let messages = vec![
            Message::new("status").with("a", "one\ntwo \\n = three").with("a", "").with("b", "\r"),
            Message::new("detach"),
            Message::new("grüße").with("k", "ü"),
        ];
        let bytes: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
        for portion in [1, 2, 3, 7, 1000] {
            assert_eq!(decode_all(&bytes, portion).unwrap(), messages, "in portions of {portion}");
        }
    }

    #[test]
    fn what_is_not_a_message_has_a_named_error() {
        let frame = |payload: &[u8]| {
            let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
            bytes.extend_from_slice(payload);
            decode_all(&bytes, 1000).unwrap_err()
        };
        assert_eq!(frame(b""), WireError::NoVerb);
        assert_eq!(frame(b"\nk=v\n"), WireError::NoVerb);
        assert_eq!(frame(b"v\nnothing\n"), WireError::BadLine("nothing".into()));
        assert_eq!(frame(b"v\nk=\\x\n"), WireError::BadLine("\\x".into()));
        assert_eq!(frame(b"\xff\xfe"), WireError::NotText);
        assert_eq!(decode_all(&[0xff; 8], 8).unwrap_err(), WireError::TooLong(0xffff_ffff));
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut state = 0x1234_5678_9abc_def0_u64;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((state >> 56) as u8 & if bytes.len() < 4 { 0x1f } else { 0xff });
            }
            bytes[1..4].fill(0);
            let _ = decode_all(&bytes, 5);
        }
    }
}
