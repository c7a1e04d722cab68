package bench.cost;

import java.util.List;
import java.util.Random;
import java.util.function.IntBinaryOperator;

/**
 * Programs that nobody has looked at before: three trees of five methods, whose lengths, kinds of work and numbers of
 * calls are drawn from a seed. {@code a} calls {@code b} and {@code c}, {@code b} calls {@code d}, {@code c} calls
 * {@code e}. Each tree has methods of its own, because profilers and compilers tell programs apart by their methods.
 */
final class CasesDrawn {
    static final int TREES = 3;
    static final int METHODS = 5;

    /** Of each method: how many steps, whether they keep the processor busy, and how often its caller calls it. */
    private static final int[] STEPS = new int[TREES * METHODS];
    private static final boolean[] WIDE = new boolean[TREES * METHODS];
    private static final int[] TIMES = new int[TREES * METHODS];

    /** Its nanoseconds, as they were drawn. */
    private static final double[] NANOS = new double[TREES * METHODS];

    private CasesDrawn() {}

    /** From 5 ns to 20 µs, each length as likely by its order of magnitude. */
    static void draw(long seed) {
        Random random = new Random(seed);
        for (int i = 0; i < STEPS.length; i++) {
            NANOS[i] = 5 * Math.pow(4_000, random.nextDouble());
            WIDE[i] = random.nextBoolean();
            TIMES[i] = 1 + random.nextInt(16);
            STEPS[i] = Work.steps(NANOS[i], WIDE[i]);
        }
    }

    static int times(int method) {
        return TIMES[method];
    }

    /** With all that it calls: who calls whom is the same in each tree. */
    static double nanos(int method) {
        int first = method / METHODS * METHODS;
        return NANOS[method] + switch (method - first) {
            case 0 -> TIMES[first + 1] * nanos(first + 1) + TIMES[first + 2] * nanos(first + 2);
            case 1 -> TIMES[first + 3] * nanos(first + 3);
            case 2 -> TIMES[first + 4] * nanos(first + 4);
            default -> 0;
        };
    }

    static String describe(int method) {
        return String.format("%.0f ns of %s work, %d times", NANOS[method],
            WIDE[method] ? "wide" : "narrow", TIMES[method]);
    }

    /** The drivers, by tree. */
    static final List<IntBinaryOperator> RUNS = List.of(CasesDrawn::runA0, CasesDrawn::runA1, CasesDrawn::runA2);

    /** A run in which one method does no work itself. */
    static int without(int method, IntBinaryOperator run, int calls, int x) {
        int steps = STEPS[method];
        STEPS[method] = 0;
        try {
            return run.applyAsInt(calls, x);
        } finally {
            STEPS[method] = steps;
        }
    }

    static int a0(int x) {
        x = Work.some(WIDE[0], STEPS[0], x);
        for (int i = 0; i < TIMES[1]; i++) {
            x = b0(x);
        }
        for (int i = 0; i < TIMES[2]; i++) {
            x = c0(x);
        }
        return x;
    }

    static int runA0(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = a0(x);
        }
        return x;
    }

    static int b0(int x) {
        x = Work.some(WIDE[1], STEPS[1], x);
        for (int i = 0; i < TIMES[3]; i++) {
            x = d0(x);
        }
        return x;
    }

    static int c0(int x) {
        x = Work.some(WIDE[2], STEPS[2], x);
        for (int i = 0; i < TIMES[4]; i++) {
            x = e0(x);
        }
        return x;
    }

    static int d0(int x) {
        x = Work.some(WIDE[3], STEPS[3], x);
        return x;
    }

    static int e0(int x) {
        x = Work.some(WIDE[4], STEPS[4], x);
        return x;
    }

    static int a1(int x) {
        x = Work.some(WIDE[5], STEPS[5], x);
        for (int i = 0; i < TIMES[6]; i++) {
            x = b1(x);
        }
        for (int i = 0; i < TIMES[7]; i++) {
            x = c1(x);
        }
        return x;
    }

    static int runA1(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = a1(x);
        }
        return x;
    }

    static int b1(int x) {
        x = Work.some(WIDE[6], STEPS[6], x);
        for (int i = 0; i < TIMES[8]; i++) {
            x = d1(x);
        }
        return x;
    }

    static int c1(int x) {
        x = Work.some(WIDE[7], STEPS[7], x);
        for (int i = 0; i < TIMES[9]; i++) {
            x = e1(x);
        }
        return x;
    }

    static int d1(int x) {
        x = Work.some(WIDE[8], STEPS[8], x);
        return x;
    }

    static int e1(int x) {
        x = Work.some(WIDE[9], STEPS[9], x);
        return x;
    }

    static int a2(int x) {
        x = Work.some(WIDE[10], STEPS[10], x);
        for (int i = 0; i < TIMES[11]; i++) {
            x = b2(x);
        }
        for (int i = 0; i < TIMES[12]; i++) {
            x = c2(x);
        }
        return x;
    }

    static int runA2(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = a2(x);
        }
        return x;
    }

    static int b2(int x) {
        x = Work.some(WIDE[11], STEPS[11], x);
        for (int i = 0; i < TIMES[13]; i++) {
            x = d2(x);
        }
        return x;
    }

    static int c2(int x) {
        x = Work.some(WIDE[12], STEPS[12], x);
        for (int i = 0; i < TIMES[14]; i++) {
            x = e2(x);
        }
        return x;
    }

    static int d2(int x) {
        x = Work.some(WIDE[13], STEPS[13], x);
        return x;
    }

    static int e2(int x) {
        x = Work.some(WIDE[14], STEPS[14], x);
        return x;
    }
}
