//! Marks what is reachable in the copy, with several threads if there are processors for them.
//!
//! A thread (`Worker`) has a stack of objects to look into. Who has much hands some of it to those
//! who have nothing, through the pool of the `Crew`. Nothing here allocates.
//!
//! **The threads** are made by the system call alone: they have no thread-local memory of their
//! own, so they call nothing but `clock_nanosleep`, and nobody in the copy runs beside them but the
//! thread that made them, which works with them and waits for their end.

use super::memory;
use super::objects::Objects;
use std::ffi::c_void;
use std::hint;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use tare_protocol::heap::wire::{FAILED_MEMORY, MIRROR, Marked, OBJECT_ARRAY, PRIMITIVE_ARRAY};

/// Elements of an array that are looked at in one go. The rest waits until the stack is empty, so
/// that a large array does not fill it.
const SLICE: u64 = 2048;

/// Objects that are on their way from memory while others are looked into.
const AHEAD: usize = 16;

/// No more threads than this: memory is the limit long before.
pub const MOST_THREADS: usize = 8;

/// What a thread hands over at most, what it must have to do so, and after how many objects it asks
/// itself whether it should.
const SHARE: usize = 512;
const ENOUGH: usize = 32;
const OFTEN: u32 = 64;

/// What the pool holds.
const POOL: usize = 16 * SHARE;

/// Of a thread's stack. What runs there is a few calls deep.
const STACK_BYTES: usize = 256 << 10;

pub struct Marker {
    pub objects: Objects,
    pub marked: Marked,
    workers: [Option<Worker>; MOST_THREADS],
    pool: &'static [AtomicU64],
}

impl Marker {
    /// Memory for everything, or the number of a failure. There are as many threads as there is
    /// memory for, and one at least.
    pub fn new(bytes: &'static [u8], start: u64, end: u64, threads: usize) -> Result<Self, u64> {
        let objects = Objects::new(bytes, start, end)?;
        let mut workers = [const { None }; MOST_THREADS];
        for worker in workers.iter_mut().take(threads.max(1)) {
            *worker = Worker::new(&objects);
        }
        let pool = memory::words(POOL).filter(|_| workers[0].is_some()).ok_or(FAILED_MEMORY)?;
        Ok(Marker { objects, marked: Marked::default(), workers, pool })
    }

    /// Marks everything that these roots reach, beside what is marked already.
    pub fn mark(&mut self, roots: impl Iterator<Item = u64>) {
        let Marker { objects, workers, pool, .. } = self;
        let mut all = workers.iter_mut().flatten();
        let Some(first) = all.next() else { return };
        for root in roots {
            first.reach(objects, root);
        }
        let crew = Crew::new(objects, pool);
        let mut tasks: [Option<Task<'_, '_>>; MOST_THREADS] = Default::default();
        for (task, worker) in tasks.iter_mut().zip(all) {
            crew.start(task.insert(Task { crew: &crew, worker }));
        }
        first.work(&crew);
        crew.wait();
        self.marked = Marked::default();
        for worker in self.workers.iter().flatten() {
            self.marked.objects += worker.marked.objects;
            self.marked.bytes += worker.marked.bytes;
            self.marked.strange += worker.marked.strange;
            self.marked.moved += worker.marked.moved;
        }
    }
}

/// A thread's own part of the work.
struct Worker {
    stack: &'static mut [u64],
    depth: usize,
    /// Arrays of which a part is still to be looked at: the address, and from which element on.
    slices: &'static mut [u64],
    slice_depth: usize,
    ahead: [u64; AHEAD],
    ahead_first: usize,
    ahead_count: usize,
    marked: Marked,
}

impl Worker {
    fn new(objects: &Objects) -> Option<Self> {
        let heap = objects.size();
        Some(Worker {
            // No object is pushed twice, and none is smaller than two words.
            stack: memory::area(heap / 16 + 64)?,
            depth: 0,
            slices: memory::area(heap / (SLICE as usize * 4) * 2 + 64)?,
            slice_depth: 0,
            ahead: [0; AHEAD],
            ahead_first: 0,
            ahead_count: 0,
            marked: Marked::default(),
        })
    }

