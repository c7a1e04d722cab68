//! Which objects live, of those that woven code hands over to the agent.
//!
//! Nothing is told of an object before a collection has proven that it lives. Then it is known by
//! its number, its size and the node of its site in the arena; which context that is, whoever reads
//! the arena knows.

use super::accounts;
use super::collect::{Live, Object};
use crate::error::Result;
use std::collections::HashMap;
use std::fs::File;
use tare_arena::samples::{Counter, DeclaredKind, Record, Stream, StreamEvent};
use tare_profile::facts::keys;
use tare_profile::{ContextId, LossKind, Profile, Row, RunInfo, ThreadId};
use tare_protocol::{AllocStatus, Unwatched};

/// What is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// An object was found alive after a collection, for the first time.
    Made,
    Gone,
    /// All that were there at a collection have been looked at.
    Swept,
    /// How many are not proven, and how many are not watched.
    State,
}

const FIELDS: usize = 2 + Unwatched::ALL.len();

/// A kind of event, and where in it each of our fields is.
#[derive(Clone, Copy)]
struct Kind {
    tells: Tells,
    at: [Option<usize>; FIELDS],
}

impl Kind {
    /// `None` if it is none of these.
    fn of(kind: &DeclaredKind) -> Option<Self> {
        let unwatched = Unwatched::ALL.map(Unwatched::key);
        let state = [&["unproven", "unproven-bytes"], &unwatched[..]].concat();
        let (tells, fields): (_, &[&str]) = match kind.name.as_str() {
            "live-made" => (Tells::Made, &["number", "epoch", "node", "size", "born"]),
            "live-gone" => (Tells::Gone, &["number", "epoch"]),
            "live-swept" => (Tells::Swept, &["entries", "epoch"]),
            "live-state" => (Tells::State, &state),
            _ => return None,
        };
        let mut at = [None; FIELDS];
        for (at, field) in at.iter_mut().zip(fields) {
            *at = kind.fields.iter().position(|(name, _)| name == field);
        }
        Some(Kind { tells, at })
    }
}

struct Notice {
    tells: Tells,
    time: u64,
    fields: [u64; FIELDS],
}

/// Watched objects of an exact recording under way.
pub struct Watched {
    stream: Stream,
    objects: Objects,
    /// What the agent said last.
    told: AllocStatus,
    /// The stream could not be read to its end.
    broken: Option<String>,
}

impl Watched {
    /// `files` came with the start of the agent's engine, and `zero` is the zero of all times by
    /// the monotonic clock.
    pub fn new(files: [File; 2], zero: u64, told: AllocStatus) -> Result<Self> {
        let stream = Stream::new(files)?;
        Ok(Watched { stream, objects: Objects::new(zero), told, broken: None })
    }

    /// What the agent says of it now.
    pub fn update(&mut self, told: &AllocStatus) {
        self.told = told.clone();
    }

    pub fn notes(&self) -> &[String] {
        &self.told.notes
    }

    /// Objects that are proven to live.
    pub fn proven(&self) -> u64 {
        self.objects.live.proven() as u64
    }

    /// Takes what has come, so that there is room for more.
    pub fn drain(&mut self) {
        let objects = &mut self.objects;
        if let Err(error) = self.stream.drain(|record| objects.take(record)) {
            self.broken.get_or_insert_with(|| error.to_string());
        }
    }

    /// Takes the last that has come, once the session or its JVM has ended.
    pub fn end(&mut self) {
        self.drain();
        let objects = &mut self.objects;
        if let Err(error) = self.stream.drain_rest(|record| objects.take(record)) {
            self.broken.get_or_insert_with(|| error.to_string());
        }
    }

    /// Adds to the profile what has come. `place` finds the context and thread of a node, of trees
    /// that were read since.
    pub fn add(&mut self, profile: &mut Profile, place: impl Fn(u32) -> Option<Place>) {
        self.objects.add(profile, place);
    }

    pub fn account(&self, run: &mut RunInfo) {
        let notes = self.notes();
        if !notes.is_empty() {
            run.facts.set(keys::NOTES, &notes.to_vec());
        }
        let Objects { live, state: [objects, bytes, unwatched @ ..], unplaced, .. } = &self.objects;
        accounts::of_live(live, (*objects, *bytes), Some(&self.told), run);
        let lose = accounts::lose;
        for (why, count) in Unwatched::ALL.into_iter().zip(unwatched) {
            lose(run, LossKind::Skipped, "live objects", *count, why.reason());
        }
        let reason = "the nodes of their contexts were not found";
        lose(run, LossKind::Dropped, "live objects", *unplaced, reason);
        let lost = self.stream.totals().map_or(0, |totals| totals.get(Counter::LostEvents));
        lose(run, LossKind::Dropped, "events", lost, "the front end reads too slowly");
        if let Some(error) = &self.broken {
            lose(run, LossKind::Damaged, "streams", 1, error);
        }
    }

    /// Adds what lives now.
    pub fn complete(&self, profile: &mut Profile) {
        self.objects.live.add_survivors(profile);
    }
}

/// The context and thread of a node.
type Place = (ContextId, ThreadId);

/// What the stream tells of objects.
struct Objects {
    kinds: HashMap<u32, Kind>,
    /// Taken, and not yet in the profile.
    notices: Vec<Notice>,
    /// What the stream's clock said when the run began.
    zero: u64,
    live: Live,
    /// Objects that are not proven, their bytes, and objects that are not watched, by reason.
    state: [u64; FIELDS],
    /// Objects whose nodes were not found.
    unplaced: u64,
}

