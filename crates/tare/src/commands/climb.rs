//! `tare climb`: follows hot spots upwards, by hooks in a few methods at a time.
//!
//! It is a recording like others (`record`); here its flags become a plan, and a climb in the
//! background is started.

use super::record::{self, Job, check_output, unused};
use crate::cli::ClimbArgs;
use crate::source;
use crate::term::plain;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_session::command_socket::{self, Command as Told};
use tare_session::engines::climb;
use tare_session::{Plan, What};

/// A climb that has not come to the roots by then ends, unless told otherwise.
const LENGTH: Duration = Duration::from_secs(60);

pub fn run(args: ClimbArgs) -> ExitCode {
    let outcome = match args.background {
        true => background(&args).map(|()| ExitCode::SUCCESS),
        false => job(&args).and_then(|job| record::run_job(args.jvm.as_deref(), job)),
    };
    outcome.unwrap_or_else(|e| crate::fail(&e))
}

fn job(args: &ClimbArgs) -> Result<Job> {
    check(args)?;
    let what = What::Climb(climb::Plan {
        metric: args.metric.metric(),
        top: args.top.into(),
        min_share: args.min_share,
        overhead: args.overhead,
        again: args.again,
    });
    let duration = args.length.or((!args.again).then_some(LENGTH));
    Ok(Job {
        plan: Plan { what, duration, command: args.command.clone() },
        output: args.output.clone(),
        quiet: args.quiet,
        mute: false,
        by_thread: false,
        json: args.json,
        timeout: args.patience.timeout,
    })
}

fn check(args: &ClimbArgs) -> Result<()> {
    if let Some(path) = &args.output
        && path.extension().is_none_or(|ending| ending != "tare")
    {
        bail!(
            "-o {}: a climb goes into a .tare file; `tare export` makes other tools' files of it",
            path.display()
        );
    }
    check_output(args.output.as_deref())
}

/// Starts a climb that goes on when we have gone, and waits until it is under way.
fn background(args: &ClimbArgs) -> Result<()> {
    check(args)?;
    let who = args.jvm.as_deref().context("which JVM?")?;
    let jvm = tare_attach::find(who)?;
    if is_recorded(&jvm)? {
        bail!("JVM {} is being recorded already; `tare stop {}` ends that", jvm.pid, jvm.pid);
    }
    let output = match &args.output {
        Some(path) => std::path::absolute(path)?,
        None => {
            let stem = format!("{}-climb", jvm.pid);
            std::path::absolute(unused(&stem, "tare", Path::exists))?
        }
    };
    let mut child = start(args, &jvm, &output)?;
    let deadline = Instant::now() + args.patience.timeout + Duration::from_secs(20);
    while !is_recorded(&jvm)? {
        if let Some(status) = child.try_wait()? {
            let mut said = String::new();
            if let Some(mut errors) = child.stderr.take() {
                let _ = errors.read_to_string(&mut said);
            }
            let said = said.trim().trim_start_matches("tare:").trim();
            bail!("the climb did not begin ({status}): {}", plain(said));
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            bail!("the climb did not begin in time; try without --background to see why");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if !args.quiet {
        let pid = jvm.pid;
        outln!("climbing in JVM {pid} ({}), process {}", plain(jvm.name()), child.id());
        outln!("  tare report {pid}   what was found so far");
        outln!("  tare stop {pid}     end it; the recording is in {}", output.display());
    }
    Ok(())
}

fn start(args: &ClimbArgs, jvm: &Jvm, output: &PathBuf) -> Result<Child> {
    let us = std::env::current_exe().context("where is tare itself?")?;
    let mut command = Command::new(us);
    command.arg("climb").arg(jvm.pid.to_string()).args(["--again", "--quiet"]);
    command.args(["--metric", args.metric.metric().name()]);
    command.args(["--top", &args.top.to_string()]);
    command.args(["--min-share", &args.min_share.to_string()]);
    command.args(["--overhead", &args.overhead.to_string()]);
    if let Some(length) = args.length {
        command.args(["--for", &format!("{}ms", length.as_millis())]);
    }
    command.args(["--timeout", &format!("{}ms", args.patience.timeout.as_millis())]);
    command.arg("-o").arg(output);
    // A Ctrl-C in this terminal is not meant for it.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().context("tare cannot start itself")
}

/// Whether a recording answers for a JVM.
fn is_recorded(jvm: &Jvm) -> Result<bool> {
    let (memory, _) = source::shared_memory()?;
    match command_socket::ask_if_any(jvm, &Told::Dump(memory)) {
        Ok(answer) => Ok(answer.is_some()),
        // It is there, and has nothing to dump yet.
        Err(_) => Ok(true),
    }
}
