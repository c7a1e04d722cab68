// Two rules, one after the other.
package shop.rules;

import shop.orders.Order;

final class InOrder implements Rule {
    private final Rule first;
    private final Rule second;

    InOrder(Rule first, Rule second) {
        this.first = first;
        this.second = second;
    }

    @Override
    public long apply(Order order, long cents) {
        order.tally.inOrderApply++;
        return second.apply(order, first.apply(order, cents));
    }
}
