/** What throw-away loaders define: it has state, calls, a lambda and a handler. */
public final class ChaosGuest implements java.util.function.LongUnaryOperator {
    private static int made;
    private final int own = ++made;

    @Override
    public long applyAsLong(long rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            try {
                sum += step(i);
            } catch (IllegalArgumentException e) {
                sum += 1000;
            }
        }
        java.util.function.LongSupplier more = () -> own;
        return sum + more.getAsLong();
    }

    private static int step(int i) {
        if (i % 50 == 49) {
            throw new IllegalArgumentException();
        }
        return i & 7;
    }

    /** What the first object of a class answers for 100 rounds. */
    public static long ofHundred() {
        long sum = 1;
        for (int i = 0; i < 100; i++) {
            sum += i % 50 == 49 ? 1000 : i & 7;
        }
        return sum;
    }
}
