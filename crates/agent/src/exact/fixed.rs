//! Takes chance out of the JDK, for recordings that are to be the same in every run.
//!
//! The order of `Set.of` and `Map.of` and the seeds of random number generators come from the
//! clock, in a handful of methods of java.base. Where a launch asked for it, those methods get
//! constants instead, as their classes are loaded: a call of `System.nanoTime()` has three bytes,
//! and so has the loading of a constant, so nothing else moves. As for the field of threads, a
//! JVMTI environment of its own does it, which cannot retransform.

use crate::events::class_hook::{self, ClassHook, LoadedClass};
use crate::jvm::Vm;
use std::ffi::CStr;
use tare_classfile::opcode::op;
use tare_classfile::{ClassFile, Code, Insns};

/// The classes and methods that ask a clock for a seed.
const SEEDED: [(&CStr, &[u8]); 5] = [
    (c"java/util/ImmutableCollections", b"<clinit>"),
    (c"java/util/Random", b"<init>"),
    (c"java/util/concurrent/ThreadLocalRandom", b"<clinit>"),
    (c"jdk/internal/util/random/RandomSupport", b"initialSeed"),
    (c"java/util/SplittableRandom", b"<clinit>"),
];

/// What the clocks say to them.
const TIME: u64 = 0x7461_7265_2074_6172;

const LONG: u8 = 5;

/// Begins. Called before the JVM is up.
pub fn prepare(vm: Vm) {
    class_hook::install_early::<Constants>(vm);
}

enum Constants {}

impl ClassHook for Constants {
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        if !class.loader.is_null() || class.again {
            return None;
        }
        let (_, method) = SEEDED.iter().find(|(name, _)| *name == class.name)?;
        without_clocks(class.bytes, method)
    }
}

/// The class with a constant in place of each clock that the method reads; nothing if it reads
/// none.
fn without_clocks(bytes: &[u8], method: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let constant = class.pool.count();
    let mut reads = Vec::new();
    for member in &class.methods {
        if class.pool.utf8(member.name_index).ok()? != method {
            continue;
        }
        let Some(code) = member.attributes.find(&class.pool, "Code") else { continue };
        let code = Code::parse(&code).ok()?;
        for insn in Insns::from(code.code, 0) {
            let insn = insn.ok()?;
            let called = insn.constant().and_then(|index| class.pool.member(index).ok());
            let is_clock = called.is_some_and(|called| {
                called.owner == b"java/lang/System"
                    && [&b"nanoTime"[..], b"currentTimeMillis"].contains(&called.name)
            });
            if insn.opcode == op::INVOKESTATIC && is_clock {
                reads.push(code.code_offset + insn.offset as usize);
            }
        }
    }
    if reads.is_empty() {
        return None;
    }
    let pool_end =
        class.pool.bytes().as_ptr() as usize - bytes.as_ptr() as usize + class.pool.bytes().len();
    let mut out = bytes.to_vec();
    for at in reads {
        let [high, low] = constant.to_be_bytes();
        out.get_mut(at..at + 3)?.copy_from_slice(&[op::LDC2_W, high, low]);
    }
    // A long takes two places in the pool.
    out.get_mut(8..10)?.copy_from_slice(&constant.checked_add(2)?.to_be_bytes());
    out.splice(pool_end..pool_end, [LONG].into_iter().chain(TIME.to_be_bytes()));
    Some(out)
}
