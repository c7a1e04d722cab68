//! The connection to a far end that runs: what is said there, and what comes from it, with beats
//! both ways. An end that was not heard for a while is taken for gone.

use super::boarding::{Way, board, ended};
use super::{BEAT, SILENCE, asked, id};
use crate::cli::HostArgs;
use anyhow::{Context, Result, bail};
use std::io::{BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;
use std::time::{Duration, Instant};
use tare_relay::{CHUNK, Decoder, FromFar, FromNear, PROTOCOL};

/// Frames that wait to be taken; what is more waits on the way.
const WAITING: usize = 64;

pub struct Link {
    way: Way,
    /// Closed when it is none.
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: Receiver<Result<FromFar>>,
    heard: Instant,
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
        let from = boarded.output;
        spawn(move || read(from, &sender));
        beat(&input);
        let mut link = Link { way: boarded.way, input, output, heard: Instant::now() };
        match link.receive(SILENCE)? {
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
        match self.output.recv_timeout(patience) {
            Ok(said) => {
                self.heard = Instant::now();
                said.map(Some)
            }
            Err(RecvTimeoutError::Timeout) if self.heard.elapsed() <= SILENCE => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("{} has not been heard for {} seconds", self.place(), SILENCE.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => bail!("{} has hung up", self.place()),
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

/// As long as anybody takes it.
fn beat(input: &Arc<Mutex<Option<ChildStdin>>>) {
    let input = Arc::downgrade(input);
    spawn(move || {
        loop {
            std::thread::sleep(BEAT);
            let Some(input) = input.upgrade() else { return };
            if !say(&input, &FromNear::Beat) {
                return;
            }
        }
    });
}

fn read(mut from: BufReader<ChildStdout>, sender: &SyncSender<Result<FromFar>>) {
    let (mut decoder, mut bytes) = (Decoder::default(), vec![0; CHUNK]);
    let mut take = || -> Result<bool> {
        let length = from.read(&mut bytes).context("nothing can be read from there")?;
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
