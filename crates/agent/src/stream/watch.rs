//! The threads of the process, watched: taken in when they come, with a record in the stream for
//! each, and let go when they end. Whoever does something to every thread (a timer for each, say)
//! listens.

use super::older::{self, Known};
use super::ring::Ring;
use super::threads::{Record, Table};
use crate::jvm::Jni;
use crate::jvm::threads::ThreadFields;
use crate::kernel;
use crate::thread;
use jvmti_bindings::sys::jni::jobject;
use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use tare_arena::samples::{Counter, Record as Event, SampleThread, ThreadType};

/// Told of every thread, with the table held: what is done to one thread is never done to another
/// that has got its record.
pub trait ThreadListener: Send + Sync {
    /// A record was filled in: for a thread that nobody can find yet, or for one that has turned
    /// out to run Java.
    fn filled(&self, record: &Record, tid: u32);
    /// A thread is watched from now on. False if it could not be armed.
    fn came(&self, record: &Record, tid: u32) -> bool;
    /// A thread is watched no longer; nobody finds its record any more.
    fn left(&self, record: &'static Record);
}

/// What the JVM's callbacks and the control thread need to watch threads.
pub struct Watch {
    pub table: &'static Table,
    pub fields: ThreadFields,
    /// The stream ends and takes in no more threads; changed with the table held.
    closed: AtomicBool,
    next: AtomicU32,
    /// From HotSpot's thread to its JNI environment.
    environment: u64,
    listener: Mutex<Option<Arc<dyn ThreadListener>>>,
}

impl Watch {
    /// `own` is HotSpot's thread behind the calling one, if that is known.
    pub fn new(table: &'static Table, fields: ThreadFields, jni: Jni, own: Option<u64>) -> Self {
        Watch {
            table,
            fields,
            closed: AtomicBool::new(false),
            next: AtomicU32::new(1),
            environment: own.map_or(0, |own| jni.environment().wrapping_sub(own)),
            listener: Mutex::default(),
        }
    }

    /// From now on `listener` is told; with `None` nobody is.
    pub fn tell(&self, listener: Option<Arc<dyn ThreadListener>>) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    fn listener(&self) -> Option<Arc<dyn ThreadListener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The listener is told that all threads leave, and nothing more; they are watched on.
    pub fn dismiss(&self) {
        let table = self.table.change();
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            table.all().for_each(|record| listener.left(record));
        }
    }

    /// HotSpot's thread behind the calling one; zero if that is not known.
    pub fn own_thread(&self, jni: Jni) -> u64 {
        match self.environment {
            0 => 0,
            offset => jni.environment().wrapping_sub(offset),
        }
    }

    /// The number that the next thread gets.
    pub fn next_number(&self) -> u32 {
        self.next.load(Relaxed)
    }

    /// Called on a thread that has just started.
    pub fn started(&self, ring: &Ring, jni: Jni, thread: jobject) {
        let (_, java_id) = jni.thread_numbers(self.fields, thread);
        let new = SampleThread {
            os_id: kernel::gettid(),
            java_id,
            started: kernel::monotonic(),
            name: jni.frame(|| jni.thread_name(self.fields, thread)).unwrap_or_default(),
            ..SampleThread::default()
        };
        let native = match self.own_thread(jni) {
            0 => jni.thread_numbers(self.fields, thread).0,
            native => native,
        };
        self.add(ring, new, native);
    }

    /// Watches a thread from now on; one that is known becomes the Java thread that it is. A scan
    /// that met it before the JVM told of it knows less, and may come here later.
    fn add(&self, ring: &Ring, mut new: SampleThread, native: u64) {
        let mut table = self.table.change();
        if self.closed.load(Relaxed) {
            return;
        }
        let listener = self.listener();
        let fill = |record: &Record| {
            record.thread.store(native, Relaxed);
            record.java_id.store(new.java_id, Relaxed);
            if let Some(listener) = &listener {
                listener.filled(record, new.os_id);
            }
        };
        let added = table.add(new.os_id, |record| {
            record.number.store(self.next.fetch_add(1, Relaxed), Relaxed);
            fill(record);
        });
        let Some((record, fresh)) = added else {
            ring.add(Counter::ThreadsRefused, 1);
            return;
        };
        if !fresh {
            if new.kind == ThreadType::Native {
                return;
            }
            fill(record);
        }
        new.number = record.number.load(Relaxed);
        ring.append_bytes(&new.encode());
        if !fresh {
            return;
        }
        ring.add(Counter::ThreadsSeen, 1);
        let armed = listener.is_none_or(|listener| listener.came(record, new.os_id));
        // A thread that has ended meanwhile has no clock any more, and needs nothing.
        if !armed && kernel::clock(kernel::thread_clock(new.os_id)) != 0 {
            ring.add(Counter::ThreadsRefused, 1);
        }
    }

