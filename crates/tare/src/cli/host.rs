//! Flags that say where the JVM is. They stand before the verb, so that verbs keep their own.

use super::values::rate;
use clap::Args;
use std::path::PathBuf;
use tare_relay::{Kubernetes, Place};

const ELSEWHERE: &str = "A JVM elsewhere";

#[derive(Args, Clone)]
pub struct HostArgs {
    /// Where the JVM is: user@box (through your ssh), docker:NAME, pod/NAME or pod/NAME/CONTAINER.
    /// Stands before the verb. JVMs are there, files are here
    #[arg(
        long,
        env = "TARE_HOST",
        hide_env_values = true,
        value_name = "PLACE",
        value_parser = place,
        help_heading = ELSEWHERE
    )]
    pub host: Option<Place>,
    /// With --host pod/…: the namespace [default: kubectl's own]
    #[arg(long, short, value_name = "NAME", value_parser = word, requires = "host", help_heading = ELSEWHERE)]
    pub namespace: Option<String>,
    /// With --host pod/…: the context of kubectl's configuration [default: the current one]
    #[arg(long, value_name = "NAME", value_parser = word, requires = "host", help_heading = ELSEWHERE)]
    pub context: Option<String>,
    /// With --host: if tare has to be sent there, leave it for the next time, in
    /// $XDG_CACHE_HOME/tare or ~/.cache/tare
    #[arg(long, requires = "host", help_heading = ELSEWHERE)]
    pub keep_there: bool,
    /// With --host: the most bytes a second that come back: 200K, 1M [default: what the link
    /// carries]
    #[arg(long, value_name = "SIZE", value_parser = rate, requires = "host", help_heading = ELSEWHERE)]
    pub rate: Option<u64>,
}

impl HostArgs {
    pub fn kubernetes(&self) -> Kubernetes {
        Kubernetes { namespace: self.namespace.clone(), context: self.context.clone() }
    }

    /// Whether this word is one of these flags, and whether its value is the next word.
    pub fn is_flag(word: &str) -> Option<bool> {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        match name {
            "--host" | "--namespace" | "--context" | "--rate" | "-n" => Some(value.is_none()),
            "--keep-there" => Some(false),
            _ => name.starts_with("-n").then_some(false),
        }
    }
}

/// What the far end of a connection is started with.
#[derive(Args)]
pub struct RelayArgs {
    /// Print the build that the other end must be of
    #[arg(long)]
    pub id: bool,
    /// Remove this directory, which holds nothing but this program
    #[arg(long, value_name = "DIRECTORY")]
    pub remove: Option<PathBuf>,
}

fn place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|error: tare_relay::PlaceError| error.to_string())
}

/// A name that kubectl takes for no option.
fn word(text: &str) -> Result<String, String> {
    match text.is_empty() || text.starts_with('-') {
        true => Err("a name is missing".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_with_their_values() {
        for word in ["--host", "-n", "--namespace", "--context", "--rate"] {
            assert_eq!(HostArgs::is_flag(word), Some(true), "{word}");
        }
        for word in ["--host=box", "-n=x", "-nprod", "--keep-there", "--rate=1M"] {
            assert_eq!(HostArgs::is_flag(word), Some(false), "{word}");
        }
        for word in ["ps", "--hosts", "-h", "4711", "--"] {
            assert_eq!(HostArgs::is_flag(word), None, "{word}");
        }
    }
}
