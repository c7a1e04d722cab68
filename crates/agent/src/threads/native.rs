//! What HotSpot's own structures and the kernel add to a dump: each thread's number there, its
//! processor time, and who waits for which monitor where the JVM's dump does not tell.
//!
//! The structures are found by the exported tables and read through the kernel (`memory`), because a
//! thread may end meanwhile. What is read may be of different moments; whoever concludes something
//! from it looks again.

use super::light::{ANONYMOUS, InChunk, InHeap, LightLocks};
use super::memory::ByKernel;
use crate::engines::Jvm;
use crate::jvm::classes::OwnClass;
use crate::kernel;
use crate::stacks::chunk_layout::Chunks;
use crate::stacks::memory::Memory;
use crate::vm_tables::Tables;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashMap;

/// Monitors, and threads in their queues, that are looked at.
const MOST: usize = 200_000;

/// Where things are in HotSpot's threads and monitors.
struct Layout {
    os_thread: u64,
    os_id: u64,
    /// Of a thread, the monitor that it waits to enter; of that its owner.
    pending: u64,
    owner: u64,
    stack_base: u64,
    stack_size: u64,
    queues: Option<Queues>,
}

/// Since JDK 24 the owner of a monitor is the id of a Java thread, and virtual threads wait in the
/// monitor's queue without a carrier.
#[derive(Clone, Copy)]
struct Queues {
    /// The first of all monitors, and of each the next.
    first: u64,
    next: u64,
    contentions: u64,
    /// The first waiter of a monitor. HotSpot exports the field before it.
    waiter: u64,
}

/// Fields of a waiter, which HotSpot does not export. That they are these is checked for each
/// waiter: it names its monitor.
const WAITER_NEXT: u64 = 0;
const WAITER_THREAD: u64 = 16;
const WAITER_VIRTUAL: u64 = 24;
const WAITER_MONITOR: u64 = 32;

/// Owners below are nobody: none, unknown, or a monitor that is being removed.
const FIRST_ID: u64 = 3;

impl Layout {
    fn new(tables: &Tables) -> Option<Self> {
        let threads = ["JavaThread", "Thread"];
        let monitor = |name| tables.offset(&["ObjectMonitor"], name).ok();
        let queues = || {
            tables.field("JavaThread", "_monitor_owner_id")?;
            let list = tables.field("ObjectSynchronizer", "_in_use_list")?.address;
            Some(Queues {
                first: list.checked_add(tables.offset(&["MonitorList"], "_head").ok()?)?,
                next: monitor("_next_om")?,
                contentions: monitor("_contentions")?,
                waiter: monitor("_recursions")?.checked_add(8)?,
            })
        };
        Some(Layout {
            os_thread: tables.offset(&threads, "_osthread").ok()?,
            os_id: tables.offset(&["OSThread"], "_thread_id").ok()?,
            pending: tables.offset(&threads, "_current_pending_monitor").ok()?,
            owner: monitor("_owner")?,
            stack_base: tables.offset(&threads, "_stack_base").ok()?,
            stack_size: tables.offset(&threads, "_stack_size").ok()?,
            queues: queues(),
        })
    }
}

/// Where Java's objects have what is looked for: a thread its id, a virtual one its continuation;
/// an array of threads the first of them, and how far it is to the next.
#[derive(Clone, Copy)]
pub struct Offsets {
    pub id: u64,
    pub continuation: Option<u64>,
    pub elements: Option<(u64, u64)>,
}

