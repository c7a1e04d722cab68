//! The classes that are loaded when a session begins, and what is asked about them later, as the JVM
//! tells it.

use super::super::{BATCH, Engine, locked, redefined, rules};
use super::{Subgraph, read_pool};
use crate::classes::Classes;
use crate::facts::MethodOf;
use crate::jvm::Jni;
use crate::loaders;
use jvmti_bindings::sys::jni::jclass;
use std::collections::HashMap;
use tare_callgraph::{ClassFacts, ClassId, Loader, MethodFacts, MethodId, Side, sites};
use tare_classfile::ConstantPool;

impl Subgraph {
    /// Looks at all loaded classes: first who is above whom, then what is in them.
    pub(super) fn survey(&self, engine: &Engine, jni: Jni) {
        let mut found: Vec<(ClassId, Side)> = Vec::new();
        jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                if jni.forgets_redefinitions() {
                    self.note_changed(jni, classes);
                }
                let mut unready = Vec::new();
                for class in classes.list().iter().copied() {
                    if self.jvmti.interfaces(class).is_some() {
                        found.extend(jni.frame(|| self.add_loaded(jni, class)).flatten());
                    } else if self.is_inside(class) && self.jvmti.is_modifiable(class) {
                        unready.push(class);
                    }
                }
                self.make_ready(engine, jni, &unready);
            })
        });
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
    fn make_ready(&self, engine: &Engine, jni: Jni, classes: &[jclass]) {
        for batch in classes.chunks(BATCH) {
            self.reload(engine, jni, batch.to_vec());
        }
        for &class in classes {
            jni.frame(|| self.loaded(jni, class));
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
        let mut state = locked(&self.state);
        let id = state.graph.add_class(&ClassFacts {
            name: &name,
            loader,
            access_flags: self.jvmti.class_flags(class),
            superclass: superclass.as_ref().map(|(loader, name)| (*loader, name.as_slice())),
            interfaces: interfaces.iter().map(|(l, n)| (*l, n.as_slice())).collect(),
            initialised: self.jvmti.is_initialised(class),
            methods: None,
        });
        if !state.loaded.contains_key(&id)
            && let Some(weak) = jni.weak(class)
        {
            state.loaded.insert(id, weak);
        }
        let side = state.graph.side_of(id);
        let rooted = std::str::from_utf8(&name)
            .is_ok_and(|name| self.roots.iter().any(|root| root.fits_some_method(name)));
        (rooted || side != Side::Jdk).then_some((id, side))
    }

    /// The methods of a loaded class, and what its constant pool names.
    pub(super) fn read_loaded(&self, jni: Jni, id: ClassId, side: Side) {
        let Some(class) = self.strong(jni, id) else { return };
        self.read_methods(class, id);
        if side == Side::Jdk {
            return;
        }
        let Some(pool) = self.jvmti.constant_pool(class) else { return };
        if let Ok(pool) = ConstantPool::from_bytes(&pool) {
            read_pool(&mut locked(&self.state).graph, id, side, &pool);
        }
    }

    fn read_methods(&self, class: jclass, id: ClassId) {
        let Some(methods) = self.jvmti.methods(class) else { return };
        let name = self.jvmti.class_name(class).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        let facts: Vec<MethodFacts<'_>> = methods.iter().map(|m| self.method(&name, m)).collect();
        locked(&self.state).graph.set_methods(id, &facts);
    }

    fn method<'a>(&self, class: &str, method: &'a MethodOf) -> MethodFacts<'a> {
        MethodFacts {
            name: &method.name,
            descriptor: &method.descriptor,
            access_flags: method.access_flags,
            root: self.is_root(class, &method.name, &method.descriptor),
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
                        self.read_methods(class, id);
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
            match (&pool, code) {
                (Some(pool), Some(code)) => {
                    let mut found = Vec::new();
                    sites(pool, &code, |site| found.push(site));
                    state.graph.set_body(method, found);
                    state.graph.follow(method);
                }
                // A class that is only just being loaded brings its code itself.
                _ => state.graph.give_up(method),
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
