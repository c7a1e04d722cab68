//! `tare --host PLACE …`: the near end. JVMs are there, files are here: a verb about a JVM runs on
//! the far side, and its output, its file and its end come back; a verb about a file runs here as
//! ever.
//!
//! `way` decides which verb goes how, `boarding` brings a `tare` of this build to run there, `link`
//! is the connection, `landing` what becomes of a file, `asking` and `recording` are the two kinds
//! of conversation. The far end is `commands/relay`; the wire, `tare-relay`.

mod asking;
mod boarding;
mod hints;
mod landing;
mod link;
mod recording;
mod shown;
mod silence;
mod way;

pub use recording::{Growing, Turn, begin as begin_growing};
pub use silence::Silence;

use crate::cli::{Cli, Command, HostArgs};
use anyhow::{Result, bail};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::env;
use std::process::ExitCode;
use std::time::Duration;
use tare_relay::{Run, Size};
use way::Way;

/// Between two beats of either end.
pub const BEAT: Duration = Duration::from_secs(5);
/// An end that was not heard for so long is not there any more.
pub const SILENCE: Duration = Duration::from_secs(25);

/// What both ends must have in common: the version, and a hash over the sources of the tool and of
/// the agent (`build.rs`).
pub fn id() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), env!("TARE_TOOL"))
}

/// Whether the command is one for the place that is named, and what came of it then.
pub fn run(cli: &Cli) -> Option<Result<ExitCode>> {
    let at = &cli.at;
    at.host.as_ref()?;
    let outcome = match way::of(cli.command.as_ref()) {
        Way::Here => return None,
        Way::Refused(why) => Err(anyhow::anyhow!(why)),
        Way::Asked { output, paged } => {
            words().and_then(|words| asking::run(at, words, output, paged))
        }
        Way::Recorded(wanted) => words().and_then(|words| recording::run(at, words, wanted)),
        Way::Viewed => match &cli.command {
            Some(Command::View(args)) => {
                crate::commands::view::run_there(args, at).map(|()| ExitCode::SUCCESS)
            }
            _ => return None,
        },
    };
    Some(outcome)
}

/// Says where the flag belongs if it stands behind a verb.
pub fn misplaced(error: clap::Error) -> clap::Error {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if flag == "--host" => Cli::command().error(
            ErrorKind::UnknownArgument,
            "--host stands before the verb: tare --host PLACE VERB …",
        ),
        _ => error,
    }
}

/// The verb and what follows it, as they were typed.
fn words() -> Result<Vec<String>> {
    let mut words = Vec::new();
    for word in env::args_os().skip(1) {
        match word.into_string() {
            Ok(word) => words.push(word),
            Err(word) => bail!(
                "{} is not UTF-8 text, which a command line for another machine must be",
                word.display()
            ),
        }
    }
    Ok(verb(&words).to_vec())
}

/// What follows the flags that say where the JVM is.
fn verb(words: &[String]) -> &[String] {
    let mut rest = words;
    while let [first, after @ ..] = rest {
        let Some(has_value) = HostArgs::is_flag(first) else { break };
        rest = if has_value { after.get(1..).unwrap_or_default() } else { after };
    }
    rest
}

/// A command line for the far end.
fn asked(args: Vec<String>, at: &HostArgs) -> Run {
    let size = |size: Option<(u16, u16)>| size.map(|(columns, lines)| Size { columns, lines });
    Run {
        args,
        out: size(crate::term::size_of_output()),
        err: size(crate::term::size_of_errors()),
        timeout: env::var("TARE_TIMEOUT").ok(),
        grace: env::var("TARE_GRACE").ok(),
        rate: at.rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_puts_it_behind_the_verb_is_told() {
        use clap::Parser;
        let Err(error) = Cli::try_parse_from(["tare", "ps", "--host", "box"]) else { panic!() };
        assert!(misplaced(error).to_string().contains("before the verb"));
        let Err(error) = Cli::try_parse_from(["tare", "ps", "--hast"]) else { panic!() };
        assert!(misplaced(error).to_string().contains("--hast"));
    }

    #[test]
    fn the_verb_is_found_behind_the_flags() {
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(verb(&words).join(" "), expected, "{line}");
        };
        check("--host box ps --json", "ps --json");
        check("--host=box --keep-there record 4711 -n 3", "record 4711 -n 3");
        check("-n prod --context west --host pod/x threads 1", "threads 1");
        check("-nprod --host pod/x/app heap 1 -n 5", "heap 1 -n 5");
        check("--host box", "");
        check("ps", "ps");
    }
}
