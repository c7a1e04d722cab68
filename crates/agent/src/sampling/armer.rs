//! What makes threads tell where they are: a timer or a perf event for each thread. All that we
//! open stays below a quarter of what the process may have.

use super::locked;
use super::perf;
use crate::kernel;
use crate::stream::threads::Record;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::*};
use tare_perf_events::Event;
use tare_protocol::SampleTrigger;
use tare_unwind::is_filtered;

/// The least interval: below it a thread would do nothing but tell where it is.
pub const SHORTEST: u64 = 10_000;
pub const LONGEST: u64 = 10_000_000_000;

/// Descriptors of ours that are not events, at most: connections, the memory that they read, what
/// we listen and wait with, and a file or directory that is being read. They count within the
/// quarter.
const OTHERS: u64 = 48;

/// Arms threads with the session's engine.
pub struct Armer {
    pub trigger: SampleTrigger,
    /// Whether kernel code counts for perf events.
    pub kernel: bool,
    /// Whether perf events were asked for by name: then a filter is no reason not to try.
    asked: bool,
    /// Whether its frames are wanted.
    pub frames: bool,
    pub timers: AtomicU64,
    pub descriptors: AtomicU64,
    pub timers_most: u64,
    pub descriptors_most: u64,
    seed: AtomicU64,
    /// Taken from threads that were inside the handler just then.
    in_use: Mutex<Vec<InUse>>,
}

/// A descriptor and its memory, which a handler may still use. Were they given back meanwhile, the
/// handler would write into memory that somebody else has got at the same address.
struct InUse {
    record: &'static Record,
    fd: i32,
    pages: u64,
}

/// What was found out about the engines here.
#[derive(Clone)]
pub struct Choice {
    pub trigger: SampleTrigger,
    pub kernel: bool,
    /// By name, and not because it is the best.
    pub asked: bool,
    /// Why not a better one.
    pub notes: Vec<String>,
}

/// Filters that end a process for `perf_event_open` are common (systemd's do), those that permit it
/// rare, and what a filter does cannot be asked. A child that tries the call is no way out: one
/// that shares our memory takes us along when its death dumps core (Linux before 5.16), one that
/// does not copies the page tables of the whole heap.
const FILTERED: &str = "This JVM runs under a seccomp filter, which may kill it for calling \
                        perf_event_open, so timers are used. If the filter permits that call, \
                        ask for `--engine perf-clock`.";
const RISKED: &str = "perf events were asked for under a seccomp filter: it may kill threads that have \
                      a filter of their own.";

/// Kernels tick at this rate or faster; finer than a tick no timer is.
const TICK: u64 = 4_000_000;

/// The best engine that works, or the one asked for, or why that one does not.
pub fn choose(wanted: Option<SampleTrigger>, wall: bool, interval: u64) -> Result<Choice, String> {
    let plain =
        |trigger| Choice { trigger, kernel: true, asked: wanted.is_some(), notes: Vec::new() };
    match wanted {
        Some(SampleTrigger::PerfCycles | SampleTrigger::PerfClock) if wall => {
            Err("wall-clock sampling uses the engine `timer` or `safepoint`".into())
        }
        Some(trigger @ (SampleTrigger::PerfCycles | SampleTrigger::PerfClock)) => {
            let mut choice = try_perf(trigger)
                .map_err(|e| format!("the engine `{trigger}` does not work here: {e}"))?;
            choice.asked = true;
            choice.notes.extend(is_filtered().then(|| RISKED.to_owned()));
            Ok(choice)
        }
        Some(SampleTrigger::Timer) if wall => match kernel::may_ask() {
            Ok(()) => Ok(plain(SampleTrigger::Timer)),
            Err(e) => Err(format!(
                "threads cannot be signalled (rt_tgsigqueueinfo: {e}). A seccomp filter may deny it; \
                 the engine `safepoint` does not need signals"
            )),
        },
        Some(trigger) => Ok(plain(trigger)),
        None if wall => match kernel::may_ask() {
            Ok(()) => Ok(plain(SampleTrigger::Timer)),
            Err(e) => {
                let mut choice = plain(SampleTrigger::Safepoint);
                choice.notes.push(format!(
                    "Threads cannot be signalled (rt_tgsigqueueinfo: {e}), so the JVM itself takes \
                     stacks, at safepoints."
                ));
                Ok(choice)
            }
        },
        None if is_filtered() => {
            let notes = vec![FILTERED.to_owned()];
            Ok(Choice { notes, ..plain(SampleTrigger::Timer) })
        }
        None => match try_perf(SampleTrigger::PerfClock) {
            Ok(choice) if choice.kernel => Ok(choice),
            Ok(choice) if interval < TICK => Ok(choice),
            Ok(_) => {
                let mut choice = plain(SampleTrigger::Timer);
                choice.notes.push(
                    "The kernel does not let perf events count kernel time \
                     (kernel.perf_event_paranoid), so timers are used, which do count it."
                        .into(),
                );
                Ok(choice)
            }
            Err(e) => {
                let mut choice = plain(SampleTrigger::Timer);
                choice.notes.push(format!("perf events do not work here ({e}); timers are used."));
                Ok(choice)
            }
        },
    }
}

pub fn event(trigger: SampleTrigger) -> Event {
    if trigger == SampleTrigger::PerfCycles { Event::Cycles } else { Event::CpuClock }
}

fn try_perf(trigger: SampleTrigger) -> io::Result<Choice> {
    let tid = kernel::gettid();
    let open = |kernel| perf::open(tid, event(trigger), 10_000_000, kernel);
    if let Ok(fd) = open(true) {
        perf::close(fd);
        return Ok(Choice { trigger, kernel: true, asked: false, notes: Vec::new() });
    }
    let fd = open(false)?;
    perf::close(fd);
    let note = "The kernel does not let perf events count kernel time \
                (kernel.perf_event_paranoid): it is charged to where the program continues.";
    Ok(Choice { trigger, kernel: false, asked: false, notes: vec![note.into()] })
}

