//! Agents written in Java (`--agent-jar`): what the probe runtime needs of us for them.
//!
//! The runtime loads the jar on a thread of its own and hands contexts over in a ring; here is the ring's
//! memory, which must outlive every session in which a probe may be looking at it, the names of
//! methods, and the reason when an agent is given up.

use super::inject::{Part, Runtime};
use super::{Engine, engine};
use crate::gate;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use tare_arena::MethodName;
use tare_protocol::Refusal;

/// Words of the ring: eight, of which the second counts what found no room, then slots of two.
pub const RING_SLOTS: usize = 1024;
const WORDS: usize = 8 + 2 * RING_SLOTS;
const DROPPED: usize = 1;

/// After how many bytecodes an agent of an exact recording hears of a thread, until it says otherwise.
pub const FIRST: u32 = 10_000;

static RING: OnceLock<Box<[AtomicU64]>> = OnceLock::new();

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

impl Engine {
    /// Has the runtime load the agent's jar. Whether it does is told later, by [`failed`].
    pub(super) fn load_agent(&self, jni: Jni, runtime: Runtime) {
        let Some(jar) = &self.plan.agent_jar else { return };
        let ring = RING.get_or_init(|| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
        ring[DROPPED].store(0, Relaxed);
        let memory = ring.as_ptr() as i64;
        let path = CString::new(jar.as_str()).ok();
        let loads = path.is_some_and(|path| {
            jni.call_static_text_long(runtime[Part::Agents], c"load", &path, memory)
        });
        if !loads {
            self.refuse(jar, "the probe runtime does not load it");
        }
    }

    pub(super) fn unload_agent(&self, jni: Jni, runtime: Runtime) {
        if self.plan.agent_jar.is_some() {
            jni.call_static(runtime[Part::Agents], c"unload");
        }
    }

    /// Calls of the agent that were left out because it was busy.
    pub(super) fn dropped_by_agent(&self) -> Option<Refusal> {
        let jar = self.plan.agent_jar.as_ref()?;
        let count = RING.get().map_or(0, |ring| ring[DROPPED].load(Relaxed));
        let reason = "the agent was busy when it should have been told of a context".to_owned();
        (count > 0).then(|| Refusal { what: jar.clone(), count, reason })
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
    if let Some(engine) = engine()
        && let Some(jar) = &engine.plan.agent_jar
    {
        let reason = jni.text(reason).unwrap_or_default();
        let given_up = format!("the agent was given up: {reason}");
        // A program may end before anybody asks for what was refused.
        gate::say(&format!("{jar}: {given_up}"));
        engine.refuse(jar, &given_up);
    }
}
