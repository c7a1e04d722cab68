package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareThreads.here;
import static java.lang.TareTree.page;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The time as the probes see it. A tree's clock stands still while its thread is in here for longer
 * than a probe takes, or is held up for the weaving of other code.
 */
final class TareClock {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareClock() {}

    /** Found in the agent: reads the processor's time stamp, where that is the clock. */
    static native long ticks();

    /** The time without pauses, which every clock leaves out by itself. */
    static long unpaused(long base) {
        return ticks() - U.getLong(base + H_PAUSED);
    }

    /** The time as the tree of a node sees it. */
    @ForceInline
    static long clock(long node, long now) {
        return now - U.getLong(page(node) + T_ADJUST) - U.getLong((node & ~LOW) + H_PAUSED);
    }

    /** Called by the agent: the calling thread was held up for this many ticks, for our sake. */
    static void held(long ticks) {
        long node = here();
        if (node != 0) {
            held(node, ticks);
        }
    }

    static void held(long node, long ticks) {
        long tree = page(node);
        if (U.getInt((node & ~LOW) + H_HOLDS) == HOLDS_TRACE) {
            TareTrace.held(tree, ticks);
            return;
        }
        U.putLong(tree + T_ADJUST, U.getLong(tree + T_ADJUST) + ticks);
    }
}
