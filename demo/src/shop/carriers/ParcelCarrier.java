// A plug-in: ships small orders. Its lambda becomes a hidden class of each loader.
package shop.carriers;

import java.util.function.LongUnaryOperator;
import shop.Tally;
import shop.orders.Order;
import shop.shipping.Carrier;

public final class ParcelCarrier implements Carrier {
    private final long[] surcharges;

    public ParcelCarrier(Tally tally) {
        tally.parcelCarrierInit++;
        surcharges = Zones.surcharges(tally, 120);
    }

    @Override
    public long quote(Order order) {
        order.tally.parcelCarrierQuote++;
        LongUnaryOperator fuel = cents -> {
            order.tally.parcelCarrierLambda++;
            return cents + cents / 8;
        };
        return fuel.applyAsLong(390 + surcharges[Zones.zone(order)]);
    }
}
