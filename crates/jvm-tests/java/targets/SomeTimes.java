/**
 * Calls of different lengths, in turns: every tenth takes ten times as long, and every seventh ends by an
 * exception. {@code drive} does nothing else, so its own time, which is that of one call, tells what all
 * of them took.
 */
public final class SomeTimes {
    private static final int CALLS = 30_000;

    private static long sum;

    public static void main(String[] args) {
        drive();
        System.out.println("sum " + sum);
    }

    private static void drive() {
        for (int i = 0; i < CALLS; i++) {
            try {
                work(i);
            } catch (IllegalStateException e) {
                sum++;
            }
        }
    }

    private static void work(int i) {
        spin(i % 10 == 0 ? 100_000 : 10_000);
        if (i % 7 == 0) {
            throw REFUSED;
        }
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

    private static final IllegalStateException REFUSED = new IllegalStateException();
}
