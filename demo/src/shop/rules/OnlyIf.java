// A rule under a condition, which is a lambda.
package shop.rules;

import java.util.function.Predicate;
import shop.orders.Order;

final class OnlyIf implements Rule {
    private final Predicate<Order> condition;
    private final Rule rule;

    OnlyIf(Predicate<Order> condition, Rule rule) {
        this.condition = condition;
        this.rule = rule;
    }

    @Override
    public boolean appliesTo(Order order) {
        order.tally.onlyIfAppliesTo++;
        return condition.test(order);
    }

    @Override
    public long apply(Order order, long cents) {
        order.tally.onlyIfApply++;
        return appliesTo(order) ? rule.apply(order, cents) : cents;
    }
}
