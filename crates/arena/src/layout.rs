//! Offsets and sizes, one place for the agent, the readers and the probe runtime: the agent's build
//! script writes `TareLayout.java` from it (`crates/agent/build/layout.rs`).

mod followed;
pub mod spread;

pub use followed::{kept, others};

/// The unit in which memory is handed out. Each page begins with what it is and whose.
pub const PAGE: usize = 4096;

/// What a thread's tree takes at once.
pub const EXTENT: usize = 16 * PAGE;

/// From so many trees on, those of threads that have ended are used again.
pub const TREES_MAX: usize = 1024;

/// A node with more children than this has a table of them.
pub const LIST_MAX: usize = 8;

/// A session's addresses share their upper half; offsets are the lower one.
pub const SLOT_BYTES: u64 = 1 << 32;

pub const MAGIC: u64 = u64::from_le_bytes(*b"TAREARN2");

/// The header: the first page.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const SESSION: usize = 24;
    /// What a node holds beside its invocations: a [`super::Holds`].
    pub const HOLDS: usize = 28;
    /// Where the first page that belongs to a tree can be; the table of threads lies before it.
    pub const FIRST: usize = 56;
    pub const BUMP: usize = 64;
    pub const LIMIT: usize = 72;
    pub const RESERVE: usize = 80;
    pub const REFUSED: usize = 88;
    pub const LOST: usize = 96;
    pub const NODE: usize = 104;
    pub const LOCK: usize = 108;
    pub const POOL: usize = 112;
    pub const ROOTS: usize = 116;
    /// How many trees of platform threads were made.
    pub const TREES: usize = 120;
    /// The first tree of a thread that has ended.
    pub const ENDED: usize = 124;
    /// Two readings of both clocks give the rate of the first: (ticks, nanoseconds) at the start
    /// of the session and at the last look of the agent.
    pub const TICKS_0: usize = 128;
    pub const NANOS_0: usize = 136;
    pub const TICKS_1: usize = 144;
    pub const NANOS_1: usize = 152;
    pub const DEPTH: usize = 160;
    pub const CPU: usize = 164;
    pub const FOLD: usize = 168;
    /// 1 once the memory cannot grow any more: threads then prune their trees.
    pub const FULL: usize = 172;
    /// Ticks in which all threads stood still because classes were changed.
    pub const PAUSED: usize = 176;
    /// How often a thread began to prune its tree, and was done.
    pub const PRUNING: usize = 184;
    pub const PRUNED: usize = 188;
    /// Nodes that were pruned.
    pub const DROPPED: usize = 192;
    /// In a trace: bytes of the records in a ring.
    pub const RING: usize = 200;
    /// The agent's own ring.
    pub const AGENT_RING: usize = 204;
    /// Where bytecodes are sampled: how many from one sample to the next; 1 when that is so on
    /// average only; and the seed of what is random in it.
    pub const EVERY: usize = 208;
    pub const RANDOM: usize = 212;
    pub const SEED: usize = 216;
    /// How often a thread may have waited for one that was held up for our sake, and nobody could
    /// tell; and how often threads were not looked at, because there were too many.
    pub const DOUBTED: usize = 224;
    pub const UNSEEN: usize = 232;
    /// In a trace: nanoseconds that a thread may wait for room in its ring.
    pub const WAIT: usize = 240;
    /// How often an agent written in Java was to be told of a context, and how often it was.
    pub const NOTED: usize = 248;
    pub const TOLD: usize = 256;
    /// 1 when no node is pruned: objects that are watched refer to theirs.
    pub const KEEPS: usize = 264;
    /// Where calls of roots are drawn: one in so many is followed, which the agent may change at any
    /// moment. How many of them are kept of each root, the slowest and as many others; where their
    /// places are; and trees that wait for a call.
    pub const FOLLOW: usize = 272;
    pub const KEPT: usize = 276;
    pub const KEPT_AT: usize = 280;
    pub const SPARE: usize = 284;
    /// Where some calls are timed: ticks from which on a call is long, see [`super::node::LONG`].
    pub const LONG: usize = 288;
    /// Pages with lengths of calls ([`super::spread`]): how many there are, and may be; and calls whose
    /// length found no room.
    pub const SPREADS: usize = 296;
    pub const SPREADS_MOST: usize = 300;
    pub const UNSPREAD: usize = 304;
}

