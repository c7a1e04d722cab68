package java.lang;

import static java.lang.TareClock.clock;
import static java.lang.TareClock.ticks;
import static java.lang.TareLayout.*;
import static java.lang.TareProbe.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Probes that count every call and time some: of each context the first ones, and then one in so many,
 * at distances that are drawn at random. Where calls are long all of them are timed.
 *
 * <p>A node says which of its calls is timed next. While that one is under way its number is not above
 * the node's count, and at all other times it is. So both probes ask the same question, and a call whose
 * exit was never reached is forgotten when the next one is timed in its place.
 */
public final class TareSome {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareSome() {}

    @ForceInline
    public static long enterSome(int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        return node > 0 ? down(thread, entry, node, id, false) : 0;
    }

    @ForceInline
    public static long enterRootSome(int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        return node > 0 ? down(thread, entry, node, id, true) : begin(thread, id);
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
        if (isTimed(child, U.getLong(child + COUNT) + 1)) {
            start(child);
        }
        long token = step(thread, entry, node, child);
        U.putLong(null, child + COUNT, U.getLong(null, child + COUNT) + 1);
        return token;
    }

    @ForceInline
    private static boolean isTimed(long node, long call) {
        return (int) call - U.getInt(node + AT) >= 0;
    }

    @DontInline
    private static long begin(Thread thread, int id) {
        long root = outermost(thread);
        return root == 0 ? 0 : leaving(root, down(thread, entry(thread), root, id, false));
    }

    @ForceInline
    public static void exitSome(long token) {
        if (token != 0) {
            Thread thread = Thread.currentThread();
            long node = get(thread, entry(thread));
            if (node > 0 && isTimed(node, U.getLong(node + COUNT))) {
                end(node, token);
            }
            exit(token);
        }
    }

    public static void caughtSome(long token, int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long node = get(thread, entry);
        long own = own(node, token);
        if (own != 0) {
            if (node != own) {
                stopUpTo(node, own, clock(node, ticks()));
            }
            set(thread, entry, own);
        }
    }

    // Not inlined: most calls do without, and a program's own code is inlined in its place.

    @DontInline
    private static void start(long node) {
        U.putLong(node + START, clock(node, ticks()));
    }

    @DontInline
    private static void end(long node, long token) {
        long now = clock(node, ticks());
        long outer = outer(token);
        if (parent(node) == outer) {
            stop(node, now);
        } else if (own(node, token) != 0) {
            stopUpTo(node, outer, now);
        }
    }

    private static void stopUpTo(long node, long outer, long now) {
        for (; node != outer && (node & LOW) != 0; node = parent(node)) {
            stop(node, now);
        }
    }

    private static void stop(long node, long now) {
        long start = U.getLong(node + START);
        if (start == 0) {
            return;
        }
        // The agent tells of a pause when it is over: a call at that moment may seem negative.
        long took = now > start ? now - start : 0;
        U.putLong(node + START, 0);
        long call = U.getLong(node + COUNT);
        // What stands for the rest also counts calls inside of it: all of those are timed that enter it.
        if (call <= FIRST_CALLS || U.getInt(node + METHOD) == REST) {
            long first = U.getLong(node + FIRST_TOTAL) + took & ~LONG;
            // Not by the sum: first calls load classes. Decided once, so that what is drawn later is
            // no more often long than others are.
            boolean isLong = call == FIRST_CALLS && took >= U.getLong((node & ~LOW) + H_LONG);
            U.putLong(node + FIRST_TOTAL, isLong ? first | LONG : first);
        } else {
            double square = U.getDouble(null, node + SQUARES) + (double) took * took;
            U.putDouble(null, node + SQUARES, square);
            U.putLong(node + TOTAL, U.getLong(node + TOTAL) + took);
            U.putInt(node + TIMED_CALLS, U.getInt(node + TIMED_CALLS) + 1);
        }
        U.putInt(node + AT, next(node, call));
    }

    /** The number of the call that is timed next. */
    private static int next(long node, long call) {
        boolean isLong = (U.getLong(node + FIRST_TOTAL) & LONG) != 0;
        if (call < FIRST_CALLS || isLong || U.getInt(node + METHOD) == REST) {
            return (int) call + 1;
        }
        // Any distance up to twice the mean is as likely, whatever the program does. No call of its
        // own: an exit reaches no deeper than its entry, where the stack may be at its end.
        long base = node & ~LOW;
        long x = (node & LOW) * 0x9e3779b97f4a7c15L + call ^ U.getLong(base + H_SEED);
        x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
        x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
        int most = 2 * U.getInt(base + H_EVERY) - 1;
        return (int) call + 1 + (int) ((x ^ x >>> 31) >>> 33) % most;
    }
}
