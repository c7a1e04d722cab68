// Invents the customers' orders. Order number N depends on the seed and on N alone: whichever thread
// asks for it, and however often, it is the same order.
package shop.orders;

import java.util.ArrayList;
import java.util.List;
import shop.Dice;
import shop.Tally;

public final class OrderBook {
    private static final String[] COUNTRIES = {"AT", "CH", "DE", "FR", "IE", "NL"};
    private static final String[] WISHES = {"wrap", "card", "engrave"};

    private final long seed;
    private final Catalog catalog;

    public OrderBook(long seed, Tally setup) {
        this.seed = seed;
        this.catalog = new Catalog(seed, setup);
    }

    public Order write(long id, Tally tally) {
        tally.orderBookWrite++;
        Dice dice = new Dice(seed, id);
        int customer = dice.below(5000);
        String country = COUNTRIES[dice.below(COUNTRIES.length)];
        String address = dice.oneIn(80) ? "?" : (1 + dice.below(200)) + " Harbour Street";
        String card = card(dice);
        int loyaltyYears = dice.below(12);
        boolean newsletter = dice.oneIn(9);
        Order order = new Order(id, tally, customer, country, address, card, loyaltyYears,
                lines(dice), coupons(dice), wishes(dice), newsletter);
        tally.diceInit++;
        tally.diceNext += dice.draws;
        tally.diceOneIn += dice.bets;
        tally.lineInit += order.lines.size();
        return order;
    }

    /** A card number; its last digit says how the bank will answer. */
    private static String card(Dice dice) {
        return "4000" + (100000 + dice.below(900000)) + (dice.oneIn(60) ? "9" : dice.oneIn(40) ? "5" : "1");
    }

    private List<Line> lines(Dice dice) {
        int count = 2 + dice.below(7);
        List<Line> lines = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int quantity = dice.oneIn(400) ? 99 : 1 + dice.below(12);
            lines.add(new Line(catalog.product(dice.below(Catalog.SIZE)), quantity));
        }
        return lines;
    }

    private static List<String> coupons(Dice dice) {
        int count = dice.below(4);
        List<String> codes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            codes.add(dice.oneIn(100) ? "VOID" : "SAVE-" + (dice.oneIn(100) ? 75 : 1 + dice.below(50)));
        }
        return codes;
    }

    private static List<String> wishes(Dice dice) {
        List<String> wishes = new ArrayList<>(2);
        while (wishes.size() < 2 && dice.oneIn(4)) {
            wishes.add(WISHES[dice.below(WISHES.length)]);
        }
        return wishes;
    }
}
