//! From chunks to tables. Rows that refer to lost ones are kept, under `[unknown: damaged]`, so
//! that sums stay true; memory is counted before it is taken. Events are in `decode/events`, what
//! is known of the run as a whole in `run`.

mod events;

use crate::block::Kind;
use crate::bytes::Malformed;
use crate::chunk::Chunk;
use crate::codes;
use crate::error::Warning;
use crate::load::LoadOptions;
use crate::rows::RowMap;
use crate::{run, upgrade};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tare_profile::{
    ContextId, EventKind, EventTableId, Frame, FrameId, Merger, Method, MethodId, Profile, Row,
    SeriesId, SeriesInfo, StringId, Thread, ThreadId, Unit, ValueKind,
};

const DAMAGED: &str = "[unknown: damaged]";

/// Why a chunk was not taken in.
pub enum Refusal {
    Malformed(Malformed),
    TooLarge,
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Refusal::Malformed(malformed)
    }
}

/// A profile being put together.
pub struct Decoder<'o> {
    options: &'o LoadOptions,
    /// Bytes that may still be taken.
    budget: u64,
    profile: Profile,
    strings: RowMap,
    methods: RowMap,
    frames: RowMap,
    contexts: RowMap,
    threads: HashMap<u64, ThreadId>,
    /// How many threads, from the first on, have the same number here and in the file: usually all.
    threads_in_order: u64,
    series: HashMap<u16, Target>,
    event_kinds: BTreeMap<u64, EventKind>,
    event_tables: HashMap<u64, EventTableId>,
    /// Fields of types that this version does not know, by kind of event and field.
    unknown_fields: BTreeSet<(String, String)>,
    damaged_context: Option<ContextId>,
    orphans: BTreeMap<&'static str, u64>,
    /// The latest time of a value or an event that was read, whether or not it is wanted.
    latest: u64,
}

/// Where the rows of a series go.
enum Target {
    Rows(SeriesId),
    Sums(Box<Merger>),
    Nowhere,
}

impl Target {
    /// Bytes of sums so far; what rows take is known before they are taken.
    fn memory(&self) -> usize {
        match self {
            Target::Sums(merger) => merger.memory(),
            Target::Rows(_) | Target::Nowhere => 0,
        }
    }
}

impl<'o> Decoder<'o> {
    pub fn new(options: &'o LoadOptions, budget: u64) -> Self {
        Decoder {
            options,
            budget,
            profile: Profile::new(),
            strings: RowMap::with_zero(),
            methods: RowMap::default(),
            frames: RowMap::default(),
            contexts: RowMap::with_zero(),
            threads: HashMap::from([(0, ThreadId::UNKNOWN)]),
            threads_in_order: 1,
            series: HashMap::new(),
            event_kinds: BTreeMap::new(),
            event_tables: HashMap::new(),
            unknown_fields: BTreeSet::new(),
            damaged_context: None,
            orphans: BTreeMap::new(),
            latest: 0,
        }
    }

