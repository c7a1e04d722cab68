//! The same work for each of a few metrics, two at a time where there are millions of nodes: they
//! know nothing of each other. What the work is, its callers know.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Each has memory for a number per node or context, so more would take more than they save.
const WORKERS: usize = 2;

/// Of fewer nodes a thread is not worth it.
const MANY: usize = 1 << 18;

/// Does the work for each number below `count`, and tells what came of it in that order. `size` is
/// how many nodes are looked at. The list of numbers is for the work to use, and to leave as it
/// likes: memory that was used before is quicker than new.
pub(crate) fn each<R: Send>(
    count: usize,
    size: usize,
    work: impl Fn(usize, &mut Vec<i64>) -> R + Sync,
) -> Vec<R> {
    let several = size >= MANY && thread::available_parallelism().is_ok_and(|all| all.get() > 1);
    if !several || count < 2 {
        let mut scratch = Vec::new();
        return (0..count).map(|number| work(number, &mut scratch)).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..WORKERS.min(count) {
            scope.spawn(|| {
                let mut scratch = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let result = work(number, &mut scratch);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whoever_did_the_work() {
        for size in [0, MANY] {
            let found = each(9, size, |number, scratch| {
                scratch.resize(number + 1, 0);
                (number, scratch.len())
            });
            assert_eq!(found, (0..9).map(|n| (n, n + 1)).collect::<Vec<_>>());
            assert_eq!(each(0, size, |number, _| number), []);
        }
    }
}
