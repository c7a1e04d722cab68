//! What the system tells of the JVM's process and of this one: processor time, and what a thread
//! does now.

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{Duration, Instant};
use tare_top::Machine;

/// Threads of ours in the JVM have names that begin so.
const OURS: &str = "tare";

pub struct Process {
    pid: u32,
    /// Our threads in it.
    ours: Vec<u32>,
    looked: Instant,
    before: Option<Times>,
}

#[derive(Clone, Copy)]
struct Times {
    at: Instant,
    jvm: Option<Duration>,
    /// This process, and our threads in the JVM.
    tare: Duration,
}

/// How often it is looked which threads in the JVM are ours.
const LOOK: Duration = Duration::from_secs(30);

impl Process {
    pub fn new(pid: u32) -> Self {
        Process { pid, ours: Vec::new(), looked: Instant::now(), before: None }
    }

    /// The threads may be others by now.
    pub fn look(&mut self) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let tids = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let comm = |tid: u32| fs::read_to_string(format!("/proc/{}/task/{tid}/comm", self.pid));
        let is_ours =
            |tid: &u32| comm(*tid).is_ok_and(|name| name.to_lowercase().starts_with(OURS));
        self.ours = tids.filter(is_ours).collect();
        self.looked = Instant::now();
    }

    /// What was used since the last time, in processors.
    pub fn machine(&mut self) -> Machine {
        if self.before.is_none() || self.looked.elapsed() > LOOK {
            self.look();
        }
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::try_from(own).unwrap_or_default();
        let of_thread = |tid: &u32| used(&format!("/proc/{}/task/{tid}/stat", self.pid));
        let inside: Duration = self.ours.iter().filter_map(of_thread).sum();
        let jvm = used(&format!("/proc/{}/stat", self.pid));
        let now = Times { at: Instant::now(), jvm, tare: own + inside };
        let Some(before) = self.before.replace(now) else { return Machine::default() };
        let passed = (now.at - before.at).as_secs_f64().max(1e-3);
        let rate =
            |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() / passed;
        Machine {
            cpu: now.jvm.zip(before.jvm).map(|(now, before)| rate(now, before)),
            tare: Some(rate(now.tare, before.tare)),
            gc: None,
        }
    }

    /// A word for what a thread does at this moment.
    pub fn state(&self, tid: u64) -> Option<&'static str> {
        let stat = fs::read_to_string(format!("/proc/{}/task/{tid}/stat", self.pid)).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        Some(match rest.chars().next()? {
            'R' => "runs",
            'S' | 'I' => "waits",
            'D' => "disk",
            'T' | 't' => "stopped",
            _ => "ends",
        })
    }
}

/// Processor time of a process or thread, by its line in `/proc`.
fn used(path: &str) -> Option<Duration> {
    let stat = fs::read_to_string(path).ok()?;
    // The name may hold anything, but it ends with the last bracket.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second().max(1) as f64))
}

/// Processors of this machine.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_a_processor_and_its_threads_are_told_apart() {
        let spins = std::thread::Builder::new().name("TareTest".into()).spawn(|| {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
        });
        let mut process = Process::new(std::process::id());
        assert_eq!(process.machine(), Machine::default(), "nothing has passed");
        assert!(!process.ours.is_empty());
        assert_eq!(process.state(u64::from(std::process::id())).map(|_| ()), Some(()));
        spins.unwrap().join().unwrap();
        let machine = process.machine();
        assert!(machine.cpu.unwrap() > 0.0 && machine.tare.unwrap() > 0.0, "{machine:?}");
        assert!(Process::new(u32::MAX).state(1).is_none());
    }
}
