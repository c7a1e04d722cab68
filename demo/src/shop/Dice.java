// The only source of chance: a SplitMix64 generator, so that equal seeds give equal orders on every JDK.
package shop;

public final class Dice {
    private long state;
    /** Numbers drawn so far; whoever made the dice adds them to a tally. */
    public long draws;
    /** Calls of oneIn() so far. */
    public long bets;

    public Dice(long seed, long stream) {
        state = seed * 0x9E3779B97F4A7C15L ^ stream * 0xD1B54A32D192ED03L;
    }

    public long next() {
        draws++;
        long z = state += 0x9E3779B97F4A7C15L;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }

    /** A number from 0 to bound - 1. */
    public int below(int bound) {
        return (int) ((next() >>> 33) % bound);
    }

    /** True once in n draws on average. */
    public boolean oneIn(int n) {
        bets++;
        return below(n) == 0;
    }
}
