//! Mirrors of classes: finding or making the one for a name, what is above and below it, and the
//! methods that it declares. What is reachable is decided elsewhere.

use super::reach::Called;
use super::{Class, ClassId, Graph, Loader, Method, MethodFacts, MethodId, Side, Why};
use crate::names::Name;
use std::collections::{HashMap, HashSet};
use tare_classfile::access;

impl Graph {
    pub(super) fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.0 as usize]
    }

    pub(super) fn class_mut(&mut self, id: ClassId) -> &mut Class {
        &mut self.classes[id.0 as usize]
    }

    pub(super) fn named(&mut self, loader: Loader, name: &[u8]) -> ClassId {
        let name = self.names.name(name);
        self.mirror(loader, name)
    }

    /// The mirror of a class, as a loader sees it; a stand-in when it is not known.
    pub(super) fn mirror(&mut self, loader: Loader, name: Name) -> ClassId {
        let same = self.by_name.get(&name).cloned().unwrap_or_default();
        if let Some(&id) = same.iter().find(|&&id| self.class(id).loader == loader) {
            return id;
        }
        let side = (self.side)(self.names.text(name));
        let known: Vec<ClassId> = same.into_iter().filter(|&id| self.class(id).known).collect();
        // The JDK's classes are the same for all.
        if let (true, [only]) = (side.is_jdk(), known.as_slice()) {
            return *only;
        }
        let id = ClassId(self.classes.len() as u32);
        self.classes.push(Class {
            name,
            loader,
            side,
            known: false,
            is_interface: false,
            is_abstract: false,
            initialised: false,
            dormant: false,
            superclass: None,
            supers: Vec::new(),
            subs: Vec::new(),
            methods: None,
            called: HashMap::new(),
            handles: Vec::new(),
            makes_handles: false,
        });
        self.by_name.entry(name).or_default().push(id);
        for other in known {
            self.stand_for(id, other);
        }
        id
    }

    pub(super) fn stand_for(&mut self, stand_in: ClassId, class: ClassId) {
        self.link(stand_in, class);
        let called: Vec<_> = self.class(stand_in).called.iter().map(|(s, c)| (*s, *c)).collect();
        for (selector, call) in called {
            self.call(class, selector, call);
        }
    }

    pub(super) fn link(&mut self, below: ClassId, above: ClassId) {
        if below == above || self.class(below).supers.contains(&above) {
            return;
        }
        self.class_mut(below).supers.push(above);
        self.class_mut(above).subs.push(below);
        if self.class(below).methods.is_some() {
            self.consider(below);
        }
        for id in self.below(below) {
            self.consider(id);
        }
    }

    /// All supertypes, the class itself first.
    pub(super) fn above(&self, id: ClassId) -> Vec<ClassId> {
        self.closure(id, |class| &class.supers)
    }

    /// All subtypes, without the class itself.
    pub(super) fn below(&self, id: ClassId) -> Vec<ClassId> {
        self.closure(id, |class| &class.subs).split_off(1)
    }

    pub(super) fn closure(
        &self,
        id: ClassId,
        next: impl Fn(&Class) -> &Vec<ClassId>,
    ) -> Vec<ClassId> {
        let (mut all, mut seen, mut at) = (vec![id], HashSet::from([id]), 0);
        while let Some(&id) = all.get(at) {
            at += 1;
            for &other in next(self.class(id)) {
                if seen.insert(other) {
                    all.push(other);
                }
            }
        }
        all
    }

    /// The methods of a class outside matter as soon as something inside is below it.
    pub(super) fn want_list(&mut self, id: ClassId) {
        if self.class(id).known && self.class(id).methods.is_none() {
            self.lists_wanted.insert(id);
        }
    }

    pub(super) fn declare(&mut self, id: ClassId, methods: &[MethodFacts<'_>]) {
        let side = self.class(id).side;
        let inside = side == Side::Inside;
        let is_object = self.names.text(self.class(id).name) == b"java/lang/Object";
        let mut table = HashMap::with_capacity(methods.len());
        let mut roots = Vec::new();
        for facts in methods {
            let selector = self.names.selector(facts.name, facts.descriptor);
            let method = MethodId(self.methods.len() as u32);
            let made = Method {
                class: id,
                selector,
                access_flags: facts.access_flags,
                why: None,
                root: false,
                hasty: facts.name == b"<clinit>",
                ahead: 0,
                past: facts.past,
                is_called: false,
                expanded: false,
                body: None,
                woven: false,
                left_out: None,
            };
            let is_native = side == Side::Outside && facts.access_flags & access::NATIVE != 0;
            let matters = made.can_be_overridden(&self.names) || matches!(side, Side::JdkApart(_));
            if !inside && !facts.root && !matters && !is_native {
                continue;
            }
            // `clone` and `finalize`: nobody in the JDK can call them there, but for the thread of
            // finalizers.
            if is_object && facts.access_flags & access::PUBLIC == 0 {
                continue;
            }
            if !inside && made.can_be_overridden(&self.names) {
                self.declared_outside.insert(selector);
            }
            self.methods.push(made);
            table.insert(selector, method);
            if facts.root {
                roots.push((selector, method, facts.access_flags));
            }
        }
        self.class_mut(id).methods = Some(table);
        if side.is_jdk() && !roots.is_empty() {
            (0..8).for_each(|part| self.enter_part(part)); // It need not name anything there.
        }
        for (selector, method, flags) in roots {
            // Of an interface all implementations are meant; a default method is one of them.
            let is_interface = self.class(id).is_interface && flags & access::STATIC == 0;
            if flags & access::ABSTRACT != 0 || is_interface {
                let call = Called::new(true, Why::Root);
                self.called.insert(selector);
                self.class_mut(id).called.insert(selector, call);
            }
            if flags & access::ABSTRACT == 0 {
                self.reach(method, Why::Root);
            }
        }
        self.consider(id);
        for below in self.below(id) {
            self.consider(below);
        }
    }
}
