//! From facts to reachable methods. Everything here may be asked again and again: what is
//! reachable stays so, and only what is new has consequences.

use super::{ClassId, Graph, Method, MethodId, Past, Scheme, Side, Target, Why};
use crate::names::Selector;
use std::collections::{BTreeSet, HashMap};
use tare_classfile::{access, descriptor};

/// Called on a class: what it leads to there and, if virtual, below. It can be called in both ways.
#[derive(Clone, Copy)]
pub(super) struct Called {
    pub is_virtual: bool,
    is_exact: bool,
    why: Why,
}

impl Called {
    pub fn new(is_virtual: bool, why: Why) -> Self {
        Called { is_virtual, is_exact: !is_virtual, why }
    }

    /// When it is not known in which way.
    pub fn any(is_virtual: bool, why: Why) -> Self {
        Called { is_virtual, is_exact: true, why }
    }
}

impl Graph {
    /// Finds what is reachable in one class by what is known of all above it.
    pub(super) fn consider(&mut self, id: ClassId) {
        if self.class(id).methods.is_none() {
            return;
        }
        if self.class(id).dormant {
            self.sleepers.insert(id);
        }
        let above = self.above(id);
        let below_inside = above.iter().any(|&a| self.class(a).side == Side::Inside);
        let mut unsure = false;
        let mut unsure_outside = false;
        for &a in &above {
            let class = self.class(a);
            if !class.known && !class.supers.iter().any(|&s| self.class(s).name == class.name) {
                unsure = true;
                unsure_outside |= class.side != Side::Inside;
            }
            let calls: Vec<_> = class
                .called
                .iter()
                .filter(|(_, call)| call.is_virtual || a == id)
                .map(|(selector, call)| (*selector, *call))
                .collect();
            for (selector, call) in calls {
                self.apply(id, selector, call, a == id);
            }
            if a != id && below_inside {
                self.callbacks(id, a);
            }
        }
        if unsure && self.class(id).side == Side::Inside && !self.class(id).dormant {
            self.guess(id, unsure_outside);
        }
    }

    /// What a class outside declares can be called there, on whatever objects there are.
    fn callbacks(&mut self, id: ClassId, outside: ClassId) {
        let side = self.class(outside).side;
        if side == Side::Inside || self.has_no_objects(id) {
            return;
        }
        let Some(declared) = &self.class(outside).methods else {
            self.want_list(outside);
            return;
        };
        if matches!(side, Side::JdkApart(part) if self.entered >> part & 1 == 0) {
            return;
        }
        let overridable = |m: &MethodId| self.methods[m.0 as usize].can_be_overridden(&self.names);
        let found: Vec<MethodId> = declared
            .iter()
            .filter(|(_, method)| overridable(method))
            .flat_map(|(selector, _)| self.resolve(id, *selector))
            .filter(|m| {
                let m = &self.methods[m.0 as usize];
                self.class(m.class).side == Side::Inside && m.can_override(&self.names)
            })
            .collect();
        for method in found {
            self.reach(method, Why::Callback(outside));
        }
    }

    /// Something reachable goes to a part of the JDK that is apart: it can call back from now on.
    pub(super) fn enter_part(&mut self, part: u8) {
        if self.entered >> part & 1 != 0 {
            return;
        }
        self.entered |= 1 << part;
        let all = (0..self.classes.len() as u32).map(ClassId);
        let apart: Vec<ClassId> =
            all.filter(|&id| self.class(id).side == Side::JdkApart(part)).collect();
        let below: BTreeSet<ClassId> = apart.into_iter().flat_map(|id| self.below(id)).collect();
        for id in below {
            self.consider(id);
        }
    }

    /// A method of a class runs that can make what the class's handles name callable.
    fn make_handles(&mut self, class: ClassId) {
        self.class_mut(class).makes_handles = true;
        for (owner, selector, is_virtual) in std::mem::take(&mut self.class_mut(class).handles) {
            self.call(owner, selector, Called::any(is_virtual, Why::Handle(class)));
        }
    }

    /// Whether no object can be of exactly this class. Only who looks on while the program runs can
    /// rely on that: a class that is not woven for it may get objects later.
    fn has_no_objects(&self, id: ClassId) -> bool {
        let class = self.class(id);
        let is_abstract = class.known && class.is_abstract && !class.is_interface;
        self.scheme == Scheme::Lazy && (class.dormant || is_abstract)
    }

