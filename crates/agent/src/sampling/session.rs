//! One sampling session: what the control thread does for it from its beginning to its end.
//!
//! It ends in this order: threads are disarmed, handlers find nothing any more, those inside are
//! waited for, names are completed, memory goes.

use super::SamplingError;
use super::armer::{self, Armer, Choice};
use super::arming::Arming;
use super::handler::{self, Shared};
use super::interruption;
use super::sampler::Sampler;
use crate::engines::Jvm;
use crate::kernel;
use crate::pauses;
use crate::stacks::native::{LoadedModules, MODULES};
use crate::stacks::{Exported, Stacks, fault_guard};
use crate::stream::pace::Pace;
use crate::stream::{SCAN_AT_LEAST, SCAN_EVERY, SCAN_SHARE, Stream};
use crate::vm_tables::Missing;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use tare_arena::samples::layout::header;
use tare_arena::samples::{Counter, Special};
use tare_protocol::{SamplePlan, SampleStatus, SampleTrigger};

/// The least and the greatest number of frames of a stack that can be asked for.
const DEPTH: std::ops::RangeInclusive<u32> = 16..=8192;

/// How long the end of a session waits for handlers that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Owned by the control thread.
pub struct SamplingSession {
    arming: Arc<Arming>,
    plan: SamplePlan,
    number: u32,
    modules: LoadedModules,
    next_scan: Instant,
    balancing: Pace,
    sampler: Option<Sampler>,
    prepared: (u64, Duration),
    since: Instant,
    notes: Vec<String>,
    /// Somebody has put other handlers over ours.
    displaced: bool,
}

/// The engine; where stacks cannot be walked, the one that has the JVM take them, unless another is
/// asked for.
fn choose(
    plan: &SamplePlan,
    interval: u64,
    missing: Option<&Missing>,
) -> Result<Choice, SamplingError> {
    let Some(Missing(what)) = missing else {
        return armer::choose(plan.trigger, plan.wall, interval).map_err(SamplingError::Engine);
    };
    match plan.trigger {
        None | Some(SampleTrigger::Safepoint) => {
            let note = format!(
                "This JVM does not tell where to find {what}: stacks are taken by the JVM itself, \
                 at safepoints."
            );
            Ok(Choice {
                trigger: SampleTrigger::Safepoint,
                kernel: false,
                asked: false,
                notes: vec![note],
            })
        }
        Some(_) => Err(SamplingError::Unknown(what.clone())),
    }
}

impl SamplingSession {
    /// Prepares a session, with which nothing happens yet; and the descriptors of its stream.
    pub fn new(jvm: Jvm, plan: SamplePlan) -> Result<(Self, [File; 2]), SamplingError> {
        let Jvm { jvmti, jni, .. } = jvm;
        let interval = plan.interval_ns.clamp(armer::SHORTEST, armer::LONGEST);
        let exported = Exported::read(jvmti);
        let mut choice = choose(&plan, interval, exported.missing())?;
        let fields = jni.thread_fields();
        let fields = fields.ok_or(SamplingError::Unknown("the fields of Thread".into()))?;
        handler::install().map_err(SamplingError::Signal)?;
        let depth = plan.depth.clamp(*DEPTH.start(), *DEPTH.end()) as usize;
        let stacks = Stacks::new(exported, jvmti, jni, fields, depth, plan.native)?;
        let stream = Stream::new(stacks, jvmti, jni, fields, plan.memory);
        let stream = stream.map_err(SamplingError::Memory)?;
        let files = stream.files().map_err(SamplingError::Memory)?;
        let interruption = if plan.wall { 0 } else { interruption::interruption(&choice) };
        choice.notes.extend(interruption::warning(interval, interruption));
        let shared = Arc::new(Shared {
            stream: Arc::new(stream),
            trigger: choice.trigger,
            wall: plan.wall,
            interval: AtomicU64::new(interval),
            paused: AtomicBool::new(false),
            waits: Default::default(),
            interruption,
        });
        let now = Instant::now();
        let session = SamplingSession {
            arming: Arc::new(Arming { armer: Armer::new(&choice, plan.kernel), shared }),
            number: NUMBER.fetch_add(1, Relaxed) + 1,
            modules: LoadedModules::default(),
            next_scan: now + SCAN_EVERY,
            balancing: Pace::new(SCAN_EVERY, SCAN_AT_LEAST),
            sampler: None,
            prepared: (0, Duration::ZERO),
            since: now,
            notes: choice.notes,
            displaced: false,
            plan,
        };
        Ok((session, files))
    }

