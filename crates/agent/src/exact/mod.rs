//! Exact calling-context trees: weaves the chosen methods of the running JVM, and puts the
//! original code back.
//!
//! A session has memory (`memory`), which the probes fill without any help of ours; the engine
//! only weaves. Its three moments: start (the arena is ready, classes that are loaded are woven
//! in batches), the class-load hook (on whatever thread loads a class), and stop (the hook falls
//! silent, and the same classes are loaded once more through it). Which thread may do what: start
//! and stop are the control thread's; the hook shares with them the registry, behind a lock that
//! is held for no longer than a class takes.

pub mod agents;
mod archive;
mod budget;
mod bytecodes;
mod calibrate;
mod choice;
mod clock;
mod demote;
mod engine;
mod field;
mod fixed;
mod follow;
mod headroom;
mod inject;
mod intrinsics;
mod memory;
mod names_file;
mod naming;
mod natives;
mod own_memory;
mod pages;
mod probes;
mod progress;
mod recorder;
mod redefined;
mod refusals;
mod regions;
mod registry;
mod remembered;
mod reveal;
mod rights;
mod rules;
mod slots;
mod subgraph;
mod trace;
mod waiters;
mod weaving;

use crate::engines::{Between, EngineError, Step};
use crate::events::class_hook::LoadedClass;
use crate::events::{self, Enabled, Subscriber};
use crate::gate;
use crate::jvm::classes::{Classes, is_about_a_class};
use crate::jvm::{Failure, Jni, Jvmti, Vm};
use crate::loaders;
use crate::perf_memory;
use clock::{probe_clock, ticks};
pub use engine::Exact;
use inject::Part;
use intrinsics::Candidates;
use jvmti_bindings::sys::jni::jclass;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use memory::{Memory, Shape};
use naming::dotted;
use probes::AllProbes;
use progress::Batches;
use redefined::changed;
use refusals::Refusals;
use regions::Regions;
use registry::Registry;
use remembered::forget_gone;
pub use remembered::remembered;
use std::collections::HashSet;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};
use subgraph::Subgraph;
pub use subgraph::{explain, first, revealed};
use tare_java_names::never_woven;
use tare_protocol::{Activity, ExactPlan, ExactStatus, Measure};
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
static ENGINE: Mutex<Option<Arc<Engine>>> = Mutex::new(None);

/// Whether the JVM knew at its start that classes may be changed.
static FROM_THE_START: AtomicBool = AtomicBool::new(false);

/// Why a session did not begin.
#[derive(Debug)]
pub enum ExactError {
    AlreadyOn,
    Memory(io::Error),
    Runtime(&'static str),
    /// The JVM would not survive its own plans for its classes.
    Archive(&'static str),
    Jvmti(Failure),
    /// Who asked for it does not want it any more.
    Stopped,
}

impl fmt::Display for ExactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExactError::AlreadyOn => {
                write!(f, "an exact recording of this JVM is already under way; end that one first")
            }
            ExactError::Memory(e) => write!(f, "no memory for the trees: {e}"),
            ExactError::Runtime(what) | ExactError::Archive(what) => write!(f, "{what}"),
            ExactError::Jvmti(failure) => write!(f, "{failure}"),
            ExactError::Stopped => {
                write!(f, "stopped before all classes were woven; those that were are restored")
            }
        }
    }
}

impl From<ExactError> for EngineError {
    fn from(error: ExactError) -> Self {
        EngineError::Refused(error.to_string())
    }
}

