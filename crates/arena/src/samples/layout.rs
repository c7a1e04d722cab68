//! Where things are in the memory of a sampling session, for the agent that writes it and the
//! front end that drains it. LAYOUT.md describes the whole.

pub const MAGIC: u64 = u64::from_le_bytes(*b"TARESMP1");

/// Bytes of the header; the ring follows.
pub const HEADER: usize = 4096;

/// Bytes of the memory in which the front end says, in the first `u64`, up to where it has read. It
/// is a file of its own: of the stream itself the front end writes nothing.
pub const POSITION: usize = 4096;

/// Sizes of ring that the agent makes: powers of two, for a cheap modulo.
pub const RING_SMALLEST: u64 = 1 << 20;
pub const RING_LARGEST: u64 = 1 << 28;

/// The header. All fields are `u64`.
pub mod header {
    pub const MAGIC: usize = 0;
    /// Bytes of the ring.
    pub const CAPACITY: usize = 8;
    /// Where the next record begins, in bytes since the session began. Raised by compare-and-swap.
    pub const HEAD: usize = 16;
    /// Up to where the ring was given free again, which is never past what the front end has read.
    pub const TAIL: usize = 32;
    /// `CLOCK_MONOTONIC` and the wall clock (since 1970), in nanoseconds, when the session began.
    pub const STARTED: usize = 40;
    pub const STARTED_UNIX: usize = 48;
    /// The monotonic clock at the agent's last look; when this stands still, so does the JVM.
    pub const SEEN: usize = 56;
    /// The processor time of the process at the start and at the last look, without that of the
    /// agent's own threads, which are not sampled.
    pub const CPU_STARTED: usize = 64;
    pub const CPU_SEEN: usize = 72;
    /// The interval in nanoseconds that is asked for now.
    pub const INTERVAL: usize = 80;
    /// 1 when the session has ended and nothing more will come.
    pub const ENDED: usize = 88;
    /// The counters, in the order of [`super::Counter`].
    pub const COUNTERS: usize = 256;
}

/// The head of every record: a `u32` that is written last. Zero means not yet written.
pub mod record {
    /// Bytes of the record with its head, a multiple of eight, in the lower 24 bits.
    pub const SIZE_MASK: u32 = 0x00ff_ffff;
    pub const KIND_SHIFT: u32 = 24;
    /// Added to the kind while the record is being written: its size is known, its content not.
    pub const UNFINISHED: u32 = 0x80;

    pub const SAMPLE: u32 = 1;
    pub const TRACE: u32 = 2;
    pub const METHOD: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const THREAD_END: u32 = 5;
    /// The rest of the ring up to its end, which is too short for the record that came next.
    pub const PADDING: u32 = 6;
    /// A kind of event: its name and fields.
    pub const EVENT_KIND: u32 = 7;
    /// A text that events refer to.
    pub const TEXT: u32 = 8;
    pub const EVENT: u32 = 9;

    /// No record is longer, so that the ring always holds many.
    pub const LARGEST: usize = 1 << 18;
}

/// A sample, [`SIZE`](sample::SIZE) bytes.
pub mod sample {
    pub const THREAD: usize = 4;
    pub const TIME: usize = 8;
    pub const WEIGHT: usize = 16;
    pub const JAVA_ID: usize = 24;
    pub const TRACE: usize = 32;
    pub const STATE: usize = 36;
    pub const FLAGS: usize = 37;
    pub const SIZE: usize = 40;

    /// The thread was not signalled, because it had not run since its last sample.
    pub const FLAG_UNCHANGED: u8 = 1;
}

/// An event: a head, then a `u64` for each field of its kind.
pub mod event {
    pub const KIND: usize = 4;
    pub const TIME: usize = 8;
    pub const DURATION: usize = 16;
    pub const JAVA_ID: usize = 24;
    pub const THREAD: usize = 32;
    pub const TRACE: usize = 36;
    pub const HEAD: usize = 40;

    /// No kind has more fields.
    pub const FIELDS_MOST: usize = 32;
}

/// A trace: a head, then frames, the innermost first.
pub mod trace {
    pub const ID: usize = 4;
    pub const FRAMES: usize = 8;
    pub const FLAGS: usize = 12;
    pub const HEAD: usize = 16;

    /// Frames towards the root are missing: the stack is deeper than the limit.
    pub const FLAG_CUT: u32 = 1;
}

/// A frame of a trace.
pub mod frame {
    /// A method's key, an address, the code of a [`super::Special`], or the id of a text.
    pub const VALUE: usize = 0;
    /// Index of the bytecode, or -1.
    pub const BCI: usize = 8;
    pub const KIND: usize = 12;
    pub const HOW: usize = 13;
    pub const SIZE: usize = 16;

