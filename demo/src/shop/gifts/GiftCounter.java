// Serves the gift wishes of an order by reflection. An engraving that fails comes back out of
// Method.invoke as an InvocationTargetException, and the gift goes out without it.
package shop.gifts;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import shop.Tally;
import shop.orders.Order;

public final class GiftCounter {
    private final GiftDesk desk = new GiftDesk();
    private final Constructor<GiftBox> box;

    public GiftCounter() {
        try {
            box = GiftBox.class.getConstructor(Integer.class, Tally.class);
        } catch (NoSuchMethodException missing) {
            throw new AssertionError(missing);
        }
    }

    /** What the gifts cost, in cents. */
    public long serve(Order order) {
        order.tally.giftCounterServe++;
        long cents = 0;
        for (String wish : order.giftWishes) {
            cents += grant(order, wish);
        }
        return cents;
    }

    private long grant(Order order, String wish) {
        Tally tally = order.tally;
        tally.giftCounterGrant++;
        try {
            tally.constructorCalls++;
            GiftBox gift = box.newInstance(order.lines.size(), tally);
            Method method = GiftDesk.class.getMethod(wish, Order.class, GiftBox.class);
            tally.methodCalls++;
            return (Long) method.invoke(desk, order, gift);
        } catch (InvocationTargetException wrapped) {
            tally.giftCounterFailed++;
            return 0;
        } catch (ReflectiveOperationException missing) {
            throw new AssertionError(missing);
        }
    }
}
