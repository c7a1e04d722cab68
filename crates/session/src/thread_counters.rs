//! What the processor and the kernel count of each thread of a JVM, beside what is measured in it:
//! instructions, cache misses, page faults, context switches. From outside, so the program pays
//! nothing but what the counters themselves cost. What the machine does not have is said to be
//! absent, with the reason.

use crate::error::Result;
use crate::perf::{self, Counter, Event};
use crate::recorder::Source;
use std::collections::{HashMap, HashSet};
use std::fs;
use tare_profile::{
    ContextId, LossKind, Profile, Row, RunInfo, SeriesId, SeriesInfo, Thread, ThreadId, TimeAxis,
    Unit, ValueKind,
};

const EVENTS: [(Event, &str); 4] = [
    (Event::Instructions, "instructions"),
    (Event::CacheMisses, "cache-misses"),
    (Event::PageFaults, "page-faults"),
    (Event::ContextSwitches, "context-switches"),
];

/// Threads that are counted at most: each takes a descriptor for every counter.
const THREADS: usize = 200;
const BUCKET: u64 = 1_000_000_000;

/// ThreadCounters on all threads of a JVM.
pub struct ThreadCounters {
    pid: u32,
    /// Those that this machine has.
    events: Vec<(Event, &'static str)>,
    absent: Vec<(&'static str, String)>,
    threads: HashMap<u32, Counted>,
    series: Vec<SeriesId>,
    /// Threads for which there was no room, or no right.
    left_out: HashSet<u32>,
}

/// One thread.
struct Counted {
    counters: Vec<Counter>,
    before: Vec<u64>,
    thread: Option<ThreadId>,
}

impl ThreadCounters {
    /// Begins to count what the machine lets us.
    pub fn begin(pid: u32) -> Self {
        let (mut events, mut absent) = (Vec::new(), Vec::new());
        for (event, name) in EVENTS {
            match open(event, 0) {
                Ok(_) => events.push((event, name)),
                Err(error) => absent.push((name, perf::reason(&error))),
            }
        }
        let (threads, series, left_out) = (HashMap::new(), Vec::new(), HashSet::new());
        let mut counters = ThreadCounters { pid, events, absent, threads, series, left_out };
        counters.find();
        counters
    }

    /// Threads that are new; whether each of those known still lives.
    fn find(&mut self) -> HashSet<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        let tasks = tasks.into_iter().flatten().flatten();
        let alive: HashSet<u32> =
            tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        for &thread in &alive {
            if self.threads.contains_key(&thread) || self.left_out.contains(&thread) {
                continue;
            }
            let counters = self.events.iter().map(|(event, _)| open(*event, thread));
            match counters.collect::<Result<Vec<_>, _>>() {
                Ok(counters) if self.threads.len() < THREADS => {
                    let before = vec![0; counters.len()];
                    self.threads.insert(thread, Counted { counters, before, thread: None });
                }
                _ => drop(self.left_out.insert(thread)),
            }
        }
        alive
    }

    fn name_of(&self, thread: u32) -> String {
        let name = fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.pid));
        name.map(|name| name.trim().to_owned()).unwrap_or_default()
    }
}

/// With the kernel's share where that is allowed: most page faults and switches are there.
fn open(event: Event, thread: u32) -> std::io::Result<Counter> {
    Counter::open(event, thread, true).or_else(|_| Counter::open(event, thread, false))
}

impl Source for ThreadCounters {
    fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
        if self.series.is_empty() {
            let axis = TimeAxis::Buckets { width: BUCKET };
            self.series = self
                .events
                .iter()
                .map(|(_, name)| {
                    let kind = ValueKind::Other { name: (*name).to_owned(), unit: Unit::Count };
                    profile.add_series(SeriesInfo::new("counters", kind).with_time(axis))
                })
                .collect();
        }
        let alive = self.find();
        let time = now / BUCKET * BUCKET;
        let names: HashMap<u32, String> = self
            .threads
            .iter()
            .filter(|(_, counted)| counted.thread.is_none())
            .map(|(tid, _)| (*tid, self.name_of(*tid)))
            .collect();
        for (tid, counted) in &mut self.threads {
            let thread = *counted.thread.get_or_insert_with(|| {
                let name = names.get(tid).map_or("", String::as_str);
                let name = profile.strings.intern(name);
                profile.threads.push(Thread {
                    name,
                    os_id: Some(u64::from(*tid)),
                    ..Thread::default()
                })
            });
            for (place, counter) in counted.counters.iter().enumerate() {
                let Ok(value) = counter.read() else { continue };
                let more = value.saturating_sub(counted.before[place]);
                counted.before[place] = value;
                if more > 0 {
                    let more = i64::try_from(more).unwrap_or(i64::MAX);
                    let row = Row::new(ContextId::ROOT, thread, more).at(time);
                    profile.series_mut(self.series[place]).push(row);
                }
            }
        }
        self.threads.retain(|tid, _| alive.contains(tid));
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        for (name, reason) in &self.absent {
            run.lose(LossKind::Refused, name, 1, reason);
        }
        if !self.left_out.is_empty() {
            let reason = "there are too many threads, or the kernel refused their counters";
            let count = self.left_out.len() as u64;
            run.lose(LossKind::Skipped, "counters of threads", count, reason);
        }
    }
}
