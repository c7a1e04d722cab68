//! What threads wait for, and how to tell it of a parked one where nobody has: by its stack and by
//! the class of the object that it is parked for.
//!
//! All of `java.util.concurrent` parks by one method. The methods that it is called by tell apart
//! who wants a lock that somebody has, and who has nothing to do.

const CONCURRENT: &str = "java.util.concurrent.";
const SYNCHRONIZER: &str = "java.util.concurrent.locks.AbstractQueued";

/// What a thread waited for: the field `operation` of a `lock` event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wait {
    /// To enter a monitor that another thread had.
    MonitorEnter,
    /// For a lock of `java.util.concurrent` that one thread has at a time.
    Lock,
    /// For what several threads may have: read locks, semaphores.
    SharedLock,
    /// In `Object.wait`.
    MonitorWait,
    /// For a condition of a lock to be signalled, or a latch to open.
    Condition,
    /// For something to come into a queue: how workers of a pool are idle.
    Queue,
    /// For the result of a future.
    Future,
    Sleep,
    /// In `LockSupport.park`, for something else, or nobody can tell what for.
    Park,
}

impl Wait {
    pub const ALL: [Wait; 9] = [
        Wait::MonitorEnter,
        Wait::Lock,
        Wait::SharedLock,
        Wait::MonitorWait,
        Wait::Condition,
        Wait::Queue,
        Wait::Future,
        Wait::Sleep,
        Wait::Park,
    ];

    /// A lasting name, used in files.
    pub fn name(self) -> &'static str {
        match self {
            Wait::MonitorEnter => "monitor enter",
            Wait::Lock => "lock",
            Wait::SharedLock => "shared lock",
            Wait::MonitorWait => "monitor wait",
            Wait::Condition => "condition",
            Wait::Queue => "queue",
            Wait::Future => "future",
            Wait::Sleep => "sleep",
            Wait::Park => "park",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Wait::ALL.into_iter().find(|wait| wait.name() == name)
    }

    /// Whether somebody else had what the thread wanted. The others wait for something to happen;
    /// most often that is nothing to worry about.
    pub fn is_contention(self) -> bool {
        matches!(self, Wait::MonitorEnter | Wait::Lock | Wait::SharedLock)
    }
}

impl Wait {
    /// What a thread parks for. `blocker` is the class of the object it is parked for, empty if
    /// that is not known; `frames` are classes and methods of its stack, innermost first.
    pub fn of_park<'a>(
        blocker: &str,
        frames: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Wait {
        let mut found = None;
        let mut frames = frames.into_iter();
        while let Some((class, method)) = frames.next() {
            // Whoever wants a lock does so also inside of a queue, or after it was signalled.
            let of_lock = class.starts_with(SYNCHRONIZER) && !class.ends_with("ConditionObject");
            if found == Some(Wait::Lock) && !of_lock {
                break;
            }
            match step(class, method) {
                Step::On => {}
                Step::Perhaps(wait) => found = found.or(Some(wait)),
                Step::Is(wait @ (Wait::Lock | Wait::SharedLock)) => {
                    let mut inside = frames.take_while(|(class, _)| class.starts_with(CONCURRENT));
                    let latch = inside.any(|(class, _)| is_latch(class));
                    return if latch { Wait::Condition } else { of_blocker(blocker, wait) };
                }
                Step::Is(wait) => return of_blocker(blocker, wait),
                Step::Stop => break,
            }
        }
        of_blocker(blocker, found.unwrap_or(Wait::Park))
    }
}

/// Whether waiting for an object of a class is waiting for something to happen, although it is made
/// like a lock: nobody has a latch.
fn is_latch(class: &str) -> bool {
    class.starts_with("java.util.concurrent.CountDownLatch")
}

fn of_blocker(class: &str, by_stack: Wait) -> Wait {
    let concurrent = class.strip_prefix(CONCURRENT);
    match by_stack {
        Wait::Lock | Wait::SharedLock if is_latch(class) => Wait::Condition,
        Wait::Park => match concurrent {
            Some(_) if is_latch(class) => Wait::Condition,
            Some(rest) if rest.ends_with("ConditionObject") => Wait::Condition,
            Some(rest) if rest.starts_with("ForkJoinPool") || rest.contains("Queue$") => {
                Wait::Queue
            }
            Some(rest) if rest.contains("Future") || rest.starts_with("ForkJoinTask") => {
                Wait::Future
            }
            Some(rest) if rest.starts_with("Semaphore$") => Wait::SharedLock,
            Some(rest) if rest.starts_with("locks.") => Wait::Lock,
            _ => Wait::Park,
        },
        other => other,
    }
}

enum Step {
    /// Part of how threads park.
    On,
    /// This, unless a method further out tells more.
    Perhaps(Wait),
    Is(Wait),
    /// The program's own.
    Stop,
}

