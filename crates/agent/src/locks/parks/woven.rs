//! Probes in a few classes of the JDK: those through which virtual threads park and sleep, because
//! the hook for native methods does not see what parks in Java, and those that take tasks over and
//! run them.
//!
//! The JVM is asked in an environment of our own, so what is allowed and given back here is no
//! other engine's. The classes are loaded before, so the class-load hook is on for no longer than it
//! takes to load them again. Threads that wait meanwhile go on in the code that they were in.

use crate::engines::Jvm;
use crate::events::class_hook::{self, ClassHook, LoadedClass};
use crate::exact::inject::{self, PARKS};
use crate::jvm::{Failure, Jni, Jvmti};
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEventCallbacks};
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use tare_weaver::{
    Arg, Call, CallProbe, FrameProbe, MethodInfo, MethodPlan, Options, Outcome, ProbeSet, Probes,
    Weaver,
};

const LOCK_SUPPORT: &CStr = c"java/util/concurrent/locks/LockSupport";
const THREAD: &CStr = c"java/lang/Thread";
/// Not `VirtualThread` itself: to be found, a class is initialised, and that one starts a thread
/// then (since JDK 24), which starts carriers. From us they would inherit that signals are blocked,
/// and nobody could ever ask them for their stacks.
const VIRTUAL_THREAD: &CStr = c"java/lang/BaseVirtualThread";
const POOL: &CStr = c"java/util/concurrent/ThreadPoolExecutor";
const FORK_JOIN_POOL: &CStr = c"java/util/concurrent/ForkJoinPool";
const FORK_JOIN_TASK: &CStr = c"java/util/concurrent/ForkJoinTask";

/// Of virtual threads, and of tasks.
const VIRTUAL: [&CStr; 2] = [LOCK_SUPPORT, THREAD];
const EXECUTORS: [&CStr; 3] = [POOL, FORK_JOIN_POOL, FORK_JOIN_TASK];

/// Whether the hook weaves; if not, it leaves classes as they were.
static WEAVES: AtomicBool = AtomicBool::new(false);

/// Methods that got probes since the last look.
static WOVEN: AtomicU64 = AtomicU64::new(0);

/// How many are expected at least: of virtual threads, three ways to park with a blocker and three
/// without; of executors, those that take over and run in two of them.
const FEWEST: (u64, u64) = (6, 4);

/// Whether this JVM can have virtual threads.
pub fn has_virtual_threads(jni: Jni) -> bool {
    jni.frame(|| jni.found(VIRTUAL_THREAD).is_some()).unwrap_or(false)
}

pub struct Woven {
    environment: Jvmti,
}

impl Woven {
    /// After an error everything is as it was.
    pub fn start(jvm: Jvm) -> Result<Self, String> {
        if probes().is_none() {
            return Err("the probes do not fit their runtime".into());
        }
        let environment = jvm.vm.jvmti().ok_or("the JVM has no environment for it")?;
        let woven = Woven { environment };
        let mut capabilities = jvmtiCapabilities::default();
        capabilities.set_can_retransform_classes(true);
        capabilities.set_can_generate_all_class_hook_events(true);
        let mut callbacks = jvmtiEventCallbacks::default();
        callbacks.ClassFileLoadHook = Some(class_hook::callback::<Hook>);
        WOVEN.store(0, Relaxed);
        let done = environment
            .add_capabilities(&capabilities)
            .and_then(|()| environment.set_callbacks(&callbacks))
            .and_then(|()| woven.reload(jvm.jni, true));
        let fewest = match has_virtual_threads(jvm.jni) {
            true => FEWEST.0 + FEWEST.1,
            false => FEWEST.1,
        };
        match done {
            Ok(()) if WOVEN.load(Relaxed) >= fewest => Ok(woven),
            Ok(()) => {
                woven.end(jvm);
                Err("this JDK's classes have other methods than expected".into())
            }
            Err(failure) => {
                woven.end(jvm);
                Err(failure.to_string())
            }
        }
    }

    /// The classes are as they were.
    pub fn end(self, jvm: Jvm) {
        let _ = self.reload(jvm.jni, false);
        let _ = self.environment.dispose();
    }

    fn reload(&self, jni: Jni, weaves: bool) -> Result<(), Failure> {
        let hook = jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK;
        let missing = Failure::not_available("the classes that park threads");
        WEAVES.store(weaves, SeqCst);
        let loaded = jni.frame(|| {
            let names = match has_virtual_threads(jni) {
                true => [&VIRTUAL[..], &EXECUTORS].concat(),
                false => EXECUTORS.to_vec(),
            };
            let classes: Vec<_> = names.iter().filter_map(|name| jni.found(name)).collect();
            if classes.len() < names.len() {
                return Err(missing);
            }
            self.environment.event(hook, true)?;
            let done = self.environment.retransform(&classes);
            self.environment.event(hook, false)?;
            done
        });
        WEAVES.store(false, SeqCst);
        loaded.unwrap_or(Err(Failure::not_available("memory for references")))
    }
}

