//! The mirrors of classes: what is known of each, and of how they stand to each other.
//!
//! A class that is named before it is known has a mirror too, a *stand-in*. When a class of that
//! name comes from another loader, the stand-in is taken for one of its subtypes, and calls on the
//! stand-in for calls on it: that is right when the stand-in's loader delegates to the other, and
//! too much, never too little, when it does not. When the class itself comes, it takes the
//! stand-in's place.

mod explain;
mod mirrors;
mod questions;
mod reach;

pub use explain::{Explanation, Step};
use reach::Called;

use crate::names::{Name, Names, Selector};
use crate::sites::Site;
use std::collections::{BTreeSet, HashMap, HashSet};
use tare_classfile::access;

/// A class loader's number; zero is the JVM's own.
pub type Loader = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(u32);

/// When a reachable method's callees are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Eager,
    /// When [`Graph::ran`] says that it has run.
    Lazy,
}

/// Where a class stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// May be woven.
    Inside,
    /// Code of the JDK, which names no class of the program.
    Jdk,
    /// One of the parts of the JDK, told apart by a number below 8, that the rest of it never
    /// calls: who gets there comes from code that names it.
    JdkApart(u8),
    /// Any other code that is not woven.
    Outside,
}

impl Side {
    #[must_use]
    pub fn is_jdk(self) -> bool {
        matches!(self, Side::Jdk | Side::JdkApart(_))
    }
}

/// What is known of a class.
pub struct ClassFacts<'a> {
    pub name: &'a [u8],
    pub loader: Loader,
    pub access_flags: u16,
    pub superclass: Option<(Loader, &'a [u8])>,
    pub interfaces: Vec<(Loader, &'a [u8])>,
    /// Its static initialiser has run, or will not.
    pub initialised: bool,
    /// None of its code has run yet, so there are no objects of it. Whoever says so tells when that
    /// ends ([`Graph::wake`]).
    pub dormant: bool,
    /// None when they come later, by [`Graph::set_methods`].
    pub methods: Option<Vec<MethodFacts<'a>>>,
}

pub struct MethodFacts<'a> {
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    pub access_flags: u16,
    /// The subgraph begins here; if it has no code, in its implementations.
    pub root: bool,
    pub past: Past,
}

/// How often a method has run so far, wherever it was called from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Past {
    #[default]
    Unknown,
    Ran,
    RanOften,
}

/// Why a method is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Root,
    Call(MethodId),
    /// Overrides what this class declares, and can be called from there.
    Callback(ClassId),
    /// A handle in this class's constant pool names it.
    Handle(ClassId),
    /// This class outside names it.
    Named(ClassId),
    /// A static initialiser of a class that is loaded while we look.
    Initialiser,
    /// Its class has supertypes that are not loaded yet.
    Unsure,
    /// Seen to be called, by reflection or a method handle.
    Revealed,
    /// Reachable in an earlier class of that name.
    Again,
}

#[derive(Clone, Copy)]
enum Target {
    Call {
        class: ClassId,
        selector: Selector,
        is_virtual: bool,
    },
    Use(ClassId),
    /// What handles of its class name.
    Dynamic,
    /// Goes to a part of the JDK that is apart.
    Apart(u8),
}

struct Class {
    name: Name,
    loader: Loader,
    side: Side,
    /// False for stand-ins.
    known: bool,
    is_interface: bool,
    is_abstract: bool,
    initialised: bool,
    dormant: bool,
    superclass: Option<ClassId>,
    /// Superclass, interfaces and, for a stand-in, what it stands for.
    supers: Vec<ClassId>,
    subs: Vec<ClassId>,
    methods: Option<HashMap<Selector, MethodId>>,
    called: HashMap<Selector, Called>,
    /// What handles in its constant pool name, until something runs that can make such a handle.
    handles: Vec<(ClassId, Selector, bool)>,
    makes_handles: bool,
}

