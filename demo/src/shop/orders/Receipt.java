// The answer to an order: a price in cents, or the reason why it was turned down.
package shop.orders;

public record Receipt(long id, long cents, String rejection) {
    public boolean accepted() {
        return rejection == null;
    }

    /** The line that a client of --serve reads. */
    public String answer() {
        return accepted()
                ? String.format("ok %d price=%d.%02d", id, cents / 100, cents % 100)
                : "rejected " + id + " reason=" + rejection;
    }
}
