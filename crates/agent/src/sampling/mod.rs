//! Sampling: every thread tells from time to time where it is.
//!
//! Who does what: timers, perf events or the sampler thread (`engines`, `sampler`) raise a signal
//! on a thread; its handler (`handler`) walks the stack (`crate::stacks`) and appends to the shared memory
//! (`crate::stream`); the control thread adds names and looks after threads and memory, in [`tick`]. The JVM's callbacks for threads
//! and classes only touch the table of threads and the ring.
//!
//! A session belongs to a connection. It ends in this order: threads are disarmed, handlers find
//! nothing any more, those inside are waited for, names are completed, memory goes.

mod engines;
mod handler;
mod older;
mod own;
mod perf;
mod sampler;
mod watch;

use crate::events;
use crate::jvm::threads::ThreadFields;
use crate::jvm::{Failure, Jni, Jvmti, Vm};
use crate::kernel;
use crate::stacks::fault_guard;
use crate::stacks::hotspot::Layout;
use crate::stacks::ids::{MethodIds, Sweep};
use crate::stream::names::MethodNames;
use crate::stream::pace::Pace;
use crate::stream::ring::Ring;
use crate::stream::threads;
use crate::stream::traces::Traces;
use crate::vm_tables::{Missing, Tables};
use engines::{Armer, Choice};
use handler::{Buffers, Shared};
use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEvent};
use older::Known;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, io};
use tare_arena::samples::layout::header;
use tare_arena::samples::{Counter, SampleThread, Special};
use tare_protocol::{SampleEngine, SamplePlan, SampleStatus};
use tare_unwind::{Budget, Generation, Modules};
use watch::Watch;

const EVENTS: [jvmtiEvent; 3] = [
    jvmti::JVMTI_EVENT_THREAD_START,
    jvmti::JVMTI_EVENT_THREAD_END,
    jvmti::JVMTI_EVENT_CLASS_PREPARE,
];

/// The least and the greatest number of frames of a stack that can be asked for.
const DEPTH: std::ops::RangeInclusive<u32> = 16..=8192;

/// Libraries and native threads that came or went are looked for this often.
const SCAN_EVERY: Duration = Duration::from_millis(250);

/// With thousands of threads that takes milliseconds, and so does the process's clock, for which the kernel adds up all of
/// theirs. So each gets one part of the time in so many, and threads are listed more rarely as long as
/// their number has not changed; but no more rarely than this.
const CLOCK_SHARE: u32 = 500;
const SCAN_SHARE: u32 = 200;
const SCAN_SHARE_UNCHANGED: u32 = 2_000;
const CLOCK_AT_LEAST: Duration = Duration::from_millis(250);
const SCAN_AT_LEAST: Duration = Duration::from_secs(10);

/// How long the end of a session waits for handlers that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SESSION: Mutex<Option<Session>> = Mutex::new(None);
static WATCH: Mutex<Option<Arc<Watch>>> = Mutex::new(None);

/// Why a session did not begin.
#[derive(Debug)]
pub enum StartError {
    AlreadyOn,
    /// This JVM does not say where something is.
    Unknown(String),
    Engine(String),
    Memory(io::Error),
    Signal(io::Error),
    Thread(io::Error),
    Jvmti(Failure),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::AlreadyOn => {
                write!(f, "a sampling session of this JVM is already under way; end that one first")
            }
            StartError::Unknown(what) => {
                write!(
                    f,
                    "this JVM does not tell where to find {what}, so stacks cannot be walked; `--engine safepoint` needs none of it"
                )
            }
            StartError::Engine(why) => write!(f, "{why}"),
            StartError::Memory(e) => write!(f, "no memory for samples: {e}"),
            StartError::Signal(e) => write!(f, "no signal handler can be installed: {e}"),
            StartError::Thread(e) => write!(f, "no thread for sampling: {e}"),
            StartError::Jvmti(failure) => write!(f, "{failure}"),
        }
    }
}

