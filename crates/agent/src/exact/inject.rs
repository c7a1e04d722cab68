//! Brings the probe runtime into the JVM, under a name that carries the build.

use crate::gate;
use crate::jvm::Jni;
use crate::jvm::classes::OwnClass;
use jvmti_bindings::sys::jni::{JNIEnv, jobject};
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
    Regions,
    Tasks,
    Discovery,
    Calibration,
    Trace,
}

const PARTS: [Part; 12] = [
    Part::Probe,
    Part::Threads,
    Part::Clock,
    Part::Bytecodes,
    Part::Sampling,
    Part::Agents,
    Part::Allocations,
    Part::Regions,
    Part::Tasks,
    Part::Discovery,
    Part::Calibration,
    Part::Trace,
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
            Part::Regions => "java/lang/TareRegions",
            Part::Tasks => "java/lang/TareTasks",
            Part::Discovery => "java/lang/TareDiscovery",
            Part::Calibration => "java/lang/TareCalibration",
            Part::Trace => "java/lang/TareTrace",
        }
    }

    /// The name by which woven code calls it.
    pub fn name(self) -> String {
        named(self.compiled_name())
    }
}

fn named(compiled: &str) -> String {
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
    for (name, bytes) in CLASSES {
        classes.push((*name, define(jni, name, bytes)?));
    }
    // All are there, so all can be initialised, before a probe does it in the middle of the program.
    classes.iter().for_each(|(_, class)| jni.initialise(*class));
    let of = |part: &Part| classes.iter().find(|(name, _)| *name == part.compiled_name());
    let parts: Vec<OwnClass> = PARTS.iter().filter_map(of).map(|(_, class)| *class).collect();
    let parts = parts.try_into().map_err(|_| "the probe runtime is not complete")?;
    Ok(*runtime.insert(Runtime(parts)))
}

fn define(jni: Jni, name: &str, bytes: &[u8]) -> Result<OwnClass, &'static str> {
    let bytes = renamed(bytes).ok_or("the probe runtime is not made of class files")?;
    let name = CString::new(named(name)).map_err(|_| "the probe runtime has no usable name")?;
    jni.frame(|| jni.define(&name, &bytes))
        .flatten()
        .ok_or("the JVM does not take the probe runtime")
}

// The runtime's native methods, under the names that the JVM looks for.
include!(concat!(env!("OUT_DIR"), "/export.rs"));

/// A class of the runtime with the build in its name and in those of the others that it mentions: in
/// the constant pool the name of a class is one text that everything else points to.
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

    /// The Java source and the layout agree on every number that both name.
    #[test]
    fn the_runtime_has_the_layout() {
        use tare_arena::layout::{self, header, node, page, record, region, ring, tails, tree};
        let source = [
            include_str!("../../../../runtime/java/lang/TareLayout.java"),
            include_str!("../../../../runtime/java/lang/TareAgents.java"),
            include_str!("../../../../runtime/java/lang/TareTasks.java"),
            include_str!("../../../../runtime/java/lang/TareDiscovery.java"),
        ]
        .concat();
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
            ("CALLING", node::CALLING),
            ("BYTECODES", node::BYTECODES),
            ("OBJECTS", node::OBJECTS),
            ("BYTES", node::BYTES),
            ("H_HOLDS", header::HOLDS),
            ("HOLDS_TIMES", layout::Holds::Times.code() as usize),
            ("HOLDS_BYTECODES", layout::Holds::Bytecodes.code() as usize),
            ("HOLDS_ALLOCATIONS", layout::Holds::Allocations.code() as usize),
            ("HOLDS_TRACE", layout::Holds::Trace.code() as usize),
            ("H_RING", header::RING),
            ("KIND_RING", page::KIND_RING as usize),
            ("G_SIZE", ring::SIZE),
            ("G_DEPTH", ring::DEPTH),
            ("G_HEAD", ring::HEAD),
            ("G_LIMIT", ring::LIMIT),
            ("G_GAP_SINCE", ring::GAP_SINCE),
            ("G_GAP_EVENTS", ring::GAP_EVENTS),
            ("G_GAP_DEPTH", ring::GAP_DEPTH),
            ("G_DROPPED", ring::DROPPED),
            ("G_MASK", ring::MASK),
            ("TAILS_AT_BIT", tails::AT_BIT as usize),
            ("TAIL_SHIFT", tails::SHIFT as usize),
            ("RECORD", ring::RECORD),
            ("RING_LEAST", ring::LEAST),
            ("ENTRY", record::ENTRY.into()),
            ("EXIT", record::EXIT.into()),
            ("THROWN", record::THROWN.into()),
            ("CAUGHT", record::CAUGHT.into()),
            ("GAP", record::GAP.into()),
            ("THREAD", record::THREAD.into()),
            ("NAME_PART", record::NAME.into()),
            ("HELD", record::HELD.into()),
            ("UTF16", record::UTF16 as usize),
            ("VIRTUAL_THREAD", record::VIRTUAL as usize),
            ("HOLDS_SAMPLES", layout::Holds::Samples.code() as usize),
            ("H_WAIT", header::WAIT),
            ("G_WAITED", ring::WAITED),
            ("H_EVERY", header::EVERY),
            ("H_RANDOM", header::RANDOM),
            ("H_SEED", header::SEED),
            ("KIND_STACK", page::KIND_STACK as usize),
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
            ("H_NOTED", header::NOTED),
            ("H_TOLD", header::TOLD),
            ("RING_SLOTS", super::super::agents::RING_SLOTS),
            ("RING_STATE", 8 * super::super::agents::STATE),
            ("RING_ORDER", 8 * super::super::agents::ORDER),
            ("RING_CALLS", 8 * super::super::agents::CALLS),
            ("RING_FIRST", 8 * super::super::agents::FIRST_SLOT),
            ("STATE_LOADING", super::super::agents::LOADING as usize),
            ("STATE_OVER", super::super::agents::OVER as usize),
            ("ORDER_DRAIN", super::super::agents::DRAIN as usize),
            ("ORDER_END", super::super::agents::END as usize),
            ("ORDER_LEAVE", super::super::agents::LEAVE as usize),
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
        assert_eq!(constant("TYPES"), i64::from(layout::TYPES));
        assert_eq!(constant("FREED"), i64::from(layout::FREED));
        assert_eq!(constant("FROM_THREAD"), i64::from(layout::FROM_THREAD));
        assert_eq!(constant("FROM_TASK"), i64::from(layout::FROM_TASK));
        assert_eq!(constant("TABLE"), layout::threads::AT as i64);
        assert_eq!(constant("TABLE_ENTRIES"), layout::threads::ENTRIES as i64);
    }

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
