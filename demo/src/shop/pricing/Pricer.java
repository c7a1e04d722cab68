// The price of an order: cost of the goods, forecast, rules, promotions, tax. Most CPU time is spent here.
package shop.pricing;

import shop.Tally;
import shop.orders.Line;
import shop.orders.Order;
import shop.rules.Rule;
import shop.rules.RuleBook;

public final class Pricer {
    private static final long MARGIN_PER_MILLE = 1350;

    private final PriceCurve curve;
    private final CouponDrawer drawer = new CouponDrawer();
    private final TaxTable taxes = new TaxTable();
    private final Rule rules = RuleBook.standard();

    public Pricer(long seed, Tally setup) {
        curve = new PriceCurve(seed, setup);
    }

    public long price(Order order) {
        Tally tally = order.tally;
        tally.pricerPrice++;
        long goods = 0;
        for (Line line : order.lines) {
            goods += priceLine(order, line);
        }
        goods -= PromotionPicker.discount(order, goods, drawer.read(order));
        return goods + taxes.tax(order, goods);
    }

    private long priceLine(Order order, Line line) {
        Tally tally = order.tally;
        tally.pricerPriceLine++;
        tally.moneyPerMille++;
        long unit = Money.perMille(line.product.cost(tally), MARGIN_PER_MILLE);
        return rules.apply(order, curve.forecast(order, unit) * line.quantity);
    }
}
