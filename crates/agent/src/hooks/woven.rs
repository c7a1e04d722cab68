//! Sets hooks and takes them out: the classes that gain some and those that lose some are loaded
//! again in one batch.
//!
//! In an environment of our own, so what is allowed and given back here is no other engine's. The
//! class-load hook is on for no longer than that takes: a class that somebody else changes meanwhile
//! loses its hooks, and is not touched again where the JVM would bring older code back.

use super::blocks::HOOKS;
use crate::engines::Jvm;
use crate::events::class_hook::{self, ClassHook, LoadedClass};
use crate::exact::{foreign, inject};
use crate::jvm::classes::Classes;
use crate::jvm::inspect::WeakClass;
use crate::jvm::{Failure, Jni, Jvmti};
use crate::{loaders, perf_memory};
use jvmti_bindings::sys::jni::jclass;
use jvmti_bindings::sys::jvmti::{self, jvmtiCapabilities, jvmtiEventCallbacks};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tare_java_names::{is_hidden, never_woven};
use tare_weaver::{
    Arg, Call, FrameProbe, MethodInfo, MethodOutcome, MethodPlan, Options, Outcome, ProbeSet,
    Probes, Weaver,
};

/// A method by the names of a class file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method {
    pub class: String,
    pub name: String,
    pub descriptor: String,
}

impl Method {
    /// From `com/acme/Orders.place(I)V`.
    pub fn parse(text: &str) -> Option<Self> {
        let (before, _) = text.split_once('(')?;
        let dot = before.rfind('.')?;
        let (class, name) = (text[..dot].to_owned(), text[dot + 1..before.len()].to_owned());
        let descriptor = text[before.len()..].to_owned();
        (!class.is_empty() && !name.is_empty()).then_some(Method { class, name, descriptor })
    }

    pub fn text(&self) -> String {
        format!("{}.{}{}", self.class, self.name, self.descriptor)
    }
}

/// What the class-load hook is to do, and what came of it. None outside of a batch.
#[derive(Default)]
struct Work {
    /// By class: name, descriptor, hook.
    hooks: HashMap<String, Vec<(Method, u32)>>,
    woven: HashSet<Method>,
    refused: HashMap<Method, String>,
}

static WORK: Mutex<Option<Work>> = Mutex::new(None);

fn work() -> MutexGuard<'static, Option<Work>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of a batch.
#[derive(Default)]
pub struct Batch {
    pub woven: HashSet<Method>,
    pub refused: HashMap<Method, String>,
    pub took: Duration,
    /// How long the program stood still, if the JVM tells.
    pub pause: Duration,
}

pub struct Woven {
    environment: Jvmti,
    /// Classes with hooks, by loader and name.
    classes: HashSet<(u32, String)>,
    /// What is woven, by class.
    hooks: HashMap<String, Vec<(Method, u32)>>,
    /// The classes with hooks once more, each with how often it had been changed when we left it.
    versions: Vec<Version>,
}

struct Version {
    name: String,
    class: WeakClass,
    changes: Option<i32>,
}

impl Woven {
    pub fn new(jvm: Jvm) -> Result<Self, String> {
        if probes().is_none() {
            return Err("the probes do not fit their runtime".into());
        }
        let environment = jvm.vm.jvmti().ok_or("the JVM has no environment for it")?;
        let mut capabilities = jvmtiCapabilities::default();
        capabilities.set_can_retransform_classes(true);
        let mut callbacks = jvmtiEventCallbacks::default();
        callbacks.ClassFileLoadHook = Some(class_hook::callback::<Hook>);
        let ready = environment
            .add_capabilities(&capabilities)
            .and_then(|()| environment.set_callbacks(&callbacks));
        match ready {
            Ok(()) => Ok(Woven {
                environment,
                classes: HashSet::new(),
                hooks: HashMap::new(),
                versions: Vec::new(),
            }),
            Err(failure) => {
                let _ = environment.dispose();
                Err(failure.to_string())
            }
        }
    }

