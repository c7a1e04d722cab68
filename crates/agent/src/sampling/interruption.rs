//! What a sample costs the thread that it is taken from beside the handler: the interrupt, the
//! signal and the way back. Found by a thread of ours that watches its own clock while signals
//! come, before a session begins.

use super::armer::{self, Choice};
use super::perf;
use crate::kernel;
use crate::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use tare_protocol::SampleTrigger;

/// The event of the thread that watches, for the handler; none is negative.
static EVENT: AtomicI32 = AtomicI32::new(-1);

const INTERVAL: u64 = 100_000;
const SIGNALS: usize = 40;
const LONGEST: Duration = Duration::from_millis(30);
/// Two readings of the clock are nearer to each other than this, unless something came between.
const GAP: u64 = 1_500;

/// Whether a signal is of that thread; its event is then let run on.
pub fn is_watched(fd: i32) -> bool {
    let ours = fd >= 0 && EVENT.load(SeqCst) == fd;
    if ours {
        perf::enable_once(fd);
    }
    ours
}

/// Nanoseconds of a thread's processor time, or zero if too few signals came. Not to be called
/// while a session is on.
pub fn interruption(choice: &Choice) -> u64 {
    let choice = choice.clone();
    let found = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&found);
    let watching = thread::spawn("tare-own", 128 << 10, move || told.store(watch(&choice), SeqCst));
    if let Ok(watching) = watching {
        watching.join();
    }
    found.load(SeqCst)
}

fn watch(choice: &Choice) -> u64 {
    kernel::unblock();
    let tid = kernel::gettid();
    match choice.trigger {
        SampleTrigger::PerfClock | SampleTrigger::PerfCycles => {
            let period = armer::period(choice.trigger, INTERVAL);
            let event = armer::event(choice.trigger);
            let Ok(fd) = perf::open(tid, event, period, choice.kernel) else { return 0 };
            EVENT.store(fd, SeqCst);
            perf::enable_once(fd);
            let found = gap();
            perf::disable(fd);
            // A signal that is under way comes now, and finds its event.
            EVENT.store(-1, SeqCst);
            perf::close(fd);
            found
        }
        SampleTrigger::Timer => {
            let Ok(timer) = kernel::create_timer(tid, INTERVAL, INTERVAL) else { return 0 };
            let found = gap();
            kernel::delete_timer(timer);
            found
        }
        SampleTrigger::Safepoint => 0,
    }
}

/// The usual one of the gaps in the thread's own time. Ticks of the kernel are among them, and are
/// few.
fn gap() -> u64 {
    let now = || kernel::clock(libc::CLOCK_THREAD_CPUTIME_ID);
    let began = Instant::now();
    let mut gaps = Vec::with_capacity(SIGNALS);
    let mut last = now();
    while gaps.len() < SIGNALS && began.elapsed() < LONGEST {
        let next = now();
        if next - last > GAP {
            gaps.push(next - last);
        }
        last = now();
    }
    gaps.sort_unstable();
    if gaps.len() < SIGNALS / 2 { 0 } else { gaps[gaps.len() / 2] }
}

/// What to tell of an interval that is short beside an interruption; nothing if it takes less than
/// a fifth of the processor time.
pub fn warning(interval: u64, interruption: u64) -> Option<String> {
    if interruption.saturating_mul(5) < interval {
        return None;
    }
    let share = (interruption * 100 / interval.max(1)).min(99);
    // A twentieth, as 1, 2 or 5 of a power of ten.
    let wanted = (interruption * 20).div_ceil(1_000);
    let steps = (0..9).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
    let micros = steps.into_iter().find(|micros| *micros >= wanted).unwrap_or(wanted);
    let better = match micros {
        1_000.. => format!("{}ms", micros.div_ceil(1_000)),
        _ => format!("{micros}us"),
    };
    Some(format!(
        "A sample interrupts its thread for {} µs on this machine, without what is done meanwhile. \
         So one every {} µs takes at least {share} % of the processor time; --interval {better} \
         takes a twentieth.",
        interruption.div_ceil(1_000),
        interval / 1_000,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::handler;

    #[test]
    fn short_intervals_are_warned_of_where_interruptions_are_long() {
        assert_eq!(warning(10_000_000, 45_000), None);
        assert_eq!(warning(50_000, 3_000), None);
        assert_eq!(warning(50_000, 0), None, "nothing is known");
        for (interval, interruption, said) in [
            (50_000, 45_000, ["for 45 µs", "every 50 µs", "90 %", "--interval 1ms"]),
            (50_000, 12_300, ["for 13 µs", "every 50 µs", "24 %", "--interval 500us"]),
            (20_000, 90_000, ["for 90 µs", "every 20 µs", "99 %", "--interval 2ms"]),
        ] {
            let text = warning(interval, interruption).expect("a warning");
            for word in said {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
    }

    #[test]
    fn what_a_signal_costs_is_microseconds() {
        handler::install().expect("a handler");
        for trigger in [SampleTrigger::Timer, SampleTrigger::PerfClock] {
            let choice = Choice { trigger, kernel: false, asked: true, notes: Vec::new() };
            // Where there are no perf events, or on a machine that is too busy, nothing is known.
            let found = interruption(&choice);
            assert!(found < 1_000_000, "{trigger}: {found} ns");
        }
    }
}
