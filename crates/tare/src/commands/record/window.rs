//! A short time in which a program is sampled while nothing is woven, before its calls are counted: the
//! samples go into the same recording, and reports join the two.

use super::STEP;
use crate::client::Agent;
use crate::sampling::{DRAIN, Sampling};
use anyhow::Result;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::{Request, SamplePlan};

/// Short, since there is little time, and a program bears it for so long.
const INTERVAL: Duration = Duration::from_millis(1);
const RING: u64 = 8 << 20;

/// Samples a JVM for so long. Also when the zero of the samples' times was.
pub fn sample(agent: &mut Agent, jvm: &Jvm, length: Duration) -> Result<(Sampling, Instant)> {
    let plan = SamplePlan {
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        memory: RING,
        ..SamplePlan::default()
    };
    let [stream] = agent.tell_for_files(&Request::SampleStart(Box::new(plan)))?;
    let began = Instant::now();
    let status = agent.status()?.sampling.unwrap_or_default();
    let mut sampling = Sampling::new(stream, jvm, status, None)?;
    let mut drained = Instant::now();
    while began.elapsed() < length && !agent.has_gone() {
        std::thread::sleep(STEP);
        if drained.elapsed() >= DRAIN {
            drained = Instant::now();
            if !sampling.drain() {
                break;
            }
        }
    }
    if let Ok(Some(status)) = agent.status().map(|status| status.sampling) {
        sampling.status = status;
    }
    agent.tell(&Request::SampleStop)?;
    sampling.end();
    Ok((sampling, began))
}
