//! Call subgraphs: finds what roots reach while the program runs, and has it woven.
//!
//! The graph itself is `tare-callgraph`'s. This file feeds it: with the classes that are loaded when
//! a session begins, with each class that the JVM loads later (in the hook, on the thread that loads
//! it, which weaves at once what is reachable in it), and with methods that run for the first time.
//! A thread that enters such a method comes here once (`first`), has its callees looked up, and waits
//! until the control thread has had the classes that changed woven (`work`). The wait is bounded, and
//! there is none for a thread that is loading or initialising a class or holds a loader's lock:
//! others may need what it holds to get anywhere.
//!
//! One lock guards the graph. Nobody who holds it waits for the JVM to do anything but answer, and no
//! code of the program runs under it.

mod entries;
mod loaded;
mod loading;
mod past;
mod room;

pub use entries::{bell, class_loaded, class_prepared, explain, first, revealed, work};

use super::inject::{Part, Runtime};
use super::{Between, Engine, Purpose, locked, nanos_of, redefined, rules};
use crate::jvm::inspect::WeakClass;
use crate::jvm::{Jni, Jvmti};
use jvmti_bindings::sys::jni::{jclass, jmethodID, jobject};
use room::Room;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tare_arena::layout::own::REVEALED_ENTRIES;
use tare_callgraph::{ClassId, Explanation, Graph, Loader, MethodId, Past, Scheme, Side};
use tare_java_names::{NotWoven, is_jdk};
use tare_protocol::{ExactPlan, Explained, Explanations, MethodPattern, Roots, SubgraphStatus};

/// How long a thread that runs a method for the first time waits for its callees to be woven.
const PATIENCE: Duration = Duration::from_secs(1);

/// Methods that have a bit in the map of those that need no look any more.
pub const METHODS_MAX: usize = 1 << 22;

/// Each time that a class is woven the JVM is held up, and the classes that matter most would come
/// again and again. So a class that was woven this often is next time woven with all that its
/// reachable methods call in it.
const OFTEN: u32 = 2;

/// After so many waits, whatever ever ran is followed as soon as something calls it, not only what ran often.
const TRUSTING: u64 = 20;

/// After so many waits callees are followed so many levels ahead. A program in which there is that much to be
/// found would be held up too often otherwise; what is woven in vain costs it less.
const PATIENT: [(u64, u8); 4] = [(16, 1), (24, 2), (40, 4), (80, 8)];

/// A thread with one of these on its stack is loading or initialising a class.
const LOADING: [&[u8]; 5] =
    [b"<clinit>", b"loadClass", b"findClass", b"defineClass", b"loadClassOrNull"];

/// Why a native method is named in the recording.
const NATIVE: &str =
    "it is native: a method that it calls by JNI is missing unless something else leads to it, too";

/// What methods have run with everything that they call woven: one bit each, read by the probes.
/// It stays for the JVM's life, because a probe may be looking at it at any moment.
static DONE: OnceLock<Box<[AtomicU32]>> = OnceLock::new();

/// Methods that were seen to be called by reflection.
static REVEALED: OnceLock<Box<[AtomicU64]>> = OnceLock::new();

fn reflected() -> &'static [AtomicU64] {
    REVEALED.get_or_init(|| (0..REVEALED_ENTRIES).map(|_| AtomicU64::new(0)).collect())
}

fn done() -> &'static [AtomicU32] {
    DONE.get_or_init(|| (0..METHODS_MAX / 32).map(|_| AtomicU32::new(0)).collect())
}

pub struct Subgraph {
    jvmti: Jvmti,
    scheme: Scheme,
    skip_trivial: bool,
    roots: Vec<MethodPattern>,
    state: Mutex<State>,
    settled: Condvar,
    /// Rung when there is work for the control thread.
    bell: File,
    waits: AtomicU64,
    wait_ns: AtomicU64,
    longest_wait_ns: AtomicU64,
    /// Threads that did not wait, and those whose patience ended.
    hurried: AtomicU64,
    gave_up: AtomicU64,
    /// Classes that turned out to be in use after that had begun.
    late: AtomicU64,
    /// For classes that come while the session is on.
    room: Room,
    /// Whether what is not known to have run has not.
    pasts_are_told: AtomicBool,
}

