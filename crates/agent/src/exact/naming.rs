//! What a recording calls the methods that were woven.

use super::{Engine, REGISTRY, agents, locked};
use crate::loaders;
use tare_arena::MethodName;
use tare_classfile::ClassFile;

/// A class's name as users write it.
pub fn dotted(class: &str) -> String {
    class.replace('/', ".")
}

impl Engine {
    /// Logs the names of methods, each once in a session.
    pub(super) fn log_names(
        &self,
        class: &str,
        loader: u32,
        bytes: &[u8],
        methods: &[(usize, u32)],
    ) {
        let Ok(parsed) = ClassFile::parse(bytes) else { return };
        let file = source_file(&parsed);
        let loader_class = loaders::class_name(loader);
        let session = self.memory.session;
        for &(index, id) in methods {
            let Some(member) = parsed.methods.get(index) else { continue };
            let (Ok(name), Ok(descriptor)) =
                (parsed.pool.utf8(member.name_index), parsed.pool.utf8(member.descriptor_index))
            else {
                continue;
            };
            let is_new = locked(&REGISTRY).as_mut().is_some_and(|registry| {
                registry.log(loader, class, (name, descriptor), id, session)
            });
            if !is_new {
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
            agents::note(&method);
            if self.memory.log_name(&method).is_err() {
                self.refuse(&dotted(class), "its names found no room");
            }
        }
    }
}

fn source_file(class: &ClassFile<'_>) -> String {
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
