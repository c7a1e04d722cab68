// An order that cannot be served. It is thrown deep inside and caught by OrderDesk alone.
package shop.orders;

public abstract class Rejected extends RuntimeException {
    private static final long serialVersionUID = 1;

    protected Rejected(String reason) {
        super(reason);
    }
}
