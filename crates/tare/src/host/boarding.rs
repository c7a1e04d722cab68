//! Brings a `tare` of this build to run on the far side: one that is there, or a copy of this
//! program, sent through the same connection that is used afterwards.

use crate::carried;
use crate::cli::HostArgs;
use crate::host::id;
use crate::term::{Doing, plain};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::VecDeque;
use std::env::consts::ARCH;
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};
use tare_relay::{Answer, Arrival, Place};

/// Of a line of a log-in shell, and of all its lines.
const MOST_OF_LINE: u64 = 8 << 10;
const MOST_NOISE: usize = 256 << 10;
/// How long a program that has been told to end may take for its last words.
const PARTING: Duration = Duration::from_secs(5);

/// The program of the user's that leads there, and its pipes.
pub struct Way {
    pub program: String,
    pub place: Place,
    child: Child,
    /// What it said on standard error, the last lines.
    said: Arc<Mutex<VecDeque<String>>>,
    errors: Option<JoinHandle<()>>,
}

/// A far end that runs, and what frames go through.
pub struct Boarded {
    pub way: Way,
    pub input: ChildStdin,
    pub output: io::BufReader<ChildStdout>,
}

/// Starts the program, and has `tare` run at its other end.
pub fn board(at: &HostArgs, quiet: bool) -> Result<Boarded> {
    let place = at.host.clone().context("no place is named")?;
    let doing = Doing::say(&format!("connecting to {place}"), quiet);
    let (way, mut input, output) = start(at, place)?;
    let mut output = io::BufReader::new(output);
    let outcome = arrive(at, &mut input, &mut output, &way, quiet);
    drop(doing);
    match outcome {
        Ok(()) => Ok(Boarded { way, input, output }),
        Err(Stopped::Because(why)) => {
            drop(input);
            way.end();
            Err(why)
        }
        Err(Stopped::Ended(noise)) => {
            drop(input);
            Err(way.why_not(&noise))
        }
    }
}

fn start(at: &HostArgs, place: Place) -> Result<(Way, ChildStdin, ChildStdout)> {
    let script = Arrival { id: &id(), keep: at.keep_there }.script();
    let words = place.command(&at.kubernetes(), &script);
    let (program, words) = words.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    // A Ctrl-C is for us to pass on, and not for what leads there.
    command.args(words).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| {
        format!(
            "{program}, which leads to {place}, cannot be started; is it installed and on PATH?"
        )
    })?;
    let input = child.stdin.take().context("a pipe")?;
    let output = child.stdout.take().context("a pipe")?;
    let said = Arc::new(Mutex::new(VecDeque::new()));
    let errors = child.stderr.take().map(|errors| {
        let said = Arc::clone(&said);
        spawn(move || hear(errors, &said))
    });
    let program = program.clone();
    Ok((Way { program, place, child, said, errors }, input, output))
}

/// What the program and the far shell say goes to the user, in one harmless line each.
fn hear(errors: impl Read, said: &Mutex<VecDeque<String>>) {
    let mut errors = io::BufReader::new(errors);
    while let Ok(Some(line)) = line(&mut errors) {
        let line = plain(line.trim_end()).into_owned();
        if line.is_empty() {
            continue;
        }
        errln!("{line}");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_back(line);
        if said.len() > 5 {
            said.pop_front();
        }
    }
}

/// A line of whatever length; what is longer comes in parts.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    from.take(MOST_OF_LINE).read_until(b'\n', &mut bytes)?;
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Why nothing runs there.
enum Stopped {
    Because(anyhow::Error),
    /// The connection has ended, after these words of somebody's.
    Ended(String),
}

impl<E: Into<anyhow::Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Because(error.into())
    }
}

fn arrive(
    at: &HostArgs,
    input: &mut ChildStdin,
    output: &mut io::BufReader<ChildStdout>,
    way: &Way,
    quiet: bool,
) -> Result<(), Stopped> {
    let mut is_sent = false;
    loop {
        match answer(output)? {
            Answer::Runs => return Ok(()),
            Answer::Send { machine, gzip } if !is_sent => {
                is_sent = true;
                let bytes = program(&machine, &way.place, gzip)?;
                let size = bytes.len() as f64 / 1e6;
                let keep = if at.keep_there { ", to be kept there" } else { "" };
                let word = format!("sending tare to {} ({size:.1} MB{keep})", way.place);
                let doing = Doing::say(&word, quiet);
                let sent = writeln!(input, "{}", bytes.len())
                    .and_then(|()| input.write_all(&bytes))
                    .and_then(|()| input.flush());
                drop(doing);
                // The other end says why.
                if sent.is_err() {
                    continue;
                }
            }
            Answer::Send { .. } => {
                return Err(anyhow::anyhow!("{} asks for tare twice", way.place).into());
            }
            Answer::Failed(why) => {
                // What a linker says may have several lines, which follow.
                let more = way.last_words();
                let why = plain(format!("{why} {more}").trim()).into_owned();
                let place = &way.place;
                return Err(anyhow::anyhow!(
                    "tare cannot run on {place}: {why}. A released tare is one static file, which \
                     runs wherever its processor does; with one on the PATH there nothing is sent"
                )
                .into());
            }
        }
    }
}

