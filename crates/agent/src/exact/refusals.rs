//! What was not woven and why: a count for each reason, with the first names.

use super::{REGISTRY, Recording, dotted, locked};
use crate::jvm::classes::Classes;
use jvmti_bindings::sys::jni::jclass;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use tare_classfile::ClassFile;
use tare_protocol::Refusal;

/// Names kept for a reason; the others are counted.
const NAMED: usize = 30;

/// Reasons told apart. There are few; the bound is for those that carry a number.
const REASONS: usize = 100;

#[derive(Default)]
pub struct Refusals {
    reasons: BTreeMap<String, Reason>,
}

#[derive(Default)]
struct Reason {
    names: Vec<String>,
    others: u64,
}

impl Refusals {
    /// Notes one class or method, once under its name.
    pub fn add(&mut self, name: &str, reason: &str) {
        let full = self.reasons.len() >= REASONS && !self.reasons.contains_key(reason);
        let reason = if full { "further reasons" } else { reason };
        let entry = self.reasons.entry(reason.to_owned()).or_default();
        if entry.names.iter().any(|known| known == name) {
            return;
        }
        if entry.names.len() < NAMED {
            entry.names.push(name.to_owned());
        } else {
            entry.others += 1;
        }
    }

    pub fn list(&self) -> Vec<Refusal> {
        let mut list = Vec::new();
        for (reason, entry) in &self.reasons {
            let mut add = |what: &str, count| {
                list.push(Refusal { what: what.to_owned(), count, reason: reason.clone() });
            };
            entry.names.iter().for_each(|name| add(name, 1));
            if entry.others > 0 {
                add("others", entry.others);
            }
        }
        list
    }
}

impl Recording {
    /// The JVM did not take a class as we wove it, or could not even link it: it is as it was.
    pub(super) fn not_taken(&self, all: &Classes<'_>, class: jclass, why: &str) {
        let Some(name) = all.name(class) else { return };
        let loader = all.loader(class);
        let mut registry = locked(&REGISTRY);
        let Some(registry) = registry.as_mut() else { return };
        if let Some(methods) = registry.unweave(loader, &name, self.memory.session) {
            self.classes.fetch_sub(1, Relaxed);
            self.methods.fetch_sub(methods, Relaxed);
        }
        self.refuse(&dotted(&name), why);
    }

    pub(super) fn refuse(&self, what: &str, reason: &str) {
        locked(&self.refused).add(what, reason);
    }

    pub(super) fn refuse_method(&self, class: &str, bytes: &[u8], index: usize, reason: &str) {
        let parsed = ClassFile::parse(bytes).ok();
        let name = parsed
            .as_ref()
            .and_then(|parsed| parsed.pool.utf8(parsed.methods.get(index)?.name_index).ok())
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        self.refuse(&format!("{}.{name}", dotted(class)), reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_bounded() {
        let mut refusals = Refusals::default();
        for round in 0..2 {
            for number in 0..40 {
                refusals.add(&format!("a.B.m{number}"), "too large");
            }
            refusals.add(&format!("a.C{round}"), "odd");
        }
        let list = refusals.list();
        assert_eq!(list.len(), 2 + NAMED + 1);
        assert_eq!((list[0].what.as_str(), list[0].count), ("a.C0", 1));
        assert_eq!((list[32].what.as_str(), list[32].count), ("others", 20));
    }

    #[test]
    fn reasons_are_bounded() {
        let mut refusals = Refusals::default();
        for number in 0..1000 {
            refusals.add("a.B", &format!("at offset {number}"));
        }
        assert_eq!(refusals.list().len(), REASONS + 1);
    }
}
