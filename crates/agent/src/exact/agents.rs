//! Agents written in Java (`--agent-jar`): what the probe runtime needs of us for them.
//!
//! The runtime loads the jar on a thread of its own and hands contexts over in a ring; here is the
//! ring's memory, which must outlive every session in which a probe may be looking at it, the names
//! of methods, and the reason when an agent is given up.
//!
//! Two moments wait for that thread, each for a bounded time: a program that was started for the
//! recording does not begin before the agent is ready, and neither the session nor the program ends
//! before the agent was told of what is in the ring and of the end. Who waits looks at words of the
//! ring and calls nothing of the JVM.

use super::inject::{Part, Runtime};
use super::{Recording, locked, recording};
use crate::engines::{Between, Step};
use crate::gate;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tare_arena::MethodName;
use tare_arena::layout::own::{
    self, ORDER_DRAIN, ORDER_END, ORDER_LEAVE, RING_SLOT_WORDS, RING_SLOTS, STATE_LOADING,
    STATE_OVER,
};
use tare_protocol::Activity;

/// Words of the ring. Where notes are put and taken is the runtime's business.
const FIRST_SLOT: usize = own::RING_FIRST / 8;
const STATE: usize = own::RING_STATE / 8;
const ORDER: usize = own::RING_ORDER / 8;
const CALLS: usize = own::RING_CALLS / 8;

/// How long the start of a program may be held up by an agent that is being loaded.
const LOADING_PATIENCE: Duration = Duration::from_secs(5);

/// At the end: how long an agent may be told of what is in the ring, how long all may take, and how
/// long one call of it may.
const DRAINING_PATIENCE: Duration = Duration::from_secs(3);
const ENDING_PATIENCE: Duration = Duration::from_secs(5);
const CALL_PATIENCE: Duration = Duration::from_secs(2);

/// How often who waits looks, and how often it hears who asks how it goes.
const LOOK: Duration = Duration::from_millis(1);
const HEAR: Duration = Duration::from_millis(200);

/// After how many bytecodes an agent of an exact recording hears of a thread, until it says
/// otherwise.
pub const FIRST: u32 = 10_000;

/// The ring that was made last. Probes may look at it for ever, so none is ever freed; the next
/// agent gets the same, unless the last one still hangs in it.
static RING: Mutex<Option<Ring>> = Mutex::new(None);

