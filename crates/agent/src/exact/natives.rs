//! Native methods in a trace. They have no code to weave, so the calls of them have probes: in
//! woven methods, of natives of the classes that were asked for, as far as they are known when the
//! caller is woven. Those are the natives of the class itself, of classes that are loaded when the
//! trace begins, and of classes that were loaded since. A call through a subclass or an interface
//! does not name the native.

use super::{REGISTRY, Recording, dotted, locked, trace};
use crate::jvm::Jni;
use crate::loaders;
use std::collections::HashMap;
use std::sync::Mutex;
use tare_arena::MethodName;
use tare_classfile::{ClassFile, access};
use tare_java_names::never_woven;
use tare_weaver::Probes;

/// Their call sites have other parameters than they declare.
const POLYMORPHIC: [&str; 2] = ["java/lang/invoke/MethodHandle", "java/lang/invoke/VarHandle"];

struct Native {
    name: String,
    descriptor: String,
    id: u32,
    loader: u32,
}

/// All natives that are known, by the names of their classes.
#[derive(Default)]
pub struct Natives(Mutex<HashMap<String, Vec<Native>>>);

/// The probes of methods that call natives: where the subgraph may begin, and elsewhere.
pub struct NativeProbes(Probes, Probes);

impl NativeProbes {
    pub fn choose(&self, begins: bool) -> &Probes {
        if begins { &self.0 } else { &self.1 }
    }
}

impl Recording {
    /// Looks for natives in the classes that are loaded, before anything is woven.
    pub(super) fn find_natives(&self, jni: Jni) {
        let found = jni.frame(|| {
            self.jvmti.with_loaded_classes(jni, |classes| {
                for class in classes.select(|name, _| self.has_traced_natives(name)) {
                    let (Some(name), Some(methods)) =
                        (classes.name(class), self.jvmti.methods(class))
                    else {
                        continue;
                    };
                    let natives = methods.iter().filter(|m| m.access_flags & access::NATIVE != 0);
                    let natives = natives
                        .map(|m| (m.name.as_slice(), m.descriptor.as_slice(), m.access_flags));
                    self.add_natives(&name, classes.loader(class), natives);
                }
            })
        });
        if !matches!(found, Some(Ok(()))) {
            self.refuse("native methods of loaded classes", "the JVM does not list its classes");
        }
    }

    /// Forgets the natives of loaders that are gone.
    pub(super) fn forget_natives(&self, gone: &[u32]) {
        locked(&self.natives.0).retain(|_, natives| {
            natives.retain(|native| !gone.contains(&native.loader));
            !natives.is_empty()
        });
    }

    fn has_traced_natives(&self, class: &str) -> bool {
        self.is_asked_for(class) && never_woven(class).is_none() && !POLYMORPHIC.contains(&class)
    }

    fn add_natives<'m>(
        &self,
        class: &str,
        loader: u32,
        natives: impl Iterator<Item = (&'m [u8], &'m [u8], u16)>,
    ) {
        for (name, descriptor, access_flags) in natives {
            let id = match locked(&REGISTRY).as_mut() {
                Some(registry) => registry.id(loader, class, name, descriptor),
                None => return,
            };
            if !self.lacks_name(loader, class, (name, descriptor), id) {
                continue;
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let method = MethodName {
                id,
                loader,
                loader_class: loaders::class_name(loader),
                class: class.to_owned(),
                name: text(name),
                descriptor: text(descriptor),
                access: u32::from(access_flags),
                ..MethodName::default()
            };
            let native = Native { name: text(name), descriptor: text(descriptor), id, loader };
            if let Err(why) = self.log_name(method, (name, descriptor)) {
                if let Some(registry) = locked(&REGISTRY).as_mut() {
                    registry.forget_nameless(loader, class);
                }
                self.refuse(&format!("native methods of {}", dotted(class)), &why.to_string());
                return;
            }
            locked(&self.natives.0).entry(class.to_owned()).or_default().push(native);
        }
    }

    /// What the methods of a class get if they may call natives; its own are known from now on.
    pub(super) fn native_probes(
        &self,
        class: &str,
        loader: u32,
        bytes: &[u8],
    ) -> Option<NativeProbes> {
        if !self.plan.is_trace() {
            return None;
        }
        let parsed = ClassFile::parse(bytes).ok()?;
        let pool = &parsed.pool;
        if self.has_traced_natives(class) {
            let natives = parsed.methods.iter().filter(|m| m.access_flags & access::NATIVE != 0);
            let named = natives.filter_map(|member| {
                let name = pool.utf8(member.name_index).ok()?;
                Some((name, pool.utf8(member.descriptor_index).ok()?, member.access_flags))
            });
            self.add_natives(class, loader, named);
        }
        let known = locked(&self.natives.0);
        let mut targets = Vec::new();
        for (index, _) in pool.iter() {
            let Ok(owner) = pool.class_name(index) else { continue };
            let Ok(owner) = std::str::from_utf8(owner) else { continue };
            let natives = known.get(owner).into_iter().flatten();
            targets.extend(natives.map(|native| {
                let Native { name, descriptor, id, .. } = native;
                (owner.to_owned(), name.clone(), descriptor.clone(), *id)
            }));
        }
        drop(known);
        if targets.is_empty() {
            return None;
        }
        let (root, inner) = trace::probes(targets).ok()?;
        Some(NativeProbes(root, inner))
    }
}
