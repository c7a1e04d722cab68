// The text does not fit on the gift.
package shop.gifts;

import shop.orders.Order;

public final class EngravingFailed extends Exception {
    private static final long serialVersionUID = 1;

    EngravingFailed(Order order) {
        super("text too long");
        order.tally.engravingFailedInit++;
    }
}
