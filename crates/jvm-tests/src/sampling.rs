//! A front end for sampling that does nothing but collect: tests of the agent look at what came.

use crate::control::Control;
use std::collections::{BTreeMap, HashMap};
use tare_arena::samples::{
    Frame, Record, Sample, SampleMethod, SampleThread, Stream, Totals, Trace,
};
use tare_protocol::{EngineName, EnginePlan, Request, Response, SamplePlan, SampleStatus};

/// A session under way.
pub struct Sampling {
    pub control: Control,
    stream: Stream,
    samples: Samples,
}

/// What has come so far.
#[derive(Default)]
pub struct Samples {
    pub all: Vec<Sample>,
    pub traces: HashMap<u32, Trace>,
    pub methods: HashMap<u64, SampleMethod>,
    pub threads: BTreeMap<u32, SampleThread>,
    pub ended: Vec<u32>,
}

/// A stack as text, the innermost frame first: `Class.method`, `[special]`, `native`.
pub type Stack = Vec<String>;

impl Sampling {
    /// Begins a session in a JVM that has the agent already.
    pub fn start(pid: u32, plan: &SamplePlan) -> Self {
        let mut control = Control::connect(pid);
        control.greet();
        Sampling::start_on(control, plan).unwrap_or_else(|e| panic!("no sampling: {e}"))
    }

    pub fn start_on(mut control: Control, plan: &SamplePlan) -> Result<Self, String> {
        match control.ask(&Request::Start(EnginePlan::Sampling(Box::new(plan.clone())))) {
            Response::Ok => {}
            other => return Err(format!("{other:?}")),
        }
        let files = std::mem::take(&mut control.files).try_into();
        let files = files.map_err(|_| "the answer lacks its descriptors")?;
        let stream = Stream::new(files).map_err(|e| e.to_string())?;
        Ok(Sampling { control, stream, samples: Samples::default() })
    }

    pub fn drain(&mut self) -> &Samples {
        let samples = &mut self.samples;
        self.stream.drain(|record| samples.take(record)).expect("a readable stream");
        samples
    }

    pub fn totals(&self) -> Totals {
        self.stream.totals().expect("a readable stream")
    }

    pub fn status(&mut self) -> SampleStatus {
        self.control.status().sampling().cloned().expect("a session is on")
    }

    /// Ends the session; the connection stays.
    pub fn stop(mut self) -> (Samples, Totals, Control) {
        assert_eq!(self.control.ask(&Request::Stop(EngineName::Sampling)), Response::Ok);
        self.drain();
        let totals = self.totals();
        assert!(totals.ended);
        (self.samples, totals, self.control)
    }

    /// What is left after the JVM or the connection has ended.
    pub fn rest(mut self) -> (Samples, Totals) {
        let samples = &mut self.samples;
        self.stream.drain_rest(|record| samples.take(record)).expect("a readable stream");
        let totals = self.totals();
        (self.samples, totals)
    }
}

impl Samples {
    pub(crate) fn take(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.all.push(sample),
            Record::Trace(trace) => {
                self.traces.insert(trace.id, trace);
            }
            Record::Method(method) => {
                self.methods.insert(method.key, method);
            }
            Record::Thread(thread) => {
                self.threads.insert(thread.number, thread);
            }
            Record::ThreadEnd { thread, .. } => self.ended.push(thread),
            Record::EventKind(_) | Record::Text(_) | Record::Event(_) => {}
        }
    }

    /// The stack of a sample.
    pub fn stack(&self, sample: &Sample) -> Stack {
        let trace = &self.traces[&sample.trace];
        trace.frames.iter().map(|frame| self.frame(frame)).collect()
    }

    pub fn frame(&self, frame: &Frame) -> String {
        match frame {
            Frame::Java { method, .. } => match self.methods.get(method) {
                Some(method) => format!("{}.{}", method.class, method.name),
                None => "unnamed".to_owned(),
            },
            Frame::Native { .. } => "native".to_owned(),
            Frame::Kernel { .. } => "kernel".to_owned(),
            Frame::Special(special) => special.name().to_owned(),
            Frame::Class { text } => format!("class {text}"),
            Frame::Other => "other".to_owned(),
        }
    }

    /// Weight by the innermost Java method.
    pub fn by_leaf(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for sample in &self.all {
            let stack = self.stack(sample);
            let leaf = stack.iter().find(|frame| *frame != "native" && *frame != "kernel");
            *sums.entry(leaf.cloned().unwrap_or_default()).or_default() += sample.weight;
        }
        sums
    }

    pub fn thread_name(&self, sample: &Sample) -> &str {
        self.threads.get(&sample.thread).map_or("", |thread| &thread.name)
    }

    pub fn weight(&self) -> u64 {
        self.all.iter().map(|sample| sample.weight).sum()
    }
}
