//! Independent pieces of work on all processors.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads than this only wait for memory.
const MOST_THREADS: usize = 16;

pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS)
}

/// Does `work` for each number below `count`, in any order, and returns what came of it in order.
pub fn each<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    each_with(count, || (), |(), at| work(at))
}

/// The same, with something that each thread makes once and uses for all of its pieces.
pub fn each_with<S, T: Send>(
    count: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let run = || {
        let mut own = make();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let outcome = work(&mut own, at);
            done.lock().unwrap_or_else(|e| e.into_inner()).push((at, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads().min(count.max(1)) {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Gives each piece of work its own part of a slice, cut at `ends`.
pub fn parts<'a, T>(mut all: &'a mut [T], ends: &[usize]) -> Vec<Mutex<&'a mut [T]>> {
    let mut begin = 0;
    let mut parts = Vec::with_capacity(ends.len());
    for end in ends {
        let (part, rest) = all.split_at_mut(end - begin);
        parts.push(Mutex::new(part));
        (all, begin) = (rest, *end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_keep_their_order() {
        let squares: Vec<usize> = (0..1000).map(|n| n * n).collect();
        assert_eq!(each(1000, |n| n * n), squares);
        assert_eq!(each(0, |n| n), [0_usize; 0]);
    }
}