    /// What was put together so far.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// From now on so many bytes may be taken: what was taken before may have been let go.
    pub fn refill(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// Nobody wrote down how long a run was that has no end; it lasted as long as anything in it.
    pub fn without_end(&mut self) {
        self.profile.run.duration = self.profile.run.duration.max(self.latest);
    }

    pub fn take(&mut self, kind: Kind, number: u16, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        match kind {
            Kind::Run => Ok(run::decode_run(chunk, &mut self.profile.run)?),
            Kind::Losses => {
                self.charge(chunk.rows, 100)?;
                Ok(run::decode_losses(chunk, &mut self.profile.run.losses)?)
            }
            Kind::Facts => {
                self.charge(chunk.rows, 200)?;
                Ok(run::decode_facts(chunk, &mut self.profile.run.facts)?)
            }
            Kind::Strings => self.strings(chunk),
            Kind::Methods => self.methods(chunk),
            Kind::Frames => self.frames(chunk),
            Kind::Contexts => self.contexts(chunk),
            Kind::Threads => self.threads(chunk),
            Kind::Series => self.series(chunk),
            // Whoever asks for both counts twice; loading chooses one.
            Kind::Values | Kind::Sums => self.values(number, chunk),
            Kind::EventKinds => self.event_kinds(chunk),
            Kind::EventFields => self.event_fields(chunk),
            Kind::Events => self.events(number, chunk),
            Kind::Index => Ok(()),
        }
    }

    /// Whether events of this number are not asked for.
    pub fn leaves_out(&self, number: u16) -> bool {
        let kind = self.event_kinds.get(&u64::from(number));
        kind.is_some_and(|kind| self.options.without.contains(&kind.name))
    }

    /// The profile, and what has to be said about it.
    pub fn finish(mut self, version: u16) -> (Profile, Vec<Warning>) {
        self.open_event_tables();
        upgrade::run_of(version, &mut self.profile.run);
        let mut merged: Vec<(u16, Box<Merger>)> = self
            .series
            .into_iter()
            .filter_map(|(number, target)| match target {
                Target::Sums(merger) => Some((number, merger)),
                Target::Rows(_) | Target::Nowhere => None,
            })
            .collect();
        merged.sort_by_key(|(number, _)| *number);
        for (_, merger) in merged {
            self.profile.add_made_series(merger.finish());
        }
        let orphans = self.orphans.into_iter();
        let orphans = orphans.map(|(table, rows)| Warning::Orphans { table, rows });
        let fields = self.unknown_fields.into_iter();
        let fields = fields.map(|(event, field)| Warning::UnknownField { event, field });
        (self.profile, orphans.chain(fields).collect())
    }

    /// Counts memory that a chunk is going to take.
    fn charge(&mut self, rows: usize, bytes_each: usize) -> Result<(), Refusal> {
        let bytes = rows as u64 * bytes_each as u64;
        self.budget = self.budget.checked_sub(bytes).ok_or(Refusal::TooLarge)?;
        Ok(())
    }

    fn orphan(&mut self, table: &'static str) {
        *self.orphans.entry(table).or_default() += 1;
    }

    fn text(&mut self, row: u64) -> StringId {
        match self.strings.get(row) {
            Some(id) => StringId::new(id),
            None => {
                self.orphan("names");
                self.profile.strings.intern(DAMAGED)
            }
        }
    }

    fn thread(&mut self, row: u64) -> ThreadId {
        if row < self.threads_in_order {
            return ThreadId::new(row as u32);
        }
        match self.threads.get(&row) {
            Some(id) => *id,
            None => {
                self.orphan("values and events");
                ThreadId::UNKNOWN
            }
        }
    }

    fn context(&mut self, row: u64) -> ContextId {
        match self.contexts.get(row) {
            Some(id) => ContextId::new(id),
            None => {
                self.orphan("values and events");
                self.damaged_context()
            }
        }
    }

    fn damaged_context(&mut self) -> ContextId {
        match self.damaged_context {
            Some(id) => id,
            None => {
                let frame = self.profile.special(DAMAGED);
                let id = self.profile.contexts.push(ContextId::ROOT, frame);
                *self.damaged_context.insert(id.unwrap_or(ContextId::ROOT))
            }
        }
    }

    fn strings(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        let texts = chunk.texts("text")?;
        let length: usize = texts.iter().map(|text| text.len()).sum();
        self.charge(1, length + chunk.rows * 16)?;
        place(&mut self.strings, chunk, self.profile.strings.len())?;
        for text in texts {
            self.profile.strings.push(text);
        }
        Ok(())
    }

    fn methods(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, size_of::<Method>() * 2)?;
        let kinds = chunk.numbers("kind")?;
        let names = ["class", "name", "descriptor", "file", "loader", "module"];
        let mut columns = Vec::new();
        for name in names {
            columns.push(chunk.numbers(name)?);
        }
        let lines = chunk.numbers("line")?;
        place(&mut self.methods, chunk, self.profile.methods.len())?;
        for at in 0..chunk.rows {
            let [class, name, descriptor, file, loader, module] =
                [0, 1, 2, 3, 4, 5].map(|column: usize| self.text(columns[column][at]));
            let (kind, line) = (codes::method_kind(kinds[at]), codes::option_u32(lines[at]));
            let method = Method { kind, class, name, descriptor, file, line, loader, module };
            self.profile.methods.push(method);
        }
        Ok(())
    }

