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
 * returns costs the program nothing: when the ring is full, what does not fit is left out.
 *
 * <p>The ring takes notes from the moment in which the agent's jar begins to be loaded. What was
 * noted and what the agent was told of are two figures in the arena; whatever becomes of the agent
 * or the JVM, their difference is what the agent missed.
 */
public final class TareAgents {
    private static final Unsafe U = Unsafe.getUnsafe();

    // The ring is memory of the native agent that is never given back: longs, then slots of four longs,
    // of which three are used: whose turn it is, the context, and how often it was met. The dispatcher
    // writes how far the agent is, and the native agent what the dispatcher is to do.

    /** Zero when there is no agent. */
    private static long ring;

    /** The session whose contexts have answers for an agent, or -1. */
    static long answering = -1;

    private TareAgents() {}

    /** Called by the native agent: an agent's jar is loaded, by a thread of its own. */
    static void load(String jar, long memory) {
        // What an agent before this one has left.
        for (long note = next(memory); note != 0; note = next(memory)) {
            taken(memory, note);
        }
        answering = session;
        ring = memory;
        TareDispatcher.begin(jar, memory);
    }

    /** Called by the native agent, at the end of a session, when the agent has ended or is left behind. */
    static void unload() {
        ring = 0;
        answering = -1;
    }

    /** For the dispatcher: how far the agent is. */
    static void state(long memory, int state) {
        U.putLongRelease(null, memory + RING_STATE, state);
    }

    /** For the dispatcher: what it is to do. */
    static int order(long memory) {
        return (int) U.getLongAcquire(null, memory + RING_ORDER);
    }

    /** For the dispatcher: it calls the agent, so somebody who waits for that sees that it goes on. */
    static void calls(long memory) {
        U.putLongRelease(null, memory + RING_CALLS, U.getLong(memory + RING_CALLS) + 1);
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

    /** A leaf was never the current node; the slots of its caller's node have it. */
    @ForceInline
    private static void noticeLeaf(long node, int id, int bytecodes) {
        if (node > 0) {
            long child = TareTree.known(node, id);
            notice(child != 0 ? child : node, bytecodes);
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
            offer(tree + T_ROOT, 0);
        } else {
            offer(node, U.getInt(node + METHOD) > 0 ? 1 : 0);
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
        return memory + RING_FIRST + ((number & RING_SLOTS - 1) << 5);
    }

    /**
     * For the agent: a context where a thread is and how often it was met there, or the root of a
     * tree that is new, which was met no time. Who is the first of its tree to arrive is taken for
     * both.
     */
    static void offer(long node, int times) {
        long memory = ring;
        if (memory == 0) {
            return;
        }
        if (times > 0) {
            U.getAndAddLong(null, (node & ~LOW) + H_NOTED, times);
        }
        while (U.getLong(memory + RING_STATE) != STATE_OVER) {
            long head = U.getLong(memory + RING_HEAD);
            long slot = slot(memory, head);
            long turn = U.getLongAcquire(null, slot);
            if (turn == head) {
                if (U.compareAndSetLong(null, memory + RING_HEAD, head, head + 1)) {
                    U.putLong(slot + 8, node);
                    U.putLong(slot + 16, times);
                    U.putLongRelease(null, slot, head + 1);
                    return;
                }
            } else if (turn < head) {
                return; // Full.
            }
        }
    }

    /** For the dispatcher: where the next note is, or zero. It stays until {@link #taken}. */
    static long next(long memory) {
        long tail = U.getLong(memory + RING_TAIL);
        long slot = slot(memory, tail);
        return U.getLongAcquire(null, slot) == tail + 1 ? slot : 0;
    }

    /** The context of a note. */
    static long node(long slot) {
        return U.getLong(slot + 8);
    }

    /** How often it was met. */
    static int times(long slot) {
        return (int) U.getLong(slot + 16);
    }

    /** The note's place can be used again. */
    static void taken(long memory, long slot) {
        long tail = U.getLong(memory + RING_TAIL);
        U.putLong(memory + RING_TAIL, tail + 1);
        U.putLongRelease(null, slot, tail + RING_SLOTS);
    }

    /** How many notes there were, those among them that a thread is about to write. */
    static long head(long memory) {
        return U.getLongVolatile(null, memory + RING_HEAD);
    }

    /** How many of them were taken. */
    static long tail(long memory) {
        return U.getLong(memory + RING_TAIL);
    }
}
