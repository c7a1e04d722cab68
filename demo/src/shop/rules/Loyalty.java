// Old customers pay less: recursion over the years, each year takes half a per cent of the rest.
package shop.rules;

import shop.orders.Order;

final class Loyalty extends Discount {
    @Override
    public boolean appliesTo(Order order) {
        order.tally.loyaltyAppliesTo++;
        return order.loyaltyYears > 3;
    }

    @Override
    long adjust(Order order, long cents) {
        order.tally.loyaltyAdjust++;
        return afterYears(order, cents, order.loyaltyYears);
    }

    private static long afterYears(Order order, long cents, int years) {
        order.tally.loyaltyAfterYears++;
        return years == 0 ? cents : afterYears(order, cents - cents / 200, years - 1);
    }
}