impl Objects {
    fn new(zero: u64) -> Self {
        Objects {
            kinds: HashMap::new(),
            notices: Vec::new(),
            zero,
            live: Live::exact(),
            state: [0; FIELDS],
            unplaced: 0,
        }
    }

    /// Threads are those of the arena, and pauses have a ring of their own.
    fn take(&mut self, record: Record) {
        match record {
            Record::EventKind(kind) => {
                self.kinds.extend(Kind::of(&kind).map(|ours| (kind.id, ours)));
            }
            Record::Event(event) => {
                let kind = self.kinds.get(&event.head.kind);
                self.notices.extend(kind.map(|kind| notice(*kind, &event)));
            }
            _ => {}
        }
    }

    fn add(&mut self, profile: &mut Profile, place: impl Fn(u32) -> Option<Place>) {
        self.live.begin(profile);
        for Notice { tells, time, fields } in std::mem::take(&mut self.notices) {
            let time = time.saturating_sub(self.zero);
            let [first, epoch, node, size, born, _] = fields;
            match tells {
                Tells::Made => {
                    let found = u32::try_from(node).ok().and_then(&place);
                    let Some((context, thread)) = found else {
                        self.unplaced += 1;
                        continue;
                    };
                    let row = Row::new(context, thread, 0).at(time);
                    self.live.born(profile, first, Object::new(row, size, 1.0, born));
                    self.live.survived(profile, first, 0, epoch, time);
                }
                Tells::Gone => self.live.gone(profile, first, epoch, time),
                Tells::Swept => self.live.swept(0, 0, epoch),
                Tells::State => self.state = fields,
            }
        }
        self.live.flush(profile);
    }
}

fn notice(kind: Kind, event: &StreamEvent) -> Notice {
    let value = |at: Option<usize>| at.and_then(|at| event.values.get(at)).copied().unwrap_or(0);
    Notice { tells: kind.tells, time: event.head.time, fields: kind.at.map(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::{EventHead, FieldKind::Integer};
    use tare_profile::{EventKind, FieldValue, ValueKind};

    const ZERO: u64 = 1_000;

    fn declared(id: u32, name: &str, fields: &[&str]) -> Record {
        let fields: Vec<_> = fields.iter().map(|name| (*name, Integer)).collect();
        Record::EventKind(DeclaredKind::new(id, name, &fields))
    }

    fn event(kind: u32, time: u64, values: &[u64]) -> Record {
        let head = EventHead { kind, time: ZERO + time, ..EventHead::default() };
        Record::Event(StreamEvent { head, values: values.to_vec() })
    }

    /// Objects of two nodes, where the second is not in the trees.
    fn objects() -> Objects {
        let mut objects = Objects::new(ZERO);
        let state = ["unproven", "unproven-bytes", "reference", "limit", "young", "context"];
        objects.take(declared(1, "live-made", &["number", "epoch", "node", "size", "born"]));
        objects.take(declared(2, "live-gone", &["number", "epoch"]));
        objects.take(declared(3, "live-swept", &["below", "epoch"]));
        objects.take(declared(5, "live-state", &state));
        objects.take(declared(4, "gc", &[]));
        objects
    }

    fn add(objects: &mut Objects, profile: &mut Profile) -> ContextId {
        let frame = profile.special("somewhere");
        let context = profile.contexts.stack([frame]);
        objects.add(profile, |node| (node == 64).then_some((context, ThreadId::UNKNOWN)));
        context
    }

    fn rows(profile: &Profile, kind: &ValueKind) -> Vec<(u64, i64)> {
        let mut all = profile.all_series().map(|(_, series)| series);
        let series = all.find(|s| s.info().kind == *kind && s.info().name == "exact");
        series.expect("a series").rows().map(|row| (row.time, row.value)).collect()
    }

    #[test]
    fn objects_live_from_their_proof_to_their_death_at_their_nodes() {
        let (mut objects, mut profile) = (objects(), Profile::new());
        for number in 1..=3 {
            objects.take(event(1, 50, &[number, 2, 64, 24, 1]));
        }
        objects.take(event(1, 50, &[4, 2, 4096, 24, 1]));
        objects.take(event(4, 40, &[]));
        objects.take(event(3, 60, &[5, 2]));
        objects.take(event(5, 61, &[7, 168, 0, 9, 0, 1]));
        let context = add(&mut objects, &mut profile);
        assert_eq!(rows(&profile, &ValueKind::LiveObjects), [(50, 3)], "alike ones are one row");
        assert_eq!(rows(&profile, &ValueKind::LiveBytes), [(50, 72)]);
        assert_eq!((objects.state, objects.unplaced), ([7, 168, 0, 9, 0, 1], 1));
        objects.take(event(2, 80, &[2, 5]));
        objects.take(event(3, 90, &[5, 5]));
        add(&mut objects, &mut profile);
        assert_eq!(rows(&profile, &ValueKind::LiveObjects), [(50, 3), (80, -1)]);
        objects.live.add_survivors(&mut profile);
        let told = |kind: EventKind| {
            let mut tables = profile.all_events().map(|(_, table)| table);
            let table = tables.find(|table| table.kind().name == kind.name).expect("a table");
            let field = table.field_named("collections").expect("ages");
            assert!(table.events().all(|event| event.context == context));
            (table.len(), table.field(0, field))
        };
        assert_eq!(told(EventKind::death()), (1, Some(FieldValue::Integer(3))));
        assert_eq!(told(EventKind::survivor()), (1, Some(FieldValue::Integer(4))));
        assert!(profile.all_events().all(|(_, table)| table.kind().name != "gc"), "told elsewhere");
    }
}
