// The rules of this shop, as one tree.
package shop.rules;

import shop.orders.Order;

public final class RuleBook {
    private RuleBook() {
    }

    public static Rule standard() {
        Rule welcome = new OnlyIf(order -> {
            order.tally.ruleBookIsNew++;
            return order.loyaltyYears == 0;
        }, new AmountOff(250));
        Rule seasonal = new BestOf(new PercentOff(3), new AmountOff(99), new BulkRebate(30));
        Rule regulars = new BestOf(new Loyalty(), new OnlyIf(RuleBook::isClub, new PercentOff(4)));
        return welcome.then(seasonal).then(regulars).then(new PercentOff(1));
    }

    private static boolean isClub(Order order) {
        order.tally.ruleBookIsClub++;
        return order.customer % 3 == 0;
    }
}
