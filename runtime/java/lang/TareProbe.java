package java.lang;

import static java.lang.TareClock.clock;
import static java.lang.TareClock.ticks;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What woven code calls at entry and exit of a method: keeps, for the running thread, its place in the
 * calling-context tree, and counts and times.
 *
 * <p>A node of the tree stands for one context; the token that a woven method keeps in a local is the
 * node that called it. {@link TareThreads} says where a thread's node is, {@link TareTree} what the tree
 * is made of. Nothing here calls a method that could be woven, allocates, blocks or throws.
 */
public final class TareProbe {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareProbe() {}

    // ---- counting ----

    // The token is where the thread was at entry, so the exit needs no memory but the thread's own:
    // it puts the thread back, whatever happened in between. Zero means that nothing was counted;
    // the complement of a token, that the exit is more than the step back. A thread's current node
    // is zero or the complement of its tree's root when it is outside the subgraph.
    //
    // What a thread or a frame holds from an earlier session is not told apart here: it leads to
    // memory that is all zeros, where no method is found, and so to `find`, which looks closer.
    //
    // The program's stack may end in any call in here, and in the interpreter each access to memory is
    // one. So what makes a call count comes last, at a smaller depth than all that was called before
    // (hence Unsafe's methods with an object, which are native themselves): a call whose probe
    // overflows the stack never ran, and is not counted. And no exit reaches deeper than its entry.

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
            long node = inSlot(entry, U.getLong(entry + 8));
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
            node = U.getLong(entry) == tid ? inSlot(entry, U.getLong(entry + 8)) : 0;
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
    static boolean count(long node, int id) {
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
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
        long node = entry == 0 ? 0 : inSlot(entry, U.getLong(entry + 8));
        return node > 0 ? down(thread, entry, node, id, false) : 0;
    }

