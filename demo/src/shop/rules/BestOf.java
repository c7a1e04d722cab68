// The rule among several that is best for the customer.
package shop.rules;

import shop.orders.Order;

final class BestOf implements Rule {
    private final Rule[] rules;

    BestOf(Rule... rules) {
        this.rules = rules;
    }

    @Override
    public long apply(Order order, long cents) {
        order.tally.bestOfApply++;
        long best = cents;
        for (Rule rule : rules) {
            best = Math.min(best, rule.apply(order, cents));
        }
        return best;
    }
}
