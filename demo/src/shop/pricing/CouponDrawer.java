// Reads the coupon codes of an order with a stream. One bad code throws through the frames of the
// stream and voids all coupons of that order.
package shop.pricing;

import java.util.List;
import shop.Tally;
import shop.orders.Order;

final class CouponDrawer {
    List<Coupon> read(Order order) {
        Tally tally = order.tally;
        tally.couponDrawerRead++;
        try {
            return order.couponCodes.stream()
                    .map(code -> {
                        tally.couponDrawerLambda++;
                        return new Coupon(code, tally);
                    })
                    .toList();
        } catch (BadCoupon bad) {
            tally.couponDrawerVoided++;
            return List.of();
        }
    }
}
