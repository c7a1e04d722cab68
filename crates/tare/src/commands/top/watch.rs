//! Follows what is recorded, second by second: the one place that the screen and the printer look
//! at.

use super::feed::{Feed, Source};
use super::machine::{self, Process};
use super::paint;
use anyhow::Result;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;
use tare_profile::Profile;
use tare_recording::{Follower, Polled};
use tare_top::{App, Header, Model, Snapshot, Standing, Wanted};

/// Pieces of a long recording that are taken in one second.
const PIECES: u32 = 16;

pub struct Watch {
    pub feed: Feed,
    pub model: Model,
    process: Process,
    followed: Option<(u64, Follower<File>)>,
    /// Where there is nothing to follow.
    nothing: Profile,
    began: Instant,
    /// A file that is complete, whose name was told.
    pub recorded: Option<PathBuf>,
}

impl Watch {
    pub fn new(feed: Feed) -> Self {
        let process = Process::new(feed.jvm.pid);
        let (model, nothing) = (Model::default(), Profile::new());
        Watch {
            feed,
            model,
            process,
            followed: None,
            nothing,
            began: Instant::now(),
            recorded: None,
        }
    }

    pub fn header(&self) -> Header {
        let jvm = &self.feed.jvm;
        let version = jvm.java_version.as_deref().unwrap_or_default();
        Header {
            name: jvm.name().to_owned(),
            pid: jvm.pid,
            jdk: if version.is_empty() { String::new() } else { format!("JDK {version}") },
            cpus: machine::cpus(),
            ..Header::default()
        }
    }

    pub fn app(&self, wall: bool, seconds: u64) -> App {
        App::new(self.header(), wall, seconds, paint())
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes in another second.
    pub fn second(&mut self) {
        self.follow();
        for _ in 0..PIECES {
            let elapsed = self.elapsed();
            let Some((_, follower)) = &mut self.followed else { break };
            let polled = follower.poll();
            self.model.take(follower.profile_mut(), elapsed);
            if !matches!(polled, Ok(Polled::More)) {
                break;
            }
        }
        let machine = self.process.machine();
        self.model.second(machine, self.elapsed());
    }

    /// Turns to another recording when there is one.
    fn follow(&mut self) {
        let source = self.feed.shared().source.clone();
        let number = source.as_ref().map(|source| source.number);
        if number == self.followed.as_ref().map(|(number, _)| *number) {
            return;
        }
        // What the last one has yet to tell is told before.
        if let Some((_, mut follower)) = self.followed.take() {
            let elapsed = self.elapsed();
            if follower.poll().is_ok() {
                self.model.take(follower.profile_mut(), elapsed);
            }
        }
        self.model.begin();
        let Some(Source { number, path, .. }) = source else { return };
        if let Ok(follower) = Follower::open(&path) {
            self.followed = Some((number, follower));
            self.process.look();
        }
    }

    pub fn snapshot(&mut self, wanted: &Wanted) -> Snapshot {
        match &mut self.followed {
            Some((_, follower)) => self.model.snapshot(follower.profile_mut(), wanted),
            None => self.model.snapshot(&mut self.nothing, wanted),
        }
    }

    /// What a thread does at this moment.
    pub fn state(&self, tid: u64) -> &'static str {
        self.process.state(tid).unwrap_or_default()
    }

    pub fn standing(&self) -> Standing {
        self.feed.shared().standing.clone()
    }

    /// The file that is followed, for others to read.
    pub fn path(&self) -> Option<PathBuf> {
        self.feed.shared().source.as_ref().map(|source| source.path.clone())
    }

    /// The JVM is left as it was.
    pub fn end(&mut self) -> Result<()> {
        self.feed.end()
    }
}