    /// Just these methods have hooks from now on.
    pub fn set(&mut self, jni: Jni, hooks: &[(Method, u32)]) -> Result<Batch, Failure> {
        let began = Instant::now();
        let mut wanted: HashMap<String, Vec<(Method, u32)>> = HashMap::new();
        let mut refused = HashMap::new();
        for (method, hook) in hooks {
            if let Some(why) = why_not(method) {
                refused.insert(method.clone(), why);
            } else if (*hook as usize) < HOOKS {
                let list = wanted.entry(method.class.clone()).or_default();
                list.push((method.clone(), *hook));
            }
        }
        wanted.values_mut().for_each(|list| list.sort());
        let is_same = |name: &String| wanted.get(name) == self.hooks.get(name);
        let all = wanted.keys().chain(self.hooks.keys());
        let changed: HashSet<String> = all.filter(|name| !is_same(name)).cloned().collect();
        let kept = wanted.iter().filter(|(name, _)| !changed.contains(*name));
        let woven = kept.flat_map(|(_, list)| list.iter().map(|(method, _)| method.clone()));
        let woven: HashSet<Method> = woven.collect();
        *work() = Some(Work { hooks: wanted.clone(), woven, refused });
        let stood = perf_memory::safepoint_ns();
        let done = jni.frame(|| {
            self.environment.with_loaded_classes(jni, |classes| self.load(jni, classes, &changed))
        });
        let made = work().take().unwrap_or_default();
        match done {
            Some(Ok(done)) => done?,
            Some(Err(failure)) => return Err(failure),
            None => return Err(Failure::not_available("memory for references")),
        }
        self.hooks = wanted;
        for list in self.hooks.values_mut() {
            list.retain(|(method, _)| made.woven.contains(method));
        }
        self.hooks.retain(|_, list| !list.is_empty());
        let pause = stood.zip(perf_memory::safepoint_ns());
        let pause = pause.map_or(0, |(before, after)| after.saturating_sub(before));
        let mut batch = Batch {
            woven: made.woven,
            refused: made.refused,
            took: began.elapsed(),
            pause: Duration::from_nanos(pause),
        };
        for (method, _) in hooks {
            if !batch.woven.contains(method) && !batch.refused.contains_key(method) {
                let why = "no class that is loaded has it, or the JVM does not let it be changed";
                batch.refused.insert(method.clone(), why.to_owned());
            }
        }
        Ok(batch)
    }

    /// One batch: of the classes with these names, those that are to have hooks, and those that have
    /// some.
    fn load(
        &mut self,
        jni: Jni,
        classes: &Classes<'_>,
        names: &HashSet<String>,
    ) -> Result<(), Failure> {
        let key = |class| Some((classes.loader(class), classes.name(class)?));
        let mut chosen = classes.select(|name, _| names.contains(name));
        let refuse = |class: jclass, why: &str| {
            let Some(name) = classes.name(class) else { return };
            if let Some(work) = work().as_mut() {
                work.woven.retain(|method| method.class != name);
                let of_class = work.hooks.get(&name).cloned().unwrap_or_default();
                work.refused.extend(of_class.into_iter().map(|(m, _)| (m, why.to_owned())));
            }
        };
        chosen.retain(|&class| {
            let why = match classes.link(class) {
                Err(thrown) => Some(format!("the JVM cannot link it: {thrown}")),
                Ok(()) => foreign::why_left_alone(jni, classes, class).map(str::to_owned),
            };
            why.iter().for_each(|why| refuse(class, why));
            why.is_none()
        });
        if chosen.is_empty() {
            self.classes.retain(|(_, name)| !names.contains(name));
            return Ok(());
        }
        let hook = jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK;
        self.environment.event(hook, true)?;
        let done =
            foreign::reload(jni, classes, &chosen, || self.one_by_one_if_need_be(&chosen, &refuse));
        let off = self.environment.event(hook, false);
        let woven = |class: &jclass| {
            let name = classes.name(*class).unwrap_or_default();
            work().as_ref().is_some_and(|work| work.woven.iter().any(|m| m.class == name))
        };
        let with_hooks: Vec<jclass> = chosen.into_iter().filter(woven).collect();
        self.classes.retain(|(_, name)| !names.contains(name));
        self.classes.extend(with_hooks.iter().filter_map(|class| key(*class)));
        for old in self.versions.extract_if(.., |version| names.contains(&version.name)) {
            jni.forget(old.class);
        }
        for class in with_hooks {
            if let (Some(name), Some(class)) = (classes.name(class), jni.weak(class)) {
                self.versions.push(Version { name, class, changes: None });
            }
        }
        // What is below a class that is loaded again counts as changed, too.
        for version in &mut self.versions {
            version.changes = changes(jni, &version.class);
        }
        done.and(off)
    }

    /// Methods that have lost their hooks since they were set, because somebody else had their class
    /// changed; each is told once.
    pub fn taken(&mut self, jni: Jni) -> Vec<Method> {
        let mut taken = Vec::new();
        let is_changed = |version: &mut Version| {
            let now = jni.frame(|| changes(jni, &version.class)).flatten();
            now.is_some() && now != version.changes
        };
        for version in self.versions.extract_if(.., is_changed) {
            // If only a superclass was changed, the hooks are still there: the class is restored in
            // any case.
            let of_class = self.hooks.get_mut(&version.name).map(std::mem::take);
            taken.extend(of_class.unwrap_or_default().into_iter().map(|(method, _)| method));
            jni.forget(version.class);
        }
        taken
    }