/// One session.
struct Engine {
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

/// What classes are loaded again for.
#[derive(Clone, PartialEq, Eq)]
enum Purpose {
    Weave,
    /// Woven already, to be woven in another way: loaders and names.
    WeaveAnew(HashSet<(u32, String)>),
    /// To see what is called by reflection and handles.
    Watch,
    Restore,
}

#[derive(Clone, Copy, Default)]
struct Pauses {
    count: u64,
    total: Duration,
    longest: Duration,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn this_thread() -> libc::pthread_t {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::pthread_self() }
}

fn engine() -> Option<Arc<Engine>> {
    locked(&ENGINE).clone()
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
            "this JVM insists on its class archive (-Xshare:on or -XX:AOTMode=on), so threads get no \
             field of ours; exact recording works, but costs more{}",
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

const NO_CONSTANTS: &str = "; Set.of, Map.of and random numbers differ from run to run, as ever";

/// Begins a session: on return what was loaded is woven, and what will be loaded will be. After an
/// error everything is as it was.
fn start(
    jvmti: Jvmti,
    jni: Jni,
    plan: ExactPlan,
    between: &mut Between<'_>,
) -> Result<(), ExactError> {
    if engine().is_some() {
        return Err(ExactError::AlreadyOn);
    }
    if let Some(why) = archive::refusal(jvmti) {
        return Err(ExactError::Archive(why));
    }
    own_memory::learn();
    let runtime = inject::runtime(jni).map_err(ExactError::Runtime)?;
    if !jni.learn() {
        return Err(ExactError::Runtime("this JVM has other classes than those we know"));
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
    let engine = Arc::new(Engine {
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
        batches: Batches::default(),
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
    *locked(&ENGINE) = Some(Arc::clone(&engine));
    let begun = engine
        .listen_to(engine.events())
        .map_err(ExactError::Jvmti)
        .and_then(|()| {
            if jni.call_static_long(runtime[Part::Threads], c"session", base) {
                Ok(())
            } else {
                Err(ExactError::Runtime("the probe runtime does not begin"))
            }
        })
        .inspect(|()| {
            match engine.plan.measure {
                Measure::Trees(_) | Measure::Regions(_) => engine.calibrate_first(jni, runtime),
                Measure::Samples(_) => {}
                Measure::Trace(_) => engine.begin_trace(jni, runtime),
            }
            if engine.plan.allocations() && !bytecodes::tell_sizes(jvmti, jni, runtime) {
                engine.refuse("bytes of objects", bytecodes::NO_SIZES);
            }
        })
        .inspect(|()| {
            engine.step_aside(jni, true);
            engine.look_for_recorder(jni);
            engine.listen_to_threads(jni, runtime, true);
        })
        .and_then(|()| match &engine.subgraph {
            Some(subgraph) => {
                if !Subgraph::listen(jni, runtime, true) {
                    return Err(ExactError::Runtime("the probe runtime does not begin"));
                }
                Ok(subgraph.begin(&engine, jni, between))
            }
            None => engine
                .reload(jni, Purpose::Watch, between)
                .and_then(|all| Ok(all && engine.reload(jni, Purpose::Weave, between)?))
                .map_err(ExactError::Jvmti),
        });
    let begun = begun.and_then(|all| if all { Ok(()) } else { Err(ExactError::Stopped) });
    if begun.is_err() {
        engine.renew_no_callers();
    }
    begun.inspect_err(|_| stop(jvmti, jni, between))
}

/// Ends the session, if there is one: every class is as it was, and the arena has its last
/// figures. Goes on past failures; what the JVM refuses to restore keeps probes that do nothing.
/// Whatever `between` answers, all is restored.
fn stop(jvmti: Jvmti, jni: Jni, between: &mut Between<'_>) {
    let Some(engine) = locked(&ENGINE).take() else { return };
    engine.subgraph.iter().for_each(Subgraph::end);
    if let Ok(runtime) = inject::runtime(jni) {
        if engine.subgraph.is_some() {
            Subgraph::listen(jni, runtime, false);
        }
        engine.listen_to_threads(jni, runtime, false);
    }
    // The hook weaves no more, so loading a class again through it restores it.
    let_hooks_finish(&engine);
    let _ = engine.reload(jni, Purpose::Restore, between);
    if let Some(subgraph) = &engine.subgraph {
        subgraph.leave(jni);
        subgraph.release(jni);
    }
    if let Ok(runtime) = inject::runtime(jni) {
        jni.call_static_long(runtime[Part::Threads], c"session", -1);
        jni.call_static_long(runtime[Part::Trace], c"trace", -1);
        // Nothing is counted any more, and the trees are still there to be asked for.
        engine.end_agent(jni, runtime, between);
    }
    engine.memory.tick();
    std::mem::take(&mut *locked(&engine.events)).into_iter().for_each(|events| events.off(jvmti));
    engine.forget_waiters(jni);
    forget_gone(jni, None);
    rights::give_back(jvmti);
}

/// A thread that is loading a class at this moment may still bring it in woven; it is waited for, so
/// that the class is among those that are restored. For a second at most: what comes later keeps
/// probes that do nothing.
fn let_hooks_finish(engine: &Arc<Engine>) {
    let limit = Instant::now() + Duration::from_secs(1);
    let mut waited = false;
    while Arc::strong_count(engine) > 1 && Instant::now() < limit {
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
    if engine().is_some()
        && let Ok(runtime) = inject::runtime(jni)
    {
        jni.call_static(runtime[Part::Probe], c"ended");
    }
}

/// To be called several times a second while a session is on.
fn tick(jni: Jni) {
    let Some(engine) = engine() else { return };
    engine.memory.tick();
    if let Some(subgraph) = &engine.subgraph {
        subgraph.wake(jni);
    }
    engine.calibrate_again(jni);
    engine.tidy(jni);
}

/// The descriptors of the running session's memory: trees, names, and, for who drains a trace, where
/// it says how far it has come.
fn files(drains: bool) -> Option<io::Result<Vec<File>>> {
    engine().map(|engine| engine.memory.files(drains))
}

fn status() -> Option<ExactStatus> {
    let engine = engine()?;
    let pauses = *locked(&engine.pauses);
    let calibration = locked(&engine.calibration).0.clone();
    Some(ExactStatus {
        session: engine.memory.session,
        timed: engine.plan.is_timed(),
        costs: !engine.plan.costs().is_empty(),
        classes: engine.classes.load(Relaxed),
        methods: engine.methods.load(Relaxed),
        refused: engine.refusals(),
        weaving_ns: engine.weaving_ns.load(Relaxed),
        pauses: pauses.count,
        pause_ns: nanos_of(pauses.total),
        longest_pause_ns: nanos_of(pauses.longest),
        used: engine.memory.used(),
        names: engine.memory.of_names(),
        budget: engine.memory.budget(),
        elapsed_ns: nanos_of(engine.since.elapsed()),
        probe_ps: calibration.probe_ps,
        calibration: calibration.lines,
        subgraph: engine.subgraph.as_ref().map(Subgraph::status),
        regions: engine.regions.list(),
    })
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Engine {
    /// Has the probes count nothing that the calling thread runs, the control thread, or, to measure
    /// what they cost, count again. The JVM has it run woven code: other agents' class transformers,
    /// which the flight recorder is one of, and the program's class loaders.
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

    fn has_woven(&self, name: &str, loader: u32) -> bool {
        let registry = locked(&REGISTRY);
        registry.as_ref().is_some_and(|r| r.is_woven(loader, name, self.memory.session))
    }

    /// Has the JVM load the chosen ones of the loaded classes again, through the hook. Whether that is
    /// all of them: `between` may end it, unless classes are restored.
    fn reload(
        &self,
        jni: Jni,
        purpose: Purpose,
        between: &mut Between<'_>,
    ) -> Result<bool, Failure> {
        let outcome = jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                let mut chosen = classes.select(|name, class| match &purpose {
                    Purpose::Weave => self.wants_class(name),
                    Purpose::WeaveAnew(wanted) => {
                        wanted.contains(&(classes.loader(class), name.to_owned()))
                            && self.has_woven(name, classes.loader(class))
                    }
                    Purpose::Watch => {
                        self.is_watched(name, classes.loader(class))
                            || (self.subgraph.is_some() && self.regions.fits_class(name))
                    }
                    Purpose::Restore => self.has_woven(name, classes.loader(class)),
                });
                let forgets = jni.forgets_redefinitions();
                let mut left = Vec::new();
                if forgets {
                    left.extend_from_slice(classes.list());
                    left.retain(|class| redefined::is_left(jni, classes, *class));
                }
                if purpose != Purpose::Restore {
                    self.leave_events_alone(jni, classes, &mut chosen);
                    if forgets {
                        chosen.retain(|class| self.is_as_we_left_it(jni, classes, *class));
                    }
                }
                let activity = match purpose {
                    Purpose::Restore => Activity::Restoring,
                    _ => Activity::Weaving,
                };
                let all = self.in_batches(classes, &chosen, activity, between)?
                    && self.renew_callers(jni, classes, between)?;
                left.iter().for_each(|class| redefined::leave_again(jni, classes, *class));
                if purpose == Purpose::Restore && forgets {
                    chosen.iter().for_each(|class| redefined::leave(jni, classes, *class));
                }
                Ok(all)
            })
        });
        match outcome {
            Some(Ok(done)) => done,
            Some(Err(failure)) => Err(failure),
            None => {
                Err(Failure { call: "PushLocalFrame", error: jvmti::jvmtiError::OUT_OF_MEMORY })
            }
        }
    }

    /// The next batch of classes that are woven.
    fn step(&self, done: usize, now: usize, all: usize) -> Step {
        Step { activity: Activity::Weaving, done, now, all, methods: self.methods.load(Relaxed) }
    }

    /// Has the JVM load these classes again, some at a time. Whether that is all of them.
    fn in_batches(
        &self,
        all: &Classes<'_>,
        chosen: &[jclass],
        activity: Activity,
        between: &mut Between<'_>,
    ) -> Result<bool, Failure> {
        let mut done = 0;
        while let Some(rest) = chosen.get(done..).filter(|rest| !rest.is_empty()) {
            let batch = &rest[..rest.len().min(self.batches.size())];
            let goes_on = between(Step { activity, ..self.step(done, batch.len(), chosen.len()) });
            if !goes_on && activity != Activity::Restoring {
                return Ok(false);
            }
            self.retransform(all, batch)?;
            done += batch.len();
            // Probes run on meanwhile, and may need memory.
            self.memory.tick();
        }
        Ok(true)
    }

    /// One batch. Classes that cannot be linked stay as they are: the JVM would refuse them, too.
    fn retransform(&self, all: &Classes<'_>, batch: &[jclass]) -> Result<(), Failure> {
        let mut linked = batch.to_vec();
        linked.retain(|&class| match all.link(class) {
            Ok(()) => true,
            Err(thrown) => {
                self.not_taken(all, class, &format!("the JVM cannot link it: {thrown}"));
                false
            }
        });
        if linked.is_empty() { Ok(()) } else { self.retransform_linked(all, &linked) }
    }

    /// When one of the classes is the reason for a failure, the others still get their turn: the
    /// batch is halved until that class stands alone.
    fn retransform_linked(&self, all: &Classes<'_>, batch: &[jclass]) -> Result<(), Failure> {
        let (began, ticks_before) = (Instant::now(), ticks());
        let stood_still = perf_memory::safepoint_ns();
        let outcome = self.jvmti.retransform(batch);
        // At once: what is compiled in between would do without the woven bodies.
        if outcome.is_ok() && locked(&self.candidates).any() {
            for class in batch {
                self.switch_intrinsics_off(*class);
            }
        }
        let pause = began.elapsed();
        let after = perf_memory::safepoint_ns();
        let still =
            stood_still.zip(after).map_or(0, |(before, after)| after.saturating_sub(before));
        self.batches.took(batch.len(), pause.saturating_sub(Duration::from_nanos(still)));
        if let (Some(before), Some(after)) = (stood_still, after) {
            let rate = (ticks() - ticks_before) as f64 / pause.as_nanos().max(1) as f64;
            let stood_still = (after.saturating_sub(before) as f64 * rate) as u64;
            if self.plan.is_trace() {
                self.note_pause(stood_still);
            } else if self.plan.is_timed() && !self.plan.is_cpu_time() {
                self.memory.add_pause(stood_still);
            }
        }
        {
            let mut pauses = locked(&self.pauses);
            pauses.count += 1;
            pauses.total += pause;
            pauses.longest = pauses.longest.max(pause);
        }
        match outcome {
            Err(failure) if is_about_a_class(&failure) => match *batch {
                [] => Ok(()),
                [class] => {
                    let why = format!("the JVM did not take the woven class ({failure})");
                    self.not_taken(all, class, &why);
                    Ok(())
                }
                _ => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    self.retransform_linked(all, first)?;
                    self.retransform_linked(all, second)
                }
            },
            other => other,
        }
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
