// A rule changes the price of one line of an order. Rules are combined to a tree; the call of apply()
// on a node sees many receiver classes.
package shop.rules;

import shop.orders.Order;

public interface Rule {
    long apply(Order order, long cents);

    /** Most rules always apply. */
    default boolean appliesTo(Order order) {
        order.tally.ruleAppliesTo++;
        return true;
    }

    /** This rule, and then the next on what it leaves. */
    default Rule then(Rule next) {
        return new InOrder(this, next);
    }
}
