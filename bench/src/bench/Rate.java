package bench;

/** Calls as quickly as it can, or with some work between two calls; says how long that took. */
final class Rate {
    private static final int CALLS = 5_000_000;

    private Rate() {}

    public static void main(String[] args) {
        int work = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            long start = System.nanoTime();
            sum += run(work, sum);
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

    private static int call(int x) {
        return x * 31 + 7;
    }
}
