//! The last seconds and the last minutes of a recording that grows: what came is taken once, and
//! made into tables as often as somebody looks.

use crate::history::{Gauges, History};
use crate::pages::{
    Callable, Detail, Load, Methods, Page, Pause, Seconds, load_table, loads, lock_table,
    method_table, named, pause_table, thread_table,
};
use crate::table::{Table, bytes, counted, time};
use crate::window::{LONGEST, Window};
use std::collections::{HashMap, VecDeque};
use tare_profile::facts::keys;
use tare_profile::{ContextId, EventKind, FieldValue, Profile, ValueKind, Wait, collections};

/// Collections and classes that are listed at most.
const LISTED: usize = 500;

/// How the names of classes begin that Tare brings into a JVM.
const OURS: &str = "java.lang.Tare";

/// What has come is at most this much older than now: a recorder writes once a second.
const LAG: u64 = 1_100_000_000;

/// What the machine tells of the JVM and of us, for one second; processors are 1.0 for one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Machine {
    pub cpu: Option<f64>,
    /// This process, and what looks into the JVM in the JVM.
    pub tare: Option<f64>,
    /// Where nothing is recorded: the time that collections took, of a second.
    pub gc: Option<f64>,
}

/// What somebody looks at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Wanted {
    pub pages: Vec<Page>,
    /// The row whose details are wanted, of the first of the pages.
    pub selected: Option<String>,
    /// Nanoseconds to look back.
    pub span: u64,
}

/// What there is to see.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// By page; empty are those that were not wanted.
    pub tables: Vec<Table>,
    pub detail: Detail,
    /// What can be woven, by the keys of methods.
    pub callables: HashMap<String, Callable>,
    /// A line for each page.
    pub words: Vec<String>,
    /// How long the seconds are that it is of.
    pub seconds: f64,
    pub samples: u64,
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot {
            tables: Page::ALL.into_iter().map(Page::empty).collect(),
            detail: Detail::default(),
            callables: HashMap::new(),
            words: vec![String::new(); Page::ALL.len()],
            seconds: 0.0,
            samples: 0,
        }
    }
}

#[derive(Default)]
pub struct Model {
    window: Window,
    pub history: History,
    pauses: VecDeque<Pause>,
    loads: VecDeque<Load>,
    loaded: u64,
    unloaded: u64,
    /// How much later our clock is than that of the recording, by the row that came soonest.
    offset: Option<i64>,
    /// The latest time of what came.
    latest: u64,
    /// When the last second ended, by our clock.
    clock: u64,
    /// What came since then.
    new: New,
    heap: Option<f64>,
    /// What was told last, where nothing new has come.
    last: Gauges,
    /// What handlers of the sampler took so far, in nanoseconds.
    handlers: Option<u64>,
    /// By context, whether it is in code of ours that the program's threads run.
    ours: HashMap<ContextId, bool>,
}

#[derive(Default)]
struct New {
    /// Whether anything came.
    any: bool,
    allocated: i64,
    paused: u64,
    /// Waits for locks, from when to when by the clock of the recording.
    waits: Vec<(u64, u64)>,
    /// What our own code took of the program's threads, in nanoseconds.
    ours: u64,
}

impl Model {
    /// From now on another recording is taken, whose times begin anew. Lists and lines stay.
    pub fn begin(&mut self) {
        self.window = Window::default();
        self.offset = None;
        self.latest = 0;
        self.new = New::default();
        self.handlers = None;
        self.ours.clear();
    }

