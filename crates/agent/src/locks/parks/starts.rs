//! Who starts threads: told by the thread that has called `Thread.start`, with its stack, since the
//! JVM tells of a new thread only on that thread itself.

use crate::jvm::Jni;
use crate::kernel;
use crate::locks::shared::{Shared, with_session};
use jvmti_bindings::sys::jni::jobject;
use tare_arena::samples::EventHead;

/// A start under way.
pub struct Start {
    began: u64,
    /// `Thread.threadId()` of the new thread.
    id: u64,
}

/// The calling thread is about to start another one. `None` if nobody wants to know.
pub fn begin(jni: Jni, thread: jobject) -> Option<Start> {
    let mut start = None;
    with_session(|shared| {
        let (_, id) = jni.thread_numbers(shared.stream.watch.fields, thread);
        start = Some(Start { began: kernel::monotonic(), id });
    });
    start
}

/// It has started it. Calls no JNI that would run Java.
pub fn end(jni: Jni, start: &Start) {
    with_session(|shared| shared.starts(jni, start));
}

impl Shared {
    fn starts(&self, jni: Jni, start: &Start) {
        let Some(here) = self.here(jni) else { return };
        let duration = kernel::monotonic().saturating_sub(start.began);
        let (trace, java_id) = self.stack(&here, 0);
        let head = EventHead {
            kind: self.kinds.start,
            thread: here.number(),
            time: start.began,
            duration,
            java_id,
            trace,
        };
        // What finds no room is counted there.
        self.stream.ring.append_event(&head, &[start.id]);
    }
}
