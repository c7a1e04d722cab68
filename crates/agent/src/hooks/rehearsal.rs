//! What a call of a hooked method takes in this JVM: measured when a session begins, on calls of a
//! method of our own that does nothing.

use super::blocks::{self, Blocks, REHEARSED};
use super::budget;
use super::calls::Shared;
use super::session::nanos;
use crate::engines::Jvm;
use crate::jvm::classes::OwnClass;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Measures in this JVM what counting a call takes, and what timing one does: the best of some
/// rounds, since compilers come in between.
pub fn rehearse(jvm: Jvm, runtime: OwnClass, shared: &Shared, blocks: &Blocks) -> budget::Costs {
    const ROUNDS: usize = 6;
    let round = |calls: u64| {
        let began = Instant::now();
        jvm.jni.call_static_long(runtime, c"rehearse", calls.cast_signed());
        nanos(began.elapsed()) * 1000 / calls
    };
    blocks.clear(REHEARSED);
    shared.numbers[REHEARSED].store(u32::MAX, Relaxed);
    // Counting first: compilers lay out what they have seen run.
    blocks.time(REHEARSED, 0);
    // The compilers get some time, since the program's code is compiled by the last of them.
    let best = || {
        let rounds = (0..ROUNDS * 4).map(|_| {
            std::thread::sleep(Duration::from_millis(4));
            round(50_000)
        });
        rounds.min().unwrap_or(0)
    };
    let count_ps = best();
    blocks.close(REHEARSED);
    let pass_ps = best().min(count_ps);
    blocks.time(REHEARSED, blocks::ALL);
    let mut best = budget::Costs { pass_ps, count_ps, time_ps: u64::MAX, inside_ps: 0 };
    let (mut empty, mut empty_cpu) = (u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        let before = (shared.spent.load(Relaxed), shared.told.load(Relaxed));
        let time_ps = round(500);
        let spent = shared.spent.load(Relaxed) - before.0;
        let told = (shared.told.load(Relaxed) - before.1).max(1);
        if time_ps < best.time_ps {
            let inside_ps = spent * 1000 / told;
            best = budget::Costs { pass_ps, count_ps, time_ps, inside_ps };
        }
        shared.edges.take(|_, _, sums| {
            empty = empty.min(sums.wall / sums.ended.max(1));
            empty_cpu = empty_cpu.min(sums.cpu / sums.with_cpu.max(1));
        });
    }
    shared.numbers[REHEARSED].store(0, Relaxed);
    blocks.clear(REHEARSED);
    shared.edges.forget(|_| true);
    for (to, least) in [(&shared.empty, empty), (&shared.empty_cpu, empty_cpu)] {
        to.store(if least == u64::MAX { 0 } else { least }, Relaxed);
    }
    [&shared.spent, &shared.told]
        .into_iter()
        .chain(&shared.losses)
        .for_each(|n| n.store(0, Relaxed));
    best
}
