package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What woven code calls: keeps, for the running thread, its place in the calling-context tree.
 *
 * <p>The tree lies in the arena, memory that the agent shares with the front end; the layout is in
 * crates/arena/LAYOUT.md and the constants below repeat it. A node stands for one context; the
 * token that a woven method keeps in a local is the node that called it. A thread's current node
 * is in a field that the agent added to Thread, or, in a JVM that we attached to, in a table.
 *
 * <p>The upper half of an address names the session: each session has a slot of addresses of its
 * own, so that what a frame or a thread still holds from an earlier one is recognised by one
 * comparison. When a session ends, its memory becomes zeros under the feet of whoever is in here;
 * every address is therefore made of a session's upper half and an offset, never taken whole from
 * memory, and zero leads to the header. Nothing here calls a method that could be woven, allocates,
 * blocks or throws.
 */
public final class TareProbe {
    private static final Unsafe U = Unsafe.getUnsafe();

    // A node. References are offsets into the session's slot; zero is none.
    private static final int COUNT = 0;    // long
    private static final int LAST = 8;     // int, from here to the child that was entered last
    private static final int METHOD = 12;  // int, zero while the node is not in use
    private static final int NOBODY = 16;  // int, always zero
    private static final int PARENT = 20;  // int
    private static final int SIBLING = 24; // int
    private static final int KIDS = 28;    // int, first child, or (odd) a table of children
    private static final int START = 32;   // long, only in timed sessions
    private static final int TOTAL = 40;   // long, only in timed sessions
    private static final int BYTECODES = 32; // long, only where bytecodes are counted
    private static final int OBJECTS = 40; // long, only where allocations are counted, too
    private static final int BYTES = 48;   // long, as OBJECTS

    /** In place of a last child: where its method would be there is the node's zero. */
    private static final int NO_CHILD = NOBODY - METHOD;

    // The arena's header, at the beginning of the slot.
    private static final int H_HOLDS = 28;       // int, what a node holds beside its invocations
    private static final int H_BUMP = 64;        // long, offset of the next free page
    private static final int H_LIMIT = 72;       // long, end of the memory that is backed
    private static final int H_RESERVE = 80;     // long, where ordinary nodes stop
    private static final int H_REFUSED = 88;     // long, nodes that were refused for lack of room
    private static final int H_LOST = 96;        // long, calls that found no place at all
    private static final int H_NODE = 104;       // int, size of a node
    private static final int H_LOCK = 108;       // int, of the pool of trees
    private static final int H_POOL = 112;       // int, first free tree of the pool
    private static final int H_ROOTS = 116;      // int, FLAG_LEAVES when roots were named
    private static final int H_TREES = 120;      // int, how many trees of platform threads there are
    private static final int H_ENDED = 124;      // int, first tree of a thread that has ended
    private static final int H_DEPTH = 160;      // int, contexts deeper than this get no node
    private static final int H_CPU = 164;        // int, 1 when times are the processor's
    private static final int H_FOLD = 168;       // int, 1 when recursion is folded
    private static final int H_FULL = 172;       // int, 1 when there will be no more memory
    private static final int H_PAUSED = 176;     // long, ticks in which the JVM was held up for us
    private static final int H_PRUNING = 184;    // int, how often a thread began to prune its tree
    private static final int H_PRUNED = 188;     // int, how often it was done
    private static final int H_DROPPED = 192;    // long, nodes that were pruned

    private static final int HOLDS_TIMES = 1;
    private static final int HOLDS_BYTECODES = 2;
    private static final int HOLDS_ALLOCATIONS = 3; // And bytecodes.

    // A page, and the first page of a tree.
    private static final int PAGE = 4096;
    private static final int P_KIND = 0;         // int
    private static final int P_TREE = 4;         // int, offset of the tree's first page
    private static final int P_PAGES = 8;        // int, of a large table; zero means one
    private static final int P_HEAD = 32;
    private static final int T_THREAD = 32;      // long, Thread.threadId()
    private static final int T_FREE = 40;        // int, next free byte
    private static final int T_END = 44;         // int, end of the free bytes
    private static final int T_NEXT = 48;        // int, next tree in the pool
    private static final int T_FLAGS = 52;       // int
    private static final int T_ADJUST = 56;      // long, time to keep out of the figures
    private static final int T_TABLE = 64;       // int, next free byte for a table of children
    private static final int T_NAME = 68;        // int, length and (<< 16) coder, then the bytes
    private static final int T_NAME_MAX = 108;
    private static final int T_FREED = 180;      // int, first of the nodes that can be used again
    private static final int T_SIEVE = 184;      // int, what was pruned last: contexts below this
    private static final int T_REGIONS = 188;    // int, first of the figures of its regions
    private static final int T_ROOT = 192;
    private static final int KIND_TREE = 1;
    private static final int KIND_NODES = 2;
    private static final int KIND_TABLE = 3;
    private static final int KIND_REGION = 4;
    private static final int EXTENT = 16 * PAGE;
    private static final int FLAG_LEAVES = 1;    // whoever leaves a child of the root leaves the subgraph
    private static final int FLAG_VIRTUAL = 2;   // a tree of the pool, for virtual threads
    private static final int FLAG_SHARED = 4;    // of several platform threads, one after the other
    private static final int TREES_MAX = 1024;   // from here on, trees of ended threads are used again

    // Ids that no method has.
    private static final int ROOT = -2;
    private static final int REST = -3;
    private static final int CALIBRATION = -4;
    private static final int FREED = -5;
    // And all from here down, less the number of a tree's first page: what was begun from there.
    private static final int FROM_THREAD = -1048576;
    private static final int FROM_TASK = -2097152;

    private static final int LIST_MAX = 8;
    private static final long LOW = 0xffff_ffffL;

    // While a tree is pruned: what stays, and what goes but was looked at.
    private static final int STAYS = 1;
    private static final int GOES = 2;
    private static final int KNOWN = 4; // Its rest is where its last child would be.
    private static final int SIEVE_MAX = 1 << 20;

    private static final long CUR = offset("tare$cur");
    private static final boolean FIELD = CUR != -1;
    private static final long TID = offset("tid");
    private static final long ALIVE = offset("eetop");
    private static final long NAME = offset("name");
    private static final long VALUE = U.objectFieldOffset(String.class, "value");
    private static final long CODER = U.objectFieldOffset(String.class, "coder");
    private static final Class<?> VIRTUAL = virtual();

    /** The upper half of this session's addresses; what no address has when nothing is on. */
    private static long session = -1;

    /** The last session's addresses begin here; they stay, so that probes may always look. */
    private static long base;

    // The table of threads, by thread id: where a thread without our field keeps its current node,
    // and where a thread's tree is found when its field holds something older than this session.
    private static final int TABLE = 4096;
    private static final int TABLE_ENTRIES = 32768;
    private static final long TABLE_MASK = TABLE_ENTRIES - 1;
    private static final long LEFT = -1; // Was somebody's: not empty, so that searches go on.

    /** A token's upper bits, in a JVM that we attached to: the thread's place in the table. */
    private static final int PLACE = 48;
    private static final long ADDRESS = (1L << PLACE) - 1;

    private TareProbe() {}

    private static long offset(String field) {
        return offset(Thread.class, field);
    }

    private static long offset(Class<?> type, String field) {
        try {
            return U.objectFieldOffset(type, field);
        } catch (InternalError absent) {
            return -1;
        }
    }

    private static Class<?> virtual() {
        try {
            return Class.forName("java.lang.BaseVirtualThread", false, null);
        } catch (ClassNotFoundException before21) {
            return null;
        }
    }

    /** Called by the agent: begins a session at an address, or ends it with -1. */
    static void session(long address) {
        if (address != -1) {
            base = address;
        }
        session = address == -1 ? -1 : address >>> 32;
    }

    /** Found in the agent: reads the processor's time stamp, where that is the clock. */
    private static native long ticks();

    /** Found in the agent: a method may run for the first time; returns when its callees are woven. */
    private static native void first(int id);

    /** One bit for each method that {@link #first} need not be told of; zero when it needs none. */
    private static long known;
    private static long knownMax;

