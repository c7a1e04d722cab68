//! Exact calling-context trees: weaves the chosen methods of the running JVM, and puts the
//! original code back.
//!
//! A session has memory (`memory`), which the probes fill without any help of ours; the recording
//! only weaves. Its three moments: start (the arena is ready, classes that are loaded are woven in
//! batches), the class-load hook (on whatever thread loads a class), and stop (the hook falls
//! silent, and the same classes are loaded once more through it). Which thread may do what: start
//! and stop are the control thread's; the hook shares with them the registry, behind a lock that is
//! held for no longer than a class takes.

pub mod agents;
mod archive;
mod budget;
mod bytecodes;
mod calibrate;
mod choice;
mod clock;
mod demote;
mod engine;
mod error;
mod field;
mod fixed;
mod follow;
pub mod foreign;
pub mod headroom;
pub mod inject;
mod intrinsics;
mod memory;
mod names_file;
mod naming;
mod natives;
pub mod own_memory;
mod pages;
mod probes;
mod progress;
mod recorder;
mod redefined;
mod refusals;
mod regions;
mod registry;
mod reload;
mod remembered;
mod reveal;
mod rights;
mod rules;
mod sites;
mod slots;
mod subgraph;
mod trace;
mod waiters;
mod weaving;

use crate::engines::Between;
use crate::events::class_hook::LoadedClass;
use crate::events::{self, Enabled, Subscriber};
use crate::gate;
use crate::jvm::{Failure, Jni, Jvmti, Vm};
use crate::loaders;
use clock::probe_clock;
pub use engine::Exact;
use error::ExactError;
use inject::Part;
use intrinsics::Candidates;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use memory::{Memory, Shape};
use naming::dotted;
use probes::AllProbes;
use progress::Batches;
use redefined::changed;
use refusals::Refusals;
use regions::Regions;
use registry::Registry;
use reload::{Pauses, Purpose};
use remembered::forget_gone;
pub use remembered::remembered;
pub use rights::forget as forget_rights;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subgraph::Subgraph;
pub use subgraph::{explain, first, revealed};
use tare_java_names::never_woven;
use tare_protocol::{ExactPlan, ExactStatus, Measure};
use tare_weaver::Weaver;
use waiters::{Held, Waiters};

/// A class that the JVM makes objects of by itself, anywhere.
const IMPLICIT: &str = "java/lang/NullPointerException";

const EVENTS: [jvmtiEvent; 4] = [
    jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
    jvmti::JVMTI_EVENT_THREAD_END,
    jvmti::JVMTI_EVENT_CLASS_LOAD,
    jvmti::JVMTI_EVENT_CLASS_PREPARE,
];

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
static RECORDING: Mutex<Option<Arc<Recording>>> = Mutex::new(None);

/// Whether the JVM knew at its start that classes may be changed.
static FROM_THE_START: AtomicBool = AtomicBool::new(false);

/// One session.
struct Recording {
    jvmti: Jvmti,
    plan: ExactPlan,
    memory: Memory,
    probes: AllProbes,
    /// When what the roots reach is to be found.
    subgraph: Option<Subgraph>,
    watches: reveal::Watches,
    /// When threads and tasks are followed.
    follow: Option<follow::Follow>,
    regions: Regions,
    /// What probes cost, as it was last measured, and how often it was.
    calibration: Mutex<(calibrate::Table, u64)>,
    /// Methods that the front end has asked not to time, by their ids.
    demoted: Mutex<HashSet<u32>>,
    weavers: Mutex<Vec<Weaver>>,
    classes: AtomicU64,
    methods: AtomicU64,
    weaving_ns: AtomicU64,
    pauses: Mutex<Pauses>,
    batches: Batches,
    /// Whether the JVM's flight recorder has begun, in this session or before.
    flight_recorder: AtomicBool,
    candidates: Mutex<Candidates>,
    /// Bytes of what was known of methods when the session began.
    known_before: u64,
    tidied: Mutex<remembered::Tidied>,
    waiters: Waiters,
    /// Of a trace: methods of the JVM that were compiled, and whether they are woven; and natives.
    compiled: trace::Known,
    natives: natives::Natives,
    refused: Mutex<Refusals>,
    nameless: Mutex<Vec<naming::Nameless>>,
    /// What is on.
    events: Mutex<Vec<Enabled>>,
    since: Instant,
    /// The control thread.
    owner: libc::pthread_t,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn this_thread() -> libc::pthread_t {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::pthread_self() }
}

