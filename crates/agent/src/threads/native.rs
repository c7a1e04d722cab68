//! What HotSpot's own structures and the kernel add to a dump: each thread's number there, its
//! processor time, and who waits for which monitor where the JVM's dump does not tell.
//!
//! The structures are found by the exported tables and read through `/proc/self/mem`: a thread may
//! end meanwhile, and a read of memory that is gone then fails instead of faulting. What is read may
//! be of different moments; whoever concludes something from it looks again.

use crate::jvm::Jvmti;
use crate::kernel;
use crate::vm_tables::Tables;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

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

/// This process's memory, as far as it is there.
struct Memory(File);

impl Memory {
    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    fn field(&self, of: u64, offset: u64) -> Option<u64> {
        self.word(of.checked_add(offset)?)
    }
}

/// Adds to a dump what is known of these threads: pairs of a Java thread's id and HotSpot's thread.
/// Objects of threads have their id at this offset.
pub fn append(text: &mut Vec<u8>, jvmti: Jvmti, handles: &[i64], id_offset: u64) {
    let tables = Tables::read(jvmti.inside_libjvm());
    let layout = tables.ok().as_ref().and_then(Layout::new);
    let (Some(at), Ok(memory)) = (layout, File::open("/proc/self/mem")) else { return };
    let memory = Memory(memory);
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
    let owners = Owners::new(&threads, &at, &memory);
    for (id, thread) in &threads {
        let monitor = memory.field(*thread, at.pending).filter(|monitor| *monitor != 0);
        if let Some(monitor) = monitor {
            let owner = memory.field(monitor, at.owner).map_or(0, |owner| owners.id(owner));
            add(format!("\nM\t{id}\t{monitor:x}\t{owner}"));
        }
    }
    if let Some(queues) = at.queues {
        for (id, monitor, owner) in waiters(&memory, queues, at.owner, id_offset) {
            add(format!("\nM\t{id}\t{monitor:x}\t{}", owners.id(owner)));
        }
    }
}

/// Virtual threads in the queues of monitors: the id, the monitor, its owner.
fn waiters(memory: &Memory, at: Queues, owner: u64, id_offset: u64) -> Vec<(u64, u64, u64)> {
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
                Some((memory.field(object, id_offset)?, memory.field(monitor, owner)?))
            };
            found.extend(virtual_thread().map(|(id, owner)| (id, monitor, owner)));
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
    fn new(threads: &[(u64, u64)], at: &Layout, memory: &Memory) -> Self {
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
        let memory = Memory(File::open("/proc/self/mem").unwrap());
        std::hint::black_box((&monitor, &waiter, &platform, &handle, &thread));
        assert_eq!(waiters(&memory, at(&place), 0, 8), [(41, place, 9)]);
        let other = [0_u64, 0, 0, handle.as_ptr() as u64, 0x1234];
        monitor[3] = other.as_ptr() as u64;
        std::hint::black_box((&monitor, &other));
        assert_eq!(waiters(&memory, at(&place), 0, 8), []);
        assert_eq!(waiters(&memory, at(&0x10), 0, 8), [], "nothing is there");
    }
}