    /// Whether it ends when another front end wants one.
    pub fn yields(&self) -> bool {
        self.plan.yields
    }

    fn shared(&self) -> &Shared {
        &self.arming.shared
    }

    fn stream(&self) -> &Arc<Stream> {
        &self.arming.shared.stream
    }

    /// After an error it is to be ended, too.
    pub fn begin(&mut self, jvm: Jvm) -> Result<(), SamplingError> {
        let Jvm { vm, jvmti, jni } = jvm;
        if self.plan.native {
            self.modules.renew();
        }
        handler::publish(Arc::as_ptr(&self.arming.shared).cast_mut());
        let stream = Arc::clone(self.stream());
        stream.watch.tell(Some(Arc::clone(&self.arming) as _));
        let began = Instant::now();
        let classes = stream.open(jvmti, jni).map_err(SamplingError::Jvmti)?;
        self.prepared = (classes, began.elapsed());
        for (key, (class, name, descriptor)) in self.shared().waits.iter().zip(WAIT_METHODS) {
            key.store(jni.method_key(class, name, descriptor), Relaxed);
        }
        stream.take_threads(jvmti, jni, self.shared().interval.load(Relaxed));
        if self.plan.wall || self.shared().trigger == SampleTrigger::Safepoint {
            let sampler = Sampler::start(vm, jvmti, Arc::clone(&self.arming));
            self.sampler = Some(sampler.map_err(SamplingError::Thread)?);
        }
        Ok(())
    }

    pub fn tick(&mut self, jvm: Jvm) {
        self.stay_on_top();
        self.stream().tick(jvm.jvmti, jvm.jni);
        let now = Instant::now();
        if now >= self.next_scan {
            self.next_scan = now + SCAN_EVERY;
            if self.plan.native {
                self.modules.renew();
            }
            MODULES.tidy();
            self.arming.armer.tidy();
            if self.balancing.is_due(SCAN_SHARE) {
                self.balancing.work(|| self.arming.balance());
            }
        }
    }

    /// Another profiler that came after us may have put its handlers over ours. Then threads were
    /// asked in vain, and a perf event that nobody answered stays silent: all are armed anew.
    fn stay_on_top(&mut self) {
        let faults = fault_guard::install().unwrap_or(false);
        let signals = handler::install().unwrap_or(false);
        if signals {
            self.rearm(self.arming.shared.paused.load(Relaxed));
        }
        if (faults || signals) && !std::mem::replace(&mut self.displaced, true) {
            self.notes.push(
                "Another profiler replaced our signal handlers. Ours were installed again and pass on \
                 signals that are not for us. Some samples around that moment are missing."
                    .into(),
            );
        }
    }

    /// Has all threads begin a new interval, or with `paused` none.
    fn rearm(&self, paused: bool) {
        let shared = &self.arming.shared;
        let interval = if paused { 0 } else { shared.interval.load(Relaxed) };
        for record in self.arming.table().change().all() {
            self.arming.armer.rearm(record, record.tid(), interval);
        }
    }

