// Arithmetic on cents: methods so small that a timing probe costs more than they do.
package shop.pricing;

public final class Money {
    private Money() {
    }

    /** The given per mille of an amount, rounded half up. */
    public static long perMille(long cents, long perMille) {
        return (cents * perMille + 500) / 1000;
    }

    /** A discount never makes a price negative and never raises it. */
    public static long clamp(long cents, long ceiling) {
        return cents < 0 ? 0 : Math.min(cents, ceiling);
    }
}
