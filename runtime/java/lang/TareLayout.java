package java.lang;

/**
 * Where things are in the arena, the memory that the agent shares with the front end. The layout is
 * explained in crates/arena/LAYOUT.md; a test of the agent compares the numbers.
 *
 * <p>All of these are constants, which the compiler copies to where they are used.
 */
final class TareLayout {
    // A node. References are offsets into the session's slot; zero is none.
    static final int COUNT = 0;    // long
    static final int LAST = 8;     // int, from here to the child that was entered last
    static final int METHOD = 12;  // int, zero while the node is not in use
    static final int NEXT = 16;    // int, from here to the sibling that was entered after it last time
    static final int PARENT = 20;  // int
    static final int SIBLING = 24; // int
    static final int KIDS = 28;    // int, first child, or (odd) a table of children
    static final int START = 32;   // long, only in timed sessions
    static final int TOTAL = 40;   // long, only in timed sessions
    static final int CALLING = 48; // long, only in timed sessions: twice the calls that made timed calls, odd
                                   // while the one under way is such a call
    static final int BYTECODES = 32; // long, only where bytecodes are counted
    static final int OBJECTS = 40; // long, only where allocations are counted, too
    static final int BYTES = 48;   // long, as OBJECTS

    // The arena's header, at the beginning of the slot.
    static final int H_HOLDS = 28;       // int, what a node holds beside its invocations
    static final int H_BUMP = 64;        // long, offset of the next free page
    static final int H_LIMIT = 72;       // long, end of the memory that is backed
    static final int H_RESERVE = 80;     // long, where ordinary nodes stop
    static final int H_REFUSED = 88;     // long, nodes that were refused for lack of room
    static final int H_LOST = 96;        // long, calls that found no place at all
    static final int H_NODE = 104;       // int, size of a node
    static final int H_LOCK = 108;       // int, of the pool of trees
    static final int H_POOL = 112;       // int, first free tree of the pool
    static final int H_ROOTS = 116;      // int, FLAG_LEAVES when roots were named
    static final int H_TREES = 120;      // int, how many trees of platform threads there are
    static final int H_ENDED = 124;      // int, first tree of a thread that has ended
    static final int H_DEPTH = 160;      // int, contexts deeper than this get no node
    static final int H_CPU = 164;        // int, 1 when times are the processor's
    static final int H_FOLD = 168;       // int, 1 when recursion is folded
    static final int H_FULL = 172;       // int, 1 when there will be no more memory
    static final int H_PAUSED = 176;     // long, ticks in which the JVM was held up for us
    static final int H_PRUNING = 184;    // int, how often a thread began to prune its tree
    static final int H_PRUNED = 188;     // int, how often it was done
    static final int H_DROPPED = 192;    // long, nodes that were pruned
    static final int H_RING = 200;       // int, bytes of the records in a ring
    static final int H_WAIT = 240;       // long, nanoseconds that a thread may wait for room in its ring
    static final int H_EVERY = 208;      // int, bytecodes from one sample, or word to an agent, to the next
    static final int H_RANDOM = 212;     // int, 1 when those are that many on average only
    static final int H_SEED = 216;       // long, for what is random in them
    static final int H_NOTED = 248;      // long, how often an agent was to be told of a context
    static final int H_TOLD = 256;       // long, how often it was

    static final int HOLDS_TIMES = 1;
    static final int HOLDS_BYTECODES = 2;
    static final int HOLDS_ALLOCATIONS = 3; // And bytecodes.
    static final int HOLDS_TRACE = 4;       // There are rings and no nodes.
    static final int HOLDS_SAMPLES = 5;     // Bytecodes that samples stand for; invocations are samples.

