package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareProbe.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.find;
import static java.lang.TareTree.page;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Counts executed bytecodes.
 *
 * <p>A method counts its bytecodes in a local and takes them to its node when it ends, and from time to
 * time in a loop. At that moment the thread's current node is its own; after an exception it may be one
 * below. Who has no node (the token is zero) and is not outside gives them to the rest in which its call
 * was counted.
 */
public final class TareBytecodes {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareBytecodes() {}

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
        int holds = base >>> 32 == session ? U.getInt(base + H_HOLDS) : 0;
        if (holds < HOLDS_BYTECODES || holds == HOLDS_SITES || holds >= HOLDS_SOME_TIMES) {
            return 0;
        }
        int method = U.getInt(node + METHOD);
        if (method == REST) {
            return node;
        }
        return method > 0 ? page(node) + T_ROOT + U.getInt(base + H_NODE) : 0;
    }

    // A method that calls nothing and has no loop tells its call at its entry, and at its end only what
    // takes no more of the stack: it must not fail by an overflow after it ran. Inside the subgraph the child
    // that it was counted in has a slot then: nothing was looked for meanwhile. From outside there is none
    // yet, and all is told at the end.

    @ForceInline
    public static void leafBegun(int id) {
        TareProbe.leaf(id);
    }

    @ForceInline
    public static void leafEnded(int id, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0) {
            spendLeaf(node, id, bytecodes);
        }
    }

    @ForceInline
    public static void leafRootBegun(int id) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0) {
            count(node, id);
        }
    }

    @ForceInline
    public static void leafRootEnded(int id, int bytecodes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node <= 0 || !spendLeaf(node, id, bytecodes)) {
            exitCounted(begin(thread, id), bytecodes);
        }
    }

    /** Adds to a child just counted in; false when the node is older than this session. */
    @ForceInline
    private static boolean spendLeaf(long node, int id, int bytecodes) {
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
        if (U.getInt(child + METHOD) != id) {
            return spendLeafFar(node, id, bytecodes);
        }
        U.putLong(child + BYTECODES, U.getLong(child + BYTECODES) + bytecodes);
        return true;
    }

    /** The same for a child that is not in its first slot, or is the node's rest. */
    @DontInline
    private static boolean spendLeafFar(long node, int id, int bytecodes) {
        long child = TareTree.known(node, id);
        if (child == 0) {
            child = TareTree.known(node, REST);
        }
        if (child == 0) {
            spendFar(node, bytecodes);
            return node >>> 32 == session;
        }
        U.putLong(child + BYTECODES, U.getLong(child + BYTECODES) + bytecodes);
        return true;
    }

    // For agents in Java, which hear of both together, all is told at the end.

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
        long child = node + U.getInt(node + SLOT + ((id & SLOTS - 1) << 2));
        if (U.getInt(child + METHOD) != id) {
            child = find(node, id);
            if (child == 0) {
                spendFar(node, bytecodes);
                return node >>> 32 == session;
            }
        }
        U.putLong(child + BYTECODES, U.getLong(child + BYTECODES) + bytecodes);
        U.putLong(null, child + COUNT, U.getLong(null, child + COUNT) + 1);
        return true;
    }
}
