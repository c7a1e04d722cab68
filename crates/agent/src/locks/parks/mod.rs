//! Threads that park: waits for locks, conditions, queues and futures of `java.util.concurrent`, and
//! sleep.
//!
//! Who does what: our code in the place of `Unsafe.park` (`hook`) sees platform threads park, and
//! woven code (`woven`) virtual ones; where nothing is woven, the JVM tells of those (`mounts`).
//! All have a Java class of ours look at what is waited for (`runtime/java/lang/TareParks`), which
//! calls [`begin`] and later [`end`]. `table` has the waits that are under way and those that may
//! go on. Where code is woven, `tasks` tells how long tasks were in the queues of executors.
//! `starts` tells who starts threads, which our code sees in the place of `Thread.start0`.

mod hook;
pub mod mounts;
mod starts;
mod table;
mod tasks;
mod woven;

pub use hook::replace;
pub use table::Token;
pub use tasks::{started, submitted, waits_for_thread};

use super::shared::{Shared, with_session};
use super::waits::{Owner, Wait};
use crate::engines::Jvm;
use crate::events::Subscriber;
use crate::events::extensions::Extended;
use crate::exact::inject::{self, PARKS};
use crate::jvm::classes::OwnClass;
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::stacks::frames::Frame;
use jvmti_bindings::sys::jni::jclass;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use table::{Begun, Park, table};
use tare_protocol::LockWait;

/// A thread that was woken tries to get its lock at once, so a wait that did not go on for so long
/// is over.
const GOES_ON: u64 = 100_000_000;

/// Who finds a permit does not wait, and is back sooner than this.
const PERMIT: u64 = 1_000;

/// Counts sessions, so that what was begun in one does not end in another.
static SESSION: AtomicU32 = AtomicU32::new(0);

/// Brought in once in a JVM's life, with the first session.
static CLASS: Mutex<Option<OwnClass>> = Mutex::new(None);

/// The ids of that class's methods: nobody wants to see them in a stack.
static OWN_METHODS: OnceLock<Vec<u64>> = OnceLock::new();

/// The environment of the session that begins.
static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn jvmti() -> Option<Jvmti> {
    *locked(&ENVIRONMENT)
}

/// What is on for a session.
#[derive(Default)]
pub struct Parks {
    woven: Option<woven::Woven>,
    mounts: Option<Extended>,
}

impl Parks {
    /// Begins; with `weave`, by probes in the JDK where that is surer. What could not be done, in
    /// sentences for a person, is no reason to do without the rest.
    pub fn start(jvm: Jvm, weave: bool, who: &'static Subscriber, notes: &mut Vec<String>) -> Self {
        SESSION.fetch_add(1, Relaxed);
        let begun = table().ok_or("memory for waits").and_then(|table| {
            table.clear();
            let class = class(jvm).map_err(|_| "room for the classes that look at them")?;
            *locked(&ENVIRONMENT) = Some(jvm.jvmti);
            hook::begin(jvm.jvmti, jvm.jni, class).map(|()| class)
        });
        let class = match begun {
            Ok(class) => class,
            Err(missing) => {
                notes.push(format!(
                    "Only waits for monitors are told: this JVM lacks {missing}, so threads that \
                     park or sleep are not seen."
                ));
                return Parks::default();
            }
        };
        tasks::clear();
        let why = match weave {
            true => match woven::Woven::start(jvm) {
                Ok(woven) => return Parks { woven: Some(woven), mounts: None },
                Err(why) => why,
            },
            false => "nothing is woven into a running JVM unless that is asked for; `--lock=full` \
                      does"
                .to_owned(),
        };
        let mut untold = vec!["tasks in queues of executors"];
        let mut mounts = None;
        if woven::has_virtual_threads(jvm.jni) {
            mounts = mounts::begin(jvm.jvmti, jvm.jni, class, who).ok();
            if mounts.is_none() {
                untold.insert(0, "virtual threads that park");
            }
        }
        notes.push(format!("Not told are {}: {why}.", untold.join(", and ")));
        Parks { woven: None, mounts }
    }

    /// Tells what is over.
    pub fn tick(&self, shared: &Shared) {
        let before = kernel::monotonic().saturating_sub(GOES_ON);
        tell_over(shared, before);
    }

    /// Nobody is told of any more; what is woven is taken out.
    pub fn stop(&mut self, jvm: Jvm) {
        hook::end();
        if let Some(mounts) = self.mounts.take() {
            mounts.off(jvm.jvmti);
        }
        if let Some(woven) = self.woven.take() {
            woven.end(jvm);
        }
    }

