// Large orders pay less; asks the default method of Rule as well as its own condition.
package shop.rules;

import shop.orders.Order;

final class BulkRebate extends Discount {
    private final int fromItems;

    BulkRebate(int fromItems) {
        this.fromItems = fromItems;
    }

    @Override
    public boolean appliesTo(Order order) {
        order.tally.bulkRebateAppliesTo++;
        order.tally.orderItems++;
        return super.appliesTo(order) && order.items() >= fromItems;
    }

    @Override
    long adjust(Order order, long cents) {
        order.tally.bulkRebateAdjust++;
        return cents - cents / 25;
    }
}