    // A page, and the first page of a tree.
    static final int PAGE = 4096;
    static final int P_KIND = 0;         // int
    static final int P_TREE = 4;         // int, offset of the tree's first page
    static final int P_PAGES = 8;        // int, of a large table; zero means one
    static final int P_NOBODY = 16;      // int, always zero
    static final int P_HEAD = 32;
    static final int T_THREAD = 32;      // long, Thread.threadId()
    static final int T_FREE = 40;        // int, next free byte
    static final int T_END = 44;         // int, end of the free bytes; written together with T_FREE
    static final int T_NEXT = 48;        // int, next tree in the pool
    static final int T_FLAGS = 52;       // int
    static final int T_ADJUST = 56;      // long, time to keep out of the figures
    static final int T_TABLE = 64;       // int, next free byte for a table of children
    static final int T_NAME = 68;        // int, length and (<< 16) coder, then the bytes
    static final int T_NAME_MAX = 96;
    static final int T_EVERY = 168;      // int, bytecodes after which an agent is told; zero is new
    static final int T_LEFT = 172;       // int, bytecodes until then, where calls are counted
    static final int T_STACK = 176;      // int, where bytecodes are sampled
    static final int T_FREED = 180;      // int, first of the nodes that can be used again
    static final int T_SIEVE = 184;      // int, what is pruned next: contexts below this
    static final int T_REGIONS = 188;    // int, first of the figures of its regions
    static final int T_ROOT = 192;
    static final int KIND_TREE = 1;
    static final int KIND_NODES = 2;
    static final int KIND_TABLE = 3;
    static final int KIND_REGION = 4;
    static final int KIND_RING = 5;
    static final int KIND_STACK = 6;
    static final int EXTENT = 16 * PAGE;
    static final int FLAG_LEAVES = 1;    // whoever leaves a child of the root leaves the subgraph
    static final int FLAG_VIRTUAL = 2;   // a tree of the pool, for virtual threads
    static final int FLAG_SHARED = 4;    // of several platform threads, one after the other
    static final int TREES_MAX = 1024;   // from here on, trees of ended threads are used again

    // Ids that no method has.
    static final int ROOT = -2;
    static final int REST = -3;
    static final int CALIBRATION = -4;
    static final int TYPES = -256;     // in a trace: of an empty method of the first type, for calibration
    static final int FREED = -5;
    // And all from here down, less the number of a tree's first page: what was begun from there.
    static final int FROM_THREAD = -1048576;
    static final int FROM_TASK = -2097152;

    static final int LIST_MAX = 8;
    static final long LOW = 0xffff_ffffL;

    // The stack of a tree, where bytecodes are sampled. Its addresses are multiples of its size.
    static final int STACK = 32768;
    static final int S_LEFT = 32;        // int, bytecodes until the next sample
    static final int S_INTERVAL = 36;    // int, how many they were after the last one
    static final int S_RANDOM = 40;      // long, state of the random numbers
    static final int S_FIRST = 64;       // the first place; below it is the root's
    static final int PLACE_BYTES = 8;    // a place: the id of a method
    static final int PLACE_NODE = 4;     // int, and its node, once a sample has looked for it

    // A region's figures.
    static final int R_NEXT = 32;     // int
    static final int R_REGION = 36;   // int
    static final int R_COUNT = 40;    // long
    static final int R_TOTAL = 48;    // long
    static final int R_MIN = 56;      // long
    static final int R_MAX = 64;      // long
    static final int R_TIMES = 128;   // longs, how often a time was in each stretch of times
    static final int R_BYTES = 8192;
    static final int R_SHIFT = 4;     // stretches to each power of two, as a power of two

    // The ring of a trace: a page, then the records.
    static final int G_SIZE = 184;       // int, bytes of the records, a power of two
    static final int G_DEPTH = 188;      // int, traced methods that the thread is in
    static final int G_HEAD = 192;       // long, where the next record begins
    static final int G_LIMIT = 200;      // long, up to where there was room when it was last asked
    static final int G_GAP_SINCE = 208;  // long, ticks since when the ring is full
    static final int G_GAP_EVENTS = 216; // long, records that were dropped since
    static final int G_GAP_DEPTH = 224;  // int, the least depth meanwhile
    static final int G_DROPPED = 232;    // long, records that were dropped, in all
    static final int G_WAITED = 240;     // long, ticks that the thread has waited for room, in all
    static final int G_HELD = 248;       // long, those of them that no record tells of yet
    static final int G_MASK = 228;       // int, the size less one; zero leads to the first record
    static final int RECORD = 16;
    static final int RING_LEAST = 65536;

    // How far the reader has come: a long for each page, behind the arena in the session's slot.
    static final int TAILS_AT_BIT = 31;
    static final int TAIL_SHIFT = 9;     // from a ring's offset to that of its long

    // What a record tells.
    static final int ENTRY = 1;
    static final int EXIT = 2;
    static final int THROWN = 3;
    static final int CAUGHT = 4;
    static final int GAP = 5;
    static final int THREAD = 6;
    static final int NAME_PART = 7;
    static final int HELD = 8;
    static final int UTF16 = 65536;
    static final int VIRTUAL_THREAD = 131072;

    // The table of threads, by thread id: where a thread without our field keeps its current node,
    // and where a thread's tree is found when its field holds something older than this session.
    static final int TABLE = 4096;
    static final int TABLE_ENTRIES = 32768;
    static final long TABLE_MASK = TABLE_ENTRIES - 1;
    static final long LEFT = -1; // Was somebody's: not empty, so that searches go on.

    private TareLayout() {}
}
