//! Threads of the profiled program, those of the JVM included.

use crate::handle::{StringId, ThreadId};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ThreadKind {
    /// A platform thread that runs Java.
    #[default]
    Java,
    /// A virtual thread; its samples are its own, not its carrier's.
    Virtual,
    /// A collector, compiler or other thread of the JVM itself.
    Vm,
    /// A thread that the JVM does not know.
    Native,
}

/// A thread. Times are nanoseconds since the start of the run, as everywhere in a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    pub kind: ThreadKind,
    pub name: StringId,
    /// `Thread.threadId()`.
    pub java_id: Option<u64>,
    /// The number that the operating system gives it.
    pub os_id: Option<u64>,
    /// `None` if it was there before the run began, or that is not known.
    pub started: Option<u64>,
    /// `None` if it outlived the run, or that is not known.
    pub ended: Option<u64>,
}

/// All threads of a profile. Row 0 is [`ThreadId::UNKNOWN`].
#[derive(Clone, Debug)]
pub struct Threads {
    rows: Vec<Thread>,
}

impl Default for Threads {
    fn default() -> Self {
        Threads { rows: vec![Thread::default()] }
    }
}

impl Threads {
    /// Adds a thread. Two threads of one life are two rows, whatever their names and numbers.
    ///
    /// # Panics
    /// If there would be more than 2³²−1 threads.
    pub fn push(&mut self, thread: Thread) -> ThreadId {
        let row = u32::try_from(self.rows.len()).expect("more than 2³²−1 threads");
        self.rows.push(thread);
        ThreadId::new(row)
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn get(&self, id: ThreadId) -> &Thread {
        &self.rows[id.index()]
    }

    /// For what becomes known later: a new name, the end.
    ///
    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn get_mut(&mut self, id: ThreadId) -> &mut Thread {
        &mut self.rows[id.index()]
    }

    /// The number of rows, with the unknown thread.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no thread but the unknown one.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// All rows, the unknown thread first.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        (0..).zip(&self.rows).map(|(row, thread)| (ThreadId::new(row), thread))
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Thread>()
    }
}
