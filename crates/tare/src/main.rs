//! `tare`: flags in, calls out. Everything that does work lives in a command's file or a library.

#[macro_use]
mod term;

mod carried;
mod cli;
mod commands;
mod doctor;
#[cfg(test)]
mod documented;
mod figures;
mod files;
mod host;
mod interrupt;
mod other_load;
mod relayed;
mod source;
mod stdout_file;
mod target_costs;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;
use tare_session::command_socket::Command as Told;
use tare_session::rescuer;

fn main() -> ExitCode {
    // A copy of ourselves that enters a container's namespaces must do nothing else before.
    let child = tare_attach::run_if_child();
    // So must one that only waits for the end of a recording.
    if let Some(served) =
        child.or_else(|| Some(rescuer::run_if_rescuer()?.map_err(|e| format!("{e:#}"))))
    {
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                errln!("tare: {error}");
                ExitCode::from(2)
            }
        };
    }
    if let Some(agent) = carried::AGENT {
        tare_session::library::carry(agent);
    }
    if let Err(e) = relayed::begin() {
        return fail(&e);
    }
    let mut cli = Cli::try_parse().unwrap_or_else(|e| host::misplaced(e).exit());
    let code = match stdout_file::begin(&mut cli) {
        Ok(None) => run(cli),
        Ok(Some(redirected)) => redirected.finish(run(cli)),
        Err(e) => fail(&e),
    };
    relayed::finish();
    code
}

/// Does what is asked for.
fn run(cli: Cli) -> ExitCode {
    if let Some(outcome) = host::run(&cli) {
        return outcome.unwrap_or_else(|e| fail(&e));
    }
    let outcome = match cli.command {
        None => commands::list::overview(),
        Some(Command::Ps { json }) => commands::list::ps(json),
        Some(Command::Status(args)) => commands::status::run(&args),
        Some(Command::Detach { target }) => commands::detach::run(&target),
        Some(Command::Doctor { jvm, no_attach, json, patience }) => {
            doctor::run(jvm.as_deref(), !no_attach, json, patience.timeout)
        }
        Some(Command::Threads(args)) => match commands::threads::run(&args) {
            Ok(code) => return code,
            Err(e) => Err(e),
        },
        Some(Command::Top(args)) => commands::top::run(&args),
        Some(Command::Explain(args)) => commands::explain::run(&args),
        Some(Command::Record(args)) => return commands::record::run(*args),
        Some(Command::Climb(args)) => return commands::climb::run(args),
        Some(Command::Dump { jvm, output }) => commands::under_way::dump(&jvm, output.as_deref()),
        Some(Command::Stop { jvm }) => commands::under_way::tell(&jvm, &Told::Stop),
        Some(Command::Pause { jvm }) => commands::under_way::tell(&jvm, &Told::Pause),
        Some(Command::Resume { jvm }) => commands::under_way::tell(&jvm, &Told::Resume),
        Some(Command::Interval { jvm, interval }) => {
            commands::under_way::tell(&jvm, &Told::Interval(interval))
        }
        Some(Command::Threshold { jvm, threshold }) => {
            let nanos = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
            commands::under_way::tell(&jvm, &Told::Threshold(nanos))
        }
        Some(Command::Heap(args)) => commands::heap::run(&args),
        Some(Command::Instrument(args)) => commands::instrument::run(&args),
        Some(Command::CalibrateTarget(args)) => commands::calibrate::run(&args),
        Some(Command::Class(command)) => commands::class::run(&command),
        Some(Command::Report(args)) => commands::report::run(&args),
        Some(Command::View(args)) => commands::view::run(&args),
        Some(Command::Diff(args)) => match commands::diff::run(&args) {
            Ok(code) => return code,
            Err(e) => Err(e),
        },
        Some(Command::Check(args)) => match commands::check::run(&args) {
            Ok(code) => return code,
            Err(e) => Err(e),
        },
        Some(Command::Export(args)) => commands::export::run(&args),
        Some(Command::Relay(args)) => commands::relay::run(&args),
        Some(Command::Run { quiet, command }) => return commands::run::run(&command, quiet),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

/// The one way in which errors reach the user: the cause, and what led to it.
fn fail(error: &anyhow::Error) -> ExitCode {
    // A reader that closed the pipe (`tare ps | head -1`) has all it wanted.
    let closed = term::is_closed(error);
    if !closed {
        errln!("{}tare:{:#} {error:#}", term::BAD, term::BAD);
    }
    ExitCode::from(u8::from(!closed))
}
