//! A trace seen from outside: rings drained while the program writes them, records made into calls
//! and into the figures of their contexts, and an account of what was dropped.
//!
//! What a ring holds is `tare-arena`'s business (LAYOUT.md). This file keeps what all threads
//! share; `track` knows where one thread is, `types` what code its methods ran in.

mod track;
mod types;

use crate::error::Result;
use crate::exact::{self, NameFile};
use crate::origins::Origins;
use crate::recorder::Source;
use std::collections::HashMap;
use std::fs::File;
use std::time::{Duration, Instant};
use tare_analysis::{Calls, ELAPSED, MethodType, PROBE_TIME, Sequences};
use tare_arena::trace::{Record, Rings, What};
use tare_arena::{Clock, Names, layout};
use tare_profile::facts::{ProbeCost, keys};
use tare_profile::{
    EventKind, EventTableId, FrameId, LossKind, Profile, RunInfo, SeriesId, SeriesInfo, Thread,
    ThreadId, ThreadKind, TimeAxis, Unit, ValueKind,
};
use tare_protocol::ExactStatus;
use track::{NOT_TRACED, Owner, Track};
use types::{Exit, Methods, Texts};

/// Records taken at one look: as many as can be written to the file before a ring is full again.
const AT_ONCE: u64 = 1 << 18;

/// Figures of contexts go to the file about once a second, calls as they come.
const TELLING: Duration = Duration::from_secs(1);
const BUCKET: u64 = 1_000_000_000;

/// Access flags of methods.
const STATIC: u32 = 0x0008;
const NATIVE: u32 = 0x0100;

/// A trace under way, as a source of calls.
pub struct Trace {
    rings: Rings,
    /// The agent's last word; whoever talks to the agent keeps it fresh.
    pub status: ExactStatus,
    tracks: HashMap<u32, Track>,
    shared: Option<Shared>,
    names: NameFile,
    origins: Origins,
    limits: Limits,
    began: Instant,
    /// The same moment by the monotonic clock, in nanoseconds: the zero of all times.
    zero: u64,
    told: Instant,
    /// Records of the program that were taken.
    pub events: u64,
    /// Calls that found no ring.
    lost: u64,
    /// Whether the last look found less than it could have taken.
    pub is_behind: bool,
    /// Set before the last look: nothing more will come.
    pub over: bool,
}

/// What bounds a trace.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events per second; what comes quicker fills the rings, and is dropped there.
    pub rate: Option<u64>,
    /// Events in all, after which the trace ends.
    pub most: u64,
}

/// What the threads' tracks have in common.
pub struct Shared {
    clock: Ticks,
    methods: Methods,
    known: Names,
    /// The last time that was seen, in ticks.
    last: u64,
    /// When all threads stood still for our sake, and for how long, in ticks.
    pauses: Vec<(u64, u64)>,
    /// What probes cost, as far as is known by now, in ticks.
    sequences: Sequences,
    calls: EventTableId,
    gaps: EventTableId,
    series: AllSeries,
    texts: Texts,
    /// What stands for methods that are not known, if there were some.
    not_traced: Option<FrameId>,
    /// By `Thread.threadId()`.
    threads: HashMap<u64, ThreadId>,
    /// The second in which figures were told last.
    told: u64,
    files: NameFile,
    origins: Origins,
}

#[derive(Clone, Copy)]
struct AllSeries {
    calls: SeriesId,
    net: SeriesId,
    elapsed: SeriesId,
    probes: SeriesId,
}

/// Ticks as nanoseconds since the start of the recording. The rate is fixed when the first records
/// come, so that what lay in order stays in order.
#[derive(Clone, Copy)]
struct Ticks {
    /// The first tick, and how long the recording had lasted then: it begins before anything is
    /// woven.
    began: u64,
    before: u64,
    /// Nanoseconds of a tick, times 2³².
    factor: u64,
}

impl Ticks {
    fn new(clock: &Clock, began: u64, before: u64) -> Self {
        const LONG: u64 = 1 << 40;
        let factor = (u128::from(clock.nanos(LONG)) << 32) / u128::from(LONG);
        Ticks { began, before, factor: factor as u64 }
    }

    fn length(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.factor)) >> 32) as u64
    }

    fn per_nano(self) -> f64 {
        (1_u64 << 32) as f64 / (self.factor.max(1)) as f64
    }

    fn nanos(self, time: u64) -> u64 {
        self.before.saturating_add(self.length(time.saturating_sub(self.began)))
    }

    fn signed(self, ticks: i64) -> i64 {
        self.length(ticks.unsigned_abs()).cast_signed() * ticks.signum()
    }
}

