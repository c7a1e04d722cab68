//! From facts to reachable methods. Everything here may be asked again and again: what is
//! reachable stays so, and only what is new has consequences.

use super::{Called, ClassId, Graph, MethodId, Scheme, Side, Target, Why};
use crate::names::Selector;
use std::collections::HashMap;
use tare_classfile::{access, descriptor};

impl Graph {
    /// Finds what is reachable in one class by what is known of all above it.
    pub(super) fn consider(&mut self, id: ClassId) {
        if self.class(id).methods.is_none() {
            return;
        }
        let above = self.above(id);
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
                self.apply(id, selector, call.why, a == id);
            }
            if a != id && self.class(id).side == Side::Inside {
                self.callbacks(id, a);
            }
        }
        if unsure && self.class(id).side == Side::Inside {
            self.guess(id, unsure_outside);
        }
    }

    /// What a class outside declares can be called there.
    fn callbacks(&mut self, id: ClassId, outside: ClassId) {
        let above = self.class(outside);
        if above.side == Side::Inside {
            return;
        }
        let Some(declared) = &above.methods else {
            self.want_list(outside);
            return;
        };
        let overridable = |m: &MethodId| self.methods[m.0 as usize].can_be_overridden(&self.names);
        let own = self.class(id).methods.iter().flatten();
        let mut found: Vec<MethodId> = own
            .filter(|(selector, _)| declared.get(selector).is_some_and(overridable))
            .map(|(_, method)| *method)
            .filter(|m| self.methods[m.0 as usize].can_override(&self.names))
            .collect();
        // A superclass that knows nothing of the interface may implement its methods.
        let superclass = self.class(id).superclass;
        if above.is_interface
            && let Some(superclass) = superclass
            && self.class(superclass).side == Side::Inside
            && !self.above(superclass).contains(&outside)
        {
            let inherited = declared.iter().filter(|(_, m)| overridable(m));
            let inherited =
                inherited.filter_map(|(selector, _)| self.look_up(superclass, *selector));
            found.extend(inherited);
        }
        for method in found {
            self.reach(method, Why::Callback(outside));
        }
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
        let wider = known.is_none_or(|k| call.is_virtual && !k.is_virtual);
        if !wider {
            return;
        }
        self.class_mut(class).called.insert(selector, call);
        if !self.class(class).known {
            for other in self.class(class).supers.clone() {
                self.call(other, selector, call);
            }
        }
        self.apply(class, selector, call.why, true);
        if call.is_virtual {
            for below in self.below(class) {
                self.apply(below, selector, call.why, false);
            }
        }
    }

    /// What a call leads to in one class. `itself` when that is the class that the call names:
    /// then it may be a method that others cannot override.
    fn apply(&mut self, class: ClassId, selector: Selector, why: Why, itself: bool) {
        let own = self.class(class).methods.as_ref().and_then(|m| m.get(&selector)).copied();
        if let Some(method) = own {
            if itself || self.methods[method.0 as usize].can_override(&self.names) {
                self.reach(method, why);
            }
            return;
        }
        if let Some(method) = self.look_up(class, selector) {
            self.reach(method, why);
            return;
        }
        // Default methods; of several the JVM takes the most special one, we take all.
        let defaults: Vec<MethodId> = self
            .above(class)
            .into_iter()
            .filter(|&a| self.class(a).is_interface)
            .filter_map(|a| self.class(a).methods.as_ref()?.get(&selector).copied())
            .filter(|m| !self.methods[m.0 as usize].is_abstract())
            .collect();
        for method in defaults {
            self.reach(method, why);
        }
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

    pub(super) fn uses(&mut self, class: ClassId) {
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
                        self.call(class, selector, Called { is_virtual, why: Why::Call(method) });
                    }
                    Target::Use(class) => self.uses(class),
                }
            }
            self.ahead = 0;
        }
    }
}
