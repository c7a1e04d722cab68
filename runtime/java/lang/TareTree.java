package java.lang;

import static java.lang.TareClock.unpaused;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The calling-context trees: finding and making nodes, and the pages that they lie in.
 *
 * <p>When a session ends, its memory becomes zeros under the feet of whoever is in here; every address is
 * therefore made of a session's upper half and an offset, never taken whole from memory, and zero leads
 * to the header. Nothing here calls a method that could be woven, allocates, blocks or throws.
 */
final class TareTree {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareTree() {}

    /**
     * The child for a method, made if need be; the node's rest when there is no room; or zero. A call
     * from the probes, which the JVM then finds small enough to inline in turn.
     */
    @DontInline
    static long find(long node, int id) {
        long child = known(node, id);
        return child != 0 ? child : search(node, id, true);
    }

    /**
     * The child for an allocation site, made if need be. A site is no call: no depth is too great for
     * it, and nothing is found by it. The node itself, if it is a rest; its rest when there is no room;
     * or zero.
     */
    @DontInline
    static long site(long node, int id) {
        long child = known(node, id);
        return child != 0 ? child : search(node, id, false);
    }

    /**
     * The child for a method, if it is in one of its two slots; or zero. The probes have looked at the
     * first one before they call anything in here.
     */
    @ForceInline
    static long known(long node, int id) {
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
        if (U.getInt(child + METHOD) == id) {
            return child;
        }
        child = node + U.getInt(second(node, id));
        return U.getInt(child + METHOD) == id ? child : 0;
    }

    /** Where a child is that found its first slot taken: never the first slot. */
    @ForceInline
    private static long second(long node, int id) {
        return node + SLOT + (((id >> SLOTS_LOG | 1) ^ id) & SLOTS - 1) * 4L;
    }