struct State {
    graph: Graph,
    loaded: HashMap<ClassId, WeakClass>,
    /// Classes to be woven that the JVM has not made known yet.
    awaited: HashSet<ClassId>,
    ids: HashMap<u32, MethodId>,
    /// Classes, by loader and name, that others had changed since our last recording, on a JVM
    /// where that must not be touched.
    changed_before: HashSet<(Loader, Vec<u8>)>,
    /// How often each class was woven.
    weaves: HashMap<ClassId, u32>,
    /// Pieces of work, counted: asked for and done.
    asked: u64,
    finished: u64,
    over: bool,
    /// Names of classes that were loaded and not linked when the session began.
    unready: HashSet<Vec<u8>>,
    /// The static initialisers of dormant classes, those that have one.
    initialisers: HashMap<ClassId, Initialiser>,
    /// Whether a method is one of [`LOADING`], by its handle.
    loading: HashMap<usize, bool>,
}

/// The id of a static initialiser.
#[derive(Clone, Copy)]
struct Initialiser(jmethodID);

// SAFETY: ids may be used from any thread.
unsafe impl Send for Initialiser {}

/// What to weave in a class: for each method, in order, its place in the graph if
/// there is one, and whether it is a root.
pub type Chosen = Vec<Option<(Option<MethodId>, bool)>>;

impl Subgraph {
    /// What a plan needs, if it has roots and leaves to us what they reach.
    pub fn of(jvmti: Jvmti, plan: &ExactPlan) -> io::Result<Option<Self>> {
        let Some(roots) = plan.roots() else { return Ok(None) };
        let scheme = match roots.scheme() {
            tare_protocol::Scheme::Lazy => Scheme::Lazy,
            tare_protocol::Scheme::Eager => Scheme::Eager,
            tare_protocol::Scheme::All => return Ok(None),
        };
        Subgraph::new(jvmti, plan, roots, scheme).map(Some)
    }

    fn new(jvmti: Jvmti, plan: &ExactPlan, roots: &Roots, scheme: Scheme) -> io::Result<Self> {
        past::turn_the_page();
        reflected().iter().for_each(|word| word.store(0, Relaxed));
        let roots = roots.methods().to_vec();
        let skip_trivial = plan.skip_trivial;
        let room = Room::new(plan.memory);
        let plan = plan.clone();
        let side = move |name: &[u8]| match std::str::from_utf8(name) {
            Ok(name) => match rules::choice(&plan).of(name) {
                Ok(()) => Side::Inside,
                // A hidden class cannot be woven, but what it names can.
                Err(NotWoven::Hidden) => Side::Outside,
                Err(_) if is_jdk(name) => rules::part_apart(name).map_or(Side::Jdk, Side::JdkApart),
                Err(_) => Side::Outside,
            },
            Err(_) => Side::Outside,
        };
        Ok(Subgraph {
            jvmti,
            scheme,
            skip_trivial,
            roots,
            state: Mutex::new(State {
                graph: Graph::new(scheme, side),
                loaded: HashMap::new(),
                awaited: HashSet::new(),
                ids: HashMap::new(),
                changed_before: HashSet::new(),
                weaves: HashMap::new(),
                asked: 0,
                finished: 0,
                over: false,
                unready: HashSet::new(),
                initialisers: HashMap::new(),
                loading: HashMap::new(),
            }),
            settled: Condvar::new(),
            bell: crate::lifecycle::eventfd()?,
            waits: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
            longest_wait_ns: AtomicU64::new(0),
            hurried: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
            late: AtomicU64::new(0),
            room,
            pasts_are_told: AtomicBool::new(false),
        })
    }

