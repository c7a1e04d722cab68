//! Holds an exact recording to the budget of `--overhead`: has samples taken in windows from one
//! look at the trees to another, and methods woven anew as the steering decides at their ends.
//!
//! The samples are Tare's own, and nobody is to miss anything for them: where somebody else
//! samples, or no engine sees probes, the calibration has to do.

use crate::client::Agent;
use crate::demotion::{Load, Steering};
use crate::error::{Result, refuse};
use crate::exact::Exact;
use crate::observer::Observer;
use crate::recorder::processor_time;
use crate::stream::{DRAIN, PROBE_DEPTH, ProbeSamples, Taken};
use crate::weaving;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tare_protocol::{EngineChange, EngineName, EnginePlan, Request, SamplePlan, SampleTrigger};

const INTERVAL: Duration = Duration::from_millis(1);
const RING: u64 = 8 << 20;

/// Samples that are being taken for the steering.
pub struct Beside {
    samples: Option<ProbeSamples>,
    drained: Instant,
}

impl Beside {
    /// The first window begins, if there is somebody who steers.
    pub fn begin(agent: &mut Agent, exact: &mut Exact) -> Self {
        let mut beside = Beside { samples: None, drained: Instant::now() };
        if let Some(steering) = &mut exact.steering {
            beside.start(agent, steering);
        }
        beside
    }

    /// To be called often: the ring has room for a second or two.
    pub fn drain(&mut self) {
        if let Some(samples) = &mut self.samples
            && self.drained.elapsed() >= DRAIN
        {
            self.drained = Instant::now();
            if !samples.drain() {
                // Somebody else wanted to sample.
                self.samples = None;
            }
        }
    }

    /// Begins and ends windows when they are due, and has woven anew what is decided then.
    pub fn steer(&mut self, agent: &mut Agent, exact: &mut Exact, observer: &mut dyn Observer) {
        let Some(mut steering) = exact.steering.take_if(|steering| steering.is_due()) else {
            return;
        };
        // The agent notes the time when it is asked; calls under way have time up to it.
        if let Ok(Some(status)) = agent.status().map(|status| status.exact().cloned()) {
            exact.status = status;
        }
        if steering.in_window() {
            let taken = self.stop(agent);
            let loads = looked_at(exact, &mut steering);
            if let Some(ids) = loads.and_then(|loads| steering.end(&loads, taken, exact.costs())) {
                // A JVM that has ended meanwhile is noticed at the next turn.
                let change = EngineChange::Exact { demote: ids };
                let _ = weaving::change(agent, change, observer);
            }
        } else if let Some(loads) = looked_at(exact, &mut steering) {
            steering.begin(loads);
            self.start(agent, &mut steering);
        }
        exact.steering = Some(steering);
    }

    fn start(&mut self, agent: &mut Agent, steering: &mut Steering) {
        match start(agent) {
            Ok(samples) => self.samples = Some(samples),
            Err(error) => steering.unsampled = Some(format!("{error:#}")),
        }
    }

    /// Ends the samples of the window, if there are any.
    pub fn stop(&mut self, agent: &mut Agent) -> Option<Taken> {
        let samples = self.samples.take()?;
        // A session that was ended for another front end's is not ours to end.
        let _ = agent.tell(&Request::Stop(EngineName::Sampling));
        Some(samples.end())
    }
}

/// What methods have done; `None` if the JVM's memory cannot be read, which whoever records will
/// say.
fn looked_at(exact: &mut Exact, steering: &mut Steering) -> Option<HashMap<u32, Load>> {
    let before = processor_time();
    let loads = exact.loads().ok();
    steering.paid(processor_time().saturating_sub(before));
    loads
}

fn start(agent: &mut Agent) -> Result<ProbeSamples> {
    let plan = SamplePlan {
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        depth: PROBE_DEPTH,
        native: false,
        kernel: false,
        memory: RING,
        yields: true,
        ..SamplePlan::default()
    };
    let stream = agent.tell_for_files(&Request::Start(EnginePlan::Sampling(Box::new(plan))))?;
    let trigger = agent.status()?.sampling().and_then(|sampling| sampling.trigger);
    if trigger.is_none_or(|trigger| trigger == SampleTrigger::Safepoint) {
        agent.tell(&Request::Stop(EngineName::Sampling))?;
        refuse!("samples at safepoints do not see probes");
    }
    Ok(ProbeSamples::new(stream)?)
}