    pub const JAVA: u8 = 1;
    pub const NATIVE: u8 = 2;
    pub const KERNEL: u8 = 3;
    pub const SPECIAL: u8 = 4;
    /// The class of an object that was allocated, by the text that is its signature.
    pub const CLASS: u8 = 5;
}

macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            pub const ALL: &[$type] = &[$($type::$variant,)+];

            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            /// By its number in the shared memory; `None` for what a later version invented.
            #[must_use]
            pub fn from_code(code: u64) -> Option<Self> {
                usize::try_from(code).ok().and_then(|code| Self::ALL.get(code)).copied()
            }
        }
    };
}

named! {
    /// Why a stack, or the part of it above, could not be told. Stands in a trace as a frame.
    Special {
        /// No stack was to be had, and there is no better word.
        Unknown = "[unknown]",
        /// The thread was in Java code, at a place where no frame can be made out.
        UnknownJava = "[unknown_Java]",
        /// The thread was in Java code, and its caller cannot be found.
        NotWalkableJava = "[not_walkable_Java]",
        /// The thread was being deoptimised.
        Deoptimised = "[deoptimization]",
        /// The thread was about to end.
        ThreadExit = "[thread_exit]",
        /// The JVM's thread state is none that it documents.
        UnknownState = "[unknown_state]",
        /// Reading the stack faulted; the fault was caught.
        Fault = "[fault]",
        /// The JVM has no method for walking stacks here.
        NoWalker = "[no_walker]",
        /// The rest of a virtual thread's stack is not on the carrier's but in the heap, to be
        /// brought back when it is returned to.
        Continuation = "[frames_in_heap]",
        /// The rest of a stack that is deeper than the limit.
        Cut = "[deeper]",
        /// A method of which the class has another version by now, and which cannot be named.
        /// Unlike the others it does not end a stack.
        OldMethod = "[old_method]",
    }
}

named! {
    /// What a thread was doing. A processor sample is always `Running`.
    State {
        Unknown = "unknown",
        /// On a processor.
        Running = "running",
        /// Able to run, and waiting for a processor.
        Runnable = "runnable",
        /// In `Object.wait`.
        Waiting = "waiting",
        /// Waiting for a monitor.
        Blocked = "blocked",
        /// In `LockSupport.park`.
        Parked = "parked",
        Sleeping = "sleeping",
        /// In a system call, or waiting in native code.
        SystemCall = "system call",
    }
}

named! {
    /// How the code of a Java frame was running, where that is known.
    How {
        Unknown = "unknown",
        Interpreted = "interpreted",
        Compiled = "compiled",
        Inlined = "inlined",
        /// A method declared `native`.
        Native = "native",
    }
}

named! {
    /// Counters in the header: what was taken, what failed, what was lost and why.
    Counter {
        Samples = "samples",
        /// Nanoseconds that the samples stand for.
        Weight = "weight",
        /// Expiries of a timer that came while the one before was still being delivered. Their
        /// time is in the weight of the sample that told of them.
        Overruns = "overruns",
        Traces = "traces",
        /// Samples without a whole stack: their trace has a [`Special`] frame, in the same order.
        Failed = "failed",
        /// Samples not written: the front end had not made room in the ring.
        LostRing = "lost: the front end reads too slowly",
        /// Samples not written: every buffer for walking was in use.
        LostBuffer = "lost: no buffer for walking the stack",
        /// Signals on a thread that is not in the table.
        LostThread = "lost: unknown thread",
        /// Nanoseconds that lost samples would have stood for.
        LostWeight = "lost weight",
        /// Threads that could not be watched: the table or the process's limits were exhausted.
        ThreadsRefused = "threads not watched",
        ThreadsSeen = "threads seen",
        /// Signals of ours that arrived after the session, or when it was paused.
        Late = "late signals",
        /// Faults caught while walking.
        Faults = "faults",
        /// Samples of idle threads that were taken without waking them.
        Unchanged = "unchanged",
        /// Nanoseconds of the weight that the samples took themselves, and not the program.
        Own = "own",
        /// Methods in traces whose id is none that the JVM gave. They have no name.
        Unproven = "methods that the JVM does not know",
        Events = "events",
        /// Events not written: the front end had not made room in the ring.
        LostEvents = "events lost: the front end reads too slowly",
        /// Failures by kind, in the order of [`Special`]: this is where they begin.
        FailedBase = "failed:",
    }
}

impl Counter {
    /// Where the counter is in the header.
    #[must_use]
    pub fn at(self) -> usize {
        header::COUNTERS + self as usize * 8
    }

    /// Where the counter of a kind of failure is.
    #[must_use]
    pub fn failure(kind: Special) -> usize {
        Counter::FailedBase.at() + kind as usize * 8
    }
}
