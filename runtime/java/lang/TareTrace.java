package java.lang;

import static java.lang.TareClock.ticks;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.header;
import static java.lang.TareTree.lost;
import static java.lang.TareTree.noChild;
import static java.lang.TareTree.pages;
import static java.lang.TareTree.pop;
import static java.lang.TareTree.push;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What woven code calls in a trace: writes every entry and exit into a ring of the running thread, in
 * memory that the front end drains meanwhile.
 *
 * <p>In the place of a thread's current node there is its ring, or the ring's complement when the
 * thread is outside the subgraph. The token is the ring and the depth of the method, so that an exit
 * is right whatever happened in between. When a ring is full, records are counted
 * and dropped until half of it is free again, and a record says then how many and how far up the
 * thread came meanwhile. Nobody waits, unless it was asked for: then a thread waits for so long at
 * most, and a record keeps that out of its times.
 *
 * <p>As in the other probes, nothing here calls a method that could be woven, allocates, blocks (but
 * for that wait) or throws, and memory that has become zeros, because the session is over, leads to the slow path.
 */
public final class TareTrace {
    private static final Unsafe U = Unsafe.getUnsafe();

    /** Room that is left for what tells of a gap. */
    private static final int RESERVE = 2 * RECORD;
    private static final int DEPTH_BITS = 24;
    private static final int DEPTH_MASK = (1 << DEPTH_BITS) - 1;
    private static final int PAGE_BITS = 12;
    /** A virtual thread's ring goes back to the others when it leaves. */
    private static final int LEAVES = FLAG_LEAVES | FLAG_VIRTUAL;

    /** The upper half of the addresses of the session, if it is a trace. */
    private static long mark = -1;

    private TareTrace() {}

    /** Called by the agent: the session that begins is a trace, or, with -1, it ends. */
    static void trace(long address) {
        mark = address == -1 ? -1 : address >>> 32;
    }

    /** Entry of a method that is told only inside the subgraph. */
    @ForceInline
    public static long enter(int id) {
        Thread thread = Thread.currentThread();
        long ring = get(thread, entry(thread));
        return ring >>> 32 == mark ? entered(ring, id) : 0;
    }

    /** A traced method calls a native one. */
    @ForceInline
    public static long enterNative(int id) {
        Thread thread = Thread.currentThread();
        long ring = get(thread, entry(thread));
        if (ring >>> 32 != mark) {
            return 0;
        }
        int depth = U.getInt(ring + G_DEPTH);
        U.putInt(ring + G_DEPTH, depth + 1);
        write(ring, ENTRY, depth, id, ticks());
        return token(ring, depth);
    }

    /** Entry of a root: from outside it begins the subgraph. */
    @ForceInline
    public static long enterRoot(int id) {
        Thread thread = Thread.currentThread();
        long ring = get(thread, entry(thread));
        return ring >>> 32 == mark ? entered(ring, id) : begin(thread, id);
    }

    @ForceInline
    private static long entered(long ring, int id) {
        int depth = U.getInt(ring + G_DEPTH);
        U.putInt(ring + G_DEPTH, depth + 1);
        if (TareDiscovery.searches()) {
            discover(ring, id);
        }
        write(ring, ENTRY, depth, id, ticks());
        return token(ring, depth);
    }

    @ForceInline
    private static long token(long ring, int depth) {
        return ring >>> PAGE_BITS << DEPTH_BITS | depth & DEPTH_MASK;
    }

    @ForceInline
    public static void exit(long token, int id) {
        if (token != 0) {
            left(token, EXIT, id, ticks());
        }
    }

    /** An exception leaves the method. */
    @ForceInline
    public static void exitThrow(long token, int id) {
        if (token != 0) {
            left(token, THROWN, id, ticks());
        }
    }

    @ForceInline
    private static void left(long token, int kind, int id, long now) {
        long plain = token > 0 ? token : ~token;
        long ring = plain >>> DEPTH_BITS << PAGE_BITS;
        int depth = (int) plain & DEPTH_MASK;
        U.putInt(ring + G_DEPTH, depth);
        write(ring, kind, depth, id, now);
        if (token < 0) {
            leave(ring);
        }
    }

    /** A handler of the method caught an exception: whatever it had called is over. */
    public static void caught(long token, int id) {
        if (token == 0) {
            return;
        }
        long plain = token > 0 ? token : ~token;
        long ring = plain >>> DEPTH_BITS << PAGE_BITS;
        int depth = (int) plain & DEPTH_MASK;
        if (ring >>> 32 == mark && U.getInt(ring + G_DEPTH) != depth + 1) {
            U.putInt(ring + G_DEPTH, depth + 1);
            write(ring, CAUGHT, depth, id, ticks());
        }
    }

