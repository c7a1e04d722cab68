//! What a trace has beside the threads' own records: when methods were compiled and their code was
//! thrown away, and when all threads stood still for our sake. The agent writes it into a ring of
//! its own, which the front end drains with the others.
//!
//! HotSpot tells of compilations on a thread of its own, after the code is in use: a call in
//! between is taken for one of the code before. It does not tell when it stops using code that it
//! keeps for a while; that is noticed when the method is compiled again.

use super::clock::ticks;
use super::inject::{Part, Runtime};
use super::own_memory::read;
use super::probes::UNFIT;
use super::{REGISTRY, Recording, locked, recording};
use crate::jvm::{Jni, Jvmti};
use crate::loaders;
use crate::vm_tables::Tables;
use jvmti_bindings::sys::jni::jmethodID;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tare_arena::layout::record;
use tare_weaver::{Arg, Call, CallProbe, FrameProbe, ProbeSet, Probes};

const EVENTS: [jvmtiEvent; 2] =
    [jvmti::JVMTI_EVENT_COMPILED_METHOD_LOAD, jvmti::JVMTI_EVENT_COMPILED_METHOD_UNLOAD];

/// Which of our methods is behind one of the JVM's; `None` for those that are not woven.
pub type Known = Mutex<HashMap<usize, Option<u32>>>;

/// What woven methods call: where the subgraph may begin, and elsewhere. Around calls of natives
/// there are probes, too: class, name, descriptor and id of each.
pub fn probes(
    natives: Vec<(String, String, String, u32)>,
) -> Result<(Probes, Probes), &'static str> {
    let owner = Part::Trace.name();
    let set = |enter: &str| {
        let call = |name: &str, arguments: &[Arg]| Call::new(&owner, name, "(JI)V", arguments);
        let arguments = [Arg::Token, Arg::MethodId];
        Probes::new(ProbeSet {
            frames: vec![FrameProbe {
                enter: Call::new(&owner, enter, "(I)J", &[Arg::MethodId]),
                exit: call("exit", &arguments),
                exit_throw: Some(call("exitThrow", &arguments)),
                caught: Some(call("caught", &arguments)),
            }],
            call: (!natives.is_empty()).then(|| CallProbe {
                targets: natives.clone(),
                before: Call::new(&owner, "enterNative", "(I)J", &[Arg::Site]),
                after: call("exit", &[Arg::Token, Arg::Site]),
                after_throw: Some(call("exitThrow", &[Arg::Token, Arg::Site])),
            }),
            ..ProbeSet::default()
        })
        .map_err(|_| UNFIT)
    };
    Ok((set("enterRoot")?, set("enter")?))
}

impl Recording {
    /// The session that begins is a trace.
    pub(super) fn begin_trace(&self, jni: Jni, runtime: Runtime) {
        jni.call_static_long(runtime[Part::Trace], c"trace", self.memory.base.cast_signed());
        self.calibrate_trace(jni, runtime);
        self.find_natives(jni);
        let told = self.listen_to(EVENTS);
        if told.is_err() {
            self.refuse("types of methods", "this JVM does not tell what it compiles");
        }
    }

    /// All threads stood still until now.
    pub(super) fn note_pause(&self, length: u64) {
        let end = ticks();
        let mut left = length;
        while left > 0 {
            let part = left.min(u64::from(u32::MAX));
            self.memory.note(record::PAUSE, end - left, part as u32, 0);
            left -= part;
        }
    }

    /// What code new calls of a method run in from now on.
    fn note_code(&self, method: jmethodID) {
        let now = ticks();
        let Some(id) = self.woven_id(method) else { return };
        match tier(self.jvmti, method) {
            Some(tier) if tier > 0 => self.memory.note(record::COMPILED, now, id, tier.into()),
            _ => self.memory.note(record::DISCARDED, now, id, 0),
        }
    }

    fn woven_id(&self, method: jmethodID) -> Option<u32> {
        let known = locked(&self.compiled).get(&(method as usize)).copied();
        known.unwrap_or_else(|| {
            let id = self.look_up(method);
            locked(&self.compiled).insert(method as usize, id);
            id
        })
    }

    fn look_up(&self, method: jmethodID) -> Option<u32> {
        let (class, method) = self.jvmti.method_of(method)?;
        let name = String::from_utf8(self.jvmti.class_name(class)?).ok()?;
        let loader = loaders::tagged(self.jvmti, self.jvmti.class_loader(class).ok()?)?;
        let registry = locked(&REGISTRY);
        let registry = registry.as_ref()?;
        let known = registry.known_id(loader, &name, &method.name, &method.descriptor);
        known.filter(|_| registry.is_woven(loader, &name, self.memory.session))
    }
}

/// A thread waits for room in its ring: the tool empties half of one in a few milliseconds.
pub fn rest() {
    std::thread::sleep(Duration::from_micros(50));
}

/// Where HotSpot keeps the code of a method, and its tier.
#[derive(Clone, Copy)]
struct Places {
    code: u64,
    level: u64,
}

/// The tier of the code that new calls of a method run in; zero for the interpreter. `None` if this
/// JVM does not say where it is kept.
pub fn tier(jvmti: Jvmti, method: jmethodID) -> Option<u8> {
    static PLACES: OnceLock<Option<Places>> = OnceLock::new();
    let places = (*PLACES.get_or_init(|| {
        let tables = Tables::read(jvmti.inside_libjvm()).ok()?;
        let code = tables.offset(&["Method"], "_code").ok()?;
        let level = tables.offset(&["nmethod"], "_comp_level").ok()?;
        Some(Places { code, level })
    }))?;
    // An id points to where the method's address is. The code may go while we look: what is read
    // then is wrong for a moment, until the JVM tells that it went.
    let word = |at: u64| read(at).map(u64::from_ne_bytes);
    let structure = word(method as u64)?;
    match word(structure.checked_add(places.code)?)? {
        0 => Some(0),
        code => read::<1>(code.checked_add(places.level)?).map(|[tier]| tier.min(4)),
    }
}

/// Called by the JVM when there is new code of a method.
pub fn compiled(method: jmethodID) {
    if let Some(recording) = recording().filter(|recording| recording.plan.is_trace()) {
        recording.note_code(method);
    }
}

/// Called by the JVM when it has thrown code of a method away. The method may be gone, too: nothing
/// of it is asked that is not known already, and another may get its handle.
pub fn discarded(method: jmethodID) {
    if let Some(recording) = recording().filter(|recording| recording.plan.is_trace())
        && let Some(Some(id)) = locked(&recording.compiled).remove(&(method as usize))
    {
        recording.memory.note(record::DISCARDED, ticks(), id, 0);
    }
}
