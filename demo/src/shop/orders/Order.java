// An order as the customer sent it. It carries the tally of the thread that works on it, so that every
// method on its way can count itself with one plain increment.
package shop.orders;

import java.util.List;
import shop.Tally;

public final class Order {
    public final long id;
    public final Tally tally;
    public final int customer;
    public final String country;
    public final String address;
    public final String card;
    public final int loyaltyYears;
    public final List<Line> lines;
    public final List<String> couponCodes;
    /** Names of methods of GiftDesk. */
    public final List<String> giftWishes;
    public final boolean newsletter;

    Order(long id, Tally tally, int customer, String country, String address, String card, int loyaltyYears,
            List<Line> lines, List<String> couponCodes, List<String> giftWishes, boolean newsletter) {
        tally.orderInit++;
        this.id = id;
        this.tally = tally;
        this.customer = customer;
        this.country = country;
        this.address = address;
        this.card = card;
        this.loyaltyYears = loyaltyYears;
        this.lines = lines;
        this.couponCodes = couponCodes;
        this.giftWishes = giftWishes;
        this.newsletter = newsletter;
    }

    public int items() {
        int items = 0;
        for (Line line : lines) {
            items += line.quantity;
        }
        return items;
    }
}
