//! The stream for an engine that needs no more of it than stacks and threads: the one that is open,
//! or a new one.

use super::Stream;
use crate::engines::Jvm;
use crate::jvm::Failure;
use crate::stacks::{Exported, Stacks, StacksError};
use crate::vm_tables::Missing;
use std::fs::File;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::{fmt, io};

/// Frames of a stack that can be asked for.
const DEPTHS: RangeInclusive<u32> = 16..=8192;

/// Why there is no stream.
#[derive(Debug)]
pub enum OpenError {
    /// This JVM does not say where something is.
    Unknown(String),
    Signal(io::Error),
    Memory(io::Error),
    Jvmti(Failure),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unknown(what) => {
                write!(f, "this JVM does not tell where to find {what}, so stacks cannot be walked")
            }
            OpenError::Signal(e) => write!(f, "no signal handler can be installed: {e}"),
            OpenError::Memory(e) => write!(f, "no memory for what is to be recorded: {e}"),
            OpenError::Jvmti(failure) => write!(f, "{failure}"),
        }
    }
}

impl From<StacksError> for OpenError {
    fn from(error: StacksError) -> Self {
        match error {
            StacksError::Guard(e) => OpenError::Signal(e),
            StacksError::Memory(e) => OpenError::Memory(e),
        }
    }
}

/// With descriptors for the front end, unless it has them already. Whoever has the stream leaves it.
pub fn join_or_open(
    jvm: Jvm,
    depth: u32,
    memory: u64,
) -> Result<(Arc<Stream>, Vec<File>), OpenError> {
    let Jvm { jvmti, jni, .. } = jvm;
    if let Some(stream) = super::join() {
        return Ok((stream, Vec::new()));
    }
    let exported = Exported::read(jvmti);
    if let Some(Missing(what)) = exported.missing() {
        return Err(OpenError::Unknown(what.clone()));
    }
    let fields = jni.thread_fields();
    let fields = fields.ok_or_else(|| OpenError::Unknown("the fields of Thread".into()))?;
    let depth = depth.clamp(*DEPTHS.start(), *DEPTHS.end()) as usize;
    let stacks = Stacks::new(exported, jvmti, jni, fields, depth, false)?;
    let stream = Stream::new(stacks, jvmti, jni, fields, memory);
    let stream = Arc::new(stream.map_err(OpenError::Memory)?);
    let files = stream.files().map_err(OpenError::Memory)?;
    if let Err(failure) = stream.open(jvmti, jni) {
        stream.close(jvmti);
        stream.end(jvmti, jni);
        return Err(OpenError::Jvmti(failure));
    }
    // Nothing comes by the clock: there is no interval in time.
    stream.take_threads(jvmti, jni, 0);
    Ok((stream, files.into()))
}

/// The stream without an engine that had it.
pub fn leave(jvm: Jvm, stream: &Arc<Stream>) {
    stream.stamp();
    if stream.leave() {
        stream.close(jvm.jvmti);
        stream.end(jvm.jvmti, jvm.jni);
    }
}
