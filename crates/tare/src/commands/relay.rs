//! `tare relay`: the far end. It speaks on standard input and output with the `tare` of the user,
//! runs the command line that comes from there as a process of its own, and passes on what that
//! prints, its file and its end. Nothing listens anywhere.
//!
//! Whatever is on here belongs to the connection: when standard input ends, or nothing is heard for
//! 25 seconds, the command is told to end as by Ctrl-C, and so are its agents. Nothing here ever
//! waits for the wire but the thread that writes to it (`outbox`).

mod outbox;
mod window;

use crate::cli::RelayArgs;
use crate::host::{SILENCE, Silence, id};
use crate::{interrupt, relayed};
use anyhow::{Context, Result, bail};
use outbox::{Outbox, Queue};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tare_relay::{CHUNK, Decoder, FromFar, FromNear, PROTOCOL, Run};

/// How long a command may take to put things back once nobody is there any more.
const ENDING: Duration = Duration::from_secs(20);
/// How long an agent stays idle in a JVM if even the command was killed.
const GRACE: &str = "20s";
/// How soon the end of the command is seen.
const TURN: Duration = Duration::from_millis(20);

pub fn run(args: &RelayArgs) -> Result<()> {
    if args.id {
        outln!("{}", id());
        return Ok(());
    }
    if let Some(directory) = &args.remove {
        remove(directory);
    }
    let stop = interrupt::flag()?;
    let outbox = Arc::new(Outbox::default());
    let arch = std::env::consts::ARCH.to_owned();
    outbox.urgent(&FromFar::Hello { protocol: PROTOCOL, id: id(), arch });
    outbox.send_to(crate::term::wire()?);
    let heard = hear(&outbox);
    let outcome = serve(&heard, &outbox, &|| interrupt::is_set(&stop));
    if let Err(error) = &outcome {
        outbox.last(&FromFar::Failed(format!("{error:#}")));
    }
    outbox.finish(SILENCE);
    Ok(())
}

/// This program runs on without its file.
fn remove(directory: &Path) {
    let is_ours = directory
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"tare-relay-"));
    if is_ours {
        let _ = fs::remove_file(directory.join("tare"));
        let _ = fs::remove_file(directory.join("try"));
        let _ = fs::remove_dir(directory);
        // The cache, if there is nothing in it.
        let cache = directory.parent().filter(|parent| parent.ends_with("tare"));
        let _ = cache.map(fs::remove_dir);
    }
}

/// What comes from the near end.
enum Heard {
    Said(FromNear),
    /// Nothing more comes; why, if it is not the plain end.
    End(Option<String>),
}

fn hear(outbox: &Arc<Outbox>) -> Receiver<Heard> {
    let (sender, receiver) = channel();
    let outbox = Arc::clone(outbox);
    spawn(move || {
        let why = read(&sender, &outbox).err().map(|error| format!("{error:#}"));
        let _ = sender.send(Heard::End(why));
    });
    receiver
}

fn read(sender: &Sender<Heard>, outbox: &Outbox) -> Result<()> {
    let (mut input, mut decoder) = (io::stdin().lock(), Decoder::default());
    let mut bytes = vec![0; CHUNK];
    loop {
        let length = input.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        decoder.push(&bytes[..length]);
        while let Some(frame) = decoder.next_frame()? {
            let said = FromNear::from_frame(frame)?;
            if let FromNear::Taken(bytes) = said {
                outbox.taken(bytes);
            }
            // Nobody listens any more while the last of it is sent.
            let _ = sender.send(Heard::Said(said));
        }
    }
}