/// The table of threads: entries of thread id and, where threads have no field of ours, their
/// current node.
pub mod threads {
    pub const AT: usize = super::PAGE;
    pub const ENTRIES: usize = 1 << 15;
    pub const BYTES: usize = ENTRIES * 16;
    /// Was somebody's: not empty, so that searches go on.
    pub const LEFT: i64 = -1;
}

/// The head of every other page.
pub mod page {
    pub const KIND: usize = 0;
    pub const TREE: usize = 4;
    pub const PAGES: usize = 8;
    /// Always zero.
    pub const NOBODY: usize = 12;
    pub const HEAD: usize = 32;
    pub const KIND_TREE: u32 = 1;
    pub const KIND_NODES: u32 = 2;
    pub const KIND_TABLE: u32 = 3;
    pub const KIND_REGION: u32 = 4;
    pub const KIND_RING: u32 = 5;
    pub const KIND_STACK: u32 = 6;
}

/// The first page of a tree. What lies before these places is zero or the page's head, also in a
/// ring: a probe of an earlier session may take a ring for a node.
pub mod tree {
    pub const THREAD: usize = 64;
    /// The next free byte, and the end of the free ones, which is written together with it.
    pub const FREE: usize = 72;
    pub const END: usize = 76;
    /// The next tree of the pool.
    pub const NEXT: usize = 80;
    pub const FLAGS: usize = 84;
    /// Ticks that are kept out of the tree's times: what took longer than a probe should.
    pub const ADJUST: usize = 88;
    /// The next free byte for a table of children.
    pub const TABLE: usize = 96;
    /// Length and (<< 16) coder, then the bytes.
    pub const NAME: usize = 100;
    pub const NAME_MAX: usize = 96;
    /// Bytecodes after which an agent written in Java is told; zero is new. And those until then,
    /// where calls are counted.
    pub const EVERY: usize = 200;
    pub const LEFT: usize = 204;
    /// Where bytecodes are sampled.
    pub const STACK: usize = 208;
    /// The first of the nodes that can be used again.
    pub const FREED: usize = 212;
    /// What is pruned next: contexts below this.
    pub const SIEVE: usize = 216;
    /// The first of the figures of its regions.
    pub const REGIONS: usize = 220;
    pub const ROOT: usize = 224;
    /// Where calls of roots are drawn: the tree for the thread's next followed call, and how many
    /// calls of roots there were.
    pub const SPARE_TREE: usize = EVERY;
    pub const DRAWN: usize = LEFT;
    /// Where the next context's lengths go.
    pub const SPREADS: usize = STACK;
    /// The tree of a followed call has no name. The thread's own tree; its nodes in the order in
    /// which they were made, first and last; in how many places it is kept; when the call began,
    /// and how long it took.
    pub const OWNER: usize = 104;
    pub const MADE: usize = 108;
    pub const MADE_LAST: usize = 112;
    pub const KEPT: usize = 116;
    pub const BEGUN: usize = 120;
    pub const TOOK: usize = 128;
    /// For how many calls of its root it stands: one in so many was followed when it began.
    pub const WEIGHT: usize = 136;
    /// Whoever leaves a child of the root leaves the subgraph.
    pub const FLAG_LEAVES: u32 = 1;
    /// A tree of the pool, for virtual threads.
    pub const FLAG_VIRTUAL: u32 = 2;
    /// Of several platform threads, one after the other.
    pub const FLAG_SHARED: u32 = 4;
    /// Of one call at a time, that is followed.
    pub const FLAG_FOLLOWED: u32 = 8;
}

