//! A front end for sampled allocations that does nothing but collect: tests of the agent look at
//! what came.

use crate::control::Control;
use crate::sampling::{Samples, Stack};
use std::collections::{BTreeMap, HashMap, HashSet};
use tare_arena::samples::{BORN_OLD, Frame, Record, Stream, StreamEvent, Totals};
use tare_protocol::{
    AllocPlan, AllocStatus, EngineName, EnginePlan, Request, Response, SamplePlan,
};

/// A recording under way.
pub struct Allocating {
    pub control: Control,
    stream: Stream,
    pub came: Allocations,
}

/// One object that was met.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub number: u64,
    pub size: u64,
    pub interval: u64,
    pub born: u64,
    pub thread: u32,
    pub java_id: u64,
    pub trace: u32,
}

/// An object that is told to live.
#[derive(Clone, Copy, Debug)]
pub struct Survivor {
    pub level: u64,
    /// The last collection that is known to be over.
    pub seen: u64,
}

/// What has come so far. Taking it in asserts that events come in an order that makes sense.
#[derive(Default)]
pub struct Allocations {
    /// Names of methods, threads, stacks.
    pub samples: Samples,
    pub all: Vec<Allocation>,
    pub live: BTreeMap<u64, Survivor>,
    pub gone: u64,
    pub let_go: u64,
    /// Pauses of the JVM's collectors.
    pub pauses: u64,
    /// `below`, `epoch`, `entries`, `unproven` of each sweep.
    pub sweeps: Vec<[u64; 4]>,
    kinds: HashMap<u32, String>,
    texts: HashMap<u32, String>,
    told: HashSet<u64>,
}

impl Allocating {
    /// Begins in a JVM that has the agent already.
    pub fn start(pid: u32, plan: &AllocPlan) -> Self {
        let mut control = Control::connect(pid);
        control.greet();
        Self::start_on(control, plan).unwrap_or_else(|e| panic!("no allocations: {e}"))
    }

    pub fn start_on(mut control: Control, plan: &AllocPlan) -> Result<Self, String> {
        ask(&mut control, EnginePlan::Alloc(Box::new(plan.clone())))?;
        Self::on(control)
    }

    /// The same on the stream of a sampler that is started before.
    pub fn start_with(pid: u32, samples: &SamplePlan, plan: &AllocPlan) -> Self {
        let mut control = Control::connect(pid);
        control.greet();
        ask(&mut control, EnginePlan::Sampling(Box::new(samples.clone()))).expect("samples");
        assert_eq!(control.files.len(), 2);
        ask(&mut control, EnginePlan::Alloc(Box::new(plan.clone()))).expect("allocations");
        assert_eq!(control.files.len(), 2, "the second engine has no descriptors of its own");
        Self::on(control).expect("a stream")
    }

    fn on(mut control: Control) -> Result<Self, String> {
        let files = std::mem::take(&mut control.files).try_into();
        let files = files.map_err(|_| "the answer lacks its descriptors")?;
        let stream = Stream::new(files).map_err(|e| e.to_string())?;
        Ok(Allocating { control, stream, came: Allocations::default() })
    }

    pub fn drain(&mut self) -> &Allocations {
        let came = &mut self.came;
        self.stream.drain(|record| came.take(record)).expect("a readable stream");
        came
    }

    pub fn totals(&self) -> Totals {
        self.stream.totals().expect("a readable stream")
    }

    pub fn status(&mut self) -> AllocStatus {
        self.control.status().alloc().cloned().expect("allocations are recorded")
    }

    /// Ends it; the connection stays.
    pub fn stop(mut self) -> (Allocations, Control) {
        assert_eq!(self.control.ask(&Request::Stop(EngineName::Alloc)), Response::Ok);
        self.drain();
        (self.came, self.control)
    }
}

fn ask(control: &mut Control, plan: EnginePlan) -> Result<(), String> {
    match control.ask(&Request::Start(plan)) {
        Response::Ok => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

impl Allocations {
    fn take(&mut self, record: Record) {
        match record {
            Record::EventKind(kind) => {
                let before = self.kinds.insert(kind.id, kind.name);
                assert_eq!(before, None, "two kinds have one number");
            }
            Record::Text(text) => {
                let before = self.texts.insert(text.id, text.text);
                assert_eq!(before, None, "two texts have one number");
            }
            Record::Event(event) => self.event(&event),
            other => self.samples.take(other),
        }
    }

    fn event(&mut self, event: &StreamEvent) {
        let kind = self.kinds.get(&event.head.kind).expect("a kind that was declared");
        match (kind.as_str(), &event.values[..]) {
            ("allocation", &[number, size, interval, born]) => {
                let head = &event.head;
                assert!(number == 0 || self.told.insert(number), "{number} came twice");
                self.all.push(Allocation {
                    number,
                    size,
                    interval,
                    born,
                    thread: head.thread,
                    java_id: head.java_id,
                    trace: head.trace,
                });
            }
            ("live-survived", &[number, level, epoch]) => {
                assert!(self.told.contains(&number), "{number} lives before it is allocated");
                let before = self.live.insert(number, Survivor { level, seen: epoch });
                assert!(before.is_none(), "{number} was told twice");
            }
            ("live-gone", &[number, epoch]) => {
                let lived = self.live.remove(&number).is_some();
                assert!(lived || number & BORN_OLD != 0, "{number} was not told to live");
                if epoch == u64::MAX { self.let_go += 1 } else { self.gone += 1 }
            }
            ("live-level", &[number, level]) => {
                let survivor = self.live.get_mut(&number).expect("one that was told to live");
                assert_eq!(level, survivor.level + 1);
                survivor.level = level;
            }
            ("live-swept", &[below, epoch, entries, unproven, ..]) => {
                if let Some(last) = self.sweeps.last() {
                    assert!(below >= last[0] && epoch >= last[1], "{last:?}, {below}, {epoch}");
                }
                self.sweeps.push([below, epoch, entries, unproven]);
            }
            ("gc", _) => self.pauses += 1,
            ("safepoint" | "compilers" | "uncommon-traps", _) => {}
            (other, values) => panic!("{other} {values:?}"),
        }
    }

    /// Collections that are over, by the last sweep.
    pub fn epoch(&self) -> u64 {
        self.sweeps.last().map_or(0, |sweep| sweep[1])
    }

    /// The signature of an object's class.
    pub fn class(&self, of: &Allocation) -> &str {
        match self.samples.traces[&of.trace].frames.first() {
            Some(Frame::Class { text }) => &self.texts[text],
            other => panic!("no class but {other:?}"),
        }
    }

    /// Its stack without the class, the innermost method first.
    pub fn stack(&self, of: &Allocation) -> Stack {
        let frames = &self.samples.traces[&of.trace].frames[1..];
        frames.iter().map(|frame| self.samples.frame(frame)).collect()
    }

    /// Objects of a class that were allocated in a method, by its end.
    pub fn of<'a>(
        &'a self,
        class: &'a str,
        method: &'a str,
    ) -> impl Iterator<Item = &'a Allocation> {
        self.all.iter().filter(move |one| {
            let stack = self.stack(one);
            self.class(one) == class && stack.first().is_some_and(|top| top.ends_with(method))
        })
    }

    /// Those of them that are told to live, with their ages.
    pub fn living(&self, class: &str, method: &str) -> Vec<u64> {
        let epoch = self.epoch();
        let alive = self.of(class, method).filter(|one| self.live.contains_key(&one.number));
        alive.map(|one| epoch.saturating_sub(one.born)).collect()
    }
}
