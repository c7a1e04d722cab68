// What can be done for a gift. Called by name only, through Method.invoke.
package shop.gifts;

import shop.orders.Order;

public final class GiftDesk {
    public long wrap(Order order, GiftBox box) {
        order.tally.giftDeskWrap++;
        return 150L + 10L * box.size;
    }

    public long card(Order order, GiftBox box) {
        order.tally.giftDeskCard++;
        return 95;
    }

    public long engrave(Order order, GiftBox box) throws EngravingFailed {
        order.tally.giftDeskEngrave++;
        if (order.customer % 5 == 0) {
            order.tally.giftDeskEngraveUnwound++;
            throw new EngravingFailed(order);
        }
        return 1200;
    }
}
