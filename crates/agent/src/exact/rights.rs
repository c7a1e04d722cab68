//! What the JVM has to allow for a recording, and gets back after it.

use crate::jvm::{Failure, Jvmti};
use crate::rights::{self, Right};
use std::sync::{Mutex, PoisonError};

/// What is held: a program that is started for it takes it long before the recording begins.
static HELD: Mutex<Vec<Right>> = Mutex::new(Vec::new());

pub fn take(jvmti: Jvmti) -> Result<(), Failure> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.is_empty() {
        let wanted = wanted(jvmti);
        rights::take(jvmti, &wanted)?;
        *held = wanted;
    }
    Ok(())
}

pub fn give_back(jvmti: Jvmti) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    rights::give_back(jvmti, &std::mem::take(&mut *held));
}

/// They went with the environment that they belonged to.
pub fn forget() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn wanted(jvmti: Jvmti) -> Vec<Right> {
    let mut rights = vec![
        Right::Retransform,
        Right::AllClasses,
        Right::Tags,
        Right::ConstantPools,
        Right::Bytecodes,
        Right::Monitors,
        Right::ThreadCpuTime,
    ];
    if jvmti.potential_capabilities().is_ok_and(|p| p.can_support_virtual_threads()) {
        rights.push(Right::VirtualThreads);
    }
    rights
}
