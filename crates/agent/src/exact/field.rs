//! Gives `java.lang.Thread` fields of ours, where a thread's current node lives.
//!
//! That is twice as quick as looking a thread up, and possible only while the JVM starts: the class
//! must be changed as it is loaded for the first time. It is done by a JVMTI environment of its
//! own, which cannot retransform: with one that can, HotSpot would compare later versions of Thread
//! with the original, and no other agent could retransform it any more. The fields stay for the
//! JVM's life. The price is that the JVM does not use its archive of prepared classes.

use crate::events::class_hook::{self, ClassHook, LoadedClass};
use crate::jvm::Vm;
use jvmti_bindings::sys::jvmti;
use std::ffi::CStr;
use tare_classfile::ClassFile;

const THREAD: &CStr = c"java/lang/Thread";
/// Names and types: the current node, and what is left until the next sample of bytecodes.
const FIELDS: [(&str, &str); 2] = [("tare$cur", "J"), ("tare$due", "I")];
const SYNTHETIC: u16 = 0x1000;
const TRANSIENT: u16 = 0x0080;

/// Asks for the field. Called before the JVM is up; without it threads are looked up.
pub fn prepare(vm: Vm) {
    class_hook::install_early::<AddFields>(vm);
}

enum AddFields {}

impl ClassHook for AddFields {
    fn changed(class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        if class.name != THREAD {
            return None;
        }
        // Nothing more to see; what is left of this environment costs nothing.
        let _ = class.jvmti.event(jvmti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, false);
        with_fields(class.bytes)
    }
}

/// The class with our fields, `transient synthetic`, behind its own.
fn with_fields(bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let count = class.pool.count();
    let pool_end = offset_in(bytes, class.pool.bytes())? + class.pool.bytes().len();
    let (first, last) = (class.fields.first()?, class.fields.last()?);
    let (count_at, fields_end) = (first.offset - 2, last.offset + last.raw.len());
    let fields = u16::try_from(class.fields.len() + FIELDS.len()).ok()?;
    let texts = FIELDS.iter().flat_map(|(name, kind)| [name, kind]);

    let mut out = bytes[..8].to_vec();
    out.extend_from_slice(&count.checked_add(2 * FIELDS.len() as u16)?.to_be_bytes());
    out.extend_from_slice(&bytes[10..pool_end]);
    for text in texts {
        out.push(1);
        out.extend_from_slice(&u16::try_from(text.len()).ok()?.to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&bytes[pool_end..count_at]);
    out.extend_from_slice(&fields.to_be_bytes());
    out.extend_from_slice(&bytes[count_at + 2..fields_end]);
    for name in (count..).step_by(2).take(FIELDS.len()) {
        for number in [SYNTHETIC | TRANSIENT, name, name + 1, 0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
    out.extend_from_slice(&bytes[fields_end..]);
    Some(out)
}

fn offset_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)
}
