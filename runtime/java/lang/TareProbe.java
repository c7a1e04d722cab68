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
    private static final int LAST = 8;     // int, the child that was entered last
    private static final int METHOD = 16;  // int, zero while the node is not in use
    private static final int PARENT = 20;  // int
    private static final int SIBLING = 24; // int
    private static final int KIDS = 28;    // int, first child, or (odd) a table of children
    private static final int START = 32;   // long, only in timed sessions
    private static final int TOTAL = 40;   // long, only in timed sessions

    // The arena's header, at the beginning of the slot.
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
    private static final int T_NAME_MAX = 120;
    private static final int T_ROOT = 192;
    private static final int KIND_TREE = 1;
    private static final int KIND_NODES = 2;
    private static final int KIND_TABLE = 3;
    private static final int EXTENT = 16 * PAGE;
    private static final int FLAG_LEAVES = 1;    // whoever leaves a child of the root leaves the subgraph
    private static final int FLAG_VIRTUAL = 2;   // a tree of the pool, for virtual threads
    private static final int FLAG_SHARED = 4;    // of several platform threads, one after the other
    private static final int TREES_MAX = 1024;   // from here on, trees of ended threads are used again

    // Ids that no method has.
    private static final int ROOT = -2;
    private static final int REST = -3;
    private static final int CALIBRATION = -4;

    private static final int LIST_MAX = 8;
    private static final long LOW = 0xffff_ffffL;

    private static final long CUR = offset("tare$cur");
    private static final boolean FIELD = CUR != -1;
    private static final long TID = offset("tid");
    private static final long NAME = offset("name");
    private static final long VALUE = U.objectFieldOffset(String.class, "value");
    private static final long CODER = U.objectFieldOffset(String.class, "coder");
    private static final Class<?> VIRTUAL = virtual();

    /** The upper half of this session's addresses; what no address has when nothing is on. */
    private static long session = -1;

    /** Where threads are found when they have no field: entries of thread id and current node. */
    private static long table;
    private static final int TABLE_ENTRIES = 65536;
    private static final long LEFT = -1; // Was somebody's: not empty, so that searches go on.
    private static final long TABLE_MASK = TABLE_ENTRIES - 1;

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
    static void session(long address, long threads) {
        if (address == -1) {
            session = -1; // The table stays: a probe may be looking into it at this moment.
        } else {
            table = threads;
            session = address >>> 32;
        }
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
            long began = ticks();
            if (reveal(executable, true)) {
                U.putLong(place, key);
            }
            postpone(node, ticks() - began);
        }
    }

    /** A method handle is being made for a MemberName. */
    public static void links(Object member) {
        if (revealed != 0) {
            long node = here();
            long began = ticks();
            reveal(member, node != 0);
            if (node != 0) {
                postpone(node, ticks() - began);
            }
        }
    }

    /** The thread's current node; zero outside the subgraph. */
    private static long here() {
        Thread thread = Thread.currentThread();
        long node = get(thread, slot(thread));
        return node >>> 32 == session ? node : 0;
    }

    // ---- counting ----

    // The token is where the thread was at entry, so the exit needs no memory but the thread's own:
    // it puts the thread back, whatever happened in between. A token that is no address of this
    // session is zero (nothing was counted), the complement of a root (the exit leaves the
    // subgraph), or older than this session.

    /** Entry of a method that counts only inside the subgraph. */
    @ForceInline
    public static long enter(int id) {
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        long node = get(thread, slot);
        return node >>> 32 == session ? down(thread, slot, node, id) : 0;
    }

    /** Entry of a root: from outside it begins the subgraph. */
    @ForceInline
    public static long enterRoot(int id) {
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        long node = get(thread, slot);
        return node >>> 32 == session ? down(thread, slot, node, id) : begin(thread, id);
    }

    @ForceInline
    private static long down(Thread thread, long slot, long node, int id) {
        long child = node & ~LOW | U.getInt(node + LAST) & LOW;
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                return 0;
            }
        }
        U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
        set(thread, slot, child);
        return node;
    }

    /** Exit, normal or by exception. */
    @ForceInline
    public static void exit(long token) {
        if (token >>> 32 == session) {
            Thread thread = Thread.currentThread();
            set(thread, slot(thread), token);
        } else if (token != 0) {
            leave(token);
        }
    }

    /** A handler of the method caught an exception: whatever it had called is over. */
    public static void caught(long token, int id) {
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        long node = own(get(thread, slot), token);
        if (node != 0) {
            set(thread, slot, node);
        }
    }

    // ---- timing ----

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
        long node = get(thread, slot(thread));
        if (node >>> 32 == session) {
            U.putLong(node + START, ticks());
        }
    }

    @ForceInline
    public static void exitTimed(long token) {
        if (token != 0) {
            long now = ticks();
            Thread thread = Thread.currentThread();
            ended(get(thread, slot(thread)), token, now);
            exit(token);
        }
    }

    public static void caughtTimed(long token, int id) {
        long now = ticks();
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        long node = get(thread, slot);
        long own = own(node, token);
        if (own != 0) {
            for (; node != own; node = parent(node)) {
                stop(node, now);
            }
            set(thread, slot, own);
        }
    }

    /** Stops the clocks from the current node up to the one that was entered with this token. */
    @ForceInline
    private static void ended(long node, long token, long now) {
        if (node >>> 32 == session) {
            long outer = token >>> 32 == session ? token : ~token;
            if (parent(node) == outer) {
                stop(node, now);
            } else if (own(node, token) != 0) {
                for (; node != outer; node = parent(node)) {
                    stop(node, now);
                }
            }
        }
    }

    @ForceInline
    private static void stop(long node, long now) {
        long start = U.getLong(node + START);
        if (start != 0) {
            U.putLong(node + TOTAL, U.getLong(node + TOTAL) + now - start);
            U.putLong(node + START, 0);
        }
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
        long outer = token >>> 32 == session ? token : ~token;
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
    private static long get(Thread thread, long slot) {
        return FIELD ? U.getLong(thread, CUR) : slot == 0 ? 0 : U.getLong(slot + 8);
    }

    @ForceInline
    private static void set(Thread thread, long slot, long node) {
        if (FIELD) {
            U.putLong(thread, CUR, node);
        } else if (slot != 0) {
            U.putLong(slot + 8, node);
        }
    }

    /** The thread's entry in the table; zero when it has none. */
    @ForceInline
    private static long slot(Thread thread) {
        if (FIELD) {
            return 0;
        }
        long id = U.getLong(thread, TID);
        long entry = table + ((id & TABLE_MASK) << 4);
        long key = U.getLong(entry);
        return key == id ? entry : key == 0 ? 0 : probe(id);
    }

    /** An entry that is not in its first place lies behind others, with no empty one between. */
    private static long probe(long id) {
        for (long at = id + 1; at < id + 16; at++) {
            long entry = table + ((at & TABLE_MASK) << 4);
            long key = U.getLong(entry);
            if (key == id) {
                return entry;
            }
            if (key == 0) {
                return 0;
            }
        }
        return 0;
    }

    private static long claim(long id) {
        for (long at = id; at < id + 16; at++) {
            long entry = table + ((at & TABLE_MASK) << 4);
            if (U.compareAndSetLong(null, entry, 0, id)
                || U.compareAndSetLong(null, entry, LEFT, id)) {
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
        long base = mark << 32;
        long slot = slot(thread);
        if (!FIELD && slot == 0) {
            slot = claim(U.getLong(thread, TID));
            if (slot == 0) {
                lost(base);
                return 0;
            }
        }
        long root = ~get(thread, slot);
        if (root >>> 32 != mark) {
            boolean virtual = VIRTUAL != null && VIRTUAL.isInstance(thread);
            if (virtual && U.getInt(base + H_CPU) != 0) {
                // The processor's time is that of the thread below, which changes at any moment.
                forget(thread, slot);
                lost(base);
                return 0;
            }
            root = virtual ? borrow(base) : newTree(base, thread);
            if (root == 0) {
                forget(thread, slot);
                lost(base);
                return 0;
            }
        }
        boolean leaves = (U.getInt(page(root) + T_FLAGS) & FLAG_LEAVES) != 0;
        long token = down(thread, slot, root, id);
        return token != 0 && leaves ? ~root : token;
    }

    /** An exit that is not the plain step back. */
    @DontInline
    private static void leave(long token) {
        long root = ~token;
        long mark = session;
        if (root >>> 32 != mark) {
            return; // A frame that is older than this session.
        }
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        if (get(thread, slot) >>> 32 != mark) {
            return;
        }
        if ((U.getInt(page(root) + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            set(thread, slot, ~root); // Outside, and the tree is found again.
        } else {
            forget(thread, slot);
            push(mark << 32, H_POOL, page(root));
        }
    }

    private static void forget(Thread thread, long slot) {
        set(thread, slot, 0);
        if (!FIELD && slot != 0) {
            U.putLongRelease(null, slot, LEFT);
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
                    U.putInt(node + LAST, (int) child);
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
                    U.putInt(node + LAST, (int) child);
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

    @DontInline
    private static long create(long node, int id, int length) {
        long base = node & ~LOW;
        if (U.getInt(node + METHOD) == REST) {
            U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
            return 0; // Stays in the rest; the exit finds nothing to do.
        }
        long tree = page(node);
        boolean rest = id == REST;
        int deepest = U.getInt(base + H_DEPTH);
        if (deepest != 0 && !rest && depth(node) >= deepest) {
            return find(node, REST);
        }
        long child = allocate(base, tree, U.getInt(base + H_NODE), rest);
        if (child == 0) {
            if (rest) {
                // Not even room for the node's own rest: the tree's is always there.
                long whole = tree + T_ROOT + U.getInt(base + H_NODE);
                U.putLong(whole + COUNT, U.getLong(whole + COUNT) + 1);
                return 0;
            }
            U.getAndAddLong(null, base + H_REFUSED, 1);
            return find(node, REST);
        }
        U.putInt(child + PARENT, (int) node);
        // A reader takes a node for real once it has a method.
        U.putIntRelease(null, child + METHOD, id);
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0 && length < LIST_MAX) {
            U.putInt(child + SIBLING, kids);
            U.putInt(node + KIDS, (int) child);
        } else {
            tabulate(base, tree, node, child);
        }
        U.putInt(node + LAST, (int) child);
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
        long began = ticks();
        first(id);
        postpone(node, ticks() - began);
    }

    /** A wait is nobody's: the clocks of all who are inside begin later. */
    private static void postpone(long node, long waited) {
        if (U.getInt((node & ~LOW) + H_NODE) > START) {
            for (; (node & LOW) != 0; node = parent(node)) {
                long start = U.getLong(node + START);
                if (start != 0) {
                    U.putLong(node + START, start + waited);
                }
            }
        }
    }

    private static int depth(long node) {
        int depth = 0;
        for (; U.getInt(node + METHOD) != ROOT; node = parent(node)) {
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
        U.putInt(root + METHOD, ROOT);
        // The rest of the whole tree, made now, while there is room.
        long rest = root + size;
        U.putInt(rest + PARENT, (int) root);
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

    /**
     * Called by the agent before anything is woven: what a call costs in probes, at least, in
     * nanoseconds for {@code rounds} calls. The calling thread gets a tree like any other, which
     * is taken away again.
     */
    static long calibrate(int rounds, boolean timed) {
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i++) {
            if (timed) {
                exitTimed(enterRootTimed(CALIBRATION));
            } else {
                exit(enterRoot(CALIBRATION));
            }
        }
        return System.nanoTime() - start;
    }

    /** Called by the agent on a thread that is about to end. */
    static void ended() {
        long mark = session;
        Thread thread = Thread.currentThread();
        long slot = slot(thread);
        long node = get(thread, slot);
        if (node >>> 32 != mark) {
            node = ~node;
            if (node >>> 32 != mark) {
                return;
            }
        }
        long tree = page(node);
        forget(thread, slot);
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
