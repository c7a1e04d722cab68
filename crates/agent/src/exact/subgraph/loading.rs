//! The classes that the JVM loads while a session is on, as the hook sees them; and what is to be
//! woven in a class, whenever it passes the hook.

use super::super::{locked, rules};
use super::{Chosen, OFTEN, State, Subgraph};
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::jclass;
use std::sync::atomic::Ordering::Relaxed;
use tare_callgraph::{
    ClassFacts, ClassId, Graph, Loader, MethodFacts, MethodId, Past, Scheme, Side, Site, handles,
    is_trivial, references, sites,
};
use tare_classfile::{ClassFile, Code, ConstantPool, access};

impl Subgraph {
    /// In the hook: a class is being loaded, or loaded again. What is to be woven in it. The error
    /// is the number of methods of a class for which there is no room.
    pub fn class_file(
        &self,
        name: &str,
        loader: Loader,
        bytes: &[u8],
    ) -> Result<Option<Chosen>, usize> {
        let Ok(class) = ClassFile::parse(bytes) else { return Ok(None) };
        let mut state = locked(&self.state);
        let State { graph, weaves, unready, .. } = &mut *state;
        let known = graph.find_class(loader, name.as_bytes());
        let id = match known.filter(|&id| graph.has_methods(id)) {
            Some(id) => id,
            None => {
                if !self.room.take(class.methods.len()) {
                    return Err(class.methods.len());
                }
                let dormant = unready.contains(name.as_bytes());
                let Some(id) = self.add_new(graph, name, loader, &class, dormant) else {
                    return Ok(None);
                };
                id
            }
        };
        let side = graph.side_of(id);
        let weaves = weaves.entry(id).or_default();
        *weaves += 1;
        let ahead = *weaves > OFTEN;
        let chosen = (side == Side::Inside || graph.has_root(id))
            .then(|| self.choose(graph, id, &class, ahead));
        graph.forget_change(id);
        if graph.wants_anything() {
            state.asked += 1;
            self.ring();
        }
        Ok(chosen)
    }

    fn add_new(
        &self,
        graph: &mut Graph,
        name: &str,
        loader: Loader,
        class: &ClassFile<'_>,
        dormant: bool,
    ) -> Option<ClassId> {
        let pool = &class.pool;
        let superclass = match class.super_class {
            0 => None,
            index => Some((loader, pool.class_name(index).ok()?)),
        };
        let methods = class.methods.iter().filter_map(|member| {
            let name_of = pool.utf8(member.name_index).ok()?;
            let descriptor = pool.utf8(member.descriptor_index).ok()?;
            Some(MethodFacts {
                name: name_of,
                descriptor,
                access_flags: member.access_flags,
                root: self.is_root(name, name_of, descriptor),
                past: Past::Unknown,
            })
        });
        let id = graph.add_class(&ClassFacts {
            name: name.as_bytes(),
            loader,
            access_flags: class.access_flags,
            superclass,
            interfaces: class
                .interfaces()
                .filter_map(|index| Some((loader, pool.class_name(index).ok()?)))
                .collect(),
            initialised: false,
            dormant: dormant && class.access_flags & access::INTERFACE == 0,
            methods: Some(methods.collect()),
        });
        let side = graph.side_of(id);
        if let Some(part) = rules::entrance(name.as_bytes()) {
            graph.enter(part);
        }
        if !side.is_jdk() {
            read_pool(graph, id, side, pool, Made::Now);
        }
        if side == Side::Inside {
            graph.will_initialise(id);
        }
        Some(id)
    }

