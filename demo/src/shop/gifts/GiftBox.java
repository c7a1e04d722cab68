// A box for a gift; GiftCounter makes it with Constructor.newInstance.
package shop.gifts;

import shop.Tally;

public final class GiftBox {
    final int size;

    public GiftBox(Integer size, Tally tally) {
        tally.giftBoxInit++;
        this.size = size;
    }
}