/// The figures of a region in one tree: two pages.
pub mod region {
    /// The next region of the same tree.
    pub const NEXT: usize = 32;
    pub const REGION: usize = 36;
    pub const COUNT: usize = 40;
    pub const TOTAL: usize = 48;
    pub const MIN: usize = 56;
    pub const MAX: usize = 64;
    pub const TIMES: usize = 128;
    pub const BYTES: usize = 8192;
    /// Up to 2^SHIFT ticks there is a stretch for each; then so many for each power of two.
    pub const SHIFT: u32 = 4;
}

/// The ring of a trace: a page with the places below, then the records. What a tree's first page
/// has up to its name, this has, too.
pub mod ring {
    /// Bytes of the records: a power of two.
    pub const SIZE: usize = 184;
    /// How many traced methods the thread is in.
    pub const DEPTH: usize = 188;
    /// Where the next record begins, in bytes since the ring was made.
    pub const HEAD: usize = 192;
    /// Up to where the writer may write before it has to look at the tail.
    pub const LIMIT: usize = 200;
    /// Ticks when the ring was found full, while it is; and what was dropped since.
    pub const GAP_SINCE: usize = 208;
    pub const GAP_EVENTS: usize = 216;
    /// The least depth meanwhile.
    pub const GAP_DEPTH: usize = 224;
    /// Records that found no room, in all.
    pub const DROPPED: usize = 232;
    /// Ticks that the thread has waited for room, in all.
    pub const WAITED: usize = 240;
    /// Those of them that no record tells of yet.
    pub const HELD: usize = 248;
    /// The size less one, for writers: in memory that has become zeros it leads to the first
    /// record.
    pub const MASK: usize = 228;
    pub const RECORD: usize = 16;
    /// The smallest ring.
    pub const LEAST: usize = 1 << 16;
}

/// How far the front end has come in each ring of a trace: a file of its own, the only one that it
/// writes. In the JVM it is mapped in the session's slot, behind everything else.
pub mod tails {
    use super::PAGE;

    /// Where in the slot, as a power of two.
    pub const AT_BIT: u32 = 31;
    pub const AT: u64 = 1 << AT_BIT;
    /// From the offset of a ring to that of its tail.
    pub const SHIFT: u32 = 9;

    /// Where the tail of a ring is in the file: a `u64` for each page of the arena.
    #[must_use]
    pub fn of(ring: u64) -> u64 {
        ring >> SHIFT
    }

    /// The file's length for an arena of so many bytes: whole pages.
    #[must_use]
    pub fn length(arena: u64) -> u64 {
        of(arena).next_multiple_of(PAGE as u64)
    }
}

/// What a record of a trace tells.
pub mod record {
    pub const ENTRY: u8 = 1;
    pub const EXIT: u8 = 2;
    pub const THROWN: u8 = 3;
    pub const CAUGHT: u8 = 4;
    pub const GAP: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const NAME: u8 = 7;
    pub const HELD: u8 = 8;
    pub const COMPILED: u8 = 9;
    pub const DISCARDED: u8 = 10;
    pub const PAUSE: u8 = 11;
    /// Bits of the depth, below those of the kind.
    pub const DEPTH_BITS: u32 = 24;
    /// Added to the length of a thread's name.
    pub const UTF16: u32 = 1 << 16;
    pub const VIRTUAL: u32 = 1 << 17;
}

/// The stack of a tree, where bytecodes are sampled. Its addresses are multiples of its size.
pub mod stack {
    pub const BYTES: usize = 32_768;
    /// Bytecodes until the next sample, and how many they were after the last one.
    pub const LEFT: usize = 32;
    pub const INTERVAL: usize = 36;
    /// The state of the random numbers.
    pub const RANDOM: usize = 40;
    /// The first place; below it is the root's.
    pub const FIRST: usize = 64;
    /// A place: the id of a method and, once a sample has looked for it, its node.
    pub const PLACE_BYTES: usize = 8;
    pub const PLACE_NODE: usize = 4;
}

