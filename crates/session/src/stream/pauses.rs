//! Pauses of the JVM for recordings that read no stream: exact ones and traces. The agent tells them
//! in a ring of their own, by the same clock.
//!
//! They are there beside the rest: a recording is made without them if the agent refuses them, and
//! says why.

use super::accounts::lose;
use super::collect::{Addresses, Collector};
use crate::client::Agent;
use crate::error::Result;
use crate::recorder::Source;
use std::time::{Duration, Instant};
use tare_arena::samples::{Counter, Record, Stream};
use tare_profile::facts::keys;
use tare_profile::{LossKind, Profile, RunInfo};
use tare_protocol::{EngineName, EnginePlan, Request, Status};
use tare_symbols::Symbol;

/// How often the ring is drained, which has room for a minute.
const DRAIN: Duration = Duration::from_millis(250);

/// Events without stacks have no addresses.
struct Nowhere;

impl Addresses for Nowhere {
    fn native(&mut self, _: u64) -> Symbol {
        Symbol { name: "".into(), module: "".into() }
    }

    fn kernel(&mut self, address: u64) -> Symbol {
        self.native(address)
    }

    fn unread(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Pauses that are being told, or why they are not.
pub struct Pauses {
    stream: Option<Stream>,
    /// What went wrong.
    broken: Option<String>,
    records: Vec<Record>,
    drained: Instant,
    /// The zero of all times, by the monotonic clock.
    zero: u64,
    collector: Collector<Nowhere>,
    notes: Vec<String>,
    lost: u64,
    over: bool,
}

impl Pauses {
    /// Has the agent tell them from now on.
    pub fn begin(agent: &mut Agent) -> Self {
        let told = agent.tell_for_files(&Request::Start(EnginePlan::Pauses));
        let stream = told.and_then(|files| Ok(Stream::new(files)?));
        let (stream, broken) = match stream {
            Ok(stream) => (Some(stream), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Pauses { broken, ..Self::of(stream) }
    }

    fn of(stream: Option<Stream>) -> Self {
        Pauses {
            stream,
            broken: None,
            records: Vec::new(),
            drained: Instant::now(),
            zero: 0,
            collector: Collector::new(None, None, 0, Nowhere),
            notes: Vec::new(),
            lost: 0,
            over: false,
        }
    }

    /// When the recording began, by the monotonic clock. What was over before is not part of it.
    #[must_use]
    pub fn since(mut self, zero: u64) -> Self {
        self.zero = zero;
        self.collector = Collector::new(None, None, zero, Nowhere);
        self
    }

    /// What the agent says of them now.
    pub fn update(&mut self, status: &Status) {
        if let Some(told) = status.pauses() {
            self.notes.clone_from(&told.notes);
        }
    }

    /// Takes what has come, if it is time.
    pub fn drain(&mut self) {
        if self.drained.elapsed() >= DRAIN {
            self.drained = Instant::now();
            self.take(false);
        }
    }

    /// Nothing more is to come.
    pub fn end(&mut self, agent: &mut Agent) {
        if self.stream.is_some() {
            // A JVM that has ended has told what it could.
            let _ = agent.tell(&Request::Stop(EngineName::Pauses));
        }
        self.take(true);
        self.over = true;
    }

    fn take(&mut self, rest: bool) {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.over) else { return };
        let records = &mut self.records;
        let mut push = |record| records.push(record);
        let mut taken = stream.drain(&mut push);
        if rest {
            taken = taken.and_then(|_| stream.drain_rest(&mut push));
        }
        let lost = taken.and_then(|_| stream.totals());
        match lost {
            Ok(totals) => self.lost = totals.get(Counter::LostEvents),
            Err(error) => _ = self.broken.get_or_insert_with(|| error.to_string()),
        }
    }
}

impl Source for Pauses {
    fn look(&mut self, profile: &mut Profile, _: u64) -> Result<()> {
        self.drain();
        let zero = self.zero;
        let is_inside = |record: &Record| match record {
            Record::Event(event) => event.head.time.saturating_add(event.head.duration) >= zero,
            _ => true,
        };
        let records = std::mem::take(&mut self.records).into_iter().filter(is_inside);
        self.collector.add(profile, records, self.over);
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        let mut notes = run.facts.get(keys::NOTES).unwrap_or_default();
        notes.extend(
            self.notes.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>(),
        );
        if !notes.is_empty() {
            run.facts.set(keys::NOTES, &notes);
        }
        lose(run, LossKind::Dropped, "pauses", self.lost, "the front end reads too slowly");
        if let Some(error) = &self.broken {
            run.lose(LossKind::Skipped, "pauses", 1, error);
        }
        self.collector.account(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::{DeclaredKind, EventHead, FieldKind, StreamEvent};

    #[test]
    fn what_was_over_before_the_recording_is_not_part_of_it() {
        let mut pauses = Pauses::of(None).since(1_000);
        let kind = DeclaredKind::new(1, "gc", &[("number", FieldKind::Integer)]);
        pauses.records.push(Record::EventKind(kind));
        for (number, time) in [(1, 900), (2, 960), (3, 1_400)] {
            let head = EventHead { kind: 1, time, duration: 50, ..EventHead::default() };
            pauses.records.push(Record::Event(StreamEvent { head, values: vec![number] }));
        }
        let mut profile = Profile::new();
        pauses.look(&mut profile, 0).unwrap();
        let told = tare_profile::collections(&profile);
        let told: Vec<_> = told.iter().map(|one| (one.number, one.time)).collect();
        // One that was under way when it began is cut off at its front.
        assert_eq!(told, [(2, 0), (3, 400)]);
    }

    #[test]
    fn a_recording_without_pauses_says_why() {
        let pauses = Pauses { broken: Some("no room".into()), lost: 3, ..Pauses::of(None) };
        let mut run = RunInfo::default();
        run.facts.set(keys::NOTES, &vec!["first".to_owned()]);
        let pauses = Pauses { notes: vec!["second".into(), "first".into()], ..pauses };
        pauses.account(&mut run);
        let losses: Vec<_> = run.losses.iter().map(|loss| (loss.kind, &*loss.reason)).collect();
        let slow = "the front end reads too slowly";
        assert_eq!(losses, [(LossKind::Dropped, slow), (LossKind::Skipped, "no room")]);
        assert_eq!(run.facts.get(keys::NOTES), Some(vec!["first".into(), "second".into()]));
    }
}