    /// A class that the JVM does not take is the only one that goes without.
    fn one_by_one_if_need_be(
        &self,
        chosen: &[jclass],
        refuse: &dyn Fn(jclass, &str),
    ) -> Result<(), Failure> {
        if chosen.len() == 1 || self.environment.retransform(chosen).is_err() {
            for class in chosen {
                if let Err(failure) = self.environment.retransform(&[*class]) {
                    refuse(*class, &format!("the JVM did not take the woven class ({failure})"));
                }
            }
        }
        Ok(())
    }

    /// Every class is as it was. How long the program stood still for it.
    pub fn end(mut self, jni: Jni) -> Duration {
        let done = if self.classes.is_empty() { None } else { self.set(jni, &[]).ok() };
        self.versions.drain(..).for_each(|version| jni.forget(version.class));
        let _ = self.environment.dispose();
        done.map_or(Duration::ZERO, |batch| batch.pause)
    }
}

/// How often a class was changed, unless it is gone.
fn changes(jni: Jni, class: &WeakClass) -> Option<i32> {
    let class = jni.strong(class)?;
    let changes = jni.changes(class);
    jni.delete_local(class);
    changes
}

/// Why no hook would ever tell anything of a method, as far as its name says.
fn why_not(method: &Method) -> Option<String> {
    if is_hidden(&method.class) {
        return Some("its class is hidden; the JVM does not let it be changed".to_owned());
    }
    never_woven(&method.class).map(|why| why.to_string())
}

enum Hook {}

impl ClassHook for Hook {
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        if !class.again {
            return None;
        }
        let name = class.name.to_str().ok()?;
        let mut work = work();
        let work = work.as_mut()?;
        let hooks = work.hooks.get(name)?.clone();
        let probes = probes()?;
        let loader = loaders::number(class.jvmti, class.jni, class.loader);
        let intrinsics = foreign::intrinsics(loader, class.bytes);
        let of = |info: &MethodInfo<'_>| {
            let is = |m: &Method| {
                m.name.as_bytes() == info.name && m.descriptor.as_bytes() == info.descriptor
            };
            hooks.iter().find(|(method, _)| is(method))
        };
        let mut seen = HashMap::new();
        let mut weaver = Weaver::new(Options::default());
        let outcome = weaver.weave(class.bytes, |info| {
            let (method, hook) = of(info)?;
            if intrinsics.contains(&info.index)
                || loader == 0 && foreign::is_never_run(name, info.name, info.descriptor)
            {
                let why = "the JVM's compilers put code of their own in its place (an intrinsic)";
                work.refused.insert(method.clone(), why.to_owned());
                return None;
            }
            seen.insert(info.index, method.clone());
            Some(MethodPlan::new(*hook, probes))
        });
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let all = hooks.iter().map(|(method, _)| (method.clone(), error.to_string()));
                work.refused.extend(all);
                return None;
            }
        };
        for method in &outcome.report().methods {
            let Some(of) = seen.get(&method.index) else { continue };
            let why = match &method.outcome {
                MethodOutcome::Woven { .. } => {
                    work.woven.insert(of.clone());
                    continue;
                }
                MethodOutcome::Refused(why) => why.to_string(),
                MethodOutcome::NoCode | MethodOutcome::NothingToDo => {
                    "it has no code of its own (native or abstract)".to_owned()
                }
            };
            work.refused.insert(of.clone(), why);
        }
        match outcome {
            Outcome::Woven { bytes, .. } => Some(bytes),
            Outcome::Unchanged(_) => None,
        }
    }
}

fn probes() -> Option<&'static Probes> {
    static PROBES: OnceLock<Option<Probes>> = OnceLock::new();
    let made = || {
        let owner = inject::named(inject::HOOKS);
        let enter = Call::new(&owner, "enter", "(I)J", &[Arg::MethodId]);
        let exit = Call::new(&owner, "exit", "(J)V", &[Arg::Token]);
        let frame = FrameProbe { enter, exit: exit.clone(), exit_throw: Some(exit), caught: None };
        Probes::new(ProbeSet { frames: vec![frame], ..ProbeSet::default() }).ok()
    };
    PROBES.get_or_init(made).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probes_fit_their_runtime() {
        assert!(probes().is_some());
    }

    #[test]
    fn methods_are_told_as_they_were_asked_for() {
        for text in ["a/b/C.d(IJ)V", "C.<init>()V", "a/B$1.run(Ljava/lang/Object;)La/B;"] {
            assert_eq!(Method::parse(text).unwrap().text(), text);
        }
        let method = Method::parse("a/B.c(La/x.y;)V").unwrap();
        assert_eq!((&*method.class, &*method.name), ("a/B", "c"));
        for text in ["", "a/B", "a/B.c", ".c()V", "B.()V", "()V"] {
            assert_eq!(Method::parse(text), None, "{text}");
        }
    }
}
