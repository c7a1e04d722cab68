//! Brings the probe runtime into the JVM, under a name that carries the build.

use crate::gate;
use crate::jvm::Jni;
use crate::jvm::classes::OwnClass;
use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use std::ffi::{CString, c_void};
use std::ops::Index;
use std::sync::Mutex;
use tare_classfile::ClassFile;
use tare_protocol::BUILD_ID;

// The classes as compiled, under their sources' names: `CLASSES: &[(name, bytes)]`.
include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// The classes of the runtime that woven code or the agent calls; there are more.
#[derive(Clone, Copy)]
pub enum Part {
    Probe,
    Threads,
    Clock,
    Bytecodes,
    Sampling,
    Agents,
    Allocations,
    Sites,
    Watch,
    Regions,
    Tasks,
    Discovery,
    Calibration,
    Trace,
    Some,
    Followed,
}

const PARTS: [Part; 16] = [
    Part::Probe,
    Part::Threads,
    Part::Clock,
    Part::Bytecodes,
    Part::Sampling,
    Part::Agents,
    Part::Allocations,
    Part::Sites,
    Part::Watch,
    Part::Regions,
    Part::Tasks,
    Part::Discovery,
    Part::Calibration,
    Part::Trace,
    Part::Some,
    Part::Followed,
];

impl Part {
    fn compiled_name(self) -> &'static str {
        match self {
            Part::Probe => "java/lang/TareProbe",
            Part::Threads => "java/lang/TareThreads",
            Part::Clock => "java/lang/TareClock",
            Part::Bytecodes => "java/lang/TareBytecodes",
            Part::Agents => "java/lang/TareAgents",
            Part::Sampling => "java/lang/TareSampling",
            Part::Allocations => "java/lang/TareAllocations",
            Part::Sites => "java/lang/TareSites",
            Part::Watch => "java/lang/TareWatch",
            Part::Regions => "java/lang/TareRegions",
            Part::Tasks => "java/lang/TareTasks",
            Part::Discovery => "java/lang/TareDiscovery",
            Part::Calibration => "java/lang/TareCalibration",
            Part::Trace => "java/lang/TareTrace",
            Part::Some => "java/lang/TareSome",
            Part::Followed => "java/lang/TareFollowed",
        }
    }

    /// The name by which woven code calls it.
    pub fn name(self) -> String {
        named(self.compiled_name())
    }
}

/// The name by which woven code calls a class.
pub fn named(compiled: &str) -> String {
    format!("{compiled}_{BUILD_ID}")
}

/// The runtime in a JVM.
#[derive(Clone, Copy)]
pub struct Runtime([OwnClass; PARTS.len()]);

impl Index<Part> for Runtime {
    type Output = OwnClass;

    fn index(&self, part: Part) -> &OwnClass {
        &self.0[part as usize]
    }
}

/// Defined once in a JVM's life: a JVM cannot forget a class of its own loader.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime, brought in if it is not there yet.
pub fn runtime(jni: Jni) -> Result<Runtime, &'static str> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = *runtime {
        return Ok(known);
    }
    let mut classes = Vec::with_capacity(CLASSES.len());
    let is_apart = |name: &str| [DUMP, PARKS, HOOKS].iter().any(|apart| name.starts_with(apart));
    for (name, bytes) in CLASSES.iter().filter(|(name, _)| !is_apart(name)) {
        classes.push((*name, define(jni, name, bytes)?));
    }
    // All are there, so all can be initialised, before a probe does it in the middle of the
    // program.
    classes.iter().for_each(|(_, class)| jni.initialise(*class));
    let of = |part: &Part| classes.iter().find(|(name, _)| *name == part.compiled_name());
    let parts: Vec<OwnClass> = PARTS.iter().filter_map(of).map(|(_, class)| *class).collect();
    let parts = parts.try_into().map_err(|_| "the probe runtime is not complete")?;
    Ok(*runtime.insert(Runtime(parts)))
}

/// How the names of the classes begin that dump threads. Nothing woven calls them, so they come
/// only when they are asked for.
pub const DUMP: &str = "java/lang/TareDump";

/// The same for those that look at what threads park for; only recordings of locks need them.
pub const PARKS: &str = "java/lang/TareParks";

/// And for those of hooks.
pub const HOOKS: &str = "java/lang/TareHooks";

/// Brings in the classes whose names begin so, and returns the one that is named so. To be called
/// once: a class cannot be defined a second time.
pub fn apart(jni: Jni, names: &str) -> Result<OwnClass, &'static str> {
    let mut main = None;
    for (name, bytes) in CLASSES.iter().filter(|(name, _)| name.starts_with(names)) {
        let class = define(jni, name, bytes)?;
        main = main.or((*name == names).then_some(class));
    }
    main.ok_or("the probe runtime is not complete")
}

fn define(jni: Jni, name: &str, bytes: &[u8]) -> Result<OwnClass, &'static str> {
    let bytes = renamed(bytes).ok_or("the probe runtime is not made of class files")?;
    let name = CString::new(named(name)).map_err(|_| "the probe runtime has no usable name")?;
    jni.frame(|| jni.define(&name, &bytes)).flatten().ok_or(
        "the JVM does not take the probe runtime; if this agent was loaded before from another \
             file, that file's copy keeps it: restart the program",
    )
}

// The runtime's native methods, under the names that the JVM looks for.
include!(concat!(env!("OUT_DIR"), "/export.rs"));

/// A class of the runtime with the build in its name and in those of the others that it mentions:
/// in the constant pool the name of a class is one text that everything else points to.
fn renamed(bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let mut out = Vec::with_capacity(bytes.len() + 256);
    let mut copied = 0;
    for (index, _) in class.pool.iter() {
        if class.pool.tag(index) != Some(UTF8) {
            continue;
        }
        let text = class.pool.utf8(index).ok()?;
        let Some((name, _)) = CLASSES.iter().find(|(name, _)| name.as_bytes() == text) else {
            continue;
        };
        let at = text.as_ptr() as usize - bytes.as_ptr() as usize;
        let name = named(name);
        // Before the text is its length, in two bytes.
        out.extend_from_slice(bytes.get(copied..at.checked_sub(2)?)?);
        out.extend_from_slice(&u16::try_from(name.len()).ok()?.to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        copied = at + text.len();
    }
    out.extend_from_slice(bytes.get(copied..)?);
    Some(out)
}

/// The tag of a text in the constant pool.
const UTF8: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing in a class leads to one of another build, and every part is there.
    #[test]
    fn the_runtime_gets_its_new_names() {
        for (name, bytes) in CLASSES {
            let bytes = renamed(bytes).unwrap();
            let class = ClassFile::parse(&bytes).unwrap();
            assert_eq!(class.name().unwrap(), named(name).as_bytes());
            for (index, _) in class.pool.iter().filter(|(i, _)| class.pool.tag(*i) == Some(UTF8)) {
                let text = String::from_utf8_lossy(class.pool.utf8(index).unwrap());
                let ours = text.contains("java/lang/Tare");
                assert!(!ours || text.ends_with(BUILD_ID), "{name} mentions {text}");
            }
        }
        for part in PARTS {
            assert!(CLASSES.iter().any(|(name, _)| *name == part.compiled_name()));
            assert!(tare_java_names::is_probe_runtime(&part.name()));
        }
    }
}
