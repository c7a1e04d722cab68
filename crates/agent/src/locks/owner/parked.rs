//! Owners of locks of `java.util.concurrent`: Java says who that is, and this what it does.

use super::super::shared::{Here, Shared};
use super::super::waits::Owner;
use super::{AGAIN, Owners, RECENT, Recent, known};
use crate::kernel;
use std::sync::atomic::Ordering::*;
use tare_arena::samples::EventHead;

impl Owners {
    /// Who has a lock of `java.util.concurrent`, by what Java says: its id, and HotSpot's thread on
    /// which it runs; zero for none. `parked` is its stack if it waits itself, `waits` where the
    /// calling thread's own wait stands and as what: as long as it waits, the lock is held.
    pub fn of_parked(
        &self,
        shared: &Shared,
        here: &Here,
        lock: u64,
        (id, handle): (u64, u64),
        parked: Option<u32>,
        waits: (u64, u64),
    ) -> Owner {
        let now = kernel::monotonic();
        // No monitor is at such an address.
        let place = lock << 6 | 1;
        let recent = self.recent.get(lock as usize % RECENT);
        let mut recent = recent.and_then(|recent| recent.try_lock().ok());
        if let Some(recent) = &recent
            && (recent.place, recent.was) == (place, id)
            && now.saturating_sub(recent.at) < AGAIN
        {
            return recent.owner;
        }
        let found = known(shared, handle);
        let mut owner =
            found.map_or(Owner { java_id: id, ..Owner::default() }, |found| found.owner);
        owner.asked = match (parked, found) {
            (Some(trace), _) => self.tell_parked(shared, &owner, trace, now),
            (None, Some(found)) if found.tid != here.tid => {
                self.ask(found.tid, waits.0, waits.1, now).unwrap_or(0)
            }
            _ => 0,
        };
        if let Some(recent) = &mut recent {
            **recent = Recent { place, was: id, at: now, owner };
        }
        owner
    }

    /// An owner that waits itself has its stack already; the number under which it is told.
    fn tell_parked(&self, shared: &Shared, owner: &Owner, trace: u32, time: u64) -> u64 {
        let number = self.next.fetch_add(1, Relaxed) + 1;
        let head = EventHead {
            kind: shared.kinds.owner,
            thread: owner.thread,
            time,
            java_id: owner.java_id,
            trace,
            ..EventHead::default()
        };
        self.asked.fetch_add(1, Relaxed);
        if !shared.stream.ring.append_event(&head, &[number, 1]) {
            return 0;
        }
        self.answered.fetch_add(1, Relaxed);
        number
    }
}