    @ForceInline
    private static long down(Thread thread, long entry, long node, int id, boolean root) {
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                return root && node >>> 32 != session ? begin(thread, id) : 0;
            }
        }
        long token = step(thread, entry, node, child);
        counts(child);
        return token;
    }

    @ForceInline
    private static void counts(long child) {
        U.putLong(null, child + COUNT, U.getLong(null, child + COUNT) + 1);
    }

    /** Makes a child the current node; the token to come back from it. */
    @ForceInline
    static long step(Thread thread, long entry, long node, long child) {
        if (FIELD) {
            U.putLong(thread, CUR, child);
            return node;
        }
        U.putLong(entry + 8, child);
        return node | place(entry) << PLACE;
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

    /** The node that called the one who holds this token. */
    @ForceInline
    static long outer(long token) {
        long plain = token > 0 ? token : ~token;
        return FIELD ? plain : plain & ADDRESS;
    }

    /** The node that was entered with a token, from a node at or below it; zero if there is none. */
    static long own(long node, long token) {
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

    // ---- timing ----

    @ForceInline
    public static long enterTimed(int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        return node > 0 ? downTimed(thread, entry, node, id, false) : 0;
    }

    @ForceInline
    public static long enterRootTimed(int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        return node > 0 ? downTimed(thread, entry, node, id, true) : beginTimed(thread, id);
    }

    @ForceInline
    private static long downTimed(Thread thread, long entry, long node, int id, boolean root) {
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                return root && node >>> 32 != session ? beginTimed(thread, id) : 0;
            }
        }
        return begun(thread, entry, node, child);
    }

    @ForceInline
    private static long begun(Thread thread, long entry, long node, long child) {
        long start = clock(child, ticks());
        long token = step(thread, entry, node, child);
        U.putLong(null, child + START, start);
        U.putLong(null, child + COUNT, U.getLong(null, child + COUNT) + 1);
        return token;
    }

    /** A timed root is entered from outside the subgraph. */
    @DontInline
    private static long beginTimed(Thread thread, int id) {
        long root = below(thread, id);
        return root <= 0 ? root
            : leaving(root, downTimed(thread, entry(thread), root, id, false));
    }

    @ForceInline
    public static void exitTimed(long token) {
        if (token != 0) {
            exitTimed(token, ticks());
        }
    }

    @ForceInline
    static void exitTimed(long token, long now) {
        Thread thread = Thread.currentThread();
        ended(get(thread, entry(thread)), token, now);
        exit(token);
    }

    public static void caughtTimed(long token, int id) {
        long now = ticks();
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        long own = own(node, token);
        if (own != 0) {
            now = clock(node, now);
            if (node != own) {
                stopUpTo(node, own, now);
            }
            set(thread, entry, own);
        }
    }

    /** Stops the clocks from the current node up to the one that was entered with this token. */
    @ForceInline
    private static void ended(long node, long token, long now) {
        if (node > 0) {
            now = clock(node, now);
            long outer = outer(token);
            if (parent(node) == outer) {
                stop(node, now);
                calls(outer);
            } else {
                endedFar(node, token, now);
            }
        }
    }

    private static void endedFar(long node, long token, long now) {
        if (own(node, token) != 0) {
            stopUpTo(node, outer(token), now);
        }
    }

    /** Stops the clocks of a node and of its callers below another. */
    private static void stopUpTo(long node, long outer, long now) {
        while (node != outer && (node & LOW) != 0) {
            boolean timed = U.getLong(node + START) != 0;
            stop(node, now);
            node = parent(node);
            if (timed) {
                calls(node);
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
            long calling = U.getLong(node + CALLING);
            if ((calling & 1) != 0) {
                U.putLong(node + CALLING, calling + 1);
            }
        }
    }

    /** The call under way in a node has made a call that was timed. */
    @ForceInline
    private static void calls(long node) {
        long calling = U.getLong(node + CALLING);
        if ((calling & 1) == 0) {
            U.putLong(node + CALLING, calling + 1);
        }
    }

    // ---- everything that is not the common case ----

    /** A root is entered from outside the subgraph. */
    @DontInline
    static long begin(Thread thread, int id) {
        long root = below(thread, id);
        return root <= 0 ? root : leaving(root, down(thread, entry(thread), root, id, false));
    }

    /** Where a root's call is recorded; or the token of one that is not. */
    private static long below(Thread thread, int id) {
        long root = outermost(thread);
        return root != 0 && TareFollow.draws(root, id) ? TareFollow.draw(thread, root, id) : root;
    }

    static long outermost(Thread thread) {
        long mark = session;
        boolean trees = mark != -1 && U.getInt((mark << 32) + H_HOLDS) != HOLDS_TRACE;
        return trees ? arrive(thread, mark) : 0;
    }

    /** The token of an entry from outside, whose exit may be more than the step back. */
    static long leaving(long root, long token) {
        boolean leaves = (U.getInt(page(root) + T_FLAGS) & FLAG_LEAVES) != 0;
        return token != 0 && leaves ? ~token : token;
    }

    /** The token of what a thread began below the root of its tree. */
    static long begun(Thread thread, long root) {
        long token = FIELD ? root : root | place(entry(thread)) << PLACE;
        return (U.getInt(page(root) + T_FLAGS) & FLAG_LEAVES) != 0 ? ~token : token;
    }

    /** A thread comes in from outside: the root of its tree, or zero when there is no room. */
    static long arrive(Thread thread, long mark) {
        long start = mark << 32;
        long tid = U.getLong(thread, TID);
        long entry = search(tid);
        if (get(thread, entry) == BUSY) {
            return 0;
        }
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
        return root;
    }

    /** An exit that is not the plain step back. */
    @DontInline
    static void leave(long token) {
        leaveTree(outer(token));
    }

    /** The thread is outside again; its tree is found again, or goes to the next. */
    static void leaveTree(long root) {
        long mark = session;
        if (root >>> 32 != mark) {
            return; // A frame that is older than this session.
        }
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long here = get(thread, entry);
        if (U.getInt((mark << 32) + H_FOLLOW) != 0) {
            root = TareFollow.left(root, here);
            if (root == 0) {
                return;
            }
        } else if (here >>> 32 != mark) {
            return;
        }
        if ((U.getInt(page(root) + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            set(thread, entry, ~root); // Outside, and the tree is found again.
        } else {
            forget(thread, entry);
            push(mark << 32, H_POOL, page(root));
        }
    }

    /** Called by the agent: the calling thread's tree; zero outside the subgraph. */
    static long tree() {
        return treeOf(Thread.currentThread());
    }

    /** Called by the agent: the tree of a thread; zero outside the subgraph. */
    static long treeOf(Thread thread) {
        long node = here(thread);
        return node == 0 ? 0 : page(node);
    }

    /** Called by the agent on a thread that is about to end. */
    static void ended() {
        long mark = session;
        // A thread may end while the first recording begins: then there is no table to look into.
        if (mark == -1) {
            return;
        }
        Thread thread = Thread.currentThread();
        long entry = search(U.getLong(thread, TID));
        long node = get(thread, entry);
        if (FIELD && (node > 0 ? node : ~node) >>> 32 != mark && entry != 0) {
            node = U.getLong(entry + 8);
        }
        boolean inside = node > 0;
        node = inside ? node : ~node;
        if (node >>> 32 != mark) {
            return;
        }
        int holds = U.getInt((mark << 32) + H_HOLDS);
        long tree = inside && holds == HOLDS_SAMPLES ? TareSampling.treeOf(node)
            : TareFollow.owner(page(node));
        if (holds == HOLDS_TRACE) {
            TareTrace.ended(thread, entry, tree);
            return;
        }
        forget(thread, entry);
        if ((U.getInt(tree + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            push(mark << 32, H_ENDED, tree);
        }
    }
}