    /// The rest is told, now that nobody is inside.
    pub fn finish(&self, shared: &Shared) {
        tell_over(shared, u64::MAX);
        if let Some(table) = table() {
            let now = kernel::monotonic();
            table.under_way().for_each(|park| shared.ended(&park.wait, now));
            table.clear();
        }
    }
}

fn tell_over(shared: &Shared, before: u64) {
    if let Some(table) = table() {
        table.over(before, |park| shared.ended(&park.wait, park.ended));
    }
}

fn class(jvm: Jvm) -> Result<OwnClass, &'static str> {
    let mut class = locked(&CLASS);
    let known = match *class {
        Some(known) => known,
        None => {
            let made = inject::apart(jvm.jni, PARKS)?;
            jvm.jni.initialise(made);
            *class.insert(made)
        }
    };
    OWN_METHODS.get_or_init(|| {
        let mut ids = jvm.jvmti.method_ids(known.class()).unwrap_or_default();
        ids.sort_unstable();
        ids
    });
    Ok(known)
}

/// Whether a frame is there only because it is looked at what is waited for.
pub fn is_own(frame: &Frame) -> bool {
    let ids = OWN_METHODS.get().map_or(&[][..], Vec::as_slice);
    frame.method().is_some_and(|id| ids.binary_search(&id).is_ok() || mounts::is_telling(id))
}

/// What the probe runtime has seen.
pub struct Seen {
    /// The Java thread's id.
    pub thread: u64,
    pub kind: u64,
    pub class: jclass,
    pub instance: u32,
    pub node: u32,
    pub queue: u32,
    /// The owner's id, and HotSpot's thread on which it runs; zeros for what is not known.
    pub owner: u64,
    pub handle: u64,
}

/// The calling thread is about to wait. The number by which it ends that; zero for none.
pub fn begin(jni: Jni, seen: &Seen) -> i64 {
    let mut token = None;
    with_session(|shared| token = shared.parks(jni, seen));
    token.map_or(0, Token::raw)
}

/// It waits no more. Calls no JNI.
pub fn end(token: Token) {
    let now = kernel::monotonic();
    with_session(|shared| {
        let ended = table().and_then(|table| table.end(token, now));
        if let Some(park) = ended.filter(|park| now.saturating_sub(park.parked) >= PERMIT) {
            shared.ended(&park.wait, now);
        }
    });
}

/// A virtual thread is mounted. If it has waited, it does no more, unless it could not leave its
/// carrier. Calls no JNI.
fn is_back(thread: u64, has_left: bool) {
    let Some(token) = table().and_then(|table| table.token_of(thread)) else { return };
    match has_left {
        true => end(token),
        // It parks on its carrier now, where the hook sees it: what has a node goes on with that,
        // and the rest was no wait yet.
        false => with_session(|_| _ = table().map(|table| table.end(token, kernel::monotonic()))),
    }
}

impl Shared {
    fn parks(&self, jni: Jni, seen: &Seen) -> Option<Token> {
        let began = kernel::monotonic();
        let here = self.here(jni)?;
        let table = table()?;
        let kind = LockWait::of_code(seen.kind)?;
        let token = match table.begin(SESSION.load(Relaxed), seen.thread, seen.node) {
            Begun::Inside => return None,
            Begun::Again(token) => return Some(token),
            Begun::New(token, before) => {
                if let Some(before) = before {
                    self.ended(&before.wait, before.ended);
                }
                token
            }
            Begun::Full => {
                self.untimed(kind);
                return None;
            }
        };
        // First of all: the owner is on its way.
        let owner = match seen.owner {
            0 => Owner::default(),
            id => {
                let waits = table.proof(token);
                let lock = u64::from(seen.instance);
                let parked = table.trace_of(id);
                self.owners.of_parked(self, &here, lock, (id, seen.handle), parked, waits)
            }
        };
        let class = match seen.class.is_null() {
            true => 0,
            false => self.class(jni, seen.class),
        };
        let (trace, java_id) = self.stack(&here, class);
        let wait = Wait {
            kind,
            began,
            thread: here.number(),
            java_id,
            trace,
            class,
            instance: u64::from(seen.instance),
            owner,
            queue: seen.queue,
        };
        let parked = kernel::monotonic();
        table.fill(token, &Park { wait, node: seen.node, parked, ended: 0 });
        Some(token)
    }
}
