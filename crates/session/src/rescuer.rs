//! The rescuer of an exact recording: a process that holds the memory with the trees, too, and does
//! nothing. If the tool dies without a word (a bug, `kill -9`, the system short of memory), it
//! takes a last look at the trees and completes the file, whether the JVM lives or not.
//!
//! The tool's own looks may be far apart when trees are large; with a rescuer that costs no call.

use crate::client;
use crate::command_socket;
use crate::error::{Context, Error, Result, refuse};
use crate::exact::{Arena, Exact};
use crate::origins::Origins;
use crate::recorder::Source;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tare_attach::Jvm;
use tare_profile::facts::keys;
use tare_profile::{LossKind, Profile, RunInfo};
use tare_protocol::{Response, Status};
use tare_recording::{Recording, Warning, Writer};

/// How long the tool may take to say what is to be rescued.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the agent may take to notice that it is alone, and to restore the program's code.
const RESTORING: Duration = Duration::from_secs(60);
/// What the tool says when it needs no rescuer any more.
const FAREWELL: u8 = b'.';

/// The word that makes a copy of this program a rescuer.
const HIDDEN: &str = "rescue-recording";

/// Whether this program's `main` gives [`run_if_rescuer`] its chance; otherwise a second start of
/// it would do who knows what.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// A rescuer on duty; it goes when this is dropped.
pub struct Rescuer {
    stream: UnixStream,
    child: Child,
}

impl Rescuer {
    /// Sets one over a recording that has begun. Without it the recording goes on as well.
    pub fn set(
        jvm: &Jvm,
        recording: &Path,
        memory: &[File; 2],
        status: &Status,
    ) -> Result<Rescuer> {
        if !PREPARED.load(Ordering::Relaxed) {
            refuse!("this program does not call run_if_rescuer");
        }
        let (mut stream, theirs) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(HIDDEN).arg(jvm.pid.to_string()).arg(recording);
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What a terminal sends to the tool is none of the rescuer's business.
        let child = command.process_group(0).spawn()?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut extra = SendAncillaryBuffer::new(&mut space);
        let files = [memory[0].as_fd(), memory[1].as_fd()];
        let message = Response::Status(Box::new(status.clone())).to_message().encode();
        let rescuer = if extra.push(SendAncillaryMessage::ScmRights(&files)) {
            let sent =
                sendmsg(&stream, &[IoSlice::new(&message)], &mut extra, SendFlags::NOSIGNAL)?;
            stream.write_all(&message[sent..])?;
            Rescuer { stream, child }
        } else {
            refuse!("no room for two descriptors");
        };
        Ok(rescuer)
    }
}

impl Drop for Rescuer {
    fn drop(&mut self) {
        // A tool that panics is one that dies.
        if thread::panicking() {
            return;
        }
        let _ = self.stream.write_all(&[FAREWELL]);
        let _ = self.child.wait();
    }
}

/// To be called first thing in `main`: when this process is a rescuer, does its work and tells what
/// came of it; the process is to end then.
#[must_use]
pub fn run_if_rescuer() -> Option<Result<()>> {
    PREPARED.store(true, Ordering::Relaxed);
    let words: Vec<OsString> = std::env::args_os().skip(1).take(4).collect();
    let [first, pid, recording] = words.as_slice() else { return None };
    let pid = pid.to_str().filter(|_| first == HIDDEN)?.parse().ok()?;
    Some(run(pid, Path::new(recording)))
}

/// What the rescuer does, in a process of its own.
fn run(pid: u32, recording: &Path) -> Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let on_duty_since = SystemTime::now();
    let jvm = tare_attach::inspect(pid)?;
    let origins = Origins::of(&jvm);
    let stream = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (status, memory) = client::hear_status(&stream, PATIENCE)?;
    stream.set_read_timeout(None)?;
    let mut last = [0];
    if matches!((&stream).read(&mut last), Ok(1)) {
        return Ok(());
    }
    command_socket::sweep(pid);
    let arena = Arena::new(memory);
    wait_for_quiet(&arena)?;
    let exact = Exact::new(arena, status.exact().cloned().unwrap_or_default(), origins);
    rescue(exact, recording, on_duty_since)
}

/// Waits until the agent has ended the session. It notes the time while it is on.
fn wait_for_quiet(arena: &Arena) -> Result<()> {
    let limit = Instant::now() + RESTORING;
    let mut before = None;
    while Instant::now() < limit {
        let now = Some(arena.noted()?);
        if now == before {
            break;
        }
        before = now;
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// Writes the whole recording anew, from what is in memory, in place of the one without an end.
fn rescue(mut exact: Exact, recording: &Path, on_duty_since: SystemTime) -> Result<()> {
    // A link stays one.
    let recording = fs::canonicalize(recording)?;
    let mut begun = Recording::open(&recording)?;
    let ends = !begun.warnings().contains(&Warning::NoEnd);
    if ends || !fs::metadata(&recording)?.is_file() {
        return Ok(());
    }
    let mut profile = Profile::new();
    let run = begun.summary()?.run;
    if began_after(&run, on_duty_since) {
        return Ok(()); // Somebody records to the same file again: what was there is no longer wanted.
    }
    let duration = run.started.and_then(since).unwrap_or(run.duration);
    exact.look_once(&mut profile, duration)?;
    let mut losses: Vec<_> = run.losses.clone();
    // What is counted anew.
    losses.retain(|loss| matches!(loss.kind, LossKind::Refused | LossKind::Skipped));
    let mut now = RunInfo { duration, losses: Vec::new(), ..run };
    exact.status.refused.clear();
    exact.account(&mut now);
    now.losses.splice(0..0, losses);
    let reason = "the tool was killed; what its rescuer found in memory is whole, but not by time";
    now.lose(LossKind::Dropped, "the timeline", 1, reason);
    if now.facts.has(keys::LIVE_CLASSES) {
        let reason = "the tool was killed, and its rescuer does not know which objects live";
        now.lose(LossKind::Dropped, "what lives", 1, reason);
    }
    profile.run = now;
    let mut part = recording.clone().into_os_string();
    part.push(".part");
    let written = Writer::create(part.as_ref())
        .and_then(|writer| writer.finish(&profile))
        .map_err(Error::from)
        .and_then(|_| fs::rename(&part, &recording).map_err(Into::into));
    if written.is_err() {
        // A disk that is full has no room for half of a file either.
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot complete {}", recording.display()))
}

/// Whether a recording is a later one than that of a rescuer who was on duty by then.
fn began_after(run: &RunInfo, on_duty: SystemTime) -> bool {
    let on_duty = on_duty.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    // One that is just being begun does not say yet.
    run.started.is_none_or(|started| i128::from(started) > on_duty.cast_signed())
}

/// Nanoseconds since a moment, given in nanoseconds since 1970.
fn since(started: i64) -> Option<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    u64::try_from(i128::try_from(now).ok()? - i128::from(started)).ok()
}
