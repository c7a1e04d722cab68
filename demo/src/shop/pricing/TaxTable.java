// Taxes by country, called through method handles: plain ones, and one that is composed of two methods.
package shop.pricing;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.HashMap;
import java.util.Map;
import shop.Tally;
import shop.orders.Order;

final class TaxTable {
    private static final MethodType TAX = MethodType.methodType(long.class, long.class, Tally.class);
    private static final MethodHandle REDUCED = find("reduced", TAX);

    private final Map<String, MethodHandle> byCountry = new HashMap<>();

    TaxTable() {
        MethodHandle standard = find("standard", TAX);
        byCountry.put("AT", standard);
        byCountry.put("DE", standard);
        byCountry.put("FR", standard);
        byCountry.put("NL", REDUCED);
        byCountry.put("IE", find("exempt", TAX));
        // Switzerland has no coin below five cents: the reduced tax, then rounded.
        MethodHandle toCoin = find("toCoin", MethodType.methodType(long.class, long.class));
        byCountry.put("CH", MethodHandles.filterReturnValue(REDUCED, toCoin));
    }

    long tax(Order order, long cents) {
        Tally tally = order.tally;
        tally.taxTableTax++;
        tally.methodHandleCalls++;
        if (order.country.equals("CH")) {
            tally.taxTableToCoin++;
        }
        try {
            return (long) byCountry.get(order.country).invokeExact(cents, tally);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static long standard(long cents, Tally tally) {
        tally.taxTableStandard++;
        tally.moneyPerMille++;
        return Money.perMille(cents, 200);
    }

    private static long reduced(long cents, Tally tally) {
        tally.taxTableReduced++;
        tally.moneyPerMille++;
        return Money.perMille(cents, 81);
    }

    private static long exempt(long cents, Tally tally) {
        tally.taxTableExempt++;
        return 0;
    }

    /** Counted by tax(), because a return filter sees the amount and nothing else. */
    private static long toCoin(long cents) {
        return (cents + 2) / 5 * 5;
    }

    private static MethodHandle find(String name, MethodType type) {
        try {
            return MethodHandles.lookup().findStatic(TaxTable.class, name, type);
        } catch (ReflectiveOperationException missing) {
            throw new AssertionError(missing);
        }
    }
}
