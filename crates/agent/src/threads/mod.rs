//! A dump of all threads: what each does, what it waits for, and who has that.
//!
//! The look itself is Java (`runtime/java/lang/TareDump*`): the JVM dumps its platform threads in
//! one safepoint, and tells of virtual threads one by one. Here it is asked for, what only HotSpot's
//! own structures tell is added (`native`), and the text goes into memory that the front end gets.
//! What waits for whom is worked out outside. Where the JVM reaches no safepoint, `stalled` reads
//! what can be read without it.

mod light;
mod memory;
mod native;
pub mod stalled;

use crate::engines::{EngineError, Jvm};
use crate::exact::inject::{self, DUMP};
use crate::jvm::Jni;
use crate::jvm::classes::OwnClass;
use crate::shared_memory;
use native::Offsets;
use std::fs::File;
use std::sync::{Mutex, PoisonError};
use tare_protocol::ThreadsPlan;

/// Brought in once in a JVM's life, with the first dump.
static CLASS: Mutex<Option<OwnClass>> = Mutex::new(None);

/// One dump, as text in a file of its own.
pub fn dump(jvm: Jvm, plan: ThreadsPlan) -> Result<Vec<File>, EngineError> {
    let refused = |why: &str| EngineError::Refused(why.to_owned());
    let class = class(jvm.jni).map_err(refused)?;
    let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let values = [int(plan.depth.max(1)), int(plan.virtuals), int(plan.virtual_ms)];
    let text = jvm.jni.call_static_bytes(class, c"dump", values);
    let mut text = text.ok_or_else(|| {
        refused(
            "the JVM has no memory left for a dump of its threads; free some, or dump less \
                 (`--no-virtual`)",
        )
    })?;
    let handles = jvm.jni.call_static_long_array(class, c"handles").unwrap_or_default();
    let offset = |name| jvm.jni.get_static_long(class, name).and_then(|at| u64::try_from(at).ok());
    let continuation = offset(c"continuationOffset");
    let elements = offset(c"firstElement").zip(offset(c"nextElement"));
    let offsets = Offsets { id: offset(c"idOffset").unwrap_or(0), continuation, elements };
    native::append(&mut text, jvm, class, &handles, offsets);
    let file = shared_memory::text(c"tare-threads", &text).map_err(EngineError::Files)?;
    Ok(vec![file])
}

fn class(jni: Jni) -> Result<OwnClass, &'static str> {
    let mut class = CLASS.lock().unwrap_or_else(PoisonError::into_inner);
    match *class {
        Some(known) => Ok(known),
        None => Ok(*class.insert(inject::apart(jni, DUMP)?)),
    }
}