/// The next line of the script's, past what a log-in shell prints.
fn answer(output: &mut impl BufRead) -> Result<Answer, Stopped> {
    let (mut last, mut length) = (String::new(), 0);
    while let Some(line) = line(output)? {
        if let Some(answer) = Answer::of_line(&line) {
            return Ok(answer);
        }
        length += line.len();
        if length > MOST_NOISE {
            break;
        }
        if !line.trim().is_empty() {
            last = plain(line.trim()).into_owned();
        }
    }
    Err(Stopped::Ended(last))
}

/// This program, for a machine like this one.
fn program(machine: &str, place: &Place, gzip: bool) -> Result<Vec<u8>> {
    let ours = format!("Linux {ARCH}");
    if machine != ours {
        bail!(
            "{place} is {}, and this tare is for {ours}: put tare {} for it on the PATH there \
             (tare-{}-{})",
            plain(machine),
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_PKG_VERSION"),
            machine.to_lowercase().split(' ').rev().collect::<Vec<_>>().join("-"),
        );
    }
    if carried::AGENT.is_none() {
        bail!(
            "there is no tare of this build on {place}, and this one cannot be sent: it does not \
             carry its agent (a debug build). Build it with --release, or install it there"
        );
    }
    let bytes = fs::read("/proc/self/exe").context("this program cannot read itself")?;
    if !gzip {
        return Ok(bytes);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&bytes)?;
    Ok(packed.finish()?)
}

impl Way {
    /// Waits for the end of a program whose pipes are closed.
    pub fn end(mut self) -> Option<ExitStatus> {
        self.parted()
    }

    fn parted(&mut self) -> Option<ExitStatus> {
        let limit = Instant::now() + PARTING;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < limit => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break None,
            }
        };
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Another process may have its standard error; ours need not wait for that one.
        if let Some(errors) = self.errors.take() {
            let limit = Instant::now() + Duration::from_millis(200);
            while !errors.is_finished() && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        status
    }

    /// What it said last on standard error.
    fn last_words(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.back().cloned().unwrap_or_default()
    }

    /// The connection has ended before its time; why, as far as anybody can tell.
    pub fn why_not(mut self, noise: &str) -> anyhow::Error {
        let status = self.parted();
        let Way { program, place, .. } = &self;
        let how = match status {
            Some(status) => format!("{program} ended with {}", ended(status)),
            None => format!("{program} does not answer"),
        };
        let noise = match (noise, self.last_words()) {
            ("", words) => words,
            (noise, _) => noise.to_owned(),
        };
        let said = if noise.is_empty() { String::new() } else { format!(" ({noise})") };
        let shell = match (place, status.and_then(|status| status.code())) {
            (Place::Ssh(_), _) => "",
            (_, Some(126 | 127)) => " A container without a shell cannot be entered in this way.",
            _ => "",
        };
        anyhow::anyhow!(
            "{place} cannot be entered: {how}{said}.{shell} See whether `{}` works",
            place.by_hand()
        )
    }

    /// It does not answer any more.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `status 255`, or the signal.
pub fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("status {code}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_prints_before_is_passed_over_within_bounds() {
        let found = |text: &str| answer(&mut io::Cursor::new(text.as_bytes().to_vec()));
        let Ok(Answer::Runs) = found("Welcome\nto box\n\ntare-relay runs\n") else { panic!() };
        let Err(Stopped::Ended(last)) = found("This account is closed.\n") else { panic!() };
        assert_eq!(last, "This account is closed.");
        let Err(Stopped::Ended(_)) = found(&"x".repeat(4 * MOST_NOISE)) else { panic!() };
        let Err(Stopped::Ended(last)) = found("\u{1b}[2Jx") else { panic!() };
        assert!(!last.contains('\u{1b}'), "{last:?}");
    }

    #[test]
    fn another_machine_is_refused_by_name() {
        let place = "box".parse().unwrap();
        let error = program("Linux riscv64", &place, true).unwrap_err().to_string();
        assert!(error.contains("Linux riscv64") && error.contains("riscv64-linux"), "{error}");
    }
}
