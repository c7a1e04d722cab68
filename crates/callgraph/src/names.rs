//! Names as small numbers: a large program has many methods and few different names.

use std::collections::HashMap;
use std::sync::Arc;

/// A class's name, or a method's, or a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u32);

/// A method's name and descriptor: what is looked for when a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Selector(u32);

#[derive(Default)]
pub(crate) struct Names {
    names: HashMap<Arc<[u8]>, Name>,
    texts: Vec<Arc<[u8]>>,
    selectors: HashMap<(Name, Name), Selector>,
    pairs: Vec<(Name, Name)>,
}

impl Names {
    pub fn name(&mut self, text: &[u8]) -> Name {
        if let Some(&name) = self.names.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        let text: Arc<[u8]> = text.into();
        self.texts.push(Arc::clone(&text));
        self.names.insert(text, name);
        name
    }

    pub fn known(&self, text: &[u8]) -> Option<Name> {
        self.names.get(text).copied()
    }

    pub fn text(&self, name: Name) -> &[u8] {
        self.texts.get(name.0 as usize).map_or(&[], |text| text)
    }

    pub fn selector(&mut self, name: &[u8], descriptor: &[u8]) -> Selector {
        let pair = (self.name(name), self.name(descriptor));
        *self.selectors.entry(pair).or_insert_with(|| {
            self.pairs.push(pair);
            Selector(self.pairs.len() as u32 - 1)
        })
    }

    pub fn known_selector(&self, name: &[u8], descriptor: &[u8]) -> Option<Selector> {
        self.selectors.get(&(self.known(name)?, self.known(descriptor)?)).copied()
    }

    /// Name and descriptor.
    pub fn parts(&self, selector: Selector) -> (&[u8], &[u8]) {
        match self.pairs.get(selector.0 as usize) {
            Some(&(name, descriptor)) => (self.text(name), self.text(descriptor)),
            None => (&[], &[]),
        }
    }
}
