//! Call subgraphs: finds what roots reach while the program runs, and has it woven.
//!
//! The graph itself is `tare-callgraph`'s. It is fed here: with the classes that are loaded when a
//! session begins (`loaded`), with each class that the JVM loads later (`loading`: in the hook, on
//! the thread that loads it, which weaves at once what is reachable in it), and with methods that
//! run for the first time (`running`). A thread that enters such a method comes here once
//! (`first`), has its callees looked up, and waits until the control thread has had the classes
//! that changed woven (`work`). The wait is bounded, and there is none for a thread that is loading
//! or initialising a class or holds a loader's lock: others may need what it holds to get anywhere.
//!
//! One lock guards the graph. Nobody who holds it waits for the JVM to do anything but answer, and
//! no code of the program runs under it.

mod earlier_runs;
mod entries;
mod loaded;
mod loading;
mod running;
mod work;

mod room;

pub use entries::{bell, class_loaded, class_prepared, explain, first, revealed, work};

use super::inject::{Part, Runtime};
use super::{locked, rules};
use crate::jvm::inspect::WeakClass;
use crate::jvm::{Jni, Jvmti};
use jvmti_bindings::sys::jni::jmethodID;
use room::Room;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, OnceLock};
use tare_arena::layout::own::REVEALED_ENTRIES;
use tare_callgraph::{ClassId, Explanation, Graph, Loader, MethodId, Scheme, Side};
use tare_java_names::{NotWoven, is_jdk};
use tare_protocol::{ExactPlan, Explained, Explanations, MethodPattern, Roots, SubgraphStatus};

/// Methods that have a bit in the map of those that need no look any more.
pub const METHODS_MAX: usize = 1 << 22;

/// Each time that a class is woven the JVM is held up, and the classes that matter most would come
/// again and again. So a class that was woven this often is next time woven with all that its
/// reachable methods call in it.
const OFTEN: u32 = 2;

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
        earlier_runs::turn_the_page();
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
}
