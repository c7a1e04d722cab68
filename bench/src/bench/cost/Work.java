package bench.cost;

/**
 * Work whose length is known: each step waits for the one before it, so that no processor does two
 * at a time. Never profiled, so what a method does with it is that method's own time.
 */
final class Work {
    /** How many steps take about so many nanoseconds. */
    static int n5, n12, n50, n100, n400, n2k, n20k;
    static int sum12, sum100, sum400;

    /** How long a step of either kind takes here, in nanoseconds. */
    private static double narrow, wide;

    private Work() {}

    static int spin(int steps, int x) {
        for (int i = 0; i < steps; i++) {
            x ^= x << 13;
            x ^= x >>> 17;
        }
        return x;
    }

    private static final int[] NUMBERS = new int[4_096];

    /** Work of another kind: what is read depends on nothing, so the processor is kept busy. */
    static int sum(int steps, int x) {
        int a = 0;
        int b = 0;
        for (int i = 0; i < steps; i++) {
            a += NUMBERS[i & 4_095] ^ i;
            b ^= NUMBERS[i + 64 & 4_095] + a;
        }
        return x + a + b;
    }

    /** Finds out how long a step takes here, and how many make the wanted lengths. */
    static void measure() {
        narrow = step(false);
        double best = narrow;
        n5 = steps(5, best);
        n12 = steps(12, best);
        n50 = steps(50, best);
        n100 = steps(100, best);
        n400 = steps(400, best);
        n2k = steps(2_000, best);
        n20k = steps(20_000, best);
        wide = step(true);
        double sum = wide;
        sum12 = steps(12, sum);
        sum100 = steps(100, sum);
        sum400 = steps(400, sum);
    }

    static int some(boolean wide, int steps, int x) {
        return wide ? sum(steps, x) : spin(steps, x);
    }

    static int steps(double nanos, boolean isWide) {
        return steps(nanos, isWide ? wide : narrow);
    }

    private static double step(boolean sum) {
        int x = 1;
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 2_000; round++) {
            long begin = System.nanoTime();
            x = sum ? sum(2_000, x) : spin(2_000, x);
            best = Math.min(best, (System.nanoTime() - begin) / 2_000.0);
        }
        sink = x;
        return best;
    }

    private static int steps(double nanos, double step) {
        return (int) Math.max(1, Math.round(nanos / step));
    }

    static volatile int sink;
}
