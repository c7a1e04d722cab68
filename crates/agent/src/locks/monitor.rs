//! Waits for monitors, as the JVM tells of them: to enter one that somebody has, and in
//! `Object.wait`.
//!
//! All of it runs on the thread that waits, in native code: the JVM's calls that are made here run
//! no Java and wait for nobody. What takes time is done while the thread does not hold the monitor:
//! before it waits to enter, and after it was woken. A virtual thread that leaves its carrier while it
//! waits has no frames on a stack when it is woken; its stack is taken before.

use super::parks;
use super::shared::{Here, Shared, with_session};
use super::waits::{Owner, Source, Wait};
use crate::events::Subscriber;
use crate::jvm::Jni;
use crate::kernel;
use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti::{self, jvmtiEvent};
use std::sync::atomic::Ordering::*;
use tare_protocol::LockWait;

pub const EVENTS: [jvmtiEvent; 4] = [
    jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
    jvmti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    jvmti::JVMTI_EVENT_MONITOR_WAIT,
    jvmti::JVMTI_EVENT_MONITOR_WAITED,
];

pub static SUBSCRIBER: Subscriber = Subscriber {
    monitor_contended_enter: |jni, object| with_session(|shared| shared.enters(jni, object)),
    monitor_contended_entered: |jni, _| with_session(|shared| shared.entered(jni)),
    monitor_wait: |jni, object| with_session(|shared| shared.waits(jni, object)),
    monitor_waited: |jni, object| with_session(|shared| shared.waited(jni, object)),
    virtual_thread_unmount: parks::mounts::unmounts,
    virtual_thread_mount: parks::mounts::mounts,
    ..Subscriber::NONE
};

/// What is known of a wait at its beginning.
fn begun(kind: LockWait, here: &Here) -> Wait {
    Wait {
        kind,
        began: kernel::monotonic(),
        thread: here.number(),
        java_id: 0,
        trace: 0,
        class: 0,
        instance: 0,
        owner: Owner::default(),
        queue: 0,
    }
}

impl Shared {
    /// The thread is about to wait for a monitor that somebody has.
    fn enters(&self, jni: Jni, object: jobject) {
        let Some(here) = self.here(jni) else { return };
        let mut wait = begun(LockWait::MonitorEnter, &here);
        // First of all: the owner is on its way.
        (wait.owner, wait.queue) = self.owners.of_pending(self, &here, object);
        self.look(jni, &here, object, &mut wait);
        if !self.waits.begin(Source::Enter, here.id, &wait) {
            self.untimed(wait.kind);
        }
    }

    /// It has the monitor. Whoever else wants it waits for what is done here.
    fn entered(&self, jni: Jni) {
        let now = kernel::monotonic();
        let here = self.found(jni, kernel::gettid());
        match self.waits.end(Source::Enter, here.id) {
            Some(wait) => self.ended(&wait, now),
            None => self.unbegun(here.tid),
        }
    }

    /// The thread begins `Object.wait`. It still has the monitor, so this only looks at the clock if
    /// that is enough.
    fn waits(&self, jni: Jni, object: jobject) {
        let Some(here) = self.here(jni) else { return };
        let mut wait = begun(LockWait::MonitorWait, &here);
        if here.may_leave_its_carrier(self) {
            self.look(jni, &here, object, &mut wait);
        }
        if !self.waits.begin(Source::Wait, here.id, &wait) {
            self.untimed(wait.kind);
        }
    }

    fn waited(&self, jni: Jni, object: jobject) {
        let now = kernel::monotonic();
        let here = self.found(jni, kernel::gettid());
        let Some(mut wait) = self.waits.end(Source::Wait, here.id) else {
            return self.unbegun(here.tid);
        };
        let is_long = now.saturating_sub(wait.began) >= self.threshold.load(Relaxed);
        if is_long && wait.trace == 0 {
            self.look(jni, &here, object, &mut wait);
        }
        self.ended(&wait, now);
    }

    /// What the calling thread waits for, and where.
    fn look(&self, jni: Jni, here: &Here, object: jobject, wait: &mut Wait) {
        (wait.class, wait.instance) = self.object(jni, object);
        (wait.trace, wait.java_id) = self.stack(here, wait.class);
    }
}
