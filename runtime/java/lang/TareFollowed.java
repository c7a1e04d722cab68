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
 * Probes of sessions that follow some calls of roots. Most of the time a thread is outside, so the way
 * for that is short, and all else is not inlined. Beside what timed probes do, the length of each call is
 * counted in its context's spread: how many calls took how long.
 */
public final class TareFollowed {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareFollowed() {}

    @ForceInline
    public static long enterFollowed(int id) {
        return get(Thread.currentThread(), entry(Thread.currentThread())) > 0 ? enter(id) : 0;
    }

    @ForceInline
    public static long enterRootFollowed(int id) {
        return enterRootTimed(id);
    }

    @DontInline
    private static long enter(int id) {
        return enterTimed(id);
    }

    @ForceInline
    public static void exitFollowed(long token) {
        if (token != 0) {
            exit(token, ticks());
        }
    }

    public static void caughtFollowed(long token, int id) {
        caughtTimed(token, id);
    }

    @DontInline
    private static void exit(long token, long now) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0 && parent(node) == outer(token)) {
            long start = U.getLong(node + START);
            long tree = page(node);
            if (start != 0 && (U.getInt(tree + T_FLAGS) & FLAG_FOLLOWED) != 0) {
                long to = U.getLong(node + TO);
                boolean outermost = (int) parent(node) == (int) (tree + T_ROOT);
                try {
                    took(to, clock(node, now) - start, outermost ? 1 : U.getInt(tree + T_WEIGHT));
                } catch (StackOverflowError e) {
                    // It reaches deeper than the entry has: then this length is not kept.
                }
            }
        }
        exitTimed(token, now);
    }

    /** A call of a context of the thread's tree took so long, and stands for so many. */
    static void took(long node, long ticks, long weight) {
        if (node == 0) {
            return;
        }
        long base = node & ~LOW;
        long spread = base | U.getInt(node + SPREAD) & LOW;
        if (spread == base) {
            spread = newSpread(base, node);
            if (spread == 0) {
                return;
            }
        }
        // Up to the first power of two a stretch for each step, then four for each power.
        long steps = ticks > 0 ? ticks >>> SPREAD_DROPPED : 0;
        int number = (int) steps;
        if (steps >>> SPREAD_SHIFT != 0) {
            int power = 63 - SPREAD_SHIFT - Long.numberOfLeadingZeros(steps);
            number = (power << SPREAD_SHIFT) + (int) (steps >>> power);
        }
        long at = spread + Math.min(number, SPREAD_STRETCHES - 1) * 8L;
        U.putLong(at, U.getLong(at) + weight);
    }

    /** Room for the spread of a context; zero when there is none, or as much as there may be. */
    private static long newSpread(long base, long node) {
        long tree = page(node);
        int free = U.getInt(tree + T_SPREADS);
        if (free == 0) {
            boolean more = U.getInt(base + H_SPREADS) < U.getInt(base + H_SPREADS_MOST);
            long page = more ? pages(base, PAGE, false) : 0;
            if (page == 0) {
                U.getAndAddLong(null, base + H_UNSPREAD, 1);
                return 0;
            }
            U.getAndAddInt(null, base + H_SPREADS, 1);
            // No page of a tree: it keeps the kind of one that nobody has written to.
            free = (int) page + SPREAD_FIRST;
        }
        int next = free + SPREAD_BYTES;
        boolean whole = (next & PAGE - 1) == 0 || (next & PAGE - 1) + SPREAD_BYTES > PAGE;
        U.putInt(tree + T_SPREADS, whole ? 0 : next);
        U.putIntRelease(null, node + SPREAD, free);
        return base | free & LOW;
    }
}
