// A coupon read from its code. Its constructor can fail at two places: before super(), while the
// argument is checked, and after it, when the coupon has expired.
package shop.pricing;

import shop.Tally;

final class Coupon extends Voucher {
    private static final int EXPIRED_FROM = 51;

    final int perCent;

    Coupon(String code, Tally tally) {
        super(checked(code, tally));
        tally.voucherInit++;
        perCent = Integer.parseInt(code.substring(5));
        if (perCent >= EXPIRED_FROM) {
            tally.couponInitUnwound++;
            throw new BadCoupon(code, tally);
        }
    }

    /** Called by the constructor only, so it also counts the constructor. */
    private static String checked(String code, Tally tally) {
        tally.couponInit++;
        if (!code.startsWith("SAVE-")) {
            tally.couponInitUnwound++;
            tally.couponCheckedUnwound++;
            throw new BadCoupon(code, tally);
        }
        return code;
    }
}