fn recording() -> Option<Arc<Recording>> {
    locked(&RECORDING).clone()
}

static SUBSCRIBER: Subscriber = Subscriber {
    thread_end: |jni, _| thread_ended(jni),
    class_load: subgraph::class_loaded,
    class_prepare: |_, jni, class| subgraph::class_prepared(jni, class),
    class_file_load: class_in_hook,
    compiled_method_load: trace::compiled,
    compiled_method_unload: trace::discarded,
    monitor_contended_enter: waiters::begins_to_wait,
    monitor_contended_entered: |jni, _| waiters::has_its_lock(jni),
    ..Subscriber::NONE
};

/// While the JVM starts: asks for what can only be had now, or is cheaper now. With the right to
/// change classes from the start, HotSpot need not throw all compiled code away at the first.
pub fn prepare(vm: Vm, jvmti: Jvmti, without_chance: bool) {
    if archive::refusal(jvmti).is_some() {
        return;
    }
    if archive::is_demanded(jvmti) {
        gate::say(&format!(
            "this JVM requires its class data archive (-Xshare:on or -XX:AOTMode=on), so Tare cannot \
             add its field to Thread; exact recording works, but costs more{}",
            if without_chance { NO_CONSTANTS } else { "" }
        ));
    } else {
        field::prepare(vm);
        if without_chance {
            fixed::prepare(vm);
        }
    }
    FROM_THE_START.store(rights::take(jvmti).is_ok(), Relaxed);
}

const NO_CONSTANTS: &str = "; Set.of, Map.of and random numbers differ from run to run as usual";

/// Begins a session: on return what was loaded is woven, and what will be loaded will be. After an
/// error everything is as it was.
fn start(
    jvmti: Jvmti,
    jni: Jni,
    plan: ExactPlan,
    between: &mut Between<'_>,
) -> Result<(), ExactError> {
    if recording().is_some() {
        return Err(ExactError::AlreadyOn);
    }
    if let Some(why) = archive::refusal(jvmti) {
        return Err(ExactError::Archive(why));
    }
    own_memory::learn();
    let runtime = inject::runtime(jni).map_err(ExactError::Runtime)?;
    if !jni.learn() {
        return Err(ExactError::Runtime(
            "this JVM's core classes are not those of a JDK that Tare knows",
        ));
    }
    let shape = Shape::of(&plan);
    let memory = Memory::new(shape).map_err(ExactError::Memory)?;
    agents::prepare(plan.agent_jar().is_some());
    let probes = AllProbes::new(&plan).map_err(ExactError::Runtime)?;
    let subgraph = Subgraph::of(jvmti, &plan).map_err(ExactError::Memory)?;
    let regions = Regions::new(plan.regions());
    clock::set_cpu_time(plan.is_cpu_time());
    rights::take(jvmti).map_err(ExactError::Jvmti)?;
    let base = memory.base.cast_signed();
    let follow = plan.follows_threads().then(follow::Follow::new).transpose();
    forget_gone(jni, None);
    let known_before = locked(&REGISTRY).get_or_insert_default().size().bytes;
    let batches = Batches::new(Duration::from_nanos(plan.max_pause_ns));
    let recording = Arc::new(Recording {
        jvmti,
        plan,
        memory,
        probes,
        subgraph,
        watches: reveal::Watches::new().map_err(ExactError::Runtime)?,
        follow: follow.map_err(ExactError::Runtime)?,
        regions,
        calibration: Mutex::default(),
        demoted: Mutex::default(),
        weavers: Mutex::default(),
        classes: AtomicU64::new(0),
        methods: AtomicU64::new(0),
        weaving_ns: AtomicU64::new(0),
        pauses: Mutex::default(),
        batches,
        flight_recorder: AtomicBool::new(false),
        candidates: Mutex::default(),
        known_before,
        tidied: Mutex::default(),
        waiters: Waiters::default(),
        compiled: trace::Known::default(),
        natives: natives::Natives::default(),
        refused: Mutex::default(),
        nameless: Mutex::default(),
        events: Mutex::default(),
        since: Instant::now(),
        owner: this_thread(),
    });
    jni.prepare_for_changed_classes();
    *locked(&RECORDING) = Some(Arc::clone(&recording));
    let begun = recording
        .listen_to(recording.events())
        .map_err(ExactError::Jvmti)
        .and_then(|()| {
            if jni.call_static_long(runtime[Part::Threads], c"session", base) {
                Ok(())
            } else {
                Err(ExactError::Runtime("the probe runtime does not begin"))
            }
        })
        .inspect(|()| {
            match recording.plan.measure {
                Measure::Trees(_) | Measure::Regions(_) => recording.calibrate_first(jni, runtime),
                Measure::Samples(_) => {}
                Measure::Trace(_) => recording.begin_trace(jni, runtime),
            }
            let sized = recording.plan.allocations() || recording.plan.has_sites();
            if sized && !bytecodes::tell_sizes(jvmti, jni, runtime) {
                recording.refuse("bytes of objects", bytecodes::NO_SIZES);
            }
        })
        .inspect(|()| {
            recording.step_aside(jni, true);
            recording.look_for_recorder(jni);
            recording.listen_to_threads(jni, runtime, true);
        })
        .and_then(|()| match &recording.subgraph {
            Some(subgraph) => {
                if !Subgraph::listen(jni, runtime, true) {
                    return Err(ExactError::Runtime("the probe runtime does not begin"));
                }
                Ok(subgraph.begin(&recording, jni, between))
            }
            None => recording
                .reload(jni, Purpose::Watch, between)
                .and_then(|all| Ok(all && recording.reload(jni, Purpose::Weave, between)?))
                .map_err(ExactError::Jvmti),
        });
    let begun = begun.and_then(|all| if all { Ok(()) } else { Err(ExactError::Stopped) });
    if begun.is_err() {
        recording.renew_no_callers();
    }
    begun.inspect_err(|_| stop(jvmti, jni, between))
}