    @ForceInline
    private static void write(long ring, int kind, int depth, int value, long time) {
        long head = U.getLong(ring + G_HEAD);
        if (head < U.getLong(ring + G_LIMIT)) {
            put(ring, head, kind, depth, value, time);
        } else {
            full(ring, kind, depth, value, time);
        }
    }

    @ForceInline
    private static void put(long ring, long head, int kind, int depth, int value, long time) {
        // The mask and not the size: the session may end at this very moment, and what was read before
        // must not become an offset without bounds.
        long at = ring + PAGE + (head & U.getInt(ring + G_MASK));
        U.putLong(at, time);
        U.putLong(at + 8, (long) (kind << DEPTH_BITS | depth & DEPTH_MASK) << 32 | value & LOW);
        // A reader takes what lies before the head.
        U.putLongRelease(null, ring + G_HEAD, head + RECORD);
    }

    /** Where the reader says how far it has come. */
    private static long tailAt(long ring) {
        return (ring & ~LOW) + (1L << TAILS_AT_BIT) + ((ring & LOW) >>> TAIL_SHIFT);
    }

    /** How far the reader has come. What cannot be is taken for no further than it had to. */
    private static long tail(long ring, long head, int size) {
        long tail = U.getLongAcquire(null, tailAt(ring));
        long used = head - tail;
        return used < 0 || used > size ? head - size : tail;
    }

    /** The ring may be full: how far has the reader come? */
    @DontInline
    private static void full(long ring, int kind, int depth, int value, long time) {
        int size = U.getInt(ring + G_SIZE);
        if (ring >>> 32 != mark || size == 0) {
            return; // The session is over.
        }
        long head = U.getLong(ring + G_HEAD);
        long tail = tail(ring, head, size);
        long room = size - (head - tail);
        long since = U.getLong(ring + G_GAP_SINCE);
        if (since == 0 && room <= RESERVE && U.getLong((ring & ~LOW) + H_WAIT) != 0) {
            tail = waitForRoom(ring, head, size);
            if (ring >>> 32 != mark) {
                return;
            }
            room = size - (head - tail);
        }
        if (since == 0 && room <= RESERVE) {
            since = time;
            U.putLong(ring + G_GAP_SINCE, since);
            U.putLong(ring + G_GAP_EVENTS, 0);
            U.putInt(ring + G_GAP_DEPTH, depth);
        }
        if (since != 0) {
            long events = U.getLong(ring + G_GAP_EVENTS);
            if (room < size >> 1) {
                if (kind <= THROWN) {
                    U.putLong(ring + G_GAP_EVENTS, events + 1);
                    U.putLong(ring + G_DROPPED, U.getLong(ring + G_DROPPED) + 1);
                }
                if (depth < U.getInt(ring + G_GAP_DEPTH)) {
                    U.putInt(ring + G_GAP_DEPTH, depth);
                }
                return;
            }
            int told = events < Integer.MAX_VALUE ? (int) events : Integer.MAX_VALUE;
            put(ring, head, GAP, U.getInt(ring + G_GAP_DEPTH), told, since);
            U.putLong(ring + G_GAP_SINCE, 0);
            head += RECORD;
        }
        U.putLong(ring + G_LIMIT, tail + size - RESERVE);
        put(ring, head, kind, depth, value, time);
        long waited = U.getLong(ring + G_HELD);
        if (waited != 0) {
            U.putLong(ring + G_HELD, 0);
            held(ring, waited);
        }
    }

    /** Waits until half of the ring is free, for as long as was asked for at most; how far the reader has come. */
    @DontInline
    private static long waitForRoom(long ring, long head, int size) {
        long began = ticks();
        long until = System.nanoTime() + U.getLong((ring & ~LOW) + H_WAIT);
        long tail;
        do {
            rest();
            tail = tail(ring, head, size);
        } while (size - (head - tail) < size >> 1 && ring >>> 32 == mark && System.nanoTime() - until < 0);
        if (ring >>> 32 == mark) {
            long waited = ticks() - began;
            U.putLong(ring + G_HELD, U.getLong(ring + G_HELD) + waited);
            U.putLong(ring + G_WAITED, U.getLong(ring + G_WAITED) + waited);
        }
        return tail;
    }

    /** Found in the agent: sleeps for a moment. */
    private static native void rest();

    /** A method may run for the first time; what it calls is woven before it goes on. */
    @DontInline
    private static void discover(long ring, int id) {
        if (TareDiscovery.isNew(id)) {
            long began = ticks();
            TareDiscovery.discover(ring, id);
            held(ring, ticks() - began);
        }
    }

    /** The thread was held up for our sake, until now. */
    static void held(long ring, long ticks) {
        long end = ticks();
        for (long left = ticks; left > 0; left -= Integer.MAX_VALUE) {
            int part = left < Integer.MAX_VALUE ? (int) left : Integer.MAX_VALUE;
            write(ring, HELD, U.getInt(ring + G_DEPTH), part, end - left);
        }
    }