    fn frames(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, size_of::<Frame>() * 2)?;
        let (methods, bcis) = (chunk.numbers("method")?, chunk.numbers("bci")?);
        let (lines, executions) = (chunk.numbers("line")?, chunk.numbers("execution")?);
        let lost = methods.iter().filter(|row| self.methods.get(**row).is_none()).count();
        if lost > 0 {
            *self.orphans.entry("frames").or_default() += lost as u64;
        }
        let damaged = self.damaged_method(lost > 0);
        place(&mut self.frames, chunk, self.profile.frames.len())?;
        for at in 0..chunk.rows {
            let method = self.methods.get(methods[at]).map_or(damaged, MethodId::new);
            let bci = codes::option(bcis[at]).and_then(|bci| u16::try_from(bci).ok());
            let line = codes::option_u32(lines[at]);
            let execution = codes::execution(executions[at]);
            self.profile.frames.push(Frame { method, bci, line, execution });
        }
        Ok(())
    }

    /// Made only if it is needed: an undamaged profile must not hold it.
    fn damaged_method(&mut self, needed: bool) -> MethodId {
        if !needed {
            return MethodId::default();
        }
        let frame = self.profile.special(DAMAGED);
        self.profile.frames.get(frame).method
    }

    fn contexts(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, 16)?;
        let (parents, frames) = (chunk.numbers("parent")?, chunk.numbers("frame")?);
        let first = chunk.first_row;
        let is_here = |row: u64, at: usize| row >= first && row - first < at as u64;
        let lost = (0..chunk.rows).filter(|at| {
            let parent = parents[*at];
            let parent_lost = !is_here(parent, *at) && self.contexts.get(parent).is_none();
            parent_lost || self.frames.get(frames[*at]).is_none()
        });
        let lost = lost.count() as u64;
        // The placeholder must stand before its children, and rows of a chunk in one piece.
        let (damaged, frame) = if lost > 0 {
            *self.orphans.entry("contexts").or_default() += lost;
            (self.damaged_context(), self.profile.special(DAMAGED))
        } else {
            (ContextId::ROOT, FrameId::default())
        };
        let start = self.profile.contexts.len();
        place(&mut self.contexts, chunk, start)?;
        self.profile.contexts.reserve(chunk.rows);
        for at in 0..chunk.rows {
            let parent = if is_here(parents[at], at) {
                ContextId::new(start as u32 + (parents[at] - first) as u32)
            } else {
                let known = self.contexts.get(parents[at]).filter(|id| (*id as usize) < start);
                known.map_or(damaged, ContextId::new)
            };
            let frame = self.frames.get(frames[at]).map_or(frame, FrameId::new);
            if self.profile.contexts.push(parent, frame).is_none() {
                return Err(Refusal::Malformed(Malformed("a context stands before its caller")));
            }
        }
        Ok(())
    }

    fn threads(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, size_of::<Thread>() * 2)?;
        let (rows, kinds) = (chunk.numbers("row")?, chunk.numbers("kind")?);
        let (names, java_ids) = (chunk.numbers("name")?, chunk.numbers("java-id")?);
        let (os_ids, started) = (chunk.numbers("os-id")?, chunk.numbers("started")?);
        let ended = chunk.numbers("ended")?;
        for at in 0..chunk.rows {
            let thread = Thread {
                kind: codes::thread_kind(kinds[at]),
                name: self.text(names[at]),
                java_id: codes::option(java_ids[at]),
                os_id: codes::option(os_ids[at]),
                started: codes::option(started[at]),
                ended: codes::option(ended[at]),
            };
            match self.threads.get(&rows[at]) {
                Some(id) => *self.profile.threads.get_mut(*id) = thread,
                None => {
                    let id = self.profile.threads.push(thread);
                    self.threads.insert(rows[at], id);
                    let same = u64::from(id.raw()) == rows[at] && rows[at] == self.threads_in_order;
                    self.threads_in_order += u64::from(same);
                }
            }
        }
        Ok(())
    }

    fn series(&mut self, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        self.charge(chunk.rows, 1000)?;
        for (row, info) in (chunk.first_row..).zip(series_infos(chunk)?) {
            let Ok(number) = u16::try_from(row) else {
                return Err(Refusal::Malformed(Malformed("a series has too large a number")));
            };
            if !self.series.contains_key(&number) {
                let target = self.target(number, info);
                self.series.insert(number, target);
            }
        }
        Ok(())
    }

    fn target(&mut self, number: u16, info: SeriesInfo) -> Target {
        if self.options.series.as_ref().is_some_and(|wanted| !wanted.contains(&number)) {
            Target::Nowhere
        } else if self.options.merge {
            Target::Sums(Box::new(Merger::new(info)))
        } else {
            Target::Rows(self.profile.add_series(info))
        }
    }

    fn values(&mut self, number: u16, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        // Rows take memory each; sums take it per pair, but time per row.
        self.charge(chunk.rows, if self.options.merge { 6 } else { 24 })?;
        let mut target = self.series.remove(&number).unwrap_or_else(|| {
            // What the values count is lost; that they add up to something is not.
            let kind = ValueKind::Other { name: DAMAGED.to_owned(), unit: Unit::Count };
            self.target(number, SeriesInfo::new(DAMAGED, kind))
        });
        let before = target.memory();
        let outcome = self.values_to(&mut target, chunk);
        let taken = target.memory().saturating_sub(before);
        self.series.insert(number, target);
        outcome.and_then(|()| self.charge(1, taken))
    }

    fn values_to(&mut self, target: &mut Target, chunk: &Chunk<'_>) -> Result<(), Refusal> {
        let (contexts, threads) = (chunk.numbers("context")?, chunk.numbers("thread")?);
        let (times, values) = (chunk.numbers("time")?, chunk.signed("value")?);
        self.latest = times.iter().fold(self.latest, |latest, time| latest.max(*time));
        for at in 0..chunk.rows {
            let in_time = self.options.time.as_ref().is_none_or(|time| time.contains(&times[at]));
            if !in_time {
                continue;
            }
            let (context, thread) = (self.context(contexts[at]), self.thread(threads[at]));
            let row = Row { context, thread, time: times[at], value: values[at] };
            match target {
                Target::Rows(id) => self.profile.series_mut(*id).push(row),
                Target::Sums(merger) => merger.add(row),
                Target::Nowhere => {}
            }
        }
        Ok(())
    }
}

