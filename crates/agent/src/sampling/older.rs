//! Threads that were there before us: which thread of the operating system a Java thread is.
//!
//! HotSpot's own structure says so, where its tables tell how to read it. Otherwise the clocks do: the JVM tells a Java
//! thread's processor time, the kernel that of each of its threads, and both to the nanosecond.

use super::{Watch, sampler};
use crate::jvm::threads::ThreadFields;
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
use crate::stacks::{fault_guard, walk};
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use tare_arena::samples::SampleThread;

/// By the operating system's number: what is known of a thread, and HotSpot's own structure of it.
pub type Known = HashMap<u32, (SampleThread, u64)>;

/// The numbers of all threads of this process.
pub fn tasks() -> Vec<u32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// How many there are, without listing them: the kernel counts each as a link to their directory, beside
/// the two of every directory.
fn task_count() -> Option<u64> {
    fs::metadata("/proc/self/task").ok()?.nlink().checked_sub(2)
}

impl Watch {
    /// Whether the kernel counts as many threads as are watched. One that came when another went is not
    /// noticed here.
    pub fn knows_as_many_as_there_are(&self) -> bool {
        let watched = self.table.len() + sampler::own_threads().len();
        task_count() == Some(watched as u64)
    }

    /// The threads of the JVM that were there before us.
    pub fn older_threads(&self, jvmti: Jvmti, jni: Jni) -> Known {
        let all = jni.frame(|| {
            let list = jvmti.threads().unwrap_or_default();
            match self.layout {
                Some(_) => self.by_structure(jni, &list),
                None => by_clock(jvmti, jni, self.fields, &list),
            }
        });
        all.unwrap_or_default()
    }

    fn by_structure(&self, jni: Jni, list: &[jobject]) -> Known {
        let read = |thread: jobject| {
            let (native, java_id) = jni.thread_numbers(self.fields, thread);
            let tid = self.tid_of(native)?;
            let name = jni.thread_name(self.fields, thread);
            let new = SampleThread { os_id: tid, java_id, name, ..SampleThread::default() };
            Some((tid, (new, native)))
        };
        list.iter().filter_map(|thread| jni.frame(|| read(*thread)).flatten()).collect()
    }

    /// The operating system's number of one of HotSpot's threads. The thread may end meanwhile,
    /// so its memory is read under a guard.
    fn tid_of(&self, native: u64) -> Option<u32> {
        let layout = self.layout.as_ref().filter(|_| native != 0)?;
        let os = self.peek(native + layout.thread_os)?;
        let tid = self.peek(os.checked_add(layout.os_id)?)? as u32;
        (tid != 0).then_some(tid)
    }

    /// Eight bytes that may not be there.
    pub fn peek(&self, at: u64) -> Option<u64> {
        struct Job(u64, Option<u64>);
        extern "C" fn read(argument: *mut std::ffi::c_void) {
            use walk::Memory;
            // SAFETY: a `Job` that lives across the call below.
            let job = unsafe { &mut *argument.cast::<Job>() };
            job.1 = walk::Own.word(job.0);
        }
        let tid = kernel::gettid();
        let (index, _) = self.shared.buffers.take(tid)?;
        let mut job = Job(at, None);
        // SAFETY: `read` does nothing but read.
        let done = unsafe { fault_guard::run(index, tid, read, (&raw mut job).cast()) };
        self.shared.buffers.give_back(index);
        if done { job.1 } else { None }
    }
}

fn by_clock(jvmti: Jvmti, jni: Jni, fields: ThreadFields, list: &[jobject]) -> Known {
    let tasks = tasks();
    let clock = |tid: &u32| kernel::clock(kernel::thread_clock(*tid));
    let before: Vec<u64> = tasks.iter().map(clock).collect();
    let used: Vec<Option<u64>> = list.iter().map(|thread| jvmti.processor_time(*thread)).collect();
    let after: Vec<u64> = tasks.iter().map(clock).collect();
    let spans = tasks.iter().zip(before.into_iter().zip(after));
    let spans: Vec<(u32, u64, u64)> = spans.map(|(tid, (low, high))| (*tid, low, high)).collect();
    let found = matches(&spans, &used).into_iter().zip(list);
    let found = found.filter_map(|(tid, thread)| {
        let os_id = tid?;
        let (native, java_id) = jni.thread_numbers(fields, *thread);
        let name = jni.frame(|| jni.thread_name(fields, *thread)).unwrap_or_default();
        Some((os_id, (SampleThread { os_id, java_id, name, ..SampleThread::default() }, native)))
    });
    found.collect()
}

/// For each processor time the one thread whose clock showed it: threads as (number, before, after). `None`
/// where it could be several, or is none.
fn matches(spans: &[(u32, u64, u64)], used: &[Option<u64>]) -> Vec<Option<u32>> {
    // Most threads stand still; those that run are few, and looked through one by one.
    let mut still: HashMap<u64, Option<u32>> = HashMap::new();
    for (tid, low, _) in spans.iter().filter(|(_, low, high)| low == high) {
        still.entry(*low).and_modify(|one| *one = None).or_insert(Some(*tid));
    }
    let running: Vec<_> = spans.iter().filter(|(_, low, high)| low < high).collect();
    let find = |used: u64| {
        let mut all = running.iter().filter(|(_, low, high)| (low..=high).contains(&&used));
        match (still.get(&used), all.next(), all.next()) {
            (Some(one), None, _) => *one,
            (None, Some((tid, ..)), None) => Some(*tid),
            _ => None,
        }
    };
    used.iter().map(|used| used.and_then(find)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_without_a_list() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        // Other tests come and go; at some moment nobody does.
        let agree = || task_count() == Some(tasks().len() as u64);
        assert!((0..10_000).any(|_| agree()), "{:?}, {:?}", task_count(), tasks());
        drop(stop);
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn a_clock_tells_a_thread_unless_two_show_the_same() {
        let spans = [(1, 100, 100), (2, 200, 250), (3, 300, 300), (4, 300, 300), (5, 240, 260)];
        let used = [Some(100), Some(210), Some(300), Some(245), Some(255), Some(7), None];
        let found = matches(&spans, &used);
        assert_eq!(found, [Some(1), Some(2), None, None, Some(5), None, None]);
    }
}
