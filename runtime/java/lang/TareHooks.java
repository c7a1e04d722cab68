package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Stable;

/**
 * Hooks in a few methods: every call is counted, and some are told to the agent, which looks who
 * called and takes the time.
 *
 * <p>Each hook has a block of memory that is never given back: how many calls are to be told, as a
 * part of 2^32, or less than zero while none is even counted; calls of threads that share; a bit for
 * each stripe that a thread has taken; then a stripe for each thread, with its id and its calls. So a
 * call needs no lock, and no count is lost.
 * The numbers are those of the agent's {@code hooks/blocks.rs}.
 */
public final class TareHooks {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");

    private static final int BLOCK_SHIFT = 13;
    private static final int SHARED = 8;
    private static final int TAKEN = 16;
    private static final int FIRST_STRIPE = 64;
    private static final int STRIPE_SHIFT = 6;
    private static final long STRIPE_MASK = 63;

    /** 2^64 by the golden ratio: its multiples are spread evenly, whatever comes how often. */
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;

    @Stable private static long base;

    private TareHooks() {}

    /** Called by the agent, before anything is woven: where the blocks are. */
    static void begin(long blocks) {
        base = blocks;
    }

    /** Woven: a method is called. The token is zero for a call that is only counted. */
    @ForceInline
    public static long enter(int hook) {
        // Opaque, so that no loop keeps what it was before.
        long part = U.getLongOpaque(null, base + ((long) hook << BLOCK_SHIFT));
        return part < 0 ? 0 : count(hook, part);
    }

    /** Apart, so that woven code grows by a load and a branch, and compilers inline as before. */
    @DontInline
    private static long count(int hook, long part) {
        long block = base + ((long) hook << BLOCK_SHIFT);
        long tid = U.getLong(Thread.currentThread(), TID);
        long stripe = block + FIRST_STRIPE + ((tid & STRIPE_MASK) << STRIPE_SHIFT);
        long calls;
        if (U.getLong(stripe) == tid) {
            calls = U.getLong(stripe + 8) + 1;
            U.putLong(stripe + 8, calls);
        } else {
            calls = share(block, stripe, tid);
        }
        return calls * GOLDEN >>> 32 < part ? called(hook) : 0;
    }

    /** Woven: it returns, or throws. */
    @ForceInline
    public static void exit(long token) {
        if (token != 0) {
            returns(token);
        }
    }

    private static long share(long block, long stripe, long tid) {
        if (U.getLong(stripe) == 0) {
            // First, so that whoever sums up passes no stripe by that counts.
            U.getAndBitwiseOrLong(null, block + TAKEN, 1L << (tid & STRIPE_MASK));
            if (U.compareAndSetLong(null, stripe, 0, tid)) {
                long calls = U.getLong(stripe + 8) + 1;
                U.putLong(stripe + 8, calls);
                return calls;
            }
        }
        return U.getAndAddLong(null, block + SHARED, 1) + 1;
    }

    /** Called by the agent, which looks at the clock before and after: so many calls of nothing. */
    static void rehearse(long calls) {
        for (long call = 0; call < calls; call++) {
            exit(enter(REHEARSED));
        }
    }

    /** The hook that no method has. */
    private static final int REHEARSED = 63;

    /** Found in the agent. */
    private static native long called(int hook);

    private static native void returns(long token);
}