    /// Tells the probes where they find what need not be told any more, or that nobody listens.
    pub fn listen(jni: Jni, runtime: Runtime, on: bool) -> bool {
        let (bits, most) = (done().as_ptr() as i64, METHODS_MAX as i64);
        let (table, entries) = (reflected().as_ptr() as i64, REVEALED_ENTRIES as i64);
        let on = i64::from(on);
        let discovery = runtime[Part::Discovery];
        jni.call_static_longs(discovery, c"discovery", on * bits, most)
            && jni.call_static_longs(discovery, c"revelation", on * table, entries)
    }

    pub fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    fn ring(&self) {
        let _ = (&self.bell).write(&1_u64.to_ne_bytes());
    }

    pub fn status(&self) -> SubgraphStatus {
        SubgraphStatus {
            reachable: locked(&self.state).graph.count_reachable() as u64,
            waits: self.waits.load(Relaxed),
            wait_ns: self.wait_ns.load(Relaxed),
            longest_wait_ns: self.longest_wait_ns.load(Relaxed),
            hurried: self.hurried.load(Relaxed),
            gave_up: self.gave_up.load(Relaxed),
            late: self.late.load(Relaxed),
        }
    }

    /// What is known of the methods that fit, the first of them if there are many.
    pub fn explain(
        &self,
        pattern: &MethodPattern,
        why_outside: impl Fn(&str) -> NotWoven,
    ) -> Explanations {
        const MOST: usize = 200;
        let mut all = locked(&self.state)
            .graph
            .explain(|class, method, descriptor| pattern.fits(class, method, descriptor));
        let explained = |e: Explanation| Explained {
            reason: match (e.left_out, e.side) {
                (Some(reason), _) => reason,
                (None, Side::Inside) => String::new(),
                (None, _) => why_outside(&e.class).to_string(),
            },
            chain: e.chain.into_iter().map(|step| (step.method, step.how)).collect(),
            class: e.class,
            loader: e.loader,
            method: e.method,
            descriptor: e.descriptor,
            woven: e.woven,
        };
        let rest = all.split_off(all.len().min(MOST));
        Explanations {
            methods: all.into_iter().map(explained).collect(),
            more: rest.len() as u64,
            more_woven: rest.iter().filter(|e| e.woven).count() as u64,
        }
    }

    /// Lets everybody go who waits; nobody waits from now on.
    pub fn end(&self) {
        locked(&self.state).over = true;
        self.settled.notify_all();
    }

    /// Gives the JVM its references back. After [`Subgraph::end`], on the control thread.
    pub fn release(&self, jni: Jni) {
        let loaded = std::mem::take(&mut locked(&self.state).loaded);
        loaded.into_values().for_each(|class| jni.forget(class));
    }

    // ---- what runs ----

    /// A method is entered in a context that is new, and may not have run before.
    pub fn first(&self, jni: Jni, id: u32) {
        let mut state = locked(&self.state);
        let Some(&method) = state.ids.get(&id) else { return };
        state.graph.ran(method);
        if self.wait(jni, state)
            && let Some(word) = done().get(id as usize / 32)
        {
            word.fetch_or(1 << (id % 32), Relaxed);
        }
    }

    /// A method is about to be called, or can be, in a way that no code tells. Whether all that
    /// follows from it is done.
    pub fn reveal(&self, jni: Jni, member: jobject, wait: bool) -> bool {
        let mut state;
        if jni.is_executable(member) {
            let of = jni.reflected(member).and_then(|method| self.jvmti.method_of(method));
            let Some((class, method)) = of else { return false };
            let Some(name) = self.jvmti.class_name(class) else { return false };
            let loader = self.loader(jni, class);
            state = locked(&self.state);
            state.graph.reveal(loader, &name, &method.name, &method.descriptor);
        } else {
            let Some((class, name)) = jni.member_name(member) else { return false };
            let Some(class_name) = self.jvmti.class_name(class) else { return false };
            let loader = self.loader(jni, class);
            state = locked(&self.state);
            state.graph.reveal_all(loader, &class_name, &name);
        }
        if !wait {
            if state.graph.wants_anything() {
                state.asked += 1;
                self.ring();
            }
            return false;
        }
        self.wait(jni, state)
    }

