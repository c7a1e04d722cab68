// More was ordered than the shop ever keeps.
package shop.stock;

import shop.orders.Order;
import shop.orders.Rejected;

final class OutOfStock extends Rejected {
    private static final long serialVersionUID = 1;

    OutOfStock(Order order) {
        super("out-of-stock");
        order.tally.outOfStockInit++;
    }
}
