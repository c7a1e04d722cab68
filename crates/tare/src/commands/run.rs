//! `tare run -- COMMAND`: starts a program with the agent inside, and tells its JVMs apart.

use crate::figures::say;
use crate::term::{self, DIM};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;
use tare_session::launch::{self, Guest, Settings};

const SETTINGS: Settings =
    Settings { exact: false, fixed: false, held: false, flags: &[], word: None };

pub fn run(command: &[OsString], quiet: bool) -> ExitCode {
    let attend = move |guest: Guest| {
        let began = Instant::now();
        if !quiet {
            errln!("{DIM}tare: {guest} is up with the agent inside{DIM:#}");
        }
        let (pid, what) = (guest.pid, guest.to_string());
        let mut running = guest.let_go();
        running.wait();
        if !quiet {
            let ended = tare_attach::inspect(pid).is_err();
            let how = match ended {
                true => "ended",
                false if running.is_left() => "goes on",
                false => "goes on without the agent,",
            };
            let after = term::time(began.elapsed());
            errln!("{DIM}tare: {what} {how} after {after}{DIM:#}");
        }
    };
    match launch::launch(command, &SETTINGS, &say, attend) {
        Ok(launched) => {
            launched.nobody_came().filter(|_| !quiet).into_iter().for_each(say);
            launch::exit_code(launched.status)
        }
        Err(e) => crate::fail(&e.into()),
    }
}