    /// Takes the rows of a profile; `elapsed` is our clock, in nanoseconds.
    pub fn take(&mut self, profile: &mut Profile, elapsed: u64) {
        let rows = profile.all_series().flat_map(|(_, series)| series.rows()).map(|row| row.time);
        let events = profile.all_events().flat_map(|(_, table)| table.events());
        let ends = events.map(|event| event.time.saturating_add(event.duration));
        if let Some(latest) = rows.chain(ends).max() {
            self.latest = self.latest.max(latest);
            self.new.any = true;
            let offset = elapsed.cast_signed() - self.latest.cast_signed();
            self.offset = Some(self.offset.map_or(offset, |known| known.min(offset)));
        }
        let alloc = named(profile, "alloc", &ValueKind::AllocatedBytes);
        let alloc = alloc.map(|id| profile.series(id));
        let collections = collections(profile);
        let last = collections.last().map(|last| (last.end(), last.heap_after));
        for row in alloc.into_iter().flat_map(|series| series.rows()) {
            self.new.allocated = self.new.allocated.saturating_add(row.value);
            if last.is_none_or(|(end, _)| row.time > end) {
                self.heap = self.heap.map(|heap| heap + row.value as f64);
            }
        }
        if let Some(after) = last.and_then(|(_, after)| after) {
            let since = alloc.into_iter().flat_map(|series| series.rows());
            let since = since.filter(|row| last.is_some_and(|(end, _)| row.time > end));
            self.heap = Some(after as f64 + since.map(|row| row.value as f64).sum::<f64>());
        }
        for collection in collections {
            self.new.paused = self.new.paused.saturating_add(collection.duration);
            self.pauses.push_back(Pause { at: self.moved(collection.time), collection });
        }
        let offset = self.offset.unwrap_or(0);
        let (new, unloads, costs) = loads(profile, |time| moved(time, offset));
        self.loaded += new.len() as u64;
        self.unloaded += unloads;
        self.loads.extend(new);
        for load in &mut self.loads {
            load.cost += costs.get(&load.number).copied().unwrap_or(0);
        }
        while self.pauses.len() > LISTED {
            self.pauses.pop_front();
        }
        while self.loads.len() > LISTED {
            self.loads.pop_front();
        }
        self.new.waits.extend(contentions(profile));
        if let Some(now) = profile.run.facts.get(keys::SAMPLER_TIME) {
            let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            let before = self.handlers.replace(now).unwrap_or(now);
            self.new.ours += now.saturating_sub(before);
        }
        self.new.ours += self.in_our_code(profile);
        self.window.take(profile);
    }

    /// Processor time that samples met in the classes that an engine brings along.
    fn in_our_code(&mut self, profile: &Profile) -> u64 {
        let Some(cpu) = named(profile, "cpu", &ValueKind::CpuTime) else { return 0 };
        let is_ours = |context| {
            let mut classes = profile.contexts.frames(context).map(|frame| {
                let method = profile.method_of(frame);
                profile.strings.get(method.class)
            });
            classes.any(|class| class.starts_with(OURS))
        };
        let rows = profile.series(cpu).rows();
        let ours = rows
            .filter(|row| *self.ours.entry(row.context).or_insert_with(|| is_ours(row.context)));
        ours.map(|row| row.value.max(0).cast_unsigned()).sum()
    }

    fn moved(&self, time: u64) -> u64 {
        moved(time, self.offset.unwrap_or(0))
    }

    /// Another second is over.
    pub fn second(&mut self, machine: Machine, elapsed: u64) {
        let new = std::mem::take(&mut self.new);
        let by_clock = self.offset.map_or(0, |offset| (elapsed.cast_signed() - offset).max(0));
        let before = self.window.now;
        self.window.advance(self.latest.max(by_clock.cast_unsigned().saturating_sub(LAG)));
        // Whoever comes late to a recording gets a long time at once, of which no rate is told.
        let passed = self.window.now.saturating_sub(before).max(500_000_000);
        let is_one = before > 0 && passed < 10_000_000_000;
        let rate = |sum: f64| sum / (passed as f64 / 1e9);
        let mut gauges = Gauges {
            cpu: machine.cpu,
            heap: self.heap,
            tare: machine.tare.map(|tare| tare + new.ours as f64 / passed as f64),
            gc: machine.gc,
            ..Gauges::default()
        };
        if new.any && is_one {
            gauges.alloc = Some(rate(new.allocated as f64));
            gauges.gc = Some(rate(new.paused as f64 / 1e9));
            gauges.blocked = Some(0.0);
        } else if self.offset.is_some() {
            // Nothing came: it may be on its way.
            let is_late = self.window.now.saturating_sub(self.latest) > 2 * LAG;
            let or_last = |last: Option<f64>| if is_late { Some(0.0) } else { last };
            gauges.alloc = or_last(self.last.alloc);
            gauges.gc = or_last(self.last.gc);
            gauges.blocked = Some(0.0);
        }
        self.last = gauges;
        self.history.push(self.clock, elapsed.max(self.clock + 1), gauges);
        self.clock = elapsed;
        let offset = self.offset.unwrap_or(0);
        for (from, to) in new.waits {
            self.history.blocked(moved(from, offset), moved(to, offset));
        }
    }