/// Adds to a dump what is known of these threads: pairs of a Java thread's id and HotSpot's thread.
pub fn append(text: &mut Vec<u8>, jvm: Jvm, class: OwnClass, handles: &[i64], offsets: Offsets) {
    let Ok(tables) = Tables::read(jvm.jvmti.inside_libjvm()) else { return };
    let (Some(at), Ok(memory)) = (Layout::new(&tables), ByKernel::open()) else { return };
    let pairs = handles.chunks_exact(2);
    let threads: Vec<(u64, u64)> = pairs
        .map(|pair| (pair[0].cast_unsigned(), pair[1].cast_unsigned()))
        .filter(|(_, thread)| *thread != 0)
        .collect();
    let mut add = |line: String| text.extend_from_slice(line.as_bytes());
    for (id, thread) in &threads {
        let os = memory.field(*thread, at.os_thread).and_then(|os| memory.field(os, at.os_id));
        if let Some(tid) = os.map(|tid| tid as u32).filter(|tid| *tid != 0) {
            let time = kernel::clock(kernel::thread_clock(tid));
            add(format!("\nK\t{id}\t{tid}\t{time}"));
        }
    }
    let waiting =
        at.queues.map_or_else(Vec::new, |queues| waiters(&memory, queues, at.owner, offsets.id));
    let light = at.queues.and_then(|_| LightLocks::new(&tables));
    let pending = |thread: u64| {
        let monitor = memory.field(thread, at.pending).filter(|monitor| *monitor != 0)?;
        Some((monitor, memory.field(monitor, at.owner)?))
    };
    let look = |array: jobject, length: usize| {
        // Where there is no virtual thread, the classes that it takes may not have been used yet.
        if length == 0 {
            return None;
        }
        let chunks = Chunks::default();
        chunks.learn(&tables, jvm.jni, |at| memory.word(at));
        let (continuation, rules) = (offsets.continuation?, chunks.rules()?);
        let heap = InHeap { continuation, id: offsets.id, elements: offsets.elements?, rules };
        heap.all(&memory, array as u64, length)
    };
    let is_unknown = waiting.iter().any(|one| one.owner == ANONYMOUS)
        || threads.iter().filter_map(|(_, thread)| pending(*thread)).any(|(_, o)| o == ANONYMOUS);
    // They are asked for in any case: Java lets go of them then.
    let method = (c"virtuals", c"()[Ljava/lang/Thread;");
    let virtuals = jvm.jni.with_static_array(class, method, |array, length| {
        if is_unknown && light.is_some() { look(array, length) } else { None }
    });
    let virtuals: Vec<InChunk> = virtuals.unwrap_or_default();
    let owners = Owners::new(&threads, &at, &memory);
    let owner = |monitor: u64, owner: u64| match &light {
        Some(light) if owner == ANONYMOUS => light.owner(&memory, monitor, &threads, &virtuals),
        _ => owners.id(owner),
    };
    for (id, thread) in &threads {
        if let Some((monitor, was)) = pending(*thread) {
            add(format!("\nM\t{id}\t{monitor:x}\t{}", owner(monitor, was)));
        }
    }
    for Waiter { id, monitor, owner: was } in waiting {
        add(format!("\nM\t{id}\t{monitor:x}\t{}", owner(monitor, was)));
    }
}

/// A virtual thread in the queue of a monitor, and what stands there as its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiter {
    id: u64,
    monitor: u64,
    owner: u64,
}

/// Virtual threads in the queues of monitors.
fn waiters(memory: &ByKernel, at: Queues, owner: u64, id_offset: u64) -> Vec<Waiter> {
    let mut found = Vec::new();
    let mut monitor = memory.word(at.first).unwrap_or(0);
    let mut steps = 0;
    while monitor != 0 && steps < MOST {
        steps += 1;
        let contended =
            memory.field(monitor, at.contentions).is_some_and(|count| count as u32 != 0);
        let mut waiter = memory.field(monitor, at.waiter).filter(|_| contended).unwrap_or(0);
        while waiter != 0 && steps < MOST {
            steps += 1;
            if memory.field(waiter, WAITER_MONITOR) != Some(monitor) {
                break;
            }
            // A reference to the thread's object, which may move meanwhile: a wrong id is none
            // that waits.
            let virtual_thread = || {
                memory.field(waiter, WAITER_THREAD).filter(|thread| *thread == 0)?;
                let object = memory.word(memory.field(waiter, WAITER_VIRTUAL)?)?;
                let (id, owner) = (memory.field(object, id_offset)?, memory.field(monitor, owner)?);
                Some(Waiter { id, monitor, owner })
            };
            found.extend(virtual_thread());
            waiter = memory.field(waiter, WAITER_NEXT).unwrap_or(0);
        }
        monitor = memory.field(monitor, at.next).unwrap_or(0);
    }
    found
}