struct Method {
    class: ClassId,
    selector: Selector,
    access_flags: u16,
    why: Option<Why>,
    root: bool,
    /// Runs while its class is initialised, when nobody can wait: followed at once.
    hasty: bool,
    /// So many levels of what it calls are followed with it.
    ahead: u8,
    past: Past,
    /// Called by a method that was followed, or a root; not only callable from outside.
    is_called: bool,
    expanded: bool,
    body: Option<Box<[Target]>>,
    woven: bool,
    /// Why it is not woven although it is reachable.
    left_out: Option<Box<str>>,
}

impl Method {
    /// Whether a method of a subclass can take its place.
    fn can_be_overridden(&self, names: &Names) -> bool {
        const FIXED: u16 = access::STATIC | access::PRIVATE | access::FINAL;
        self.access_flags & FIXED == 0 && !names.parts(self.selector).0.starts_with(b"<")
    }

    /// Whether it can take the place of a superclass's.
    fn can_override(&self, names: &Names) -> bool {
        self.access_flags & (access::STATIC | access::PRIVATE) == 0
            && !names.parts(self.selector).0.starts_with(b"<")
    }

    fn is_abstract(&self) -> bool {
        self.access_flags & access::ABSTRACT != 0
    }
}

/// Tells from a class's name where it stands.
type SideOf = Box<dyn Fn(&[u8]) -> Side + Send>;

pub struct Graph {
    scheme: Scheme,
    side: SideOf,
    names: Names,
    classes: Vec<Class>,
    by_name: HashMap<Name, Vec<ClassId>>,
    methods: Vec<Method>,
    /// Selectors of all calls, for classes whose place among the others is not known yet.
    called: HashSet<Selector>,
    /// Selectors that some class outside declares.
    declared_outside: HashSet<Selector>,
    changed: BTreeSet<ClassId>,
    bodies_wanted: Vec<MethodId>,
    lists_wanted: BTreeSet<ClassId>,
    to_expand: Vec<MethodId>,
    /// Dormant classes with methods that could be called once there are objects.
    sleepers: BTreeSet<ClassId>,
    /// Levels of callees that are followed with a method that runs, and with the one being
    /// followed.
    look_ahead: u8,
    ahead: u8,
    /// With such a past, a method that is called is taken for one that will run again.
    trusted: Past,
    /// One bit for each part of the JDK that is apart: whether anything reachable goes there.
    entered: u8,
    /// Native methods of the program that are called, since the last question.
    natives: Vec<MethodId>,
}

impl Graph {
    /// A graph without classes. `side` tells from a class's name where it stands.
    pub fn new(scheme: Scheme, side: impl Fn(&[u8]) -> Side + Send + 'static) -> Self {
        Graph {
            scheme,
            side: Box::new(side),
            names: Names::default(),
            classes: Vec::new(),
            by_name: HashMap::new(),
            methods: Vec::new(),
            called: HashSet::new(),
            declared_outside: HashSet::new(),
            changed: BTreeSet::new(),
            bodies_wanted: Vec::new(),
            lists_wanted: BTreeSet::new(),
            to_expand: Vec::new(),
            sleepers: BTreeSet::new(),
            look_ahead: 0,
            ahead: 0,
            trusted: Past::RanOften,
            entered: if scheme == Scheme::Eager { u8::MAX } else { 0 },
            natives: Vec::new(),
        }
    }

    /// From now on, what a method calls is followed with it to so many levels: fewer are found when
    /// they run, and more are taken for reachable.
    pub fn look_ahead(&mut self, levels: u8) {
        self.look_ahead = levels;
    }

    // ---- facts ----

