// Forecasts a fair price: walks the price of a product through some weeks of expected demand, one tiny
// step a day. The loop over step() is one of the two hot spots of the program.
package shop.pricing;

import shop.Dice;
import shop.Tally;
import shop.orders.Order;

final class PriceCurve {
    private static final int SCENARIOS = 12;
    private static final int DAYS = 84;

    private final int[] drift = new int[128];

    PriceCurve(long seed, Tally setup) {
        Dice dice = new Dice(seed, -2);
        for (int i = 0; i < drift.length; i++) {
            drift[i] = dice.below(2001) - 1000;
        }
        setup.diceInit++;
        setup.diceNext += dice.draws;
    }

    long forecast(Order order, long cents) {
        long total = 0;
        for (int scenario = 0; scenario < SCENARIOS; scenario++) {
            long price = cents << 12;
            for (int day = 0; day < DAYS; day++) {
                price = step(price, demand(scenario * 13 + day));
            }
            total += price >> 12;
        }
        order.tally.priceCurveForecast++;
        order.tally.priceCurveStep += SCENARIOS * DAYS;
        return total / SCENARIOS;
    }

    /** One day: the price moves by demand per 2^16, and pulls back a little. */
    private static long step(long price, int demand) {
        return price + (price * demand >> 16) - (price >> 14);
    }

    private int demand(int day) {
        return drift[day & 127];
    }
}