    /// Works until nobody has anything left.
    fn work(&mut self, crew: &Crew<'_>) {
        let mut until_asked = OFTEN;
        loop {
            while let Some(object) = self.next() {
                self.look_into(crew.objects, object);
                until_asked -= 1;
                if until_asked == 0 {
                    until_asked = OFTEN;
                    crew.give(self);
                }
            }
            if self.slice_depth > 0 {
                self.slice_depth -= 2;
                let (array, from) =
                    (self.slices[self.slice_depth], self.slices[self.slice_depth + 1]);
                self.elements(crew.objects, array, from);
            } else if !crew.take(self) {
                return;
            }
        }
    }

    /// The next object to look into. The objects behind it are fetched meanwhile.
    fn next(&mut self) -> Option<u64> {
        while self.ahead_count < AHEAD && self.depth > 0 {
            self.depth -= 1;
            let object = self.stack[self.depth];
            prefetch(object);
            self.ahead[(self.ahead_first + self.ahead_count) % AHEAD] = object;
            self.ahead_count += 1;
        }
        if self.ahead_count == 0 {
            return None;
        }
        let object = self.ahead[self.ahead_first];
        self.ahead_first = (self.ahead_first + 1) % AHEAD;
        self.ahead_count -= 1;
        Some(object)
    }

    fn reach(&mut self, objects: &Objects, object: u64) {
        if object == 0 {
            return;
        }
        let Some(now) = objects.settled(object) else {
            self.marked.strange += 1;
            return;
        };
        self.marked.moved += u64::from(now != object);
        if objects.mark(now) {
            self.push(now);
        }
    }

    fn push(&mut self, object: u64) {
        // The room is for as many as there can be objects.
        if let Some(place) = self.stack.get_mut(self.depth) {
            *place = object;
            self.depth += 1;
        }
    }

    fn look_into(&mut self, objects: &Objects, object: u64) {
        let found = objects.class_at(object);
        let fits = |(_, size): &(usize, u64)| *size <= objects.end - object;
        let Some((place, size)) = found.filter(fits) else {
            objects.unmark(object);
            self.marked.strange += 1;
            return;
        };
        self.marked.objects += 1;
        self.marked.bytes += size;
        let class = objects.class(place);
        if objects.meet(place) {
            self.reach(objects, class.mirror);
        }
        match u64::from(class.kind) {
            PRIMITIVE_ARRAY => {}
            OBJECT_ARRAY => self.elements(objects, object, 0),
            kind => {
                objects.ranges(object, &class, |range| {
                    self.references(objects, object + range.offset, range.count);
                });
                if kind == MIRROR {
                    objects.kept_by(object).for_each(|kept| self.reach(objects, kept));
                }
            }
        }
    }

    fn elements(&mut self, objects: &Objects, array: u64, from: u64) {
        let length = objects.length(array);
        let Some((place, _)) = objects.class_at(array) else { return };
        let to = length.min(from + SLICE);
        if to < length
            && let Some(place) = self.slices.get_mut(self.slice_depth..self.slice_depth + 2)
        {
            place.copy_from_slice(&[array, to]);
            self.slice_depth += 2;
        }
        let first = array + u64::from(objects.class(place).size);
        self.references(objects, first + from * objects.reference_bytes(), to - from);
    }

    fn references(&mut self, objects: &Objects, at: u64, count: u64) {
        for number in 0..count {
            let place = at + number * objects.reference_bytes();
            if place > objects.end - 8 {
                return;
            }
            self.reach(objects, objects.reference(place));
        }
    }
}

/// The threads of one marking.
struct Crew<'a> {
    objects: &'a Objects,
    /// How many threads there are, how many of them have nothing, and how many others still use
    /// what is the first one's.
    threads: AtomicUsize,
    hungry: AtomicUsize,
    running: AtomicUsize,
    /// Objects for whoever has none, as many as `pooled` says; `locked` guards both.
    pool: &'static [AtomicU64],
    pooled: AtomicUsize,
    locked: AtomicBool,
}

