// A leak: customers' sessions in a static map, which nobody ever removes.
package shop.leak;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import shop.orders.Order;

public final class Sessions {
    private static final Map<Long, Session> OPEN = new ConcurrentHashMap<>();
    private static final AtomicLong NEXT = new AtomicLong();

    private static final class Session {
        final int customer;
        final byte[] history = new byte[512];

        Session(int customer) {
            this.customer = customer;
        }
    }

    private Sessions() {
    }

    public static void open(Order order) {
        order.tally.sessionsOpen++;
        OPEN.put(NEXT.incrementAndGet(), new Session(order.customer));
    }
}
