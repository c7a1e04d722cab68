//! Which method has which id, for the JVM's life.
//!
//! Ids are stable: a class that is woven, restored and woven again gets the same bytes each time,
//! so nothing grows from session to session but by new classes.

use std::collections::HashMap;

pub struct Registry {
    classes: HashMap<(u32, String), Class>,
    next_id: u32,
    /// The next number for a class loader; zero is the JVM's own.
    pub next_loader: u32,
}

/// What is known of a class, told apart by name and loader.
#[derive(Default)]
pub struct Class {
    ids: HashMap<(Vec<u8>, Vec<u8>), u32>,
    /// The session whose log has the names of this class, and in which it was woven.
    pub woven_in: u32,
}

impl Registry {
    pub fn new() -> Self {
        Registry { classes: HashMap::new(), next_id: 0, next_loader: 1 }
    }

    pub fn class(&mut self, loader: u32, name: &str) -> &mut Class {
        self.classes.entry((loader, name.to_owned())).or_default()
    }

    pub fn known(&self, loader: u32, name: &str) -> Option<&Class> {
        self.classes.get(&(loader, name.to_owned()))
    }

    /// The id of a method, given out at the first question.
    pub fn id(&mut self, loader: u32, class: &str, method: &[u8], descriptor: &[u8]) -> u32 {
        let next = self.next_id + 1;
        let ids = &mut self.class(loader, class).ids;
        let id = *ids.entry((method.to_vec(), descriptor.to_vec())).or_insert(next);
        self.next_id = self.next_id.max(id);
        id
    }
}
