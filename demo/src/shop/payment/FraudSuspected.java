// Somebody has to look at this order first.
package shop.payment;

import shop.orders.Order;
import shop.orders.Rejected;

final class FraudSuspected extends Rejected {
    private static final long serialVersionUID = 1;

    FraudSuspected(Order order) {
        super("fraud-suspected");
        order.tally.fraudSuspectedInit++;
    }
}
