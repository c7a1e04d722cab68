package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareProbe.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.find;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;

/**
 * Methods with probes around work, in the forms in which woven code has them, to measure what probes cost.
 * The calling thread gets a tree like any other, which is taken away again.
 */
final class TareCalibration {
    private static final Unsafe U = Unsafe.getUnsafe();

    private static final int BARE = 0;
    private static final int TIMED = 1;
    private static final int CHAINED = 2;
    private static final int COUNTED = 3;
    private static final int COUNTED_LEAF = 4;
    private static final int COLD_BARE = 5;
    private static final int COLD_TIMED = 6;
    private static final int PAIRED = 7;
    private static final int VIRTUAL = 8;
    private static final int COLD_VIRTUAL = 9;
    private static final int COLD_LOOP = 10;
    private static final int TRACED = 11;
    private static final int COLD_TRACED = 12;

    // The methods' types, as the front end numbers them.
    private static final int COMPILED = TYPES + 4;
    private static final int COMPILED_STATIC = TYPES + 10;
    private static final int INTERPRETED = TYPES;
    private static final int INTERPRETED_STATIC = TYPES + 6;

    /** No descriptor may name a class of ours, which gets another name: hence the casts. */
    private static final Object RECEIVER = new TareCalibration();

    private static int worked;

    private TareCalibration() {}

    /**
     * Called by the agent before anything is woven, and again later: how long so many calls take of
     * a method that does so many steps of work, in nanoseconds; when chained, of one that calls
     * another one, which does the work, and when paired, twice. Wide work keeps the processor busy, other work lets it wait.
     * What is cold is called so seldom that it is never compiled, nor inlined where this is. None of them takes another way
     * through the probes than calls of one method do: the JVM's compilers remember which ways are taken.
     */
    static long calibrate(int form, int wide, int rounds, int steps) {
        long start = System.nanoTime();
        switch (form) {
            case BARE: bare(wide != 0, rounds, steps); break;
            case TIMED: timed(wide != 0, rounds, steps); break;
            case CHAINED: chained(wide != 0, rounds, steps); break;
            case COUNTED: counted(wide != 0, rounds, steps); break;
            case COUNTED_LEAF: countedLeaf(wide != 0, rounds, steps); break;
            case COLD_BARE: coldBare(rounds); break;
            case COLD_TIMED: coldTimed(rounds); break;
            case PAIRED: paired(wide != 0, rounds, steps); break;
            case VIRTUAL: virtual(wide != 0, rounds, steps); break;
            case COLD_VIRTUAL: coldVirtual(rounds); break;
            case COLD_LOOP: coldLoop(rounds); break;
            case TRACED: traced(wide != 0, rounds); break;
            case COLD_TRACED: coldTraced(wide != 0, rounds); break;
            default: break;
        }
        return System.nanoTime() - start;
    }