    /** A root is entered from outside the subgraph. */
    @DontInline
    private static long begin(Thread thread, int id) {
        if (mark == -1) {
            return 0;
        }
        long start = mark << 32;
        long tid = U.getLong(thread, TID);
        long entry = search(tid);
        if (get(thread, entry) == BUSY) {
            return 0;
        }
        long ring = ~get(thread, entry);
        if (FIELD && ring >>> 32 != mark && entry != 0) {
            ring = ~U.getLong(entry + 8);
        }
        if (ring >>> 32 != mark) {
            if (entry == 0) {
                entry = claim(start, tid);
            }
            ring = entry == 0 ? 0 : ring(start, thread);
            if (ring == 0) {
                if (entry != 0) {
                    forget(thread, entry);
                }
                lost(start);
                return 0;
            }
            U.putLong(entry + 8, ~ring);
        }
        set(thread, entry, ring);
        long token = entered(ring, id);
        return (U.getInt(ring + T_FLAGS) & LEAVES) != 0 ? ~token : token;
    }

    /** The method through which the subgraph was entered has ended. */
    @DontInline
    private static void leave(long ring) {
        if (ring >>> 32 != mark) {
            return; // A frame that is older than this session.
        }
        Thread thread = Thread.currentThread();
        long entry = FIELD ? 0 : entry(thread);
        if ((U.getInt(ring + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            set(thread, entry, ~ring); // Outside, and the ring is found again.
        } else {
            forget(thread, search(U.getLong(thread, TID)));
            push(mark << 32, H_POOL, ring);
        }
    }

    /** Called on a thread that is about to end: its ring can be another's. */
    static void ended(Thread thread, long entry, long ring) {
        forget(thread, entry);
        push(mark << 32, H_ENDED, ring);
    }

    /** A ring for a thread: one that nobody uses, if it has room, or a new one; zero if there is none. */
    private static long ring(long base, Thread thread) {
        boolean virtual = VIRTUAL != null && VIRTUAL.isInstance(thread);
        int list = virtual ? H_POOL : H_ENDED;
        long ring = pop(base, list);
        int size = U.getInt(base + H_RING);
        if (ring != 0) {
            long head = U.getLong(ring + G_HEAD);
            int whole = U.getInt(ring + G_SIZE);
            if (head - tail(ring, head, whole) > whole >> 1) {
                push(base, list, ring);
                ring = 0;
            }
        }
        if (ring == 0) {
            ring = pages(base, PAGE + size, false);
            if (ring == 0) {
                size = RING_LEAST; // Memory comes later, or never: a small one is better than none.
                ring = pages(base, PAGE + size, false);
            }
            if (ring == 0) {
                return 0;
            }
            // For probes of an earlier session that take it for a node: it has no children.
            noChild(ring);
            U.putInt(ring + G_SIZE, size);
            U.putInt(ring + G_MASK, size - 1);
            U.putLong(ring + G_LIMIT, size - RESERVE);
            U.putInt(ring + T_FLAGS, virtual ? FLAG_VIRTUAL : U.getInt(base + H_ROOTS));
            header(ring, KIND_RING, ring);
        }
        U.putInt(ring + G_DEPTH, 0);
        name(ring, thread, virtual);
        return ring;
    }

    /** Called by the agent, before anybody reads: what the calling thread has written is no more. */
    static void forgotten() {
        Thread thread = Thread.currentThread();
        long entry = search(U.getLong(thread, TID));
        long ring = get(thread, entry);
        ring = ring > 0 ? ring : ~ring;
        if (ring >>> 32 == mark) {
            U.putLongRelease(null, tailAt(ring), U.getLong(ring + G_HEAD));
        }
    }

    /** Says whose the records are that follow. The name is copied as String keeps it. */
    private static void name(long ring, Thread thread, boolean virtual) {
        Object name = virtual ? null : U.getReference(thread, NAME);
        byte[] bytes = name instanceof String ? (byte[]) U.getReference(name, VALUE) : null;
        int length = bytes == null ? 0 : bytes.length < T_NAME_MAX ? bytes.length : T_NAME_MAX;
        int coded = length;
        if (length != 0 && U.getByte(name, CODER) != 0) {
            coded |= UTF16;
        }
        if (virtual) {
            coded |= VIRTUAL_THREAD;
        }
        write(ring, THREAD, 0, coded, U.getLong(thread, TID));
        for (int at = 0; at < length; at += 8) {
            long part = 0;
            for (int i = 0; i < 8 && at + i < length; i++) {
                part |= (bytes[at + i] & 0xffL) << (i << 3);
            }
            write(ring, NAME_PART, 0, 0, part);
        }
    }
}
