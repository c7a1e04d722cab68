// Finds the best set of promotions that may be used together: a knapsack solved by plain recursion.
// best() is the method that is called most, and the other hot spot of the program.
package shop.pricing;

import java.util.List;
import shop.Tally;
import shop.orders.Order;

final class PromotionPicker {
    private static final int HOUSE_PROMOTIONS = 10;
    private static final int ROOM = 20;

    private final int count;
    private final long[] saves;
    private final int[] takes;
    private long calls;

    private PromotionPicker(Order order, long cents, List<Coupon> coupons) {
        count = HOUSE_PROMOTIONS + coupons.size();
        saves = new long[count];
        takes = new int[count];
        for (int i = 0; i < HOUSE_PROMOTIONS; i++) {
            saves[i] = Money.perMille(cents, 3 + (order.customer + i * 7) % 11);
            takes[i] = 1 + (order.customer + i * 5) % 6;
        }
        for (int i = HOUSE_PROMOTIONS; i < count; i++) {
            int perCent = coupons.get(i - HOUSE_PROMOTIONS).perCent;
            saves[i] = Money.perMille(cents, perCent * 4L);
            takes[i] = 2 + perCent / 10;
        }
        order.tally.moneyPerMille += count;
    }

    /** The largest saving that the order can get. */
    static long discount(Order order, long cents, List<Coupon> coupons) {
        Tally tally = order.tally;
        tally.promotionPickerDiscount++;
        PromotionPicker picker = new PromotionPicker(order, cents, coupons);
        long saving = picker.best(0, ROOM);
        tally.promotionPickerBest += picker.calls;
        return saving;
    }

    private long best(int next, int room) {
        calls++;
        if (next == count) {
            return 0;
        }
        long without = best(next + 1, room);
        if (takes[next] > room) {
            return without;
        }
        return Math.max(without, saves[next] + best(next + 1, room - takes[next]));
    }
}