    /**
     * Called by the agent: ticks that were measured in calibration since it was asked last, in the
     * outer (0) or the inner (1) of two methods.
     */
    static long calibrated(int level) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        node = node > 0 ? node : ~node;
        if (node >>> 32 != session || U.getInt((node & ~LOW) + H_NODE) <= START) {
            return 0;
        }
        for (int i = 0; i <= level && node != 0; i++) {
            node = find(node, CALIBRATION);
        }
        if (node == 0 || U.getInt(node + METHOD) != CALIBRATION) {
            return 0;
        }
        long ticks = U.getLong(node + TOTAL);
        U.putLong(node + TOTAL, 0);
        return ticks;
    }

    /** The same compiled code with and without probes around it. */
    @DontInline
    private static int work(boolean wide, int x, int steps) {
        if (wide) {
            int a = x;
            int b = x + 1;
            int c = x + 2;
            int d = x + 3;
            for (int i = 0; i < steps; i++) {
                a += b ^ i;
                b ^= i;
                c += d ^ i;
                d ^= i;
            }
            return a + b + c + d;
        }
        for (int i = 0; i < steps; i++) {
            x ^= x << 13;
            x ^= x >>> 17;
        }
        return x;
    }

    private static void bare(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = work(wide, x, steps);
        }
        worked = x;
    }

    private static void timed(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = timedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void chained(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = chainedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void paired(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = pairedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void virtual(boolean wide, int rounds, int steps) {
        TareCalibration receiver = (TareCalibration) RECEIVER;
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = receiver.virtualWork(wide, x, steps);
        }
        worked = x;
    }

    @DontInline
    int virtualWork(boolean wide, int x, int steps) {
        return wide ? x + steps : x ^ steps;
    }

    private static void counted(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = countedWork(wide, x, steps);
        }
        worked = x;
    }

    private static void countedLeaf(boolean wide, int rounds, int steps) {
        int x = worked;
        for (int i = 0; i < rounds; i++) {
            x = countedLeafWork(wide, x, steps);
        }
        worked = x;
    }

    private static int timedWork(boolean wide, int x, int steps) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = work(wide, x, steps);
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int chainedWork(boolean wide, int x, int steps) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = timedWork(wide, x, steps);
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int pairedWork(boolean wide, int x, int steps) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = timedWork(wide, timedWork(wide, x, steps), steps);
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    private static int countedWork(boolean wide, int x, int steps) {
        long token = enterRoot(CALIBRATION);
        try {
            x = work(wide, x, steps);
        } catch (Throwable thrown) {
            exit(token);
            throw thrown;
        }
        exit(token);
        return x;
    }

    private static int countedLeafWork(boolean wide, int x, int steps) {
        leafRoot(CALIBRATION);
        return work(wide, x, steps);
    }

    @DontInline
    private static void coldBare(int rounds) {
        for (int i = 0; i < rounds; i++) {
            worked = coldWork(worked);
        }
    }

    @DontInline
    private static void coldTimed(int rounds) {
        for (int i = 0; i < rounds; i++) {
            worked = coldTimedWork(worked);
        }
    }

    @DontInline
    private static void coldVirtual(int rounds) {
        TareCalibration receiver = (TareCalibration) RECEIVER;
        for (int i = 0; i < rounds; i++) {
            worked = receiver.coldVirtualWork(worked);
        }
    }

    /** What is around a cold call. */
    @DontInline
    private static void coldLoop(int rounds) {
        for (int i = 0; i < rounds; i++) {
            worked = worked + 1;
        }
    }

    int coldVirtualWork(int x) {
        return x + 1;
    }

    private static int coldWork(int x) {
        return x + 1;
    }

    private static int coldTimedWork(int x) {
        long token = enterRootTimed(CALIBRATION);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            exitTimed(token);
            throw thrown;
        }
        exitTimed(token);
        return x;
    }

    // ---- in a trace ----

    // Each round has every pair of transitions: a method that calls an empty one twice. The method
    // around all rounds is the first on its thread, so the others take the common way.

    private static void traced(boolean instance, int rounds) {
        if (instance) {
            tracedRounds(rounds);
        } else {
            staticRounds(rounds);
        }
    }

    private static void tracedRounds(int rounds) {
        TareCalibration receiver = (TareCalibration) RECEIVER;
        long token = TareTrace.enterRoot(COMPILED);
        for (int i = 0; i < rounds; i++) {
            worked = receiver.tracedOuter(worked);
        }
        TareTrace.exit(token, COMPILED);
    }

    private static void staticRounds(int rounds) {
        long token = TareTrace.enterRoot(COMPILED_STATIC);
        for (int i = 0; i < rounds; i++) {
            worked = staticOuter(worked);
        }
        TareTrace.exit(token, COMPILED_STATIC);
    }

    @DontInline
    private static void coldTraced(boolean instance, int rounds) {
        TareCalibration receiver = (TareCalibration) RECEIVER;
        int id = instance ? INTERPRETED : INTERPRETED_STATIC;
        long token = TareTrace.enterRoot(id);
        for (int i = 0; i < rounds; i++) {
            worked = instance ? receiver.coldTracedOuter(worked) : coldStaticOuter(worked);
        }
        TareTrace.exit(token, id);
    }

    int tracedOuter(int x) {
        long token = TareTrace.enterRoot(COMPILED);
        try {
            x = tracedInner(tracedInner(x));
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, COMPILED);
            throw thrown;
        }
        TareTrace.exit(token, COMPILED);
        return x;
    }

    int tracedInner(int x) {
        long token = TareTrace.enterRoot(COMPILED);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, COMPILED);
            throw thrown;
        }
        TareTrace.exit(token, COMPILED);
        return x;
    }

    private static int staticOuter(int x) {
        long token = TareTrace.enterRoot(COMPILED_STATIC);
        try {
            x = staticInner(staticInner(x));
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, COMPILED_STATIC);
            throw thrown;
        }
        TareTrace.exit(token, COMPILED_STATIC);
        return x;
    }

    private static int staticInner(int x) {
        long token = TareTrace.enterRoot(COMPILED_STATIC);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, COMPILED_STATIC);
            throw thrown;
        }
        TareTrace.exit(token, COMPILED_STATIC);
        return x;
    }

    int coldTracedOuter(int x) {
        long token = TareTrace.enterRoot(INTERPRETED);
        try {
            x = coldTracedInner(coldTracedInner(x));
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, INTERPRETED);
            throw thrown;
        }
        TareTrace.exit(token, INTERPRETED);
        return x;
    }

    int coldTracedInner(int x) {
        long token = TareTrace.enterRoot(INTERPRETED);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, INTERPRETED);
            throw thrown;
        }
        TareTrace.exit(token, INTERPRETED);
        return x;
    }

    private static int coldStaticOuter(int x) {
        long token = TareTrace.enterRoot(INTERPRETED_STATIC);
        try {
            x = coldStaticInner(coldStaticInner(x));
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, INTERPRETED_STATIC);
            throw thrown;
        }
        TareTrace.exit(token, INTERPRETED_STATIC);
        return x;
    }

    private static int coldStaticInner(int x) {
        long token = TareTrace.enterRoot(INTERPRETED_STATIC);
        try {
            x = x + 1;
        } catch (Throwable thrown) {
            TareTrace.exitThrow(token, INTERPRETED_STATIC);
            throw thrown;
        }
        TareTrace.exit(token, INTERPRETED_STATIC);
        return x;
    }
}