    /// A class is there, or about to be. Asked twice, the second time changes nothing but
    /// methods that were not given before.
    pub fn add_class(&mut self, facts: &ClassFacts<'_>) -> ClassId {
        let name = self.names.name(facts.name);
        let id = self.mirror(facts.loader, name);
        if !self.class(id).known {
            // What it stood for is another class.
            for above in std::mem::take(&mut self.class_mut(id).supers) {
                self.class_mut(above).subs.retain(|&sub| sub != id);
            }
            let superclass = facts.superclass.map(|(l, n)| self.named(l, n));
            let interfaces: Vec<ClassId> =
                facts.interfaces.iter().map(|&(l, n)| self.named(l, n)).collect();
            let class = self.class_mut(id);
            class.known = true;
            class.is_interface = facts.access_flags & access::INTERFACE != 0;
            class.is_abstract = facts.access_flags & access::ABSTRACT != 0;
            class.initialised = facts.initialised;
            class.dormant = facts.dormant;
            class.superclass = superclass;
            for above in superclass.into_iter().chain(interfaces) {
                self.link(id, above);
            }
            // Stand-ins of other loaders may have meant this class.
            let others = self.by_name.get(&name).cloned().unwrap_or_default();
            for other in others {
                if other != id && !self.class(other).known {
                    self.stand_for(other, id);
                }
            }
        }
        if self.class(id).methods.is_none()
            && let Some(methods) = &facts.methods
        {
            self.declare(id, methods);
            self.repeat(name, id);
        }
        self.settle();
        id
    }

    /// A program that loads a class once more, by another loader, will use it as it did before. To
    /// find that out anew each time would be too late each time.
    fn repeat(&mut self, name: Name, id: ClassId) {
        let others = self.by_name.get(&name).cloned().unwrap_or_default();
        let Some(own) = self.class(id).methods.as_ref() else { return };
        let mut again = Vec::new();
        for other in others.into_iter().filter(|&other| other != id) {
            for (selector, method) in self.class(other).methods.iter().flatten() {
                if self.methods[method.0 as usize].why.is_some() {
                    again.extend(own.get(selector).copied());
                }
            }
        }
        for method in again {
            self.reach(method, Why::Again);
        }
    }

    /// The methods of a class that was added without.
    pub fn set_methods(&mut self, class: ClassId, methods: &[MethodFacts<'_>]) {
        if self.class(class).methods.is_none() {
            self.declare(class, methods);
            self.settle();
        }
    }

    /// The sites of a method's code. Handed in at any time; used when it is expanded.
    pub fn set_body<'a>(&mut self, method: MethodId, sites: impl IntoIterator<Item = Site<'a>>) {
        let m = &self.methods[method.0 as usize];
        if m.expanded || m.body.is_some() {
            return;
        }
        let loader = self.class(m.class).loader;
        let mut targets = Vec::new();
        for site in sites {
            let (owner, member) = match site {
                Site::Dynamic => {
                    targets.push(Target::Dynamic);
                    continue;
                }
                Site::Use(owner) => (owner, None),
                Site::Exact(member) => (member.owner, Some((member, false))),
                Site::Virtual(member) => (member.owner, Some((member, true))),
            };
            // What the JDK may lead to is known without looking.
            match (self.side)(owner) {
                _ if owner.first() == Some(&b'[') => continue,
                Side::Jdk => continue,
                Side::JdkApart(part) => {
                    targets.push(Target::Apart(part));
                    continue;
                }
                Side::Inside | Side::Outside => {}
            }
            let class = self.named(loader, owner);
            targets.push(match member {
                None => Target::Use(class),
                Some((member, is_virtual)) => {
                    let selector = self.names.selector(member.name, member.descriptor);
                    Target::Call { class, selector, is_virtual }
                }
            });
        }
        self.methods[method.0 as usize].body = Some(targets.into());
    }

    /// A method runs for the first time: what it calls is reachable.
    pub fn ran(&mut self, method: MethodId) {
        let m = &mut self.methods[method.0 as usize];
        m.ahead = m.ahead.max(self.look_ahead);
        self.follow(method);
    }

    /// What it calls is reachable, whether it runs or not.
    pub fn follow(&mut self, method: MethodId) {
        self.to_expand.push(method);
        self.settle();
    }

    /// A handle in the constant pool of a class names a method.
    pub fn handle(&mut self, class: ClassId, site: Site<'_>) {
        self.name(class, site, Why::Handle(class));
    }

    /// The same in a class whose handles that were made so far are known by other ways: those that
    /// are made from now on need a method of the class that makes handles and runs.
    pub fn handle_when_made(&mut self, class: ClassId, site: Site<'_>) {
        if self.scheme == Scheme::Eager || self.class(class).makes_handles {
            self.handle(class, site);
        } else if let Some(named) = self.target(class, site) {
            self.class_mut(class).handles.push(named);
        }
    }