impl Armer {
    pub fn new(choice: &Choice, frames: bool) -> Self {
        Armer {
            trigger: choice.trigger,
            kernel: choice.kernel,
            asked: choice.asked,
            frames: frames && choice.kernel,
            timers: AtomicU64::new(0),
            descriptors: AtomicU64::new(0),
            timers_most: kernel::quarter(libc::RLIMIT_SIGPENDING).saturating_sub(1),
            descriptors_most: kernel::quarter(libc::RLIMIT_NOFILE).saturating_sub(OTHERS),
            seed: AtomicU64::new(kernel::monotonic() | 1),
            in_use: Mutex::default(),
        }
    }

    /// A thread's first sample comes after a random part of the interval. So threads that live
    /// for less than one are charged as often as is right.
    fn first(&self, interval: u64) -> u64 {
        let mut x = self.seed.load(Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.seed.store(x, Relaxed);
        1 + x % interval
    }

    /// Whether kernel frames are recorded.
    pub fn sees_kernel(&self) -> bool {
        self.frames && matches!(self.trigger, SampleTrigger::PerfClock | SampleTrigger::PerfCycles)
    }

    /// Whether threads have a timer or descriptor each.
    pub fn arms(&self, wall: bool) -> bool {
        !wall && self.trigger != SampleTrigger::Safepoint
    }

    /// Arms a thread that is not armed; false if that cannot be had.
    pub fn arm(&self, record: &Record, tid: u32, interval: u64) -> bool {
        let perf = matches!(self.trigger, SampleTrigger::PerfClock | SampleTrigger::PerfCycles);
        (perf && self.arm_perf(record, tid, interval)) || self.arm_timer(record, tid, interval)
    }

    fn arm_perf(&self, record: &Record, tid: u32, interval: u64) -> bool {
        // A thread that starts arms itself, and may be under a filter that others are not under.
        if !self.asked && is_filtered() {
            return false;
        }
        if !reserve(&self.descriptors, self.descriptors_most) {
            return false;
        }
        let first = self.first(interval);
        match perf::open(tid, event(self.trigger), self.period(first), self.kernel) {
            Ok(fd) => {
                // As if the rest of the first interval had been charged already.
                let used = kernel::clock(kernel::thread_clock(tid));
                record.charged.store((used + first).saturating_sub(interval), Relaxed);
                record.fresh.store(1, Relaxed);
                if self.frames {
                    record.pages.store(perf::map_records(fd), Relaxed);
                }
                record.fd.store(fd, Relaxed);
                perf::enable_once(fd);
                true
            }
            Err(_) => {
                self.descriptors.fetch_sub(1, Relaxed);
                false
            }
        }
    }

    fn arm_timer(&self, record: &Record, tid: u32, interval: u64) -> bool {
        if !reserve(&self.timers, self.timers_most) {
            return false;
        }
        match kernel::create_timer(tid, self.first(interval), interval) {
            Ok(timer) => {
                record.timer.store(timer, Relaxed);
                true
            }
            Err(_) => {
                self.timers.fetch_sub(1, Relaxed);
                false
            }
        }
    }

    fn period(&self, interval: u64) -> u64 {
        period(self.trigger, interval)
    }

    /// Takes a thread's timer or descriptor away.
    pub fn disarm(&self, record: &'static Record) {
        let timer = record.timer.swap(-1, Relaxed);
        if timer >= 0 {
            kernel::delete_timer(timer);
            self.timers.fetch_sub(1, Relaxed);
        }
        let fd = record.fd.swap(-1, SeqCst);
        if fd >= 0 {
            perf::disable(fd);
            let pages = record.pages.swap(0, SeqCst);
            let taken = InUse { record, fd, pages };
            if record.is_inside() {
                locked(&self.in_use).push(taken);
            } else {
                self.release(&taken);
            }
        }
    }

    /// Gives back what handlers had in use and have no longer.
    pub fn tidy(&self) {
        locked(&self.in_use).retain(|taken| {
            let busy = taken.record.is_inside();
            if !busy {
                self.release(taken);
            }
            busy
        });
    }

    fn release(&self, taken: &InUse) {
        if taken.pages != 0 {
            perf::unmap_records(taken.pages);
        }
        perf::close(taken.fd);
        self.descriptors.fetch_sub(1, Relaxed);
    }

    /// Another interval for a thread that is armed; zero stops it for a while.
    pub fn rearm(&self, record: &Record, tid: u32, interval: u64) {
        let first = if interval == 0 { 0 } else { self.first(interval) };
        let timer = record.timer.load(Relaxed);
        if timer >= 0 {
            let _ = kernel::set_timer(timer, first, interval);
        }
        let fd = record.fd.load(Relaxed);
        if fd >= 0 {
            perf::disable(fd);
            if interval != 0 {
                let used = kernel::clock(kernel::thread_clock(tid));
                record.charged.store((used + first).saturating_sub(interval), Relaxed);
                perf::set_period(fd, self.period(interval));
                perf::enable_once(fd);
            }
        }
    }
}

/// What an event counts in an interval: nanoseconds, or cycles at a rate that is about right;
/// weights come from the clock.
pub fn period(trigger: SampleTrigger, interval: u64) -> u64 {
    if trigger == SampleTrigger::PerfCycles { interval * 3 } else { interval }
}

/// Counts one more, if there may be one.
fn reserve(count: &AtomicU64, most: u64) -> bool {
    count.fetch_update(Relaxed, Relaxed, |now| (now < most).then_some(now + 1)).is_ok()
}