/// Who a monitor's owner is.
struct Owners {
    /// Whether it is the id of a Java thread.
    numbers: bool,
    /// HotSpot's threads, and where their stacks end and begin: they grow downwards.
    ids: HashMap<u64, u64>,
    stacks: Vec<(u64, u64, u64)>,
}

impl Owners {
    fn new(threads: &[(u64, u64)], at: &Layout, memory: &ByKernel) -> Self {
        let stack = |(id, thread): &(u64, u64)| {
            let base = memory.field(*thread, at.stack_base)?;
            Some((base.checked_sub(memory.field(*thread, at.stack_size)?)?, base, *id))
        };
        let mut stacks: Vec<_> = threads.iter().filter_map(stack).collect();
        stacks.sort_unstable();
        let ids = threads.iter().map(|(id, thread)| (*thread, *id)).collect();
        Owners { numbers: at.queues.is_some(), ids, stacks }
    }

    /// Its id; zero for none that is known. Up to JDK 23 it is a thread, or the place of a lock on
    /// the stack of one.
    fn id(&self, owner: u64) -> u64 {
        if self.numbers {
            return Some(owner).filter(|owner| *owner >= FIRST_ID).unwrap_or(0);
        }
        let on_stack = || {
            let next = self.stacks.partition_point(|(low, _, _)| *low <= owner);
            let (_, base, id) = self.stacks.get(next.checked_sub(1)?)?;
            (owner < *base).then_some(*id)
        };
        self.ids.get(&owner).copied().or_else(on_stack).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_thread_or_a_place_on_its_stack() {
        let ids = HashMap::from([(0x9000, 7), (0xa000, 8)]);
        let stacks = vec![(0x1000, 0x2000, 7), (0x3000, 0x4000, 8)];
        let mut owners = Owners { numbers: false, ids, stacks };
        let known = [(0x9000, 7), (0x1000, 7), (0x3fff, 8), (0x2000, 0), (0x10, 0), (1, 0)];
        for (owner, id) in known {
            assert_eq!(owners.id(owner), id, "{owner:x}");
        }
        owners.numbers = true;
        assert_eq!([0, 1, 2, 3, 77].map(|owner| owners.id(owner)), [0, 0, 0, 3, 77]);
    }

    #[test]
    fn queues_of_monitors_are_walked_as_far_as_they_make_sense() {
        // A monitor is its owner, the next, its contentions, its queue; a thread has its id at 8.
        let at = |first: &u64| Queues {
            first: std::ptr::from_ref(first) as u64,
            next: 8,
            contentions: 16,
            waiter: 24,
        };
        let thread = [0_u64, 41];
        let handle = thread.as_ptr() as u64;
        let handle = [handle];
        let mut monitor = [9_u64, 0, 1, 0];
        let place = monitor.as_ptr() as u64;
        let platform = [0_u64, 0, 0x77, 0, place];
        let waiter = [platform.as_ptr() as u64, 0, 0, handle.as_ptr() as u64, place];
        monitor[3] = waiter.as_ptr() as u64;
        let memory = ByKernel::open().unwrap();
        std::hint::black_box((&monitor, &waiter, &platform, &handle, &thread));
        let expected = Waiter { id: 41, monitor: place, owner: 9 };
        assert_eq!(waiters(&memory, at(&place), 0, 8), [expected]);
        let other = [0_u64, 0, 0, handle.as_ptr() as u64, 0x1234];
        monitor[3] = other.as_ptr() as u64;
        std::hint::black_box((&monitor, &other));
        assert_eq!(waiters(&memory, at(&place), 0, 8), []);
        assert_eq!(waiters(&memory, at(&0x10), 0, 8), [], "nothing is there");
    }
}
