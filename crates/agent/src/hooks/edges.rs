//! What calls of hooked methods came to, by who called: sums that the program's threads add to and
//! the control thread takes out. Fixed in number, without locks and allocation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const PLACES: usize = 1 << 10;
const NEAR: usize = 32;

/// Histogram of times: sixteen steps for each power of two of nanoseconds, up to half an hour.
pub const STEPS: usize = 16 * 38;

/// From one nanosecond on, where a step begins and where the next does.
pub fn step(number: usize) -> (u64, u64) {
    let start = |number: usize| match number {
        0..16 => number as u64,
        _ => (16 + number as u64 % 16) << (number / 16 - 1),
    };
    (start(number), start(number + 1))
}

/// The step that a time belongs to.
pub fn step_of(time: u64) -> usize {
    let number = match time {
        0..16 => time as usize,
        _ => {
            let power = 59 - time.leading_zeros() as usize;
            ((power + 1) << 4) + (time >> power) as usize - 16
        }
    };
    number.min(STEPS - 1)
}

/// Sums of one hook and one stack, or what has come to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub entered: u64,
    pub ended: u64,
    pub wall: u64,
    /// Processor time, of so many of those that ended.
    pub cpu: u64,
    pub with_cpu: u64,
}

#[derive(Default)]
struct Place {
    /// The hook's number and the stack; zero for nobody.
    key: AtomicU64,
    sums: [AtomicU64; 5],
}

pub struct Edges {
    places: Box<[Place]>,
    times: Box<[AtomicU32]>,
}

/// What calls are summed up by. A hook's number is never zero.
pub fn key(number: u32, trace: u32) -> u64 {
    u64::from(number) << 32 | u64::from(trace)
}

impl Edges {
    pub fn new(hooks: usize) -> Self {
        let places = (0..PLACES).map(|_| Place::default()).collect();
        let times = (0..hooks * STEPS).map(|_| AtomicU32::new(0)).collect();
        Edges { places, times }
    }

    fn of(&self, key: u64) -> Option<&Place> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        (0..NEAR).find_map(|step| {
            let place = self.places.get((first + step) % PLACES)?;
            let known = place.key.load(Relaxed);
            let is_ours = known == key
                || known == 0
                    && match place.key.compare_exchange(0, key, Relaxed, Relaxed) {
                        Ok(_) => true,
                        Err(taken) => taken == key,
                    };
            is_ours.then_some(place)
        })
    }

    fn add(&self, key: u64, sums: [u64; 5]) -> bool {
        let Some(place) = self.of(key) else { return false };
        for (sum, more) in place.sums.iter().zip(sums) {
            if more != 0 {
                sum.fetch_add(more, Relaxed);
            }
        }
        true
    }

    /// A call begins. False if there is no room to tell whose it is.
    pub fn enter(&self, key: u64) -> bool {
        self.add(key, [1, 0, 0, 0, 0])
    }

    /// It has ended.
    pub fn end(&self, key: u64, hook: usize, wall: u64, cpu: Option<u64>) {
        self.add(key, [0, 1, wall, cpu.unwrap_or(0), u64::from(cpu.is_some())]);
        if let Some(count) = self.times.get(hook * STEPS + step_of(wall)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Takes out what has come since the last time, with the number of the hook and the stack.
    pub fn take(&self, mut told: impl FnMut(u32, u32, Sums)) {
        for place in &self.places {
            let key = place.key.load(Relaxed);
            if key == 0 {
                continue;
            }
            let [entered, ended, wall, cpu, with_cpu] =
                place.sums.each_ref().map(|sum| sum.swap(0, Relaxed));
            let sums = Sums { entered, ended, wall, cpu, with_cpu };
            if sums != Sums::default() {
                told((key >> 32) as u32, key as u32, sums);
            }
        }
    }

    /// The same of a hook's histogram: the step, and how many.
    pub fn take_times(&self, hook: usize, mut told: impl FnMut(usize, u64)) {
        let of_hook = self.times.get(hook * STEPS..(hook + 1) * STEPS).unwrap_or_default();
        for (number, count) in of_hook.iter().enumerate() {
            let count = count.swap(0, Relaxed);
            if count > 0 {
                told(number, u64::from(count));
            }
        }
    }

    /// Forgets the stacks of hooks that are no more. Sums of a call that ends meanwhile begin a
    /// place anew, and are told like others.
    pub fn forget(&self, is_over: impl Fn(u32) -> bool) {
        for place in &self.places {
            let key = place.key.load(Relaxed);
            if key != 0 && is_over((key >> 32) as u32) {
                place.key.store(0, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_its_step() {
        for time in (0..5_000).chain([1 << 20, (1 << 20) + 1, 3_600_000_000_000]) {
            let number = step_of(time);
            let (from, to) = step(number);
            assert!(from <= time && (time < to || number == STEPS - 1), "{time}: {from} to {to}");
            assert!(number < 16 || to - from <= from / 15, "{time}: {from} to {to}");
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn sums_are_told_once() {
        let edges = Edges::new(2);
        assert!(edges.enter(key(1, 7)) && edges.enter(key(1, 7)) && edges.enter(key(2, 7)));
        edges.end(key(1, 7), 1, 100, Some(40));
        let taken = || {
            let mut all = Vec::new();
            edges.take(|number, trace, sums| all.push((number, trace, sums)));
            all.sort_by_key(|(number, ..)| *number);
            all
        };
        let first = Sums { entered: 2, ended: 1, wall: 100, cpu: 40, with_cpu: 1 };
        let second = Sums { entered: 1, ..Sums::default() };
        assert_eq!(taken(), [(1, 7, first), (2, 7, second)]);
        assert_eq!(taken(), []);
        let mut times = Vec::new();
        edges.take_times(1, |number, count| times.push((step(number).0, count)));
        assert_eq!(times, [(100, 1)]);
        edges.take_times(1, |_, _| panic!("told twice"));
        edges.take_times(0, |_, _| panic!("another hook's"));
    }

    #[test]
    fn there_is_room_again_when_hooks_are_over() {
        let edges = Edges::new(1);
        let fill = |number| (0..100_000).filter(|trace| edges.enter(key(number, *trace))).count();
        assert_eq!(fill(1), PLACES);
        assert_eq!(fill(2), 0);
        edges.forget(|number| number == 1);
        assert_eq!(fill(2), PLACES);
    }
}