/// What a thread is given at its start.
struct Task<'a, 'b> {
    crew: &'a Crew<'b>,
    worker: &'a mut Worker,
}

impl<'a> Crew<'a> {
    fn new(objects: &'a Objects, pool: &'static [AtomicU64]) -> Self {
        Crew {
            objects,
            threads: AtomicUsize::new(1),
            hungry: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            pool,
            pooled: AtomicUsize::new(0),
            locked: AtomicBool::new(false),
        }
    }

    /// Another thread, if the system allows it. The first one has not worked yet, so nobody takes
    /// the work for done.
    fn start(&self, task: &mut Task<'_, '_>) {
        let Some(stack) = memory::area::<u8>(STACK_BYTES) else { return };
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM;
        self.threads.fetch_add(1, SeqCst);
        self.running.fetch_add(1, SeqCst);
        // SAFETY: a stack of its own, whose end is aligned to a page; the task lives until `wait`
        // has seen that the thread has left it.
        let made = unsafe { libc::clone(run, top.cast(), flags, (&raw mut *task).cast()) };
        if made == -1 {
            self.threads.fetch_sub(1, SeqCst);
            self.running.fetch_sub(1, SeqCst);
        }
    }

    fn wait(&self) {
        while self.running.load(Acquire) > 0 {
            pause();
        }
    }

    /// Hands over a part of what a thread has, if somebody has nothing.
    fn give(&self, worker: &mut Worker) {
        if self.hungry.load(Relaxed) == 0 || worker.depth < ENOUGH || !self.lock_now() {
            return;
        }
        let before = self.pooled.load(Relaxed);
        let count = (worker.depth / 2).min(SHARE).min(POOL - before);
        worker.depth -= count;
        let given = &worker.stack[worker.depth..worker.depth + count];
        for (place, object) in self.pool[before..].iter().zip(given) {
            place.store(*object, Relaxed);
        }
        self.pooled.store(before + count, Relaxed);
        self.unlock();
    }

    /// Waits for something to do; whether there is any. Who gives is not hungry, and who was the
    /// last to become so finds what he gave himself: nothing is left behind.
    fn take(&self, worker: &mut Worker) -> bool {
        self.hungry.fetch_add(1, SeqCst);
        loop {
            if self.pooled.load(SeqCst) > 0 && self.lock_now() {
                let before = self.pooled.load(Relaxed);
                let count = before.min(SHARE);
                for place in &self.pool[before - count..before] {
                    worker.push(place.load(Relaxed));
                }
                self.pooled.store(before - count, Relaxed);
                if count > 0 {
                    self.hungry.fetch_sub(1, SeqCst);
                }
                self.unlock();
                if count > 0 {
                    return true;
                }
            }
            if self.hungry.load(SeqCst) == self.threads.load(SeqCst)
                && self.pooled.load(SeqCst) == 0
            {
                return false;
            }
            pause();
        }
    }

    fn lock_now(&self) -> bool {
        for _ in 0..100 {
            if self.locked.compare_exchange(false, true, Acquire, Relaxed).is_ok() {
                return true;
            }
            hint::spin_loop();
        }
        false
    }

    fn unlock(&self) {
        self.locked.store(false, Release);
    }
}

extern "C" fn run(task: *mut c_void) -> libc::c_int {
    // SAFETY: what `start` passed; it lives until `running` tells that we are through.
    let task = unsafe { &mut *task.cast::<Task<'_, '_>>() };
    let crew = task.crew;
    task.worker.work(crew);
    crew.running.fetch_sub(1, Release);
    0
}

/// A moment's sleep: a copy yields the processor to everybody.
fn pause() {
    let moment = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
    // SAFETY: reads a local.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const moment, std::ptr::null_mut())
    };
}

fn prefetch(at: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which no address makes fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
#[path = "mark_tests.rs"]
mod tests;
