//! What the graph answers, and what it asks for: classes to be woven, code and lists of methods to
//! be read.

use super::{ClassId, Graph, Loader, Method, MethodId, Side};
use std::collections::HashMap;

impl Graph {
    pub fn find_class(&self, loader: Loader, name: &[u8]) -> Option<ClassId> {
        let name = self.names.known(name)?;
        let all = self.by_name.get(&name)?;
        all.iter().copied().find(|&id| self.class(id).loader == loader && self.class(id).known)
    }

    pub fn find_method(&self, class: ClassId, name: &[u8], descriptor: &[u8]) -> Option<MethodId> {
        let selector = self.names.known_selector(name, descriptor)?;
        self.class(class).methods.as_ref()?.get(&selector).copied()
    }

    /// Whether a method is to be woven, and whether the subgraph begins there.
    pub fn reachable(&self, method: MethodId) -> Option<bool> {
        let m = &self.methods[method.0 as usize];
        m.why.map(|_| m.root)
    }

    /// Whether it is to be followed before it runs; [`Graph::ran`] does it once its body is known.
    pub fn is_hasty(&self, method: MethodId) -> bool {
        self.methods[method.0 as usize].hasty
    }

    pub fn is_left_out(&self, method: MethodId) -> bool {
        self.methods[method.0 as usize].left_out.is_some()
    }

    pub fn side_of_name(&self, class: &[u8]) -> Side {
        (self.side)(class)
    }

    pub fn side_of(&self, class: ClassId) -> Side {
        self.class(class).side
    }

    pub fn loader_of(&self, class: ClassId) -> Loader {
        self.class(class).loader
    }

    pub fn has_methods(&self, class: ClassId) -> bool {
        self.class(class).methods.is_some()
    }

    pub fn class_of(&self, method: MethodId) -> ClassId {
        self.methods[method.0 as usize].class
    }

    pub fn has_root(&self, class: ClassId) -> bool {
        let methods = self.class(class).methods.iter().flat_map(HashMap::values);
        methods.into_iter().any(|m| self.methods[m.0 as usize].root)
    }

    /// Name and descriptor of a method.
    pub fn method_name(&self, method: MethodId) -> (&[u8], &[u8]) {
        self.names.parts(self.methods[method.0 as usize].selector)
    }

    /// `com.acme.Orders.place`, for people.
    pub fn full_name(&self, method: MethodId) -> String {
        let m = &self.methods[method.0 as usize];
        let class = String::from_utf8_lossy(self.names.text(self.class(m.class).name));
        let name = String::from_utf8_lossy(self.names.parts(m.selector).0);
        format!("{}.{name}", class.replace('/', "."))
    }

    /// Methods that are reachable and have code, those that were left out among them.
    pub fn count_reachable(&self) -> usize {
        let with_code = |m: &&Method| m.why.is_some() && !m.is_abstract();
        self.methods.iter().filter(with_code).count()
    }

    // ---- work for the outside ----

    /// Classes with methods that became reachable since the last question.
    pub fn take_changed(&mut self) -> Vec<ClassId> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// The same, without taking them.
    pub fn changed(&self) -> Vec<ClassId> {
        self.changed.iter().copied().collect()
    }

    /// Whether there are any.
    pub fn changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Its methods are being woven now, as they stand.
    pub fn forget_change(&mut self, class: ClassId) {
        self.changed.remove(&class);
    }

    /// Still to be woven after all.
    pub fn put_back(&mut self, class: ClassId) {
        self.changed.insert(class);
    }

    /// Methods to be followed whose code was not given.
    pub fn take_bodies_wanted(&mut self) -> Vec<MethodId> {
        std::mem::take(&mut self.bodies_wanted)
    }

    /// Classes whose methods are needed.
    pub fn take_lists_wanted(&mut self) -> Vec<ClassId> {
        std::mem::take(&mut self.lists_wanted).into_iter().collect()
    }

    pub fn wants_anything(&self) -> bool {
        !self.changed.is_empty() || !self.bodies_wanted.is_empty() || !self.lists_wanted.is_empty()
    }

    /// Native methods of the program that something reachable calls; what they call by JNI, nobody
    /// tells.
    pub fn take_natives(&mut self) -> Vec<MethodId> {
        std::mem::take(&mut self.natives)
    }
}
