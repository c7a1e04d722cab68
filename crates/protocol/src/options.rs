//! The options text that follows the library's path: `key=value,key=value`.
//!
//! It travels through `-agentpath:`, `JAVA_TOOL_OPTIONS` and the attach protocol, each with its
//! own idea of spaces and quotes. Whatever is not plain is therefore written `%XX`.

use std::fmt;
use std::time::Duration;

/// How long an agent that came by attach stays while no front end is connected, unless its options
/// say otherwise. Long enough for commands that a person types one after the other.
pub const GRACE: Duration = Duration::from_secs(60);

/// What the agent can be told before a front end talks to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// A socket of the process that launched this JVM; the agent reports there once the JVM is up.
    pub rendezvous: Option<String>,
    /// An exact recording will come: prepare what can only be prepared now.
    pub exact: bool,
    /// With `exact`: seeds that come from the clock are to be the same in every run.
    pub fixed: bool,
    /// The program is to wait until it is recorded, however long that takes.
    pub held: bool,
    /// Loaded by attach: seconds without a front end after which the agent leaves; [`GRACE`] if
    /// nothing is said.
    pub grace: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    Unknown(String),
    BadEscape(String),
    BadGrace(String),
    NotText,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown(key) => {
                write!(
                    f,
                    "unknown agent option {key:?}; there are rendezvous=SOCKET, exact, fixed, \
                     held and grace=SECONDS"
                )
            }
            OptionError::BadGrace(value) => {
                write!(f, "the agent option grace={value} is no number of seconds, from 1 on")
            }
            OptionError::BadEscape(value) => write!(f, "bad %XX escape in agent option {value:?}"),
            OptionError::NotText => write!(f, "the agent options are not UTF-8 text"),
        }
    }
}

impl std::error::Error for OptionError {}

impl AgentOptions {
    pub fn parse(text: &str) -> Result<Self, OptionError> {
        let mut options = AgentOptions::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            match key {
                "rendezvous" => options.rendezvous = Some(unescape(value)?),
                "exact" => options.exact = true,
                "fixed" => options.fixed = true,
                "held" => options.held = true,
                "grace" => {
                    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                    let bad = || OptionError::BadGrace(value.to_owned());
                    options.grace = Some(seconds.ok_or_else(bad)?);
                }
                other => return Err(OptionError::Unknown(other.to_owned())),
            }
        }
        Ok(options)
    }
}

impl fmt::Display for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rendezvous =
            self.rendezvous.as_ref().map(|path| format!("rendezvous={}", escape(path)));
        let exact = self.exact.then(|| "exact".to_owned());
        let fixed = self.fixed.then(|| "fixed".to_owned());
        let held = self.held.then(|| "held".to_owned());
        let grace = self.grace.map(|seconds| format!("grace={seconds}"));
        let all: Vec<String> =
            rendezvous.into_iter().chain(exact).chain(fixed).chain(held).chain(grace).collect();
        f.write_str(&all.join(","))
    }
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn unescape(value: &str) -> Result<String, OptionError> {
    let bad = || OptionError::BadEscape(value.to_owned());
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| (b as char).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err(bad()),
        }
    }
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_every_character() {
        for path in ["/tmp/plain", "/tmp/a b,c=d%\"'ü\n/x"] {
            let long = path.len() > 10;
            let options = AgentOptions {
                rendezvous: Some(path.into()),
                exact: long,
                fixed: long,
                held: long,
                grace: long.then_some(90),
            };
            let text = options.to_string();
            assert!(!text.contains([' ', '"', '\'', '\n']), "{text}");
            assert_eq!(AgentOptions::parse(&text), Ok(options));
        }
        assert_eq!(AgentOptions::parse(""), Ok(AgentOptions::default()));
    }

    #[test]
    fn bad_options_are_named() {
        assert_eq!(AgentOptions::parse("spam=1"), Err(OptionError::Unknown("spam".into())));
        for bad in ["rendezvous=%", "rendezvous=%4", "rendezvous=%zz", "rendezvous=%ff"] {
            assert!(matches!(AgentOptions::parse(bad), Err(OptionError::BadEscape(_))), "{bad}");
        }
        for bad in ["grace", "grace=", "grace=0", "grace=-1", "grace=5s", "grace=99999999999"] {
            assert!(matches!(AgentOptions::parse(bad), Err(OptionError::BadGrace(_))), "{bad}");
        }
    }
}