    /// The reachable methods of a class, with what they call; those that are left out are told to
    /// the graph, also when they are not reachable yet, so that nobody comes back for them. `ahead`
    /// is for a class that would come often.
    fn choose(&self, graph: &mut Graph, id: ClassId, class: &ClassFile<'_>, ahead: bool) -> Chosen {
        let pool = &class.pool;
        let find = |graph: &Graph, at: usize| {
            let member = class.methods.get(at)?;
            let name = pool.utf8(member.name_index).ok()?;
            let descriptor = pool.utf8(member.descriptor_index).ok()?;
            let method = graph.find_method(id, name, descriptor)?;
            let code = Code::parse(&member.attributes.find(pool, "Code")?).ok()?;
            Some((method, name, code))
        };
        if self.skip_trivial {
            for at in 0..class.methods.len() {
                if let Some((method, name, code)) = find(graph, at)
                    && graph.reachable(method) != Some(true)
                    && is_trivial(pool, name, code.code)
                {
                    graph.pass_over(method, "trivial: empty, or no more than a field");
                }
            }
        }
        if self.scheme == Scheme::Eager {
            for at in 0..class.methods.len() {
                if let Some((method, _, code)) = find(graph, at) {
                    let mut found = Vec::new();
                    sites(pool, code.code, |site| found.push(site));
                    graph.set_body(method, found);
                    if graph.reachable(method).is_some() {
                        graph.follow(method);
                    }
                }
            }
        }
        let mut chosen = vec![None; class.methods.len()];
        // Each pass may find that more of the class is reachable.
        loop {
            let before = chosen.iter().flatten().count();
            for (at, slot) in chosen.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
                let Some((method, _, code)) = find(graph, at) else { continue };
                let Some(root) = graph.reachable(method) else { continue };
                if graph.is_left_out(method) {
                    continue;
                }
                let mut found = Vec::new();
                sites(pool, code.code, |site| found.push(site));
                if ahead {
                    foresee(graph, id, class, method, &found);
                }
                graph.set_body(method, found);
                if graph.is_hasty(method) {
                    graph.follow(method);
                }
                *slot = Some((Some(method), root));
            }
            if chosen.iter().flatten().count() == before {
                return chosen;
            }
        }
    }

    /// What became of the chosen methods of a class, before any of them can run.
    pub fn woven(&self, woven: &[(MethodId, u32)], refused: &[(MethodId, String)]) {
        let mut state = locked(&self.state);
        for &(method, id) in woven {
            state.graph.set_woven(method);
            state.ids.insert(id, method);
        }
        for (method, reason) in refused {
            state.graph.leave_out(*method, reason);
        }
        if state.graph.wants_anything() {
            state.asked += 1;
            self.ring();
        }
    }

    /// The JVM has loaded a class, which the hook has seen before.
    pub fn loaded(&self, jni: Jni, class: jclass) {
        let Some(name) = self.jvmti.class_name(class) else { return };
        let loader = self.loader(jni, class);
        let mut state = locked(&self.state);
        let Some(id) = state.graph.find_class(loader, &name) else { return };
        if let Some(weak) = jni.weak(class)
            && let Some(old) = state.loaded.insert(id, weak)
        {
            jni.forget(old);
        }
        if state.awaited.remove(&id) {
            state.graph.put_back(id);
            state.asked += 1;
            self.ring();
        }
    }

    /// The JVM has made a class ready. Those that the hook has not seen are read now: they were
    /// being loaded when the session began, or are hidden.
    pub fn prepared(&self, jni: Jni, class: jclass) {
        let Some(name) = self.jvmti.class_name(class) else { return };
        let loader = self.loader(jni, class);
        let changed = {
            let state = locked(&self.state);
            if state.graph.find_class(loader, &name).is_some() {
                return;
            }
            state.graph.changes()
        };
        // Hidden classes have few methods.
        if !self.room.take(2) {
            return;
        }
        if let Some((id, side)) = self.add_loaded(jni, class) {
            self.read_loaded(jni, id, side);
        }
        let mut state = locked(&self.state);
        // A lambda made outside the subgraph: below a root its body would be woven by now.
        if name.contains(&b'.') && !changed && state.graph.changes() {
            self.late.fetch_add(1, Relaxed);
        }
        if state.graph.wants_anything() {
            state.asked += 1;
            self.ring();
        }
    }
}

/// Takes what a method calls in its own class for reachable.
fn foresee(
    graph: &mut Graph,
    id: ClassId,
    class: &ClassFile<'_>,
    caller: MethodId,
    sites: &[Site<'_>],
) {
    let Ok(own) = class.name() else { return };
    for site in sites {
        let (Site::Exact(member) | Site::Virtual(member)) = site else { continue };
        if member.owner == own
            && let Some(method) = graph.find_method(id, member.name, member.descriptor)
        {
            graph.foresee(method, caller);
        }
    }
}

/// When a class was loaded. Of what its lambdas and method references made before, there are hidden
/// classes that name it, and other handles show themselves when they are called; so nothing of it
/// is lost, and most of a pool's handles are never made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Before,
    Now,
}

/// What a constant pool tells without any code.
pub(super) fn read_pool(
    graph: &mut Graph,
    id: ClassId,
    side: Side,
    pool: &ConstantPool<'_>,
    made: Made,
) {
    if side == Side::Inside {
        handles(pool, |site| match made {
            Made::Before => graph.handle_when_made(id, site),
            Made::Now => graph.handle(id, site),
        });
    } else {
        // Which kind of call it is the pool does not say; a virtual one reaches more.
        references(pool, |member| {
            let site = if member.name == b"<init>" { Site::Exact } else { Site::Virtual };
            graph.named_by(id, site(member));
        });
    }
}
