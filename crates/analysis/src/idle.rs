//! Which waiting is idleness: a thread that waits for work, not for a result.
//!
//! Told by the state that the sampler saw and by the innermost Java methods, so that a reader can
//! check it. A wait for a lock, a latch, a future or a socket's bytes is never taken for it:
//! somebody may be waiting for that thread.

use tare_profile::{ContextId, MethodKind, Profile, StringId};

/// States, by the names of their series, in which a thread does nothing. Who is blocked wants a
/// monitor, which is somebody's business.
pub(crate) const STATES: [&str; 4] = ["parked", "waiting", "sleeping", "system-call"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// For something that may matter.
    Other,
    /// In a queue, whoever asked. A pool's worker does so, but also who waits for an answer.
    Queue,
    /// For time to pass.
    Sleep,
    /// For work: in the loop of a pool, of a selector, of an acceptor, or of the JVM's own.
    Work,
}

/// Classes and methods in which only a thread waits that has nothing to do. A class that begins
/// with a dot is the end of a name: servers carry copies of the JDK's pools. A method that ends
/// with a star is the beginning of one.
const WORK: [(&str, &str); 31] = [
    (".ThreadPoolExecutor", "getTask"),
    ("java.util.concurrent.ForkJoinPool", "awaitWork"),
    ("java.util.concurrent.ForkJoinPool", "runWorker"),
    ("java.util.TimerThread", "mainLoop"),
    ("java.lang.ref.Reference", "waitForReferencePendingList"),
    ("java.lang.ref.ReferenceQueue", "remove*"),
    ("java.lang.ref.NativeReferenceQueue", "remove*"),
    ("java.lang.ProcessHandleImpl", "waitForProcessExit0"),
    ("sun.net.www.http.KeepAliveCache", "run"),
    // Selectors and acceptors: a thread that waits for whoever comes first.
    ("sun.nio.ch.EPoll", "wait"),
    ("sun.nio.ch.SelectorImpl", "select*"),
    ("sun.nio.ch.Net", "accept"),
    ("sun.nio.ch.UnixDomainSockets", "accept*"),
    ("sun.nio.ch.ServerSocketChannelImpl", "accept"),
    ("sun.nio.ch.NioSocketImpl", "accept"),
    ("java.net.ServerSocket", "accept"),
    ("java.net.ServerSocket", "implAccept"),
    ("io.netty.channel.epoll.Native", "epollWait*"),
    ("io.netty.channel.uring.Native", "ioUringEnter*"),
    ("org.apache.tomcat.jni.Poll", "poll*"),
    // Pools that are not made of the JDK's.
    ("io.netty.util.concurrent.SingleThreadEventExecutor", "takeTask"),
    ("io.netty.util.concurrent.GlobalEventExecutor", "takeTask"),
    ("io.netty.util.HashedWheelTimer$Worker", "waitForNextTick"),
    ("org.eclipse.jetty.util.thread.QueuedThreadPool", "idleJobPoll"),
    ("org.eclipse.jetty.util.thread.QueuedThreadPool$Runner", "idleJobPoll"),
    (".ReservedThreadExecutor$ReservedThread", "reservedWait"),
    ("org.jboss.threads.EnhancedQueueExecutor$ThreadBody", "run"),
    ("kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "park"),
    ("kotlinx.coroutines.scheduling.CoroutineScheduler$Worker", "tryPark"),
    ("scala.concurrent.forkjoin.ForkJoinPool", "awaitWork"),
    ("com.lmax.disruptor.BlockingWaitStrategy", "waitFor"),
];

/// What a wait of that kind is made of: these may stand between the wait and the method that asked
/// for it.
const MADE_OF: [&str; 8] = [
    "jdk.internal.misc.Unsafe",
    "java.util.concurrent.locks.",
    "java.lang.Object",
    "java.lang.Thread",
    "java.lang.ref.",
    "sun.nio.ch.",
    "java.net.",
    "java.nio.channels.",
];

/// Looks at stacks; the same method is looked at once.
pub(crate) struct Waits {
    /// By method; `None` if it has not been seen.
    methods: Vec<Option<Step>>,
}

/// What a method on the way from the wait outwards says.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Work,
    Queue,
    On,
    Stop,
}

impl Waits {
    pub(crate) fn new(profile: &Profile) -> Self {
        Waits { methods: vec![None; profile.methods.len()] }
    }

    /// What a thread that was found waiting in a context was waiting for. With no Java at all on
    /// its stack it is a thread of the JVM or of a library, whose waiting keeps no Java waiting.
    pub(crate) fn of(&mut self, profile: &Profile, context: ContextId) -> Wait {
        let mut found = Wait::Other;
        let mut java = false;
        for frame in profile.contexts.frames(context) {
            let id = profile.frames.get(frame).method;
            let method = profile.methods.get(id);
            match method.kind {
                MethodKind::Native | MethodKind::Kernel | MethodKind::Class => continue,
                MethodKind::Special if profile.strings.get(method.name) == "[no stack]" => continue,
                MethodKind::Special => return found,
                MethodKind::Java => java = true,
            }
            let step = *self.methods[id.index()]
                .get_or_insert_with(|| step(profile, method.class, method.name));
            if found == Wait::Other && is_sleep(profile, method.class, method.name) {
                found = Wait::Sleep;
            }
            match step {
                Step::Work => return Wait::Work,
                Step::Queue => found = Wait::Queue,
                Step::On => {}
                Step::Stop => return found,
            }
        }
        if java { found } else { Wait::Work }
    }
}

fn is_sleep(profile: &Profile, class: StringId, name: StringId) -> bool {
    profile.strings.get(class) == "java.lang.Thread"
        && profile.strings.get(name).starts_with("sleep")
}

fn step(profile: &Profile, class: StringId, name: StringId) -> Step {
    let (class, name) = (profile.strings.get(class), profile.strings.get(name));
    let is_work = |(of, method): &(&str, &str)| {
        let fits = if of.starts_with('.') { class.ends_with(of) } else { class == *of };
        fits && match method.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *method,
        }
    };
    if WORK.iter().any(is_work) {
        return Step::Work;
    }
    let concurrent = class.strip_prefix("java.util.concurrent.");
    let is_queue = concurrent.is_some_and(|rest| rest.contains("Queue") || rest.contains("Deque"));
    // Queues and selectors are wrapped by what has the same methods.
    let asks = ["take", "poll", "select"].iter().any(|begin| name.starts_with(begin));
    match () {
        () if is_queue && (name.starts_with("take") || name.starts_with("poll")) => Step::Queue,
        () if is_queue || asks => Step::On,
        () if concurrent.is_some() && name.ends_with("anagedBlock") => Step::On,
        () if MADE_OF.iter().any(|part| class.starts_with(part)) => Step::On,
        () => Step::Stop,
    }
}
