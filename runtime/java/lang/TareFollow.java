package java.lang;

import static java.lang.TareClock.clock;
import static java.lang.TareClock.ticks;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;

/**
 * Follows one call of a root in so many. The others are counted and timed, and below them a thread
 * is outside, as it is where no root is.
 *
 * <p>A call that is followed is recorded in a tree of its own. When it ends, that is added to the
 * thread's tree, with the squares that tell how much calls differ, and then used again; or it is
 * kept, if the call was one of the slowest of its root or is drawn.
 */
final class TareFollow {
    private static final Unsafe U = Unsafe.getUnsafe();

    /** What ends a call reaches no deeper than its begin has. */
    private static final int FRAMES = 24;

    private TareFollow() {}

    /** Whether calls of roots are drawn; those that tell the agent what probes cost are not. */
    static boolean draws(long root, int id) {
        return U.getInt((root & ~LOW) + H_FOLLOW) != 0 && id != CALIBRATION;
    }

    /**
     * A thread whose tree has this root enters a root of the subgraph from outside. The node below
     * which the call is recorded; if it is not followed, the token with which it ends, which is
     * below zero; or zero, inside a call that is not followed or when there is no room.
     */
    static long draw(Thread thread, long root, int id) {
        if (U.getInt(root + METHOD) != ROOT) {
            return 0;
        }
        room(FRAMES);
        long base = root & ~LOW;
        long main = page(root);
        long call = find(root, UNFOLLOWED - id);
        if (call == 0 || U.getInt(call + METHOD) != UNFOLLOWED - id) {
            lost(base);
            return 0;
        }
        int number = U.getInt(main + T_DRAWN);
        U.putInt(main + T_DRAWN, number + 1);
        long x = random((root & LOW) * 0x9e3779b97f4a7c15L + number ^ U.getLong(base + H_SEED));
        // The agent may change it at any moment: read once.
        int oneIn = U.getInt(base + H_FOLLOW);
        if (((x >>> 32) * oneIn) >>> 32 == 0) {
            long before = ticks();
            long tree = empty(base, main);
            if (tree != 0) {
                U.putInt(tree + T_WEIGHT, oneIn);
                long begun = ticks();
                U.putLong(tree + T_BEGUN, begun);
                more(call + OTHERS_BESIDE, begun - before);
                return tree + T_ROOT;
            }
        }
        long entry = entry(thread);
        U.putLong(call + START, clock(call, ticks()));
        set(thread, entry, ~call);
        return ~(FIELD ? root : root | place(entry) << PLACE);
    }

    private static long random(long x) {
        x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
        x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
        return x ^ x >>> 31;
    }

    /**
     * A thread leaves a root: given the root of the tree that it was recorded in, and where the
     * thread is. The root of the thread's own tree, or zero if it is not there.
     */
    static long left(long root, long here) {
        long tree = page(root);
        if ((U.getInt(tree + T_FLAGS) & FLAG_FOLLOWED) != 0) {
            if (here >>> 32 != root >>> 32) {
                return 0;
            }
            long main = root & ~LOW | U.getInt(tree + T_OWNER) & LOW;
            if ((main & LOW) == 0) {
                return 0; // The session has ended.
            }
            ended(tree, main);
            return main + T_ROOT;
        }
        long call = ~here;
        if (here < 0 && call >>> 32 == root >>> 32 && U.getInt(call + METHOD) <= UNFOLLOWED) {
            long took = clock(call, ticks()) - U.getLong(call + START);
            U.putLong(call + START, 0);
            U.putLong(call + TOTAL, U.getLong(call + TOTAL) + (took > 0 ? took : 0));
            U.putLong(call + COUNT, U.getLong(call + COUNT) + 1);
            TareFollowed.took(call, took, 1);
            return root;
        }
        return here >>> 32 == root >>> 32 ? root : 0;
    }

    /** The tree that a thread's tree belongs to: its own, unless a call is followed. */
    static long owner(long tree) {
        boolean followed = (U.getInt(tree + T_FLAGS) & FLAG_FOLLOWED) != 0;
        return followed ? tree & ~LOW | U.getInt(tree + T_OWNER) & LOW : tree;
    }

    // ---- a tree for one call ----