    /** Called by the agent: begins or ends the search for what the methods that run call. */
    static void discovery(long bits, long methods) {
        if (bits != 0) {
            knownMax = methods;
        }
        known = bits;
    }

    /**
     * Found in the agent: a method is about to be called, or can be from now on, in a way that no
     * code tells. A Method, a Constructor or the JDK's own MemberName. True when all is done.
     */
    private static native boolean reveal(Object member, boolean wait);

    /** Methods that were revealed, by class and place in it; zero when nobody looks for callees. */
    private static long revealed;
    private static final int REVEALED_ENTRIES = 4096;
    private static final long METHOD_CLASS = offset(java.lang.reflect.Method.class, "clazz");
    private static final long METHOD_SLOT = offset(java.lang.reflect.Method.class, "slot");
    private static final long CONSTRUCTOR_CLASS =
        offset(java.lang.reflect.Constructor.class, "clazz");
    private static final long CONSTRUCTOR_SLOT =
        offset(java.lang.reflect.Constructor.class, "slot");

    /** Called by the agent, as {@link #discovery}. */
    static void revelation(long table, long entries) {
        boolean found = METHOD_CLASS != -1 && METHOD_SLOT != -1
            && CONSTRUCTOR_CLASS != -1 && CONSTRUCTOR_SLOT != -1;
        revealed = found && entries == REVEALED_ENTRIES ? table : 0;
    }

    /** A Method or a Constructor is about to be called. */
    public static void reflects(Object executable) {
        long table = revealed;
        if (table == 0) {
            return;
        }
        long node = here();
        if (node == 0) {
            return;
        }
        boolean method = executable instanceof java.lang.reflect.Method;
        Object type = U.getReference(executable, method ? METHOD_CLASS : CONSTRUCTOR_CLASS);
        int slot = U.getInt(executable, method ? METHOD_SLOT : CONSTRUCTOR_SLOT);
        long key = (long) System.identityHashCode(type) << 32 | slot & LOW;
        long place = table + ((key * 0x9e37_79b9_7f4a_7c15L >>> 52) << 3);
        if (U.getLong(place) != key) {
            long began = unpaused(node & ~LOW);
            if (reveal(executable, true)) {
                U.putLong(place, key);
            }
            held(node, unpaused(node & ~LOW) - began);
        }
    }

    /** A method handle is being made for a MemberName. */
    public static void links(Object member) {
        if (revealed != 0) {
            long node = here();
            long began = node == 0 ? 0 : unpaused(node & ~LOW);
            reveal(member, node != 0);
            if (node != 0) {
                held(node, unpaused(node & ~LOW) - began);
            }
        }
    }

    /** The thread's current node; zero outside the subgraph. */
    private static long here() {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        return node >>> 32 == session ? node : 0;
    }

    // ---- counting ----

    // The token is where the thread was at entry, so the exit needs no memory but the thread's own:
    // it puts the thread back, whatever happened in between. Zero means that nothing was counted;
    // the complement of a token, that the exit is more than the step back. A thread's current node
    // is zero or the complement of its tree's root when it is outside the subgraph.
    //
    // What a thread or a frame holds from an earlier session is not told apart here: it leads to
    // memory that is all zeros, where no method is found, and so to `find`, which looks closer.

    /** Entry of a method that counts only inside the subgraph. */
    @ForceInline
    public static long enter(int id) {
        Thread thread = Thread.currentThread();
        if (FIELD) {
            long node = U.getLong(thread, CUR);
            return node > 0 ? down(thread, 0, node, id, false) : 0;
        }
        long tid = U.getLong(thread, TID);
        long entry = base + TABLE + ((tid & TABLE_MASK) << 4);
        long key = U.getLong(entry);
        if (key == tid) {
            long node = U.getLong(entry + 8);
            return node > 0 ? down(thread, entry, node, id, false) : 0;
        }
        return key == 0 ? 0 : enterFar(thread, tid, id);
    }

    /** Entry of a root: from outside it begins the subgraph. */
    @ForceInline
    public static long enterRoot(int id) {
        Thread thread = Thread.currentThread();
        long entry = 0;
        long node;
        if (FIELD) {
            node = U.getLong(thread, CUR);
        } else {
            long tid = U.getLong(thread, TID);
            entry = base + TABLE + ((tid & TABLE_MASK) << 4);
            node = U.getLong(entry) == tid ? U.getLong(entry + 8) : 0;
        }
        return node > 0 ? down(thread, entry, node, id, true) : begin(thread, id);
    }

    // A method that calls nothing needs no exit: nobody asks where the thread is meanwhile.