/// Owned by the control thread.
struct Session {
    watch: Arc<Watch>,
    plan: SamplePlan,
    number: u32,
    names: MethodNames,
    sweep: Sweep,
    generation: Option<Generation>,
    next_scan: Instant,
    clock: Pace,
    listing: Pace,
    balancing: Pace,
    sampler: Option<sampler::Sampler>,
    prepared: (u64, Duration),
    since: Instant,
    notes: Vec<String>,
    /// Somebody has put other handlers over ours.
    displaced: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() -> Option<Arc<Watch>> {
    locked(&WATCH).clone()
}

fn capabilities() -> jvmtiCapabilities {
    let mut set = jvmtiCapabilities::default();
    set.set_can_get_line_numbers(true);
    set.set_can_get_source_file_name(true);
    set.set_can_get_thread_cpu_time(true);
    set
}

/// Begins a session; the descriptor of its stream.
pub fn start(vm: Vm, jvmti: Jvmti, jni: Jni, plan: SamplePlan) -> Result<[File; 2], StartError> {
    let mut session = locked(&SESSION);
    if session.is_some() {
        return Err(StartError::AlreadyOn);
    }
    let interval = plan.interval_ns.clamp(engines::SHORTEST, engines::LONGEST);
    let major = jvmti.java_version().and_then(|v| v.split('.').next()?.parse().ok()).unwrap_or(0);
    let tables = Tables::read(jvmti.inside_libjvm());
    let layout = match &tables {
        Ok(tables) => Layout::new(tables, major),
        Err(missing) => Err(Missing(missing.0.clone())),
    };
    let choice = choose(&plan, interval, layout.as_ref().err())?;
    let fields = jni.thread_fields().ok_or(StartError::Unknown("the fields of Thread".into()))?;
    fault_guard::learn_code()
        .then_some(())
        .ok_or_else(|| StartError::Signal(io::Error::other("/proc/self/maps is not readable")))?;
    fault_guard::install().and_then(|_| handler::install()).map_err(StartError::Signal)?;
    let table = threads::make().ok_or_else(|| StartError::Memory(out_of_memory()))?;
    let depth = plan.depth.clamp(*DEPTH.start(), *DEPTH.end()) as usize;
    let shared = Arc::new(Shared {
        ring: Ring::new(plan.memory).map_err(StartError::Memory)?,
        traces: Traces::new(),
        layout: layout.as_ref().map_or_else(|_| Layout::default(), Layout::clone),
        buffers: Buffers::new(depth).map_err(StartError::Memory)?,
        engine: choice.engine,
        wall: plan.wall,
        native: plan.native,
        interval: AtomicU64::new(interval),
        paused: AtomicBool::new(false),
        waits: Default::default(),
        virtual_ids: Default::default(),
        id_layout: Default::default(),
        interruption: if plan.wall { 0 } else { own::interruption(&choice) },
    });
    jvmti.add_capabilities(&capabilities()).map_err(StartError::Jvmti)?;
    let own = jni.frame(|| own_thread(jvmti, jni, fields)).flatten();
    let environment = own.map_or(0, |own| jni.environment().wrapping_sub(own));
    let watch = Arc::new(Watch {
        armer: Armer::new(&choice, plan.kernel),
        table,
        closed: AtomicBool::new(false),
        next: AtomicU32::new(1),
        fields,
        environment,
        layout: layout.ok(),
        ids: MethodIds::default(),
        shared: Arc::clone(&shared),
    });
    if let (Some(layout), Ok(tables)) = (&watch.layout, &tables) {
        let object = jni.ids_of_object(jvmti);
        shared.id_layout.learn(tables, layout, &object, |at| watch.peek(at));
        if layout.thread_owner_id.is_none() {
            shared.virtual_ids.learn(tables, jni, fields, |at| watch.peek(at));
        }
    }
    let now = Instant::now();
    let mut new = Session {
        watch: Arc::clone(&watch),
        number: NUMBER.fetch_add(1, Relaxed) + 1,
        names: MethodNames::default(),
        sweep: Sweep::default(),
        generation: None,
        next_scan: now + SCAN_EVERY,
        clock: Pace::new(Duration::ZERO, CLOCK_AT_LEAST),
        listing: Pace::new(SCAN_EVERY, SCAN_AT_LEAST),
        balancing: Pace::new(SCAN_EVERY, SCAN_AT_LEAST),
        sampler: None,
        prepared: (0, Duration::ZERO),
        since: now,
        notes: choice.notes,
        displaced: false,
        plan,
    };
    let files = shared.ring.files().map_err(StartError::Memory)?;
    new.load_modules();
    handler::publish(Arc::as_ptr(&shared).cast_mut());
    *locked(&WATCH) = Some(Arc::clone(&watch));
    let begun = new.begin(vm, jvmti, jni, interval);
    *session = Some(new);
    drop(session);
    begun.inspect_err(|_| stop(jvmti, jni))?;
    Ok(files)
}

/// The engine; where stacks cannot be walked, the one that has the JVM take them, unless another is asked for.
fn choose(
    plan: &SamplePlan,
    interval: u64,
    missing: Option<&Missing>,
) -> Result<Choice, StartError> {
    let Some(Missing(what)) = missing else {
        return engines::choose(plan.engine, plan.wall, interval).map_err(StartError::Engine);
    };
    match plan.engine {
        None | Some(SampleEngine::Safepoint) => {
            let note = format!(
                "This JVM does not tell where to find {what}: stacks are taken by the JVM itself, at safepoints."
            );
            Ok(Choice {
                engine: SampleEngine::Safepoint,
                kernel: false,
                asked: false,
                notes: vec![note],
            })
        }
        Some(_) => Err(StartError::Unknown(what.clone())),
    }
}

fn out_of_memory() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOMEM)
}