    /// Some supertype is not loaded yet: what could be called through it is taken for reachable.
    fn guess(&mut self, id: ClassId, outside: bool) {
        let methods = self.class(id).methods.iter().flat_map(HashMap::values);
        let found: Vec<MethodId> = methods
            .copied()
            .filter(|m| {
                let method = &self.methods[m.0 as usize];
                method.can_override(&self.names)
                    && (self.called.contains(&method.selector)
                        || self.declared_outside.contains(&method.selector)
                        || (outside && self.is_foreign(method.selector)))
            })
            .collect();
        for method in found {
            self.reach(method, Why::Unsure);
        }
    }

    /// Whether code outside could declare such a method: its types are not the program's.
    fn is_foreign(&self, selector: Selector) -> bool {
        let Some(types) = descriptor::MethodDescriptor::parse(self.names.parts(selector).1) else {
            return true;
        };
        types.parameters().chain([types.returns]).all(|ty| {
            let element = ty.iter().position(|&b| b != b'[').map_or(ty, |at| &ty[at..]);
            element.first() != Some(&b'L')
                || (self.side)(descriptor::class_constant_name(element)) != Side::Inside
        })
    }

    pub(super) fn call(&mut self, class: ClassId, selector: Selector, call: Called) {
        self.called.insert(selector);
        let known = self.class(class).called.get(&selector).copied();
        let is_known = |k: &Called| k.is_virtual >= call.is_virtual && k.is_exact >= call.is_exact;
        if known.as_ref().is_some_and(is_known) {
            return;
        }
        let all = Called {
            is_virtual: call.is_virtual || known.is_some_and(|k| k.is_virtual),
            is_exact: call.is_exact || known.is_some_and(|k| k.is_exact),
            why: known.map_or(call.why, |k| k.why),
        };
        self.class_mut(class).called.insert(selector, all);
        if !self.class(class).known {
            for other in self.class(class).supers.clone() {
                self.call(other, selector, call);
            }
        }
        self.apply(class, selector, call, true);
        if call.is_virtual {
            for below in self.below(class) {
                self.apply(below, selector, call, false);
            }
        }
    }

    /// What a call leads to in one class. `itself` when that is the class that the call names:
    /// then it may be a method that others cannot override.
    fn apply(&mut self, class: ClassId, selector: Selector, call: Called, itself: bool) {
        if !(itself && call.is_exact) && self.has_no_objects(class) {
            if self.class(class).dormant {
                self.sleepers.insert(class);
            }
            return;
        }
        let own = self.class(class).methods.as_ref().and_then(|m| m.get(&selector)).copied();
        let hidden = |m: MethodId| !itself && !self.methods[m.0 as usize].can_override(&self.names);
        if own.is_some_and(hidden) {
            return;
        }
        for method in self.resolve(class, selector) {
            self.reach(method, call.why);
        }
    }

    /// What is called on an object of a class: its own method, that of the nearest superclass, or
    /// default methods; of several the JVM takes the most special one, we take all.
    fn resolve(&self, class: ClassId, selector: Selector) -> Vec<MethodId> {
        let own = self.class(class).methods.as_ref().and_then(|m| m.get(&selector)).copied();
        if let Some(method) = own.or_else(|| self.look_up(class, selector)) {
            return vec![method];
        }
        self.above(class)
            .into_iter()
            .filter(|&a| self.class(a).is_interface)
            .filter_map(|a| self.class(a).methods.as_ref()?.get(&selector).copied())
            .filter(|m| !self.methods[m.0 as usize].is_abstract())
            .collect()
    }

    /// The nearest superclass that implements a method, from the class itself on.
    fn look_up(&self, class: ClassId, selector: Selector) -> Option<MethodId> {
        let mut at = Some(class);
        let mut steps = 0;
        while let Some(id) = at {
            let class = self.class(id);
            let own = class.methods.as_ref().and_then(|m| m.get(&selector)).copied();
            if let Some(method) = own.filter(|m| !self.methods[m.0 as usize].is_abstract()) {
                return Some(method);
            }
            let stands_for = class.supers.first().copied().filter(|_| !class.known);
            at = class.superclass.or(stands_for);
            steps += 1;
            if steps > 10_000 {
                return None; // No program is like that; malformed facts may be.
            }
        }
        None
    }

