// The bank said no.
package shop.payment;

import shop.orders.Order;
import shop.orders.Rejected;

final class CardDeclined extends Rejected {
    private static final long serialVersionUID = 1;

    CardDeclined(Order order) {
        super("card-declined");
        order.tally.cardDeclinedInit++;
    }
}