/// Ends the session, if there is one: every class is as it was, and the arena has its last
/// figures. Goes on past failures; what the JVM refuses to restore keeps probes that do nothing.
/// Whatever `between` answers, all is restored.
fn stop(jvmti: Jvmti, jni: Jni, between: &mut Between<'_>) {
    let Some(recording) = locked(&RECORDING).take() else { return };
    recording.subgraph.iter().for_each(Subgraph::end);
    if let Ok(runtime) = inject::runtime(jni) {
        if recording.subgraph.is_some() {
            Subgraph::listen(jni, runtime, false);
        }
        recording.listen_to_threads(jni, runtime, false);
    }
    // The hook weaves no more, so loading a class again through it restores it.
    let_hooks_finish(&recording);
    let _ = recording.reload(jni, Purpose::Restore, between);
    if let Some(subgraph) = &recording.subgraph {
        subgraph.leave(jni);
        subgraph.release(jni);
    }
    if let Ok(runtime) = inject::runtime(jni) {
        jni.call_static_long(runtime[Part::Threads], c"session", -1);
        jni.call_static_long(runtime[Part::Trace], c"trace", -1);
        // Nothing is counted any more, and the trees are still there to be asked for.
        recording.end_agent(jni, runtime, between);
    }
    recording.memory.tick();
    std::mem::take(&mut *locked(&recording.events))
        .into_iter()
        .for_each(|events| events.off(jvmti));
    recording.forget_waiters(jni);
    forget_gone(jni, None);
    rights::give_back(jvmti);
}