    /// Of a thread's processor time, or of the wall clock, from one sample to the next.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.shared().interval.load(Relaxed))
    }

    /// Another interval, a pause, or going on.
    pub fn change(&self, interval: Option<u64>, paused: Option<bool>) {
        let shared = &self.arming.shared;
        if let Some(interval) = interval {
            let interval = interval.clamp(armer::SHORTEST, armer::LONGEST);
            shared.interval.store(interval, Relaxed);
            shared.stream.ring.put(header::INTERVAL, interval);
        }
        let was = shared.paused.load(Relaxed);
        if let Some(paused) = paused {
            shared.paused.store(paused, Relaxed);
        }
        let paused = shared.paused.load(Relaxed);
        let interval = if paused { 0 } else { shared.interval.load(Relaxed) };
        let now = kernel::monotonic();
        for record in self.arming.table().change().all() {
            if was && !paused {
                // What passed during the pause is nobody's.
                record.last_time.store(now, Relaxed);
                record.last_trace.store(0, Relaxed);
                let used = kernel::clock(kernel::thread_clock(record.tid()));
                record.charged.store(used, Relaxed);
            }
            self.arming.armer.rearm(record, record.tid(), interval);
        }
    }

    /// The stream has all names, and nothing of ours is armed.
    pub fn end(&mut self, jvm: Jvm) {
        let Jvm { jvmti, jni, .. } = jvm;
        // What comes while thousands of threads are disarmed would be beyond the clocks' last look.
        self.shared().paused.store(true, Relaxed);
        self.stream().stamp();
        if let Some(sampler) = self.sampler.take() {
            sampler.stop();
        }
        let last = self.stream().leave();
        if last {
            self.stream().close(jvmti);
        } else {
            self.stream().watch.dismiss();
        }
        handler::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while handler::busy() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        // Whoever is still inside keeps what it uses, for ever.
        self.arming.armer.tidy();
        if last {
            self.stream().end(jvmti, jni);
        }
        if handler::busy() {
            // A thread is stopped inside a handler: what it uses must stay.
            std::mem::forget(Arc::clone(&self.arming.shared));
        }
        MODULES.replace(None);
    }

    pub fn status(&self) -> SampleStatus {
        let ring = &self.arming.shared.stream.ring;
        let shared = &self.arming.shared;
        let armer = &self.arming.armer;
        let (samples, weight) = (ring.count(Counter::Samples), ring.count(Counter::Weight));
        let failures = Special::ALL.iter().filter_map(|kind| {
            let count = ring.get(Counter::failure(*kind));
            (count > 0).then(|| format!("{count} {}", kind.name()))
        });
        let losses = [
            Counter::LostRing,
            Counter::LostBuffer,
            Counter::LostThread,
            Counter::ThreadsRefused,
            Counter::LostEvents,
        ];
        let lost = losses.into_iter().filter_map(|counter| {
            let count = ring.count(counter);
            (count > 0).then(|| format!("{count} {}", counter.name()))
        });
        SampleStatus {
            session: self.number,
            trigger: Some(shared.trigger),
            wall: shared.wall,
            paused: shared.paused.load(Relaxed),
            interval_ns: self.plan.interval_ns,
            got_ns: weight.checked_div(samples).unwrap_or(0),
            samples,
            weight_ns: weight,
            overruns: ring.count(Counter::Overruns),
            failures: failures.collect(),
            lost: lost.collect(),
            threads: self.arming.table().len() as u64,
            threads_seen: ring.count(Counter::ThreadsSeen),
            resources: armer.timers.load(Relaxed) + armer.descriptors.load(Relaxed),
            resources_most: armer.timers_most.saturating_add(armer.descriptors_most),
            kernel: armer.sees_kernel(),
            prepared_classes: self.prepared.0,
            preparing_ns: u64::try_from(self.prepared.1.as_nanos()).unwrap_or(u64::MAX),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.iter().cloned().chain(pauses::untold()).collect(),
        }
    }
}

/// Methods in which a thread waits, in the order of `handler::WAIT_STATES`.
const WAIT_METHODS: [(&std::ffi::CStr, &std::ffi::CStr, &std::ffi::CStr); 6] = [
    (c"java/lang/Thread", c"sleep", c"(J)V"),
    (c"java/lang/Thread", c"sleep0", c"(J)V"),
    (c"java/lang/Thread", c"sleepNanos0", c"(J)V"),
    (c"jdk/internal/misc/Unsafe", c"park", c"(ZJ)V"),
    (c"java/lang/Object", c"wait", c"(J)V"),
    (c"java/lang/Object", c"wait0", c"(J)V"),
];
