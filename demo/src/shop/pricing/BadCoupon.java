// A coupon code that means nothing, or a coupon that is no longer valid.
package shop.pricing;

import shop.Tally;

final class BadCoupon extends RuntimeException {
    private static final long serialVersionUID = 1;

    BadCoupon(String code, Tally tally) {
        super(code);
        tally.badCouponInit++;
    }
}