impl Shared {
    fn frame(&mut self, method: u32, profile: &mut Profile) -> FrameId {
        if method == NOT_TRACED {
            return *self.not_traced.get_or_insert_with(|| profile.special("[not traced]"));
        }
        if let Some(frame) = self.methods.get(method).and_then(|known| known.frame) {
            return frame;
        }
        if self.known.get(method).is_none()
            && let Ok(names) = self.files.read()
        {
            self.known = names;
        }
        let name = self.known.get(method);
        let has = |flag: u32| name.is_some_and(|name| name.access & flag != 0);
        let (is_static, is_native) = (has(STATIC), has(NATIVE));
        let frame = exact::add_frame(profile, name, &self.origins, method.cast_signed());
        if let Some(known) = self.methods.get(method) {
            known.frame = Some(frame);
            (known.is_static, known.is_native) = (is_static, is_native);
        }
        frame
    }

    fn kind(&mut self, method: u32, time: u64) -> MethodType {
        self.methods.get(method).map_or_else(MethodType::default, |known| known.at(time))
    }

    /// A ring is another thread's from now on. Virtual threads, of which there may be any number,
    /// share a row with the others that use their ring.
    fn give(&mut self, track: &mut Track, owner: &Owner, profile: &mut Profile) {
        track.tell(self, profile, self.told);
        let known = match owner.is_virtual {
            true => track.of_virtual_threads,
            false => self.threads.get(&owner.id).copied(),
        };
        track.thread = known.unwrap_or_else(|| {
            let thread = match owner.is_virtual {
                true => Thread { kind: ThreadKind::Virtual, ..Thread::default() },
                false => Thread { java_id: Some(owner.id), ..Thread::default() },
            };
            let name = if owner.is_virtual { "virtual threads" } else { &owner.name };
            let name = profile.strings.intern(name);
            let id = profile.threads.push(Thread { name, ..thread });
            match owner.is_virtual {
                true => track.of_virtual_threads = Some(id),
                false => drop(self.threads.insert(owner.id, id)),
            }
            id
        });
    }

    /// What the agent alone knows.
    fn note(&mut self, record: Record) {
        match record.what {
            What::Compiled | What::Discarded => {
                let tier = if record.what == What::Compiled { record.depth as u8 } else { 0 };
                if let Some(known) = self.methods.get(record.value) {
                    known.change(record.time, tier);
                }
            }
            What::Pause => self.pauses.push((record.time, u64::from(record.value))),
            _ => {}
        }
    }
}

impl Trace {
    pub fn new(
        [rings, names, tails]: [File; 3],
        status: ExactStatus,
        origins: Origins,
        limits: Limits,
        began: Instant,
        zero: u64,
    ) -> Result<Self> {
        Ok(Trace {
            rings: Rings::new(rings, tails)?,
            status,
            tracks: HashMap::new(),
            shared: None,
            names: NameFile::new(names),
            origins,
            limits,
            began,
            zero,
            told: began,
            events: 0,
            lost: 0,
            is_behind: false,
            over: false,
        })
    }

    /// Whether as many events have come as were asked for.
    pub fn is_full(&self) -> bool {
        self.events >= self.limits.most
    }

    /// Records that found no room in their rings, in all.
    pub fn dropped(&self) -> u64 {
        self.tracks.values().map(|track| track.dropped).sum()
    }

    /// How long threads have waited for room in their rings, in all, if some had to; known at the
    /// end.
    pub fn waited(&self) -> Option<Duration> {
        let shared = self.shared.as_ref()?;
        let ticks: u64 = self.tracks.values().map(|track| track.waited).sum();
        (ticks > 0).then(|| Duration::from_nanos(shared.clock.length(ticks)))
    }

    /// How many methods were woven, by the log of their names.
    pub fn methods(&self) -> Result<u64> {
        Ok(self.names.read()?.len() as u64)
    }

    pub fn threads(&self) -> usize {
        // One ring may be the agent's, who calibrated with it.
        self.tracks.values().filter(|track| track.thread != ThreadId::UNKNOWN).count()
    }

    /// How many more records may be taken now.
    fn allowance(&self) -> u64 {
        let left = self.limits.most.saturating_sub(self.events);
        if self.over {
            return left;
        }
        let by_rate = self.limits.rate.map_or(u64::MAX, |rate| {
            let so_far = self.began.elapsed().as_secs_f64() * rate as f64;
            (so_far as u64).saturating_sub(self.events)
        });
        left.min(by_rate).min(AT_ONCE)
    }

