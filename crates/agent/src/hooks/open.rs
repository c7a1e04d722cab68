//! Calls that are being timed: which hook, who called, and when. Fixed in number; a call that finds
//! no place is told without its time. No locks, no allocation: all of it runs in the program's
//! threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const PLACES: usize = 4096;
const NEAR: usize = 64;

/// What is known of a call when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Which edge it belongs to; `edges` says what that is.
    pub edge: u64,
    pub hook: u32,
    pub tid: u32,
    pub wall: u64,
    pub cpu: u64,
}

#[derive(Default)]
struct Place {
    /// Zero while it is free; else the number of the call that has it.
    number: AtomicU32,
    edge: AtomicU64,
    hook: AtomicU32,
    tid: AtomicU32,
    wall: AtomicU64,
    cpu: AtomicU64,
}

pub struct Open {
    places: Box<[Place]>,
    next: AtomicU32,
}

impl Open {
    pub fn new() -> Self {
        let places = (0..PLACES).map(|_| Place::default()).collect();
        Open { places, next: AtomicU32::new(1) }
    }

    /// The token of a call, never zero. `None` if there is no place.
    pub fn begin(&self, call: &Call) -> Option<i64> {
        // Zero is for nobody.
        let number = self.next.fetch_add(1, Relaxed) | 1 << 31;
        let first = call.tid as usize * 7;
        for step in 0..NEAR {
            let at = (first + step) % PLACES;
            let place = self.places.get(at)?;
            if place.number.load(Relaxed) == 0
                && place.number.compare_exchange(0, number, Acquire, Relaxed).is_ok()
            {
                place.edge.store(call.edge, Relaxed);
                place.hook.store(call.hook, Relaxed);
                place.tid.store(call.tid, Relaxed);
                place.wall.store(call.wall, Relaxed);
                place.cpu.store(call.cpu, Relaxed);
                return Some((u64::from(number) << 32 | at as u64).cast_signed());
            }
        }
        None
    }

    /// A call ends; what was known of it, unless nobody knows it any more.
    pub fn end(&self, token: i64) -> Option<Call> {
        let token = token.cast_unsigned();
        let (at, number) = (token as u32 as usize, (token >> 32) as u32);
        let place = self.places.get(at)?;
        if number == 0 || place.number.load(Acquire) != number {
            return None;
        }
        let call = Call {
            edge: place.edge.load(Relaxed),
            hook: place.hook.load(Relaxed),
            tid: place.tid.load(Relaxed),
            wall: place.wall.load(Relaxed),
            cpu: place.cpu.load(Relaxed),
        };
        place.number.compare_exchange(number, 0, Release, Relaxed).ok()?;
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_once_and_gives_its_place_back() {
        let open = Open::new();
        let call = Call { edge: 7, hook: 3, tid: 99, wall: 1, cpu: 2 };
        let token = open.begin(&call).unwrap();
        assert_ne!(token, 0);
        assert_eq!(open.end(token), Some(call));
        assert_eq!(open.end(token), None);
        assert_eq!(open.end(0), None);
        assert_eq!(open.end(i64::MAX), None);
        let tokens: Vec<i64> = (0..NEAR).map(|_| open.begin(&call).unwrap()).collect();
        assert_eq!(open.begin(&call), None, "there is no end of places");
        tokens.iter().for_each(|token| assert!(open.end(*token).is_some()));
        assert!(open.begin(&call).is_some());
    }
}