    pub fn remove(&self, ring: &Ring, tid: u32) {
        let mut table = self.table.change();
        if let Some(record) = table.remove(tid) {
            if let Some(listener) = self.listener() {
                listener.left(record);
            }
            let number = record.number.load(Relaxed);
            ring.append_bytes(&Event::encode_thread_end(number, kernel::monotonic()));
        }
    }

    /// Whether threads are taken in.
    pub fn is_open(&self) -> bool {
        !self.closed.load(Relaxed)
    }

    /// Takes in no more threads, and tells that those which there are leave.
    pub fn close(&self) {
        let table = self.table.change();
        self.closed.store(true, Relaxed);
        if let Some(listener) = self.listener() {
            table.all().for_each(|record| listener.left(record));
        }
    }

    pub fn forget_threads(&self) {
        let mut table = self.table.change();
        let all: Vec<u32> = table.all().map(Record::tid).collect();
        for tid in all {
            table.remove(tid);
        }
    }

    /// Whether the kernel counts as many threads as are watched. One that came when another went is
    /// not noticed here.
    pub fn knows_as_many_as_there_are(&self) -> bool {
        let watched = self.table.len() + thread::ours().len();
        older::task_count() == Some(watched as u64)
    }

    /// Finds threads that came and went without the JVM's telling.
    pub fn scan_tasks(&self, ring: &Ring, mut known: Known) {
        let own = thread::ours();
        // Before the kernel is asked: a thread that starts in between has not ended.
        let watched: Vec<u32> = self.table.all().into_iter().map(Record::tid).collect();
        let alive: HashSet<u32> = older::tasks().into_iter().collect();
        if alive.is_empty() {
            return;
        }
        // The kernel's list ends early when a thread of it ends meanwhile.
        for tid in watched.into_iter().filter(|tid| !alive.contains(tid)) {
            if !kernel::exists(tid) {
                self.remove(ring, tid);
            }
        }
        for tid in alive {
            if own.contains(&tid) || self.table.find(tid).is_some() {
                continue;
            }
            let (new, native) = known.remove(&tid).unwrap_or_else(|| (native_thread(tid), 0));
            self.add(ring, new, native);
        }
    }
}

fn native_thread(tid: u32) -> SampleThread {
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    SampleThread {
        kind: ThreadType::Native,
        os_id: tid,
        name: name.trim_end().to_owned(),
        ..SampleThread::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::Stream;
    use tare_arena::samples::layout::RING_SMALLEST;

    fn watch() -> Watch {
        Watch {
            table: Box::leak(Box::new(Table::new().expect("memory"))),
            fields: ThreadFields::unknown(),
            closed: AtomicBool::new(false),
            next: AtomicU32::new(1),
            environment: 0,
            listener: Mutex::default(),
        }
    }

    /// What the stream tells of threads, in this order.
    fn told(ring: &Ring) -> Vec<(ThreadType, String)> {
        let mut stream = Stream::new(ring.files().unwrap()).unwrap();
        let mut told = Vec::new();
        let take = |record| {
            if let Event::Thread(thread) = record {
                told.push((thread.kind, thread.name.clone()));
            }
        };
        stream.drain(take).unwrap();
        told
    }

    #[test]
    fn a_scan_that_comes_late_takes_nothing_from_a_java_thread() {
        let (watch, ring) = (watch(), Ring::new(RING_SMALLEST).unwrap());
        let scanned = |name: &str| SampleThread {
            kind: ThreadType::Native,
            os_id: 7,
            name: name.into(),
            ..SampleThread::default()
        };
        let java = SampleThread {
            os_id: 7,
            java_id: 30,
            name: "load-7".into(),
            ..SampleThread::default()
        };
        watch.add(&ring, scanned("java"), 0);
        watch.add(&ring, java, 0x1000);
        watch.add(&ring, scanned("java"), 0);
        let record = watch.table.find(7).expect("a record");
        assert_eq!((record.thread.load(Relaxed), record.java_id.load(Relaxed)), (0x1000, 30));
        let (native, java) = (ThreadType::Native, ThreadType::Java);
        assert_eq!(told(&ring), [(native, "java".into()), (java, "load-7".into())]);
    }

    #[test]
    fn only_threads_that_ended_are_let_go() {
        let (watch, ring) = (watch(), Ring::new(RING_SMALLEST).unwrap());
        assert!(kernel::exists(kernel::gettid()));
        let ended = std::thread::spawn(kernel::gettid).join().unwrap();
        while kernel::exists(ended) {
            std::thread::yield_now();
        }
        watch.add(&ring, SampleThread { os_id: ended, ..SampleThread::default() }, 0);
        watch.scan_tasks(&ring, Known::new());
        assert!(watch.table.find(ended).is_none());
        assert!(watch.table.find(kernel::gettid()).is_some());
    }
}
