package java.lang;

import static java.lang.TareLayout.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Where a thread is: its current node, and the session that is on.
 *
 * <p>The current node is in a field that the agent added to Thread, or, in a JVM that we attached to,
 * in a table. It is zero or the complement of the tree's root when the thread is outside the subgraph.
 *
 * <p>The upper half of an address names the session: each session has a slot of addresses of its own,
 * so that what a frame or a thread still holds from an earlier one is recognised by one comparison.
 */
final class TareThreads {
    private static final Unsafe U = Unsafe.getUnsafe();

    static final long CUR = offset("tare$cur");
    /** Beside it: bytecodes until the next sample, zero outside. Only for {@link TareSampling}. */
    static final long DUE = offset("tare$due");
    /** Whether there are both: the agent of another version may have added but one. */
    static final boolean FIELD = CUR != -1 && DUE != -1;
    static final long TID = offset("tid");
    static final long ALIVE = offset("eetop");
    static final long NAME = offset("name");
    static final long VALUE = U.objectFieldOffset(String.class, "value");
    static final long CODER = U.objectFieldOffset(String.class, "coder");
    static final Class<?> VIRTUAL = virtual();

    /** The upper half of this session's addresses; what no address has when nothing is on. */
    static long session = -1;

    /** The last session's addresses begin here; they stay, so that probes may always look. */
    static long base;

    /** A token's upper bits, in a JVM that we attached to: the thread's place in the table. */
    static final int PLACE = 48;
    static final long ADDRESS = (1L << PLACE) - 1;

    /** In place of a current node: nothing that this thread calls is counted. */
    static final long BUSY = Long.MIN_VALUE;

    /** What the agent's control thread had in place of it. */
    private static long before;

    private TareThreads() {}

    private static long offset(String field) {
        return offset(Thread.class, field);
    }

    static long offset(Class<?> type, String field) {
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

    /**
     * Called by the agent on its control thread: from now on nothing that it runs is counted, or, with 0,
     * it is again. The JVM runs woven code there, above all what changes classes for others.
     */
    static void aside(long on) {
        Thread thread = Thread.currentThread();
        long tid = U.getLong(thread, TID);
        long entry = search(tid);
        if (!FIELD && entry == 0) {
            entry = claim(base, tid);
        }
        long node = get(thread, entry);
        if (on != 0 && node != BUSY) {
            before = node;
            set(thread, entry, BUSY);
        } else if (on == 0 && node == BUSY) {
            set(thread, entry, before);
        }
    }

    /** The thread's current node; zero outside the subgraph. */
    static long here() {
        return here(Thread.currentThread());
    }

    static long here(Thread thread) {
        long node = get(thread, entry(thread));
        return node >>> 32 == session ? node : 0;
    }

    @ForceInline
    static long get(Thread thread, long entry) {
        return FIELD ? U.getLong(thread, CUR)
            : entry == 0 ? 0 : inSlot(entry, U.getLong(entry + 8));
    }

    /** A node as the table has it: its session is that of the table, whatever was read. */
    @ForceInline
    static long inSlot(long entry, long node) {
        return node > 0 ? entry & ~LOW | node & LOW : node;
    }

    @ForceInline
    static void set(Thread thread, long entry, long node) {
        if (FIELD) {
            U.putLong(thread, CUR, node);
        } else if (entry != 0) {
            U.putLong(entry + 8, node);
        }
    }

    /** The thread's entry in the table, where that is what counts; zero when it has none. */
    @ForceInline
    static long entry(Thread thread) {
        if (FIELD) {
            return 0;
        }
        long tid = U.getLong(thread, TID);
        long entry = base + TABLE + ((tid & TABLE_MASK) << 4);
        long key = U.getLong(entry);
        return key == tid ? entry : key == 0 ? 0 : search(tid);
    }

    /** An entry that is not in its first place lies behind others, with no empty one between. */
    static long search(long tid) {
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

    static long claim(long start, long tid) {
        for (long at = tid; at < tid + 16; at++) {
            long entry = start + TABLE + ((at & TABLE_MASK) << 4);
            if (U.compareAndSetLong(null, entry, 0, tid)
                || U.compareAndSetLong(null, entry, LEFT, tid)) {
                return entry;
            }
        }
        return 0;
    }

    static void forget(Thread thread, long entry) {
        set(thread, entry, 0);
        if (entry != 0) {
            U.putLong(entry + 8, 0);
            U.putLongRelease(null, entry, LEFT);
        }
    }

    /** An entry's place in the table. */
    @ForceInline
    static long place(long entry) {
        return (entry & LOW) - TABLE >>> 4;
    }
}
