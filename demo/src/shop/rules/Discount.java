// What all discounts share: ask whether they apply, adjust the price, keep it in bounds.
package shop.rules;

import shop.Tally;
import shop.orders.Order;
import shop.pricing.Money;

abstract class Discount implements Rule {
    @Override
    public final long apply(Order order, long cents) {
        Tally tally = order.tally;
        tally.discountApply++;
        if (!appliesTo(order)) {
            return cents;
        }
        tally.moneyClamp++;
        return Money.clamp(adjust(order, cents), cents);
    }

    abstract long adjust(Order order, long cents);
}
