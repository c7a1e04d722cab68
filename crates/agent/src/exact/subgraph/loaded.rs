//! The classes that are loaded when a session begins, and what is asked about them later, as the
//! JVM tells it.

use super::super::{Between, Recording, locked, redefined, rules};
use super::loading::{Made, read_pool};
use super::{Initialiser, Subgraph, earlier_runs};
use crate::jvm::Jni;
use crate::jvm::classes::Classes;
use crate::jvm::inspect::MethodOf;
use crate::loaders;
use jvmti_bindings::sys::jni::jclass;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use tare_callgraph::{
    ClassFacts, ClassId, Loader, MethodFacts, MethodId, Past, Scheme, Side, sites,
};
use tare_classfile::{ConstantPool, access};

impl Subgraph {
    /// Looks at all loaded classes: first who is above whom, then what is in them.
    pub(super) fn survey(&self, recording: &Recording, jni: Jni, between: &mut Between<'_>) {
        let mut found: Vec<(ClassId, Side)> = Vec::new();
        jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                if jni.forgets_redefinitions() {
                    self.note_changed(jni, classes);
                }
                let told = |class: &jclass| {
                    self.jvmti.class_name(*class).is_some_and(|name| name == b"java/lang/String")
                        && earlier_runs::is_told(self.jvmti, *class)
                };
                self.pasts_are_told.store(classes.list().iter().any(told), Relaxed);
                let mut unready = Vec::new();
                for class in classes.list().iter().copied() {
                    if self.jvmti.interfaces(class).is_some() {
                        found.extend(jni.frame(|| self.add_loaded(jni, class)).flatten());
                    } else if self.is_inside(class) && self.jvmti.is_modifiable(class) {
                        unready.push(class);
                    }
                }
                self.make_ready(recording, jni, &unready, between);
            })
        });
        // All methods before any call: who overrides what is known then.
        for &(id, _) in &found {
            jni.frame(|| self.strong(jni, id).map(|class| self.read_methods(jni, class, id)));
        }
        for (id, side) in found {
            jni.frame(|| self.read_loaded(jni, id, side));
        }
        self.read_wanted(jni);
    }

    /// Notes which classes others have changed, before we change any.
    fn note_changed(&self, jni: Jni, classes: &Classes<'_>) {
        for &class in classes.list() {
            jni.frame(|| {
                if redefined::is_changed(jni, classes, class)
                    && let Some(name) = self.jvmti.class_name(class)
                {
                    let key = (self.loader(jni, class), name);
                    locked(&self.state).changed_before.insert(key);
                }
            });
        }
    }

    fn is_inside(&self, class: jclass) -> bool {
        let name = self.jvmti.class_name(class);
        name.is_some_and(|name| locked(&self.state).graph.side_of_name(&name) == Side::Inside)
    }

    /// Classes that are loaded and not linked: the JVM says nothing about them, but links them
    /// when it loads them again, and then the hook sees their bytes. Waiting until the program
    /// uses them would mean to find out what they are while they run.
    fn make_ready(
        &self,
        recording: &Recording,
        jni: Jni,
        classes: &[jclass],
        between: &mut Between<'_>,
    ) {
        if self.scheme == Scheme::Lazy && self.pasts_are_told.load(Relaxed) {
            let names = classes.iter().filter_map(|&class| self.jvmti.class_name(class));
            locked(&self.state).unready = names.collect();
        }
        let mut done = 0;
        while let Some(rest) = classes.get(done..).filter(|rest| !rest.is_empty()) {
            let batch = &rest[..rest.len().min(recording.batches.size())];
            if !between(recording.step(done, batch.len(), classes.len())) {
                break;
            }
            done += batch.len();
            self.reload(recording, jni, batch.to_vec(), between);
        }
        locked(&self.state).unready.clear();
        for &class in classes {
            jni.frame(|| {
                self.loaded(jni, class);
                self.note_initialiser(jni, class);
            });
        }
    }

    /// Adds a loaded class without its methods. None when it cannot be read now.
    pub(super) fn add_loaded(&self, jni: Jni, class: jclass) -> Option<(ClassId, Side)> {
        let name = self.jvmti.class_name(class)?;
        let loader = self.loader(jni, class);
        // A class that is not prepared comes by itself when it is.
        let interfaces = self.jvmti.interfaces(class)?;
        let named = |class: jclass| Some((self.loader(jni, class), self.jvmti.class_name(class)?));
        let superclass = Some(jni.superclass(class)).filter(|c| !c.is_null()).and_then(named);
        let interfaces: Vec<_> = interfaces.into_iter().filter_map(named).collect();
        let flags = self.jvmti.class_flags(class);
        let may_sleep = self.scheme == Scheme::Lazy
            && self.pasts_are_told.load(Relaxed)
            && flags & access::INTERFACE == 0
            && self.is_inside(class)
            && !self.jvmti.is_initialised(class);
        let initialiser = may_sleep.then(|| self.initialiser(class)).flatten();
        let dormant = may_sleep && self.is_dormant(class, initialiser);
        let mut state = locked(&self.state);
        let id = state.graph.add_class(&ClassFacts {
            name: &name,
            loader,
            access_flags: flags,
            superclass: superclass.as_ref().map(|(loader, name)| (*loader, name.as_slice())),
            interfaces: interfaces.iter().map(|(l, n)| (*l, n.as_slice())).collect(),
            initialised: self.jvmti.is_initialised(class),
            dormant,
            methods: None,
        });
        if let Some(part) = rules::entrance(&name) {
            state.graph.enter(part);
        }
        if let Some(initialiser) = initialiser {
            state.initialisers.insert(id, initialiser);
        }
        if !state.loaded.contains_key(&id)
            && let Some(weak) = jni.weak(class)
        {
            state.loaded.insert(id, weak);
        }
        let side = state.graph.side_of(id);
        let rooted = std::str::from_utf8(&name)
            .is_ok_and(|name| self.roots.iter().any(|root| root.fits_some_method(name)));
        (rooted || !side.is_jdk()).then_some((id, side))
    }

    fn initialiser(&self, class: jclass) -> Option<Initialiser> {
        let mut methods = self.jvmti.methods(class)?.into_iter();
        methods.find(|m| m.name == b"<clinit>").map(|m| Initialiser(m.id))
    }

    fn note_initialiser(&self, jni: Jni, class: jclass) {
        let (loader, name) = (self.loader(jni, class), self.jvmti.class_name(class));
        let initialiser = self.initialiser(class);
        let mut state = locked(&self.state);
        let id = name.and_then(|name| state.graph.find_class(loader, &name));
        if let (Some(id), Some(initialiser)) = (id, initialiser) {
            state.initialisers.insert(id, initialiser);
        }
    }

    /// Whether none of a class's code has run. Of one whose initialiser is under way, only the past
    /// of that tells.
    fn is_dormant(&self, class: jclass, initialiser: Option<Initialiser>) -> bool {
        let begun = |of: Initialiser| earlier_runs::of(self.jvmti, of.0) != Past::Unknown;
        !self.jvmti.is_initialised(class) && !initialiser.is_some_and(begun)
    }

    /// Looks which of the dormant classes the program uses by now. Of one that it began to use
    /// outside the subgraph, calls may be missing until now.
    pub fn wake(&self, jni: Jni) {
        let sleepers = locked(&self.state).graph.sleepers();
        for id in sleepers {
            let initialiser = locked(&self.state).initialisers.get(&id).copied();
            let sleeps = |class| self.is_dormant(class, initialiser);
            let used = jni.frame(|| self.strong(jni, id).is_some_and(|class| !sleeps(class)));
            if used == Some(true) {
                self.late.fetch_add(1, Relaxed);
                let mut state = locked(&self.state);
                state.graph.wake(id);
                if state.graph.wants_anything() {
                    state.asked += 1;
                    self.ring();
                }
            }
        }
    }

    /// The methods of a loaded class, and what its constant pool names.
    pub(super) fn read_loaded(&self, jni: Jni, id: ClassId, side: Side) {
        let Some(class) = self.strong(jni, id) else { return };
        if !locked(&self.state).graph.has_methods(id) {
            self.read_methods(jni, class, id);
        }
        if side.is_jdk() {
            return;
        }
        let Some(pool) = self.jvmti.constant_pool(class) else { return };
        if let Ok(pool) = ConstantPool::from_bytes(&pool) {
            read_pool(&mut locked(&self.state).graph, id, side, &pool, Made::Before);
        }
    }

    fn read_methods(&self, jni: Jni, class: jclass, id: ClassId) {
        let Some(methods) = self.jvmti.methods(class) else { return };
        let name = self.jvmti.class_name(class).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        let loader = self.loader(jni, class);
        let facts: Vec<MethodFacts<'_>> =
            methods.iter().map(|m| self.method(loader, &name, m)).collect();
        locked(&self.state).graph.set_methods(id, &facts);
    }

    fn method<'a>(&self, loader: Loader, class: &str, method: &'a MethodOf) -> MethodFacts<'a> {
        let past =
            if earlier_runs::ran_below_a_root(loader, class, &method.name, &method.descriptor) {
                Past::RanOften
            } else {
                earlier_runs::of(self.jvmti, method.id)
            };
        MethodFacts {
            name: &method.name,
            descriptor: &method.descriptor,
            access_flags: method.access_flags,
            root: self.is_root(class, &method.name, &method.descriptor),
            past,
        }
    }

    pub(super) fn is_root(&self, class: &str, method: &[u8], descriptor: &[u8]) -> bool {
        rules::fits_any(&self.roots, class, method, descriptor)
    }

    /// Gives the graph what it asks for until it asks no more.
    pub(super) fn read_wanted(&self, jni: Jni) {
        loop {
            let (lists, bodies) = {
                let mut state = locked(&self.state);
                (state.graph.take_lists_wanted(), state.graph.take_bodies_wanted())
            };
            if lists.is_empty() && bodies.is_empty() {
                return;
            }
            for id in lists {
                jni.frame(|| {
                    if let Some(class) = self.strong(jni, id) {
                        self.read_methods(jni, class, id);
                    }
                });
            }
            let mut by_class: HashMap<ClassId, Vec<MethodId>> = HashMap::new();
            {
                let state = locked(&self.state);
                for method in bodies {
                    by_class.entry(state.graph.class_of(method)).or_default().push(method);
                }
            }
            for (id, methods) in by_class {
                jni.frame(|| self.read_bodies(jni, id, &methods));
            }
        }
    }

    fn read_bodies(&self, jni: Jni, id: ClassId, wanted: &[MethodId]) {
        let class = self.strong(jni, id);
        let of_class = class
            .and_then(|class| Some((self.jvmti.constant_pool(class)?, self.jvmti.methods(class)?)));
        let mut state = locked(&self.state);
        let pool = of_class.as_ref().and_then(|(pool, _)| ConstantPool::from_bytes(pool).ok());
        for &method in wanted {
            let (name, descriptor) = state.graph.method_name(method);
            let code = of_class.as_ref().and_then(|(_, methods)| {
                let of = methods.iter().find(|m| m.name == name && m.descriptor == descriptor)?;
                self.jvmti.code(of.id)
            });
            // Of a class that is not linked, code comes when it is woven, or is asked for when it
            // runs.
            if let (Some(pool), Some(code)) = (&pool, code) {
                let mut found = Vec::new();
                sites(pool, &code, |site| found.push(site));
                state.graph.set_body(method, found);
                state.graph.follow(method);
            }
        }
    }

    pub(super) fn strong(&self, jni: Jni, id: ClassId) -> Option<jclass> {
        let state = locked(&self.state);
        jni.strong(state.loaded.get(&id)?)
    }

    pub(super) fn loader(&self, jni: Jni, class: jclass) -> Loader {
        let loader = self.jvmti.class_loader(class).unwrap_or(std::ptr::null_mut());
        loaders::number(self.jvmti, jni, loader)
    }
}