/// HotSpot's thread behind the calling one.
fn own_thread(jvmti: Jvmti, jni: Jni, fields: ThreadFields) -> Option<u64> {
    let thread = jvmti.current_thread()?;
    let (native, _) = jni.thread_numbers(fields, thread);
    (native != 0).then_some(native)
}

/// Ends the session, if there is one. The stream has all names, and nothing of ours is armed.
pub fn stop(jvmti: Jvmti, jni: Jni) {
    let Some(mut session) = locked(&SESSION).take() else { return };
    EVENTS.into_iter().for_each(|event| events::off(jvmti, event));
    *locked(&WATCH) = None;
    session.end(jvmti, jni);
    let _ = jvmti.relinquish_capabilities(&capabilities());
}

/// To be called several times a second while a session is on.
pub fn tick(jvmti: Jvmti, jni: Jni) {
    if let Some(session) = locked(&SESSION).as_mut() {
        session.tick(jvmti, jni);
    }
}

/// Another interval, a pause, or going on.
pub fn change(interval: Option<u64>, paused: Option<bool>) {
    if let Some(session) = locked(&SESSION).as_ref() {
        session.change(interval, paused);
    }
}

pub fn status() -> Option<SampleStatus> {
    locked(&SESSION).as_ref().map(Session::status)
}

/// Called on a thread that has just started.
pub fn thread_started(jni: Jni, thread: jobject) {
    let Some(watch) = watch() else { return };
    let (_, java_id) = jni.thread_numbers(watch.fields, thread);
    let new = SampleThread {
        os_id: kernel::gettid(),
        java_id,
        started: kernel::monotonic(),
        name: jni.frame(|| jni.thread_name(watch.fields, thread)).unwrap_or_default(),
        ..SampleThread::default()
    };
    let native = match watch.environment {
        0 => jni.thread_numbers(watch.fields, thread).0,
        offset => jni.environment().wrapping_sub(offset),
    };
    watch.add(new, native);
}

/// Called on a thread that is about to end.
pub fn thread_ended() {
    if let Some(watch) = watch() {
        watch.remove(kernel::gettid());
    }
}

/// Called when a class is ready: its methods get ids before they can run.
pub fn class_prepared(jvmti: Jvmti, class: jclass) {
    if let Some(watch) = watch() {
        watch.ids.add_class(jvmti, class);
    }
}