/// Notes where the rows of a chunk go: to the end of a table that has `rows` by now.
fn place(map: &mut RowMap, chunk: &Chunk<'_>, rows: usize) -> Result<(), Refusal> {
    let end = rows as u64 + chunk.rows as u64;
    let place = u32::try_from(rows).ok().filter(|_| end < u64::from(u32::MAX));
    let place = place.ok_or(Refusal::TooLarge)?;
    if map.add(chunk.first_row, chunk.rows as u64, place) {
        Ok(())
    } else {
        Err(Refusal::Malformed(Malformed("its rows are out of order")))
    }
}

/// The rows of the table of series.
pub fn series_infos(chunk: &Chunk<'_>) -> Result<Vec<SeriesInfo>, Malformed> {
    let (names, kinds) = (chunk.texts("name")?, chunk.texts("kind")?);
    let (units, estimates) = (chunk.numbers("unit")?, chunk.numbers("estimate")?);
    let (axes, periods) = (chunk.numbers("time")?, chunk.numbers("period")?);
    let (period_kinds, period_units) = (chunk.texts("period-kind")?, chunk.numbers("period-unit")?);
    let info = |at: usize| {
        let kind = |name: &str, unit| ValueKind::from_name(name, codes::unit(unit));
        let period_kind = period_kinds[at];
        SeriesInfo {
            name: names[at].to_owned(),
            kind: kind(kinds[at], units[at]),
            estimate: codes::estimate(estimates[at]),
            time: codes::time_axis(axes[at]),
            period: periods[at],
            period_kind: (!period_kind.is_empty()).then(|| kind(period_kind, period_units[at])),
        }
    };
    Ok((0..chunk.rows).map(info).collect())
}