    /** An empty tree for a call; zero when there is no room. */
    private static long empty(long base, long main) {
        long tree = base | U.getInt(main + T_SPARE_TREE) & LOW;
        if (tree == base) {
            tree = pop(base, H_SPARE);
            if (tree == 0) {
                tree = blank(base, FLAG_FOLLOWED | FLAG_LEAVES, null);
            }
            if (tree == 0) {
                return 0;
            }
            U.putInt(main + T_SPARE_TREE, (int) tree);
        }
        long root = tree + T_ROOT;
        int list = U.getInt(tree + T_FREED);
        int first = U.getInt(tree + T_MADE);
        for (int at = first; at != 0;) {
            long node = base | at & LOW;
            int next = U.getInt(node + MADE_NEXT);
            U.putInt(node + METHOD, FREED);
            U.putInt(node + SIBLING, next != 0 ? next : list);
            at = next;
        }
        if (first != 0) {
            U.putInt(tree + T_FREED, first);
        }
        U.putInt(tree + T_MADE, 0);
        U.putInt(tree + T_MADE_LAST, 0);
        long rest = root + U.getInt(base + H_NODE);
        clear(root);
        clear(rest);
        U.putLong(root + TO, main + T_ROOT);
        U.putInt(root + KIDS, (int) rest);
        U.putLong(tree + T_ADJUST, 0);
        U.putInt(tree + T_OWNER, (int) main);
        U.putLong(tree + T_THREAD, U.getLong(main + T_THREAD));
        return tree;
    }

    private static void clear(long node) {
        U.putLong(node + COUNT, 0);
        U.putLong(node + START, 0);
        U.putLong(node + TOTAL, 0);
        U.putLong(node + CALLING, 0);
        U.putInt(node + KIDS, 0);
        U.putInt(node + SIBLING, 0);
        noChild(node);
    }

    /**
     * A node was made in the tree of a call: they are kept in the order in which they came. It knows its
     * place in the thread's tree, where the lengths of its calls are counted.
     */
    static void made(long tree, long node) {
        int last = U.getInt(tree + T_MADE_LAST);
        if (last == 0) {
            U.putInt(tree + T_MADE, (int) node);
        } else {
            U.putInt((tree & ~LOW | last & LOW) + MADE_NEXT, (int) node);
        }
        U.putInt(tree + T_MADE_LAST, (int) node);
        int id = U.getInt(node + METHOD);
        long above = U.getLong(parent(node) + TO);
        long to = above >>> 32 == tree >>> 32 ? site(above, id) : 0;
        U.putLong(node + TO, to != 0 && U.getInt(to + METHOD) == id ? to : 0);
    }

    // ---- the end of a call ----

    private static void ended(long tree, long main) {
        long base = tree & ~LOW;
        long root = tree + T_ROOT;
        int first = U.getInt(tree + T_MADE);
        if (first == 0) {
            return;
        }
        long before = ticks();
        long took = U.getLong((base | first & LOW) + TOTAL);
        int id = U.getInt((base | first & LOW) + METHOD);
        long weight = U.getInt(tree + T_WEIGHT);
        long others = find(main + T_ROOT, UNFOLLOWED - id);
        if (others >>> 32 != base >>> 32) {
            return; // The session has ended.
        }
        int nodes = own(base, root, first);
        // Each has its place in the thread's tree where the time of its begin was.
        U.putLong(root + START, main + T_ROOT);
        for (int at = first; at != 0;) {
            long node = base | at & LOW;
            long above = U.getLong(parent(node) + START);
            if (above >>> 32 != base >>> 32) {
                return; // The session has ended.
            }
            U.putLong(node + START, add(node, above, took, weight, at == first));
            at = U.getInt(node + MADE_NEXT);
        }
        for (int at = first; at != 0;) {
            long node = base | at & LOW;
            U.putLong(node + START, 0);
            at = U.getInt(node + MADE_NEXT);
        }
        U.putLong(root + START, 0);
        double spread = (double) weight * weight - weight;
        more(others + OTHERS_WEIGHTS, weight);
        more(others + OTHERS_TICKS, (double) weight * took);
        more(others + OTHERS_SPREAD, spread);
        more(others + OTHERS_SQUARES, spread * took * took);
        U.putLong(tree + T_TOOK, took);
        if (nodes <= KEPT_NODES) {
            keep(base, tree, main, id, took);
        }
        // What the tree's clock has left out was for new nodes.
        more(others + OTHERS_BESIDE, ticks() - before + U.getLong(tree + T_ADJUST));
    }

    /** What each node took itself, while it is not needed for squares. How many nodes there are. */
    private static int own(long base, long root, int first) {
        int nodes = 0;
        for (int at = first; at != 0; nodes++) {
            long node = base | at & LOW;
            long total = U.getLong(node + TOTAL);
            U.putLong(node + SQUARE_OWN, total);
            if (total != 0) {
                // What is not timed has its time in its caller's.
                long caller = parent(node);
                while (U.getLong(caller + TOTAL) == 0 && caller != root && (caller & LOW) != 0) {
                    caller = parent(caller);
                }
                if (caller != root && (caller & LOW) != 0) {
                    U.putLong(caller + SQUARE_OWN, U.getLong(caller + SQUARE_OWN) - total);
                }
            }
            at = U.getInt(node + MADE_NEXT);
        }
        return nodes;
    }