/// Processor time of the process without that of our own threads, which are not sampled.
fn program_cpu() -> u64 {
    let own =
        sampler::own_threads().into_iter().map(|tid| kernel::clock(kernel::thread_clock(tid)));
    kernel::clock(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(own.sum())
}

/// How far the session has come, by both clocks at one time.
fn stamp(ring: &Ring) {
    ring.put(header::SEEN, kernel::monotonic());
    ring.put(header::CPU_SEEN, program_cpu());
}

impl Session {
    fn ring(&self) -> &Ring {
        &self.watch.shared.ring
    }

    fn stamp_start(&self, interval: u64) {
        let ring = self.ring();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ring.put(header::STARTED, kernel::monotonic());
        ring.put(header::STARTED_UNIX, u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX));
        ring.put(header::CPU_STARTED, program_cpu());
        ring.put(header::INTERVAL, interval);
        stamp(ring);
    }

    /// Tables for unwinding, when libraries have come or gone.
    fn load_modules(&mut self) {
        let now = Generation::now();
        if !self.plan.native || self.generation == Some(now) {
            return;
        }
        let pid = std::process::id().cast_signed();
        let before = handler::MODULES.read(0);
        let modules = Modules::read(pid, before.as_deref(), Budget::default());
        drop(before);
        self.generation = Some(modules.generation);
        handler::MODULES.replace(Some(Box::new(modules)));
    }

    fn begin(&mut self, vm: Vm, jvmti: Jvmti, jni: Jni, interval: u64) -> Result<(), StartError> {
        // Switched on one by one and off together, by `stop`, whichever of them failed.
        EVENTS
            .into_iter()
            .map(|event| events::on(jvmti, event))
            .fold(Ok(()), Result::and)
            .map_err(StartError::Jvmti)?;
        let began = Instant::now();
        let ids = &self.watch.ids;
        let prepared =
            jni.frame(|| jvmti.with_loaded_classes(jni, |classes| ids.add_classes(jvmti, classes)));
        self.prepared = (prepared.and_then(Result::ok).unwrap_or(0), began.elapsed());
        for (key, (class, name, descriptor)) in self.watch.shared.waits.iter().zip(WAIT_METHODS) {
            key.store(jni.method_key(class, name, descriptor), Relaxed);
        }
        sampler::note_control_thread();
        let known = self.watch.older_threads(jvmti, jni);
        // What it took to come here is not the program's.
        self.stamp_start(interval);
        self.watch.scan_tasks(known);
        if self.plan.wall || self.watch.shared.engine == SampleEngine::Safepoint {
            let sampler = sampler::Sampler::start(vm, jvmti, Arc::clone(&self.watch));
            self.sampler = Some(sampler.map_err(StartError::Thread)?);
        }
        Ok(())
    }

    fn tick(&mut self, jvmti: Jvmti, jni: Jni) {
        if self.clock.is_due(CLOCK_SHARE) {
            self.clock.work(|| stamp(&self.watch.shared.ring));
        }
        self.stay_on_top();
        self.name_methods(jvmti, jni, false);
        self.ring().free(self.names.scanned);
        let gone = self.sweep.step(&self.watch.ids, |id| jvmti.is_gone(id));
        self.names.forget(&gone);
        let now = Instant::now();
        if now >= self.next_scan {
            self.load_modules();
            handler::MODULES.tidy();
            self.watch.armer.tidy();
            self.look_for_threads();
            self.next_scan = now + SCAN_EVERY;
        }
    }

    /// Sends the names of methods that have come; with `last`, of all.
    fn name_methods(&mut self, jvmti: Jvmti, jni: Jni, last: bool) {
        let (ring, ids) = (&self.watch.shared.ring, &self.watch.ids);
        self.names.scan(ring);
        self.names.send(ring, ids, last, |id| jvmti.describe_method(jni, id));
    }

    fn look_for_threads(&mut self) {
        let same = self.watch.knows_as_many_as_there_are();
        if self.listing.is_due(if same { SCAN_SHARE_UNCHANGED } else { SCAN_SHARE }) {
            self.listing.work(|| self.watch.scan_tasks(Known::new()));
        }
        if self.balancing.is_due(SCAN_SHARE) {
            self.balancing.work(|| self.watch.balance());
        }
    }

    /// Another profiler that came after us may have put its handlers over ours. Then threads were
    /// asked in vain, and a perf event that nobody answered stays silent: all are armed anew.
    fn stay_on_top(&mut self) {
        let faults = fault_guard::install().unwrap_or(false);
        let signals = handler::install().unwrap_or(false);
        if signals {
            self.rearm(self.watch.shared.paused.load(Relaxed));
        }
        if (faults || signals) && !std::mem::replace(&mut self.displaced, true) {
            self.notes.push(
                "Another profiler put its signal handlers over ours; ours were put on top again \
                 and hand on what is not for us. Some samples around that moment are missing."
                    .into(),
            );
        }
    }

    /// Has all threads begin a new interval, or with `paused` none.
    fn rearm(&self, paused: bool) {
        let shared = &self.watch.shared;
        let interval = if paused { 0 } else { shared.interval.load(Relaxed) };
        for record in self.watch.table.change().all() {
            self.watch.armer.rearm(record, record.tid(), interval);
        }
    }

    fn change(&self, interval: Option<u64>, paused: Option<bool>) {
        let shared = &self.watch.shared;
        if let Some(interval) = interval {
            let interval = interval.clamp(engines::SHORTEST, engines::LONGEST);
            shared.interval.store(interval, Relaxed);
            shared.ring.put(header::INTERVAL, interval);
        }
        let was = shared.paused.load(Relaxed);
        if let Some(paused) = paused {
            shared.paused.store(paused, Relaxed);
        }
        let paused = shared.paused.load(Relaxed);
        let interval = if paused { 0 } else { shared.interval.load(Relaxed) };
        let now = kernel::monotonic();
        for record in self.watch.table.change().all() {
            if was && !paused {
                // What passed during the pause is nobody's.
                record.last_time.store(now, Relaxed);
                record.last_trace.store(0, Relaxed);
                let used = kernel::clock(kernel::thread_clock(record.tid()));
                record.charged.store(used, Relaxed);
            }
            self.watch.armer.rearm(record, record.tid(), interval);
        }
    }

    fn end(&mut self, jvmti: Jvmti, jni: Jni) {
        // What comes while thousands of threads are disarmed would be beyond the clocks' last look.
        self.watch.shared.paused.store(true, Relaxed);
        stamp(self.ring());
        if let Some(sampler) = self.sampler.take() {
            sampler.stop();
        }
        self.watch.close();
        handler::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while handler::busy() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        // Whoever is still inside keeps what it uses, for ever.
        self.watch.armer.tidy();
        self.watch.forget_threads();
        self.name_methods(jvmti, jni, true);
        self.ring().put(header::ENDED, 1);
        if handler::busy() {
            // A thread is stopped inside a handler: what it uses must stay.
            std::mem::forget(Arc::clone(&self.watch.shared));
        }
        handler::MODULES.replace(None);
    }

    fn status(&self) -> SampleStatus {
        let ring = self.ring();
        let shared = &self.watch.shared;
        let armer = &self.watch.armer;
        let (samples, weight) = (ring.count(Counter::Samples), ring.count(Counter::Weight));
        let failures = Special::ALL.iter().filter_map(|kind| {
            let count = ring.get(Counter::failure(*kind));
            (count > 0).then(|| format!("{count} {}", kind.name()))
        });
        let losses =
            [Counter::LostRing, Counter::LostBuffer, Counter::LostThread, Counter::ThreadsRefused];
        let lost = losses.into_iter().filter_map(|counter| {
            let count = ring.count(counter);
            (count > 0).then(|| format!("{count} {}", counter.name()))
        });
        SampleStatus {
            session: self.number,
            engine: Some(shared.engine),
            wall: shared.wall,
            paused: shared.paused.load(Relaxed),
            interval_ns: self.plan.interval_ns,
            got_ns: weight.checked_div(samples).unwrap_or(0),
            samples,
            weight_ns: weight,
            overruns: ring.count(Counter::Overruns),
            failures: failures.collect(),
            lost: lost.collect(),
            threads: self.watch.table.len() as u64,
            threads_seen: ring.count(Counter::ThreadsSeen),
            resources: armer.timers.load(Relaxed) + armer.descriptors.load(Relaxed),
            resources_most: armer.timers_most.saturating_add(armer.descriptors_most),
            kernel: armer.sees_kernel(),
            prepared_classes: self.prepared.0,
            preparing_ns: u64::try_from(self.prepared.1.as_nanos()).unwrap_or(u64::MAX),
            elapsed_ns: u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            notes: self.notes.clone(),
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