    private static long search(long node, int id, boolean call) {
        long base = node & ~LOW;
        int kids = U.getInt(node + KIDS);
        int length = 0;
        if ((kids & 1) == 0) {
            for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                long child = base | at & LOW;
                if (U.getInt(child + METHOD) == id) {
                    remember(node, id, child);
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
                    remember(node, id, child);
                    return child;
                }
            }
        }
        return create(node, id, length, call);
    }

    /** Puts a child into a slot of its own: the first, unless only the second is empty. */
    @ForceInline
    private static void remember(long node, int id, long child) {
        long first = node + SLOT + ((id & SLOTS - 1) << 2);
        long second = second(node, id);
        boolean later = U.getInt(node + U.getInt(first) + METHOD) != 0
            && U.getInt(node + U.getInt(second) + METHOD) == 0;
        U.putInt(later ? second : first, (int) (child - node));
    }

    /** Empties the slots: where a child's method would be there is its page's zero. */
    static void noChild(long node) {
        long page = node & -PAGE;
        int to = (int) (page + P_NOBODY - METHOD - node);
        long two = to & LOW | (long) to << 32;
        for (int at = SLOT; at < SLOT + SLOTS * 4; at += 8) {
            U.putLong(node + at, two);
        }
    }

    @ForceInline
    static int spread(int id) {
        return id * 0x9e37_79b1 >>> 15;
    }

    /** Makes a child. It takes longer than a probe should; the tree's clock stands still. */
    @DontInline
    private static long create(long node, int id, int length, boolean call) {
        long base = node & ~LOW;
        if (base >>> 32 != session) {
            return 0; // Older than this session.
        }
        int holds = U.getInt(base + H_HOLDS);
        if (holds == HOLDS_TRACE) {
            return 0; // Woven for an earlier session; there are no trees now.
        }
        if (holds != HOLDS_TIMES && holds != HOLDS_SOME_TIMES && holds != HOLDS_FOLLOWED) {
            return make(base, node, id, length, call);
        }
        long tree = page(node);
        long adjust = U.getLong(tree + T_ADJUST);
        long begin = unpaused(base);
        long child = make(base, node, id, length, call);
        U.putLong(tree + T_ADJUST, adjust + unpaused(base) - begin);
        return child;
    }

    private static long make(long base, long node, int id, int length, boolean call) {
        if (U.getInt(node + METHOD) == REST) {
            if (!call) {
                return node;
            }
            U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
            return 0; // Stays in the rest; the exit finds nothing to do.
        }
        long tree = page(node);
        boolean rest = id == REST;
        if (call && !rest && U.getInt(base + H_FOLD) != 0) {
            for (long outer = node; U.getInt(outer + METHOD) > 0; outer = parent(outer)) {
                if (U.getInt(outer + METHOD) == id) {
                    remember(node, id, outer);
                    return outer;
                }
            }
        }
        int deepest = U.getInt(base + H_DEPTH);
        if (call && deepest != 0 && !rest && depth(node) >= deepest) {
            return find(node, REST);
        }
        int size = U.getInt(base + H_NODE);
        long child = allocate(base, tree, size, rest);
        if (child == 0 && !rest && TarePruning.prune(base, tree, node)) {
            child = allocate(base, tree, size, false);
            length = 0; // Counted before; the list may get longer by one, once.
        }
        if (child == 0) {
            if (rest) {
                // Not even room for the node's own rest: the tree's is always there.
                long whole = tree + T_ROOT + size;
                if (!call) {
                    return whole;
                }
                U.putLong(whole + COUNT, U.getLong(whole + COUNT) + 1);
                return 0;
            }
            U.getAndAddLong(null, base + H_REFUSED, 1);
            return call ? find(node, REST) : site(node, REST);
        }
        U.putInt(child + PARENT, (int) node);
        noChild(child);
        // A reader takes a node for real once it has a method.
        U.putIntRelease(null, child + METHOD, id);
        int kids = U.getInt(node + KIDS);
        // The tree of one call is used again for the next, and tables could not be.
        boolean followed = (U.getInt(tree + T_FLAGS) & FLAG_FOLLOWED) != 0;
        if (followed) {
            TareFollow.made(tree, child);
        }
        if ((kids & 1) == 0 && (length < LIST_MAX || followed)) {
            U.putInt(child + SIBLING, kids);
            U.putInt(node + KIDS, (int) child);
        } else {
            tabulate(base, tree, node, child);
        }
        remember(node, id, child);
        if (call && !rest && TareDiscovery.searches()) {
            TareDiscovery.discover(node, id);
        }
        return child;
    }

    static int depth(long node) {
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

    static void put(long table, long child) {
        int mask = U.getInt(table);
        int i = spread(U.getInt(child + METHOD)) & mask;
        while (U.getInt(table + 8 + ((long) i << 2)) != 0) {
            i = i + 1 & mask;
        }
        U.putInt(table + 8 + ((long) i << 2), (int) child);
        U.putInt(table + 4, U.getInt(table + 4) + 1);
    }

    @ForceInline
    static long parent(long node) {
        return node & ~LOW | U.getInt(node + PARENT) & LOW;
    }

    // ---- memory ----

    /** The first page of the tree that a node belongs to. */
    @ForceInline
    static long page(long node) {
        long page = node & -PAGE;
        return node & ~LOW | U.getInt(page + P_TREE) & LOW;
    }

    static void lost(long base) {
        U.getAndAddLong(null, base + H_LOST, 1);
    }

    /** Found in the agent: backs more of the arena, up to this end at least. Whether it did. */
    private static native boolean more(long base, long end, boolean rest);

    /** Pages that are backed by memory, or zero. The last part is kept for what was refused. */
    static long pages(long base, int bytes, boolean rest) {
        for (;;) {
            long limit = U.getLong(base + (rest ? H_LIMIT : H_RESERVE));
            long at = U.getLong(base + H_BUMP);
            if (at + bytes > limit) {
                // The agent allocates ahead, but it may not have got the processor.
                if (U.getInt(base + H_FULL) != 0 || !more(base, at + bytes, rest)) {
                    return 0;
                }
                continue;
            }
            if (U.compareAndSetLong(null, base + H_BUMP, at, at + bytes)) {
                return base | at & LOW;
            }
        }
    }

    private static long allocate(long base, long tree, int size, boolean rest) {
        int freed = U.getInt(tree + T_FREED);
        if (freed != 0) {
            long node = base | freed & LOW;
            U.putInt(tree + T_FREED, U.getInt(node + SIBLING));
            U.putLong(node + COUNT, 0);
            U.putInt(node + KIDS, 0); // The method beside it keeps its mark until there is a new one.
            for (int at = SLOT; at < size; at += 8) {
                U.putLong(node + at, 0);
            }
            return node;
        }
        int free = U.getInt(tree + T_FREE);
        int end = U.getInt(tree + T_END);
        // A node does not cross pages: each page begins with the tree that it belongs to.
        if ((free & PAGE - 1) + size > PAGE || (free & PAGE - 1) == 0) {
            free = free + PAGE - 1 & -PAGE;
            if (free == end) {
                int bytes = rest ? PAGE : EXTENT;
                long extent = pages(base, bytes, rest);
                if (extent == 0) {
                    return 0;
                }
                free = (int) extent;
                end = free + bytes;
            }
            header(base | free & LOW, KIND_NODES, tree);
            free += P_HEAD;
        }
        // Both at once: the program's stack may overflow at any call in here, also at one of Unsafe.
        U.putLong(tree + T_FREE, free + size & LOW | (long) end << 32);
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

    /** As {@link #pages}, at a multiple of its size; what lies before it goes to nobody. */
    static long aligned(long base, int bytes, long tree) {
        long limit = U.getLong(base + H_RESERVE);
        for (;;) {
            long at = U.getLong(base + H_BUMP);
            long start = at + bytes - 1 & -bytes;
            if (start + bytes > limit) {
                return 0;
            }
            if (U.compareAndSetLong(null, base + H_BUMP, at, start + bytes)) {
                if (start != at) {
                    long before = base | at & LOW;
                    U.putInt(before + P_PAGES, (int) (start - at) / PAGE);
                    header(before, KIND_TABLE, tree);
                }
                return base | start & LOW;
            }
        }
    }

    static void header(long page, int kind, long tree) {
        U.putInt(page + P_TREE, (int) tree);
        U.putIntRelease(null, page + P_KIND, kind);
    }

    // ---- the trees themselves ----

    static long newTree(long base, Thread thread) {
        if (thread != null && U.getAndAddInt(null, base + H_TREES, 1) >= TREES_MAX) {
            long used = pop(base, H_ENDED);
            if (used != 0) {
                U.putInt(used + T_FLAGS, U.getInt(used + T_FLAGS) | FLAG_SHARED);
                return used + T_ROOT;
            }
        }
        int flags = U.getInt(base + H_ROOTS);
        long tree = blank(base, thread == null ? flags | FLAG_VIRTUAL | FLAG_LEAVES : flags, thread);
        return tree == 0 ? 0 : tree + T_ROOT;
    }

    /** A tree of nothing but its root, and the rest of the whole tree; or zero. */
    static long blank(long base, int flags, Thread thread) {
        long tree = pages(base, PAGE, false);
        if (tree == 0) {
            return 0;
        }
        long root = tree + T_ROOT;
        int size = U.getInt(base + H_NODE);
        if (thread != null) {
            U.putLong(tree + T_THREAD, U.getLong(thread, TID));
            name(tree, thread);
        }
        U.putInt(tree + T_FLAGS, flags);
        U.putInt(tree + T_FREE, (int) root + 2 * size);
        U.putInt(tree + T_END, (int) tree + PAGE);
        noChild(root);
        U.putInt(root + METHOD, ROOT);
        // The rest of the whole tree, made now, while there is room.
        long rest = root + size;
        U.putInt(rest + PARENT, (int) root);
        noChild(rest);
        U.putInt(rest + METHOD, REST);
        U.putInt(root + KIDS, (int) rest);
        header(tree, KIND_TREE, tree);
        return tree;
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
    static long borrow(long base) {
        long tree = pop(base, H_POOL);
        return tree != 0 ? tree + T_ROOT : newTree(base, null);
    }

    static long pop(long base, int list) {
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
    static void push(long base, int list, long tree) {
        if (lock(base)) {
            U.putInt(tree + T_NEXT, U.getInt(base + list));
            U.putInt(base + list, (int) tree);
            U.putIntRelease(null, base + H_LOCK, 0);
        }
    }

    /**
     * Whether the stack has room for calls in here: it overflows now, or not for a while. For what must
     * not stop half way.
     */
    @DontInline
    static int room(int frames) {
        return frames == 0 ? 0 : room(frames - 1) + 1;
    }

    static boolean lock(long base) {
        room(16);
        for (int i = 0; i < 1000; i++) {
            if (U.compareAndSetInt(null, base + H_LOCK, 0, 1)) {
                return true; // Thread.onSpinWait() would be the thing to call next, but it could be woven.
            }
        }
        return false;
    }
}
