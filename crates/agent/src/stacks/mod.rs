//! Stacks of this process: from the registers of a thread to its frames, native and Java, by what
//! HotSpot exports about itself.
//!
//! [`Stacks`] is made once, by whoever needs it; taking a stack then allocates nothing and takes no
//! lock, so signal handlers can. A callback of the JVM gives no registers: the walk begins at the
//! last Java frame, of which HotSpot keeps a note. Nothing here knows who asks, nor where frames go
//! (`stream`).

mod buffers;
pub mod chunk_layout;
#[cfg(test)]
mod chunk_tests;
mod chunks;
mod code;
pub mod fault_guard;
pub mod frames;
pub mod hotspot;
pub mod ids;
mod kernel_frames;
mod memo;
pub mod memory;
mod methods;
pub mod native;
pub mod others;
mod scopes;
pub mod take;
mod virtual_threads;
pub mod walk;
#[cfg(test)]
mod walk_tests;

use crate::jvm::threads::ThreadFields;
use crate::jvm::{Jni, Jvmti};
use crate::vm_tables::{Missing, Tables};
use buffers::Buffers;
use chunk_layout::Chunks;
use hotspot::Layout;
use methods::IdLayout;
use std::io;
use virtual_threads::VirtualIds;

/// Where this JVM keeps what a walk reads, and memory to walk in.
pub struct Stacks {
    pub buffers: Buffers,
    layout: Layout,
    /// Whether the layout is this JVM's. Without one, no Java frame is found.
    walkable: bool,
    id_layout: IdLayout,
    virtual_ids: VirtualIds,
    chunks: Chunks,
    /// Whether native frames are wanted.
    native: bool,
}

/// What HotSpot's tables say, or what they lack.
pub struct Exported {
    tables: Result<Tables, Missing>,
    layout: Result<Layout, Missing>,
}

/// Why stacks cannot be taken at all.
#[derive(Debug)]
pub enum StacksError {
    Guard(io::Error),
    Memory(io::Error),
}

impl Exported {
    pub fn read(jvmti: Jvmti) -> Self {
        let version = jvmti.java_version();
        let major = version.and_then(|v| v.split('.').next()?.parse().ok()).unwrap_or(0);
        let tables = Tables::read(jvmti.inside_libjvm());
        let layout = match &tables {
            Ok(tables) => Layout::new(tables, major),
            Err(missing) => Err(Missing(missing.0.clone())),
        };
        Exported { tables, layout }
    }

    /// What this JVM does not tell, if stacks cannot be walked for it.
    pub fn missing(&self) -> Option<&Missing> {
        self.layout.as_ref().err()
    }
}

impl Stacks {
    /// For stacks of at most `depth` frames. Puts the fault guard in; others may put handlers over
    /// it, so whoever keeps the value calls [`fault_guard::install`] again from time to time.
    pub fn new(
        exported: Exported,
        jvmti: Jvmti,
        jni: Jni,
        fields: ThreadFields,
        depth: usize,
        native: bool,
    ) -> Result<Self, StacksError> {
        fault_guard::learn_code()
            .and_then(|()| fault_guard::install())
            .map_err(StacksError::Guard)?;
        let stacks = Stacks {
            buffers: Buffers::new(depth).map_err(StacksError::Memory)?,
            walkable: exported.layout.is_ok(),
            layout: exported.layout.unwrap_or_default(),
            id_layout: IdLayout::default(),
            virtual_ids: VirtualIds::default(),
            chunks: Chunks::default(),
            native,
        };
        if let (true, Ok(tables)) = (stacks.walkable, &exported.tables) {
            let (layout, object) = (&stacks.layout, jni.ids_of_object(jvmti));
            stacks.id_layout.learn(tables, layout, &object, |at| stacks.peek(at));
            if layout.thread_owner_id.is_none() {
                stacks.virtual_ids.learn(tables, jni, fields, |at| stacks.peek(at));
            }
            if stacks.id_layout.rules().slots {
                stacks.chunks.learn(tables, jni, |at| stacks.peek(at));
            }
        }
        Ok(stacks)
    }

    /// Whether stacks can be walked here; else only the JVM itself can take them.
    pub fn are_walkable(&self) -> bool {
        self.walkable
    }

    /// The operating system's number of one of HotSpot's threads. The thread may end meanwhile,
    /// so its memory is read under a guard.
    pub fn tid_of(&self, thread: u64) -> Option<u32> {
        if !self.walkable || thread == 0 {
            return None;
        }
        let os = self.peek(thread + self.layout.thread_os)?;
        let tid = self.peek(os.checked_add(self.layout.os_id)?)? as u32;
        (tid != 0).then_some(tid)
    }
}
