//! Brings the probe runtime into the JVM, under a name that carries the build.

use crate::classes::OwnClass;
use crate::gate;
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::{JNIEnv, jobject};
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

// The runtime's native methods, under the names that the JVM looks for.
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

    /// The Java source and the layout agree on every number that both name.
    #[test]
    fn the_runtime_has_the_layout() {
        use tare_arena::layout::{self, header, node, page, region, tree};
        let source = include_str!("../../../../runtime/java/lang/TareProbe.java");
        let constant = |name: &str| {
            let at = source.find(&format!(" {name} = ")).unwrap_or_else(|| panic!("no {name}"));
            let text = source[at..].split(['=', ';']).nth(1).unwrap().trim();
            text.parse::<i64>().unwrap_or_else(|_| panic!("{name} is {text}"))
        };
        for (name, value) in [
            ("COUNT", node::COUNT),
            ("METHOD", node::METHOD),
            ("PARENT", node::PARENT),
            ("START", node::START),
            ("TOTAL", node::TOTAL),
            ("BYTECODES", node::BYTECODES),
            ("OBJECTS", node::OBJECTS),
            ("BYTES", node::BYTES),
            ("H_HOLDS", header::HOLDS),
            ("HOLDS_TIMES", layout::Holds::Times.code() as usize),
            ("HOLDS_BYTECODES", layout::Holds::Bytecodes.code() as usize),
            ("HOLDS_ALLOCATIONS", layout::Holds::Allocations.code() as usize),
            ("H_BUMP", header::BUMP),
            ("H_LIMIT", header::LIMIT),
            ("H_RESERVE", header::RESERVE),
            ("H_REFUSED", header::REFUSED),
            ("H_LOST", header::LOST),
            ("H_NODE", header::NODE),
            ("H_LOCK", header::LOCK),
            ("H_POOL", header::POOL),
            ("H_ROOTS", header::ROOTS),
            ("H_DEPTH", header::DEPTH),
            ("H_CPU", header::CPU),
            ("H_FOLD", header::FOLD),
            ("H_FULL", header::FULL),
            ("H_PAUSED", header::PAUSED),
            ("H_PRUNING", header::PRUNING),
            ("H_PRUNED", header::PRUNED),
            ("H_DROPPED", header::DROPPED),
            ("T_ADJUST", tree::ADJUST),
            ("PAGE", layout::PAGE),
            ("P_KIND", page::KIND),
            ("P_TREE", page::TREE),
            ("P_PAGES", page::PAGES),
            ("P_HEAD", page::HEAD),
            ("T_THREAD", tree::THREAD),
            ("T_FLAGS", tree::FLAGS),
            ("T_NAME", tree::NAME),
            ("T_NAME_MAX", tree::NAME_MAX),
            ("T_REGIONS", tree::REGIONS),
            ("R_REGION", region::REGION),
            ("R_COUNT", region::COUNT),
            ("R_TOTAL", region::TOTAL),
            ("R_MIN", region::MIN),
            ("R_MAX", region::MAX),
            ("R_TIMES", region::TIMES),
            ("R_BYTES", region::BYTES),
            ("R_SHIFT", region::SHIFT as usize),
            ("TASKS", super::super::follow::TASKS),
            ("KIND_REGION", page::KIND_REGION as usize),
            ("T_ROOT", tree::ROOT),
            ("REVEALED_ENTRIES", super::super::subgraph::REVEALED_ENTRIES),
            ("KIND_TREE", page::KIND_TREE as usize),
            ("KIND_NODES", page::KIND_NODES as usize),
            ("KIND_TABLE", page::KIND_TABLE as usize),
            ("FLAG_LEAVES", tree::FLAG_LEAVES as usize),
            ("FLAG_VIRTUAL", tree::FLAG_VIRTUAL as usize),
            ("FLAG_SHARED", tree::FLAG_SHARED as usize),
        ] {
            assert_eq!(constant(name), value as i64, "{name}");
        }
        assert_eq!(constant("ROOT"), i64::from(layout::ROOT));
        assert_eq!(constant("REST"), i64::from(layout::REST));
        assert_eq!(constant("CALIBRATION"), i64::from(layout::CALIBRATION));
        assert_eq!(constant("FREED"), i64::from(layout::FREED));
        assert_eq!(constant("FROM_THREAD"), i64::from(layout::FROM_THREAD));
        assert_eq!(constant("FROM_TASK"), i64::from(layout::FROM_TASK));
        assert_eq!(constant("TABLE"), layout::threads::AT as i64);
        assert_eq!(constant("TABLE_ENTRIES"), layout::threads::ENTRIES as i64);
    }

    #[test]
    fn the_runtime_gets_its_new_name() {
        let name = runtime_name();
        let bytes = renamed(COMPILED, COMPILED_NAME.as_bytes(), name.as_bytes()).unwrap();
        let class = ClassFile::parse(&bytes).unwrap();
        assert_eq!(class.name().unwrap(), name.as_bytes());
    }
}