    fn begin(&mut self, profile: &mut Profile) -> Result<()> {
        let head = self.rings.head()?;
        let axis = TimeAxis::Buckets { width: BUCKET };
        let mut add = |kind| profile.add_series(SeriesInfo::new("exact", kind).with_time(axis));
        let named =
            |name: &str| ValueKind::Other { name: name.to_owned(), unit: Unit::Nanoseconds };
        let series = AllSeries {
            calls: add(ValueKind::Invocations),
            net: add(ValueKind::WallTime),
            elapsed: add(named(ELAPSED)),
            probes: add(named(PROBE_TIME)),
        };
        let before = head.began_at.saturating_sub(self.zero);
        let clock = Ticks::new(&head.clock, head.began, before);
        let calls = Calls::of(&ProbeCost::of_lines(&self.status.calibration), clock.per_nano());
        let mut texts = Texts::default();
        for exit in Exit::ALL {
            texts.exits[exit as usize] = profile.strings.intern(exit.name());
        }
        for kind in MethodType::all() {
            texts.types[kind.index()] = profile.strings.intern(&kind.name());
        }
        self.shared = Some(Shared {
            clock,
            methods: Methods::default(),
            known: Names::default(),
            last: head.began,
            pauses: Vec::new(),
            sequences: Sequences::new(calls),
            calls: profile.events_of(&EventKind::call()),
            gaps: profile.events_of(&EventKind::gap()),
            series,
            texts,
            not_traced: None,
            threads: HashMap::new(),
            told: 0,
            files: self.names.clone(),
            origins: std::mem::take(&mut self.origins),
        });
        Ok(())
    }
}

/// The type that one of the agent's empty methods stands for.
#[inline]
fn calibrates(record: Record) -> Option<MethodType> {
    let types = layout::TYPES.cast_unsigned();
    (record.value >= types && matches!(record.what, What::Entry | What::Exit | What::Thrown))
        .then(|| MethodType::from_index(record.value - types))
        .flatten()
}

impl Source for Trace {
    fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
        if self.shared.is_none() {
            self.begin(profile)?;
        }
        let allowance = self.allowance();
        let Some(shared) = self.shared.as_mut() else { return Ok(()) };
        let (tracks, agent) = (&mut self.tracks, self.rings.agent());
        let mut events = 0;
        let taken = self.rings.drain(allowance, |portion| {
            if portion.ring == agent {
                portion.records().for_each(|record| shared.note(record));
                return;
            }
            let track = tracks.entry(portion.ring).or_insert_with(Track::new);
            track.dropped = portion.dropped;
            for record in portion.records() {
                if let Some(kind) = calibrates(record) {
                    track.calibrate(record, kind, &mut shared.sequences);
                } else if track.take_call(record, shared, profile) {
                    events += 1;
                } else if let Some(owner) = track.take(record, shared, profile) {
                    shared.give(track, &owner, profile);
                }
            }
        })?;
        self.events += events;
        self.is_behind = taken == allowance;
        if self.over {
            for (ring, gap) in self.rings.gaps()? {
                let track = tracks.get_mut(&ring);
                track.into_iter().for_each(|track| drop(track.take(gap, shared, profile)));
            }
            for (ring, waited) in self.rings.waited()? {
                tracks.get_mut(&ring).into_iter().for_each(|track| track.waited = waited);
            }
            let head = self.rings.head()?;
            self.lost = head.lost;
            let last = shared.last.max(head.clock.now);
            tracks.values_mut().for_each(|track| track.end(last, shared, profile));
        }
        if self.over || self.told.elapsed() >= TELLING {
            self.told = Instant::now();
            let time = shared.told;
            tracks.values_mut().for_each(|track| track.tell(shared, profile, time));
            shared.told = now / BUCKET * BUCKET;
        }
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        run.facts.set(keys::TRACE_EVENTS, &self.events);
        run.facts.set_known(keys::TRACE_WAITED, self.waited());
        run.facts.set(keys::CALIBRATION, &ProbeCost::of_lines(&self.status.calibration));
        if let Some(shared) = &self.shared {
            run.facts.set(keys::SEQUENCES, &shared.sequences.costs(shared.clock.per_nano()));
            shared.origins.account(run);
        }
        for refused in &self.status.refused {
            run.lose(LossKind::Refused, &refused.what, refused.count, &refused.reason);
        }
        let by_thread = self.tracks.values().filter(|track| track.dropped > 0);
        for track in by_thread {
            let name = format!("events of {}", track.owner);
            run.lose(LossKind::Dropped, &name, track.dropped, "the thread's ring was full");
        }
        if self.lost > 0 {
            run.lose(LossKind::Dropped, "calls", self.lost, "there was no memory for a ring");
        }
        if self.is_full() {
            let reason = "the trace ended with as many events as were asked for (--events)";
            run.lose(LossKind::Skipped, "the rest of the program", 1, reason);
        }
    }
}
