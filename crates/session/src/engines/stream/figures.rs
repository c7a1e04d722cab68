//! A few numbers of a recording of the stream, for who watches it and at its end.

use crate::stream::{StreamSource, Told};
use std::time::Duration;
use tare_protocol::SampleTrigger;

/// How far it is by now.
#[derive(Clone, Debug)]
pub struct Figures {
    pub samples: Option<SampleFigures>,
    pub alloc: Option<AllocFigures>,
    pub locks: Option<LockFigures>,
    pub classes: Option<Box<ClassFigures>>,
    pub jni_refs: Option<Box<JniRefsFigures>>,
    /// What could not be kept.
    pub lost: u64,
    pub paused: bool,
    /// Processor time of the process, in nanoseconds.
    pub cpu: u64,
}

#[derive(Clone, Debug)]
pub struct SampleFigures {
    pub samples: u64,
    pub threads: u64,
    pub trigger: Option<SampleTrigger>,
    /// Nanoseconds between two samples of a thread.
    pub interval: u64,
}

#[derive(Clone, Debug)]
pub struct AllocFigures {
    pub samples: u64,
    /// What they stand for.
    pub bytes: f64,
    /// Bytes between two samples.
    pub interval: u64,
    /// Collections so far, and objects that are proven to live, if they are watched.
    pub collections: u64,
    pub proven: Option<u64>,
}

/// Waits so far.
#[derive(Clone, Debug, Default)]
pub struct LockFigures {
    /// For what somebody had, and their time in nanoseconds.
    pub contentions: u64,
    pub blocked: u64,
    /// Time of waits for something to happen, in nanoseconds.
    pub waiting: u64,
    /// Waits that were told one by one.
    pub told: u64,
    /// From how many nanoseconds on.
    pub threshold: u64,
}

/// Classes so far.
#[derive(Clone, Debug, Default)]
pub struct ClassFigures {
    pub loads: u64,
    pub unloads: u64,
    /// What loading and linking took, in nanoseconds.
    pub time: u64,
}

/// References of native code so far.
#[derive(Clone, Debug, Default)]
pub struct JniRefsFigures {
    pub made: u64,
    pub deleted: u64,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Samples of threads, if there were to be any.
    pub samples: Option<u64>,
    /// Sampled objects, if there were to be any.
    pub alloc: Option<AllocFigures>,
    /// Waits for locks, if there were to be any.
    pub locks: Option<LockFigures>,
    /// Classes, if there were to be any.
    pub classes: Option<Box<ClassFigures>>,
    /// References of native code, if there were to be any.
    pub jni_refs: Option<Box<JniRefsFigures>>,
    /// Of all, those without any method that is to be shown.
    pub outside: u64,
    pub elapsed: Duration,
}

pub fn figures(source: &StreamSource) -> Figures {
    let Told { samples, alloc, locks, classes, jni_refs } = &source.told;
    let paused = samples.as_ref().map(|status| status.paused);
    let paused = paused.or(alloc.as_ref().map(|status| status.paused));
    let paused = paused.or(locks.as_ref().map(|status| status.paused));
    let paused = paused.or(classes.as_ref().map(|status| status.paused));
    let paused = paused.or(jni_refs.as_ref().map(|status| status.paused)).unwrap_or(false);
    let samples = samples.as_ref().map(|status| SampleFigures {
        samples: source.samples(),
        threads: status.threads,
        trigger: status.trigger,
        interval: source.totals.interval,
    });
    let (sampled, bytes) = source.allocated();
    let alloc = alloc.as_ref().map(|status| AllocFigures {
        samples: sampled,
        bytes,
        interval: status.interval_bytes,
        collections: status.collections,
        proven: status.live.then(|| source.proven()),
    });
    let locks = locks.as_ref().zip(source.waits()).map(|(status, waits)| LockFigures {
        contentions: waits.contentions,
        blocked: waits.blocked,
        waiting: waits.waiting_time,
        told: waits.told,
        threshold: status.threshold_ns,
    });
    let classes = source.classes().map(|classes| {
        let (loads, unloads, time) = (classes.loads, classes.unloads, classes.time);
        Box::new(ClassFigures { loads, unloads, time })
    });
    let jni_refs = source
        .jni_refs()
        .map(|refs| Box::new(JniRefsFigures { made: refs.made, deleted: refs.deleted }));
    let (lost, cpu) = (source.lost(), source.totals.cpu);
    Figures { samples, alloc, locks, classes, jni_refs, lost, paused, cpu }
}
