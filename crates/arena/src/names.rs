//! The log of names: which method stands behind an id.
//!
//! Append-only: a committed length, then records. The agent writes a record before the id can
//! occur in a tree, so a reader that takes the trees first and the names afterwards finds every
//! name, also after the JVM was killed and for classes that were unloaded.

use std::collections::HashMap;

/// Bytes before the first record: the committed length, as a little-endian `u64`.
const HEAD: usize = 8;

/// What is known of a method, or of an allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodName {
    pub id: u32,
    /// Which class loader, as the agent numbers them; zero is the JVM's own.
    pub loader: u32,
    /// The loader's class, as `com/acme/PluginLoader`; empty for the JVM's own, or when unknown.
    pub loader_class: String,
    /// As the class file spells it: `com/acme/Orders`.
    pub class: String,
    /// Empty for an allocation site: `class` is the descriptor of what it makes, then, and
    /// `descriptor` says how sure that is, in words; the line is the site's.
    pub name: String,
    pub descriptor: String,
    /// Empty when the class does not tell.
    pub file: String,
    /// The first line of the method's code; zero when unknown.
    pub line: u32,
    /// Its access flags, as the class file has them.
    pub access: u32,
}

impl MethodName {
    /// Whether this is an allocation site, and no method.
    #[must_use]
    pub fn is_site(&self) -> bool {
        self.name.is_empty()
    }
}

/// Makes the bytes of the log; where they go is the caller's business.
#[derive(Debug)]
pub struct NameLog {
    length: u64,
}

impl Default for NameLog {
    fn default() -> Self {
        NameLog { length: HEAD as u64 }
    }
}

impl NameLog {
    /// The committed length, to be stored at the beginning after the record was written.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A record's bytes. They belong at the committed length; then comes [`NameLog::add`].
    #[must_use]
    pub fn record(method: &MethodName) -> Vec<u8> {
        let mut out = vec![0; 4];
        for number in [method.id, method.loader, method.line, method.access] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let MethodName { class, name, descriptor, file, loader_class, .. } = method;
        for text in [class, name, descriptor, file, loader_class] {
            let bytes = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
            out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        let length = out.len() as u32 - 4;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// A record was written.
    pub fn add(&mut self, record: &[u8]) {
        self.length += record.len() as u64;
    }
}

/// Every name in a log, by id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    methods: HashMap<u32, MethodName>,
}

impl Names {
    /// Reads as many whole records as there are.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let mut names = Names::default();
        let committed = bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)) as usize;
        let mut rest = bytes.get(HEAD..committed.min(bytes.len())).unwrap_or(&[]);
        while let Some((record, after)) = split_record(rest) {
            if let Some(method) = decode(record) {
                names.methods.insert(method.id, method);
            }
            rest = after;
        }
        names
    }

    #[must_use]
    pub fn get(&self, id: u32) -> Option<&MethodName> {
        self.methods.get(&id)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.methods.len()
    }

    /// How many of them are of methods.
    #[must_use]
    pub fn methods(&self) -> usize {
        self.methods.values().filter(|method| !method.is_site()).count()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty()
    }
}

fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*head) as usize)
}

fn decode(mut bytes: &[u8]) -> Option<MethodName> {
    let mut number = || {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        bytes = rest;
        Some(u32::from_le_bytes(*head))
    };
    let (id, loader, line, access) = (number()?, number()?, number()?, number()?);
    let mut text = || {
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*head)))?;
        bytes = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let (class, name, descriptor, file) = (text()?, text()?, text()?, text()?);
    let loader_class = text()?;
    Some(MethodName { id, loader, loader_class, class, name, descriptor, file, line, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(methods: &[MethodName]) -> Vec<u8> {
        let mut log = NameLog::default();
        let mut bytes = vec![0; HEAD];
        for method in methods {
            let record = NameLog::record(method);
            log.add(&record);
            bytes.extend(record);
        }
        bytes[..HEAD].copy_from_slice(&log.length().to_le_bytes());
        bytes
    }

    fn method(id: u32, name: &str) -> MethodName {
        MethodName { id, class: "a/B".into(), name: name.into(), line: 7, ..Default::default() }
    }

    #[test]
    fn names_come_back() {
        let bytes = log(&[method(1, "x"), method(900, "größe")]);
        let names = Names::read(&bytes);
        assert_eq!(names.len(), 2);
        assert_eq!(names.get(900), Some(&method(900, "größe")));
        assert_eq!(names.get(2), None);
    }

    #[test]
    fn a_log_that_ends_early_gives_what_is_whole() {
        let bytes = log(&[method(1, "x"), method(2, "y")]);
        for length in 0..bytes.len() {
            assert!(Names::read(&bytes[..length]).len() < 2, "{length}");
        }
        let mut bad = bytes;
        bad[8] = 0xff;
        assert!(Names::read(&bad).is_empty());
    }
}