/// From the first word to the end of the command.
fn serve(
    heard: &Receiver<Heard>,
    outbox: &Arc<Outbox>,
    wants_end: &dyn Fn() -> bool,
) -> Result<()> {
    let Some(run) = wanted(heard)? else { return Ok(()) };
    outbox.limit(run.rate);
    let mut job = Job::start(&run, outbox)?;
    let mut silence = Silence::default();
    loop {
        match heard.recv_timeout(TURN) {
            Ok(Heard::Said(said)) => {
                silence.ends();
                if said == FromNear::Interrupt {
                    job.signal(Signal::INT);
                }
            }
            Ok(Heard::End(_)) | Err(RecvTimeoutError::Disconnected) => return job.abandon(outbox),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if silence.is_over() || wants_end() || outbox.is_closed() {
            return job.abandon(outbox);
        }
        // All that it said comes before its end, however long that takes.
        if let Some(status) = job.ended()? {
            outbox.last(&FromFar::Exit(status));
            return Ok(());
        }
    }
}

/// The command line, after the greeting. Nothing if nobody wants one.
fn wanted(heard: &Receiver<Heard>) -> Result<Option<Run>> {
    let mut is_greeted = false;
    let limit = Instant::now() + SILENCE;
    loop {
        match heard.recv_timeout(limit.saturating_duration_since(Instant::now())) {
            Ok(Heard::Said(FromNear::Hello { protocol, id: theirs })) => {
                if (protocol, theirs.as_str()) != (PROTOCOL, id().as_str()) {
                    bail!("this is tare {}, and the other end is {theirs}", id());
                }
                is_greeted = true;
            }
            Ok(Heard::Said(FromNear::Run(run))) if is_greeted => return Ok(Some(run)),
            Ok(Heard::Said(FromNear::Run(_))) => bail!("a command came before a greeting"),
            Ok(Heard::Said(FromNear::Interrupt)) => return Ok(None),
            Ok(Heard::Said(FromNear::Beat | FromNear::Taken(_))) => {}
            Ok(Heard::End(Some(why))) => bail!(why),
            Ok(Heard::End(None)) | Err(_) => return Ok(None),
        }
    }
}

/// The command under way.
struct Job {
    child: Child,
    pumps: Vec<JoinHandle<()>>,
}

impl Job {
    fn start(run: &Run, outbox: &Arc<Outbox>) -> Result<Job> {
        let (back, theirs) = UnixStream::pair()?;
        // What waits in the kernel is nobody's to sum up.
        set_socket_send_buffer_size(&theirs, CHUNK)?;
        let size = |name: &str, size: Option<_>| size.map(|size| format!(" {name}={size}"));
        let [out, err] =
            [size("out", run.out), size("err", run.err)].map(Option::unwrap_or_default);
        let said = format!("parent={}{out}{err}", std::process::id());
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tare").args(&run.args);
        command.env(relayed::VARIABLE, said).env_remove("TARE_HOST");
        if let Some(timeout) = &run.timeout {
            command.env("TARE_TIMEOUT", timeout);
        }
        let grace = run.grace.clone().or_else(|| std::env::var("TARE_GRACE").ok());
        command.env("TARE_GRACE", grace.as_deref().unwrap_or(GRACE));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("tare cannot start itself")?;
        // It has the other end for itself now.
        drop(command);
        let mut pumps = Vec::new();
        if let Some(out) = child.stdout.take() {
            pumps.push(pump(out, outbox, FromFar::Out));
        }
        if let Some(err) = child.stderr.take() {
            pumps.push(pump(err, outbox, FromFar::Err));
        }
        let outbox = Arc::clone(outbox);
        pumps.push(spawn(move || pass_on(back, &outbox)));
        Ok(Job { child, pumps })
    }

    fn signal(&mut self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The number of one that has ended may be another's.
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Its status, as a shell tells it, when it has ended and all that it said is taken.
    fn ended(&mut self) -> Result<Option<u8>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        if !self.pumps.iter().all(JoinHandle::is_finished) {
            return Ok(None);
        }
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ok(Some(u8::try_from(code).unwrap_or(u8::MAX)))
    }

    /// Nobody is there any more: the command ends as by Ctrl-C, or a little later by force. What it
    /// had switched on goes off with it in either case.
    fn abandon(mut self, outbox: &Outbox) -> Result<()> {
        outbox.close();
        self.signal(Signal::TERM);
        let limit = Instant::now() + ENDING;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > limit {
                self.child.kill()?;
                self.child.wait()?;
                break;
            }
            sleep(TURN);
        }
        Ok(())
    }
}

/// What the command prints.
fn pump(
    mut from: impl Read + Send + 'static,
    outbox: &Arc<Outbox>,
    as_said: fn(Vec<u8>) -> FromFar,
) -> JoinHandle<()> {
    let outbox = Arc::clone(outbox);
    spawn(move || {
        let mut bytes = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            outbox.add(Queue::Text, &as_said(bytes[..length].to_vec()));
        }
    })
}

/// What it says by its way back: frames, as they go on.
fn pass_on(mut from: UnixStream, outbox: &Outbox) {
    let (mut decoder, mut bytes) = (Decoder::default(), vec![0; CHUNK]);
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        decoder.push(&bytes[..length]);
        while let Ok(Some(frame)) = decoder.next_frame() {
            match FromFar::from_frame(frame) {
                Ok(FromFar::Progress(text)) => outbox.progress(&text),
                Ok(said) => outbox.add(Queue::Bulk, &said),
                Err(_) => return,
            }
        }
    }
}
