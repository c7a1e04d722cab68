//! Brings the probe runtime into the JVM, under a name that carries the build.

use crate::classes::OwnClass;
use crate::jvm::Jni;
use std::ffi::{CString, c_void};
use std::sync::Mutex;
use tare_classfile::ClassFile;
use tare_protocol::BUILD_ID;

/// The class as compiled, under its source's name.
const COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/TareProbe.class"));
const COMPILED_NAME: &str = "java/lang/TareProbe";

/// Defined once in a JVM's life: a JVM cannot forget a class of its own loader.
static RUNTIME: Mutex<Option<OwnClass>> = Mutex::new(None);

/// The name by which woven code calls the runtime.
pub fn runtime_name() -> String {
    format!("{COMPILED_NAME}_{BUILD_ID}")
}

/// The runtime's class, brought in if it is not there yet.
pub fn runtime(jni: Jni) -> Result<OwnClass, &'static str> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(class) = *runtime {
        return Ok(class);
    }
    let name = runtime_name();
    let bytes = renamed(COMPILED, COMPILED_NAME.as_bytes(), name.as_bytes())
        .ok_or("the probe runtime is not a class file")?;
    let c_name = CString::new(name).map_err(|_| "the probe runtime has no usable name")?;
    let class = jni
        .frame(|| jni.define(&c_name, &bytes))
        .flatten()
        .ok_or("the JVM does not take the probe runtime")?;
    *runtime = Some(class);
    Ok(class)
}

// The runtime's one native method, `ticks`, under the name that the JVM looks for.
include!(concat!(env!("OUT_DIR"), "/export.rs"));

/// The class with every mention of one name replaced: in the constant pool a class's own name is
/// one text that everything else points to.
fn renamed(bytes: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let wanted = [&[1_u8][..], &u16::try_from(from.len()).ok()?.to_be_bytes(), from].concat();
    let pool = class.pool.bytes();
    let start = pool.as_ptr() as usize - bytes.as_ptr() as usize;
    let mut at = None;
    for (index, _) in class.pool.iter() {
        if class.pool.tag(index) == Some(1) && class.pool.utf8(index).ok()? == from {
            let text = class.pool.utf8(index).ok()?;
            at = Some(text.as_ptr() as usize - bytes.as_ptr() as usize - 3);
        }
    }
    let at = at.filter(|&at| at >= start && bytes[at..].starts_with(&wanted))?;
    let mut out = bytes[..at].to_vec();
    out.push(1);
    out.extend_from_slice(&u16::try_from(to.len()).ok()?.to_be_bytes());
    out.extend_from_slice(to);
    out.extend_from_slice(&bytes[at + wanted.len()..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_gets_its_new_name() {
        let name = runtime_name();
        let bytes = renamed(COMPILED, COMPILED_NAME.as_bytes(), name.as_bytes()).unwrap();
        let class = ClassFile::parse(&bytes).unwrap();
        assert_eq!(class.name().unwrap(), name.as_bytes());
    }
}