enum Hook {}

impl ClassHook for Hook {
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        let is_ours = VIRTUAL.contains(&class.name) || EXECUTORS.contains(&class.name);
        if !is_ours || !class.loader.is_null() || !WEAVES.load(SeqCst) {
            return None;
        }
        let probes = probes()?;
        let mut weaver = Weaver::new(Options::default());
        let plan = |info: &MethodInfo<'_>| Some(MethodPlan::new(0, probes.of(info)?));
        match weaver.weave(class.bytes, plan) {
            Ok(Outcome::Woven { bytes, report }) => {
                WOVEN.fetch_add(report.woven() as u64, Relaxed);
                Some(bytes)
            }
            _ => None,
        }
    }
}

/// Of methods that park for what they are given, that park, and that sleep; that take a task over,
/// by where among the local variables it is; and that run one.
struct AllProbes {
    parks_for: Probes,
    parks: Probes,
    sleeps: Probes,
    submits: [Probes; 2],
    runs: Probes,
    executes: Probes,
}

impl AllProbes {
    fn of(&self, info: &MethodInfo<'_>) -> Option<&Probes> {
        match (info.name, info.descriptor) {
            (b"park", b"(Ljava/lang/Object;)V")
            | (b"parkNanos" | b"parkUntil", b"(Ljava/lang/Object;J)V") => Some(&self.parks_for),
            (b"park", b"()V") | (b"parkNanos" | b"parkUntil", b"(J)V") => Some(&self.parks),
            (b"sleep", b"(J)V" | b"(JI)V" | b"(Ljava/time/Duration;)V") => Some(&self.sleeps),
            (b"execute", b"(Ljava/lang/Runnable;)V") if info.class == POOL.to_bytes() => {
                Some(&self.submits[0])
            }
            (b"runWorker", _) if info.class == POOL.to_bytes() => Some(&self.runs),
            // Versions differ in which of these is the one that all others call.
            (b"externalSubmit", _) => Some(&self.submits[0]),
            (b"poolSubmit", _) => Some(&self.submits[1]),
            (b"doExec", b"()I" | b"()V") => Some(&self.executes),
            _ => None,
        }
    }
}

fn probes() -> Option<&'static AllProbes> {
    static PROBES: OnceLock<Option<AllProbes>> = OnceLock::new();
    PROBES.get_or_init(made).as_ref()
}

fn made() -> Option<AllProbes> {
    let owner = inject::named(PARKS);
    let around = |enter: Call| {
        let exit = Call::new(&owner, "ends", "(J)V", &[Arg::Token]);
        let frame = FrameProbe { enter, exit: exit.clone(), exit_throw: Some(exit), caught: None };
        Probes::new(ProbeSet { frames: vec![frame], ..ProbeSet::default() }).ok()
    };
    let given = [Arg::Parameter(0)];
    let submits = |place| {
        let given = [Arg::Parameter(0), Arg::Parameter(place)];
        let two = "(Ljava/lang/Object;Ljava/lang/Object;)V";
        let entry = Some(Call::new(&owner, "submits", two, &given));
        Probes::new(ProbeSet { entry, ..ProbeSet::default() }).ok()
    };
    let around_run = |(class, method, descriptor): (&str, &str, &str)| {
        let after = Call::new(&owner, "ran", "(J)V", &[Arg::Token]);
        let call = CallProbe {
            targets: vec![(class.to_owned(), method.to_owned(), descriptor.to_owned(), 0)],
            before: Call::new(&owner, "runs", "(Ljava/lang/Object;)J", &[Arg::Object]),
            after,
            after_throw: None,
        };
        Probes::new(ProbeSet { call: Some(call), ..ProbeSet::default() }).ok()
    };
    Some(AllProbes {
        submits: [submits(1)?, submits(2)?],
        runs: around_run(("java/lang/Runnable", "run", "()V"))?,
        executes: around_run(("java/util/concurrent/ForkJoinTask", "exec", "()Z"))?,
        parks_for: around(Call::new(&owner, "virtualParks", "(Ljava/lang/Object;)J", &given))?,
        parks: around(Call::new(&owner, "virtualParks", "()J", &[]))?,
        sleeps: around(Call::new(&owner, "virtualSleeps", "()J", &[]))?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probes_fit_their_runtime() {
        assert!(super::probes().is_some());
    }
}