    /// Waits until what the graph wants is woven, if the calling thread may. Whether it is.
    fn wait(&self, jni: Jni, mut state: MutexGuard<'_, State>) -> bool {
        let wanted = state.graph.wants_anything();
        if wanted {
            state.asked += 1;
            self.ring();
        }
        let mine = state.asked;
        if state.finished < mine {
            if !self.may_wait(jni, &mut state) {
                self.hurried.fetch_add(1, Relaxed);
                return false;
            }
            let (began, began_ticks) =
                (Instant::now(), super::engine().map(|e| e.memory.unpaused()));
            let unfinished = |state: &mut State| !state.over && state.finished < mine;
            let (mut after, timeout) = self
                .settled
                .wait_timeout_while(state, PATIENCE, unfinished)
                .unwrap_or_else(PoisonError::into_inner);
            let waited = nanos_of(began.elapsed());
            let waits = self.waits.fetch_add(1, Relaxed) + 1;
            if waits == TRUSTING {
                after.graph.trust(Past::Ran);
            }
            if let Some((_, levels)) = PATIENT.iter().find(|(limit, _)| waits == *limit) {
                after.graph.look_ahead(*levels);
            }
            self.wait_ns.fetch_add(waited, Relaxed);
            self.longest_wait_ns.fetch_max(waited, Relaxed);
            drop(after);
            if let (Some(began), Some(engine)) = (began_ticks, super::engine()) {
                engine.held_others(jni, began);
            }
            if timeout.timed_out() {
                self.gave_up.fetch_add(1, Relaxed);
                return false;
            }
        }
        true
    }

    /// Whether nobody can need what the calling thread holds in order to load a class.
    fn may_wait(&self, jni: Jni, state: &mut State) -> bool {
        if state.over {
            return false;
        }
        let Ok(stack) = self.jvmti.own_stack() else { return false };
        for (method, _) in stack {
            let key = method as usize;
            let loading = match state.loading.get(&key) {
                Some(&loading) => loading,
                None => {
                    let of = jni.frame(|| self.jvmti.method_of(method)).flatten();
                    let loading = of.is_none_or(|(_, m)| LOADING.contains(&m.name.as_slice()));
                    state.loading.insert(key, loading);
                    loading
                }
            };
            if loading {
                return false;
            }
        }
        // Which loaders will be asked: those of the classes that are to be woven.
        let changed = state.graph.changed();
        let held = jni.frame(|| {
            let mut asked: HashSet<Loader> = HashSet::new();
            changed.into_iter().any(|id| {
                asked.insert(state.graph.loader_of(id))
                    && state.loaded.get(&id).and_then(|weak| jni.strong(weak)).is_some_and(
                        |class| {
                            let loader: Option<jobject> = self.jvmti.class_loader(class).ok();
                            loader.is_some_and(|l| !l.is_null() && jni.holds_lock(l))
                        },
                    )
            })
        });
        held == Some(false)
    }

    // ---- the control thread's part ----

    /// Has everything woven that the graph wants; returns when nothing is left to do.
    /// Whether it is: `between` may end it.
    pub fn work(&self, engine: &Engine, jni: Jni, between: &mut Between<'_>) -> bool {
        let mut bell = [0; 8];
        let _ = (&self.bell).read(&mut bell);
        loop {
            self.read_wanted(jni);
            self.tell_natives(engine);
            let (changed, asked) = {
                let mut state = locked(&self.state);
                if !state.graph.wants_anything() {
                    state.finished = state.asked;
                    drop(state);
                    self.settled.notify_all();
                    return true;
                }
                (state.graph.take_changed(), state.asked)
            };
            if !self.weave(engine, jni, &changed, between) {
                return false;
            }
            let mut state = locked(&self.state);
            if !state.graph.wants_anything() {
                state.finished = state.finished.max(asked);
                drop(state);
                self.settled.notify_all();
            }
        }
    }

