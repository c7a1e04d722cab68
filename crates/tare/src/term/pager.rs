//! A long text on a terminal, page by page, as git shows it.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a shell says of a command that is not there, or cannot be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// Shows a text page by page; `false` if there is nothing to do it with, and nothing was shown.
pub fn show(text: &[u8]) -> io::Result<bool> {
    let Some(command) = chosen(env::var_os("TARE_PAGER"), env::var_os("PAGER")) else {
        return Ok(false);
    };
    // It is the pager that Ctrl-C speaks to: were we gone, the shell and it would share the
    // terminal.
    let _ =
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
    let Ok(mut child) = start(command) else { return Ok(false) };
    let written = match child.stdin.take() {
        Some(mut pipe) => pipe.write_all(text),
        None => Ok(()),
    };
    let ended = child.wait()?;
    match written {
        _ if ended.code().is_some_and(|code| NOT_RUN.contains(&code)) => Ok(false),
        // Who leaves it before the end has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}

/// What to run.
#[derive(Debug, PartialEq)]
enum Pager {
    /// Ours, if it is installed and the terminal can do it.
    Less,
    /// What somebody chose, as a shell reads it.
    Chosen(OsString),
}

/// Nothing and `cat` mean that none is wanted.
fn chosen(ours: Option<OsString>, everybodys: Option<OsString>) -> Option<Pager> {
    match ours.or(everybodys) {
        None => Some(Pager::Less),
        Some(command) => {
            let text = command.to_string_lossy();
            (!["", "cat"].contains(&text.trim())).then(|| Pager::Chosen(command.clone()))
        }
    }
}

fn start(pager: Pager) -> io::Result<Child> {
    let mut command = match pager {
        Pager::Less if env::var_os("TERM").is_none_or(|name| name == "dumb") => {
            return Err(io::Error::other("the terminal moves no text"));
        }
        Pager::Less => Command::new("less"),
        Pager::Chosen(text) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(text);
            shell
        }
    };
    // Ends by itself if all fits, keeps colours, and leaves the text on the terminal.
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_first_and_cat_is_none() {
        let text = |text: &str| Some(OsString::from(text));
        assert_eq!(chosen(None, None), Some(Pager::Less));
        assert_eq!(chosen(None, text("more")), Some(Pager::Chosen("more".into())));
        assert_eq!(chosen(text("less -S"), text("more")), Some(Pager::Chosen("less -S".into())));
        for none in ["", " ", "cat"] {
            assert_eq!(chosen(text(none), text("more")), None, "{none:?}");
        }
    }
}
