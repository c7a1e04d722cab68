package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.page;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Tells an agent written in Java whenever a thread has executed so many bytecodes, and where it was.
 *
 * <p>The agent does not run on that thread. A probe notes the context in a ring and goes on; a thread of
 * ours ({@link TareDispatcher}) takes it from there. So an agent that is slow, throws or never
 * returns costs the program nothing: when the ring is full, what does not fit is counted.
 */
public final class TareAgents {
    private static final Unsafe U = Unsafe.getUnsafe();

    // The ring, memory of the native agent that is never given back: words, then slots of two words.
    static final int RING_SLOTS = 1024;
    private static final int RING_HEAD = 0;
    private static final int RING_DROPPED = 8;
    private static final int RING_FIRST = 64;

    /** Zero when there is no agent, or it is not ready yet. */
    private static long ring;
    /** The ring of an agent that is not ready yet. */
    private static long waiting;
    /** Where the dispatcher goes on; kept from one agent to the next, as the ring is. */
    private static long tail;

    private TareAgents() {}

    /** Called by the native agent: an agent's jar is loaded, by a thread of its own. */
    static void load(String jar, long memory) {
        if (U.getLong(memory + RING_FIRST + 16) == 0) {
            for (long i = 0; i < RING_SLOTS; i++) {
                U.putLong(slot(memory, i), i);
            }
        }
        waiting = memory;
        TareDispatcher.begin(jar);
    }

    /** The agent is ready. */
    static void open() {
        ring = waiting;
    }

    /** Called by the native agent, at the end of a session. */
    static void unload() {
        waiting = 0;
        ring = 0;
    }

    static boolean isOn() {
        return ring != 0;
    }

    /** Found in the native agent: class, method and descriptor, separated by spaces. */
    static native String name(int id);

    /** Found in the native agent: the agent is given up, for this reason. */
    static native void failed(String reason);

    // Exact recordings: what TareBytecodes does, and a countdown of the tree.

    @ForceInline
    public static void exitCounted(long token, int bytecodes) {
        long node = current();
        TareBytecodes.exitCounted(token, bytecodes);
        notice(node, bytecodes);
    }

    public static void exitThrowCounted(long token, int bytecodes) {
        long node = current();
        TareBytecodes.exitThrowCounted(token, bytecodes);
        notice(node, bytecodes);
    }

    @ForceInline
    public static void flushCounted(long token, int bytecodes) {
        TareBytecodes.flushCounted(token, bytecodes);
        notice(current(), bytecodes);
    }

    @ForceInline
    public static void leafCounted(int id, int bytecodes) {
        TareBytecodes.leafCounted(id, bytecodes);
        noticeLeaf(current(), id, bytecodes);
    }

    @ForceInline
    public static void leafRootCounted(int id, int bytecodes) {
        TareBytecodes.leafRootCounted(id, bytecodes);
        noticeLeaf(current(), id, bytecodes);
    }

    @ForceInline
    private static long current() {
        Thread thread = Thread.currentThread();
        return get(thread, entry(thread));
    }

    /** A leaf was never the current node; it is the one that was entered last. */
    @ForceInline
    private static void noticeLeaf(long node, int id, int bytecodes) {
        if (node > 0) {
            long child = node + U.getInt(node + LAST);
            notice(U.getInt(child + METHOD) == id ? child : node, bytecodes);
        }
    }

    @ForceInline
    private static void notice(long node, int bytecodes) {
        if (node > 0) {
            long left = page(node) + T_LEFT;
            int rest = U.getInt(left) - bytecodes;
            U.putInt(left, rest);
            if (rest <= 0) {
                activate(node);
            }
        }
    }

    @DontInline
    private static void activate(long node) {
        long base = node & ~LOW;
        if (base >>> 32 != session) {
            return;
        }
        long tree = page(node);
        int every = every(base, tree);
        if (every <= 0) {
            return; // The session has ended.
        }
        if (U.getInt(tree + T_EVERY) == 0) {
            U.putInt(tree + T_EVERY, every);
            offer(tree + T_ROOT);
        } else {
            offer(node);
        }
        U.putInt(tree + T_LEFT, every);
    }

    /** Bytecodes from one time to the next: what the agent said last, or what all begin with. */
    static int every(long base, long tree) {
        int every = U.getInt(tree + T_EVERY);
        return every != 0 ? every : U.getInt(base + H_EVERY);
    }

    // ---- the ring ----

    private static long slot(long memory, long number) {
        return memory + RING_FIRST + ((number & RING_SLOTS - 1) << 4);
    }

    /**
     * For the agent: a context where a thread is, or the root of a tree that is new. Who is the first of
     * its tree to arrive is taken for both.
     */
    static void offer(long node) {
        long memory = ring;
        while (memory != 0) {
            long head = U.getLong(memory + RING_HEAD);
            long slot = slot(memory, head);
            long turn = U.getLongAcquire(null, slot);
            if (turn == head) {
                if (U.compareAndSetLong(null, memory + RING_HEAD, head, head + 1)) {
                    U.putLong(slot + 8, node);
                    U.putLongRelease(null, slot, head + 1);
                    return;
                }
            } else if (turn < head) {
                U.getAndAddLong(null, memory + RING_DROPPED, 1);
                return;
            }
        }
    }

    /** For the dispatcher: the next context, or zero. */
    static long take() {
        long memory = ring;
        if (memory == 0) {
            return 0;
        }
        long slot = slot(memory, tail);
        if (U.getLongAcquire(null, slot) != tail + 1) {
            return 0;
        }
        long node = U.getLong(slot + 8);
        U.putLongRelease(null, slot, tail + RING_SLOTS);
        tail++;
        return node;
    }
}
