//! A short time in which a program is sampled while nothing else is woven, before its calls are counted: the
//! samples go into the same recording, and reports join the two.
//!
//! Some methods are counted meanwhile, which `marks` chooses: what joins the two must know how much was done.

use super::STEP;
use super::marks::{Counting, Passed, settle, since};
use crate::cli::RecordArgs;
use crate::figures::remark_aside;
use crate::term;
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_analysis::{WINDOW, mark};
use tare_attach::Jvm;
use tare_protocol::{EngineName, EnginePlan, Request, SamplePlan};
use tare_session::client::Agent;
use tare_session::sampling::{DRAIN, Sampling};

/// Short, since there is little time, and a program bears it for so long.
const INTERVAL: Duration = Duration::from_millis(1);
const RING: u64 = 8 << 20;

/// What came of it: samples, when the zero of their times was, and the calls of marks meanwhile.
pub struct Window {
    pub sampling: Sampling,
    pub began: Instant,
    length: Duration,
    marks: Passed,
}

impl Window {
    /// What the recording says of it.
    pub fn options(&self) -> Vec<(String, String)> {
        let length = (WINDOW.to_owned(), self.length.as_nanos().to_string());
        let marks = self.marks.iter().map(|(name, calls)| mark(name, calls));
        std::iter::once(length).chain(marks).collect()
    }
}

/// Samples a JVM for `--window`, or until Ctrl-C.
pub fn sample(
    agent: &mut Agent,
    jvm: &Jvm,
    args: &RecordArgs,
    stop: &AtomicBool,
) -> Result<Window> {
    let length = args.window;
    if !args.quiet {
        remark_aside(&format!("samples for {}, before anything is timed", term::time(length)));
    }
    let mut counting = Counting::begin(agent, jvm, args, stop)?;
    if let Some(counting) = &counting {
        settle(agent, jvm, stop);
        if !args.quiet {
            remark_aside(&format!("methods that are counted meanwhile: {}", counting.marks));
        }
    }
    let before = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    let (sampling, began) = sample_for(agent, jvm, length, stop)?;
    let length = began.elapsed();
    let after = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    if let Some(counting) = counting {
        counting.stop(agent)?;
    }
    let marks = since(&before.unwrap_or_default(), after.unwrap_or_default());
    let marks = marks.into_iter().filter(|(_, calls)| calls.count > 0).collect();
    Ok(Window { sampling, began, length, marks })
}

pub fn sample_for(
    agent: &mut Agent,
    jvm: &Jvm,
    length: Duration,
    stop: &AtomicBool,
) -> Result<(Sampling, Instant)> {
    let plan = SamplePlan {
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        memory: RING,
        ..SamplePlan::default()
    };
    let stream = agent.tell_for_files(&Request::Start(EnginePlan::Sampling(Box::new(plan))))?;
    let began = Instant::now();
    let status = agent.status()?.sampling().cloned().unwrap_or_default();
    let mut sampling = Sampling::new(stream, jvm, status, None)?;
    let mut drained = Instant::now();
    while began.elapsed() < length && !stop.load(Ordering::Relaxed) && !agent.has_gone() {
        std::thread::sleep(STEP);
        if drained.elapsed() >= DRAIN {
            drained = Instant::now();
            if !sampling.drain() {
                break;
            }
        }
    }
    if let Ok(Some(status)) = agent.status().map(|status| status.sampling().cloned()) {
        sampling.status = status;
    }
    agent.tell(&Request::Stop(EngineName::Sampling))?;
    sampling.end();
    Ok((sampling, began))
}