fn step(class: &str, method: &str) -> Step {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| method.starts_with(start));
    if class == "java.lang.Thread" && begins(&["sleep"]) {
        return Step::Is(Wait::Sleep);
    }
    let Some(rest) = class.strip_prefix(CONCURRENT) else {
        // Virtual threads park in their own way, below the same methods.
        let machinery = ["java.lang.", "jdk.internal.", "sun.misc."];
        return if machinery.iter().any(|begin| class.starts_with(begin)) {
            Step::On
        } else if class.ends_with(".ThreadPoolExecutor") && method == "getTask" {
            // Servers carry copies of the JDK's pools.
            Step::Is(Wait::Queue)
        } else {
            Step::Stop
        };
    };
    let queue = rest.contains("Queue") || rest.contains("Deque");
    match rest {
        _ if class.starts_with(SYNCHRONIZER) && rest.contains("Condition") => {
            Step::Perhaps(Wait::Condition)
        }
        _ if class.starts_with(SYNCHRONIZER) => match method {
            _ if begins(&["acquireShared", "tryAcquireShared", "doAcquireShared"]) => {
                Step::Is(Wait::SharedLock)
            }
            "acquireInterruptibly" | "tryAcquireNanos" | "acquireQueued" => Step::Is(Wait::Lock),
            // Newer JDKs have one such method for both, below one that tells.
            "acquire" | "parkAndCheckInterrupt" => Step::Perhaps(Wait::Lock),
            _ => Step::On,
        },
        "locks.StampedLock" if method.contains("Read") => Step::Is(Wait::SharedLock),
        "locks.StampedLock" if method.contains("Write") => Step::Is(Wait::Lock),
        "locks.LockSupport" => Step::On,
        _ if rest.starts_with("locks.") => Step::On,
        "ThreadPoolExecutor" | "ForkJoinPool" if begins(&["getTask", "awaitWork", "runWorker"]) => {
            Step::Is(Wait::Queue)
        }
        "ForkJoinPool" => Step::On,
        _ if queue
            && begins(&["take", "poll", "transfer", "xfer", "awaitMatch", "awaitFulfill"]) =>
        {
            Step::Is(Wait::Queue)
        }
        _ if queue => Step::On,
        _ if rest.starts_with("CompletableFuture")
            || rest.starts_with("FutureTask")
            || rest.starts_with("ForkJoinTask") =>
        {
            Step::Is(Wait::Future)
        }
        _ if rest.starts_with("Phaser") || rest.starts_with("Exchanger") => {
            Step::Is(Wait::Condition)
        }
        _ => Step::On,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(blocker: &str, stack: &[(&str, &str)], expected: Wait) {
        let park = [
            ("jdk.internal.misc.Unsafe", "park"),
            ("java.util.concurrent.locks.LockSupport", "park"),
        ];
        let frames = park.into_iter().chain(stack.iter().copied());
        assert_eq!(Wait::of_park(blocker, frames), expected, "{blocker} {stack:?}");
    }

    const AQS: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer";
    const CONDITION: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";

    #[test]
    fn locks_are_told_from_idle_pools() {
        let lock = "java.util.concurrent.locks.ReentrantLock$NonfairSync";
        check(lock, &[(AQS, "acquire"), (AQS, "acquire"), ("a.B", "run")], Wait::Lock);
        check(lock, &[(AQS, "parkAndCheckInterrupt"), (AQS, "acquireQueued")], Wait::Lock);
        let rw = "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync";
        check(rw, &[(AQS, "acquire"), (AQS, "acquireShared"), ("a.B", "x")], Wait::SharedLock);
        let latch = "java.util.concurrent.CountDownLatch$Sync";
        check(latch, &[(AQS, "acquire"), (AQS, "acquireSharedInterruptibly")], Wait::Condition);
        let outer = ("java.util.concurrent.CountDownLatch", "await");
        check("", &[(AQS, "acquire"), (AQS, "tryAcquireSharedNanos"), outer], Wait::Condition);
        check(CONDITION, &[(CONDITION, "await"), ("a.B", "take")], Wait::Condition);
        let queue = "java.util.concurrent.LinkedBlockingQueue";
        check(CONDITION, &[(CONDITION, "await"), (queue, "take"), ("a.B", "x")], Wait::Queue);
        check(CONDITION, &[(CONDITION, "await"), (queue, "put"), ("a.B", "x")], Wait::Condition);
        // Who was signalled wants the lock again.
        check(CONDITION, &[(AQS, "acquire"), (CONDITION, "await"), (queue, "take")], Wait::Lock);
        let reentrant = "java.util.concurrent.locks.ReentrantLock";
        check(lock, &[(AQS, "acquire"), (reentrant, "lock"), (queue, "poll")], Wait::Lock);
    }

    #[test]
    fn results_and_bare_parking_are_neither() {
        let future = "java.util.concurrent.FutureTask";
        check(future, &[(future, "awaitDone"), (future, "get")], Wait::Future);
        check("java.util.concurrent.CompletableFuture$Signaller", &[("a.B", "x")], Wait::Future);
        check("", &[("java.util.concurrent.ForkJoinPool", "awaitWork")], Wait::Queue);
        check("", &[("java.lang.VirtualThread", "parkNanos"), ("a.B", "x")], Wait::Park);
        check("", &[("java.lang.Thread", "sleep"), ("a.B", "x")], Wait::Sleep);
        let stamped = "java.util.concurrent.locks.StampedLock";
        check(stamped, &[(stamped, "acquireWrite"), (stamped, "writeLock")], Wait::Lock);
        check(stamped, &[(stamped, "acquireRead"), (stamped, "readLock")], Wait::SharedLock);
    }
}
