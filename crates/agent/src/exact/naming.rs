//! What a recording calls the methods that were woven.

use super::names_file::NoRoom;
use super::{REGISTRY, Recording, agents, locked};
use crate::loaders;
use std::sync::atomic::Ordering::Relaxed;
use tare_arena::MethodName;
use tare_classfile::ClassFile;
use tare_protocol::Refusal;

/// A class's name as users write it.
pub fn dotted(class: &str) -> String {
    class.replace('/', ".")
}

/// Methods that were not woven because they, or their names, found no room.
pub struct Nameless {
    why: NoRoom,
    /// The first class of which there were some.
    first: String,
    methods: u64,
}

impl Recording {
    /// Logs the names of methods, each once in a session. A class whose names find no room is not
    /// woven.
    pub(super) fn log_names(
        &self,
        class: &str,
        loader: u32,
        bytes: &[u8],
        methods: &[(usize, u32)],
    ) -> Result<(), NoRoom> {
        let Ok(parsed) = ClassFile::parse(bytes) else { return Ok(()) };
        let file = source_file(&parsed);
        let loader_class = loaders::class_name(loader);
        for &(index, id) in methods {
            let Some(member) = parsed.methods.get(index) else { continue };
            let (Ok(name), Ok(descriptor)) =
                (parsed.pool.utf8(member.name_index), parsed.pool.utf8(member.descriptor_index))
            else {
                continue;
            };
            if !self.lacks_name(loader, class, (name, descriptor), id) {
                continue;
            }
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let method = MethodName {
                id,
                loader,
                loader_class: loader_class.clone(),
                class: class.to_owned(),
                name: text(name),
                descriptor: text(descriptor),
                file: file.clone(),
                line: first_line(&parsed, member).unwrap_or(0),
                access: u32::from(member.access_flags),
            };
            self.log_name(method, (name, descriptor))?;
        }
        Ok(())
    }

    /// Whether this session's log lacks the name of a method.
    pub(super) fn lacks_name(
        &self,
        loader: u32,
        class: &str,
        method: (&[u8], &[u8]),
        id: u32,
    ) -> bool {
        let registry = locked(&REGISTRY);
        let session = self.memory.session;
        registry.as_ref().is_some_and(|r| r.lacks_name(loader, class, method, id, session))
    }

    /// Logs a name that the session lacks, with the bytes that it is known by.
    pub(super) fn log_name(&self, method: MethodName, key: (&[u8], &[u8])) -> Result<(), NoRoom> {
        let session = self.memory.session;
        self.log_site(&method)?;
        agents::note(&method);
        if let Some(registry) = locked(&REGISTRY).as_mut() {
            registry.has_name(method.loader, &method.class, key, method.id, session);
        }
        Ok(())
    }

    /// Logs what is known by an id.
    pub(super) fn log_site(&self, site: &MethodName) -> Result<(), NoRoom> {
        let known = locked(&REGISTRY).as_ref().map_or(0, |registry| registry.size().bytes);
        self.memory.log_name(site, known.saturating_sub(self.known_before))
    }

    /// A class whose names found no room: nothing of it is kept. Its methods are counted, since
    /// classes of the same name may come from many loaders.
    pub(super) fn refuse_nameless(&self, class: &str, loader: u32, methods: usize, why: NoRoom) {
        let mut registry = locked(&REGISTRY);
        if let Some(registry) = registry.as_mut() {
            if let Some(methods) = registry.unweave(loader, class, self.memory.session) {
                self.classes.fetch_sub(1, Relaxed);
                self.methods.fetch_sub(methods, Relaxed);
            }
            registry.forget_nameless(loader, class);
        }
        drop(registry);
        self.count_nameless(class, methods, why);
    }

    /// Counts methods for which there was no room.
    pub(super) fn count_nameless(&self, class: &str, methods: usize, why: NoRoom) {
        let mut nameless = locked(&self.nameless);
        match nameless.iter_mut().find(|known| known.why == why) {
            Some(known) => known.methods += methods as u64,
            None => {
                let (first, methods) = (dotted(class), methods as u64);
                nameless.push(Nameless { why, first, methods });
            }
        }
    }

    pub(super) fn nameless_refusals(&self) -> Vec<Refusal> {
        let refusal = |nameless: &Nameless| Refusal {
            what: format!("methods, of {} first", nameless.first),
            count: nameless.methods,
            reason: nameless.why.to_string(),
        };
        locked(&self.nameless).iter().map(refusal).collect()
    }
}

pub(super) fn source_file(class: &ClassFile<'_>) -> String {
    class
        .attributes
        .find(&class.pool, "SourceFile")
        .and_then(|attribute| attribute.reader().u2().ok())
        .and_then(|index| class.pool.utf8(index).ok())
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .unwrap_or_default()
}

fn first_line(class: &ClassFile<'_>, member: &tare_classfile::Member<'_>) -> Option<u32> {
    let code = member.attributes.find(&class.pool, "Code")?;
    let code = tare_classfile::Code::parse(&code).ok()?;
    let lines = code.attributes.find(&class.pool, "LineNumberTable")?;
    let rows = lines.rows::<4>().ok()?;
    rows.iter().map(|row| u32::from(u16::from_be_bytes([row[2], row[3]]))).min()
}
