//! What the JVM has to allow for a session, and gets back after it.

use crate::jvm::{Failure, Jvmti};
use jvmti_bindings::sys::jvmti::jvmtiCapabilities;

pub fn take(jvmti: Jvmti) -> Result<(), Failure> {
    jvmti.add_capabilities(&capabilities(jvmti))
}

pub fn give_back(jvmti: Jvmti) {
    let _ = jvmti.relinquish_capabilities(&capabilities(jvmti));
}

fn capabilities(jvmti: Jvmti) -> jvmtiCapabilities {
    let mut set = jvmtiCapabilities::default();
    set.set_can_retransform_classes(true);
    set.set_can_generate_all_class_hook_events(true);
    set.set_can_tag_objects(true);
    set.set_can_get_constant_pool(true);
    set.set_can_get_bytecodes(true);
    set.set_can_generate_monitor_events(true);
    set.set_can_get_thread_cpu_time(true);
    // From JDK 21 on: to be told which one a carrier carries.
    let potential = jvmti.potential_capabilities();
    set.set_can_support_virtual_threads(potential.is_ok_and(|p| p.can_support_virtual_threads()));
    set
}