    /**
     * Adds what a node of the call has to the thread's tree; where. The root's own calls are all
     * counted, so they count as one each, and the others as many as the call stands for.
     */
    private static long add(long node, long above, long took, long weight, boolean outermost) {
        int id = U.getInt(node + METHOD);
        boolean inRest = U.getInt(above + METHOD) == REST;
        long times = outermost ? 1 : weight;
        long count = U.getLong(node + COUNT);
        long to = inRest ? above : find(above, id);
        long found = times * count;
        if (to == 0) {
            // The tree's own rest, which was told of one call.
            to = page(above) + T_ROOT + U.getInt((above & ~LOW) + H_NODE);
            found--;
        }
        U.putLong(to + COUNT, U.getLong(to + COUNT) + found);
        if (inRest) {
            return to;
        }
        long total = U.getLong(node + TOTAL);
        U.putLong(to + TOTAL, U.getLong(to + TOTAL) + times * total);
        long calling = U.getLong(node + CALLING) & ~1;
        U.putLong(to + CALLING, U.getLong(to + CALLING) + times * calling);
        if (U.getInt(to + METHOD) != REST) {
            double spread = (double) weight * weight - weight;
            double own = U.getLong(node + SQUARE_OWN);
            more(to + SQUARE_CALLS, spread * count * count);
            more(to + SQUARE_OWN, spread * own * own);
            more(to + SQUARE_TOTAL, spread * total * total);
            more(to + WITH_OWN, spread * own * took);
            more(to + WITH_TOTAL, spread * total * took);
            more(to + WITH_CALLS, spread * count);
        }
        return to;
    }

    private static void more(long at, double value) {
        U.putDouble(null, at, U.getDouble(null, at) + value);
    }

    // ---- calls that are kept ----

    /** Keeps the tree of a call if it is among the slowest of its root, or drawn. */
    private static void keep(long base, long tree, long main, int id, long took) {
        int most = U.getInt(base + H_KEPT);
        long page = most == 0 ? 0 : ofRoot(base, id);
        if (page == 0 || !lock(base)) {
            return;
        }
        long seen = U.getLong(page + K_SEEN);
        U.putLong(page + K_SEEN, seen + 1);
        // As long as there is room, one after the other; then in place of the quickest of them.
        int slow = seen < most ? (int) seen : 0;
        for (int i = 1; seen >= most && i < most; i++) {
            slow = took(page, i) < took(page, slow) ? i : slow;
        }
        if (seen < most || took(page, slow) < took) {
            put(base, main, keeping(page, slow), tree, took);
        }
        // Each call has the same chance to be among these, however many there are.
        long x = random(seen * 0x9e3779b97f4a7c15L ^ U.getLong(base + H_SEED) + id);
        long drawn = seen < most ? seen : (x >>> 1) % (seen + 1);
        if (drawn < most) {
            put(base, main, keeping(page, most + (int) drawn), tree, took);
        }
        U.putIntRelease(null, base + H_LOCK, 0);
    }

    private static long keeping(long page, int number) {
        return page + K_FIRST + (long) number * K_PLACE;
    }

    private static long took(long page, int number) {
        return U.getLong(keeping(page, number) + K_TOOK);
    }

    /** A tree takes a place; the one that had it is free if it has no other. */
    private static void put(long base, long main, long place, long tree, long took) {
        int before = U.getInt(place);
        U.putInt(place, (int) tree);
        U.putLong(place + K_TOOK, took);
        U.putInt(tree + T_KEPT, U.getInt(tree + T_KEPT) + 1);
        if (U.getInt(main + T_SPARE_TREE) == (int) tree) {
            U.putInt(main + T_SPARE_TREE, 0);
        }
        if (before == 0) {
            return;
        }
        long old = base | before & LOW;
        int kept = U.getInt(old + T_KEPT) - 1;
        U.putInt(old + T_KEPT, kept);
        if (kept != 0) {
            return;
        }
        if (U.getInt(main + T_SPARE_TREE) == 0) {
            U.putInt(main + T_SPARE_TREE, before);
        } else {
            U.putInt(old + T_NEXT, U.getInt(base + H_SPARE));
            U.putInt(base + H_SPARE, before);
        }
    }

    /** The page with the kept calls of a root; zero when there are too many roots. */
    private static long ofRoot(long base, int id) {
        long page = base + U.getInt(base + H_KEPT_AT);
        for (int i = 0; i < KEPT_ROOTS; i++, page += PAGE) {
            int has = U.getInt(page);
            if (has == id || has == 0 && U.compareAndSetInt(null, page, 0, id)
                || has == 0 && U.getInt(page) == id) {
                return page;
            }
        }
        return 0;
    }
}