    pub(super) fn reach(&mut self, method: MethodId, why: Why) {
        let m = &mut self.methods[method.0 as usize];
        let newly_called = matches!(why, Why::Root | Why::Call(_) | Why::Revealed) && !m.is_called;
        m.is_called |= newly_called;
        let m = &self.methods[method.0 as usize];
        let side = self.class(m.class).side;
        if let Side::JdkApart(part) = side {
            self.enter_part(part); // Inherited by a class of the program.
        }
        let m = &self.methods[method.0 as usize];
        if newly_called && m.access_flags & access::NATIVE != 0 && !side.is_jdk() {
            self.natives.push(method);
        }
        if newly_called && m.past >= self.trusted && !m.expanded && self.is_followed(m) {
            self.to_expand.push(method);
        }
        let m = &mut self.methods[method.0 as usize];
        let becomes_root = why == Why::Root && !m.root;
        if m.why.is_some() && !becomes_root {
            return;
        }
        let first = m.why.is_none();
        if first || becomes_root {
            m.why = Some(why);
        }
        m.root |= why == Why::Root;
        if m.access_flags & (access::ABSTRACT | access::NATIVE) != 0 {
            return;
        }
        let (class, root) = (m.class, m.root);
        // What a static initialiser calls in its own class runs as soon and, mostly, only then.
        let hasty = matches!(why, Why::Call(caller) if {
            let caller = &self.methods[caller.0 as usize];
            caller.hasty && caller.class == class
        });
        let ahead = self.ahead;
        let m = &mut self.methods[method.0 as usize];
        m.hasty |= hasty;
        m.ahead = m.ahead.max(ahead.saturating_sub(1));
        let at_once = m.hasty || ahead > 0 || self.scheme == Scheme::Eager;
        if self.class(class).side == Side::Inside || root {
            if root || self.methods[method.0 as usize].left_out.is_none() {
                self.changed.insert(class);
            }
            if first && at_once {
                self.to_expand.push(method);
            }
        }
    }

    /// Whether it is of those whose callees are looked for.
    pub(super) fn is_followed(&self, m: &Method) -> bool {
        m.access_flags & (access::ABSTRACT | access::NATIVE) == 0
            && (m.root || self.class(m.class).side == Side::Inside)
    }

    /// From now on, methods with such a past are followed as soon as something calls them: what ran
    /// before will run again, and is found at once instead of level by level.
    pub fn trust(&mut self, past: Past) {
        if past >= self.trusted || past == Past::Unknown {
            return;
        }
        self.trusted = past;
        let all = (0..self.methods.len() as u32).map(MethodId);
        let fits = |m: &MethodId| {
            let m = &self.methods[m.0 as usize];
            m.is_called && m.past >= past && !m.expanded && self.is_followed(m)
        };
        self.to_expand = all.filter(fits).collect();
        self.settle();
    }

    /// Classes that are to be woken when they are initialised.
    pub fn sleepers(&self) -> Vec<ClassId> {
        self.sleepers.iter().copied().collect()
    }

    /// A class is being initialised, or was: there may be objects of it.
    pub fn wake(&mut self, class: ClassId) {
        self.wake_up(class);
        self.settle();
    }

    /// Superclasses are initialised before.
    fn wake_up(&mut self, class: ClassId) {
        let mut at = Some(class).filter(|&id| self.class(id).dormant);
        while let Some(id) = at {
            at = self.class(id).superclass;
            if std::mem::take(&mut self.class_mut(id).dormant) {
                self.sleepers.remove(&id);
                self.consider(id);
            }
        }
    }

    pub(super) fn uses(&mut self, class: ClassId) {
        self.wake_up(class);
        let mut at = Some(class);
        while let Some(id) = at {
            let class = self.class(id);
            if class.known && class.initialised {
                return;
            }
            at = class.superclass;
            self.initialiser(id, Why::Initialiser);
        }
    }

    pub(super) fn initialiser(&mut self, class: ClassId, why: Why) {
        let selector = self.names.selector(b"<clinit>", b"()V");
        let own = self.class(class).methods.as_ref().and_then(|m| m.get(&selector)).copied();
        if let Some(method) = own {
            self.reach(method, why);
        }
    }

    /// Follows methods until nothing new is found.
    pub(super) fn settle(&mut self) {
        while let Some(method) = self.to_expand.pop() {
            let m = &mut self.methods[method.0 as usize];
            if m.expanded {
                continue;
            }
            let Some(body) = m.body.take() else {
                self.bodies_wanted.push(method);
                continue;
            };
            m.expanded = true;
            self.ahead = m.ahead;
            for target in body {
                match target {
                    Target::Call { class, selector, is_virtual } => {
                        self.call(class, selector, Called::new(is_virtual, Why::Call(method)));
                    }
                    Target::Use(class) => self.uses(class),
                    Target::Dynamic => self.make_handles(self.methods[method.0 as usize].class),
                    Target::Apart(part) => self.enter_part(part),
                }
            }
            self.ahead = 0;
        }
    }
}