    /// What is to be seen; `profile` is the one whose rows were taken, and has none again
    /// afterwards.
    pub fn snapshot(&self, profile: &mut Profile, wanted: &Wanted) -> Snapshot {
        let mut shown = Snapshot::default();
        let from = self.window.since(wanted.span.min(LONGEST));
        let to = self.window.now.max(from + 1);
        shown.seconds = (to - from) as f64 / 1e9;
        let needs_rows = |page: &Page| !matches!(page, Page::Collections | Page::Classes);
        let is_filled = wanted.pages.iter().any(needs_rows);
        if is_filled {
            // There may be many thousands of waits in a second, and not every page tells of them.
            let waits = wanted.pages.iter().any(|page| matches!(page, Page::Locks | Page::Threads));
            self.window.fill(profile, from, waits);
        }
        for (at, page) in wanted.pages.iter().enumerate() {
            let seconds = Seconds { profile, from, to };
            let selected = wanted.selected.as_deref().filter(|_| at == 0);
            let (table, detail) = match page {
                Page::Methods => {
                    let Methods { table, callables, detail, samples, idle } =
                        method_table(&seconds, selected);
                    shown.callables = callables;
                    shown.samples = samples;
                    shown.words[page.number()] = idle.unwrap_or_default();
                    (table, detail)
                }
                Page::Threads => thread_table(&seconds, selected),
                Page::Collections => pause_table(self.pauses.iter(), self.clock, selected),
                Page::Locks => lock_table(&seconds, selected),
                Page::Classes => load_table(self.loads.iter(), self.clock, selected),
            };
            shown.tables[page.number()] = table;
            if at == 0 {
                shown.detail = detail;
            }
        }
        shown.words[Page::Collections.number()] = self.of_pauses(wanted.span);
        shown.words[Page::Classes.number()] = self.of_classes(wanted.span);
        if is_filled {
            profile.forget_rows();
        }
        shown
    }

    fn of_pauses(&self, span: u64) -> String {
        let since = self.clock.saturating_sub(span);
        let recent = || self.pauses.iter().filter(|pause| pause.at >= since);
        let lengths = || recent().map(|pause| pause.collection.duration as f64);
        let longest = lengths().fold(0.0, f64::max);
        let freed: u64 = recent().filter_map(|pause| pause.collection.freed()).sum();
        match recent().count() {
            0 => "no collection".to_owned(),
            count => format!(
                "{count} collections, {} in all, the longest {}, {} freed",
                time(lengths().sum()),
                time(longest),
                bytes(freed as f64),
            ),
        }
    }

    fn of_classes(&self, span: u64) -> String {
        let since = self.clock.saturating_sub(span);
        let recent = self.loads.iter().filter(|load| load.at >= since).count();
        format!(
            "{recent} loaded, {} since the beginning, {} unloaded",
            counted(self.loaded as f64),
            counted(self.unloaded as f64)
        )
    }
}

fn moved(time: u64, offset: i64) -> u64 {
    time.saturating_add_signed(offset)
}

/// Waits for locks that somebody had.
fn contentions(profile: &Profile) -> Vec<(u64, u64)> {
    let name = EventKind::lock().name;
    let mut found = Vec::new();
    for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == name) {
        let Some(operation) = table.field_named("operation") else { continue };
        for (row, event) in table.events().enumerate() {
            let Some(FieldValue::Text(text)) = table.field(row, operation) else { continue };
            let wait = Wait::from_name(profile.strings.get(text));
            if wait.is_some_and(Wait::is_contention) {
                found.push((event.time, event.time.saturating_add(event.duration)));
            }
        }
    }
    found
}
