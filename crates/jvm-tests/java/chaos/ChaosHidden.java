/** What becomes a hidden class; without a lambda, which Java 17 cannot link there. */
final class ChaosHidden implements java.util.function.LongUnaryOperator {
    private final java.util.ArrayList<Long> parts = new java.util.ArrayList<>();

    @Override
    public long applyAsLong(long rounds) {
        for (long i = 0; i < rounds; i++) {
            parts.add(i * i);
        }
        long sum = 0;
        for (long part : parts) {
            sum += part;
        }
        return sum;
    }
}
