//! Threads that were there before us: which thread of the operating system a Java thread is.
//!
//! HotSpot's own structure says so, where its tables tell how to read it. Otherwise the clocks do:
//! the JVM tells a Java thread's processor time, the kernel that of each of its threads, and both
//! to the nanosecond.

use super::Stream;
use crate::jvm::threads::ThreadFields;
use crate::jvm::{Jni, Jvmti};
use crate::kernel;
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

/// How many there are, without listing them: the kernel counts each as a link to their directory,
/// beside the two of every directory.
pub fn task_count() -> Option<u64> {
    fs::metadata("/proc/self/task").ok()?.nlink().checked_sub(2)
}

impl Stream {
    /// The threads of the JVM that were there before us.
    pub(super) fn older_threads(&self, jvmti: Jvmti, jni: Jni) -> Known {
        let all = jni.frame(|| {
            let list = jvmti.threads().unwrap_or_default();
            match self.stacks.are_walkable() {
                true => self.by_structure(jni, &list),
                false => by_clock(jvmti, jni, self.watch.fields, &list),
            }
        });
        all.unwrap_or_default()
    }

    fn by_structure(&self, jni: Jni, list: &[jobject]) -> Known {
        let read = |thread: jobject| {
            let (native, java_id) = jni.thread_numbers(self.watch.fields, thread);
            let tid = self.stacks.tid_of(native)?;
            let name = jni.thread_name(self.watch.fields, thread);
            let new = SampleThread { os_id: tid, java_id, name, ..SampleThread::default() };
            Some((tid, (new, native)))
        };
        list.iter().filter_map(|thread| jni.frame(|| read(*thread)).flatten()).collect()
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

/// For each processor time the one thread whose clock showed it: threads as (number, before,
/// after). `None` where it could be several, or is none.
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