    @ForceInline
    public static void leaf(int id) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0) {
            count(node, id);
        }
    }

    @ForceInline
    public static void leafRoot(int id) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node <= 0 || !count(node, id)) {
            exit(begin(thread, id));
        }
    }

    /** Counts a call; false when the node is older than this session. */
    @ForceInline
    private static boolean count(long node, int id) {
        long child = node + U.getInt(node + LAST);
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                return node >>> 32 == session;
            }
        }
        U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
        return true;
    }

    /** Entry of a thread whose place in the table is taken by another. */
    @DontInline
    private static long enterFar(Thread thread, long tid, int id) {
        long entry = search(tid);
        long node = entry == 0 ? 0 : U.getLong(entry + 8);
        return node > 0 ? down(thread, entry, node, id, false) : 0;
    }

    @ForceInline
    private static long down(Thread thread, long entry, long node, int id, boolean root) {
        long child = node + U.getInt(node + LAST);
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                return root && node >>> 32 != session ? begin(thread, id) : 0;
            }
        }
        U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
        return step(thread, entry, node, child);
    }

    /** Makes a child the current node; the token to come back from it. */
    @ForceInline
    private static long step(Thread thread, long entry, long node, long child) {
        if (FIELD) {
            U.putLong(thread, CUR, child);
            return node;
        }
        U.putLong(entry + 8, child);
        return node | place(entry) << PLACE;
    }

    /** An entry's place in the table. */
    @ForceInline
    private static long place(long entry) {
        return (entry & LOW) - TABLE >>> 4;
    }

    /** Exit, normal or by exception. */
    @ForceInline
    public static void exit(long token) {
        if (token > 0) {
            if (FIELD) {
                U.putLong(Thread.currentThread(), CUR, token);
            } else {
                long node = token & ADDRESS;
                U.putLong((node & ~LOW) + TABLE + 8 + (token >>> PLACE << 4), node);
            }
        } else if (token != 0) {
            leave(token);
        }
    }

    /** A handler of the method caught an exception: whatever it had called is over. */
    public static void caught(long token, int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = own(get(thread, entry), token);
        if (node != 0) {
            set(thread, entry, node);
        }
    }

    // ---- executed bytecodes ----

    // A method counts its bytecodes in a local and takes them to its node when it ends, and from
    // time to time in a loop. At that moment the thread's current node is its own; after an
    // exception it may be one below. Who has no node (the token is zero) and is not outside gives
    // them to the rest in which its call was counted.

    /** Exit of a method that ran so many bytecodes since it last told. */
    @ForceInline
    public static void exitCounted(long token, int bytecodes) {
        if (token > 0) {
            if (FIELD) {
                Thread thread = Thread.currentThread();
                spend(U.getLong(thread, CUR), token, bytecodes);
                U.putLong(thread, CUR, token);
            } else {
                long outer = token & ADDRESS;
                long place = (outer & ~LOW) + TABLE + 8 + (token >>> PLACE << 4);
                spend(U.getLong(place), outer, bytecodes);
                U.putLong(place, outer);
            }
        } else {
            flushCounted(token, bytecodes);
            if (token != 0) {
                leave(token);
            }
        }
    }

    /** An exception leaves the method. */
    public static void exitThrowCounted(long token, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        long own = own(node, token);
        if (own != 0) {
            spend(own, outer(token), bytecodes);
        } else {
            flushCounted(token, bytecodes);
        }
        exit(token);
    }

    /** The method goes on, and counts from zero again. */
    @ForceInline
    public static void flushCounted(long token, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (token != 0) {
            spend(node, outer(token), bytecodes);
        } else if (node > 0) {
            spendFar(node, bytecodes);
        }
    }

    /** A node that is older than this session, or newer than the frame, is left alone. */
    @ForceInline
    private static void spend(long node, long outer, int bytecodes) {
        if ((node ^ outer) >>> 32 == 0) {
            U.putLong(node + BYTECODES, U.getLong(node + BYTECODES) + bytecodes);
        }
    }

    /** For a call that got no node. */
    @DontInline
    private static void spendFar(long node, int bytecodes) {
        long rest = restOf(node);
        if (rest != 0) {
            U.putLong(rest + BYTECODES, U.getLong(rest + BYTECODES) + bytecodes);
        }
    }

    /** Where a call was counted that got no node below this one; zero if it was not. */
    private static long restOf(long node) {
        long base = node & ~LOW;
        if (base >>> 32 != session || U.getInt(base + H_HOLDS) < HOLDS_BYTECODES) {
            return 0;
        }
        int method = U.getInt(node + METHOD);
        if (method == REST) {
            return node;
        }
        return method > 0 ? page(node) + T_ROOT + U.getInt(base + H_NODE) : 0;
    }

    // A method that calls nothing and has no loop tells all at its end.

    @ForceInline
    public static void leafCounted(int id, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0) {
            countAll(node, id, bytecodes);
        }
    }

    @ForceInline
    public static void leafRootCounted(int id, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node <= 0 || !countAll(node, id, bytecodes)) {
            exitCounted(begin(thread, id), bytecodes);
        }
    }

    /** Counts a call and its bytecodes; false when the node is older than this session. */
    @ForceInline
    private static boolean countAll(long node, int id, int bytecodes) {
        long child = node + U.getInt(node + LAST);
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                spendFar(node, bytecodes);
                return node >>> 32 == session;
            }
        }
        U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
        U.putLong(child + BYTECODES, U.getLong(child + BYTECODES) + bytecodes);
        return true;
    }

    // ---- allocations ----

    // Sizes are the JVM's own, from where it keeps them itself; the agent says where that is.

    private static long klassAt;
    private static long layoutAt;

    /** Called by the agent: where a Class has its HotSpot structure, and that its layout. */
    static void layout(long klass, long layout) {
        klassAt = klass;
        layoutAt = layout;
    }

    /** Called by the agent: the size of the smallest object, to see whether it is right. */
    static long smallest() {
        return size(layout(Object.class), 0);
    }

    /** An object of this class was made. */
    public static void newObject(Class<?> type) {
        allocated(1, size(layout(type), 0));
    }

    /** An object was made by a class file that cannot name its class. */
    public static void newUnknown() {
        allocated(1, 0);
    }

    /** An array was made, and the arrays in it, if its instruction made those, too. */
    public static void newArray(Object array) {
        long objects = 0;
        long bytes = 0;
        long alike = 1;
        for (;;) {
            objects += alike;
            bytes += alike * size(layout(array.getClass()), length(array));
            if (!(array instanceof Object[])) {
                break;
            }
            Object[] inner = (Object[]) array;
            if (inner.length == 0 || inner[0] == null) {
                break;
            }
            alike *= inner.length;
            array = inner[0];
        }
        allocated(objects, bytes);
    }

    /** A copy was made. */
    public static void cloned(Object object) {
        if (object != null) {
            allocated(1, size(layout(object.getClass()), length(object)));
        }
    }

    private static void allocated(long objects, long bytes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0 && node >>> 32 == session
            && U.getInt((node & ~LOW) + H_HOLDS) == HOLDS_ALLOCATIONS) {
            U.putLong(node + OBJECTS, U.getLong(node + OBJECTS) + objects);
            U.putLong(node + BYTES, U.getLong(node + BYTES) + bytes);
        }
    }

    private static int layout(Class<?> type) {
        return klassAt == 0 ? 0 : U.getInt(U.getLong(type, klassAt) + layoutAt);
    }

    /** Bytes by a layout as HotSpot writes it: positive for objects, a header and a shift for arrays. */
    private static long size(int layout, int length) {
        if (layout >= 0) {
            return layout & ~7;
        }
        return (layout >> 16 & 0xff) + ((long) length << (layout & 0x3f)) + 7 & ~7;
    }

    private static int length(Object array) {
        return array instanceof Object[] ? ((Object[]) array).length
            : array instanceof byte[] ? ((byte[]) array).length
            : array instanceof int[] ? ((int[]) array).length
            : array instanceof char[] ? ((char[]) array).length
            : array instanceof long[] ? ((long[]) array).length
            : array instanceof double[] ? ((double[]) array).length
            : array instanceof boolean[] ? ((boolean[]) array).length
            : array instanceof float[] ? ((float[]) array).length
            : array instanceof short[] ? ((short[]) array).length : 0;
    }

    // ---- timing ----

    // A tree's clock stands still while its thread is in here for longer than a probe takes, or is
    // held up for the weaving of other code.

    @ForceInline
    public static long enterTimed(int id) {
        long token = enter(id);
        if (token != 0) {
            begun();
        }
        return token;
    }

    @ForceInline
    public static long enterRootTimed(int id) {
        long token = enterRoot(id);
        if (token != 0) {
            begun();
        }
        return token;
    }

    @ForceInline
    private static void begun() {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0) {
            U.putLong(node + START, clock(node, ticks()));
        }
    }

    /** The time as the tree of a node sees it. */
    @ForceInline
    private static long clock(long node, long now) {
        return now - U.getLong(page(node) + T_ADJUST) - U.getLong((node & ~LOW) + H_PAUSED);
    }

    @ForceInline
    public static void exitTimed(long token) {
        if (token != 0) {
            long now = ticks();
            Thread thread = Thread.currentThread();
            ended(get(thread, entry(thread)), token, now);
            exit(token);
        }
    }

    public static void caughtTimed(long token, int id) {
        long now = ticks();
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        long own = own(node, token);
        if (own != 0) {
            now = clock(node, now);
            for (; node != own && (node & LOW) != 0; node = parent(node)) {
                stop(node, now);
            }
            set(thread, entry, own);
        }
    }

    /** Stops the clocks from the current node up to the one that was entered with this token. */
    @ForceInline
    private static void ended(long node, long token, long now) {
        if (node > 0) {
            now = clock(node, now);
            if (parent(node) == outer(token)) {
                stop(node, now);
            } else {
                endedFar(node, token, now);
            }
        }
    }

    private static void endedFar(long node, long token, long now) {
        if (own(node, token) != 0) {
            long outer = outer(token);
            for (; node != outer && (node & LOW) != 0; node = parent(node)) {
                stop(node, now);
            }
        }
    }

    @ForceInline
    private static void stop(long node, long now) {
        long start = U.getLong(node + START);
        if (start != 0) {
            // The agent tells of a pause when it is over: a call at that moment may seem negative.
            if (now > start) {
                U.putLong(node + TOTAL, U.getLong(node + TOTAL) + now - start);
            }
            U.putLong(node + START, 0);
        }
    }

    /** The node that called the one who holds this token. */
    @ForceInline
    private static long outer(long token) {
        long plain = token > 0 ? token : ~token;
        return FIELD ? plain : plain & ADDRESS;
    }

    @ForceInline
    private static long parent(long node) {
        return node & ~LOW | U.getInt(node + PARENT) & LOW;
    }

    /** The node that was entered with a token, from a node at or below it; zero if there is none. */
    private static long own(long node, long token) {
        if (token == 0 || node >>> 32 != session) {
            return 0;
        }
        long outer = outer(token);
        for (;;) {
            long parent = parent(node);
            if (parent == outer) {
                return node;
            }
            if ((parent & LOW) == 0) {
                return 0;
            }
            node = parent;
        }
    }

    // ---- a thread's current node ----

    @ForceInline
    private static long get(Thread thread, long entry) {
        return FIELD ? U.getLong(thread, CUR) : entry == 0 ? 0 : U.getLong(entry + 8);
    }

    @ForceInline
    private static void set(Thread thread, long entry, long node) {
        if (FIELD) {
            U.putLong(thread, CUR, node);
        } else if (entry != 0) {
            U.putLong(entry + 8, node);
        }
    }

    /** The thread's entry in the table, where that is what counts; zero when it has none. */
    @ForceInline
    private static long entry(Thread thread) {
        if (FIELD) {
            return 0;
        }
        long tid = U.getLong(thread, TID);
        long entry = base + TABLE + ((tid & TABLE_MASK) << 4);
        long key = U.getLong(entry);
        return key == tid ? entry : key == 0 ? 0 : search(tid);
    }

    /** An entry that is not in its first place lies behind others, with no empty one between. */
    private static long search(long tid) {
        long start = base;
        for (long at = tid; at < tid + 16; at++) {
            long entry = start + TABLE + ((at & TABLE_MASK) << 4);
            long key = U.getLong(entry);
            if (key == tid) {
                return entry;
            }
            if (key == 0) {
                return 0;
            }
        }
        return 0;
    }

    private static long claim(long start, long tid) {
        for (long at = tid; at < tid + 16; at++) {
            long entry = start + TABLE + ((at & TABLE_MASK) << 4);
            if (U.compareAndSetLong(null, entry, 0, tid)
                || U.compareAndSetLong(null, entry, LEFT, tid)) {
                return entry;
            }
        }
        return 0;
    }

    // ---- everything that is not the common case ----

    /** A root is entered from outside the subgraph. */
    @DontInline
    private static long begin(Thread thread, int id) {
        long mark = session;
        if (mark == -1) {
            return 0;
        }
        long start = mark << 32;
        long tid = U.getLong(thread, TID);
        long entry = search(tid);
        if (!FIELD && entry == 0) {
            entry = claim(start, tid);
            if (entry == 0) {
                lost(start);
                return 0;
            }
        }
        long root = ~get(thread, entry);
        if (FIELD && root >>> 32 != mark && entry != 0) {
            root = ~U.getLong(entry + 8);
        }
        if (root >>> 32 != mark) {
            boolean virtual = VIRTUAL != null && VIRTUAL.isInstance(thread);
            if (virtual && U.getInt(start + H_CPU) != 0) {
                // The processor's time is that of the thread below, which changes at any moment.
                forget(thread, entry);
                lost(start);
                return 0;
            }
            root = virtual ? borrow(start) : newTree(start, thread);
            if (root == 0) {
                forget(thread, entry);
                lost(start);
                return 0;
            }
            if (FIELD && !virtual) {
                entry = claim(start, tid);
                if (entry != 0) {
                    U.putLong(entry + 8, ~root);
                }
            }
        }
        boolean leaves = (U.getInt(page(root) + T_FLAGS) & FLAG_LEAVES) != 0;
        long token = down(thread, entry, root, id, false);
        return token != 0 && leaves ? ~token : token;
    }

    /** An exit that is not the plain step back. */
    @DontInline
    private static void leave(long token) {
        long root = outer(token);
        long mark = session;
        if (root >>> 32 != mark) {
            return; // A frame that is older than this session.
        }
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        if (get(thread, entry) >>> 32 != mark) {
            return;
        }
        if ((U.getInt(page(root) + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            set(thread, entry, ~root); // Outside, and the tree is found again.
        } else {
            forget(thread, entry);
            push(mark << 32, H_POOL, page(root));
        }
    }

    private static void forget(Thread thread, long entry) {
        set(thread, entry, 0);
        if (entry != 0) {
            U.putLong(entry + 8, 0);
            U.putLongRelease(null, entry, LEFT);
        }
    }

    /** The child for a method, made if need be; the node's rest when there is no room; or zero. */
    private static long find(long node, int id) {
        long base = node & ~LOW;
        int kids = U.getInt(node + KIDS);
        int length = 0;
        if ((kids & 1) == 0) {
            for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                long child = base | at & LOW;
                if (U.getInt(child + METHOD) == id) {
                    U.putInt(node + LAST, (int) (child - node));
                    return child;
                }
                length++;
            }
        } else {
            long table = base | kids - 1 & LOW;
            int mask = U.getInt(table);
            for (int i = spread(id) & mask;; i = i + 1 & mask) {
                int at = U.getInt(table + 8 + ((long) i << 2));
                if (at == 0) {
                    break;
                }
                long child = base | at & LOW;
                if (U.getInt(child + METHOD) == id) {
                    U.putInt(node + LAST, (int) (child - node));
                    return child;
                }
            }
        }
        return create(node, id, length);
    }

    @ForceInline
    private static int spread(int id) {
        return id * 0x9e37_79b1 >>> 15;
    }

    /** Makes a child. It takes longer than a probe should; the tree's clock stands still. */
    @DontInline
    private static long create(long node, int id, int length) {
        long base = node & ~LOW;
        if (base >>> 32 != session) {
            return 0; // Older than this session.
        }
        if (U.getInt(base + H_HOLDS) != HOLDS_TIMES) {
            return make(base, node, id, length);
        }
        long tree = page(node);
        long adjust = U.getLong(tree + T_ADJUST);
        long begin = unpaused(base);
        long child = make(base, node, id, length);
        U.putLong(tree + T_ADJUST, adjust + unpaused(base) - begin);
        return child;
    }

    /** The time without pauses, which every clock leaves out by itself. */
    private static long unpaused(long base) {
        return ticks() - U.getLong(base + H_PAUSED);
    }

    private static long make(long base, long node, int id, int length) {
        if (U.getInt(node + METHOD) == REST) {
            U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
            return 0; // Stays in the rest; the exit finds nothing to do.
        }
        long tree = page(node);
        boolean rest = id == REST;
        if (!rest && U.getInt(base + H_FOLD) != 0) {
            for (long outer = node; U.getInt(outer + METHOD) > 0; outer = parent(outer)) {
                if (U.getInt(outer + METHOD) == id) {
                    U.putInt(node + LAST, (int) (outer - node));
                    return outer;
                }
            }
        }
        int deepest = U.getInt(base + H_DEPTH);
        if (deepest != 0 && !rest && depth(node) >= deepest) {
            return find(node, REST);
        }
        int size = U.getInt(base + H_NODE);
        long child = allocate(base, tree, size, rest);
        if (child == 0 && !rest && prune(base, tree, node)) {
            child = allocate(base, tree, size, false);
            length = 0; // Counted before; the list may get longer by one, once.
        }
        if (child == 0) {
            if (rest) {
                // Not even room for the node's own rest: the tree's is always there.
                long whole = tree + T_ROOT + size;
                U.putLong(whole + COUNT, U.getLong(whole + COUNT) + 1);
                return 0;
            }
            U.getAndAddLong(null, base + H_REFUSED, 1);
            return find(node, REST);
        }
        U.putInt(child + PARENT, (int) node);
        U.putInt(child + LAST, NO_CHILD);
        // A reader takes a node for real once it has a method.
        U.putIntRelease(null, child + METHOD, id);
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0 && length < LIST_MAX) {
            U.putInt(child + SIBLING, kids);
            U.putInt(node + KIDS, (int) child);
        } else {
            tabulate(base, tree, node, child);
        }
        U.putInt(node + LAST, (int) (child - node));
        if (known != 0 && !rest) {
            discover(node, id);
        }
        return child;
    }

    /** A method is entered in a new context: if it never ran before, the agent looks at it. */
    @DontInline
    private static void discover(long node, int id) {
        long bits = known;
        if (bits == 0 || id <= 0 || id >= knownMax
            || (U.getInt(bits + ((long) (id >>> 5) << 2)) >>> id & 1) != 0) {
            return;
        }
        long base = node & ~LOW;
        int deepest = U.getInt(base + H_DEPTH);
        if (deepest != 0 && depth(node) + 1 >= deepest) {
            return; // What it calls gets no node.
        }
        first(id); // The tree's clock stands still: this is part of making a node.
    }

    private static int depth(long node) {
        int depth = 0;
        for (; U.getInt(node + METHOD) != ROOT && (node & LOW) != 0; node = parent(node)) {
            depth++;
        }
        return depth;
    }

    /** Adds a child to a node with many, in a table that doubles when it is half full. */
    private static void tabulate(long base, long tree, long node, long child) {
        int kids = U.getInt(node + KIDS);
        long old = (kids & 1) == 0 ? 0 : base | kids - 1 & LOW;
        int mask = old == 0 ? 0 : U.getInt(old);
        if (old == 0 || U.getInt(old + 4) * 2 >= mask) {
            int size = old == 0 ? 32 : (mask + 1) * 2;
            long table = allocateTable(base, tree, 8 + size * 4);
            if (table == 0) {
                // Stays in the old table or list, which still has room but gets slower.
                if (old == 0) {
                    U.putInt(child + SIBLING, kids);
                    U.putInt(node + KIDS, (int) child);
                    return;
                }
                if (U.getInt(old + 4) >= mask - 1) {
                    lost(base);
                    return;
                }
            } else {
                U.putInt(table, size - 1);
                if (old == 0) {
                    for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                        put(table, base | at & LOW);
                    }
                } else {
                    for (int i = 0; i <= mask; i++) {
                        int at = U.getInt(old + 8 + ((long) i << 2));
                        if (at != 0) {
                            put(table, base | at & LOW);
                        }
                    }
                }
                U.putInt(node + KIDS, (int) table | 1);
                old = table;
            }
        }
        put(old, child);
    }

    private static void put(long table, long child) {
        int mask = U.getInt(table);
        int i = spread(U.getInt(child + METHOD)) & mask;
        while (U.getInt(table + 8 + ((long) i << 2)) != 0) {
            i = i + 1 & mask;
        }
        U.putInt(table + 8 + ((long) i << 2), (int) child);
        U.putInt(table + 4, U.getInt(table + 4) + 1);
    }

    // ---- memory ----

    /** The first page of the tree that a node belongs to. */
    @ForceInline
    private static long page(long node) {
        long page = node & -PAGE;
        return node & ~LOW | U.getInt(page + P_TREE) & LOW;
    }

    private static void lost(long base) {
        U.getAndAddLong(null, base + H_LOST, 1);
    }

    /** Pages that are backed by memory, or zero. The last part is kept for what was refused. */
    private static long pages(long base, int bytes, boolean rest) {
        long limit = U.getLong(base + (rest ? H_LIMIT : H_RESERVE));
        for (;;) {
            long at = U.getLong(base + H_BUMP);
            if (at + bytes > limit) {
                return 0;
            }
            if (U.compareAndSetLong(null, base + H_BUMP, at, at + bytes)) {
                return base | at;
            }
        }
    }

    private static long allocate(long base, long tree, int size, boolean rest) {
        int freed = U.getInt(tree + T_FREED);
        if (freed != 0) {
            long node = base | freed & LOW;
            U.putInt(tree + T_FREED, U.getInt(node + SIBLING));
            for (int at = 0; at < size; at += 8) {
                if (at != LAST) { // The method's place keeps its mark until there is a new one.
                    U.putLong(node + at, 0);
                }
            }
            return node;
        }
        int free = U.getInt(tree + T_FREE);
        // A node does not cross pages: each page begins with the tree that it belongs to.
        if ((free & PAGE - 1) + size > PAGE || (free & PAGE - 1) == 0) {
            free = free + PAGE - 1 & -PAGE;
            if (free == U.getInt(tree + T_END)) {
                int bytes = rest ? PAGE : EXTENT;
                long extent = pages(base, bytes, rest);
                if (extent == 0) {
                    return 0;
                }
                free = (int) extent;
                U.putInt(tree + T_END, free + bytes);
            }
            header(base | free & LOW, KIND_NODES, tree);
            free += P_HEAD;
        }
        U.putInt(tree + T_FREE, free + size);
        return base | free & LOW;
    }

    /** Room for a table of children. Small ones share pages, large ones get their own. */
    private static long allocateTable(long base, long tree, int bytes) {
        if (bytes <= PAGE - P_HEAD) {
            int free = U.getInt(tree + T_TABLE);
            if ((free & PAGE - 1) == 0 || (free & PAGE - 1) + bytes > PAGE) {
                long page = pages(base, PAGE, false);
                if (page == 0) {
                    return 0;
                }
                header(page, KIND_TABLE, tree);
                free = (int) page + P_HEAD;
            }
            U.putInt(tree + T_TABLE, free + bytes);
            return base | free & LOW;
        }
        int whole = bytes + P_HEAD + PAGE - 1 & -PAGE;
        long page = pages(base, whole, false);
        if (page == 0) {
            return 0;
        }
        U.putInt(page + P_PAGES, whole / PAGE);
        header(page, KIND_TABLE, tree);
        return page + P_HEAD;
    }

    private static void header(long page, int kind, long tree) {
        U.putInt(page + P_TREE, (int) tree);
        U.putIntRelease(null, page + P_KIND, kind);
    }

    // ---- pruning ----

    /**
     * Gives up the contexts of a tree that matter least, when there is no more memory: what was
     * called no more than a few times, and did not take long. Their calls and times go to the rest
     * of the nearest context that stays. Whether anything was gained.
     */
    private static boolean prune(long base, long tree, long node) {
        int sieve = U.getInt(tree + T_SIEVE);
        if (U.getInt(base + H_FULL) == 0 || U.getInt(base + H_FOLD) != 0 || sieve >= SIEVE_MAX) {
            return false;
        }
        U.getAndAddInt(null, base + H_PRUNING, 1);
        boolean gained = false;
        while (!gained && sieve < SIEVE_MAX) {
            sieve = sieve == 0 ? 1 : sieve * 2;
            gained = prune(base, tree, node, sieve);
        }
        U.putInt(tree + T_SIEVE, sieve);
        U.getAndAddInt(null, base + H_PRUNED, 1);
        return gained;
    }

    /** One round; it is worth it when an eighth of the nodes goes. */
    private static boolean prune(long base, long tree, long node, int sieve) {
        int size = U.getInt(base + H_NODE);
        int holds = U.getInt(base + H_HOLDS);
        boolean timed = holds == HOLDS_TIMES;
        boolean counted = holds >= HOLDS_BYTECODES;
        // What stays, and whatever leads to it.
        stay(node);
        long all = 0;
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            int method = U.getInt(at + METHOD);
            if (method == FREED) {
                continue;
            }
            all++;
            if (method < 0 && method != REST || U.getLong(at + COUNT) > sieve
                || timed && U.getLong(at + TOTAL) > (long) sieve << 12
                || counted && U.getLong(at + BYTECODES) > (long) sieve << 6) {
                stay(at);
            }
        }
        stay(tree + T_ROOT + size);
        // Of what goes, the uppermost: it is added to its parent's rest, or becomes it.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) == FREED || U.getInt(at + NOBODY) != 0) {
                continue;
            }
            long parent = parent(at);
            int mark = U.getInt(parent + NOBODY);
            if ((mark & STAYS) != 0) {
                boolean known = (mark & KNOWN) != 0;
                long rest = known ? parent + U.getInt(parent + LAST) : rest(base, parent);
                if (rest == 0) {
                    U.putInt(at + METHOD, REST);
                    rest = at;
                }
                U.putInt(parent + LAST, (int) (rest - parent));
                U.putInt(parent + NOBODY, STAYS | KNOWN);
                if (rest != at) {
                    U.putLong(rest + COUNT, U.getLong(rest + COUNT) + U.getLong(at + COUNT));
                    if (timed) {
                        U.putLong(rest + TOTAL, U.getLong(rest + TOTAL) + U.getLong(at + TOTAL));
                    } else {
                        hand(at, rest, size);
                    }
                }
                U.putInt(at + KIDS, (int) rest);
                U.putInt(at + NOBODY, GOES);
            }
        }
        // The calls of what was below it. Its time is in there already.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) == FREED || U.getInt(at + NOBODY) != 0) {
                continue;
            }
            long known = parent(at);
            while (U.getInt(known + NOBODY) == 0) {
                if ((known & LOW) == 0) {
                    return false; // The session has ended.
                }
                known = parent(known);
            }
            int kids = U.getInt(known + KIDS);
            long rest = base | kids & LOW;
            for (long way = at; U.getInt(way + NOBODY) == 0; way = parent(way)) {
                U.putLong(rest + COUNT, U.getLong(rest + COUNT) + U.getLong(way + COUNT));
                if (!timed) {
                    hand(way, rest, size);
                }
                U.putInt(way + KIDS, kids);
                U.putInt(way + NOBODY, GOES);
            }
        }
        // The ways down are laid anew; then what went can be used again.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) != FREED && (U.getInt(at + NOBODY) & STAYS) != 0) {
                relink(base, at);
            }
        }
        long freed = 0;
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            int mark = U.getInt(at + NOBODY);
            U.putInt(at + NOBODY, 0);
            if (mark == GOES && U.getInt(at + METHOD) != FREED) {
                if (U.getInt(at + METHOD) == REST && (base | U.getInt(at + KIDS) & LOW) == at) {
                    U.putInt(at + KIDS, 0); // Has become its parent's rest.
                    U.putInt(at + LAST, NO_CHILD);
                } else {
                    U.putInt(at + METHOD, FREED);
                    U.putInt(at + SIBLING, U.getInt(tree + T_FREED));
                    U.putInt(tree + T_FREED, (int) at);
                    freed++;
                }
            }
        }
        U.getAndAddLong(null, base + H_DROPPED, freed);
        return freed > all / 8;
    }

    /** Adds what a node holds beside its invocations to another: bytecodes, allocations. */
    private static void hand(long from, long to, int size) {
        for (int at = BYTECODES; at < size; at += 8) {
            U.putLong(to + at, U.getLong(to + at) + U.getLong(from + at));
        }
    }

    private static void stay(long node) {
        while ((U.getInt(node + NOBODY) & STAYS) == 0) {
            U.putInt(node + NOBODY, STAYS);
            if (U.getInt(node + METHOD) == ROOT) {
                return;
            }
            node = parent(node);
            if ((node & LOW) == 0) {
                return;
            }
        }
    }

    /** The rest among the children of a node, or zero. */
    private static long rest(long base, long node) {
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0) {
            for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                if (U.getInt((base | at & LOW) + METHOD) == REST) {
                    return base | at & LOW;
                }
            }
            return 0;
        }
        long table = base | kids - 1 & LOW;
        int mask = U.getInt(table);
        for (int i = 0; i <= mask; i++) {
            int at = U.getInt(table + 8 + ((long) i << 2));
            if (at != 0 && U.getInt((base | at & LOW) + METHOD) == REST) {
                return base | at & LOW;
            }
        }
        return 0;
    }

    /** Leaves those out that go, but for one that has become the rest. */
    private static void relink(long base, long node) {
        U.putInt(node + LAST, NO_CHILD);
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0) {
            int list = 0;
            for (int at = kids; at != 0;) {
                long child = base | at & LOW;
                int next = U.getInt(child + SIBLING);
                if (remains(base, child)) {
                    U.putInt(child + SIBLING, list);
                    list = at;
                }
                at = next;
            }
            U.putInt(node + KIDS, list);
            return;
        }
        long table = base | kids - 1 & LOW;
        int mask = U.getInt(table);
        // A list of those who stay, then the table again from that.
        int list = 0;
        for (int i = 0; i <= mask; i++) {
            int at = U.getInt(table + 8 + ((long) i << 2));
            U.putInt(table + 8 + ((long) i << 2), 0);
            if (at != 0 && remains(base, base | at & LOW)) {
                U.putInt((base | at & LOW) + SIBLING, list);
                list = at;
            }
        }
        U.putInt(table + 4, 0);
        for (int at = list; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
            put(table, base | at & LOW);
        }
    }

    private static boolean remains(long base, long child) {
        return (U.getInt(child + NOBODY) & STAYS) != 0
            || U.getInt(child + METHOD) == REST && (base | U.getInt(child + KIDS) & LOW) == child;
    }

    /** The nodes of a tree, one after the other, in all pages that are its own; zero at the end. */
    private static long first(long tree) {
        return tree + T_ROOT;
    }

    private static long next(long base, long tree, long at, int size) {
        long page = at & -PAGE;
        // One without a method was never made: its thread was stopped on the way.
        for (at += size; at + size <= page + PAGE; at += size) {
            if (U.getInt(at + METHOD) != 0) {
                return at;
            }
        }
        long end = U.getLong(base + H_BUMP);
        for (page += PAGE; (page & LOW) < end;) {
            int kind = U.getInt(page + P_KIND);
            if (kind == KIND_NODES && (U.getInt(page + P_TREE) & LOW) == (tree & LOW)
                && U.getInt(page + P_HEAD + METHOD) != 0) {
                return page + P_HEAD;
            }
            int pages = kind == KIND_TABLE || kind == KIND_REGION ? U.getInt(page + P_PAGES) : 1;
            page += (long) (pages < 1 ? 1 : pages) * PAGE;
        }
        return 0;
    }

    private static long newTree(long base, Thread thread) {
        if (thread != null && U.getAndAddInt(null, base + H_TREES, 1) >= TREES_MAX) {
            long used = pop(base, H_ENDED);
            if (used != 0) {
                U.putInt(used + T_FLAGS, U.getInt(used + T_FLAGS) | FLAG_SHARED);
                return used + T_ROOT;
            }
        }
        long tree = pages(base, PAGE, false);
        if (tree == 0) {
            return 0;
        }
        long root = tree + T_ROOT;
        int size = U.getInt(base + H_NODE);
        int flags = U.getInt(base + H_ROOTS);
        if (thread == null) {
            flags |= FLAG_VIRTUAL | FLAG_LEAVES;
        } else {
            U.putLong(tree + T_THREAD, U.getLong(thread, TID));
            name(tree, thread);
        }
        U.putInt(tree + T_FLAGS, flags);
        U.putInt(tree + T_FREE, (int) root + 2 * size);
        U.putInt(tree + T_END, (int) tree + PAGE);
        U.putInt(root + LAST, NO_CHILD);
        U.putInt(root + METHOD, ROOT);
        // The rest of the whole tree, made now, while there is room.
        long rest = root + size;
        U.putInt(rest + PARENT, (int) root);
        U.putInt(rest + LAST, NO_CHILD);
        U.putInt(rest + METHOD, REST);
        U.putInt(root + KIDS, (int) rest);
        header(tree, KIND_TREE, tree);
        return root;
    }

    /** Copies the thread's name without calling anything: the bytes as String keeps them. */
    private static void name(long tree, Thread thread) {
        Object name = U.getReference(thread, NAME);
        if (!(name instanceof String)) {
            return;
        }
        byte[] bytes = (byte[]) U.getReference(name, VALUE);
        int length = bytes.length < T_NAME_MAX ? bytes.length : T_NAME_MAX;
        for (int i = 0; i < length; i++) {
            U.putByte(tree + T_NAME + 4 + i, bytes[i]);
        }
        U.putInt(tree + T_NAME, length | U.getByte(name, CODER) << 16);
    }

    /** A tree for a virtual thread, for as long as it is inside the subgraph. */
    private static long borrow(long base) {
        long tree = pop(base, H_POOL);
        return tree != 0 ? tree + T_ROOT : newTree(base, null);
    }

    // ---- threads and tasks that come from inside the subgraph ----

    // A thread that is started inside the subgraph is inside from its first moment on, below a node
    // that tells from which tree it was started. A task is noted when it is handed over, and is
    // below such a node for as long as it runs, whichever thread runs it. These nodes have no times.

    /** Tasks on their way: identity hash, a set bit, number of a tree's first page. */
    private static long tasks;
    private static final int TASKS = 65536;
    private static final int TASK_PLACES = 16;
    private static final long ON_ITS_WAY = 1L << 31;
    private static final int TREE_NUMBER = (1 << 20) - 1;

    /** Called by the agent: begins or ends the following of threads and tasks. */
    static void following(long table, long entries) {
        tasks = entries == TASKS ? table : 0;
    }

    /** A thread is about to be started. */
    public static void starts(Object started) {
        long node = tasks == 0 ? 0 : here();
        if (node == 0) {
            return;
        }
        Thread thread = (Thread) started;
        long base = node & ~LOW;
        long tid = U.getLong(thread, TID);
        if (ALIVE == -1 || U.getLong(thread, ALIVE) != 0 || search(tid) != 0) {
            return; // Cannot be started, and may be running.
        }
        boolean timed = U.getInt(base + H_NODE) > START;
        long began = timed ? unpaused(base) : 0;
        long entry = claim(base, tid);
        long root = entry == 0 ? 0 : newTree(base, thread);
        long child = root == 0 ? 0 : find(root, FROM_THREAD - number(node));
        if (child != 0) {
            U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
            U.putLong(entry + 8, FIELD ? ~root : child);
            if (FIELD) {
                U.putLong(thread, CUR, child);
            }
        } else {
            if (entry != 0) {
                U.putLongRelease(null, entry, LEFT);
            }
            U.getAndAddLong(null, tasks, 1);
        }
        if (timed) {
            held(node, unpaused(base) - began);
        }
    }

    /** The number of the first page of a node's tree. */
    private static int number(long node) {
        return (int) (page(node) & LOW) >>> 12;
    }

    /** A thread of a pool begins to wait for tasks: it is inside the subgraph only while it runs one. */
    public static void serves() {
        if (tasks != 0) {
            Thread thread = Thread.currentThread();
            long entry = entry(thread);
            long node = get(thread, entry);
            if (node > 0 && node >>> 32 == session) {
                int method = U.getInt(node + METHOD);
                if (method <= FROM_THREAD && method > FROM_TASK) {
                    set(thread, entry, ~parent(node));
                }
            }
        }
    }

    /** A task is handed over. */
    public static void submits(Object task) {
        long table = tasks;
        if (table != 0 && task != null) {
            long node = here();
            if (node != 0) {
                note(table, task, number(node));
            }
        }
    }

    /** A task that is run now is to be run again later. */
    public static void resubmits(Object task) {
        long table = tasks;
        long node = table == 0 ? 0 : here();
        while (node != 0 && (node & LOW) != 0 && U.getInt(node + METHOD) != ROOT) {
            int method = U.getInt(node + METHOD);
            if (method <= FROM_TASK) {
                note(table, task, FROM_TASK - method);
                return;
            }
            node = parent(node);
        }
    }

    private static void note(long table, Object task, int from) {
        int hash = System.identityHashCode(task);
        long noted = (long) hash << 32 | ON_ITS_WAY | from & TREE_NUMBER;
        for (int i = 0; i < TASK_PLACES; i++) {
            int at = hash + i & TASKS - 1;
            if (at != 0 && U.compareAndSetLong(null, table + ((long) at << 3), 0, noted)) {
                return;
            }
        }
        U.getAndAddLong(null, table, 1);
    }

    /** A task is about to be run by this thread. */
    public static long begins(Object task) {
        long table = tasks;
        if (table == 0 || task == null) {
            return 0;
        }
        int hash = System.identityHashCode(task);
        for (int i = 0; i < TASK_PLACES; i++) {
            long place = table + ((long) (hash + i & TASKS - 1) << 3);
            long noted = U.getLong(place);
            if (noted >>> 32 == hash && (noted & ON_ITS_WAY) != 0
                && U.compareAndSetLong(null, place, noted, 0)) {
                // Who runs it inside the subgraph anyway has it where it was called.
                return here() != 0 ? 0
                    : begin(Thread.currentThread(), FROM_TASK - ((int) noted & TREE_NUMBER));
            }
        }
        return 0;
    }

    public static void ends(long token) {
        exit(token);
    }

    // A thread that waited for a task when we came runs the old code around it; what the pool calls
    // before and after each task is entered anew.

    public static void before(Object task) {
        begins(task);
    }

    public static void after() {
        long node = tasks == 0 ? 0 : here();
        while (node != 0 && (node & LOW) != 0 && U.getInt(node + METHOD) != ROOT) {
            long outer = parent(node);
            if (U.getInt(node + METHOD) <= FROM_TASK && U.getInt(outer + METHOD) == ROOT) {
                Thread thread = Thread.currentThread();
                set(thread, entry(thread), ~outer);
                return;
            }
            node = outer;
        }
    }

    // ---- regions ----

    // A region's figures are kept per thread, beside its tree, whatever else is recorded. The token is
    // the time of the start, with the region and some bits of the session above it.

    private static final int R_NEXT = 32;     // int
    private static final int R_REGION = 36;   // int
    private static final int R_COUNT = 40;    // long
    private static final int R_TOTAL = 48;    // long
    private static final int R_MIN = 56;      // long
    private static final int R_MAX = 64;      // long
    private static final int R_TIMES = 128;   // longs, how often a time was in each stretch of times
    private static final int R_BYTES = 8192;
    private static final int R_SHIFT = 4;     // stretches to each power of two, as a power of two
    private static final int REGION_AT = 48;
    private static final int SESSION_AT = 56;
    private static final long REGION_TIME = (1L << REGION_AT) - 1;

    /** A region is entered. Given a token that is not zero, it is entered already. */
    @ForceInline
    public static long regionStart(long token, int region) {
        return token != 0 ? token : regionBegin(region);
    }

    @ForceInline
    public static void regionStop(long token) {
        if (token != 0) {
            regionEnd(token);
        }
    }

    private static long regionBegin(int region) {
        long mark = session;
        if (mark == -1) {
            return 0;
        }
        Thread thread = Thread.currentThread();
        long time = regionTime(mark, regionTree(thread, mark), ticks());
        return (mark & 0x7f) << SESSION_AT | (long) region << REGION_AT | time & REGION_TIME | 1;
    }

    private static void regionEnd(long token) {
        long now = ticks();
        long mark = session;
        if (mark == -1 || (mark & 0x7f) != token >>> SESSION_AT) {
            return; // Began before this session.
        }
        Thread thread = Thread.currentThread();
        long tree = regionTree(thread, mark);
        long time = regionTime(mark, tree, now) - token & REGION_TIME;
        if (time > REGION_TIME >>> 1) {
            time = 0; // The agent told of a pause meanwhile.
        }
        int region = (int) (token >>> REGION_AT) & 0xff;
        if (tree != 0) {
            regionCount(mark << 32, tree, region, time);
        } else if (VIRTUAL != null && VIRTUAL.isInstance(thread)) {
            long root = borrow(mark << 32);
            if (root != 0) {
                regionCount(mark << 32, page(root), region, time);
                push(mark << 32, H_POOL, page(root));
            } else {
                lost(mark << 32);
            }
        } else {
            long root = regionRoot(thread, mark);
            if (root != 0) {
                regionCount(mark << 32, page(root), region, time);
            }
        }
    }

    /** The time as a thread's tree sees it. Trees that virtual threads borrow do not matter. */
    @ForceInline
    private static long regionTime(long mark, long tree, long now) {
        now -= U.getLong((mark << 32) + H_PAUSED);
        if (tree != 0 && (U.getInt(tree + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            now -= U.getLong(tree + T_ADJUST);
        }
        return now;
    }

    /** The tree of a thread, or zero if it has none of this session. */
    @ForceInline
    private static long regionTree(Thread thread, long mark) {
        long node = get(thread, entry(thread));
        node = node > 0 ? node : ~node;
        if (node >>> 32 == mark) {
            return page(node);
        }
        if (FIELD) {
            long entry = search(U.getLong(thread, TID));
            node = entry == 0 ? 0 : ~U.getLong(entry + 8);
        }
        return node >>> 32 == mark ? page(node) : 0;
    }

    /** Makes a tree for a thread that stays outside the subgraph. */
    private static long regionRoot(Thread thread, long mark) {
        long base = mark << 32;
        long entry = claim(base, U.getLong(thread, TID));
        long root = entry == 0 ? 0 : newTree(base, thread);
        if (root == 0) {
            if (entry != 0) {
                U.putLongRelease(null, entry, LEFT);
            }
            lost(base);
            return 0;
        }
        U.putLong(entry + 8, ~root);
        if (FIELD) {
            U.putLong(thread, CUR, ~root);
        }
        return root;
    }

    private static void regionCount(long base, long tree, int region, long time) {
        int at = U.getInt(tree + T_REGIONS);
        while (at != 0 && U.getInt((base | at & LOW) + R_REGION) != region) {
            at = U.getInt((base | at & LOW) + R_NEXT);
        }
        long figures = base | at & LOW;
        if (at == 0) {
            figures = pages(base, R_BYTES, false);
            if (figures == 0) {
                lost(base);
                return;
            }
            U.putInt(figures + P_PAGES, R_BYTES / PAGE);
            U.putInt(figures + R_REGION, region);
            U.putInt(figures + R_NEXT, U.getInt(tree + T_REGIONS));
            U.putLong(figures + R_MIN, Long.MAX_VALUE);
            header(figures, KIND_REGION, tree);
            U.putInt(tree + T_REGIONS, (int) figures);
        }
        if (time < U.getLong(figures + R_MIN)) {
            U.putLong(figures + R_MIN, time);
        }
        if (time > U.getLong(figures + R_MAX)) {
            U.putLong(figures + R_MAX, time);
        }
        // Up to 15 a stretch for each tick, then 16 for each power of two.
        long stretch = time;
        if (time >>> R_SHIFT != 0) {
            int power = 0;
            long rest = time >>> R_SHIFT;
            for (int step = 32; step != 0; step >>= 1) {
                if (rest >>> step != 0) {
                    rest >>>= step;
                    power += step;
                }
            }
            stretch = ((long) power << R_SHIFT) + (time >>> power);
        }
        long times = figures + R_TIMES + (stretch << 3);
        U.putLong(times, U.getLong(times) + 1);
        U.putLong(figures + R_TOTAL, U.getLong(figures + R_TOTAL) + time);
        U.putLong(figures + R_COUNT, U.getLong(figures + R_COUNT) + 1);
    }
    // ---- calibration ----

    // Methods with probes around work, in the forms in which woven code has them. The calling thread
    // gets a tree like any other, which is taken away again.

    private static final int BARE = 0;
    private static final int TIMED = 1;
    private static final int CHAINED = 2;
    private static final int COUNTED = 3;
    private static final int COUNTED_LEAF = 4;
    private static final int COLD_BARE = 5;
    private static final int COLD_TIMED = 6;

    private static int worked;

    /**
     * Called by the agent before anything is woven, and again later: how long so many calls take of
     * a method that does so many steps of work, in nanoseconds; when chained, of one that calls
     * another one, which does the work. Wide work keeps the processor busy, other work lets it wait.
     * What is cold is called so seldom that it is never compiled. None of them takes another way
     * through the probes than calls of one method do: the JVM's compilers remember which ways are taken.
     */
    static long calibrate(int form, int wide, int rounds, int steps) {
        long start = System.nanoTime();
        switch (form) {
            case BARE: bare(wide != 0, rounds, steps); break;
            case TIMED: timed(wide != 0, rounds, steps); break;
            case CHAINED: chained(wide != 0, rounds, steps); break;
            case COUNTED: counted(wide != 0, rounds, steps); break;
            case COUNTED_LEAF: countedLeaf(wide != 0, rounds, steps); break;
            case COLD_BARE: coldBare(rounds); break;
            case COLD_TIMED: coldTimed(rounds); break;
            default: break;
        }
        return System.nanoTime() - start;
    }

    /**
     * Called by the agent: ticks that were measured in calibration since it was asked last, in the
     * outer (0) or the inner (1) of two methods.
     */
    static long calibrated(int level) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        node = node > 0 ? node : ~node;
        if (node >>> 32 != session || U.getInt((node & ~LOW) + H_NODE) <= START) {
            return 0;
        }
        for (int i = 0; i <= level && node != 0; i++) {
            node = find(node, CALIBRATION);
        }
        if (node == 0 || U.getInt(node + METHOD) != CALIBRATION) {
            return 0;
        }
        long ticks = U.getLong(node + TOTAL);
        U.putLong(node + TOTAL, 0);
        return ticks;
    }

    /** The same compiled code with and without probes around it. */
    @DontInline
    private static int work(boolean wide, int x, int steps) {
        if (wide) {
            int a = x;
            int b = x + 1;
            int c = x + 2;
            int d = x + 3;
            for (int i = 0; i < steps; i++) {
                a += b ^ i;
                b ^= i;
                c += d ^ i;
                d ^= i;
            }
            return a + b + c + d;
        }
        for (int i = 0; i < steps; i++) {
            x ^= x << 13;
            x ^= x >>> 17;
        }
        return x;
    }

    private static void bare(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = work(wide, x, steps);
        }
        worked = x;
    }

    private static void timed(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = timedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void chained(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = chainedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void counted(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = countedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void countedLeaf(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = countedLeafWork(wide, x, steps);
        }
        worked = x;
    }

    private static int timedWork(boolean wide, int x, int steps) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = work(wide, x, steps);
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int chainedWork(boolean wide, int x, int steps) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = timedWork(wide, x, steps);
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int countedWork(boolean wide, int x, int steps) {
        long token = enterRoot(CALIBRATION);
        try {
            x = work(wide, x, steps);
        } catch (Throwable thrown) {
            exit(token);
            throw thrown;
        }
        exit(token);
        return x;
    }

    private static void coldBare(int rounds) {
        for (int i = 0; i < rounds; i++) {
            worked = coldWork(worked);
        }
    }

    private static void coldTimed(int rounds) {
        for (int i = 0; i < rounds; i++) {
            worked = coldTimedWork(worked);
        }
    }

    private static int coldWork(int x) {
        return x + 1;
    }

    private static int coldTimedWork(int x) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int countedLeafWork(boolean wide, int x, int steps) {
        leafRoot(CALIBRATION);
        return work(wide, x, steps);
    }

    /** Called by the agent: the calling thread was held up for this many ticks, for our sake. */
    static void held(long ticks) {
        long node = here();
        if (node != 0) {
            held(node, ticks);
        }
    }

    /** Called by the agent: the calling thread's tree; zero outside the subgraph. */
    static long tree() {
        long node = here();
        return node == 0 ? 0 : page(node);
    }

    private static void held(long node, long ticks) {
        long tree = page(node);
        U.putLong(tree + T_ADJUST, U.getLong(tree + T_ADJUST) + ticks);
    }

    /** Called by the agent on a thread that is about to end. */
    static void ended() {
        long mark = session;
        Thread thread = Thread.currentThread();
        long entry = search(U.getLong(thread, TID));
        long node = get(thread, entry);
        if (FIELD && (node > 0 ? node : ~node) >>> 32 != mark && entry != 0) {
            node = U.getLong(entry + 8);
        }
        node = node > 0 ? node : ~node;
        if (node >>> 32 != mark) {
            return;
        }
        long tree = page(node);
        forget(thread, entry);
        if ((U.getInt(tree + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            push(mark << 32, H_ENDED, tree);
        }
    }

    private static long pop(long base, int list) {
        long found = 0;
        if (lock(base)) {
            int tree = U.getInt(base + list);
            if (tree != 0) {
                found = base | tree & LOW;
                U.putInt(base + list, U.getInt(found + T_NEXT));
            }
            U.putIntRelease(null, base + H_LOCK, 0);
        }
        return found;
    }

    /** A tree that cannot be put on its list now is never used again; its figures stay. */
    private static void push(long base, int list, long tree) {
        if (lock(base)) {
            U.putInt(tree + T_NEXT, U.getInt(base + list));
            U.putInt(base + list, (int) tree);
            U.putIntRelease(null, base + H_LOCK, 0);
        }
    }

    private static boolean lock(long base) {
        for (int i = 0; i < 1000; i++) {
            if (U.compareAndSetInt(null, base + H_LOCK, 0, 1)) {
                return true; // Thread.onSpinWait() would be the thing to call next, but it could be woven.
            }
        }
        return false;
    }
}
