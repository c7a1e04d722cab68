//! Which method has which id.
//!
//! Ids are stable: a class that is woven, restored and woven again gets the same bytes each time,
//! so nothing grows from session to session but by new classes. What is known of a class goes with
//! its loader; its ids are never given out again, because trees may still hold them.

use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Registry {
    loaders: HashMap<u32, OfLoader>,
    next_id: u32,
    /// Of all loaders.
    size: Size,
}

/// The classes of one loader, by name.
#[derive(Default)]
struct OfLoader {
    classes: HashMap<Box<str>, Class>,
    size: Size,
}

/// How much is known. The allocation sites of a method count as one method more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub methods: u64,
    /// Bytes that it takes, as far as can be told from here.
    pub bytes: u64,
}

impl Size {
    fn add(&mut self, methods: u64, bytes: u64) {
        self.methods += methods;
        self.bytes += bytes;
    }

    fn take(&mut self, other: Size) {
        self.methods = self.methods.saturating_sub(other.methods);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// What is known of a class, told apart by name and loader.
#[derive(Default)]
struct Class {
    /// By key, in order.
    ids: Vec<(Box<[u8]>, Id)>,
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

/// What the allocator needs for itself, for each piece of memory.
const PIECE: usize = 16;

fn bytes_of_class(name: &str) -> u64 {
    // Tables of hashes are half empty in the long run.
    (2 * size_of::<(Box<str>, Class)>() + name.len() + 2 * PIECE) as u64
}

fn bytes_of_id(key: &[u8]) -> u64 {
    (size_of::<(Box<[u8]>, Id)>() + key.len() + PIECE) as u64
}

/// Name and descriptor; no name has a zero.
fn key(method: &[u8], descriptor: &[u8]) -> Vec<u8> {
    [method, b"\0", descriptor].concat()
}

/// The allocation sites of a method: a digest of what they are, and how many ids they have.
#[derive(Clone, Copy, Debug)]
pub struct Sites {
    pub digest: u64,
    pub ids: u32,
}

fn sites_key((method, descriptor): (&[u8], &[u8]), digest: u64) -> Vec<u8> {
    [method, b"\0", descriptor, b"#sites", &digest.to_le_bytes()].concat()
}

/// No descriptor ends like this.
fn demoted_key(method: &[u8], descriptor: &[u8]) -> Vec<u8> {
    [method, b"\0", descriptor, b"#counted"].concat()
}

impl Class {
    fn place(&self, key: &[u8]) -> Result<usize, usize> {
        self.ids.binary_search_by(|(known, _)| (**known).cmp(key))
    }

    fn id(&self, key: &[u8]) -> Option<Id> {
        self.place(key).ok().map(|at| self.ids[at].1)
    }
}

impl Registry {
    fn class(&self, loader: u32, name: &str) -> Option<&Class> {
        self.loaders.get(&loader)?.classes.get(name)
    }

    fn class_mut(&mut self, loader: u32, name: &str) -> Option<&mut Class> {
        self.loaders.get_mut(&loader)?.classes.get_mut(name)
    }

    fn class_or_new(&mut self, loader: u32, name: &str) -> &mut Class {
        let of_loader = self.loaders.entry(loader).or_default();
        if !of_loader.classes.contains_key(name) {
            of_loader.size.add(0, bytes_of_class(name));
            self.size.add(0, bytes_of_class(name));
        }
        of_loader.classes.entry(name.into()).or_default()
    }

    pub fn is_woven(&self, loader: u32, name: &str, session: u32) -> bool {
        self.class(loader, name).is_some_and(|class| class.woven_in == session)
    }

    /// Notes how often the JVM has changed a class by the time that we leave it.
    pub fn leave(&mut self, loader: u32, name: &str, changes: i32) {
        self.class_or_new(loader, name).left_at = Some(changes);
    }

    pub fn was_left(&self, loader: u32, name: &str) -> bool {
        self.class(loader, name).is_some_and(|class| class.left_at.is_some())
    }

    /// Whether somebody has changed a class since we left it.
    pub fn changed_since(&self, loader: u32, name: &str, changes: i32) -> bool {
        let left_at = self.class(loader, name).and_then(|class| class.left_at);
        left_at.is_some_and(|left_at| left_at != changes)
    }

    /// The digest of a class as it was when it was first woven in a session.
    pub fn first(&self, loader: u32, name: &str, session: u32) -> Option<u64> {
        let class = self.class(loader, name)?;
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
        let class = self.class_or_new(loader, name);
        let before = (class.woven_in == session).then_some(class.methods);
        if before.is_none() {
            class.woven_in = session;
            class.first = first();
        }
        class.methods = methods;
        before
    }

    /// Takes back what [`Registry::weave`] noted, for a class that is not woven after all.
    pub fn unweave(&mut self, loader: u32, name: &str, session: u32) -> Option<u64> {
        let class = self.class_mut(loader, name)?;
        let woven = class.woven_in == session;
        class.woven_in = 0;
        woven.then_some(class.methods)
    }

    /// The id of a method, given out at the first question.
    pub fn id(&mut self, loader: u32, class: &str, method: &[u8], descriptor: &[u8]) -> u32 {
        self.give(loader, class, key(method, descriptor))
    }

    /// The id of a method that was woven before.
    pub fn known_id(
        &self,
        loader: u32,
        class: &str,
        method: &[u8],
        descriptor: &[u8],
    ) -> Option<u32> {
        self.class(loader, class)?.id(&key(method, descriptor)).map(|id| id.number)
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
        self.give(loader, class, demoted_key(method, descriptor))
    }

    /// The first of the ids of a method's allocation sites, which follow each other. They are known
    /// by what makes the sites what they are: its class may be changed, and have others then.
    pub fn sites(&mut self, loader: u32, class: &str, method: (&[u8], &[u8]), sites: Sites) -> u32 {
        let key = sites_key(method, sites.digest);
        let first = self.next_id + 1;
        let number = self.give(loader, class, key);
        if number == first {
            // The others are nobody's but theirs.
            self.next_id += sites.ids.saturating_sub(1);
        }
        number
    }

    /// Whether the log of a session lacks the names of sites, by the first of their ids.
    pub fn lacks_sites(&self, loader: u32, class: &str, first: u32, session: u32) -> bool {
        let class = self.class(loader, class);
        let mut ids = class.iter().flat_map(|class| &class.ids);
        ids.any(|(_, id)| id.number == first && id.logged_in != session)
    }

    /// The log of a session has the names of sites now.
    pub fn has_sites(&mut self, loader: u32, class: &str, first: u32, session: u32) {
        let ids = self.class_mut(loader, class).into_iter().flat_map(|class| &mut class.ids);
        for (_, id) in ids.filter(|(_, id)| id.number == first) {
            id.logged_in = session;
        }
    }

    fn give(&mut self, loader: u32, class: &str, key: Vec<u8>) -> u32 {
        let number = self.next_id + 1;
        let class = self.class_or_new(loader, class);
        let at = match class.place(&key) {
            Ok(at) => return class.ids[at].1.number,
            Err(at) => at,
        };
        let bytes = bytes_of_id(&key);
        class.ids.insert(at, (key.into(), Id { number, logged_in: 0 }));
        if let Some(of_loader) = self.loaders.get_mut(&loader) {
            of_loader.size.add(1, bytes);
        }
        self.size.add(1, bytes);
        self.next_id = number;
        number
    }

    /// The classes of methods, as (loader, name).
    pub fn classes_of(&self, ids: &HashSet<u32>) -> HashSet<(u32, String)> {
        let concerned = |class: &Class| class.ids.iter().any(|(_, id)| ids.contains(&id.number));
        let mut found = HashSet::new();
        for (loader, of_loader) in &self.loaders {
            let classes = of_loader.classes.iter().filter(|(_, class)| concerned(class));
            found.extend(classes.map(|(name, _)| (*loader, name.to_string())));
        }
        found
    }

    /// Where one of a method's two ids is, in its class.
    fn place_of(class: &Class, method: (&[u8], &[u8]), id: u32) -> Option<usize> {
        let keys = [key(method.0, method.1), demoted_key(method.0, method.1)];
        let mut places = keys.iter().filter_map(|key| class.place(key).ok());
        places.find(|at| class.ids[*at].1.number == id)
    }

    /// Whether the log of a session lacks the name of a method, for one of its two ids.
    pub fn lacks_name(
        &self,
        loader: u32,
        class: &str,
        method: (&[u8], &[u8]),
        id: u32,
        session: u32,
    ) -> bool {
        self.class(loader, class).is_some_and(|class| {
            Self::place_of(class, method, id).is_some_and(|at| class.ids[at].1.logged_in != session)
        })
    }

    /// The log of a session has the name now.
    pub fn has_name(
        &mut self,
        loader: u32,
        class: &str,
        method: (&[u8], &[u8]),
        id: u32,
        session: u32,
    ) {
        if let Some(class) = self.class_mut(loader, class)
            && let Some(at) = Self::place_of(class, method, id)
        {
            class.ids[at].1.logged_in = session;
        }
    }

    /// Forgets the methods of a class that no session has ever named, and so never wove.
    pub fn forget_nameless(&mut self, loader: u32, name: &str) {
        let Some(of_loader) = self.loaders.get_mut(&loader) else { return };
        let Some(class) = of_loader.classes.get_mut(name) else { return };
        let mut less = Size::default();
        class.ids.retain(|(key, id)| {
            let stays = id.logged_in != 0;
            if !stays {
                less.add(1, bytes_of_id(key));
            }
            stays
        });
        class.ids.shrink_to_fit();
        if class.ids.is_empty() && class.left_at.is_none() {
            of_loader.classes.remove(name);
            less.add(0, bytes_of_class(name));
        }
        of_loader.size.take(less);
        self.size.take(less);
    }

    /// Forgets loaders that are gone, with their classes.
    pub fn forget(&mut self, loaders: &[u32]) {
        for loader in loaders {
            if let Some(of_loader) = self.loaders.remove(loader) {
                self.size.take(of_loader.size);
            }
        }
        if !loaders.is_empty() && self.loaders.len() < self.loaders.capacity() / 4 {
            self.loaders.shrink_to_fit();
        }
    }

    pub fn size(&self) -> Size {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: (&[u8], &[u8]) = (b"run", b"()V");

    #[test]
    fn what_is_known_of_a_class_goes_with_its_loader_and_its_ids_do_not_come_back() {
        let mut registry = Registry::default();
        let kept = registry.id(1, "a/B", RUN.0, RUN.1);
        let alone = registry.size();
        assert_eq!(alone.methods, 1);
        let mut last = kept;
        for loader in 2..100 {
            for name in ["a/B", "a/C"] {
                let id = registry.id(loader, name, RUN.0, RUN.1);
                assert!(id > last, "an id came back");
                last = registry.demoted_id(loader, name, RUN.0, RUN.1);
                assert!(last > id);
                assert_eq!(registry.id(loader, name, RUN.0, RUN.1), id);
            }
            assert!(registry.size().bytes > alone.bytes);
            registry.forget(&[loader]);
            assert_eq!(registry.size(), alone);
        }
        assert_eq!(registry.id(1, "a/B", RUN.0, RUN.1), kept);
        assert_eq!(registry.known_id(2, "a/B", RUN.0, RUN.1), None);
    }

    #[test]
    fn names_are_asked_for_once_in_a_session_until_they_are_there() {
        let mut registry = Registry::default();
        let ids =
            [registry.id(1, "a/B", RUN.0, RUN.1), registry.demoted_id(1, "a/B", RUN.0, RUN.1)];
        for id in ids {
            assert!(registry.lacks_name(1, "a/B", RUN, id, 1));
            assert!(registry.lacks_name(1, "a/B", RUN, id, 1), "asking is not logging");
            registry.has_name(1, "a/B", RUN, id, 1);
            assert!(!registry.lacks_name(1, "a/B", RUN, id, 1));
            assert!(registry.lacks_name(1, "a/B", RUN, id, 2));
        }
        assert!(!registry.lacks_name(1, "a/B", RUN, 77, 1), "no id of this method");
    }

    #[test]
    fn methods_that_were_never_named_are_forgotten_and_others_are_not() {
        let mut registry = Registry::default();
        let named = registry.id(1, "a/B", RUN.0, RUN.1);
        registry.has_name(1, "a/B", RUN, named, 1);
        let before = registry.size();
        registry.id(1, "a/B", b"other", b"()V");
        registry.id(1, "a/C", RUN.0, RUN.1);
        registry.forget_nameless(1, "a/B");
        registry.forget_nameless(1, "a/C");
        assert_eq!(registry.size(), before);
        assert_eq!(registry.known_id(1, "a/B", RUN.0, RUN.1), Some(named));
    }

    #[test]
    fn sites_have_ids_in_a_row_and_others_when_they_are_others() {
        let mut registry = Registry::default();
        let before = registry.id(1, "a/B", RUN.0, RUN.1);
        let some = Sites { digest: 7, ids: 3 };
        let first = registry.sites(1, "a/B", RUN, some);
        assert_eq!(first, before + 1);
        assert_eq!(registry.id(1, "a/B", b"other", b"()V"), first + 3);
        assert_eq!(registry.sites(1, "a/B", RUN, some), first);
        assert_eq!(registry.sites(1, "a/B", RUN, Sites { digest: 8, ids: 1 }), first + 4);
        assert!(registry.lacks_sites(1, "a/B", first, 1));
        registry.has_sites(1, "a/B", first, 1);
        assert!(!registry.lacks_sites(1, "a/B", first, 1));
        assert!(registry.lacks_sites(1, "a/B", first + 4, 1));
        assert_eq!(registry.known_id(1, "a/B", RUN.0, RUN.1), Some(before));
    }

    #[test]
    fn classes_are_found_by_the_ids_of_their_methods() {
        let mut registry = Registry::default();
        let id = registry.id(3, "a/B", RUN.0, RUN.1);
        registry.id(4, "a/B", RUN.0, RUN.1);
        assert_eq!(registry.classes_of(&[id].into()), [(3, "a/B".to_owned())].into());
    }
}
