//! Module descriptors: a module whose classes call the runtime must require the runtime's module.

use tare_classfile::writer::{PoolBuilder, assemble_with};
use tare_classfile::{Attribute, ClassFile, Error, access};

/// Says what other modules looked like when this one was built; the runtime refuses others.
const HASHES: &[u8] = b"ModuleHashes";

pub fn is_module(class: &ClassFile<'_>) -> bool {
    class.access_flags & access::MODULE != 0
}

/// The same descriptor with one requirement more; `None` if it is there already.
pub fn requiring(class: &ClassFile<'_>, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some(module) = class.attributes.find_unique(&class.pool, "Module")? else {
        return Ok(None);
    };
    let mut reader = module.reader();
    // Name, flags and version, then the requirements: module, flags and version each.
    reader.skip(6)?;
    let count = reader.u2()?;
    let start = reader.position();
    for _ in 0..count {
        let of = reader.u2()?;
        reader.skip(4)?;
        if class.pool.module_name(of)? == name.as_bytes() {
            return Ok(None);
        }
    }
    let end = reader.position();
    let mut pool = PoolBuilder::new(class);
    let (Ok(required), Some(more)) = (pool.module(name.as_bytes()), count.checked_add(1)) else {
        return Ok(None);
    };
    let [before, requirements, after] = [0..start - 2, start..end, end..module.data.len()]
        .map(|at| module.data.get(at).unwrap_or(&[]));
    let mut content = before.to_vec();
    content.extend(more.to_be_bytes());
    content.extend_from_slice(requirements);
    content.extend(required.to_be_bytes());
    // Nobody wrote it.
    content.extend(access::SYNTHETIC.to_be_bytes());
    content.extend([0, 0]);
    content.extend_from_slice(after);
    let changed = |attribute: &Attribute<'_>| {
        let of = class.pool.utf8(attribute.name_index).unwrap_or_default();
        if of == b"Module" {
            let mut raw = attribute.name_index.to_be_bytes().to_vec();
            raw.extend((content.len() as u32).to_be_bytes());
            raw.extend_from_slice(&content);
            return Some(raw);
        }
        (of != HASHES).then(|| attribute.raw.to_vec())
    };
    let attributes: Vec<Vec<u8>> = class.attributes.iter().filter_map(|a| changed(&a)).collect();
    Ok(Some(assemble_with(class, &pool, &attributes)))
}
