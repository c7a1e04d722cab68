/**
 * Calls of one root that mostly do the same: one in three does a little more, and one in 500 takes another
 * way, which is what makes it slow. Two threads call it, one of them much less often.
 */
public final class SlowPath {
    private static final int CALLS = 20_000;

    private static volatile long sum;

    public static void main(String[] args) throws InterruptedException {
        Thread seldom = new Thread(() -> calls(CALLS / 10), "seldom");
        seldom.start();
        calls(CALLS);
        seldom.join();
    }

    private static void calls(int number) {
        for (int i = 1; i <= number; i++) {
            try {
                root(i);
            } catch (IllegalStateException e) {
                sum++;
            }
        }
    }

    private static void root(int i) {
        usual();
        if (i % 3 == 0) {
            sometimes();
        }
        if (i % 500 == 0) {
            rare();
        }
        if (i % 7 == 0) {
            throw new IllegalStateException();
        }
    }

    private static void usual() {
        spin(10_000);
    }

    private static void sometimes() {
        nested();
    }

    /** Calls the root from within: part of the call that it is in. */
    private static void nested() {
        if (sum == 42) {
            root(1);
        }
        spin(2_000);
    }

    private static void rare() {
        search();
    }

    private static void search() {
        spin(1_000_000);
    }

    private static void spin(int rounds) {
        // Each step waits for the one before, and no compiler makes fewer of them.
        long x = sum | 1;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        sum = x;
    }
}
