// Some per cent off, for everybody.
package shop.rules;

import shop.orders.Order;
import shop.pricing.Money;

final class PercentOff extends Discount {
    private final int perCent;

    PercentOff(int perCent) {
        this.perCent = perCent;
    }

    @Override
    long adjust(Order order, long cents) {
        order.tally.percentOffAdjust++;
        order.tally.moneyPerMille++;
        return cents - Money.perMille(cents, perCent * 10L);
    }
}
