// A fixed amount off.
package shop.rules;

import shop.orders.Order;

final class AmountOff extends Discount {
    private final long amount;

    AmountOff(long amount) {
        this.amount = amount;
    }

    @Override
    long adjust(Order order, long cents) {
        order.tally.amountOffAdjust++;
        return cents - amount;
    }
}
