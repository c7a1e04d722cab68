//! A short time in which a program is sampled while nothing else is woven, before its calls are
//! counted: the samples go into the same recording, and reports join the two.
//!
//! Some methods are counted meanwhile, which `reference_methods` chooses: what joins the two must
//! know how much was done.

use crate::client::Agent;
use crate::engines::STEP;
use crate::error::Result;
use crate::observer::{Note, Observer};
use crate::reference_methods::{Counting, Passed, settle, since};
use crate::stream::{DRAIN, StreamSource, Told};
use crate::words;
use std::time::{Duration, Instant};
use tare_analysis::Passages;
use tare_attach::Jvm;
use tare_profile::facts::{Facts, Mark, keys};
use tare_protocol::{EngineName, EnginePlan, ExactPlan, Request, SamplePlan};

/// Short, since there is little time, and a program bears it for so long.
const INTERVAL: Duration = Duration::from_millis(1);
const RING: u64 = 8 << 20;

/// What came of it: samples, when the zero of their times was, and the calls of marks meanwhile.
pub struct Window {
    pub sampling: StreamSource,
    pub began: Instant,
    length: Duration,
    marks: Passed,
}

impl Window {
    /// What the recording says of it.
    pub fn account(&self, facts: &mut Facts) {
        facts.set(keys::SAMPLED_BEFORE, &self.length);
        let mark = |(method, calls): (&String, &Passages)| Mark {
            method: method.clone(),
            calls: calls.count.max(0).unsigned_abs(),
            spread: calls.spread(),
        };
        facts.set(keys::MARKS, &self.marks.iter().map(mark).collect());
    }
}

/// Samples a JVM for so long, or until the observer wants it to end, before `plan` is woven.
pub fn sample(
    agent: &mut Agent,
    jvm: &Jvm,
    plan: &ExactPlan,
    length: Duration,
    observer: &mut dyn Observer,
) -> Result<Window> {
    let word = format!("sampling for {} before any method is timed", words::time(length));
    observer.note(Note::Aside(word));
    let mut counting = Counting::begin(agent, jvm, plan, observer)?;
    if let Some(counting) = &counting {
        settle(agent, jvm, observer);
        let word = format!("methods counted during the sampling: {}", counting.methods);
        observer.note(Note::Aside(word));
    }
    let before = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    let (sampling, began) = sample_for(agent, jvm, length, observer)?;
    let length = began.elapsed();
    let after = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    if let Some(counting) = counting {
        counting.stop(agent, observer)?;
    }
    let marks = since(&before.unwrap_or_default(), after.unwrap_or_default());
    let marks = marks.into_iter().filter(|(_, calls)| calls.count > 0).collect();
    Ok(Window { sampling, began, length, marks })
}

pub fn sample_for(
    agent: &mut Agent,
    jvm: &Jvm,
    length: Duration,
    observer: &dyn Observer,
) -> Result<(StreamSource, Instant)> {
    let plan = SamplePlan {
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        memory: RING,
        ..SamplePlan::default()
    };
    let stream = agent.tell_for_files(&Request::Start(EnginePlan::Sampling(Box::new(plan))))?;
    let began = Instant::now();
    let mut told = Told::default();
    told.update(&agent.status()?);
    let mut sampling = StreamSource::new(stream, jvm, told, None)?;
    let mut drained = Instant::now();
    while began.elapsed() < length && !observer.wants_end() && !agent.has_gone() {
        std::thread::sleep(STEP);
        if drained.elapsed() >= DRAIN {
            drained = Instant::now();
            if !sampling.drain() {
                break;
            }
        }
    }
    if let Ok(status) = agent.status() {
        sampling.told.update(&status);
    }
    agent.tell(&Request::Stop(EngineName::Sampling))?;
    sampling.end();
    Ok((sampling, began))
}