/// The agent of the session under way.
static AGENT: Mutex<Option<Arc<Agent>>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Ring(&'static [AtomicU64]);

impl Ring {
    fn new() -> Self {
        let words = FIRST_SLOT + RING_SLOT_WORDS * RING_SLOTS;
        let ring: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        for (turn, slot) in (0..).zip(ring[FIRST_SLOT..].iter().step_by(RING_SLOT_WORDS)) {
            slot.store(turn, Relaxed);
        }
        Ring(Box::leak(ring))
    }

    /// One that nobody serves.
    fn free() -> Self {
        let mut last = locked(&RING);
        let ring = last.filter(|ring| ring.get(STATE) == STATE_OVER).unwrap_or_else(Ring::new);
        ring.put(ORDER, 0);
        ring.put(STATE, STATE_LOADING);
        *last = Some(ring);
        ring
    }

    fn get(self, word: usize) -> u64 {
        self.0[word].load(Acquire)
    }

    fn put(self, word: usize, value: u64) {
        self.0[word].store(value, Release);
    }
}

struct Agent {
    jar: String,
    ring: Ring,
    /// A program was held up for it, in vain; that is not done again while nothing has changed.
    was_late: AtomicBool,
}

impl Agent {
    /// The order may be given by two: who ends the session, and who ends the JVM. It only grows.
    fn order(&self, order: u64) {
        self.ring.0[ORDER].fetch_max(order, Release);
    }

    fn is_over(&self) -> bool {
        self.ring.get(STATE) == STATE_OVER
    }

    /// Has the agent told of what is in the ring, and of the end. After a bounded time it is left
    /// behind.
    fn finish(&self, heard: &mut dyn FnMut()) {
        self.order(ORDER_DRAIN);
        let began = Instant::now();
        let (mut calls, mut called, mut hear) = (self.ring.get(CALLS), began, began);
        while !self.is_over() {
            std::thread::sleep(LOOK);
            let now = Instant::now();
            let calls_now = self.ring.get(CALLS);
            let loading = self.ring.get(STATE) == STATE_LOADING;
            if calls_now != calls || (loading && !self.was_late.load(Relaxed)) {
                (calls, called) = (calls_now, now);
            }
            if now - began > DRAINING_PATIENCE {
                self.order(ORDER_END);
            }
            if now - called > CALL_PATIENCE || now - began > ENDING_PATIENCE {
                return self.leave(now - began);
            }
            if now - hear > HEAR {
                hear = now;
                heard();
            }
        }
    }

    fn leave(&self, after: Duration) {
        let before = self.ring.0[ORDER].swap(ORDER_LEAVE, Release);
        if before != ORDER_LEAVE {
            gate::say(&format!(
                "{}: the agent did not finish within {} s and is abandoned; the recording counts \
                 what it was not told",
                self.jar,
                after.as_secs()
            ));
        }
    }
}

fn agent() -> Option<Arc<Agent>> {
    locked(&AGENT).clone()
}

/// Before a program begins that was started for a recording: waits until its agent is ready.
pub fn wait_until_ready() {
    let Some(agent) = agent() else { return };
    let began = Instant::now();
    while agent.ring.get(STATE) == STATE_LOADING {
        if began.elapsed() > LOADING_PATIENCE {
            agent.was_late.store(true, Relaxed);
            gate::say(&format!(
                "{}: the agent is not ready after {} s; the program starts without it, and \
                 up to {RING_SLOTS} contexts are kept for it",
                agent.jar,
                LOADING_PATIENCE.as_secs()
            ));
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Before the JVM ends, on the thread that ends it: the others still run.
pub fn finish() {
    if let Some(agent) = agent() {
        agent.finish(&mut || {});
    }
}

/// Class, method and descriptor of each id, while there is an agent.
static NAMES: Mutex<Option<HashMap<u32, String>>> = Mutex::new(None);

fn names() -> std::sync::MutexGuard<'static, Option<HashMap<u32, String>>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Before anything is woven: names are kept from now on.
pub fn prepare(with_agent: bool) {
    *names() = with_agent.then(HashMap::new);
}

pub fn note(method: &MethodName) {
    if let Some(names) = names().as_mut() {
        let text = format!("{} {} {}", method.class, method.name, method.descriptor);
        names.insert(method.id, text);
    }
}

impl Recording {
    /// Has the runtime load the agent's jar. Whether it does is told later, by [`failed`]. What the
    /// agent is to be told of is noted from now on.
    pub(super) fn load_agent(&self, jni: Jni, runtime: Runtime) {
        let Some(jar) = self.plan.agent_jar() else { return };
        let ring = Ring::free();
        let memory = ring.0.as_ptr() as i64;
        let agent = Agent { jar: jar.to_owned(), ring, was_late: AtomicBool::new(false) };
        *locked(&AGENT) = Some(Arc::new(agent));
        let path = CString::new(jar).ok();
        let loads = path.is_some_and(|path| {
            jni.call_static_text_long(runtime[Part::Agents], c"load", &path, memory)
        });
        if !loads {
            ring.put(STATE, STATE_OVER);
            self.refuse(jar, "the probe runtime does not load it");
        }
    }

    /// The session has ended, and its trees are still there.
    pub(super) fn end_agent(&self, jni: Jni, runtime: Runtime, between: &mut Between<'_>) {
        let Some(agent) = agent() else { return };
        let all = usize::try_from(self.classes.load(Relaxed)).unwrap_or(usize::MAX);
        let restored = Step { activity: Activity::Restoring, ..self.step(all, 0, all) };
        agent.finish(&mut || _ = between(restored));
        jni.call_static(runtime[Part::Agents], c"unload");
        *locked(&AGENT) = None;
    }
}

/// The name of a method, as a Java string.
pub fn name(jni: Jni, id: i32) -> jobject {
    let id = u32::try_from(id).unwrap_or(0);
    let text = names().as_ref().and_then(|names| names.get(&id).cloned());
    let text = text.and_then(|text| CString::new(text).ok());
    text.map_or(std::ptr::null_mut(), |text| jni.new_text(&text))
}

/// An agent threw, or could not be loaded: it is not called again.
pub fn failed(jni: Jni, reason: jobject) {
    let Some(agent) = agent() else { return };
    let reason = jni.text(reason).unwrap_or_default();
    let given_up = format!("the agent was given up: {reason}");
    // A program may end before anybody asks for what was refused.
    gate::say(&format!("{}: {given_up}", agent.jar));
    if let Some(recording) = recording() {
        recording.refuse(&agent.jar, &given_up);
    }
}