/// The ring from which an agent written in Java is told of contexts, and other tables that only the
/// agent's own process has.
pub mod own {
    /// Slots of the ring, how many words each has, and where in it they begin. Offsets are bytes.
    pub const RING_SLOTS: usize = 16_384;
    pub const RING_SLOT_WORDS: usize = 4;
    pub const RING_HEAD: usize = 0;
    pub const RING_TAIL: usize = 8;
    /// How far the agent is, what it is to do, and how often it was called.
    pub const RING_STATE: usize = 16;
    pub const RING_ORDER: usize = 24;
    pub const RING_CALLS: usize = 32;
    pub const RING_FIRST: usize = 64;
    pub const STATE_LOADING: u64 = 0;
    pub const STATE_READY: u64 = 1;
    pub const STATE_OVER: u64 = 2;
    pub const ORDER_SERVE: u64 = 0;
    /// Tell of what is in the ring, and of the end; tell of the end; call the agent no more.
    pub const ORDER_DRAIN: u64 = 1;
    pub const ORDER_END: u64 = 2;
    pub const ORDER_LEAVE: u64 = 3;
    /// Tasks that may be on their way at once.
    pub const TASKS: usize = 1 << 16;
    /// What reflection has revealed, by hash.
    pub const REVEALED_ENTRIES: usize = 4096;
}

/// A node. References are offsets into the session's slot; zero is none.
pub mod node {
    pub const COUNT: usize = 0;
    /// Zero while the node is not in use.
    pub const METHOD: usize = 8;
    /// The first child, or (odd) a table of children. At this place a page's head has its zero.
    pub const KIDS: usize = 12;
    /// Slots: distances from here to children, or to where the zero of the page's head stands in for
    /// a child's method. The low bits of a method's id choose its first slot, so the place is a
    /// constant in its probes.
    pub const SLOT: usize = 16;
    pub const SLOTS: usize = 1 << SLOTS_LOG;
    pub const SLOTS_LOG: usize = 3;
    pub const PARENT: usize = SLOT + 4 * SLOTS;
    pub const SIBLING: usize = PARENT + 4;
    pub const SIZE_COUNTED: usize = SIBLING + 4;
    pub const START: usize = SIZE_COUNTED;
    pub const TOTAL: usize = START + 8;
    /// Twice the calls that made timed calls, odd while the one under way is such a call.
    pub const CALLING: usize = START + 16;
    /// Where some calls are timed: the time of the first ones. `TOTAL` is that of others.
    pub const FIRST_TOTAL: usize = START + 16;
    /// How many of the others were timed, and the low bits of the number of the call that is timed
    /// next: one that is timed is under way when it is not above the count.
    pub const TIMED_CALLS: usize = START + 24;
    pub const AT: usize = START + 28;
    /// The sum of the squares of their times, a floating-point number.
    pub const SQUARES: usize = START + 32;
    /// In the tree of a followed call: the node that was made next.
    pub const MADE_NEXT: usize = START + 24;
    /// In the thread's tree: where the lengths of its calls are counted. In that of a followed call: the
    /// same context in the thread's tree.
    pub const SPREAD: usize = START + 28;
    pub const TO: usize = WITH_TOTAL;
    /// Where calls of roots are drawn, below a root: calls and times are sums of weights, each call
    /// of the root with its own. These are sums of `weight² − weight`, which is what one call adds to
    /// the variance of such a sum: with the squares of a context's calls, of its own time and of its
    /// total, of the last two with what the call of the root took, and of its calls. Floating-point
    /// numbers.
    pub const SQUARE_CALLS: usize = START + 32;
    pub const SQUARE_OWN: usize = START + 40;
    pub const SQUARE_TOTAL: usize = START + 48;
    pub const WITH_OWN: usize = START + 56;
    pub const WITH_TOTAL: usize = START + 64;
    pub const WITH_CALLS: usize = START + 72;
    pub const SIZE_FOLLOWED: usize = START + 80;
    pub const BYTECODES: usize = SIZE_COUNTED;
    pub const OBJECTS: usize = BYTECODES + 8;
    pub const BYTES: usize = BYTECODES + 16;
    /// In a session of allocation sites: what this one made.
    pub const MADE: usize = SIZE_COUNTED;
    pub const MADE_BYTES: usize = MADE + 8;
    pub const SIZE_TIMED: usize = START + 24;
    pub const SIZE_SOME_TIMED: usize = START + 40;
    /// Calls of a context that are all timed where only some others are. If the last of them is long,
    /// all others are timed, too: this bit of `FIRST_TOTAL` says so. Reading the clock for such a
    /// call costs next to nothing, and they are too few for one in so many to tell much.
    pub const FIRST_CALLS: u64 = 64;
    pub const LONG: u64 = 1;
    pub const LONG_NANOS: u64 = 50_000;
    pub const SIZE_BYTECODES: usize = BYTECODES + 8;
    pub const SIZE_ALLOCATIONS: usize = BYTECODES + 24;
    pub const SIZE_SITES: usize = MADE + 16;
}

