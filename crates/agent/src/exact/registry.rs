//! Which method has which id, for the JVM's life.
//!
//! Ids are stable: a class that is woven, restored and woven again gets the same bytes each time,
//! so nothing grows from session to session but by new classes.

use std::collections::{HashMap, HashSet};

pub struct Registry {
    classes: HashMap<(u32, String), Class>,
    next_id: u32,
}

/// What is known of a class, told apart by name and loader.
#[derive(Default)]
pub struct Class {
    ids: HashMap<(Vec<u8>, Vec<u8>), Id>,
    /// The session in which it was woven last.
    woven_in: u32,
    /// How many of its methods were woven then.
    methods: u64,
    /// A digest of what it was before.
    first: u64,
    /// How often the JVM had changed it when it was restored last.
    left_at: Option<i32>,
}

#[derive(Clone, Copy)]
struct Id {
    number: u32,
    /// The session whose log has its name.
    logged_in: u32,
}

impl Registry {
    pub fn new() -> Self {
        Registry { classes: HashMap::new(), next_id: 0 }
    }

    fn class(&mut self, loader: u32, name: &str) -> &mut Class {
        self.classes.entry((loader, name.to_owned())).or_default()
    }

    pub fn is_woven(&self, loader: u32, name: &str, session: u32) -> bool {
        let class = self.classes.get(&(loader, name.to_owned()));
        class.is_some_and(|class| class.woven_in == session)
    }

    /// Notes how often the JVM has changed a class by the time that we leave it.
    pub fn leave(&mut self, loader: u32, name: &str, changes: i32) {
        self.class(loader, name).left_at = Some(changes);
    }

    pub fn was_left(&self, loader: u32, name: &str) -> bool {
        let class = self.classes.get(&(loader, name.to_owned()));
        class.is_some_and(|class| class.left_at.is_some())
    }

    /// Whether somebody has changed a class since we left it.
    pub fn changed_since(&self, loader: u32, name: &str, changes: i32) -> bool {
        let class = self.classes.get(&(loader, name.to_owned()));
        class.and_then(|class| class.left_at).is_some_and(|left_at| left_at != changes)
    }

    /// The digest of a class as it was when it was first woven in a session.
    pub fn first(&self, loader: u32, name: &str, session: u32) -> Option<u64> {
        let class = self.classes.get(&(loader, name.to_owned()))?;
        (class.woven_in == session).then_some(class.first)
    }

    /// Notes that so many methods of a class are woven now, and what it was before, if it is new.
    /// Returns how many were: the JVM passes a class through the hook again whenever another agent
    /// changes it, and when others of its batch were not taken.
    pub fn weave(
        &mut self,
        loader: u32,
        name: &str,
        session: u32,
        methods: u64,
        first: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let class = self.class(loader, name);
        let before = (class.woven_in == session).then_some(class.methods);
        if before.is_none() {
            class.woven_in = session;
            class.first = first();
        }
        class.methods = methods;
        before
    }

    /// Takes back what [`Registry::weave`] noted, for a class that the JVM did not take.
    pub fn unweave(&mut self, loader: u32, name: &str, session: u32) -> Option<u64> {
        let class = self.classes.get_mut(&(loader, name.to_owned()))?;
        let woven = class.woven_in == session;
        class.woven_in = 0;
        woven.then_some(class.methods)
    }

    /// The id of a method, given out at the first question.
    pub fn id(&mut self, loader: u32, class: &str, method: &[u8], descriptor: &[u8]) -> u32 {
        self.give(loader, class, (method.to_vec(), descriptor.to_vec()))
    }

    /// The id of a method that was woven before.
    pub fn known_id(
        &self,
        loader: u32,
        class: &str,
        method: &[u8],
        descriptor: &[u8],
    ) -> Option<u32> {
        let class = self.classes.get(&(loader, class.to_owned()))?;
        class.ids.get(&(method.to_vec(), descriptor.to_vec())).map(|id| id.number)
    }

    /// The id of a method while it is counted in a recording that times others: its calls are told
    /// from those that were timed before or are timed later.
    pub fn demoted_id(
        &mut self,
        loader: u32,
        class: &str,
        method: &[u8],
        descriptor: &[u8],
    ) -> u32 {
        self.give(loader, class, (method.to_vec(), demoted(descriptor)))
    }

    fn give(&mut self, loader: u32, class: &str, key: (Vec<u8>, Vec<u8>)) -> u32 {
        let next = Id { number: self.next_id + 1, logged_in: 0 };
        let id = self.class(loader, class).ids.entry(key).or_insert(next).number;
        self.next_id = self.next_id.max(id);
        id
    }

    /// The classes of methods, as (loader, name).
    pub fn classes_of(&self, ids: &HashSet<u32>) -> HashSet<(u32, String)> {
        let concerned = |class: &Class| class.ids.values().any(|id| ids.contains(&id.number));
        let found = self.classes.iter().filter(|(_, class)| concerned(class));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Whether the name of a method is to be logged, for one of its two ids: true once in a session.
    pub fn log(
        &mut self,
        loader: u32,
        class: &str,
        method: (&[u8], &[u8]),
        id: u32,
        session: u32,
    ) -> bool {
        let (name, descriptor) = method;
        let ids = &mut self.class(loader, class).ids;
        [descriptor.to_vec(), demoted(descriptor)].into_iter().any(|descriptor| {
            let known = ids.get_mut(&(name.to_vec(), descriptor));
            known
                .filter(|known| known.number == id)
                .is_some_and(|known| std::mem::replace(&mut known.logged_in, session) != session)
        })
    }
}

/// No descriptor ends like this.
fn demoted(descriptor: &[u8]) -> Vec<u8> {
    [descriptor, b"#counted"].concat()
}