/// A thread that is loading a class at this moment may still bring it in woven; it is waited for,
/// so that the class is among those that are restored. For a second at most: what comes later keeps
/// probes that do nothing.
fn let_hooks_finish(recording: &Arc<Recording>) {
    let limit = Instant::now() + Duration::from_secs(1);
    let mut waited = false;
    while Arc::strong_count(recording) > 1 && Instant::now() < limit {
        waited = true;
        std::thread::sleep(Duration::from_millis(1));
    }
    if waited {
        // From the end of the hook to where the JVM lists the class.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Called on a thread that is about to end: its tree can be used again if there get to be many.
fn thread_ended(jni: Jni) {
    if recording().is_some()
        && let Ok(runtime) = inject::runtime(jni)
    {
        jni.call_static(runtime[Part::Probe], c"ended");
    }
}

/// To be called several times a second while a session is on.
fn tick(jni: Jni) {
    let Some(recording) = recording() else { return };
    recording.memory.tick();
    if let Some(subgraph) = &recording.subgraph {
        subgraph.wake(jni);
    }
    recording.calibrate_again(jni);
    recording.tidy(jni);
}

/// The descriptors of the running session's memory: trees, names, and, for who drains a trace,
/// where it says how far it has come.
fn files(drains: bool) -> Option<io::Result<Vec<File>>> {
    recording().map(|recording| recording.memory.files(drains))
}

fn status() -> Option<ExactStatus> {
    let recording = recording()?;
    let pauses = *locked(&recording.pauses);
    let calibration = locked(&recording.calibration).0.clone();
    Some(ExactStatus {
        session: recording.memory.session,
        timed: recording.plan.is_timed(),
        costs: !recording.plan.costs().is_empty(),
        classes: recording.classes.load(Relaxed),
        methods: recording.methods.load(Relaxed),
        refused: recording.refusals(),
        weaving_ns: recording.weaving_ns.load(Relaxed),
        pauses: pauses.count,
        pause_ns: nanos_of(pauses.total),
        longest_pause_ns: nanos_of(pauses.longest),
        whole_calls: pauses.whole_calls,
        used: recording.memory.used(),
        names: recording.memory.of_names(),
        budget: recording.memory.budget(),
        elapsed_ns: nanos_of(recording.since.elapsed()),
        probe_ps: calibration.probe_ps,
        calibration: calibration.lines,
        subgraph: recording.subgraph.as_ref().map(Subgraph::status),
        regions: recording.regions.list(),
    })
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Recording {
    /// Has the probes count nothing that the calling thread runs, the control thread, or, to
    /// measure what they cost, count again. The JVM has it run woven code: other agents' class
    /// transformers, which the flight recorder is one of, and the program's class loaders.
    fn step_aside(&self, jni: Jni, aside: bool) {
        if let Ok(runtime) = inject::runtime(jni) {
            jni.call_static_long(runtime[Part::Threads], c"aside", i64::from(aside));
        }
    }

    fn events(&self) -> impl Iterator<Item = jvmtiEvent> {
        let of_waits: &[_] = if self.sees_waits() { &waiters::EVENTS } else { &[] };
        EVENTS.into_iter().chain(of_waits.iter().copied())
    }

    /// Switches events on until the session ends.
    fn listen_to(&self, list: impl IntoIterator<Item = jvmtiEvent>) -> Result<(), Failure> {
        let enabled = events::enable(self.jvmti, &SUBSCRIBER, list)?;
        locked(&self.events).push(enabled);
        Ok(())
    }

    /// What the probes take for time, but for pauses, which they leave out.
    fn probe_clock(&self) -> u64 {
        if self.plan.is_cpu_time() { probe_clock() } else { self.memory.unpaused() }
    }

    /// Whether a class is looked at when it is brought.
    fn may_weave(&self, name: &str) -> bool {
        self.subgraph.is_some() || self.is_asked_for(name)
    }

    fn wants_class(&self, name: &str) -> bool {
        if !self.is_asked_for(name) {
            return false;
        }
        let never = never_woven(name);
        never.iter().for_each(|reason| self.refuse(&dotted(name), &reason.to_string()));
        never.is_none()
    }

    fn is_asked_for(&self, name: &str) -> bool {
        if self.regions.fits_class(name) {
            return true;
        }
        if self.plan.is_regions_only() {
            return false;
        }
        rules::is_included(&self.plan, name)
            || (self.plan.root_methods().iter().any(|p| p.fits_some_method(name))
                && !rules::is_excluded(&self.plan, name))
    }
}

/// Called whenever a class is loaded, or loaded again.
fn class_in_hook(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
    let name = class.name.to_str().ok()?;
    let number = || loaders::number(class.jvmti, class.jni, class.loader);
    // A class that is loaded again is woven on a thread that has no figures.
    let by_the_jvm = class.loader.is_null();
    let held = (!class.again).then(|| Held::begin(class.jni, name, by_the_jvm)).flatten();
    let changed = changed(class.again, name, number, class.bytes)?;
    if let Some(held) = held {
        held.end(class.jni);
    }
    Some(changed)
}
