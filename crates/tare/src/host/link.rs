//! The connection to a far end that runs: what is said there, and what comes from it, with beats
//! both ways. An end that was not heard for a while is taken for gone. How much has come is said as
//! it comes, since the far end sends no more than a little that was not taken.

use super::boarding::{Way, board, ended};
use super::{BEAT, SILENCE, Silence, asked, id};
use crate::cli::HostArgs;
use anyhow::{Context, Result, bail};
use std::io::{BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::spawn;
use std::time::{Duration, Instant};
use tare_relay::{CHUNK, Decoder, FromFar, FromNear, PROTOCOL};

/// Frames that wait to be taken; what is more waits on the way.
const WAITING: usize = 256;
/// What has come is said when it is so much, or after so long.
const STEP: u64 = 4 << 10;
const PAUSE: Duration = Duration::from_millis(100);
/// Who waits looks so often whether something was heard.
const LOOK: Duration = Duration::from_millis(100);

pub struct Link {
    way: Way,
    /// Closed when it is none.
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: Receiver<Result<FromFar>>,
    come: Arc<Come>,
    /// How much of it was there at the last look.
    seen: u64,
    silence: Silence,
}

/// How many bytes have come, in whatever pieces.
#[derive(Default)]
struct Come {
    bytes: Mutex<u64>,
    more: Condvar,
}

impl Come {
    fn bytes(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, bytes: usize) {
        *self.bytes() += bytes as u64;
        self.more.notify_all();
    }

    /// Waits for something, and then a little for more.
    fn wait(&self, said: u64) -> u64 {
        let mut bytes = self.bytes();
        for (enough, patience) in [(said + 1, BEAT), (said + STEP, PAUSE)] {
            let waited = self.more.wait_timeout_while(bytes, patience, |bytes| *bytes < enough);
            bytes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *bytes
    }
}

impl Link {
    /// Connects, and has the far end run this command line.
    pub fn open(at: &HostArgs, words: Vec<String>, quiet: bool) -> Result<Self> {
        let mut boarded = board(at, quiet)?;
        let hello = FromNear::Hello { protocol: PROTOCOL, id: id() };
        for said in [hello, FromNear::Run(asked(words, at))] {
            // Whoever does not take it says why.
            let _ = boarded.input.write_all(&said.to_frame().encode());
        }
        let input = Arc::new(Mutex::new(Some(boarded.input)));
        let (sender, output) = sync_channel(WAITING);
        let come = Arc::new(Come::default());
        let (from, coming) = (boarded.output, Arc::clone(&come));
        spawn(move || read(from, &sender, &coming));
        keep_saying(&input, &come);
        let (way, silence) = (boarded.way, Silence::default());
        let mut link = Link { way, input, output, come, seen: 0, silence };
        match link.receive(2 * SILENCE)? {
            Some(FromFar::Hello { protocol: PROTOCOL, id: theirs, .. }) if theirs == id() => {}
            Some(FromFar::Hello { id: theirs, .. }) => {
                bail!("the tare at the other end is {theirs:?}, and this one is {:?}", id())
            }
            Some(FromFar::Failed(why)) => bail!("the other end: {}", crate::term::plain(&why)),
            _ => bail!("{} does not answer as tare does", link.place()),
        }
        Ok(link)
    }

    pub fn place(&self) -> String {
        self.way.place.to_string()
    }

    /// What comes next, if something comes in time. An error means that nothing more does.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<FromFar>> {
        let limit = Instant::now() + patience;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left.min(LOOK)) {
                Ok(said) => {
                    self.silence.ends();
                    return said.map(Some);
                }
                Err(RecvTimeoutError::Disconnected) => bail!("{} has hung up", self.place()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A part of a frame is as good as a whole one.
            let come = *self.come.bytes();
            if come != std::mem::replace(&mut self.seen, come) {
                self.silence.ends();
            } else if self.silence.is_over() {
                bail!("{} has not been heard for {} seconds", self.place(), SILENCE.as_secs());
            }
            if Instant::now() >= limit {
                return Ok(None);
            }
        }
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        say(&self.input, &FromNear::Interrupt);
    }

    fn close(&self) {
        // A beat that cannot be written may hold this for as long as that lasts.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
    }

    /// All was said.
    pub fn end(self) {
        self.close();
        self.way.end();
    }

    /// It broke; what that is called.
    pub fn broke(self, why: &anyhow::Error) -> anyhow::Error {
        self.close();
        let (place, program) = (self.place(), self.way.program.clone());
        let how = self.way.end().map(|status| format!("{program} ended with {}", ended(status)));
        let how = how.map_or_else(String::new, |how| format!("; {how}"));
        anyhow::anyhow!("the connection to {place} broke: {why:#}{how}")
    }

    /// Nobody wants to wait for it any longer. What is on there goes off when it is seen that
    /// nobody is here.
    pub fn leave(self) {
        self.close();
        self.way.kill();
    }
}

fn say(input: &Mutex<Option<ChildStdin>>, said: &FromNear) -> bool {
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    match input.as_mut() {
        Some(input) => {
            input.write_all(&said.to_frame().encode()).and_then(|()| input.flush()).is_ok()
        }
        None => false,
    }
}

/// Beats, and says how much has come, as long as anybody takes it.
fn keep_saying(input: &Arc<Mutex<Option<ChildStdin>>>, come: &Arc<Come>) {
    let (input, come) = (Arc::downgrade(input), Arc::clone(come));
    spawn(move || {
        let mut told = 0;
        loop {
            let bytes = come.wait(told);
            let Some(input) = input.upgrade() else { return };
            let said = if bytes == told { FromNear::Beat } else { FromNear::Taken(bytes) };
            told = bytes;
            if !say(&input, &said) {
                return;
            }
        }
    });
}

fn read(mut from: BufReader<ChildStdout>, sender: &SyncSender<Result<FromFar>>, come: &Come) {
    let (mut decoder, mut bytes) = (Decoder::default(), vec![0; CHUNK]);
    let mut take = || -> Result<bool> {
        let length = from.read(&mut bytes).context("nothing can be read from there")?;
        come.add(length);
        decoder.push(&bytes[..length]);
        while let Some(frame) = decoder.next_frame()? {
            if sender.send(Ok(FromFar::from_frame(frame)?)).is_err() {
                return Ok(false);
            }
        }
        Ok(length > 0)
    };
    loop {
        match take() {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let _ =
                    sender.send(Err(error.context("the other end does not speak as tare does")));
                return;
            }
        }
    }
}
