package bench;

import java.io.IOException;

/**
 * Calls as quickly as it can, or with some work between two calls; says how long that took. With the word
 * {@code clock} it times each call itself, with {@code wait} it begins when a line comes.
 */
final class Rate {
    private static final int CALLS = 5_000_000;

    private Rate() {}

    public static void main(String[] args) throws IOException {
        int work = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        String how = args.length > 2 ? args[2] : "";
        if (how.equals("wait")) {
            System.out.println("ready");
            System.in.read();
        }
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            long start = System.nanoTime();
            sum += how.equals("clock") ? timed(work, sum) : run(work, sum);
            System.out.println("round " + (System.nanoTime() - start));
        }
        System.out.println("calls " + (long) rounds * CALLS + " sum " + sum);
    }

    private static int run(int work, int x) {
        for (int i = 0; i < CALLS; i++) {
            for (int step = 0; step < work; step++) {
                x ^= x << 13;
                x ^= x >>> 17;
            }
            x = call(x);
        }
        return x;
    }

    private static int timed(int work, int x) {
        long total = 0;
        for (int i = 0; i < CALLS; i++) {
            for (int step = 0; step < work; step++) {
                x ^= x << 13;
                x ^= x >>> 17;
            }
            long start = System.nanoTime();
            x = call(x);
            total += System.nanoTime() - start;
        }
        return x + (int) (total >>> 62);
    }

    private static int call(int x) {
        return x * 31 + 7;
    }
}