    /// Names the native methods that are called: what they call by JNI is found by no rule of ours.
    fn tell_natives(&self, engine: &Engine) {
        let natives: Vec<String> = {
            let mut state = locked(&self.state);
            let taken = state.graph.take_natives();
            taken.into_iter().map(|method| state.graph.full_name(method)).collect()
        };
        for name in natives {
            engine.refuse(&name, NATIVE);
        }
    }

    /// At the beginning: everything but the roots, and then the roots, so that no root runs while
    /// this thread is too busy to answer what it finds. Whether `between` let it come to its end.
    pub fn begin(&self, engine: &Engine, jni: Jni, between: &mut Between<'_>) -> bool {
        self.survey(engine, jni, between);
        let (roots, others): (Vec<ClassId>, Vec<ClassId>) = {
            let mut state = locked(&self.state);
            let changed = state.graph.take_changed();
            changed.into_iter().partition(|&id| state.graph.has_root(id))
        };
        if !self.weave(engine, jni, &others, between) {
            return false;
        }
        match engine.reload(jni, Purpose::Watch, between) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(failure) => engine.refuse("reflection", &failure.to_string()),
        }
        self.weave(engine, jni, &roots, between) && self.work(engine, jni, between)
    }

    /// Has classes woven, some at a time. Whether that is all of them.
    fn weave(
        &self,
        engine: &Engine,
        jni: Jni,
        classes: &[ClassId],
        between: &mut Between<'_>,
    ) -> bool {
        let mut done = 0;
        while let Some(rest) = classes.get(done..).filter(|rest| !rest.is_empty()) {
            let batch = &rest[..rest.len().min(engine.batches.size())];
            if !between(engine.step(done, batch.len(), classes.len())) {
                return false;
            }
            done += batch.len();
            jni.frame(|| {
                let mut chosen = Vec::with_capacity(batch.len());
                {
                    let mut state = locked(&self.state);
                    for &id in batch {
                        match state.loaded.get(&id).map(|weak| jni.strong(weak)) {
                            Some(Some(class)) => chosen.push(class),
                            Some(None) => {} // Unloaded.
                            None => {
                                state.awaited.insert(id);
                            }
                        }
                    }
                }
                self.reload(engine, jni, chosen, between);
            });
            // Probes run on meanwhile, and may need memory.
            engine.memory.tick();
        }
        true
    }

    /// Has the JVM load some classes again, through the hook.
    fn reload(
        &self,
        engine: &Engine,
        jni: Jni,
        mut classes: Vec<jclass>,
        between: &mut Between<'_>,
    ) {
        classes.retain(|&class| self.jvmti.is_modifiable(class));
        let list = classes.clone();
        let all = self.jvmti.classes(jni, &list);
        engine.leave_events_alone(jni, &all, &mut classes);
        if !locked(&self.state).changed_before.is_empty() {
            classes.retain(|&class| {
                let changed = self.was_changed_before(jni, class);
                if changed {
                    engine.refuse_changed(&all, class);
                }
                !changed
            });
        }
        if !classes.is_empty()
            && let Err(failure) = engine.retransform(&all, &classes)
        {
            engine.refuse("classes that are reachable", &failure.to_string());
        }
        if engine.has_callers_to_renew() {
            let renewed = self
                .jvmti
                .with_loaded_classes(jni, |loaded| engine.renew_callers(jni, loaded, between))
                .and_then(|done| done);
            if let Err(failure) = renewed {
                engine.refuse("callers of intrinsic methods", &failure.to_string());
            }
        }
    }

    fn was_changed_before(&self, jni: Jni, class: jclass) -> bool {
        let name = self.jvmti.class_name(class).unwrap_or_default();
        let key = (self.loader(jni, class), name);
        locked(&self.state).changed_before.contains(&key)
    }

    /// After everything was restored: notes how the classes are that were left before.
    pub fn leave(&self, jni: Jni) {
        if !jni.forgets_redefinitions() {
            return;
        }
        jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                for &class in classes.list() {
                    jni.frame(|| {
                        if !self.was_changed_before(jni, class) {
                            redefined::leave_again(jni, classes, class);
                        }
                    });
                }
            })
        });
    }
}