    /// A class outside names a method.
    pub fn named_by(&mut self, class: ClassId, site: Site<'_>) {
        self.name(class, site, Why::Named(class));
    }

    fn name(&mut self, class: ClassId, site: Site<'_>, why: Why) {
        if let Some((owner, selector, is_virtual)) = self.target(class, site) {
            self.call(owner, selector, Called::any(is_virtual, why));
            self.settle();
        }
    }

    /// The method inside that a class names.
    fn target(&mut self, class: ClassId, site: Site<'_>) -> Option<(ClassId, Selector, bool)> {
        let (member, is_virtual) = match site {
            Site::Exact(member) => (member, false),
            Site::Virtual(member) => (member, true),
            Site::Use(_) | Site::Dynamic => return None,
        };
        match (self.side)(member.owner) {
            _ if member.owner.first() == Some(&b'[') => return None,
            Side::Inside => {}
            Side::JdkApart(part) => {
                self.enter_part(part);
                return None;
            }
            Side::Jdk | Side::Outside => return None,
        }
        let owner = self.named(self.class(class).loader, member.owner);
        let selector = self.names.selector(member.name, member.descriptor);
        Some((owner, selector, is_virtual))
    }

    /// A method was seen to be called in a way that code does not tell. Of a method that can be
    /// overridden this says nothing about which one ran, so all below are reachable too.
    pub fn reveal(&mut self, loader: Loader, class: &[u8], name: &[u8], descriptor: &[u8]) {
        match (self.side)(class) {
            Side::Inside => {}
            Side::JdkApart(part) => return self.enter(part),
            Side::Jdk | Side::Outside => return,
        }
        let class = self.named(loader, class);
        let selector = self.names.selector(name, descriptor);
        let is_virtual = name != b"<init>";
        self.call(class, selector, Called::any(is_virtual, Why::Revealed));
        if name == b"<init>" {
            self.uses(class);
        }
        self.settle();
    }

    /// The same, when the descriptor is not known: all methods of that name.
    pub fn reveal_all(&mut self, loader: Loader, class: &[u8], name: &[u8]) {
        if let Side::JdkApart(part) = (self.side)(class) {
            self.enter(part);
        }
        let Some(id) = self.find_class(loader, class) else { return };
        let methods = self.class(id).methods.iter().flatten();
        let descriptors: Vec<Vec<u8>> = methods
            .map(|(selector, _)| self.names.parts(*selector))
            .filter(|(n, _)| *n == name)
            .map(|(_, descriptor)| descriptor.to_vec())
            .collect();
        for descriptor in descriptors {
            self.reveal(loader, class, name, &descriptor);
        }
    }

    /// There are objects that lead to a part of the JDK from code that does not name it.
    pub fn enter(&mut self, part: u8) {
        self.enter_part(part);
        self.settle();
    }

    /// The static initialiser of a class that is being loaded will run, who knows from where.
    pub fn will_initialise(&mut self, class: ClassId) {
        self.initialiser(class, Why::Initialiser);
        self.settle();
    }

    /// A method is taken for reachable although its caller has not run: to look ahead costs less
    /// than to come back.
    pub fn foresee(&mut self, method: MethodId, caller: MethodId) {
        self.reach(method, Why::Call(caller));
        self.settle();
    }

    /// The JVM has woven it.
    pub fn set_woven(&mut self, method: MethodId) {
        self.methods[method.0 as usize].woven = true;
    }

    /// It stays as it is. What it calls is reachable at once: nobody will see it run.
    pub fn leave_out(&mut self, method: MethodId, reason: &str) {
        let m = &mut self.methods[method.0 as usize];
        if m.left_out.is_none() {
            m.left_out = Some(reason.into());
            self.to_expand.push(method);
            self.settle();
        }
    }

    /// It stays as it is, and there is nothing in it to be followed.
    pub fn pass_over(&mut self, method: MethodId, reason: &str) {
        let m = &mut self.methods[method.0 as usize];
        m.left_out.get_or_insert_with(|| reason.into());
        m.expanded = true;
    }

    // ---- mirrors ----
}
