package java.lang;

import static java.lang.TareClock.ticks;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Times regions. A region's figures are kept per thread, beside its tree, whatever else is recorded. The
 * token is the time of the start, with the region and some bits of the session above it.
 */
public final class TareRegions {
    private static final Unsafe U = Unsafe.getUnsafe();

    private static final int REGION_AT = 48;
    private static final int SESSION_AT = 56;
    private static final long REGION_TIME = (1L << REGION_AT) - 1;

    private TareRegions() {}

    /** A region is entered. Given a token that is not zero, it is entered already. */
    @ForceInline
    public static long regionStart(long token, int region) {
        return token != 0 ? token : regionBegin(region);
    }

    @ForceInline
    public static void regionStop(long token) {
        if (token != 0) {
            regionEnd(token);
        }
    }

    private static long regionBegin(int region) {
        long mark = session;
        if (mark == -1) {
            return 0;
        }
        Thread thread = Thread.currentThread();
        if (get(thread, entry(thread)) == BUSY) {
            return 0;
        }
        long time = regionTime(mark, regionTree(thread, mark), ticks());
        return (mark & 0x7f) << SESSION_AT | (long) region << REGION_AT | time & REGION_TIME | 1;
    }

    private static void regionEnd(long token) {
        long now = ticks();
        long mark = session;
        if (mark == -1 || (mark & 0x7f) != token >>> SESSION_AT) {
            return; // Began before this session.
        }
        Thread thread = Thread.currentThread();
        long tree = regionTree(thread, mark);
        long time = regionTime(mark, tree, now) - token & REGION_TIME;
        if (time > REGION_TIME >>> 1) {
            time = 0; // The agent told of a pause meanwhile.
        }
        int region = (int) (token >>> REGION_AT) & 0xff;
        if (tree != 0) {
            regionCount(mark << 32, tree, region, time);
        } else if (VIRTUAL != null && VIRTUAL.isInstance(thread)) {
            long root = borrow(mark << 32);
            if (root != 0) {
                regionCount(mark << 32, page(root), region, time);
                push(mark << 32, H_POOL, page(root));
            } else {
                lost(mark << 32);
            }
        } else {
            long root = regionRoot(thread, mark);
            if (root != 0) {
                regionCount(mark << 32, page(root), region, time);
            }
        }
    }

    /** The time as a thread's tree sees it. Trees that virtual threads borrow do not matter. */
    @ForceInline
    private static long regionTime(long mark, long tree, long now) {
        now -= U.getLong((mark << 32) + H_PAUSED);
        if (tree != 0 && (U.getInt(tree + T_FLAGS) & FLAG_VIRTUAL) == 0) {
            now -= U.getLong(tree + T_ADJUST);
        }
        return now;
    }

    /** The tree of a thread, or zero if it has none of this session. */
    @ForceInline
    private static long regionTree(Thread thread, long mark) {
        long node = get(thread, entry(thread));
        node = node > 0 ? node : ~node;
        if (node >>> 32 == mark) {
            return page(node);
        }
        if (FIELD) {
            long entry = search(U.getLong(thread, TID));
            node = entry == 0 ? 0 : ~U.getLong(entry + 8);
        }
        return node >>> 32 == mark ? page(node) : 0;
    }

    /** Makes a tree for a thread that stays outside the subgraph. */
    private static long regionRoot(Thread thread, long mark) {
        long base = mark << 32;
        long entry = claim(base, U.getLong(thread, TID));
        long root = entry == 0 ? 0 : newTree(base, thread);
        if (root == 0) {
            if (entry != 0) {
                U.putLongRelease(null, entry, LEFT);
            }
            lost(base);
            return 0;
        }
        U.putLong(entry + 8, ~root);
        if (FIELD) {
            U.putLong(thread, CUR, ~root);
        }
        return root;
    }

    private static void regionCount(long base, long tree, int region, long time) {
        int at = U.getInt(tree + T_REGIONS);
        while (at != 0 && U.getInt((base | at & LOW) + R_REGION) != region) {
            at = U.getInt((base | at & LOW) + R_NEXT);
        }
        long figures = base | at & LOW;
        if (at == 0) {
            figures = pages(base, R_BYTES, false);
            if (figures == 0) {
                lost(base);
                return;
            }
            U.putInt(figures + P_PAGES, R_BYTES / PAGE);
            U.putInt(figures + R_REGION, region);
            U.putInt(figures + R_NEXT, U.getInt(tree + T_REGIONS));
            U.putLong(figures + R_MIN, Long.MAX_VALUE);
            header(figures, KIND_REGION, tree);
            U.putInt(tree + T_REGIONS, (int) figures);
        }
        if (time < U.getLong(figures + R_MIN)) {
            U.putLong(figures + R_MIN, time);
        }
        if (time > U.getLong(figures + R_MAX)) {
            U.putLong(figures + R_MAX, time);
        }
        // Up to 15 a stretch for each tick, then 16 for each power of two.
        long stretch = time;
        if (time >>> R_SHIFT != 0) {
            int power = 0;
            long rest = time >>> R_SHIFT;
            for (int step = 32; step != 0; step >>= 1) {
                if (rest >>> step != 0) {
                    rest >>>= step;
                    power += step;
                }
            }
            stretch = ((long) power << R_SHIFT) + (time >>> power);
        }
        long times = figures + R_TIMES + (stretch << 3);
        U.putLong(times, U.getLong(times) + 1);
        U.putLong(figures + R_TOTAL, U.getLong(figures + R_TOTAL) + time);
        U.putLong(figures + R_COUNT, U.getLong(figures + R_COUNT) + 1);
    }
}