/// What the nodes of a session hold beside their invocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holds {
    #[default]
    Nothing,
    Times,
    Bytecodes,
    /// Bytecodes, and objects and bytes that were allocated.
    Allocations,
    /// There are no nodes, but rings with every entry and exit.
    Trace,
    /// Bytecodes that samples stand for; the invocations are samples.
    Samples,
    /// Objects and bytes, in nodes of their own for each allocation site and class.
    Sites,
    /// Times of the first calls of each context, and of some others.
    SomeTimes,
    /// Times of some calls of roots, and how much these calls differ.
    Followed,
}

impl Holds {
    const ALL: [Holds; 9] = [
        Holds::Nothing,
        Holds::Times,
        Holds::Bytecodes,
        Holds::Allocations,
        Holds::Trace,
        Holds::Samples,
        Holds::Sites,
        Holds::SomeTimes,
        Holds::Followed,
    ];

    #[must_use]
    pub fn code(self) -> u32 {
        self as u32
    }

    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// Bytes of a node.
    #[must_use]
    pub fn node_size(self) -> usize {
        match self {
            Holds::Nothing | Holds::Trace => node::SIZE_COUNTED,
            Holds::Times => node::SIZE_TIMED,
            Holds::Bytecodes | Holds::Samples => node::SIZE_BYTECODES,
            Holds::Allocations => node::SIZE_ALLOCATIONS,
            Holds::Sites => node::SIZE_SITES,
            Holds::SomeTimes => node::SIZE_SOME_TIMED,
            Holds::Followed => node::SIZE_FOLLOWED,
        }
    }
}

/// Ids that no method has.
pub const ROOT: i32 = -2;
/// Calls for which there was no room: all that a node's context called beyond its children.
pub const REST: i32 = -3;
/// What the agent calls to learn what a call costs; no part of the program.
pub const CALIBRATION: i32 = -4;
/// In a trace, the first of the ids of the agent's empty methods, which tell what probes cost: the
/// second is of the second type of methods, and so on.
pub const TYPES: i32 = -256;
/// A node that was pruned and can be used again.
pub const FREED: i32 = -5;
/// A node that stands for what was begun from another tree: one of these, less the number of that
/// tree's first page. A thread was started; a task was handed over.
pub const FROM_THREAD: i32 = -(1 << 20);
pub const FROM_TASK: i32 = -(2 << 20);

/// The ids of what counts a root's calls that were not followed: this, less the root's id.
pub const UNFOLLOWED: i32 = -(4 << 20);

/// The root of which a node counts the calls that were not followed.
#[must_use]
pub fn unfollowed(method: i32) -> Option<i32> {
    (method < UNFOLLOWED).then(|| UNFOLLOWED.wrapping_sub(method)).filter(|id| *id > 0)
}

/// Where something was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Thread { tree: u32 },
    Task { tree: u32 },
}

/// What a node's method tells of where its calls come from, if it is no method.
#[must_use]
pub fn origin(method: i32) -> Option<Origin> {
    let tree = |base: i32| (base - method).cast_unsigned() * PAGE as u32;
    match method {
        _ if method > FROM_THREAD || method <= FROM_TASK - (1 << 20) => None,
        _ if method > FROM_TASK => Some(Origin::Thread { tree: tree(FROM_THREAD) }),
        _ => Some(Origin::Task { tree: tree(FROM_TASK) }),
    }
}
